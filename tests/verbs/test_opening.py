"""From what a user calls a source to its tensors: folders, forced formats, and readers that fail."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from burnstore.formats import table
from tests.sources.handmade import burnpack_bytes, safetensors_bytes

SAFETENSORS = safetensors_bytes({"w": np.zeros(2, np.float32)})
BURNPACK = burnpack_bytes({"w": ("F32", (2,), bytes(8))})


@pytest.mark.parametrize(("name", "data"), [("model.safetensors", SAFETENSORS), ("model.bpk", BURNPACK)])
def test_a_folder_with_one_weight_file_is_that_file(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "README.md").write_text("a model")
    for verb in (bs.open, bs.read):
        assert list(verb(tmp_path)) == ["w"]


def test_a_folder_with_several_weight_files_names_them(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"m{number}.safetensors").write_bytes(SAFETENSORS)
    with pytest.raises(IsADirectoryError, match=r"6 candidates: m0\.safetensors, .*one of them"):
        bs.open(tmp_path)


def test_a_folder_without_a_weight_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(IsADirectoryError, match="without an index or a weight file"):
        bs.open(tmp_path)


@pytest.mark.parametrize("error", [ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError])
def test_a_reader_that_fails_is_a_damaged_file_and_no_crash(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise error("inside")

    monkeypatch.setattr(type(table.by_name("burnpack")), "read", broken)
    with pytest.raises(bs.errors.FormatError, match=f"{error.__name__}.*please report") as caught:
        bs.open(BURNPACK)
    assert isinstance(caught.value.__cause__, error)


def test_an_error_of_our_tree_goes_through_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise bs.errors.LimitError("too much")

    monkeypatch.setattr(type(table.by_name("burnpack")), "read", broken)
    with pytest.raises(bs.errors.LimitError, match=r"^too much\.$"):
        bs.open(BURNPACK)


def test_a_mapping_that_also_reads_is_a_mapping() -> None:
    class Both(dict):  # type: ignore[type-arg]
        def read(self, size: int = -1) -> bytes:
            raise AssertionError("it was read as a file")

    assert bs.open(Both(a=[1.0]))["a"].shape == (1,)


def test_a_forced_format_explains_what_is_wrong_with_the_file() -> None:
    with pytest.raises(bs.errors.FormatError, match=r"(?i)burnpack"):
        bs.open(SAFETENSORS, format="bpk")
    with pytest.raises(bs.errors.FormatError):
        bs.open(BURNPACK, format="safetensors")


@pytest.mark.parametrize("name", ["m.safetensors", "m.safetensors.index.json"])
def test_a_model_in_shards_opens_by_its_name_or_its_index_also_where_the_format_is_said(tmp_path: Path, name: str) -> None:
    for number, tensor in enumerate("ab", 1):
        data = safetensors_bytes({tensor: np.full(2, number, np.float32)})
        (tmp_path / f"m-0000{number}-of-00002.safetensors").write_bytes(data)
    weight_map = {"a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors"}
    (tmp_path / "m.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    path = tmp_path / name
    for store in (bs.open(path), bs.open(path, format="safetensors"), bs.SafetensorsStore.from_file(path)):
        assert list(store) == ["a", "b"] and store["b"].numpy().tolist() == [2, 2]
    assert "nothing saved yet" not in repr(bs.SafetensorsStore.from_file(path))
    with pytest.raises(bs.errors.BurnstoreError):
        bs.open(path, format="burnpack")


def test_what_a_missing_file_is_called_is_not_changed_by_looking_for_its_index(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.safetensors: there is no such file"):
        bs.open(tmp_path / "gone.safetensors", format="safetensors")


def test_an_array_whose_dtype_has_no_buffer_is_no_source_and_says_so() -> None:
    import ml_dtypes

    for given in (np.zeros(4, ml_dtypes.bfloat16), np.zeros((2, 2), ml_dtypes.bfloat16)):
        for verb in (bs.open, bs.read, bs.verify):
            with pytest.raises(bs.errors.BurnstoreError):
                verb(given)
