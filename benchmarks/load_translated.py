"""How long does it take to load Burn's weights into a torch model, when the weights of every Linear have to be transposed?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import burnstore as bs
from benchmarks.measure import Row, compare
from benchmarks.models import Bench, Model, warm
from benchmarks.modules import check, module, saved

GOAL = 1.5
# The second is a fifth of the huge model: its weights are needed three times.
_MODELS = (("large", None), ("huge", 30), ("small", None))
_NEW = "torch .t().contiguous()"
_READY = "torch copy_(x.t())"
_WHOLE = "load_file, .t(), load_state_dict"


def _burns_layout(model: Model) -> dict[str, Any]:
    """The tensors by name as Burn's file has them."""
    return {name: parameter.detach().t().contiguous() for name, parameter in module(model, filled=True).named_parameters()}


def _torch_file(model: Model, tensors: dict[str, Any]) -> Path:
    """The same tensors in a file that torch's users can read."""
    import safetensors.torch

    path = model.folder / f"{model.label}-{model.count}-transposed.safetensors"
    safetensors.torch.save_file(tensors, path)
    return path


def _ways(path: Path, theirs: Path, tensors: dict[str, Any], target: Any) -> dict[str, Callable[[], object]]:
    """Ours reads the file too; of torch's ways, only the last one does. The others have the tensors in memory."""
    import safetensors.torch
    import torch

    parameters = [parameter.detach() for parameter in target.parameters()]

    def into_ready() -> None:
        with torch.no_grad():
            for parameter, tensor in zip(parameters, tensors.values(), strict=True):
                parameter.copy_(tensor.t())

    return {
        "ours": lambda: bs.load(path, target),
        _READY: into_ready,
        _WHOLE: lambda: target.load_state_dict({k: v.t() for k, v in safetensors.torch.load_file(theirs).items()}),
        _NEW: lambda: [tensor.t().contiguous() for tensor in tensors.values()],
    }


def run(bench: Bench) -> Iterator[Row]:
    """Warm files; of 20,000 small weights, only what reads a file too is beside ours."""
    for label, count in _MODELS:
        if label not in bench.labels:
            continue
        model = bench.model(label, count)
        path, tensors, target = saved(model, ".bpk"), _burns_layout(model), module(model)
        theirs = _torch_file(model, tensors)
        ways = _ways(path, theirs, tensors, target)
        check(target, model.tensors().values(), [ways[name] for name in ("ours", _READY, _WHOLE)])
        model.forget_arrays()
        warm(path, theirs)
        times = compare(ways, bench.rounds, model.nbytes)
        for peer in (_WHOLE,) if label == "small" else (_NEW, _READY, _WHOLE):
            goal = GOAL if peer == _NEW else None
            yield Row(f"load .bpk into torch, transposed, {model.title}", times["ours"], peer, times[peer], goal)
