"""Whatever can be like a model: who is asked of which kind its layers are, and who knows nothing of it."""

from __future__ import annotations

import collections
import io
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import burnstore as bs
from tests.sources.handmade import burnpack_bytes, safetensors_bytes
from tests.torch_zoo import RAMP, ramp_zoo


def pickled(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def arrays_of(data: bytes) -> dict[str, list[Any]]:
    return {name: array.tolist() for name, array in bs.read(data).items()}


class Mine(nn.Linear):
    """A Linear under another name."""


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.Linear = nn.Embedding(3, 3)  # a name that lies
        self.proj = Mine(3, 3)
        self.scale = nn.Parameter(torch.ones(3))


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Inner(), Inner()])
        self.norm = nn.LayerNorm(3)


@pytest.fixture(scope="module")
def outer() -> Outer:
    torch.manual_seed(2)
    return Outer()


def test_a_live_model_says_its_kinds_whatever_its_classes_and_names_are(outer: Outer) -> None:
    made = bs.read(bs.convert(pickled(outer.state_dict()), bytes, format="bpk", like=outer))
    for at in (0, 1):
        inner = outer.blocks[at]
        assert np.array_equal(made[f"blocks.{at}.proj.weight"], inner.proj.weight.detach().numpy().T)
        assert np.array_equal(made[f"blocks.{at}.Linear.weight"], inner.Linear.weight.detach().numpy())
    assert {"norm.gamma", "norm.beta", "blocks.1.scale"} <= set(made)


def test_a_pickle_of_the_whole_model_says_the_classes_of_torch_and_no_other(outer: Outer) -> None:
    """A class of the author's may be anything: it is refused rather than guessed."""
    with pytest.raises(bs.errors.DialectError, match=r"blocks\.0\.proj\.weight.*blocks\.1\.proj\.weight") as caught:
        bs.convert(pickled(outer), bytes, format="bpk")
    assert "Linear.weight" not in str(caught.value) and "norm.gamma" not in str(caught.value)
    told = bs.convert(pickled(outer), bytes, format="bpk", kinds={r"proj\.weight$": "Linear"})
    like = bs.convert(pickled(outer), bytes, format="bpk", like=outer)
    assert arrays_of(told) == arrays_of(like)


def test_a_whole_model_in_a_checkpoint_is_known_under_its_key(outer: Outer) -> None:
    data = pickled({"epoch": 3, "model": outer})
    made = bs.convert(bs.open(data, key="model"), bytes, format="bpk", kinds={"proj": "Linear"})
    assert arrays_of(made) == arrays_of(bs.convert(pickled(outer.state_dict()), bytes, format="bpk", like=outer))


def test_no_class_of_a_whole_model_is_imported(outer: Outer, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickled(outer)
    monkeypatch.delitem(globals(), "Inner")
    monkeypatch.delitem(globals(), "Outer")
    assert "norm.gamma" in bs.open(bs.convert(data, bytes, format="bpk", kinds={"proj": "Linear"}))


def test_every_layer_of_a_whole_model_is_translated_as_the_live_model_is() -> None:
    model = ramp_zoo()
    whole = bs.convert(pickled(model), bytes, format="bpk", kinds={"^depthwise": "Conv2d"})
    assert arrays_of(whole) == arrays_of(bs.save(model, bytes, format="bpk"))


# A file of Burn's


BURN = {
    "fc.weight": ("F32", (4, 3), bytes(48)), "fc.bias": ("F32", (3,), bytes(12)),
    "emb.weight": ("F32", (5, 2), bytes(40)),
    "bn.gamma": ("F32", (3,), bytes(12)), "bn.beta": ("F32", (3,), bytes(12)),
    "bn.running_mean": ("F32", (3,), bytes(12)), "bn.running_var": ("F32", (3,), bytes(12)),
    "ln.gamma": ("F32", (3,), bytes(12)), "act.alpha": ("F32", (1,), bytes(4)),
    "conv.weight": ("F32", (2, 2, 1), bytes(16)),
}  # fmt: skip
PYTORCH = {
    "fc.weight": np.arange(12, dtype=np.float32).reshape(3, 4), "fc.bias": np.zeros(3, np.float32),
    "emb.weight": np.arange(10, dtype=np.float32).reshape(5, 2),
    "bn.weight": np.ones(3, np.float32), "bn.bias": np.zeros(3, np.float32),
    "bn.running_mean": np.zeros(3, np.float32), "bn.running_var": np.ones(3, np.float32),
    "ln.weight": np.ones(3, np.float32), "act.weight": np.ones(1, np.float32),
    "conv.weight": np.arange(4, dtype=np.float32).reshape(2, 2, 1),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["bpk", "safetensors", "store", "snapshots"])
def test_a_file_of_burns_tells_by_its_names_and_its_shapes(kind: str) -> None:
    like: Any = burnpack_bytes(BURN)
    if kind == "safetensors":
        arrays = {name: np.zeros(shape, np.float32) for name, (_, shape, _) in BURN.items()}
        like = safetensors_bytes(arrays, {"dialect": "burn"})
    if kind == "store":
        like = bs.open(like)
    if kind == "snapshots":
        like = bs.BurnpackStore.from_bytes(like)
    made = bs.read(bs.convert(bs.save(PYTORCH, bytes, format="pt"), bytes, format="bpk", like=like))
    assert {name: array.shape for name, array in made.items()} == {name: shape for name, (_, shape, _) in BURN.items()}
    assert np.array_equal(made["fc.weight"], PYTORCH["fc.weight"].T)
    assert np.array_equal(made["emb.weight"], PYTORCH["emb.weight"])
    assert np.array_equal(made["conv.weight"], PYTORCH["conv.weight"])


def test_what_a_file_of_burns_cannot_tell_is_refused() -> None:
    """A square weight lies the same in a Linear and in an Embedding."""
    like = burnpack_bytes({"fc.weight": ("F32", (3, 3), bytes(36))})
    data = bs.save({"fc.weight": np.eye(3, dtype=np.float32)}, bytes, format="pt")
    with pytest.raises(bs.errors.DialectError, match=r"fc\.weight"):
        bs.convert(data, bytes, format="bpk", like=like)
    assert bs.convert(data, bytes, format="bpk", like=like, kinds={"fc": "Linear"})


def test_a_file_of_burns_with_other_shapes_is_not_like_the_model() -> None:
    like = burnpack_bytes({"e.weight": ("F32", (4, 7), bytes(112))})
    data = bs.save({"e.weight": np.zeros((10, 4), np.float32)}, bytes, format="pt")
    with pytest.raises(bs.errors.BurnstoreError, match=r"e\.weight"):
        bs.convert(data, bytes, format="bpk", like=like)


def test_a_file_of_burns_tells_nothing_about_the_axes_of_another_one() -> None:
    """Both have Burn's layout, whatever the layers are: (4, 3) twice may be a Linear's or an Embedding's."""
    data = burnpack_bytes({"fc.weight": ("F32", (4, 3), bytes(48)), "ln.gamma": ("F32", (3,), bytes(12))})
    with pytest.raises(bs.errors.DialectError, match=r"fc\.weight"):
        bs.convert(data, bytes, format="pt", like=data)
    made = bs.convert(data, bytes, format="pt", like=data, kinds={"fc": "Linear"})
    assert {name: value.shape for name, value in bs.open(made).items()} == {"fc.weight": (3, 4), "ln.weight": (3,)}


def test_the_real_burns_file_of_a_model_tells_enough_for_the_same_model() -> None:
    """Only square weights are left to say."""
    model = ramp_zoo()
    told = {"^(stack.0|fixed.0)": "Linear"}
    keywords: dict[str, Any] = {"format": "bpk", "skip": "num_batches_tracked"}
    made = bs.convert(pickled(model.state_dict()), bytes, like=RAMP / "zoo.bpk", kinds=told, **keywords)
    assert arrays_of(made) == arrays_of((RAMP / "zoo.bpk").read_bytes())
    with pytest.raises(bs.errors.DialectError) as caught:
        bs.convert(pickled(model.state_dict()), bytes, like=RAMP / "zoo.bpk", **keywords)
    assert "stack.0.weight, fixed.0.weight" in str(caught.value)


# What knows nothing


@pytest.mark.parametrize(
    "like",
    [
        pickled(collections.OrderedDict(w=torch.zeros(2))),
        safetensors_bytes({"w": np.zeros(1)}),
        {"fc.weight": np.zeros((2, 2))},
        {},
    ],
    ids=["a state dict", "safetensors", "arrays", "nothing"],
)
def test_what_says_nothing_of_its_layers_is_refused_as_like(like: Any) -> None:
    data = bs.save({"fc.weight": np.zeros((2, 2))}, bytes, format="pt")
    with pytest.raises(bs.errors.UsageError, match=r"like=.*of which kind.*give a model"):
        bs.convert(data, bytes, format="bpk", like=like)


@pytest.mark.parametrize("like", [3, object()])
def test_what_is_no_model_and_no_file_is_refused_as_like(like: Any) -> None:
    with pytest.raises(bs.errors.UsageError):
        bs.convert(bs.save({"fc.weight": np.zeros((2, 2))}, bytes, format="pt"), bytes, format="bpk", like=like)


def test_a_missing_file_as_like_is_a_missing_file(tmp_path: Any) -> None:
    with pytest.raises(FileNotFoundError):
        bs.convert(bs.save({"w": np.zeros((2, 2))}, bytes, format="pt"), bytes, format="bpk", like=tmp_path / "no.bpk")
