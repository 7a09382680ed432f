"""How long does it take to turn a `.pt` into another format, and how much memory does it need?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import burnstore as bs
from benchmarks.measure import Contender, Row, compare
from benchmarks.models import Bench, remove, warm
from benchmarks.pytorch_open import torch_file

GOAL = 3.0
_PEER = "torch.load(mmap) + save_file"


def _through_torch(source: Path, target: Path) -> None:
    import safetensors.torch
    import torch

    safetensors.torch.save_file(torch.load(source, weights_only=True, mmap=True), target)


def run(bench: Bench) -> Iterator[Row]:
    """The tensors as they lie; without fsync, as the peer does it."""
    for model in bench.models("large", "small"):
        path = torch_file(model)
        model.forget_arrays()
        warm(path)
        ways = {}
        for suffix in (".safetensors", ".bpk"):
            target = model.folder / f"converted{suffix}"
            ways[suffix] = Contender(
                lambda path=path, target=target: bs.convert(path, target, dialect="keep", fsync=False),
                lambda target=target: remove(target),
            )
        other = model.folder / "through-torch.safetensors"
        ways[_PEER] = Contender(lambda path=path, other=other: _through_torch(path, other), lambda other=other: remove(other))
        times = compare(ways, bench.rounds, model.nbytes)
        for suffix in (".safetensors", ".bpk"):
            yield Row(f".pt to {suffix}, no fsync, {model.title}", times[suffix], _PEER, times[_PEER], GOAL)
