"""Saving in shards through `bs.save`, against the names and the index that huggingface_hub uses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import burnstore as bs
from tests.sources.processes import run_python

ARRAYS = {f"layer.{number}.w": np.full(1000, number, np.float32) for number in range(5)}


def test_shards_are_named_and_indexed_as_the_hub_does(tmp_path: Path) -> None:
    bs.save(ARRAYS, tmp_path / "model.safetensors", shard_size="8KB", metadata={"format": "pt"})
    names = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    assert sorted(os.listdir(tmp_path)) == [*names, "model.safetensors.index.json"]
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 20_000
    assert index["weight_map"] == {f"layer.{number}.w": names[number // 2] for number in range(5)}
    for name in names:
        for tensor, array in safetensors.numpy.load_file(tmp_path / name).items():
            assert index["weight_map"][tensor] == name
            np.testing.assert_array_equal(array, ARRAYS[tensor])


@pytest.mark.parametrize("what", ["", "model.safetensors.index.json"])
def test_shards_open_as_one_store_by_their_index_or_their_folder(tmp_path: Path, what: str) -> None:
    bs.save(ARRAYS, tmp_path / "model.safetensors", shard_size=8000)
    store = bs.open(tmp_path / what)
    assert sorted(store) == sorted(ARRAYS) and bs.verify(tmp_path / what).ok
    for arrays in (bs.read(tmp_path / what), bs.read(tmp_path / what, copy=False), {name: store[name].numpy() for name in store}):
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)


def test_what_fits_one_shard_is_one_plain_file(tmp_path: Path) -> None:
    bs.save(ARRAYS, tmp_path / "model.safetensors", shard_size="5GB")
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_a_tensor_larger_than_a_shard_gets_one_of_its_own(tmp_path: Path) -> None:
    bs.save({"small": [1.0], "large": np.zeros(1000), "also": [2.0]}, tmp_path / "m.safetensors", shard_size=100)
    index = json.loads((tmp_path / "m.safetensors.index.json").read_text())
    assert len({index["weight_map"]["large"]} | {index["weight_map"]["small"]}) == 2


def test_existing_shards_are_replaced_only_with_overwrite(tmp_path: Path) -> None:
    bs.save(ARRAYS, tmp_path / "m.safetensors", shard_size=8000)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(bs.errors.TargetExistsError):
        bs.save({name: -array for name, array in ARRAYS.items()}, tmp_path / "m.safetensors", shard_size=8000)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    bs.save({name: -array for name, array in ARRAYS.items()}, tmp_path / "m.safetensors", shard_size=8000, overwrite=True)
    assert bs.read(tmp_path)["layer.3.w"][0] == -3


def test_shards_replace_a_plain_file_of_their_name_only_with_overwrite(tmp_path: Path) -> None:
    """Opening that name would find the plain file and not the shards."""
    path = tmp_path / "m.safetensors"
    bs.save({"old": [1.0]}, path)
    before = path.read_bytes()
    with pytest.raises(bs.errors.TargetExistsError, match="overwrite=True"):
        bs.save(ARRAYS, path, shard_size=8000)
    assert os.listdir(tmp_path) == ["m.safetensors"] and path.read_bytes() == before
    bs.save(ARRAYS, path, shard_size=8000, overwrite=True)
    assert not path.exists() and len(os.listdir(tmp_path)) == 4
    assert sorted(bs.open(path)) == sorted(bs.open(tmp_path)) == sorted(ARRAYS)


def test_shards_are_saved_over_the_shards_they_are_mapped_from(tmp_path: Path) -> None:
    bs.save(ARRAYS, tmp_path / "m.safetensors", shard_size=8000)
    store = bs.open(tmp_path)
    views = {name: store[name].numpy() for name in store}
    bs.save(dict(reversed(list(store.items()))), tmp_path / "m.safetensors", shard_size=8000, overwrite=True)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(views[name], array)
        np.testing.assert_array_equal(bs.read(tmp_path)[name], array)


@pytest.mark.parametrize("size", ["0", "-1GB", "big", "5XB", "", 0, -3, "nan", "inf"])
def test_a_size_that_is_none_is_refused(tmp_path: Path, size: object) -> None:
    with pytest.raises(bs.errors.UsageError, match="5GB"):
        bs.save(ARRAYS, tmp_path / "m.safetensors", shard_size=size)  # type: ignore[call-overload]


@pytest.mark.parametrize("dest", ["m.bpk", bytes, bytearray()])
def test_shards_are_safetensors_files_in_a_folder(tmp_path: Path, dest: object) -> None:
    given = tmp_path / dest if isinstance(dest, str) else dest
    with pytest.raises(bs.errors.UsageError, match="shards"):
        bs.save(ARRAYS, given, shard_size=8000, **({} if isinstance(dest, str) else {"format": "safetensors"}))  # type: ignore[call-overload]


def test_converting_shards_into_one_file_and_back(tmp_path: Path) -> None:
    bs.save(ARRAYS, tmp_path / "m.safetensors", shard_size=8000)
    bs.convert(tmp_path, tmp_path / "one.bpk")
    bs.convert(tmp_path / "one.bpk", tmp_path / "again.safetensors", shard_size=8000)
    for name, array in bs.read(tmp_path / "again.safetensors.index.json").items():
        np.testing.assert_array_equal(array, ARRAYS[name])


def test_more_shards_than_files_may_be_open_are_saved(tmp_path: Path) -> None:
    run_python(
        """
import resource, sys
import burnstore as bs
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
bs.save({f"t{number}": [1.0] for number in range(100)}, sys.argv[1], shard_size=8, fsync=False)
""",
        tmp_path / "m.safetensors",
    )
    assert len(list(tmp_path.glob("m-*-of-00100.safetensors"))) == 100
    assert len(json.loads((tmp_path / "m.safetensors.index.json").read_text())["weight_map"]) == 100
