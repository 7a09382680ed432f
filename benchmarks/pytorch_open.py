"""How long does it take to open a `.pt` and list its tensors?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import burnstore as bs
from benchmarks.measure import Row, compare
from benchmarks.models import Bench, Model, warm

# How many times faster than torch.load, plain and with mmap=True.
GOALS = {"large": (10.0, 4.0), "small": (10.0, 10.0)}


def torch_file(model: Model) -> Path:
    """The model as torch saves it; made once."""
    import torch

    path = model.folder / f"{model.label}-{model.count}-torch.pt"
    if not path.exists():
        torch.save(model.tensors(), path)
    return path


def peers(path: Path) -> dict[str, Callable[[], object]]:
    """torch's two ways to open a file."""
    import torch

    return {
        "torch.load": lambda: torch.load(path, weights_only=True),
        "torch.load(mmap=True)": lambda: torch.load(path, weights_only=True, mmap=True),
    }


def listed(path: Path) -> list[str]:
    """The names, as in the same question about SafeTensors."""
    with bs.open(path) as store:
        return list(store)


def run(bench: Bench) -> Iterator[Row]:
    """Warm files; torch knows names and shapes only when it has loaded all."""
    for model in bench.models(*GOALS):
        path = torch_file(model)
        model.forget_arrays()
        warm(path)
        times = compare({"ours": lambda path=path: listed(path), **peers(path)}, bench.rounds, model.nbytes)
        for peer, goal in zip(peers(path), GOALS[model.label], strict=True):
            yield Row(f"open and list .pt, {model.title}", times["ours"], peer, times[peer], goal)
