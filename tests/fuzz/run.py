"""Look for files that break a reader, for as long as you like.

    python tests/fuzz/run.py burnpack --minutes 5        (or safetensors, index, pytorch)

Each different failure is printed once, with the smallest file that showed it; the exit status is 1 if there was any.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402  # after the project's root is on the path

TARGETS = ("burnpack", "safetensors", "index", "pytorch")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("target", choices=TARGETS)
    arguments.add_argument("--minutes", type=float, default=5)
    chosen = arguments.parse_args()
    target = importlib.import_module(f"tests.fuzz.{chosen.target}_target")
    outcomes: Counter[str] = Counter()
    failures: dict[str, bytes] = {}
    deadline = time.monotonic() + 60 * chosen.minutes

    @settings(max_examples=500, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(target.files())
    def batch(data: bytes) -> None:
        if time.monotonic() > deadline:
            return
        began = time.process_time()
        try:
            outcomes[target.check(data)] += 1
            if time.process_time() - began > 3:
                failures.setdefault("slow: more than 3 s", data)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            key = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {str(error)[:150]}"
            if len(data) < len(failures.get(key, b" " * 10**9)):
                failures[key] = data
            outcomes["failed"] += 1

    while time.monotonic() < deadline:
        batch()
    print(f"{chosen.target}: {sum(outcomes.values())} files in {chosen.minutes:g} minutes")
    for outcome, count in outcomes.most_common():
        print(f"  {count:8} {outcome}")
    for key, data in failures.items():
        print(f"FAILED {key}\n  {len(data)} bytes: {data[:400]!r}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
