"""Adapters that users write, and adapters on a model of torch's."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from torch import nn

import burnstore as bs

TO_BURN, TO_PYTORCH = bs.PyTorchToBurnAdapter, bs.BurnToPyTorchAdapter


def tensor(name: str, values: Any, *containers: str) -> bs.TensorSnapshot:
    return bs.TensorSnapshot.from_data(name, np.asarray(values), containers=[f"Struct:{container}" for container in containers])


class Fuse(bs.Adapter):
    """`q`, `k` and `v` as one tensor: three become one on the way out, and one becomes three on the way in."""

    def adapt_all(self, tensors: Sequence[bs.TensorSnapshot]) -> list[bs.TensorSnapshot]:
        by_name = {item.name: item for item in tensors}
        made = []
        for name, item in by_name.items():
            layer, _, leaf = name.rpartition(".")
            if leaf == "q":
                parts = [by_name[f"{layer}.{part}"] for part in "qkv"]
                shape = (sum(part.shape[0] for part in parts), *item.shape[1:])
                join = lambda parts=parts: np.concatenate([part.numpy() for part in parts])  # noqa: E731
                made.append(bs.TensorSnapshot.from_closure(f"{layer}.qkv", item.dtype, shape, join))
            elif leaf == "qkv":
                for at, part in enumerate("qkv"):
                    cut = lambda item=item, at=at: np.split(item.numpy(), 3)[at]  # noqa: E731
                    shape = (item.shape[0] // 3, *item.shape[1:])
                    made.append(bs.TensorSnapshot.from_closure(f"{layer}.{part}", item.dtype, shape, cut))
            elif leaf not in ("k", "v"):
                made.append(item)
        return made


APART = {f"attn.{part}": np.full((2, 4), at, np.float32) for at, part in enumerate("qkv")}
FUSED = np.repeat(np.arange(3, dtype=np.float32), 2)[:, None] * np.ones(4, np.float32)


@pytest.mark.parametrize("format", ["safetensors", "bpk", "pt"])
def test_many_tensors_become_one_when_saved_and_many_again_when_loaded(format: str) -> None:
    data = bs.save({**APART, "out.bias": np.zeros(1)}, bytes, format=format, adapter=Fuse())
    assert sorted(bs.open(data)) == ["attn.qkv", "out.bias"]
    np.testing.assert_array_equal(bs.read(data)["attn.qkv"], FUSED)

    model = {name: np.zeros((2, 4), np.float32) for name in APART}
    result = bs.load(data, {**model, "out.bias": np.ones(1)}, adapter=Fuse())
    assert result.is_success() and sorted(result.applied) == ["attn.k", "attn.q", "attn.v", "out.bias"]
    for name, array in APART.items():
        np.testing.assert_array_equal(model[name], array)


def test_many_tensors_become_one_when_converted() -> None:
    data = bs.convert(bs.save(APART, bytes, format="safetensors"), bytes, format="pt", adapter=Fuse())
    np.testing.assert_array_equal(bs.read(data)["attn.qkv"], FUSED)


def test_many_tensors_become_one_when_a_model_is_collected() -> None:
    (fused,) = bs.collect(APART, adapter=Fuse())
    assert fused.name == "attn.qkv" and fused.numpy().tolist() == FUSED.tolist()


def test_one_that_is_loaded_from_many() -> None:
    model = {"attn": {"qkv": np.zeros((6, 4), np.float32)}}
    assert bs.load(APART, model, adapter=Fuse()).applied == ["attn.qkv"]
    np.testing.assert_array_equal(model["attn"]["qkv"], FUSED)


def test_a_function_of_one_tensor_is_an_adapter() -> None:
    def shout(item: bs.TensorSnapshot) -> bs.TensorSnapshot:
        return item.with_name(item.name.upper())

    assert list(bs.open(bs.save({"a": [1.0]}, bytes, format="pt", adapter=shout))) == ["A"]
    model = {"A": np.zeros(1)}
    bs.load({"a": [1.0]}, model, adapter=shout)
    assert model["A"].tolist() == [1.0]
    store = bs.SafetensorsStore.from_bytes(None).with_to_adapter(shout)
    bs.save({"a": [1.0]}, store)
    assert store.keys() == ["A"]


def test_a_class_of_adapters_is_taken_for_an_adapter() -> None:
    """Burn's spelling: `.with_from_adapter(PyTorchToBurnAdapter)`."""
    store = bs.SafetensorsStore.from_bytes(None).with_from_adapter(TO_BURN).with_to_adapter(TO_PYTORCH)
    assert type(store.options.from_adapter) is TO_BURN and type(store.options.to_adapter) is TO_PYTORCH
    assert bs.ChainAdapter(TO_BURN, bs.HalfPrecisionAdapter).adapters[0].source == "pytorch"


@pytest.mark.parametrize(
    ("adapter", "names"),
    [
        (lambda _: None, []),
        (lambda _: [], []),
        (lambda item: item if item.name != "b" else None, ["a"]),
        (lambda item: (item, item.with_name(item.name * 2)), ["a", "aa", "b", "bb"]),
        (lambda item: iter([item]), ["a", "b"]),
    ],
)
@pytest.mark.parametrize("more", [{}, {"dtype": "f32"}, {"dtype": "f32", "map_indices_contiguous": True}])
def test_an_adapter_may_give_none_one_or_several(adapter: Any, names: list[str], more: dict[str, Any]) -> None:
    made = bs.open(bs.save({"a": np.ones(1), "b": np.ones(1)}, bytes, format="safetensors", adapter=adapter, **more))
    assert list(made) == names


@pytest.mark.parametrize(
    ("adapter", "words"),
    [
        (lambda item: item.nothing, r"the adapter <lambda> failed: AttributeError: .*; mend its adapt"),
        (lambda item: 1 / 0, "ZeroDivisionError"),
        (lambda item: item.numpy(), "object of type float64"),
        (lambda item: [item, 3], "object of type int"),
        (lambda item: 3, "object of type int"),
        (lambda item: "text", "object of type str"),
    ],
)
def test_an_adapter_that_fails_or_gives_nonsense_is_an_error_that_names_the_tensor(adapter: Any, words: str) -> None:
    model = {"a": np.zeros(2)}
    for call in (
        lambda: bs.save({"a": np.ones(2)}, bytes, format="bpk", adapter=adapter),
        lambda: bs.convert({"a": np.ones(2)}, bytes, format="bpk", adapter=adapter),
        lambda: bs.load({"a": np.ones(2)}, model, adapter=adapter),
        lambda: bs.collect(model, adapter=adapter),
    ):
        with pytest.raises(bs.errors.BurnstoreError, match=words) as caught:
            call()
        assert "tensor 'a'" in str(caught.value)
    assert model["a"].tolist() == [0, 0]


@pytest.mark.parametrize("adapter", [3, "half", object(), ["a"]])
def test_what_is_no_adapter_is_refused_where_it_is_given(adapter: Any) -> None:
    doors: list[Any] = [
        lambda: bs.save({"a": [1.0]}, bytes, format="bpk", adapter=adapter),
        lambda: bs.load({"a": [1.0]}, {"a": np.zeros(1)}, adapter=adapter),
        lambda: bs.collect({"a": np.zeros(1)}, adapter=adapter),
        lambda: bs.SafetensorsStore.from_bytes(None).with_to_adapter(adapter),
        lambda: bs.ChainAdapter(adapter),
    ]
    for door in doors:
        with pytest.raises(bs.errors.UsageError, match="adapter"):
            door()


def test_an_adapter_that_gives_a_wrong_shape_leaves_the_model_as_it_was() -> None:
    model = {"a": np.zeros(2), "b": np.zeros(2)}

    def wrong(item: bs.TensorSnapshot) -> bs.TensorSnapshot:
        return bs.TensorSnapshot.from_data(item.name, np.ones(3)) if item.name == "b" else item

    with pytest.raises(bs.errors.LoadError) as caught:
        bs.load({"a": np.ones(2), "b": np.ones(2)}, model, adapter=wrong)
    assert caught.value.report is not None and [path for path, _ in caught.value.report.errors] == ["b"]
    assert model["a"].tolist() == [0, 0] and model["b"].tolist() == [0, 0]


def test_an_adapter_that_gives_one_name_twice_is_refused() -> None:
    with pytest.raises(bs.errors.DuplicateNameError, match="'same'"):
        bs.save({"a": [1.0], "b": [1.0]}, bytes, format="bpk", adapter=lambda item: item.with_name("same"))


# On a model of torch's


class Square(nn.Module):
    """Nothing about its shapes says how its Linear lies."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)


HALVES = [
    bs.HalfPrecisionAdapter(),
    bs.FloatCastAdapter("F16"),
    bs.IdentityAdapter().chain(bs.HalfPrecisionAdapter()),
]


@pytest.mark.parametrize("adapter", HALVES, ids=repr)
@pytest.mark.parametrize("format", ["bpk", "safetensors", "pt"])
def test_an_adapter_of_dtypes_does_not_turn_a_square_linear_round_in_silence(adapter: bs.Adapter, format: str) -> None:
    """However the file lies, it says so, and comes back right."""
    torch.manual_seed(3)
    before, after = Square(), Square()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = bs.save(before, bytes, format=format, adapter=adapter)
    # An adapter takes the place of the translation, which is said aloud.
    said = [str(warning.message) for warning in caught if issubclass(warning.category, bs.errors.BurnstoreWarning)]
    in_pytorchs_layout = format == "bpk" and bs.open(data).metadata.get("dialect") == "pytorch"
    assert ("took the place of the translation to burn" in "".join(said)) == in_pytorchs_layout
    assert bs.load(data, after).is_success()
    assert torch.equal(after.fc.weight, before.fc.weight.half().float())
    store = bs.open(data)
    if format == "bpk" and "dialect" not in store.metadata:  # then it is Burn's
        assert "norm.gamma" in store
        assert np.array_equal(store["fc.weight"].numpy(), before.fc.weight.detach().half().numpy().T)


@pytest.mark.parametrize("half", [None, bs.HalfPrecisionAdapter()], ids=["alone", "chained"])
def test_burn_to_pytorch_on_a_model_of_torchs_leaves_it_torchs(half: bs.Adapter | None) -> None:
    """A store of Burn's book writes for PyTorch; a module of torch's is PyTorch's already."""
    model = Square()
    adapter = TO_PYTORCH() if half is None else TO_PYTORCH().chain(half)
    data = bs.save(model, bytes, format="safetensors", adapter=adapter)
    weight = model.fc.weight.detach() if half is None else model.fc.weight.detach().half()
    assert torch.equal(safetensors.torch.load(data)["fc.weight"], weight)
    assert bs.open(data).metadata["dialect"] == "pytorch"


@pytest.mark.parametrize("half", [None, bs.HalfPrecisionAdapter()], ids=["alone", "chained"])
def test_pytorch_to_burn_on_a_model_of_torchs_makes_it_burns_and_says_so(half: bs.Adapter | None) -> None:
    model = Square()
    adapter = TO_BURN() if half is None else TO_BURN().chain(half)
    data = bs.save(model, bytes, format="safetensors", adapter=adapter)
    arrays = safetensors.numpy.load(data)
    assert {"norm.gamma", "norm.beta"} <= set(arrays)
    wanted = model.fc.weight.detach() if half is None else model.fc.weight.detach().half()
    assert np.array_equal(arrays["fc.weight"], wanted.numpy().T)
    assert bs.open(data).metadata["dialect"] == "burn" and "pt" not in bs.open(data).metadata.values()
