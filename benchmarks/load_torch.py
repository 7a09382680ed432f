"""How long does it take to load a file into a torch model that exists, and how close is that to copying the bytes?"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import burnstore as bs
from benchmarks.measure import Row, compare
from benchmarks.models import Bench, Model, warm
from benchmarks.modules import check, module, saved
from burnstore.devices.threads import in_threads, threads_for

# How many times faster than torch's users are; and within how much of a copy of the same bytes.
GOALS = {"large": 1.2, "small": 2.0, "huge": 1.2}
OF_MEMCPY = 1.2
_PEERS = {".safetensors": "load_file, load_state_dict", ".pt": "torch.load(mmap), load_state_dict"}
_PIECE = 8 << 20
# Nobody here needs memory of its own for the weights.
_TOUCH = 64 << 20

Way = Callable[[], object]


def loads(path: Path, target: Any) -> dict[str, Way]:
    """Ours and the way that torch has for this file."""
    import safetensors.torch
    import torch

    def theirs() -> object:
        if path.suffix == ".pt":
            return target.load_state_dict(torch.load(path, weights_only=True, mmap=True))
        return target.load_state_dict(safetensors.torch.load_file(path))

    return {"ours": lambda: bs.load(path, target), _PEERS[path.suffix]: theirs}


def copies(model: Model, target: Any) -> dict[str, Way]:
    """The least that there is to do: the same bytes from memory that is ready into the same parameters."""
    bytes_of = [tensor.detach().view(-1).numpy().view(np.uint8) for tensor in _readable(model.tensors().values())]
    memory = np.concatenate(bytes_of)
    pieces: list[tuple[int, int, int]] = []
    begin = memory.ctypes.data
    for parameter in target.parameters():
        size, out = parameter.nbytes, parameter.data_ptr()
        pieces += [(out + at, begin + at, min(_PIECE, size - at)) for at in range(0, size, _PIECE)]
        begin += size

    def copy(threads: int) -> int:
        in_threads(lambda piece: ctypes.memmove(*piece), pieces, threads)
        return memory.size  # which keeps it alive

    return {"memcpy": lambda: copy(threads_for(model.nbytes)), "memcpy, one thread": lambda: copy(1)}


def _readable(tensors: Any) -> Iterator[Any]:
    import torch

    return (tensor if tensor.dtype == torch.float32 else tensor.view(torch.int16) for tensor in tensors)


def rewrite(path: Path) -> None:
    """Bring a file into the page cache as a program that has just written it does: in small pages, slower to map."""
    copied, block = path.with_suffix(".copied"), memoryview(bytearray(1 << 20))
    with open(path, "rb", 0) as old, open(copied, "wb", 0) as new:
        while count := old.readinto(block):
            new.write(block[:count])
        os.fsync(new.fileno())
    os.replace(copied, path)


def _rows(model: Model, question: str, times: Mapping[str, float]) -> Iterator[Row]:
    for suffix, peer in _PEERS.items():
        title = f"{question.replace('FILE', suffix)}, {model.title}"
        ours = times[f"{suffix} ours"]
        yield Row(title, ours, peer, times[f"{suffix} {peer}"], GOALS[model.label])
        # 20,000 names and modules are looked at in Python, and the bytes are next to nothing beside that
        goal = None if model.label == "small" else OF_MEMCPY
        yield Row(title, ours, "memcpy", times["memcpy"], goal, at_most=True)
        yield Row(title, ours, "memcpy, one thread", times["memcpy, one thread"], None, at_most=True)


def run(bench: Bench) -> Iterator[Row]:
    """Warm files, read in large pieces or just written; `memcpy` has as many threads as a load takes by itself."""
    for model in bench.models():
        target = module(model)
        paths = [saved(model, suffix) for suffix in _PEERS]
        ways = {f"{path.suffix} {name}": way for path in paths for name, way in loads(path, target).items()}
        ways |= copies(model, target)
        check(target, model.tensors().values(), ways.values())
        model.forget_arrays()
        warm(*paths)
        yield from _rows(model, "load FILE into torch", compare(ways, bench.rounds, _TOUCH))
        if model.label == "large":
            for path in paths:
                rewrite(path)
            yield from _rows(model, "load FILE just written into torch", compare(ways, bench.rounds, _TOUCH))
