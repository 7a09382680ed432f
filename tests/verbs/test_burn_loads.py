"""Models of torch's that burnstore saved, against the manifests of the real Burn, and loaded by it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import burnstore as bs
from tests.sources.handmade import burnpack_parts
from tests.torch_zoo import RAMP, manifest, ramp_zoo


def test_burn_holds_what_torchs_model_held(tmp_path: Path) -> None:
    """Every name, dtype, shape and byte of Burn's own manifest of the same values."""
    bs.save(ramp_zoo(), tmp_path / "zoo.bpk", skip=r"num_batches_tracked$")
    bs.convert(RAMP / "zoo.pytorch.safetensors", tmp_path / "again.safetensors", from_dialect="pytorch")
    header, data = burnpack_parts((tmp_path / "zoo.bpk").read_bytes())
    entries: dict[str, Any] = header["tensors"]  # type: ignore[assignment]
    told = manifest(RAMP / "zoo.manifest.json")
    found = {
        name: (entry["shape"], hashlib.sha256(data[slice(*entry["data_offsets"])]).hexdigest()) for name, entry in entries.items()
    }
    assert found == {path: (row["shape"], row["sha256"]) for path, row in told.items()}


@pytest.mark.parametrize("version", ["0.20", "0.22"])
@pytest.mark.parametrize("suffix", ["bpk", "safetensors"])
def test_burn_loads_a_model_of_torchs_that_was_saved_for_it(oracle: Any, tmp_path: Path, suffix: str, version: str) -> None:
    path = tmp_path / f"zoo.{suffix}"
    bs.save(ramp_zoo(), path, dialect="burn", for_burn=version)  # type: ignore[arg-type]
    answer = oracle(version, "load", "zoo", path, {"values": "seed42"})
    assert "error" not in answer, answer["error"]
    told = manifest(RAMP / "zoo.manifest.json")
    assert {row["path"]: row["sha256"] for row in answer["manifest"]} == {path: row["sha256"] for path, row in told.items()}


@pytest.mark.parametrize("version", ["0.20", "0.22"])
@pytest.mark.parametrize("suffix", ["bpk", "safetensors"])
def test_burn_loads_the_model_net_from_torch(oracle: Any, tmp_path: Path, suffix: str, version: str) -> None:
    class Convolutions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(2, 2, 2)
            self.conv2 = nn.Conv2d(2, 2, 2, bias=False)

    torch.manual_seed(5)
    model, path = Convolutions(), tmp_path / f"net.{suffix}"
    bs.save(model, path)
    answer = oracle(version, "load", "net", path, {"values": "ramp"})
    assert "error" not in answer, answer["error"]
    wanted = {name: hashlib.sha256(tensor.numpy().tobytes()).hexdigest() for name, tensor in model.state_dict().items()}
    assert {row["path"]: row["sha256"] for row in answer["manifest"]} == wanted


@pytest.mark.parametrize("like", ["model", "whole model"])
def test_burn_loads_what_was_converted_from_a_pt(oracle: Any, tmp_path: Path, like: str) -> None:
    model = ramp_zoo()
    torch.save(model if like == "whole model" else model.state_dict(), tmp_path / "zoo.pt")
    bs.convert(tmp_path / "zoo.pt", tmp_path / "zoo.bpk", like=model if like == "model" else None)
    answer = oracle("0.22", "load", "zoo", tmp_path / "zoo.bpk", {"values": "seed42"})
    assert "error" not in answer, answer["error"]
    told = manifest(RAMP / "zoo.manifest.json")
    assert {row["path"]: row["sha256"] for row in answer["manifest"]} == {path: row["sha256"] for path, row in told.items()}
