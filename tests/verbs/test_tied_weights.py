"""Weights that are tied: once in SafeTensors, twice in a `.bpk`, one storage in a `.pt`."""

from __future__ import annotations

import io

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from torch import nn

import burnstore as bs
from tests.verbs.laid_out import metadata_of, same


class Tied(nn.Module):
    def __init__(self, out: int = 4) -> None:
        super().__init__()
        self.one = nn.Linear(4, out)
        self.two = nn.Linear(4, out)
        self.two.weight = self.one.weight


class LanguageModel(nn.Module):
    """Its head is the embedding, which Burn wants the other way round."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight


@pytest.mark.parametrize("rename", [None, {"^": "net."}, {"^one": "first"}])
@pytest.mark.parametrize("way", ["save", "convert"])
def test_tied_weights_lie_in_a_safetensors_once_and_the_metadata_says_so(way: str, rename: dict[str, str] | None) -> None:
    model = Tied()
    if way == "save":
        data = bs.save(model, bytes, format="safetensors", rename=rename)
    else:
        data = bs.convert(bs.save(model, bytes, format="safetensors"), bytes, format="safetensors", rename=rename)
    new = None if rename is None else next(iter(rename.values()))
    one, two = {None: ("one", "two"), "net.": ("net.one", "net.two"), "first": ("first", "two")}[new]
    assert set(safetensors.numpy.load(data)) == {f"{one}.weight", f"{one}.bias", f"{two}.bias"}
    assert metadata_of(data)[f"{two}.weight"] == f"{one}.weight"
    assert set(metadata_of(data)) == {"dialect", "format", f"{two}.weight"}

    back = {None: None, "net.": {r"^net\.": ""}, "first": {"^first": "one"}}[new]
    again = Tied()
    result = bs.load(data, again, rename=back)
    assert result.is_success() and "two.weight" in result.applied and torch.equal(again.two.weight, model.one.weight)
    untied = nn.ModuleDict({"one": nn.Linear(4, 4), "two": nn.Linear(4, 4)})
    assert bs.load(data, untied, rename=back).is_success() and torch.equal(untied["two"].weight, model.one.weight)


def test_open_lists_what_is_stored() -> None:
    assert "two.weight" not in bs.open(bs.save(Tied(), bytes, format="safetensors"))


def test_an_alias_whose_tensor_a_filter_leaves_out_is_written_itself() -> None:
    model = Tied()
    data = bs.save(model, bytes, format="safetensors", only="^two")
    assert set(safetensors.numpy.load(data)) == {"two.weight", "two.bias"} and "two.weight" not in metadata_of(data)
    converted = bs.convert(bs.save(model, bytes, format="safetensors"), bytes, format="safetensors", skip="^one")
    assert not any(kept not in bs.open(converted) for alias, kept in metadata_of(converted).items() if "." in alias)


def test_a_pt_shares_the_storage_of_tied_weights() -> None:
    for model in (Tied(), LanguageModel()):
        (one, two) = [name for name in model.state_dict() if name.endswith("weight")]
        state = torch.load(io.BytesIO(bs.save(model, bytes, format="pt")))
        assert state[one].data_ptr() == state[two].data_ptr()
        assert torch.equal(state[one], model.state_dict()[one])


def test_a_bpk_holds_both_of_two_tied_weights() -> None:
    model = Tied(3)
    for data in (
        bs.save(model, bytes, format="bpk"),
        bs.convert(bs.save(model, bytes, format="safetensors"), bytes, format="bpk", like=model),
    ):
        arrays = bs.read(data)
        for name in ("one.weight", "two.weight"):
            assert np.array_equal(arrays[name], model.one.weight.detach().numpy().T)
        again = Tied(3)
        assert bs.load(data, again).is_success() and torch.equal(again.two.weight, model.one.weight)


def test_an_embedding_tied_to_a_linear_lies_both_ways_in_a_bpk_and_comes_back() -> None:
    model = LanguageModel()
    wanted = {"embed.weight": model.embed.weight.detach().numpy(), "head.weight": model.embed.weight.detach().numpy().T}
    for data in (
        bs.save(model, bytes, format="bpk"),
        bs.convert(bs.save(model, bytes, format="pt"), bytes, format="bpk", like=model),
        bs.convert(bs.save(model, bytes, format="safetensors"), bytes, format="bpk", like=model),
    ):
        same(data, wanted)
        again = LanguageModel()
        assert bs.load(data, again).is_success()
        assert torch.equal(again.head.weight, model.head.weight) and again.head.weight is again.embed.weight


def test_an_embedding_tied_to_a_linear_is_no_alias_in_burns_layout() -> None:
    model = LanguageModel()
    data = bs.save(model, bytes, format="safetensors", dialect="burn")
    arrays = safetensors.numpy.load(data)
    assert np.array_equal(arrays["embed.weight"], model.embed.weight.detach().numpy())
    assert np.array_equal(arrays["head.weight"], model.embed.weight.detach().numpy().T)


def test_tied_norms_have_burns_names_in_the_metadata_too() -> None:
    model = nn.ModuleDict({"a": nn.LayerNorm(3), "b": nn.LayerNorm(3)})
    model["b"].weight = model["a"].weight
    data = bs.save(model, bytes, format="safetensors", dialect="burn")
    said = {alias: kept for alias, kept in metadata_of(data).items() if alias != "dialect"}
    assert said == {"b.gamma": "a.gamma"} or ("b.gamma" in bs.open(data) and not said)
    again = nn.ModuleDict({"a": nn.LayerNorm(3), "b": nn.LayerNorm(3)})
    assert bs.load(data, again).is_success()
