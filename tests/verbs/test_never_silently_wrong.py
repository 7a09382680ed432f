"""Files that would be wrong without anybody noticing: each is right, or refused."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import burnstore as bs

HALF, TO_BURN, TO_TORCH = bs.HalfPrecisionAdapter(), bs.PyTorchToBurnAdapter(), bs.BurnToPyTorchAdapter()


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.emb.weight


def pickled(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def gaps() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU(), nn.Conv2d(3, 3, 1), nn.Linear(2, 5), nn.Embedding(7, 2), nn.LayerNorm(5))


def converted(source: Any, **options: Any) -> bs.Store:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.errors.BurnstoreWarning)
        return bs.open(bs.convert(source, bytes, format="bpk", **options))


@pytest.mark.parametrize(
    "store",
    [
        lambda data: data,
        lambda data: bs.PytorchStore.from_bytes(data),
        lambda data: bs.open(data, map_indices_contiguous=True),
        lambda data: bs.open(bs.open(data, map_indices_contiguous=True), skip="nothing"),
        lambda data: bs.open(bs.open(data, map_indices_contiguous=True), only="^[0-9]"),
    ],
    ids=["file", "PytorchStore", "counted", "counted and listed again", "counted and chosen"],
)
@pytest.mark.parametrize("told", ["like", "whole model"])
def test_kinds_are_those_of_the_layers_before_lists_are_counted_anew(store: Any, told: str) -> None:
    model = gaps()
    data = pickled(model.state_dict()) if told == "like" else pickled(model)
    made = converted(store(data), **({"like": model} if told == "like" else {}))
    assert made["2.weight"].shape == (2, 5) and made["3.weight"].shape == (7, 2) and "4.gamma" in made
    other = gaps()
    bs.load(made, other)
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("adapter", "dialect"),
    [
        (TO_BURN.chain(TO_TORCH), "pytorch"),
        (TO_TORCH.chain(TO_BURN), "burn"),
        (HALF.chain(TO_BURN), "burn"),
        (TO_BURN.chain(HALF).chain(TO_TORCH).chain(TO_BURN), "burn"),
        (HALF.chain(TO_TORCH), "pytorch"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("format", ["safetensors", "bpk", "pt"])
def test_a_file_says_the_layout_that_a_chain_of_adapters_ends_in(adapter: bs.Adapter, dialect: str, format: str) -> None:
    model, other = nn.Sequential(nn.Linear(3, 3)), nn.Sequential(nn.Linear(3, 3))
    data = bs.save(model, bytes, format=format, adapter=adapter)
    assert bs.open(data).dialect == dialect
    bs.load(data, other)
    torch.testing.assert_close(other[0].weight, model[0].weight, atol=1e-2, rtol=1e-2)


def test_an_adapter_that_ends_elsewhere_than_is_said_is_refused() -> None:
    with pytest.raises(bs.errors.UsageError, match="to_dialect"):
        bs.save(nn.Linear(3, 3), bytes, format="bpk", to_dialect="burn", adapter=HALF.chain(TO_TORCH))


def test_lists_of_a_bpk_are_counted_as_the_model_of_torch_counts_them() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
    with pytest.warns(bs.errors.BurnstoreWarning, match="without gaps"):
        burn = bs.save(model, bytes, format="bpk")
    with pytest.warns(bs.errors.BurnstoreWarning, match="as the model counts them"):
        back = bs.convert(burn, bytes, format="pt", like=model)
    state = torch.load(io.BytesIO(back), weights_only=True)
    assert all(torch.equal(value, state[name]) and value.shape == state[name].shape for name, value in model.state_dict().items())
    assert set(state) == set(model.state_dict())


@pytest.mark.parametrize("shape", [(400,), (2,), ()])
def test_a_shape_that_does_not_take_the_bytes_is_refused_where_it_is_made(shape: tuple[int, ...]) -> None:
    for format in ("safetensors", "bpk", "pt"):
        with pytest.raises(bs.errors.TensorDataError, match="does not take 16 bytes"):
            bs.save({"a": np.ones(4, np.float32)}, bytes, format=format, adapter=lambda t: t.changed(shape=shape))


@pytest.mark.parametrize("target", ["mid", "emb"])
def test_tied_weights_are_renamed_together_or_refused(target: str) -> None:
    class Three(Tied):
        def __init__(self) -> None:
            super().__init__()
            self.mid = nn.Linear(4, 5, bias=False)

    for format in ("safetensors", "pt"):
        with pytest.raises(bs.errors.DuplicateNameError):
            bs.save(Three(), bytes, format=format, rename={"^head": target})
    with pytest.raises(bs.errors.UsageError, match="tied weight"):
        bs.save(Tied(), bytes, format="safetensors", metadata={"head.weight": "note"})


@pytest.mark.parametrize("options", [{"only": "^head"}, {"skip": "^head"}, {"rename": {"^": "x."}}, {}])
@pytest.mark.parametrize("format", ["safetensors", "pt", "bpk"])
def test_no_tied_weight_is_lost_on_the_way(options: dict[str, Any], format: str) -> None:
    model = Tied()
    data = bs.save(model, bytes, format="safetensors")
    made = bs.convert(data, bytes, format=format, dialect="keep", **options)
    wanted = {"only": {"head.weight"}, "skip": {"emb.weight"}, "rename": {"x.emb.weight", "x.head.weight"}}.get(
        next(iter(options), ""), {"emb.weight", "head.weight"}
    )
    store = bs.open(made)
    assert set(store) | {key for key in store.metadata if "." in key} == wanted


def test_merging_and_saving_keep_tied_weights_too() -> None:
    data = bs.save(Tied(), bytes, format="safetensors")
    for made in (bs.merge(data), bs.open(bs.save(bs.merge(data), bytes, format="pt")).values()):
        assert {tensor.name for tensor in made} == {"emb.weight", "head.weight"}
    assert set(bs.open(bs.save(bs.open(data), bytes, format="pt"))) == {"emb.weight", "head.weight"}


def test_torch_tensors_that_are_said_to_be_torchs_need_their_kinds_and_kinds_need_the_saying() -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    for options in ({"like": model}, {"kinds": {".*": "Linear"}}):
        with pytest.raises(bs.errors.UsageError, match="without dialect="):
            bs.save(model.state_dict(), bytes, format="bpk", **options)
        made = bs.save(model.state_dict(), bytes, format="bpk", dialect="pytorch", **options)
        assert made == bs.save(model, bytes, format="bpk")


def test_a_kind_that_a_shape_rules_out_says_nothing() -> None:
    data = pickled(nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)).state_dict())
    with pytest.raises(bs.errors.DialectError, match=r"1\.weight"):
        bs.convert(data, bytes, format="bpk", kinds={".*": "Linear"})


def test_a_snapshot_of_a_file_knows_whose_layout_it_has() -> None:
    model, other = nn.Linear(4, 4), nn.Linear(4, 4)
    store = bs.open(bs.save(model, bytes, format="bpk"))
    for tensors in (dict(store.items()), list(store.values()), [store[name].with_name(name) for name in store]):
        bs.load(bs.save(tensors, bytes, format="pt"), other)
        assert torch.equal(other.weight, model.weight)


def test_a_state_dict_that_goes_into_a_bpk_as_it_lies_is_warned_of() -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    with pytest.warns(bs.errors.BurnstoreWarning, match=r"0\.weight.*save the model itself") as caught:
        bs.save(model.state_dict(), bytes, format="bpk")
    assert caught[0].filename == __file__
    for tensors, options in ((model.state_dict(), {"dialect": "keep"}), (model, {}), ({"b": torch.zeros(3)}, {})):
        bs.save(tensors, bytes, format="bpk", **options)
