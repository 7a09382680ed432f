"""Timing, statistics and the table.

What makes figures wrong, and what is done about it:

    memory that the host took back is slow to touch     as much as a sample needs is touched and freed before each sample
    one contender runs while the machine is busy        all take turns, in an order that is shuffled each round
    the page cache depends on how a file came into it   `models.warm` brings each file in anew, in the same way
    single samples reach five times the median          seven rounds at least, more while they are cheap, and the median of them
    the garbage collector                               left on for everybody, and run before each sample
    which leaves the processor's caches cold            what takes less than 10 ms is called several times in a sample
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# More rounds than the least are taken until this much time went by.
_SECONDS = 2.0
_MOST_ROUNDS = 41
# Fewer rounds than these are a check that the contenders work, and each call counts once.
_MEASURED = 7
_SAMPLE_SECONDS = 0.01
_shuffle = random.Random(0).shuffle


@dataclass(frozen=True, slots=True)
class Contender:
    """Something to be timed; `prepare` is not. With a clock of its own, `run` returns the seconds."""

    run: Callable[[], object]
    prepare: Callable[[], object] | None = None
    own_clock: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: ours beside a peer, or beside a bound.

    `ratio` is how many times faster we are where `goal` is a least one, and how many times slower (or larger) where it is a
    most one. A goal of None is for information.
    """

    question: str
    ours: float
    against: str
    theirs: float
    goal: float | None
    at_most: bool = False
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """Theirs by ours; ours by theirs where the goal is an upper bound."""
        return self.ours / self.theirs if self.at_most else self.theirs / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the goal was met; None where there is none."""
        if self.goal is None:
            return None
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal


def compare(contenders: Mapping[str, Callable[[], object] | Contender], rounds: int, touch: int) -> dict[str, float]:
    """The median seconds of each contender; `touch` is how many bytes of memory one sample needs at most."""
    runs = {name: one if isinstance(one, Contender) else Contender(one) for name, one in contenders.items()}
    touch = touch if rounds >= _MEASURED else 0
    samples: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    calls = {}
    for name in order:  # the first sample pays for imports, caches and pages
        once = _sample(runs[name], touch)
        if rounds >= _MEASURED and not runs[name].own_clock:
            once = _sample(runs[name], touch)
        calls[name] = (
            1
            if runs[name].prepare or runs[name].own_clock or rounds < _MEASURED
            else max(1, min(100, round(_SAMPLE_SECONDS / once)))
        )
    started, done = time.perf_counter(), 0
    while done < rounds or (rounds >= _MEASURED and done < _MOST_ROUNDS and time.perf_counter() - started < _SECONDS):
        _shuffle(order)
        for name in order:
            samples[name].append(_sample(runs[name], touch, calls[name]))
        done += 1
    return {name: statistics.median(times) for name, times in samples.items()}


def _sample(contender: Contender, touch: int, calls: int = 1) -> float:
    if contender.prepare is not None:
        contender.prepare()
    if touch:
        _touch(touch)
        gc.collect()
    result: object = None
    before = time.perf_counter()
    for _ in range(calls):
        result = contender.run()
    taken = (time.perf_counter() - before) / calls
    return float(str(result)) if contender.own_clock else taken


def _touch(nbytes: int) -> None:
    import numpy as np

    np.empty(nbytes, np.uint8).fill(1)


def table(rows: list[Row]) -> str:
    """The rows as text."""
    head = ("question", "ours", "against", "theirs", "ratio", "goal", "met")
    lines = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def line(row: Row) -> str:
    """One row by itself."""
    return "  ".join(filter(None, _cells(row)))


def _cells(row: Row) -> tuple[str, ...]:
    goal = "" if row.goal is None else f"{'≤' if row.at_most else '≥'} {row.goal:g}"
    met = "" if row.met is None else "yes" if row.met else "NO"
    return row.question, _text(row.ours, row.unit), row.against, _text(row.theirs, row.unit), f"{row.ratio:.2f}", goal, met


def _text(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 1e6:.1f} MB"
    if unit == "times":
        return f"x {value:.2f}"
    for size, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= size:
            return f"{value / size:.3g} {name}" if value < 100 * size else f"{value / size:.0f} {name}"
    return f"{value * 1e6:.0f} us"


def say(text: str) -> None:
    """A word on what is being measured, apart from the table."""
    print(text, file=sys.stderr, flush=True)
