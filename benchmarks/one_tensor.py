"""How long does it take to get one tensor out of a file of many?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import burnstore as bs
from benchmarks.measure import Row, compare
from benchmarks.models import Bench, warm

GOAL = 1.5


def run(bench: Bench) -> Iterator[Row]:
    """Opening included. The peer's NumPy arrays are owned, so ours are; its torch tensors are views of the file, so ours are."""
    from safetensors import safe_open

    def theirs(path: Path, name: str, framework: str) -> object:
        with safe_open(path, framework=framework) as file:
            return file.get_tensor(name)

    for model in bench.models():
        path, name = model.file(".safetensors"), model.names()[model.count // 2]
        model.forget_arrays()
        warm(path)
        contenders = {
            "owned": lambda path=path, name=name: bs.open(path)[name].numpy(copy=True),
            "view": lambda path=path, name=name: bs.open(path)[name].numpy(),
            "safetensors (numpy)": lambda path=path, name=name: theirs(path, name, "numpy"),
            "safetensors (torch)": lambda path=path, name=name: theirs(path, name, "pt"),
        }
        times = compare(contenders, bench.rounds, 2 * model.nbytes // model.count + (1 << 20))
        for way, peer in (("owned", "safetensors (numpy)"), ("view", "safetensors (torch)")):
            yield Row(f"one tensor, {way}, {model.title}", times[way], peer, times[peer], GOAL)
