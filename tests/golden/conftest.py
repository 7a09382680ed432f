"""Which folder of Burn's files a test goes through, and the count that is printed at the end of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_LINES = pytest.StashKey[list[str]]()


@pytest.fixture(params=["data", pytest.param("shared", marks=pytest.mark.shared)])
def burn(request: pytest.FixtureRequest, data: Path) -> Path:
    """The files that Burn wrote: the small selection in the project, then all of them."""
    if request.param == "data":
        return data / "burn"
    shared: Path = request.getfixturevalue("shared")
    return shared / "fixtures" / "burn"


@pytest.fixture
def oracle_if_any(request: pytest.FixtureRequest, burn: Path, data: Path) -> Any:
    """The real Burn, where the large corpora are; the small ones do without."""
    return None if data in burn.parents else request.getfixturevalue("oracle")


@pytest.fixture
def announce(request: pytest.FixtureRequest) -> Iterator[Callable[[str], None]]:
    """Print a line, and once more at the end of the run where it is seen without `-s`."""
    lines = request.config.stash.setdefault(_LINES, [])

    def say(line: str) -> None:
        print(line)
        lines.append(line)

    yield say


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    lines = config.stash.get(_LINES, [])
    if lines:
        terminalreporter.section("files of the real Burn")
        for line in lines:
            terminalreporter.line(line)
