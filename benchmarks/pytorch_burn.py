"""How fast does the real Burn load the same `.pt`?

Burn is a program in the folder that BURNSTORE_SHARED names; without it there are no rows. It times itself.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import burnstore as bs
from benchmarks.measure import Contender, Row, compare, say
from benchmarks.models import Bench, warm
from benchmarks.pytorch_open import torch_file

# Of the two versions on the large model; on the small one 0.20 takes over a minute and is left out.
GOALS = {("large", "0.20"): 5.0, ("large", "0.22"): 3.0, ("small", "0.22"): 3.0}


def _burn(program: Path, file: Path) -> float:
    done = subprocess.run([program, "bench", "load", file, "1"], capture_output=True, text=True, timeout=300, check=True)
    answer = json.loads(done.stdout)
    return float((answer.get("seconds_touched") or answer["seconds"])[0])


def run(bench: Bench) -> Iterator[Row]:
    """Owned arrays on our side."""
    shared = os.environ.get("BURNSTORE_SHARED")
    if not shared:
        say("pytorch_burn: BURNSTORE_SHARED is not set, so there is no Burn to compare with")
        return
    for model in bench.models("large", "small"):
        path = torch_file(model)
        model.forget_arrays()
        warm(path)
        ways = {"ours": Contender(lambda path=path: bs.read(path))}
        versions = [version for label, version in GOALS if label == model.label]
        for version in versions:
            program = Path(shared, "oracle", f"burn-oracle-{version}")
            ways[version] = Contender(lambda program=program, path=path: _burn(program, path), own_clock=True)
        times = compare(ways, bench.rounds, model.nbytes)
        for version in versions:
            yield Row(f".pt load, {model.title}", times["ours"], f"Burn {version}", times[version], GOALS[model.label, version])
