"""How fast is the real Burn at the same, and how do both grow with the number of tensors?

Burn is a program in the folder that BURNSTORE_SHARED names; without it there is nothing to compare with, and no rows.
Its loads are those that touch what they loaded, its saves are of tensors in memory into a new `.bpk`, without fsync;
it takes the time itself, after one repetition that does not count. Ours are `bs.read` and `bs.save`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import burnstore as bs
from benchmarks.measure import Contender, Row, compare, say
from benchmarks.models import Bench, Model, remove, warm

GOAL = 3.0
_VERSIONS = ("0.20", "0.22")


def run(bench: Bench) -> Iterator[Row]:
    """150 large tensors and 2,000 small ones; then what twice as many small ones cost."""
    shared = os.environ.get("BURNSTORE_SHARED")
    if not shared:
        say("burn: BURNSTORE_SHARED is not set, so there is no Burn to compare with")
        return
    oracle = Path(shared, "oracle")
    few, many = (100, 200) if bench.quick else (1_000, 2_000)
    times = {}
    for model, goal in ((bench.model("large"), GOAL), (bench.model("small", few), None), (bench.model("small", many), None)):
        times[model.count] = found = _measure(model, bench, oracle)
        for task in (".safetensors load", ".bpk load", ".bpk save"):
            for version in _VERSIONS:
                ours, burns = found[task], found[f"{task} {version}"]
                yield Row(f"{task}, {model.title}", ours, f"Burn {version}", burns, goal)
        model.forget_arrays()
    for task in (".safetensors load", ".bpk load", ".bpk save"):
        for version in _VERSIONS:
            key = f"{task} {version}"
            ours, burns = (times[many][which] / times[few][which] for which in (task, key))
            yield Row(f"{task}, growth from {few:,} to {many:,}", ours, f"Burn {version}", burns, None, unit="times")


def _measure(model: Model, bench: Bench, oracle: Path) -> dict[str, float]:
    files = {suffix: model.file(suffix) for suffix in (".safetensors", ".bpk")}
    target = model.folder / "saved.bpk"
    arrays = model.arrays
    ways: dict[str, Contender] = {
        ".bpk save": Contender(lambda: bs.save(arrays, target, fsync=False), lambda: remove(target)),
    }
    for suffix, path in files.items():
        ways[f"{suffix} load"] = Contender(lambda path=path: bs.read(path))
    for version in _VERSIONS:
        program = oracle / f"burn-oracle-{version}"
        for suffix, path in files.items():
            ways[f"{suffix} load {version}"] = Contender(lambda a=program, b=path: _burn(a, "load", b), own_clock=True)
        ways[f".bpk save {version}"] = Contender(
            lambda a=program, b=files[".bpk"]: _burn(a, "save", b), lambda: remove(target), own_clock=True
        )
    warm(*files.values())
    return compare(ways, bench.rounds, model.nbytes + (16 << 20))


def _burn(program: Path, task: str, path: Path) -> float:
    done = subprocess.run([program, "bench", task, path, "1"], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    return float((said.get("seconds_touched") or said["seconds"])[0])
