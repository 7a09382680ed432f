"""How long does it take to open a file and list its tensors?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import burnstore as bs
from benchmarks.measure import Row, compare
from benchmarks.models import Bench, warm

GOALS = {"large": 1.2, "small": 1.5, "huge": 1.2}


def run(bench: Bench) -> Iterator[Row]:
    """`bs.open` beside `safe_open`, names, dtypes and shapes not asked for in either."""
    from safetensors import safe_open

    def theirs(path: Path, framework: str) -> list[str]:
        with safe_open(path, framework=framework) as file:
            return list(file.keys())

    for model in bench.models():
        path = model.file(".safetensors")
        model.forget_arrays()
        warm(path)
        times = compare(
            {
                "ours": lambda path=path: list(bs.open(path)),
                "safetensors (numpy)": lambda path=path: theirs(path, "numpy"),
                "safetensors (torch)": lambda path=path: theirs(path, "pt"),
            },
            bench.rounds,
            1 << 20,
        )
        for peer in ("safetensors (numpy)", "safetensors (torch)"):
            yield Row(f"open and list, {model.title}", times["ours"], peer, times[peer], GOALS[model.label])
