"""How long does it take to save a `.pt`?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import burnstore as bs
from benchmarks.measure import Contender, Row, compare
from benchmarks.models import Bench, remove

GOAL = 2.0


def run(bench: Bench) -> Iterator[Row]:
    """Into a file that does not exist yet; neither side calls fsync, both sum up their CRCs."""
    import torch

    for model in bench.models("large", "small"):
        arrays, tensors = model.arrays, model.tensors()

        def saving(name: str, save: Callable[[Path], object], folder: Path = model.folder) -> Contender:
            path = folder / name
            return Contender(lambda: save(path), lambda: remove(path))

        ways = {
            "arrays": saving("ours.pt", lambda path, arrays=arrays: bs.save(arrays, path, fsync=False)),
            "torch tensors": saving("ours-torch.pt", lambda path, tensors=tensors: bs.save(tensors, path, fsync=False)),
            "torch.save": saving("torch.pt", lambda path, tensors=tensors: torch.save(tensors, path)),
        }
        times = compare(ways, bench.rounds, model.nbytes)
        for ours in ("arrays", "torch tensors"):
            yield Row(f"save {ours} as .pt, no fsync, {model.title}", times[ours], "torch.save", times["torch.save"], GOAL)
