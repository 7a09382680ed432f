"""How long does it take to have all values of a `.pt`, as views and as arrays of one's own?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import burnstore as bs
from benchmarks.measure import Contender, Row, compare
from benchmarks.models import Bench, warm
from benchmarks.pytorch_open import torch_file

TOUCHED, OWNED = 1.0, 3.0
_PAGE = 4096


def touch(arrays: dict[str, Any]) -> int:
    """One byte of each page of each array."""
    return sum(int(array.reshape(-1).view(np.uint8)[::_PAGE].sum()) for array in arrays.values())


def cold(path: Path) -> None:
    """Drop the file from the page cache."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def ways(path: Path) -> dict[str, Callable[[], object]]:
    """Views that are touched, and owned arrays; torch's plain load is the peer of the latter."""
    import torch

    def through_torch() -> int:
        return touch({name: tensor.numpy() for name, tensor in torch.load(path, weights_only=True, mmap=True).items()})

    return {
        "views": lambda: touch(bs.read(path, copy=False)),
        "torch.load(mmap=True)": through_torch,
        "owned": lambda: bs.read(path),
        "torch.load": lambda: torch.load(path, weights_only=True),
    }


def run(bench: Bench) -> Iterator[Row]:
    """Float32 only, of which NumPy and torch make the same arrays."""
    for model in bench.models("large", "small"):
        path = torch_file(model)
        model.forget_arrays()
        warm(path)
        times = compare(ways(path), bench.rounds, model.nbytes)
        mapped = "torch.load(mmap=True)"
        yield Row(f"touch all of a .pt, warm, {model.title}", times["views"], mapped, times[mapped], TOUCHED)
        yield Row(f"read a .pt into owned arrays, {model.title}", times["owned"], "torch.load", times["torch.load"], OWNED)
        drop = lambda path=path: cold(path)  # noqa: E731
        both = {name: Contender(way, drop) for name, way in ways(path).items() if name in ("views", mapped)}
        times = compare(both, bench.rounds, model.nbytes)
        yield Row(f"touch all of a .pt, cold, {model.title}", times["views"], mapped, times[mapped], TOUCHED)
