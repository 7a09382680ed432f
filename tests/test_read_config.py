"""Values out of PyTorch files that torch wrote."""

from __future__ import annotations

import argparse
import io
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import pytest
import torch

import burnstore as bs
from tests.test_config import NetConfig

# The example of Burn's book, as torch saved it and as Burn's `config.save` writes it.
BOOK_JSON = """{
  "n_head": 4,
  "n_layer": 6,
  "d_model": 512,
  "some_float": 0.1,
  "some_int": -7,
  "some_bool": true,
  "some_str": "hello",
  "some_list_int": [
    1,
    2,
    3
  ],
  "some_list_str": [
    "a",
    "b",
    "c"
  ],
  "some_list_float": [
    0.1,
    0.2,
    0.3
  ],
  "some_dict": {
    "key1": "value1",
    "key2": "value2"
  }
}"""


@dataclass
class Head:
    """What some tests want of the file."""

    n_head: int
    some_float: float
    rate: float = 0.5


class HeadStruct(msgspec.Struct):
    """The same for msgspec."""

    n_head: int
    some_float: float


class HeadDict(TypedDict):
    """The same as a dict."""

    n_head: int


def torch_file(value: object) -> bytes:
    """What torch writes."""
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


@pytest.fixture
def book(data: Path) -> Path:
    """The file of the book's example, written by torch."""
    return data / "pytorch" / "weights_with_config.pt"


def test_the_books_example_is_read_and_saved_as_json(book: Path, tmp_path: Path) -> None:
    config = bs.read_config(book, NetConfig, "my_config")
    assert isinstance(config, NetConfig)
    config.save(tmp_path / "my_config.json")
    assert (tmp_path / "my_config.json").read_bytes() == BOOK_JSON.encode()
    assert NetConfig.load(tmp_path / "my_config.json") == config


def test_without_a_type_the_values_are_plain_python(book: Path) -> None:
    values = bs.read_config(book, key="my_config")
    assert values == torch.load(book, weights_only=True)["my_config"]
    assert bs.read_config(book)["my_config"] == values


@pytest.mark.parametrize("type", [Head, HeadStruct])
def test_dataclasses_and_structs_are_filled(type: Any, book: Path) -> None:
    head = bs.read_config(book, type, "my_config")
    assert (head.n_head, head.some_float) == (4, 0.1)


def test_typed_dicts_and_plain_annotations_are_filled(book: Path) -> None:
    assert bs.read_config(book, HeadDict, "my_config") == {"n_head": 4}
    assert bs.read_config(book, tuple[int, ...], "my_config.some_list_int") == (1, 2, 3)
    assert bs.read_config(book, int, "my_config.n_head") == 4
    assert bs.read_config(book, str, "my_config.some_list_str.1") == "b"


def test_a_path_bytes_a_file_and_a_store_give_the_same(book: Path) -> None:
    expected = bs.read_config(book)
    assert bs.read_config(str(book)) == expected
    assert bs.read_config(book.read_bytes()) == expected
    with book.open("rb") as file:
        assert bs.read_config(file) == expected
    with bs.open(book) as store:
        assert bs.read_config(store) == expected
    assert bs.read_config(bs.PytorchStore.from_file(book), key="my_config") == expected["my_config"]


def test_the_error_names_file_and_path() -> None:
    data = torch_file({"hyper_parameters": {"n_head": "eight", "some_float": 1}})
    with pytest.raises(bs.errors.ConfigError, match=r"hyper_parameters\.n_head: expected int, found str 'eight'"):
        bs.read_config(data, Head, "hyper_parameters")


def test_a_missing_value_takes_the_fields_default_or_is_named() -> None:
    head = bs.read_config(torch_file({"n_head": 1, "some_float": 2}), Head)
    assert head == Head(1, 2.0, 0.5)
    with pytest.raises(bs.errors.ConfigError, match="n_head: expected int, found nothing; did you mean 'n_heads'"):
        bs.read_config(torch_file({"n_heads": 1, "some_float": 2}), Head)


def test_a_missing_key_is_a_key_error_that_lists_keys(book: Path) -> None:
    with pytest.raises(KeyError, match="my_config"):
        bs.read_config(book, key="my_confg")


def test_a_namespace_and_an_ordered_dict_fill_a_class_too() -> None:
    data = torch_file({"args": argparse.Namespace(n_head=2, some_float=1.5), "od": OrderedDict(n_head=3, some_float=2.5)})
    assert bs.read_config(data, Head, "args") == Head(2, 1.5)
    assert bs.read_config(data, Head, "od") == Head(3, 2.5)


def test_values_beside_tensors_come_back_from_a_file_of_ours() -> None:
    extra = {"epoch": 3, "best": 0.25, "tags": ["a", None, True], "raw": b"\x00\xff", "pair": (1, {"x": -(2**70)})}
    data = bs.save({"w": [1.0]}, bytes, format="pytorch", extra=extra)
    values = bs.read_config(data)
    assert {key: value for key, value in values.items() if key != "state_dict"} == extra


def test_a_store_with_a_top_level_key_writes_under_it_and_reads_under_it(tmp_path: Path) -> None:
    store = bs.PytorchStore.from_file(tmp_path / "x.pt").with_top_level_key("model")
    bs.save({"b": [1.0], "a": [2.0]}, store, extra={"epoch": 3})
    assert list(torch.load(tmp_path / "x.pt", weights_only=True)) == ["model", "epoch"]
    assert store.keys() == ["a", "b"]
    assert bs.read_config(tmp_path / "x.pt", int, "epoch") == 3
    with pytest.raises(FileExistsError):
        bs.save({"a": [1.0]}, store)
    bs.save({"a": [1.0]}, store.overwrite())
    assert store.options == bs.PytorchStore.from_file(tmp_path / "x.pt").with_top_level_key("model").options


def test_extra_values_can_be_said_to_the_store_too(tmp_path: Path) -> None:
    store = bs.PytorchStore.from_file(tmp_path / "x.pt").extra({"epoch": 3})
    bs.save({"a": [1.0]}, store)
    assert list(torch.load(tmp_path / "x.pt", weights_only=True)) == ["state_dict", "epoch"]
    bs.save({"a": [1.0]}, store.overwrite(), extra={"step": 4})
    assert list(torch.load(tmp_path / "x.pt", weights_only=True)) == ["state_dict", "step"]


@pytest.mark.parametrize("format", ["safetensors", "burnpack"])
def test_files_without_values_say_so(format: str) -> None:
    data = bs.save({"w": [1.0]}, bytes, format=format, metadata={"a": "b"})
    with pytest.raises(bs.errors.ConfigError, match=rf"a {format} file holds tensors and texts only"):
        bs.read_config(data)


def test_tensors_in_hand_have_no_values() -> None:
    with pytest.raises(bs.errors.UsageError, match="tensors in hand"):
        bs.read_config({"w": [1.0]})
