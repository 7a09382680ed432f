"""How long does it take to save, and how close is that to the machine's limit?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import burnstore as bs
from benchmarks.measure import Contender, Row, compare
from benchmarks.models import Bench, Model, remove

GOAL = 1.5
OF_WRITE = 1.15
_LIMIT = "fallocate and write"


def contenders(model: Model, fsync: bool) -> dict[str, Contender]:
    """The ways to save a model, each into a file that does not exist yet; the peers never call fsync."""
    import safetensors.numpy
    import safetensors.torch

    arrays, tensors = model.arrays, model.tensors()

    def saving(name: str, save: Callable[[Path], object]) -> Contender:
        path = model.folder / name
        return Contender(lambda: save(path), lambda: remove(path))

    return {
        "arrays": saving("ours.safetensors", lambda path: bs.save(arrays, path, fsync=fsync)),
        "torch tensors": saving("ours-torch.safetensors", lambda path: bs.save(tensors, path, fsync=fsync)),
        "safetensors (numpy)": saving("numpy.safetensors", lambda path: safetensors.numpy.save_file(arrays, path)),
        "safetensors (torch)": saving("torch.safetensors", lambda path: safetensors.torch.save_file(tensors, path)),
    }


def fallocate_and_write(path: Path, header: bytes, arrays: Mapping[str, Any]) -> None:
    """The same bytes, space reserved, with as few calls as the system allows: nothing is looked at, nothing is checked."""
    buffers = [header, *arrays.values()]
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        os.posix_fallocate(fd, 0, sum(map(len, map(memoryview, [header]))) + sum(a.nbytes for a in arrays.values()))
        for at in range(0, len(buffers), 1000):
            some = buffers[at : at + 1000]
            if sum(b.nbytes if hasattr(b, "nbytes") else len(b) for b in some) < 1 << 30:
                os.writev(fd, some)
            else:
                for buffer in some:
                    os.writev(fd, [buffer])
    finally:
        os.close(fd)


def run(bench: Bench) -> Iterator[Row]:
    """Without fsync, as the peers do it."""
    for model in bench.models():
        file = model.file(".safetensors")
        with open(file, "rb") as opened:
            header = opened.read(os.path.getsize(file) - model.nbytes)
        plain = {name: array.view("u1") for name, array in model.arrays.items()}  # bf16 has no buffer
        path = model.folder / "limit.bin"
        ways = contenders(model, fsync=False)
        ways[_LIMIT] = Contender(
            lambda path=path, header=header, plain=plain: fallocate_and_write(path, header, plain),
            lambda path=path: remove(path),
        )
        times = compare(ways, bench.rounds, model.nbytes)
        for ours, peer in (("arrays", "safetensors (numpy)"), ("torch tensors", "safetensors (torch)")):
            yield Row(f"save {ours}, no fsync, {model.title}", times[ours], peer, times[peer], GOAL)
        yield Row(f"save arrays, no fsync, {model.title}", times["arrays"], _LIMIT, times[_LIMIT], OF_WRITE, at_most=True)
        del plain, ways
