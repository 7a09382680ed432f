"""What a file says of itself after `save` and `convert`."""

from __future__ import annotations

import numpy as np
import pytest

import burnstore as bs
from tests.sources.handmade import safetensors_bytes
from tests.verbs.laid_out import Net, metadata_of, random_net


@pytest.fixture(scope="module")
def net() -> Net:
    return random_net()


PT = {"fc.weight": np.zeros((3, 4), np.float32)}
CONV = {"conv.weight": np.zeros((2, 2, 3, 3), np.float32)}


def test_tensors_in_hand_get_no_metadata_that_nobody_gave() -> None:
    for format in ("bpk", "safetensors"):
        for tensors in (CONV, list(bs.open(CONV).values()), {"conv": {"weight": CONV["conv.weight"]}}):
            assert metadata_of(bs.save(tensors, bytes, format=format)) == {}


def test_a_model_says_whose_it_is_where_its_format_does_not(net: Net) -> None:
    assert metadata_of(bs.save(net, bytes, format="safetensors")) == {"dialect": "pytorch", "format": "pt"}
    assert metadata_of(bs.save(net, bytes, format="bpk", map_indices_contiguous=False)) == {}
    assert dict(bs.open(bs.save(net, bytes, format="pt")).metadata) == {}
    made = bs.save(net, bytes, format="safetensors", dialect="burn", map_indices_contiguous=False)
    assert metadata_of(made) == {"dialect": "burn"}


def test_the_dialect_is_written_only_where_it_is_known_and_not_the_formats_own() -> None:
    for_pytorch = bs.save(CONV, bytes, format="pt")
    assert metadata_of(bs.convert(for_pytorch, bytes, format="safetensors")) == {"dialect": "pytorch"}
    assert metadata_of(bs.convert(for_pytorch, bytes, format="bpk")) == {}
    plain = safetensors_bytes(CONV)
    assert metadata_of(bs.convert(plain, bytes, format="safetensors")) == {}
    assert metadata_of(bs.save(CONV, bytes, format="safetensors", dialect="burn")) == {"dialect": "burn"}
    assert metadata_of(bs.save(CONV, bytes, format="bpk", dialect="burn")) == {}


def test_what_a_file_says_of_itself_goes_along_and_what_the_caller_says_wins() -> None:
    data = bs.save(CONV, bytes, format="safetensors", metadata={"epoch": "3", "by": "me", "format": "pt"})
    made = metadata_of(bs.convert(data, bytes, format="bpk", metadata={"epoch": "4"}))
    assert made["epoch"] == "4" and made["by"] == "me" and "dialect" not in made


def test_a_file_in_burns_layout_does_not_say_that_it_is_pytorchs() -> None:
    data = safetensors_bytes(PT, {"format": "pt"})
    made = bs.convert(data, bytes, format="safetensors", to_dialect="burn", kinds={"fc": "Linear"})
    assert metadata_of(made) == {"dialect": "burn"}


def test_a_stores_three_keys_stand_alone_unless_an_adapter_made_it_another_frameworks(net: Net) -> None:
    three = {"format": "safetensors", "producer": "burn", "version": "0.22.1"}
    store = bs.BurnpackStore.from_bytes(None)
    bs.save(net, store, map_indices_contiguous=False)
    assert metadata_of(store.get_bytes()) == {**three, "format": "burnpack"}
    for_pytorch = bs.SafetensorsStore.from_bytes(None).with_to_adapter(bs.BurnToPyTorchAdapter())
    bs.save(net, for_pytorch)
    assert metadata_of(for_pytorch.get_bytes()) == {**three, "dialect": "pytorch"}
