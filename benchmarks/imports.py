"""How long after NumPy was imported is the first file open?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Contender, Row, compare
from benchmarks.memory import environment
from benchmarks.models import Bench, Model

GOAL_SECONDS = 0.060
_OURS = """
import sys, numpy, time
before = time.perf_counter()
import burnstore as bs
list(bs.open(sys.argv[1]))
print(time.perf_counter() - before)
"""
_THEIRS = """
import sys, numpy, time
before = time.perf_counter()
from safetensors import safe_open
with safe_open(sys.argv[1], framework="numpy") as file:
    list(file.keys())
print(time.perf_counter() - before)
"""


def _timed(code: str, path: str) -> float:
    done = subprocess.run([sys.executable, "-c", code, path], env=environment(), capture_output=True, text=True, check=True)
    return float(done.stdout)


def run(bench: Bench) -> Iterator[Row]:
    """`import burnstore` and the first `bs.open` together, in a fresh process that has NumPy already."""
    model: Model = bench.model("large", 10)
    bpk, safetensors = str(model.file(".bpk")), str(model.file(".safetensors"))
    times = compare(
        {
            "bpk": Contender(lambda: _timed(_OURS, bpk), own_clock=True),
            "safetensors": Contender(lambda: _timed(_OURS, safetensors), own_clock=True),
            "peer": Contender(lambda: _timed(_THEIRS, safetensors), own_clock=True),
        },
        bench.rounds,
        1 << 20,
    )
    yield Row("import and first open, .bpk", times["bpk"], "60 ms", GOAL_SECONDS, 1.0, at_most=True)
    yield Row("import and first open, .safetensors", times["safetensors"], "60 ms", GOAL_SECONDS, 1.0, at_most=True)
    yield Row("import and first open, .safetensors", times["safetensors"], "safetensors (numpy)", times["peer"], None)
