"""How long does a save take that survives a power cut, beside peers that do not try?"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Row, compare
from benchmarks.models import Bench
from benchmarks.save import contenders

GOAL = 1.0


def run(bench: Bench) -> Iterator[Row]:
    """`bs.save` as it is by default: fsync of the file and of the folder. The peers leave the bytes in the page cache."""
    for model in bench.models():
        times = compare(contenders(model, fsync=True), bench.rounds, model.nbytes)
        for ours, peer in (("arrays", "safetensors (numpy)"), ("torch tensors", "safetensors (torch)")):
            yield Row(f"save {ours}, durable, {model.title}", times[ours], f"{peer}, no fsync", times[peer], GOAL)
