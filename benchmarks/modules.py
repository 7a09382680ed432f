"""The made models as modules of torch, and their files as PyTorch's and Burn's users have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import burnstore as bs
from benchmarks.models import Model

# torch looks through all names below a module once for each of its children, so a flat module of 20,000 takes it seconds.
# Nested like this it takes torch the least time that we found.
_PARTS, _LAYERS = 40, 20


def names(count: int) -> list[str]:
    """The names of so many layers of the module."""
    return [f"layers.{i // (_PARTS * _LAYERS)}.{i // _LAYERS % _PARTS}.{i % _LAYERS}.weight" for i in range(count)]


def module(model: Model, filled: bool = False) -> Any:
    """Linear layers without biases: filled with the model's arrays, which it shares, or with zeros of its own."""
    import torch

    tensors = list(model.tensors().values()) if filled else _zeros(model)
    root = torch.nn.ModuleDict({"layers": torch.nn.ModuleList()})
    for i, tensor in enumerate(tensors):
        if i % (_PARTS * _LAYERS) == 0:
            root["layers"].append(torch.nn.ModuleList())
        if i % _LAYERS == 0:
            root["layers"][-1].append(torch.nn.ModuleList())
        rows, columns = tensor.shape
        layer = torch.nn.Linear(columns, rows, bias=False, device="meta", dtype=tensor.dtype)
        layer.weight = torch.nn.Parameter(tensor)
        root["layers"][-1][-1].append(layer)
    return root


def _zeros(model: Model) -> list[Any]:
    import torch

    dtype = torch.float32 if model.dtype == "F32" else torch.bfloat16
    shapes = (model.shapes[i % len(model.shapes)] for i in range(model.count))
    return [torch.zeros(shape, dtype=dtype) for shape in shapes]


def saved(model: Model, suffix: str) -> Path:
    """The filled module in a file, made once: a `.safetensors` or `.pt` as torch's users save it, a `.bpk` as Burn has it."""
    path = model.folder / f"{model.label}-{model.count}-module{suffix}"
    if path.exists():
        return path
    state = module(model, filled=True)
    if suffix == ".safetensors":
        import safetensors.torch

        safetensors.torch.save_file(state.state_dict(), path, metadata={"format": "pt"})
    elif suffix == ".pt":
        import torch

        torch.save(state.state_dict(), path)
    else:
        bs.save(state, path)
    return path


def check(target: Any, wanted: Iterable[Any], loads: Iterable[Callable[[], object]]) -> None:
    """Each of these loads, by itself, fills the module with these tensors."""
    import torch

    tensors = list(wanted)
    for load in loads:
        with torch.no_grad():
            for parameter in target.parameters():
                parameter.zero_()
        load()
        for parameter, tensor in zip(target.parameters(), tensors, strict=True):
            if not torch.equal(parameter, tensor):
                raise AssertionError("a contender loads wrong values")
