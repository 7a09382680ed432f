"""How much memory of its own does a process need to convert a file?"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import burnstore
from benchmarks.measure import Row
from benchmarks.models import Bench, warm

# 64 MB and one block of 1 MiB.
GOAL_BYTES = 64e6 + (1 << 20)
_CONVERT = "import sys, burnstore as bs; bs.convert(sys.argv[1], sys.argv[2], dialect='keep', overwrite=True, fsync=False)"


def environment() -> dict[str, str]:
    """The environment in which a child finds the same burnstore."""
    return {**os.environ, "PYTHONPATH": str(Path(burnstore.__file__).parent.parent)}


def peak_private_bytes(code: str, *arguments: str) -> int:
    """The most private memory that a child held while it ran `code`: pages of mapped files are not counted, they are no one's."""
    wait = "\nimport os; os.write(1, b'.'); os.read(0, 1)"
    with subprocess.Popen(
        [sys.executable, "-c", code + wait, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as child:
        assert child.stdin and child.stdout
        os.set_blocking(child.stdout.fileno(), False)
        peak, finished = 0, False
        while not finished and child.poll() is None:
            finished = bool(child.stdout.read())  # asked before the sample, so that the last one is of the end
            peak = max(peak, private_bytes(child.pid))
        child.stdin.close()
    if child.returncode:
        raise RuntimeError(f"the child ended with {child.returncode}")
    return peak


def private_bytes(pid: int) -> int:
    """Dirty private pages and anonymous ones are the same pages but for huge ones; the larger figure counts."""
    found = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as table:
        for line in table:
            word, _, rest = line.partition(":")
            if word in ("Private_Dirty", "Anonymous"):
                found[word] = int(rest.split()[0]) * 1024
    return max(found.values(), default=0)


def run(bench: Bench) -> Iterator[Row]:
    """The whole process counts, the interpreter included."""
    for model in bench.models("huge"):
        for source, target in ((".safetensors", ".bpk"), (".bpk", ".safetensors")):
            path, made = model.file(source), model.folder / f"converted{target}"
            model.forget_arrays()
            warm(path)
            peak = peak_private_bytes(_CONVERT, str(path), str(made))
            made.unlink()
            question = f"convert {source} to {target}, peak, {model.title}"
            yield Row(question, peak, "64 MB and one block", GOAL_BYTES, 1.0, True, "bytes")
