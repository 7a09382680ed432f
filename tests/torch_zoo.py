"""A torch model with the layers, names and shapes of the model `zoo` that the real Burn saved: see `data/burn/*/ramp/zoo.*`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

import burnstore as bs

# What Burn's own adapter forgets to rename for PyTorch.
BURN_FORGETS = {
    "instance_norm.gamma": "instance_norm.weight",
    "instance_norm.beta": "instance_norm.bias",
    "prelu.alpha": "prelu.weight",
}

RAMP = Path(__file__).parent / "data" / "burn" / "v0.22.1" / "ramp"


class Depthwise(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.depth = nn.Conv2d(2, 2, 3, groups=2)
        self.point = nn.Conv2d(2, 3, 1, bias=False)


class Zoo(nn.Module):
    """One of every layer. The variants of Burn's enums are modules of their own, as they are in Burn's paths."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 3)
        self.linear_no_bias = nn.Linear(3, 4, bias=False)
        self.embedding = nn.Embedding(7, 5)
        self.conv1d = nn.Conv1d(2, 3, 3)
        self.conv2d = nn.Conv2d(2, 4, (3, 2))
        self.conv3d = nn.Conv3d(2, 2, (2, 3, 2))
        self.conv_t1d = nn.ConvTranspose1d(2, 3, 3)
        self.conv_t2d = nn.ConvTranspose2d(2, 3, (3, 2))
        self.conv_t3d = nn.ConvTranspose3d(2, 3, (2, 3, 2))
        self.batch_norm = nn.BatchNorm1d(4)
        self.layer_norm = nn.LayerNorm(6)
        self.group_norm = nn.GroupNorm(2, 4)
        self.instance_norm = nn.InstanceNorm2d(4, affine=True)
        self.rms_norm = nn.RMSNorm(6)
        self.prelu = nn.PReLU(4)
        self.stack = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 2), nn.Linear(2, 4)])
        self.pair = nn.ModuleList([nn.Linear(4, 2), nn.LayerNorm(2)])
        self.fixed = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 3)])
        self.maybe = nn.Linear(3, 1)
        self.base = nn.ModuleDict({"BaseConv": nn.Conv2d(1, 2, 3)})
        self.depthwise = nn.ModuleDict({"Depthwise": Depthwise()})
        self.register_buffer("steps", torch.zeros(6, dtype=torch.int32))
        self.register_buffer("mask", torch.zeros(2, 3, dtype=torch.bool))
        self.scale = nn.Parameter(torch.zeros(1))
        self.empty = nn.Parameter(torch.zeros(0, 3))


def ramp_zoo() -> Zoo:
    """The model with the values that Burn wrote for PyTorch, brought in by torch alone."""
    model = Zoo()
    state = safetensors.torch.load_file(RAMP / "zoo.pytorch.safetensors")
    named = {_with_variant(BURN_FORGETS.get(name, name)): tensor for name, tensor in state.items()}
    model.load_state_dict(named)  # strictly; torch itself does without the count of batches
    return model


def _with_variant(name: str) -> str:
    return name.replace("base.", "base.BaseConv.").replace("depthwise.", "depthwise.Depthwise.")


def manifest(path: Path) -> dict[str, dict[str, Any]]:
    """What Burn says of a file, by path; each with the `containers` of the module."""
    rows = json.loads(path.read_text())
    for row in rows:
        row["containers"] = json.loads(row["context"].partition("container_stack: ")[2].removesuffix(" }"))
    return {row["path"]: row for row in rows}


def collected(file: Path, told: Path) -> list[bs.TensorSnapshot]:
    """The tensors of a file as Burn's module would give them: with the containers that its manifest says."""
    store, rows = bs.open(file), manifest(told)
    return [store[path].changed(containers=tuple(row["containers"])) for path, row in rows.items()]
