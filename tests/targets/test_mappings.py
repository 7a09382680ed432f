"""Dicts, nested dicts, lists and tuples of arrays as targets."""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import burnstore as bs
from burnstore.errors import BurnstoreError, DuplicateNameError, LoadError, UsageError

Pair = namedtuple("Pair", "x y")
ONES = np.ones(2, np.float32)


def zeros() -> Any:
    return np.zeros(2, np.float32)


def test_keys_and_indices_make_the_paths_in_the_models_order() -> None:
    model = {
        "b": [zeros(), {"z": zeros(), 3: zeros()}],
        "a": (zeros(), Pair(zeros(), zeros())),
        "none": None,
        "dotted.name": zeros(),
    }
    names = ["b.0", "b.1.z", "b.1.3", "a.0", "a.1.0", "a.1.1", "dotted.name"]
    assert [tensor.name for tensor in bs.collect(model)] == names
    source = {name: np.full(2, at, np.float32) for at, name in enumerate(sorted(names))}
    assert bs.load(source, model).applied == names
    found = {tensor.name: tensor.numpy().tolist() for tensor in bs.collect(model)}
    assert found == {name: source[name].tolist() for name in names}


def test_a_list_of_arrays_is_a_model() -> None:
    model = [zeros(), zeros()]
    assert bs.load({"1": ONES, "0": 2 * ONES}, model).applied == ["0", "1"]
    assert [array.tolist() for array in model] == [[2, 2], [1, 1]]


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array


LAYOUTS: dict[str, Callable[[], Any]] = {
    "C order": lambda: np.zeros((3, 4), np.float32),
    "F order": lambda: np.zeros((3, 4), np.float32, order="F"),
    "every other": lambda: np.zeros((6, 8), np.float32)[::2, ::2],
    "backward": lambda: np.zeros((3, 4), np.float32)[::-1, ::-1],
    "big-endian": lambda: np.zeros((3, 4), ">f4"),
    "big-endian and strided": lambda: np.zeros((4, 6), ">f4")[:, ::2].T,
    "unaligned": lambda: np.zeros(49, np.uint8)[1:].view(np.float32).reshape(3, 4),
    "subclass": lambda: np.zeros((3, 4), np.float32).view(type("Mine", (np.ndarray,), {})),
    "torch": lambda: torch.zeros(3, 4),
    "torch, strided": lambda: torch.zeros(4, 3).t(),
    "half": lambda: np.zeros((3, 4), np.float16),
    "bf16": lambda: np.zeros((3, 4), ml_dtypes.bfloat16),
    "bf16, strided": lambda: np.zeros((4, 3), ml_dtypes.bfloat16).T,
    "fp4": lambda: np.zeros((3, 4), ml_dtypes.float4_e2m1fn),
    "fp4, strided": lambda: np.zeros((4, 3), ml_dtypes.float4_e2m1fn).T,
}


@pytest.mark.parametrize("made_by", ["array", "file"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_of_any_layout_is_changed_in_place(layout: str, made_by: str) -> None:
    array = LAYOUTS[layout]()
    values = (np.arange(12).reshape(3, 4) % 5).astype(np.float32)
    source: Any = {"w": values}
    if made_by == "file":
        source = bs.save(source, bytes, format="safetensors")
    model = {"w": array}
    kept = array.dtype, getattr(array, "strides", None)
    bs.load(source, model)
    assert model["w"] is array and (array.dtype, getattr(array, "strides", None)) == kept
    assert np.asarray(array).astype(np.float64).tolist() == values.tolist()


class Foreign:
    """What an array of another framework looks like, such as JAX's."""

    def __init__(self, values: Any) -> None:
        self._values = values
        self.dtype, self.shape = values.dtype, values.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._values


UNCHANGEABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "read-only": (lambda: _frozen(zeros()), "read-only"),
    "broadcast": (lambda: np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2,), (0,)), "one place in memory"),
    "overlapping": (lambda: np.lib.stride_tricks.as_strided(np.zeros(9, np.float32), (2, 2), (0, 32)), "one place in memory"),
    "foreign": (lambda: Foreign(zeros()), "cannot be changed in place"),
    "scalar": (lambda: np.float32(0), "cannot be changed in place"),
}


@pytest.mark.parametrize("kind", UNCHANGEABLE)
def test_what_cannot_be_changed_in_place_is_refused_and_then_replaced(kind: str) -> None:
    make, says = UNCHANGEABLE[kind]
    value, other = make(), zeros()
    model = {"other": other, "w": value}
    source = {"other": ONES, "w": np.ones(np.shape(value), np.float32)}
    with pytest.raises(LoadError) as caught:
        bs.load(source, model)
    assert says in str(caught.value.report)
    assert model["w"] is value and not np.any(value) and not other.any()
    made = bs.loaded(source, model)
    assert model["w"] is value and not np.any(value) and np.all(made["w"] == 1)
    bs.load(source, model, assign=True)
    assert np.all(model["w"] == 1) and not np.any(value)


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "dict": lambda leaf: {"a": leaf(), "b": {"c": leaf()}},
    "ordered": lambda leaf: OrderedDict(b=leaf(), a=OrderedDict(c=leaf())),
    "defaultdict": lambda leaf: defaultdict(dict, a=leaf(), b=defaultdict(list, c=leaf())),
    "list": lambda leaf: [leaf(), [leaf()]],
    "tuple": lambda leaf: (leaf(), (leaf(), [leaf()])),
    "namedtuple": lambda leaf: {"p": Pair(leaf(), Pair(leaf(), (leaf(),)))},
    "read-only mapping": lambda leaf: types.MappingProxyType({"a": leaf(), "b": leaf()}),
    "subclass": lambda leaf: type("Mine", (dict,), {})(a=leaf(), b=[leaf()]),
}


def _shape(value: Any) -> Any:
    """Types of the containers and keys in their order."""
    if isinstance(value, (dict, types.MappingProxyType)):
        return type(value), [(key, _shape(item)) for key, item in value.items()]
    return (type(value), [_shape(item) for item in value]) if isinstance(value, (list, tuple)) else None


@pytest.mark.parametrize("leaf", [zeros, lambda: torch.zeros(2)], ids=["numpy", "torch"])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_loaded_makes_the_same_containers_anew_and_leaves_the_original_alone(kind: str, leaf: Any) -> None:
    model = CONTAINERS[kind](leaf)
    before = _shape(model)
    source = {tensor.name: np.ones(2, np.float32) for tensor in bs.collect(model)}
    made = bs.loaded(source, model)
    assert _shape(made) == before == _shape(model)
    assert all(not tensor.numpy().any() for tensor in bs.collect(model))
    assert all(tensor.numpy().all() for tensor in bs.collect(made))
    assert {type(tensor) for tensor in _leaves(made)} == {type(tensor) for tensor in _leaves(model)}


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (dict, types.MappingProxyType)):
        value = list(value.values())
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, (list, tuple)) else [value]


def test_loaded_shares_what_the_file_does_not_have_and_owns_the_rest() -> None:
    model, source = {"a": zeros(), "b": zeros()}, {"a": ONES.copy()}
    made = bs.loaded(source, model, partial=True)
    assert made["b"] is model["b"]
    source["a"][:] = 9
    assert made["a"].tolist() == [1, 1] and made["a"].flags.writeable


def test_assigned_arrays_are_views_of_the_file(tmp_path: Any) -> None:
    bs.save({"w": np.arange(64, dtype=np.float32), "h": np.ones(4, np.float32)}, tmp_path / "m.safetensors")
    model = {"w": np.zeros(64, np.float32), "h": np.zeros(4, np.float16)}
    bs.load(tmp_path / "m.safetensors", model, assign=True)
    assert model["w"].tolist() == list(range(64)) and not model["w"].flags.writeable
    assert model["h"].dtype == np.float16 and model["h"].tolist() == [1] * 4


@pytest.mark.parametrize("options", [{"assign": True}, {"dtype": "file"}], ids=["assign", "file's dtype"])
@pytest.mark.parametrize(
    "holder", [lambda leaf: (leaf,), lambda leaf: types.MappingProxyType({"0": leaf})], ids=["tuple", "proxy"]
)
def test_an_item_that_cannot_be_replaced_is_refused_before_anything_is_written(options: Any, holder: Any) -> None:
    model = {"a": zeros(), "t": holder(zeros())}
    with pytest.raises(BurnstoreError, match="replaced"):
        bs.load({"a": ONES, "t.0": np.ones(2)}, model, **options)
    assert not model["a"].any() and not _leaves(model["t"])[0].any()


def test_the_files_dtype_replaces_arrays_and_the_models_dtype_does_not() -> None:
    model = {"w": zeros(), "same": zeros(), "flag": np.zeros(2, np.bool_)}
    before = dict(model)
    source = {"w": np.ones(2), "same": ONES, "flag": np.array([0, 3], np.uint8)}
    result = bs.load(source, model, dtype="file")
    assert (model["w"].dtype, [cast.path for cast in result.casts]) == (np.float64, ["flag"])
    assert model["same"] is before["same"] and model["flag"] is before["flag"]
    assert model["flag"].tolist() == [False, True]
    assert [cast.path for cast in bs.load(source, {"w": zeros()}, partial=True).casts] == ["w"]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"a": "text"}, "no array"),
        ({"a": 1.0}, "no array"),
        ({"a": {1.5: zeros()}}, "no name"),
        ({"a": np.array([None])}, "object"),
        ({"a": np.ma.masked_array(zeros(), [True, False])}, "mask"),
        ({"a": np.array(["text"])}, "(?i)text|numbers"),
        (3, "int"),
        (None, "NoneType"),
        (object(), "object"),
        ("model.bpk", "str"),
    ],
)
def test_what_is_no_model_is_refused_in_words(model: Any, says: str) -> None:
    with pytest.raises(BurnstoreError, match=says):
        bs.load({"a": ONES}, model)


def test_two_arrays_under_one_path_are_refused() -> None:
    for model in ({"a.b": zeros(), "a": {"b": zeros()}}, {1: zeros(), "1": zeros()}):
        with pytest.raises(DuplicateNameError, match=r"a\.b|'1'"):
            bs.load({"a.b": ONES}, model)


def test_a_dict_inside_of_itself_is_refused_and_one_used_twice_is_not() -> None:
    model: dict[str, Any] = {"a": zeros()}
    model["self"] = model
    with pytest.raises(UsageError, match="contains itself"):
        bs.load({"a": ONES}, model)
    shared = {"w": zeros()}
    twice = {"one": shared, "two": shared}
    assert bs.load({"one.w": ONES}, twice).applied == ["one.w", "two.w"]
    assert shared["w"].tolist() == [1, 1]


def test_a_dict_nested_deeper_than_python_recurses_is_loaded() -> None:
    model: dict[str, Any] = {}
    inner = model
    for _ in range(2000):
        inner["a"] = inner = {}
    inner["w"] = zeros()
    bs.load({"a." * 2000 + "w": ONES}, model)
    assert inner["w"].tolist() == [1, 1]


def test_sources_that_are_the_models_own_arrays_are_read_before_they_are_overwritten() -> None:
    model = {"a": np.zeros(3), "b": np.ones(3), "c": np.arange(9.0).reshape(3, 3)}
    bs.load({"a": model["b"], "b": model["a"], "c": model["c"].T}, model)
    assert (model["a"].tolist(), model["b"].tolist()) == ([1, 1, 1], [0, 0, 0])
    assert model["c"].tolist() == np.arange(9.0).reshape(3, 3).T.tolist()


def test_arrays_over_one_memory_are_not_given_two_values() -> None:
    base = np.zeros(4, np.float32)
    model = {"flat": base, "square": base.reshape(2, 2)}
    bs.load({"flat": np.ones(4, np.float32), "square": np.ones((2, 2), np.float32)}, model)
    with pytest.raises(LoadError):
        bs.load({"flat": np.ones(4, np.float32), "square": np.full((2, 2), 2, np.float32)}, model)
    assert base.tolist() == [1, 1, 1, 1]
