"""Open hostile files in a child process that has 512 MiB over its imports and ten seconds a file."""

from __future__ import annotations

import atexit
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
# (dtype, shape, sha256 of the bytes)
Tensor = tuple[str, tuple[int, ...], str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file: an error of our tree, or its tensors."""

    error: str | None
    text: str
    where: str
    tensors: dict[str, Tensor]
    metadata: dict[str, str]


class _Child:
    """The process that does the opening; it lives until a file ends it, or the tests are over."""

    def __init__(self) -> None:
        paths = [str(_ROOT / "src"), str(_ROOT)]
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.safety.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            cwd=_ROOT,
            env={**os.environ, "RUST_BACKTRACE": "0", "PYTHONPATH": os.pathsep.join(paths)},
        )
        atexit.register(self.end)

    def open(self, cases: list[tuple[str, Any, dict[str, Any]]]) -> list[dict[str, Any]]:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(pickle.dumps(cases))
        stdin.flush()
        lines = []
        for label, *_ in cases:
            line = stdout.readline()
            if not line:
                _child.cache_clear()
                raise AssertionError(f"{label}: {self.end()}")
            lines.append(json.loads(line))
        return lines

    def end(self) -> str:
        """Let the process go, and say how it ended."""
        self.process.communicate()
        status = self.process.returncode
        if self.errors.closed:
            return ""
        self.errors.seek(0)
        said = self.errors.read()[-600:].decode(errors="replace")
        self.errors.close()
        return f"the process ended by {'signal' if status < 0 else 'status'} {abs(status)} (14: it took too long) {said}"


@cache
def _child() -> _Child:
    return _Child()


def end_child() -> None:
    """Let the child go: what was done to its memory must not be felt by the next file."""
    if _child.cache_info().currsize:
        _child().end()
        _child.cache_clear()


def attack(files: Mapping[str, Any] | Iterable[tuple[str, Any]], **keywords: Any) -> dict[str, Outcome]:
    """Open each source, by label. Anything but an error of our tree or an answer in time fails the test."""
    pairs = list(files.items() if isinstance(files, Mapping) else files)
    cases = [(label, os.fspath(source) if isinstance(source, Path) else source, keywords) for label, source in pairs]
    lines = _child().open(cases)
    raw = [f"{line['label']}: {line['raw']}" for line in lines if "raw" in line]
    if raw:
        end_child()
    assert not raw, f"{len(raw)} of {len(lines)} are no errors of burnstore's:\n" + "\n".join(raw[:20])
    return {line["label"]: _outcome(line) for line in lines}


def _outcome(line: dict[str, Any]) -> Outcome:
    error, text, where = line.get("error") or (None, "", "")
    tensors = {name: (dtype, tuple(shape), digest) for name, (dtype, shape, digest) in line.get("tensors", {}).items()}
    return Outcome(error, text, where or "", tensors, line.get("metadata", {}))


def assert_refused(files: Mapping[str, Any] | Iterable[tuple[str, Any]], *words: str, **keywords: Any) -> dict[str, Outcome]:
    """All of them are errors that say where, in one short line that holds each of `words`."""
    outcomes = attack(files, **keywords)
    read = [f"{label}: {outcome.tensors}" for label, outcome in outcomes.items() if outcome.error is None]
    assert not read, f"{len(read)} of {len(outcomes)} were read:\n" + "\n".join(text[:300] for text in read[:20])
    for label, outcome in outcomes.items():
        assert outcome.where, f"{label}: no place in {outcome.text!r}"
        assert len(outcome.text) < 2000 and outcome.text.isprintable(), f"{label}: not one short line: {outcome.text[:300]!r}"
        for word in words:
            assert word in outcome.text, f"{label}: {word!r} is not in {outcome.text!r}"
    return outcomes
