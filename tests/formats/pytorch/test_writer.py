"""Files that burnstore writes, opened by torch, by Python's zipfile and by the real Burn."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import burnstore as bs
from burnstore.formats.pytorch import zip_out

TORCH_DTYPES = [
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"),
    *("bool", "complex64", "complex128", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu"),
    "float4_e2m1fn_x2",
]
PLAIN = {
    "epoch": 3,
    "nothing": None,
    "flags": [True, False],
    "numbers": [0, 255, 256, 65535, 65536, -1, -128, -300, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63, -(2**63), 2**70],
    "floats": [0.1, -0.0, 1e300, float("inf")],
    "text": "h\u00e9llo \u2713",
    "long": "long " * 100,
    "bytes": b"\x00\xff",
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    "nested": {"deeper": {"still": [{}, []]}, 7: "seven", None: 0},
    "one": [1],
    "many": list(range(2500)),
}


def bits(dtype: str, *shape: int) -> torch.Tensor:
    """A torch tensor of any dtype whose bytes count up; booleans alternate."""
    kind = getattr(torch, dtype)
    size = torch.empty(0, dtype=kind).element_size()
    count = int(np.prod(shape, dtype=np.int64))
    raw = torch.arange(count * size, dtype=torch.int64) % (2 if dtype == "bool" else 60)
    return raw.to(torch.uint8).view(kind).reshape(shape)


def saved(tensors: Any, **options: Any) -> bytes:
    """What burnstore writes."""
    data = bs.save(tensors, bytes, format="pytorch", **options)
    assert isinstance(data, bytes)
    return data


def torch_saved(value: object) -> bytes:
    """What torch writes."""
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def without_id(data: bytes) -> bytes:
    """The file with zeros for the 40 digits of its id, and for their CRC, which stands there twice."""
    record = data.index(b"archive/.data/serialization_id")
    begin = data.index(b"PK\x07\x08", record) - 40
    digits = data[begin : begin + 40]
    assert digits.isdigit()
    crc = struct.pack("<I", zlib.crc32(digits))
    data = data[:begin] + bytes(40) + data[begin + 40 :]
    assert data[begin:].count(crc) == 2
    return data[:begin] + data[begin:].replace(crc, bytes(4))


def check_reads(data: bytes, tensors: dict[str, torch.Tensor], tmp_path: Path) -> OrderedDict[str, torch.Tensor]:
    """torch, with and without mmap, reads these tensors in this order, and zipfile finds no wrong CRC."""
    path = tmp_path / "written.pt"
    path.write_bytes(data)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    for mmap in (False, True):
        read = torch.load(path, weights_only=True, mmap=mmap)
        assert type(read) is OrderedDict
        assert list(read) == list(tensors)
        for name, tensor in tensors.items():
            assert read[name].dtype is tensor.dtype, name
            assert read[name].shape == tensor.shape, name
            assert (
                read[name].contiguous().reshape(-1).view(torch.uint8).equal(tensor.contiguous().reshape(-1).view(torch.uint8))
            ), name
    return read


def ten_models() -> dict[str, OrderedDict[str, torch.Tensor]]:
    """Tensors of ten kinds."""
    torch.manual_seed(0)
    weight = torch.randn(8, 4)
    return {
        "every dtype": OrderedDict((dtype, bits(dtype, 2, 4)) for dtype in TORCH_DTYPES),
        "every rank": OrderedDict((f"rank{rank}", bits("float32", *([2] * rank))) for rank in range(9)),
        "scalars": OrderedDict((dtype, bits(dtype)) for dtype in TORCH_DTYPES if dtype != "float4_e2m1fn_x2"),
        "empty": OrderedDict(a=torch.empty(0), b=torch.empty(3, 0, 2, dtype=torch.int8), c=torch.empty(0, dtype=torch.uint16)),
        "none at all": OrderedDict(),
        "one": OrderedDict([("only", weight)]),
        "tied": OrderedDict(
            [("embed.weight", weight), ("bias", torch.ones(3)), ("head.weight", weight.detach()), ("flat", weight.view(-1))]
        ),
        "odd names": OrderedDict(
            [("", torch.ones(1)), ("é.✓", torch.ones(2)), ("../../x", torch.ones(3)), ("n" * 300, torch.ones(4))]
        ),
        "many": OrderedDict((f"layers.{i}.weight", torch.full((i % 7, 3), float(i))) for i in range(2001)),
        "large": OrderedDict((f"w{i}", torch.randn(700_001 + i)) for i in range(3)),
    }


@pytest.mark.parametrize("which", list(ten_models()))
def test_the_file_is_byte_for_byte_what_torch_writes(which: str) -> None:
    tensors = ten_models()[which]
    assert without_id(saved(tensors)) == without_id(torch_saved(tensors))


@pytest.mark.parametrize("which", list(ten_models()))
def test_torch_and_zipfile_open_the_file_and_find_the_same_tensors(which: str, tmp_path: Path) -> None:
    tensors = ten_models()[which]
    check_reads(saved(tensors), tensors, tmp_path)


@pytest.mark.parametrize("count", [1, 2, 999, 1000, 1001, 1999, 2000])
def test_items_are_batched_as_pythons_pickler_batches_them(count: int) -> None:
    tensors = OrderedDict((f"t{i}", torch.full((1,), float(i))) for i in range(count))
    assert without_id(saved(tensors)) == without_id(torch_saved(tensors))


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_dims_that_spell_a_percent_sign_stay_what_they_are(rank: int) -> None:
    tensors = OrderedDict((f"t{i}", bits("int8", 37, *([1] * (rank - 1)))) for i in range(60))  # 37 is "%"
    assert without_id(saved(tensors)) == without_id(torch_saved(tensors))


def test_tied_tensors_share_one_storage(tmp_path: Path) -> None:
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    data = saved({"a": weight, "b": weight, "flat": weight.reshape(-1), "copy": weight.copy(), "other": weight.view(np.int32)})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        storages = [name for name in archive.namelist() if name.startswith("archive/data/")]
    assert len(storages) == 3
    read = torch.load(io.BytesIO(data), weights_only=True)
    pointers = {name: tensor.untyped_storage().data_ptr() for name, tensor in read.items()}
    assert pointers["a"] == pointers["b"] == pointers["flat"] != pointers["copy"]
    assert pointers["other"] not in (pointers["a"], pointers["copy"])


def test_two_snapshots_of_one_range_of_a_file_share_one_storage(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    bs.save({"w": np.ones((2, 2), np.float32), "v": np.ones((2, 2), np.float32)}, path)
    store = bs.open(path)
    read = torch.load(io.BytesIO(saved({"a": store["w"], "b": store["w"], "c": store["v"]})), weights_only=True)
    assert read["a"].data_ptr() == read["b"].data_ptr() != read["c"].data_ptr()


def test_a_tensor_that_can_be_read_once_is_written_once_under_two_names() -> None:
    once = bs.TensorSnapshot.from_blocks("a", "U8", (4,), iter([b"ab", b"cd"]))
    read = torch.load(io.BytesIO(saved([once, once.with_name("b")])), weights_only=True)
    assert read["a"].tolist() == read["b"].tolist() == list(b"abcd")


def test_arrays_of_any_memory_order_are_written_as_their_values() -> None:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    tensors = {"t": base.T, "step": base[::2, ::-1], "big": base.astype(">f4"), "wide": np.broadcast_to(base[0], (3, 6))}
    read = torch.load(io.BytesIO(saved(tensors)), weights_only=True)
    for name, array in tensors.items():
        assert np.array_equal(read[name].numpy(), array), name


def test_booleans_of_four_bytes_become_torch_booleans() -> None:
    wide = bs.TensorSnapshot(
        "mask", bs.DType.of("Bool(U32)"), (3,), bs.TensorSnapshot.from_data("x", np.array([1, 0, 7], np.uint32)).data
    )
    read = torch.load(io.BytesIO(saved([wide])), weights_only=True)
    assert read["mask"].tolist() == [True, False, True]


def test_float4_arrays_become_pairs() -> None:
    array = np.array([[0.5, 1.0, -6.0, 3.0]], ml_dtypes.float4_e2m1fn)
    read = torch.load(io.BytesIO(saved({"w": array})), weights_only=True)
    assert read["w"].dtype is torch.float4_e2m1fn_x2
    assert read["w"].shape == (1, 2)
    assert read["w"].view(torch.uint8).tolist() == [[0x21, 0x5F]]


# Values beside the tensors


def test_extra_values_lie_beside_the_state_dict_and_are_byte_for_byte_torchs() -> None:
    tensors = OrderedDict(w=torch.ones(2), v=torch.zeros(1))
    data = saved(tensors, extra=PLAIN)
    assert without_id(data) == without_id(torch_saved({"state_dict": tensors, **PLAIN}))
    read = torch.load(io.BytesIO(data), weights_only=True)
    assert list(read) == ["state_dict", *PLAIN]
    assert {key: value for key, value in read.items() if key != "state_dict"} == PLAIN
    assert type(read["state_dict"]) is OrderedDict


def test_numpy_scalars_and_children_of_plain_classes_become_plain() -> None:
    extra = {"loss": np.float32(0.5), "steps": np.int64(7), "mean": np.float64(0.25), "best": np.bool_(True)}
    read = torch.load(io.BytesIO(saved({"w": [1.0]}, extra={**extra, "order": OrderedDict(a=1)})), weights_only=True)
    assert [read[name] for name in extra] == [0.5, 7, 0.25, True]
    assert [type(read[name]) for name in extra] == [float, int, float, bool]
    assert read["order"] == {"a": 1}


def test_a_value_that_is_not_plain_is_refused_with_its_path() -> None:
    with pytest.raises(bs.errors.UsageError, match=r"extra\['run'\]\['ids'\]\[1\]: a set is no plain value"):
        saved({"w": [1.0]}, extra={"run": {"ids": [0, {1}]}})


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(bs.errors.UsageError, match="contains itself"):
        saved({"w": [1.0]}, extra={"loop": loop})


def test_an_integer_that_no_reader_takes_is_refused() -> None:
    with pytest.raises(bs.errors.UsageError, match="2041 bits is too long"):
        saved({"w": [1.0]}, extra={"n": 1 << 2040})


def test_the_key_of_the_tensors_cannot_be_given_twice() -> None:
    with pytest.raises(bs.errors.UsageError, match="'state_dict'"):
        saved({"w": [1.0]}, extra={"state_dict": {}})


def test_extra_must_be_a_mapping_of_text() -> None:
    with pytest.raises(bs.errors.UsageError, match="mapping of text"):
        saved({"w": [1.0]}, extra={1: 2})


@pytest.mark.parametrize("format", ["safetensors", "burnpack"])
def test_other_formats_refuse_extra(format: str) -> None:
    with pytest.raises(bs.errors.UsageError, match="cannot hold values beside its tensors"):
        bs.save({"w": [1.0]}, bytes, format=format, extra={"epoch": 3})


def test_metadata_lies_in_a_record_of_its_own_that_torch_does_not_mind(tmp_path: Path) -> None:
    tensors = {"w": torch.ones(2)}
    data = saved(tensors, metadata={"version": "1.0", "a": "é"})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert json.loads(archive.read("archive/extra/metadata.json")) == {"a": "é", "version": "1.0"}
    check_reads(data, tensors, tmp_path)


# The archive


def test_the_same_tensors_give_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(400_000, dtype=np.int64)}
    bs.save(arrays, tmp_path / "m.safetensors")
    store = bs.open(tmp_path / "m.safetensors")
    read = bs.open(tmp_path / "m.safetensors", io="pread")
    blocks = [
        bs.TensorSnapshot.from_blocks(name, bs.DType.of(array.dtype), array.shape, [array.tobytes()[:5], array.tobytes()[5:]])
        for name, array in arrays.items()
    ]
    expected = saved(arrays)
    assert saved(arrays) == expected
    assert saved({name: store[name] for name in arrays}) == expected
    assert saved({name: read[name] for name in arrays}) == expected
    assert saved(blocks) == expected
    bs.save(arrays, tmp_path / "any name.pt")
    assert (tmp_path / "any name.pt").read_bytes() == expected


def test_the_id_follows_from_the_content() -> None:
    def identity(data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read("archive/.data/serialization_id")

    one, other = identity(saved({"w": [1.0]})), identity(saved({"w": [2.0]}))
    assert len(one) == len(other) == 40
    assert one.isdigit()
    assert one != other


def test_all_storages_begin_at_multiples_of_64() -> None:
    data = saved({f"n{'x' * i}": np.arange(i, dtype=np.uint8) for i in range(70)})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            name, extra = struct.unpack_from("<HH", data, info.header_offset + 26)
            assert (info.header_offset + 30 + name + extra) % 64 == 0
            assert info.compress_type == zipfile.ZIP_STORED


def test_more_entries_than_a_plain_zip_can_count(tmp_path: Path) -> None:
    count = 66_000
    data = saved({f"t{i}": np.uint8(i % 256) for i in range(count)})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert len(archive.namelist()) == count + 6
    reader = torch._C.PyTorchFileReader(io.BytesIO(data))
    assert len(reader.get_all_records()) == count + 6
    assert reader.get_record(f"data/{count - 1}") == bytes([(count - 1) % 256])


@pytest.mark.parametrize("limit", [0, 100, 5000])
def test_numbers_over_the_limit_of_a_plain_zip_go_into_zip64_fields(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zip_out, "_LIMIT", limit)  # 4 GiB, but for the time that it takes
    tensors = {"small": torch.ones(3), "large": torch.randn(5000), "last": torch.zeros(2, 2), "empty": torch.empty(0)}
    data = saved(tensors)
    assert data.count(b"\x01\x00\x08\x00") + data.count(b"\x01\x00\x10\x00") + data.count(b"\x01\x00\x18\x00") > 0
    check_reads(data, tensors, tmp_path)


def test_without_threads_the_file_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = {"w": np.arange(1_000_000, dtype=np.float32)}
    expected = saved(tensors)

    def no_threads(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", no_threads)
    assert saved(tensors) == expected


# What cannot be written


@pytest.mark.parametrize("size", [100, 5_000_000])
@pytest.mark.parametrize("off", [-1, 1])
def test_blocks_that_do_not_add_up_leave_no_file(size: int, off: int, tmp_path: Path) -> None:
    wrong = bs.TensorSnapshot.from_blocks("w", "U8", (size,), lambda: [bytes(size + off)])
    with pytest.raises(bs.errors.TensorDataError, match="'w'"):
        bs.save([wrong], tmp_path / "x.pt")
    assert list(tmp_path.iterdir()) == []


def test_a_dtype_that_torch_lacks_is_refused() -> None:
    six = bs.TensorSnapshot.from_data("w", bs.TensorData(bytes(3), (4,), "F6_E2M3"))
    with pytest.raises(bs.errors.DTypeError, match="PyTorch has no dtype for F6_E2M3"):
        saved([six])


def test_half_a_pair_of_float4_is_refused() -> None:
    odd = bs.TensorSnapshot.from_data("w", bs.TensorData(bytes(3), (2, 3), "F4"))
    with pytest.raises(bs.errors.DTypeError, match="odd last dimension"):
        saved([odd])


# The real Burn


@pytest.mark.parametrize("version", ["0.20", "0.22"])
def test_burn_lists_the_tensors(version: str, oracle: Any, tmp_path: Path) -> None:
    tensors = {
        "conv1.weight": np.ones((2, 2, 3, 3), np.float32),
        "fc.weight": np.arange(6.0).reshape(2, 3),
        "fc.bias": np.zeros(2, np.float16),
    }
    bs.save(tensors, tmp_path / "flat.pt")
    bs.save(tensors, tmp_path / "nested.pt", extra={"epoch": 3, "config": {"n_head": 8}})
    for path, options in ((tmp_path / "flat.pt", {}), (tmp_path / "nested.pt", {"top_level_key": "state_dict"})):
        answer = oracle(version, "list", path, options)
        assert "error" not in answer, answer
        text = json.dumps(answer)
        assert all(name in text for name in tensors)
    assert "8" in json.dumps(oracle(version, "config", tmp_path / "nested.pt", "config"))
