"""How long does it take to have all tensors of a file as arrays of one's own, and how close is that to the machine's limit?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import burnstore as bs
from benchmarks.measure import Row, compare
from benchmarks.models import Bench, Model, warm

GOAL = 1.5
OF_PREADV = 1.2
_PIECE = 8 << 20
_NUMPY = "safetensors (numpy)"
_PREAD = "safetensors (torch, pread)"
_CLONE = "safetensors (torch, cloned)"


def plain_preadv(path: Path) -> np.ndarray:
    """The bytes of a file in fresh memory that asks for huge pages, read on one thread."""
    fd = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        memory = np.empty(size, np.uint8)
        view = memoryview(memory)
        done = 0
        while done < size:
            done += os.preadv(fd, [view[done : done + _PIECE]], done)
    finally:
        os.close(fd)
    return memory


def preadv_and_cut(path: Path, model: Model) -> dict[str, np.ndarray]:
    """The same, and an array for each tensor at a place that is known already: the least that NumPy has to do."""
    memory = plain_preadv(path)
    arrays, at = {}, memory.size - model.nbytes
    shape, dtype = model.shapes[0], model.dtype.numpy_dtype
    step = model.dtype.nbytes(shape)
    for name in model.names():
        arrays[name] = np.ndarray(shape, dtype, memory, at)
        at += step
    return arrays


def run(bench: Bench) -> Iterator[Row]:
    """`bs.read`, which opens, checks and reads, beside the peers and beside a plain read of the same bytes."""
    import safetensors.numpy
    import safetensors.torch

    for model in bench.models():
        path = model.file(".safetensors")
        model.forget_arrays()
        warm(path)
        contenders = {
            "ours": lambda path=path: bs.read(path),
            _NUMPY: lambda path=path: safetensors.numpy.load_file(path),
            _PREAD: lambda path=path: safetensors.torch.load_file(path, backend="pread"),
            _CLONE: lambda path=path: {k: v.clone() for k, v in safetensors.torch.load_file(path).items()},
            "plain preadv": lambda path=path: plain_preadv(path),
        }
        if model.label == "small":
            contenders["preadv, np.ndarray for each"] = lambda path=path, model=model: preadv_and_cut(path, model)
        times = compare(contenders, bench.rounds, model.nbytes + (16 << 20))
        for peer in (_NUMPY, _PREAD, _CLONE):
            yield Row(f"all owned, {model.title}", times["ours"], peer, times[peer], GOAL)
        for limit in list(contenders)[4:]:
            yield Row(f"all owned, {model.title}", times["ours"], limit, times[limit], OF_PREADV, at_most=True)
