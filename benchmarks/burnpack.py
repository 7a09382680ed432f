"""Is Burn's own format as fast and as small in memory as SafeTensors?"""

from __future__ import annotations

from collections.abc import Iterator

import burnstore as bs
from benchmarks.measure import Row, compare
from benchmarks.memory import peak_private_bytes
from benchmarks.models import Bench, warm

LISTING = {"large": 2.0, "small": 3.0, "huge": 2.0}
READING = 1.0
_NOISE = 1.05
_READ = "import sys, burnstore as bs; arrays = bs.read(sys.argv[1])"


def run(bench: Bench) -> Iterator[Row]:
    """The same tensors in both formats."""
    for model in bench.models():
        ours, theirs = model.file(".bpk"), model.file(".safetensors")
        model.forget_arrays()
        warm(ours, theirs)
        listing = compare(
            {"bpk": lambda path=ours: list(bs.open(path)), "safetensors": lambda path=theirs: list(bs.open(path))},
            bench.rounds,
            1 << 20,
        )
        reading = compare(
            {"bpk": lambda path=ours: bs.read(path), "safetensors": lambda path=theirs: bs.read(path)},
            bench.rounds,
            model.nbytes + (16 << 20),
        )
        peer = "our .safetensors"
        yield Row(f"open and list .bpk, {model.title}", listing["bpk"], peer, listing["safetensors"], LISTING[model.label], True)
        yield Row(f"all owned .bpk, {model.title}", reading["bpk"], peer, reading["safetensors"], READING * _NOISE, True)
        peaks = [peak_private_bytes(_READ, str(path)) for path in (ours, theirs)]
        yield Row(f"all owned .bpk, peak, {model.title}", peaks[0], peer, peaks[1], READING * _NOISE, True, "bytes")
