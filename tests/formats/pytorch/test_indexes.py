"""Indexes of PyTorch shards, as transformers wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import burnstore as bs
from burnstore.errors import ConfigError


@pytest.fixture
def index(tmp_path: Path) -> Path:
    shards = {"a": "pytorch_model-00001-of-00002.bin", "b": "pytorch_model-00002-of-00002.bin"}
    for value, (name, shard) in enumerate(shards.items()):
        torch.save({name: torch.full((2,), float(value))}, tmp_path / shard)
    path = tmp_path / "pytorch_model.bin.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 16}, "weight_map": shards}))
    return path


def test_a_pytorch_store_opens_an_index(index: Path) -> None:
    store = bs.PytorchStore.from_file(index)
    assert {name: snapshot.numpy().tolist() for name, snapshot in store.items()} == {"a": [0, 0], "b": [1, 1]}


def test_the_format_of_an_index_may_be_said(index: Path) -> None:
    assert bs.open(index, format="pytorch")["b"].numpy().tolist() == [1, 1]


def test_an_index_has_no_config_and_says_which_file_has(index: Path) -> None:
    with pytest.raises(ConfigError, match=r"this is an index of shards.*read_config takes one of its files"):
        bs.read_config(index)
