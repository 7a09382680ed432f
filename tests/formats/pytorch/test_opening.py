"""Keys, nests, descriptions, verification and diagnoses of PyTorch files."""

from __future__ import annotations

import io
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import burnstore as bs
from burnstore.errors import DuplicateNameError, FormatError, TensorNotFoundError, TruncatedError, UsageError
from burnstore.formats.pytorch.values import Opaque, plain_values


def _saved(value: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


_CHECKPOINT = {
    "model": {"net.fc": {"weight": torch.ones(2, 3)}},
    "epoch": 3,
    "optimizer": {"state": {0: {"step": torch.ones(())}}},
}


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("model", ["net.fc.weight"]),
        ("model.net.fc", ["weight"]),
        ("optimizer.state", ["0.step"]),
        ("optimizer.state.0", ["step"]),
        ("model.net.fc.weight", ["tensor"]),
    ],
)
def test_a_key_opens_a_part_of_the_file(key: str, names: list[str]) -> None:
    assert list(bs.open(_saved(_CHECKPOINT), key=key)) == names


def test_a_key_of_a_plain_value_says_how_to_read_it() -> None:
    with pytest.raises(TensorNotFoundError, match="read_config"):
        bs.open(_saved(_CHECKPOINT), key="epoch")


def test_a_key_with_dots_is_first_looked_for_as_it_is() -> None:
    data = _saved({"a.b": {"x": torch.ones(1)}, "a": {"b": {"y": torch.ones(1)}}})
    assert list(bs.open(data, key="a.b")) == ["x"]


def test_open_never_descends_by_itself_and_says_where_the_weights_may_be() -> None:
    store = bs.open(_saved(_CHECKPOINT))
    assert list(store) == ["model.net.fc.weight", "optimizer.state.0.step"]
    assert "key='model'" in repr(store)
    with pytest.raises(TensorNotFoundError, match="key='model'"):
        store["net.fc.weight"]


def test_the_prefix_of_data_parallel_stays_and_is_pointed_out() -> None:
    model = torch.nn.DataParallel(torch.nn.Linear(2, 3))
    store = bs.open(_saved(model.state_dict()))
    assert list(store) == ["module.weight", "module.bias"]
    assert "removeprefix('module.')" in repr(store)
    assert "removeprefix" not in repr(bs.open(_saved({**model.state_dict(), "other": torch.ones(1)})))


def test_a_missing_key_names_one_that_is_like_it() -> None:
    with pytest.raises(TensorNotFoundError, match="no key 'optimiser'; did you mean 'optimizer'"):
        bs.open(_saved(_CHECKPOINT), key="optimiser")
    with pytest.raises(TensorNotFoundError, match="no key 'x' in 'model'"):
        bs.open(_saved(_CHECKPOINT), key="model.x")


def test_formats_without_keys_refuse_one() -> None:
    with pytest.raises(UsageError, match="has no keys"):
        bs.open(bs.save({"a": [1.0]}, bytes, format="safetensors"), key="a")


def test_two_keys_that_flatten_to_one_name_are_named_both() -> None:
    with pytest.raises(DuplicateNameError, match=r"'a.b': one under \['a.b'\], one under \['a'\]\['b'\]"):
        bs.open(_saved({"a.b": torch.ones(1), "a": {"b": torch.ones(1)}}))


def test_describe_lists_every_name_with_its_offset_and_whether_it_is_known() -> None:
    data = _saved({"w": torch.ones(1), "path": Path("x"), "evil": _Evil()})
    described = {entry.name: entry for entry in bs.open(data).describe()}
    assert described["torch._utils._rebuild_tensor_v2"].known
    evil = next(entry for entry in described.values() if entry.name.endswith(".system"))
    assert not evil.known
    inside = zipfile.ZipFile(io.BytesIO(data)).read("archive/data.pkl")
    assert inside[evil.offset :].startswith(b"c" + evil.name.rpartition(".")[0].encode())
    assert "?" in str(bs.open(data).describe())


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.system, ("echo pwned",)


def test_values_beside_tensors_are_plain_and_unknown_calls_are_not_made() -> None:
    data = _saved({"w": torch.ones(1), "lr": 0.5, "evil": _Evil(), "list": [torch.ones(1), _Evil(), 2]})
    values: Any = plain_values(bs.open(data).contents)  # type: ignore[arg-type]
    assert values == {"lr": 0.5, "list": [Opaque("torch.Tensor"), Opaque("posix.system"), 2]}


def test_a_wrong_checksum_is_a_problem_and_a_file_without_any_is_odd() -> None:
    data = bytearray(_saved({"w": torch.arange(4.0)}))
    assert bs.verify(bytes(data)).ok
    at = data.index(np.arange(4, dtype=np.float32).tobytes())
    data[at] ^= 1
    report = bs.verify(bytes(data))
    assert not report.ok
    assert "checksum" in report.problems[0]
    assert np.array_equal(bs.open(bytes(data))["w"].numpy()[1:], [1, 2, 3])


def test_a_sparse_tensor_is_odd_but_no_problem() -> None:
    report = bs.verify(_saved({"s": torch.eye(2).to_sparse()}))
    assert report.ok
    assert any("sparse" in oddity for oddity in report.oddities)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a.npy"], "NumPy arrays"),
        (["notes.txt"], "a zip archive, without a data.pkl"),
        ([], "an empty zip archive"),
        (["x/archive_format", "x/models/model.json"], "torch.export"),
        (["a/data.pkl", "b/data.pkl"], "two files in one"),
    ],
)
def test_a_zip_archive_that_is_no_weight_file_is_diagnosed(names: list[str], message: str) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, b"\x80\2N.")
    with pytest.raises(FormatError, match=message):
        bs.open(out.getvalue())


def test_a_cut_archive_is_truncated() -> None:
    with pytest.raises(TruncatedError, match="download is not finished"):
        bs.open(_saved({"w": torch.ones(100)})[:-300])


def test_a_plain_pickle_of_a_call_is_refused_and_one_of_arrays_is_read() -> None:
    with pytest.raises(FormatError, match=r"an object of posix.system, without tensors"):
        bs.open(pickle.dumps(_Evil(), protocol=2))
    array = np.arange(6, dtype=">f4").reshape(2, 3).T
    store = bs.open(pickle.dumps({"a": array, "n": np.float32(2)}))
    assert np.array_equal(store["a"].numpy(), array)


def test_damage_is_told_with_offset_and_opcode() -> None:
    with pytest.raises(FormatError, match="offset 5, SETITEM: it sets an item of a list"):
        bs.open(b"\x80\2]NNs.")
    with pytest.raises(TruncatedError, match="ends at offset 3, inside BINUNICODE"):
        bs.open(b"\x80\2\x5dX\xff\xff\xff\xff")


def test_shards_of_pytorch_files_open_as_one_store(data: Path, tmp_path: Path) -> None:
    folder = data / "torch" / "torch" / "sharded_bin"
    store = bs.open(folder / "pytorch_model.bin.index.json")
    assert store.format == "pytorch"
    assert len(store) == len(bs.read(folder))
    shutil.copytree(folder, tmp_path / "m")
    (tmp_path / "m" / "pytorch_model-00002-of-00003.bin").unlink()
    with pytest.raises(bs.errors.SourceNotFoundError, match="shard"):
        bs.open(tmp_path / "m")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("new", [True, False])
def test_a_thousand_tensors_read_alike_at_every_protocol(protocol: int, new: bool) -> None:
    tensors: dict[str, torch.Tensor] = {f"layer.{i}.w": torch.full((i % 3 + 1, 2), float(i)) for i in range(1000)}
    tensors["tied"] = tensors["layer.7.w"]
    tensors["scalar"] = torch.tensor(3)
    data = _saved(tensors, pickle_protocol=protocol, _use_new_zipfile_serialization=new)
    arrays = bs.read(data)
    assert list(arrays) == list(tensors)
    assert all(np.array_equal(arrays[name], tensor.numpy()) for name, tensor in tensors.items())
    assert bs.open(data)["tied"].shares_with == ("layer.7.w",)
