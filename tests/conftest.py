"""What all tests share: the small files in `tests/data`, the large corpora, and the real Burn as a program."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"

Oracle = Callable[..., Any]


def shared_folder() -> Path | None:
    """The folder of the large corpora, if there is one on this machine."""
    folder = os.environ.get("BURNSTORE_SHARED")
    return Path(folder) if folder else None


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    for item in items:
        if {"shared", "oracle"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.shared)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the small files that are part of the project."""
    return DATA


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the large corpora."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("BURNSTORE_SHARED does not say where the large corpora are")
    return folder


@pytest.fixture(scope="session")
def oracle(shared: Path) -> Oracle:
    """The real Burn: `oracle("0.22", "list", path, {"regex": ["^conv"]})` gives what it answers.

    Burn's errors come as `{"error": …}`, its panics as `{"panic": …}`.
    """

    def run(version: str, *arguments: object, stdin: str | None = None) -> Any:
        program = shared / "oracle" / f"burn-oracle-{version}"
        words = [json.dumps(word) if isinstance(word, dict) else str(word) for word in arguments]
        done = subprocess.run([program, *words], input=stdin, capture_output=True, text=True, timeout=120)
        assert done.stdout, f"{program.name} {' '.join(words)[:200]} ended with {done.returncode}: {done.stderr[-500:]}"
        return json.loads(done.stdout)

    return run
