"""Models in several files: split, named and indexed as huggingface_hub does it, and read as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from huggingface_hub import save_torch_state_dict, split_torch_state_dict_into_shards
from hypothesis import given, settings
from hypothesis import strategies as st

import burnstore as bs
from burnstore.errors import BurnstoreError, FormatError, SourceNotFoundError, TargetExistsError, UsageError
from burnstore.formats.sharded import parse_size, shard_names, split


def _tensors(*sizes: int) -> dict[str, torch.Tensor]:
    return {f"layer.{number}.w": torch.full((size,), number, dtype=torch.uint8) for number, size in enumerate(sizes)}


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=12), cap=st.integers(1, 60))
def test_tensors_are_split_and_shards_named_as_huggingface_hub_does_it(sizes: list[int], cap: int) -> None:
    tensors = _tensors(*sizes)
    theirs = split_torch_state_dict_into_shards(tensors, max_shard_size=cap)
    groups = split([bs.TensorSnapshot.from_data(name, tensor) for name, tensor in tensors.items()], cap)
    files = shard_names("model.safetensors", len(groups)) if len(groups) > 1 else ["model.safetensors"]
    assert {file: [t.name for t in group] for file, group in zip(files, groups, strict=True)} == theirs.filename_to_tensors


@pytest.mark.parametrize("size", [100, "100", "0.1KB", "100 B"])
def test_the_files_are_those_that_huggingface_hub_writes(tmp_path: Path, size: Any) -> None:
    tensors = _tensors(60, 30, 200, 20, 90, 10)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir(), theirs.mkdir()
    bs.save(tensors, ours / "model.safetensors", shard_size=size, metadata={"format": "pt"})
    save_torch_state_dict(tensors, theirs, max_shard_size=100)
    assert sorted(path.name for path in ours.iterdir()) == sorted(path.name for path in theirs.iterdir())
    for path in theirs.glob("*.safetensors"):
        assert (ours / path.name).read_bytes() == path.read_bytes()
    index = "model.safetensors.index.json"
    assert json.loads((ours / index).read_text()) == json.loads((theirs / index).read_text())


def test_the_index_is_sorted_and_its_text_is_fixed(tmp_path: Path) -> None:
    bs.save({"b": np.zeros(2), "a": np.zeros(2)}, tmp_path / "m.safetensors", shard_size=16)
    assert (tmp_path / "m.safetensors.index.json").read_text() == (
        '{\n  "metadata": {\n    "total_size": 32\n  },\n  "weight_map": {\n'
        '    "a": "m-00002-of-00002.safetensors",\n    "b": "m-00001-of-00002.safetensors"\n  }\n}\n'
    )


def test_what_fits_one_shard_is_one_file_without_an_index(tmp_path: Path) -> None:
    bs.save(_tensors(10, 20), tmp_path / "model.safetensors", shard_size="5GB")
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_shards_are_read_back_as_one_store_by_index_or_folder(tmp_path: Path) -> None:
    tensors = _tensors(60, 30, 200, 20)
    bs.save(tensors, tmp_path / "model.safetensors", shard_size=100, metadata={"format": "pt"})
    for place in (tmp_path, tmp_path / "model.safetensors.index.json"):
        store = bs.open(place)
        assert sorted(store) == sorted(tensors) and len(store) == 4 and "layer.0.w" in store and "x" not in store
        assert store.nbytes == 310 and store.metadata["format"] == "pt"
        read = bs.read(place)
        assert all((read[name] == tensor.numpy()).all() for name, tensor in tensors.items())
    whole = bs.convert(tmp_path, bytes, format="safetensors", dialect="keep")
    assert {name: t.tobytes() for name, t in bs.open(whole).items()} == {name: t.numpy().tobytes() for name, t in tensors.items()}


def test_the_index_is_the_truth(data: Path) -> None:
    extra = bs.open(data / "safetensors/shard_extra_in_file/model.safetensors.index.json")
    index = json.loads((data / "safetensors/shard_extra_in_file/model.safetensors.index.json").read_text())
    assert list(extra) == list(index["weight_map"])


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("dotdot", FormatError, "outside its folder"),
        ("etc_passwd", FormatError, "outside its folder"),
        ("lacks_tensor", FormatError, "'ghost' is not in its shard"),
        ("map_is_list", FormatError, "weight_map"),
        ("map_number", FormatError, "no map of names to file names"),
        ("missing", SourceNotFoundError, "model-00002-of-00003.safetensors is missing"),
        ("no_weight_map", FormatError, "weight_map"),
        ("symlink_out", BurnstoreError, "model-00003-of-00003.safetensors"),
        ("wrong_file", FormatError, "is not in its shard"),
    ],
)
def test_an_index_that_lies_is_refused(data: Path, name: str, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        bs.open(data / "safetensors" / f"shard_{name}" / "model.safetensors.index.json")


def test_a_symlink_to_another_folder_is_followed_as_caches_need_it(tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "snapshot", tmp_path / "blobs"
    snapshot.mkdir(), blobs.mkdir()
    bs.save(_tensors(60, 50), snapshot / "model.safetensors", shard_size=100)
    for number, path in enumerate(sorted(snapshot.iterdir())):
        path.rename(blobs / str(number))
        path.symlink_to(blobs / str(number))
    assert sorted(bs.open(snapshot / "model.safetensors.index.json")) == ["layer.0.w", "layer.1.w"]


def test_verify_lists_what_an_index_says_wrongly_without_harm(data: Path) -> None:
    folder = data / "safetensors"
    size = bs.verify(folder / "shard_total_size_wrong/model.safetensors.index.json")
    assert size.ok and any("the index says" in oddity for oddity in size.oddities)
    extra = bs.verify(folder / "shard_extra_in_file/model.safetensors.index.json")
    assert extra.ok and any("does not name" in oddity for oddity in extra.oddities)
    assert not bs.verify(folder / "sharded/model.safetensors.index.json").oddities


def test_nothing_is_written_where_one_of_the_files_exists(tmp_path: Path) -> None:
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(b"mine")
    with pytest.raises(TargetExistsError):
        bs.save(_tensors(60, 50), tmp_path / "model.safetensors", shard_size=100)
    assert [path.name for path in tmp_path.iterdir()] == ["model-00002-of-00002.safetensors"]
    assert (tmp_path / "model-00002-of-00002.safetensors").read_bytes() == b"mine"


@pytest.mark.parametrize("size", ["5 apples", "", "-1", 0, "0GB", "GB", "nan", "inf"])
def test_a_size_that_is_none_is_refused(tmp_path: Path, size: Any) -> None:
    with pytest.raises(UsageError):
        bs.save(_tensors(1), tmp_path / "m.safetensors", shard_size=size)


def test_sizes_count_in_thousands_as_huggingface_hub_has_it() -> None:
    assert [parse_size(text) for text in ("5GB", "200mb", "1 KB", "2KiB", 7)] == [5 * 10**9, 2 * 10**8, 1000, 2048, 7]


def test_only_safetensors_in_a_folder_can_be_sharded(tmp_path: Path) -> None:
    for dest, format in ((tmp_path / "m.bpk", None), (bytes, "safetensors")):
        with pytest.raises(UsageError, match="SafeTensors files in a folder"):
            bs.save(_tensors(1), dest, shard_size=100, format=format)  # type: ignore[call-overload]
