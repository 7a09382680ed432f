"""The verbs: every kind of source in every one of them, and every keyword."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import burnstore as bs
from tests.sources.handmade import burnpack_bytes, burnpack_parts, safetensors_bytes, safetensors_parts

ARRAYS = {
    "b": np.arange(20_000, dtype=np.float32).reshape(100, 200),
    "a": np.array([True, False]),
    "n": np.array(3, np.int64),
    "e": np.zeros((2, 0), np.uint8),
}
METADATA = {"epoch": "3", "ünï": "☕"}
SAFETENSORS = safetensors_bytes(ARRAYS, METADATA)
BURNPACK = burnpack_bytes(
    {
        "b": ("F32", (100, 200), ARRAYS["b"].tobytes()),
        "a": ({"Bool": "Native"}, (2,), b"\1\0"),
        "n": ("I64", (), ARRAYS["n"].tobytes()),
        "e": ("U8", (2, 0), b""),
    },
    METADATA,
)


def on_disk(data: bytes, folder: Path) -> Path:
    path = folder / ("w.bpk" if data is BURNPACK else "w.safetensors")
    path.write_bytes(data)
    return path


class Slow(io.BytesIO):
    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation


# How a user may have a file's content in hand.
SOURCES: dict[str, Callable[[bytes, Path], Any]] = {
    "str": lambda data, folder: str(on_disk(data, folder)),
    "Path": on_disk,
    "bytes": lambda data, _: data,
    "bytearray": lambda data, _: bytearray(data),
    "memoryview": lambda data, _: memoryview(data),
    "array": lambda data, _: np.frombuffer(data, np.uint8),
    "BytesIO": lambda data, _: io.BytesIO(data),
    "not seekable": lambda data, _: Slow(data),
    "Store": lambda data, _: bs.open(data),
    "mapping of arrays": lambda data, _: dict(ARRAYS),
    "mapping of snapshots": lambda data, _: dict(bs.open(data)),
    "list of snapshots": lambda data, _: list(bs.open(data).values()),
    "iterator of snapshots": lambda data, _: (snapshot for snapshot in bs.open(data).values()),
}
every_source = pytest.mark.parametrize("source", SOURCES)
both = pytest.mark.parametrize("data", [SAFETENSORS, BURNPACK], ids=["safetensors", "burnpack"])


def same(arrays: Any) -> None:
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype and arrays[name].shape == array.shape


@both
@every_source
def test_every_kind_of_source_is_opened(data: bytes, source: str, tmp_path: Path) -> None:
    store = bs.open(SOURCES[source](data, tmp_path))
    assert [*store] == [*ARRAYS]
    same({name: store[name].numpy() for name in store})


@both
@every_source
@pytest.mark.parametrize("copy", [True, False])
def test_every_kind_of_source_is_read(data: bytes, source: str, copy: bool, tmp_path: Path) -> None:
    same(bs.read(SOURCES[source](data, tmp_path), copy=copy))


@both
@every_source
@pytest.mark.parametrize("verb", [bs.save, bs.convert])
def test_every_kind_of_source_is_saved_and_converted(data: bytes, source: str, verb: Any, tmp_path: Path) -> None:
    made = verb(SOURCES[source](data, tmp_path), bytes, format="safetensors")
    same(safetensors.numpy.load(made))
    header, stored = burnpack_parts(verb(SOURCES[source](data, tmp_path), bytes, format="burnpack"))
    for name, array in ARRAYS.items():
        entry = header["tensors"][name]  # type: ignore[index]
        assert stored[slice(*entry["data_offsets"])] == array.tobytes() and entry["shape"] == list(array.shape)


@both
@every_source
def test_every_kind_of_source_is_verified(data: bytes, source: str, tmp_path: Path) -> None:
    report = bs.verify(SOURCES[source](data, tmp_path))
    assert report.ok and bool(report) and report.tensors == 4 and report.nbytes == sum(array.nbytes for array in ARRAYS.values())


@pytest.mark.parametrize("source", [None, 3, 2.5, object(), ...])
@pytest.mark.parametrize(
    "verb",
    [
        bs.open,
        bs.read,
        bs.verify,
        lambda source: bs.save(source, bytes, format="bpk"),
        lambda source: bs.convert(source, bytes, format="bpk"),
    ],
)
def test_what_is_no_source_is_refused_with_a_list_of_what_is(verb: Any, source: object) -> None:
    with pytest.raises(bs.errors.UsageError, match="give a path, bytes"):
        verb(source)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ([("a", [1.0])], "no names"),
        ([np.zeros(2)], "no names"),
        ({1.5: [1.0]}, "no name"),
        ({"\ud800": [1.0]}, "Unicode"),
        ({"a": {None: [1.0]}}, "no name"),
        ({"a": {"b": [1.0]}, "a.b": [2.0]}, r"'a\.b': two"),
        ([bs.TensorSnapshot.from_data("same", 1), bs.TensorSnapshot.from_data("same", 2)], "'same'"),
    ],
    ids=["pairs", "arrays", "number", "surrogate", "nested", "nested twice", "twice"],
)
def test_tensors_without_good_names_are_refused(source: Any, words: str) -> None:
    with pytest.raises(bs.errors.BurnstoreError, match=words):
        bs.save(source, bytes, format="safetensors")


# open


def test_format_forces_a_format() -> None:
    assert bs.open(SAFETENSORS, format="safetensors").format == "safetensors"
    for format in ("bpk", "burnpack", ".bpk"):
        assert bs.open(BURNPACK, format=format).format == "burnpack"
        with pytest.raises(bs.errors.FormatError):
            bs.open(SAFETENSORS, format=format)
    with pytest.raises(bs.errors.UsageError, match="known are safetensors, burnpack"):
        bs.open(SAFETENSORS, format="gguf")


def test_the_content_says_the_format_and_a_wrong_suffix_does_not_matter(tmp_path: Path) -> None:
    for name, data, format in (
        ("a.bpk", SAFETENSORS, "safetensors"),
        ("a.safetensors", BURNPACK, "burnpack"),
        ("plain", BURNPACK, "burnpack"),
    ):
        (tmp_path / name).write_bytes(data)
        assert bs.open(tmp_path / name).format == format


def test_limits_are_those_that_are_passed() -> None:
    with pytest.raises(bs.errors.LimitError, match="burnpack_tensors="):
        bs.open(BURNPACK, limits=bs.Limits(burnpack_tensors=3))
    with pytest.raises(bs.errors.LimitError, match="safetensors_header_bytes="):
        bs.read(SAFETENSORS, limits=bs.Limits(safetensors_header_bytes=10))
    with pytest.raises(bs.errors.LimitError):
        bs.convert(BURNPACK, bytes, format="safetensors", limits=bs.Limits(burnpack_tensors=3))
    with pytest.raises(bs.errors.LimitError, match="burnpack_tensors="):
        bs.save(ARRAYS, bytes, format="bpk", limits=bs.Limits(burnpack_tensors=3))
    assert not bs.verify(BURNPACK, limits=bs.Limits(burnpack_metadata_bytes=3)).ok


# read


def test_arrays_that_are_read_belong_to_the_caller(tmp_path: Path) -> None:
    path = on_disk(SAFETENSORS, tmp_path)
    first, second = bs.read(path), bs.read(path)
    for name, array in first.items():
        assert array.flags.writeable and array.flags.aligned and array.flags.c_contiguous
        assert not np.shares_memory(array, second[name])
        array[...] = 1
    same(second)
    same(bs.read(path))


def test_no_two_arrays_of_one_reading_share_memory() -> None:
    raw = np.arange(4, dtype=np.float32)
    data = safetensors_bytes({f"t{number}": raw for number in range(6)})
    arrays = list(bs.read(data).values())
    for number, array in enumerate(arrays):
        array[:] = number
    assert [array.tolist() for array in arrays] == [[number] * 4 for number in range(6)]


def test_the_caller_of_read_gets_copies_of_arrays_in_hand() -> None:
    held = np.zeros(3)
    bs.read({"a": held})["a"][:] = 1
    assert held.tolist() == [0, 0, 0] and np.shares_memory(bs.read({"a": held}, copy=False)["a"], held)


def test_copy_false_gives_read_only_views_that_outlive_everything(tmp_path: Path) -> None:
    path = on_disk(SAFETENSORS, tmp_path)
    arrays = bs.read(path, copy=False)
    assert not any(array.flags.writeable for array in arrays.values() if array.size)
    path.unlink()
    same(arrays)
    same(bs.read(on_disk(BURNPACK, tmp_path), copy=False, io="pread"))


@pytest.mark.parametrize("threads", [None, 0, 1, 2, 3, 50])
def test_any_number_of_threads_reads_the_same(threads: int | None, tmp_path: Path) -> None:
    same(bs.read(on_disk(SAFETENSORS, tmp_path), threads=threads))
    same(bs.read(io.BytesIO(BURNPACK), threads=threads))


def test_reading_a_store_leaves_it_open_and_reading_a_path_closes_it(tmp_path: Path) -> None:
    store = bs.open(on_disk(SAFETENSORS, tmp_path))
    bs.read(store)
    same({name: store[name].numpy() for name in store})
    before = len(os.listdir("/proc/self/fd"))
    bs.read(tmp_path / "w.safetensors", io="pread")
    assert len(os.listdir("/proc/self/fd")) == before


# save


def test_the_suffix_says_the_format_and_format_wins(tmp_path: Path) -> None:
    bs.save(ARRAYS, tmp_path / "a.BPK")
    bs.save(ARRAYS, tmp_path / "a.SafeTensors")
    bs.save(ARRAYS, tmp_path / "odd.bpk", format="safetensors")
    assert (tmp_path / "a.BPK").read_bytes()[:4] == b"NRUB"
    for name in ("a.SafeTensors", "odd.bpk"):
        same(safetensors.numpy.load((tmp_path / name).read_bytes()))


@pytest.mark.parametrize("name", ["plain", "a.npz", "a.bpk.tmp"])
def test_a_suffix_that_says_nothing_asks_for_format(tmp_path: Path, name: str) -> None:
    with pytest.raises(bs.errors.UsageError, match="format="):
        bs.save(ARRAYS, tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("dest", [bytes, bytearray(), io.BytesIO()], ids=["bytes", "bytearray", "BytesIO"])
def test_a_place_without_a_suffix_asks_for_format(dest: Any) -> None:
    with pytest.raises(bs.errors.UsageError, match="format="):
        bs.save(ARRAYS, dest)


def test_save_writes_the_metadata_that_it_is_given_and_no_other() -> None:
    assert "__metadata__" not in safetensors_parts(bs.save(ARRAYS, bytes, format="safetensors"))[0]
    assert "metadata" not in burnpack_parts(bs.save(bs.open(BURNPACK), bytes, format="bpk"))[0]
    assert safetensors_parts(bs.save(ARRAYS, bytes, format="safetensors", metadata=METADATA))[0]["__metadata__"] == METADATA
    assert burnpack_parts(bs.save(ARRAYS, bytes, format="bpk", metadata=METADATA))[0]["metadata"] == METADATA


@pytest.mark.parametrize("metadata", [{"a": 1}, {1: "a"}, {"a": None}, {"a": "\ud800"}, {"a": {"b": "c"}}])
def test_metadata_that_is_not_text_is_refused(metadata: Any) -> None:
    for format in ("bpk", "safetensors"):
        with pytest.raises(bs.errors.UsageError, match="metadata"):
            bs.save(ARRAYS, bytes, format=format, metadata=metadata)


def test_the_same_input_gives_the_same_bytes() -> None:
    for format in ("bpk", "safetensors"):
        first = bs.save(ARRAYS, bytes, format=format, metadata={"a": "1", "b": "2"})
        assert first == bs.save(ARRAYS, bytes, format=format, metadata={"b": "2", "a": "1"})


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("for_burn", "0.18"),
        ("dialect", "keras"),
        ("from_dialect", "jax"),
        ("to_dialect", ""),
        ("format", "gguf"),
        ("shard_size", "big"),
    ],
)
@pytest.mark.parametrize("verb", [bs.save, bs.convert])
def test_an_unknown_word_is_refused_with_those_that_are_known(verb: Any, keyword: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(bs.errors.UsageError):
        verb(ARRAYS, tmp_path / "w.safetensors", **{keyword: value})
    assert os.listdir(tmp_path) == []


def test_nothing_at_all_can_be_saved() -> None:
    for format in ("bpk", "safetensors"):
        for nothing in ({}, [], iter(())):
            assert len(bs.open(bs.save(nothing, bytes, format=format))) == 0
    assert safetensors.numpy.load(bs.save({}, bytes, format="safetensors")) == {}


# convert


def test_convert_carries_metadata_over_and_adds_to_it(tmp_path: Path) -> None:
    there = bs.convert(SAFETENSORS, bytes, format="bpk", metadata={"new": "x", "epoch": "4"})
    assert burnpack_parts(there)[0]["metadata"] == {**METADATA, "epoch": "4", "new": "x"}
    back = bs.convert(there, bytes, format="safetensors")
    assert safetensors_parts(back)[0]["__metadata__"] == {**METADATA, "epoch": "4", "new": "x", "dialect": "burn"}
    same(safetensors.numpy.load(back))


def test_convert_never_makes_arrays_of_bytes_that_do_not_change(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bs.TensorSnapshot, "numpy", lambda *_, **__: pytest.fail("an array was made"))
    bs.convert(on_disk(SAFETENSORS, tmp_path), tmp_path / "out.bpk")
    bs.convert(tmp_path / "out.bpk", tmp_path / "out.safetensors")


LINEAR = {"fc.weight": np.arange(12, dtype=np.float32).reshape(3, 4), "fc.bias": np.zeros(3, np.float32)}
TO_BURN = safetensors_bytes(LINEAR, {"format": "pt"})


def test_convert_refuses_to_guess_a_layout_and_names_the_tensors() -> None:
    for data in (TO_BURN, safetensors_bytes(LINEAR)):
        with pytest.raises(bs.errors.DialectError, match=r"fc\.weight.*dialect=\"keep\"") as caught:
            bs.convert(data, bytes, format="bpk")
        assert "fc.bias" not in str(caught.value)


def test_convert_keeps_tensors_as_they_lie_where_that_is_said() -> None:
    header, data = burnpack_parts(bs.convert(TO_BURN, bytes, format="bpk", dialect="keep"))
    begin, end = header["tensors"]["fc.weight"]["data_offsets"]  # type: ignore[index]
    assert data[begin:end] == LINEAR["fc.weight"].tobytes() and header["tensors"]["fc.weight"]["shape"] == [3, 4]  # type: ignore[index]


def test_a_kept_dialect_is_remembered_on_the_way_back() -> None:
    kept = bs.convert(TO_BURN, bytes, format="bpk", dialect="keep")
    assert bs.open(kept).metadata["dialect"] == "pytorch"
    with pytest.raises(bs.errors.DialectError):
        bs.convert(kept, bytes, format="bpk")
    again = bs.convert(kept, bytes, format="safetensors")
    assert safetensors_parts(again)[0]["__metadata__"]["dialect"] == "pytorch"  # type: ignore[index]


def test_convert_between_files_of_one_dialect_needs_to_know_nothing() -> None:
    burn = safetensors_bytes({**LINEAR, "norm.gamma": np.zeros(3, np.float32)}, {"producer": "burn", "format": "safetensors"})
    header, _ = burnpack_parts(bs.convert(burn, bytes, format="bpk"))
    assert header["metadata"] == {"producer": "burn"} and "norm.gamma" in header["tensors"]  # type: ignore[operator]
    assert bs.convert(TO_BURN, bytes, format="safetensors")


def test_convert_takes_every_keyword_of_save(tmp_path: Path) -> None:
    path = on_disk(SAFETENSORS, tmp_path)
    bs.convert(
        path,
        tmp_path / "out.x",
        format="bpk",
        metadata={},
        overwrite=False,
        fsync=False,
        for_burn="0.20",
        dialect="keep",
        limits=bs.Limits(),
    )
    assert burnpack_parts((tmp_path / "out.x").read_bytes())[0]["tensors"]["a"]["dtype"] == "Bool"  # type: ignore[index]
    with pytest.raises(bs.errors.TargetExistsError):
        bs.convert(path, tmp_path / "out.x", format="bpk")
    bs.convert(path, tmp_path / "out.x", format="bpk", overwrite=True)
    assert burnpack_parts((tmp_path / "out.x").read_bytes())[0]["tensors"]["a"]["dtype"] == {"Bool": "Native"}  # type: ignore[index]


def test_convert_keeps_parameter_ids_and_scalars_of_a_burnpack() -> None:
    import cbor2

    top = {
        "tensors": {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], "param_id": 2**64 - 1}},
        "scalars": {"step": {"Int": 5}},
    }
    block = cbor2.dumps(top)
    head = b"NRUB\1\0" + len(block).to_bytes(4, "little") + block
    data = head + bytes(-len(head) % 256) + bytes(4)
    again = burnpack_parts(bs.convert(data, bytes, format="bpk"))[0]
    assert again["tensors"]["w"]["param_id"] == 2**64 - 1 and again["scalars"] == {"step": {"Int": 5}}  # type: ignore[index]
    assert "scalars" not in burnpack_parts(bs.save(ARRAYS, bytes, format="bpk"))[0]


def test_convert_from_a_zip_member_to_a_pipe() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("w", SAFETENSORS)
    get, put = os.pipe()
    small = safetensors_bytes({"x": np.arange(5, dtype=np.float32)})
    with os.fdopen(put, "wb") as sink:
        bs.convert(io.BytesIO(small), sink, format="bpk")
    with os.fdopen(get, "rb") as pipe, zipfile.ZipFile(archive) as file, file.open("w") as member:
        assert bs.read(pipe)["x"].tolist() == [0, 1, 2, 3, 4]
        same(bs.read(member))
