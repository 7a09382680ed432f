"""Numbers in names: closed up for Burn, which counts its lists without gaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import burnstore as bs
from tests.sources.handmade import burnpack_bytes, safetensors_bytes
from tests.verbs.laid_out import pickled, same


def lists(*names: str) -> dict[str, np.ndarray]:
    return {name: np.full(1, at, np.float32) for at, name in enumerate(names)}


GAPS = lists("a.0.bias", "a.2.bias", "a.4.inner.1.bias", "b.3.bias", "b.9.bias")


def test_each_list_is_closed_up_and_nothing_else() -> None:
    with pytest.warns(bs.errors.BurnstoreWarning, match="map_indices_contiguous=False"):
        made = bs.convert(bs.save(GAPS, bytes, format="pt"), bytes, format="bpk")
    assert {name: float(value[0]) for name, value in bs.read(made).items()} == {
        "a.0.bias": 0, "a.1.bias": 1, "a.2.inner.0.bias": 2, "b.0.bias": 3, "b.1.bias": 4,
    }  # fmt: skip


@pytest.mark.parametrize(("layer", "place"), [(2, 1), (3, 2)])
@pytest.mark.parametrize("way", ["save", "convert"])
def test_a_part_of_a_list_has_the_numbers_that_it_has_in_the_whole(way: str, layer: int, place: int) -> None:
    """Otherwise Burn, or we, would load the third layer into the first."""
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), nn.Linear(2, 2))
    with pytest.warns(bs.errors.BurnstoreWarning):
        if way == "save":
            part = bs.save(model, bytes, format="bpk", only=f"^{layer}")
        else:
            part = bs.convert(pickled(model), bytes, format="bpk", only=f"^{layer}")
    assert set(bs.open(part)) == {f"{place}.weight", f"{place}.bias"}
    other = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), nn.Linear(2, 2))
    bs.load(part, other, partial=True)
    loaded = [at for at in (0, 2, 3) if torch.equal(other[at].weight, model[layer].weight)]
    assert loaded == [layer]


def test_lists_that_a_pattern_names_keep_their_numbers() -> None:
    made = bs.convert(bs.save(GAPS, bytes, format="pt"), bytes, format="bpk", map_indices_contiguous_except="^b$")
    assert set(bs.open(made)) == {"a.0.bias", "a.1.bias", "a.2.inner.0.bias", "b.3.bias", "b.9.bias"}


@pytest.mark.parametrize("format", ["pt", "safetensors"])
def test_lists_are_closed_up_only_for_burn_unless_it_is_said(format: str) -> None:
    for source in (bs.save(GAPS, bytes, format="pt"), bs.save(GAPS, bytes, format="safetensors")):
        assert set(bs.open(bs.convert(source, bytes, format=format))) == set(GAPS)
        assert "b.1.bias" in bs.open(bs.convert(source, bytes, format=format, map_indices_contiguous=True))
    assert set(bs.open(bs.save(GAPS, bytes, format=format))) == set(GAPS)


def test_from_burn_to_burn_keeps_the_numbers() -> None:
    data = burnpack_bytes({"a.0.bias": ("F32", (1,), bytes(4)), "a.2.bias": ("F32", (1,), bytes(4))})
    assert set(bs.open(bs.convert(data, bytes, format="bpk"))) == {"a.0.bias", "a.2.bias"}
    assert set(bs.open(bs.save(GAPS, bytes, format="bpk"))) == set(GAPS)


@pytest.mark.parametrize("said", [None, True])
def test_one_shard_of_several_keeps_its_numbers(tmp_path: Path, said: bool | None) -> None:
    """The layers between are in the other shards."""
    path = tmp_path / "model-00002-of-00003.safetensors"
    path.write_bytes(safetensors_bytes(GAPS, {"format": "pt"}))
    made = bs.convert(path, bytes, format="bpk", map_indices_contiguous=said)
    assert set(bs.open(made)) == set(GAPS)
    assert set(bs.open(path, map_indices_contiguous=True)) == set(GAPS)


def test_all_shards_together_are_closed_up(tmp_path: Path) -> None:
    bs.save(GAPS, tmp_path / "m.safetensors", shard_size=8, metadata={"format": "pt"})
    with pytest.warns(bs.errors.BurnstoreWarning):
        made = bs.convert(tmp_path / "m.safetensors", bytes, format="bpk")
    assert "b.1.bias" in bs.open(made)


def test_a_number_without_axes_has_one_for_burn_and_none_is_lost() -> None:
    data = bs.save({"bn.num_batches_tracked": np.array(9)}, bytes, format="pt")
    same(bs.convert(data, bytes, format="bpk"), {"bn.num_batches_tracked": np.array([9])})
    assert bs.open(bs.convert(data, bytes, format="safetensors"))["bn.num_batches_tracked"].shape == ()


def test_a_part_whose_numbers_were_kept_goes_to_those_numbers() -> None:
    def five() -> nn.Sequential:
        return nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))

    model, other = five(), five()
    part = bs.save(model, bytes, format="bpk", only=r"^2\.", map_indices_contiguous=False)
    assert set(bs.open(part)) == {"2.weight", "2.bias"} and bs.open(part).metadata["indices"] == "kept"
    bs.load(part, other, partial=True)
    assert torch.equal(other[2].weight, model[2].weight) and not torch.equal(other[4].weight, model[2].weight)
    whole = bs.save(model, bytes, format="bpk", map_indices_contiguous=False)
    bs.load(whole, other)
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in model.state_dict().items())
