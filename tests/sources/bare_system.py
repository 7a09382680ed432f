"""A Python without mmap, positioned reads, threads and files, as Pyodide and other sandboxes have it.

`bare_system` is a fixture: burnstore finds none of them while a test that uses it runs, so what passes needs none. It is
for tests that go from bytes to bytes. `remove` takes them away from everybody, for a process of its own.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Callable, Iterator

import pytest

_MODULES = ("mmap", "threading", "concurrent.futures", "multiprocessing", "tempfile", "shutil")
_CALLS = (
    "open",
    "read",
    "write",
    "close",
    "fstat",
    "stat",
    "lseek",
    "pread",
    "preadv",
    "readv",
    "writev",
    "pwrite",
    "posix_fallocate",
    "fsync",
    "sendfile",
    "copy_file_range",
    "replace",
    "rename",
    "unlink",
    "link",
    "ftruncate",
    "statvfs",
)


class MissingError(AssertionError):
    """Something was used that is not there."""


def _is_burnstore_at_work() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith("importlib.metadata"):  # a list of the installed packages, which every system keeps in its own way
            return False
        if name.startswith("burnstore"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _missing(name: str, present: Callable[..., object] | None) -> Callable[..., object]:
    def refuse(*arguments: object, **keywords: object) -> object:
        if present is None or _is_burnstore_at_work():
            raise MissingError(f"{name} is missing on this system")
        return present(*arguments, **keywords)

    return refuse


def _places() -> Iterator[tuple[object, str]]:
    import threading

    yield from ((os, call) for call in _CALLS if hasattr(os, call))
    yield from ((builtins, "open"), (io, "open"))
    yield from ((threading, thing) for thing in ("Thread", "Lock", "RLock"))


def remove() -> None:
    """Take away what a sandbox lacks, from everybody and for good."""
    for owner, name in list(_places()):
        setattr(owner, name, _missing(name, None))
    for module in _MODULES:
        sys.modules[module] = None  # type: ignore[assignment]  # an import of it fails


@pytest.fixture
def bare_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test where burnstore finds no mmap, pread, threads and files; the tools of testing still find them."""
    # A module that is imported while `os` is bare would keep the bare functions for the tests to come.
    import burnstore.sources.atomic
    import burnstore.sources.local  # noqa: F401

    real = builtins.__import__

    def limited(name: str, *arguments: object, **keywords: object) -> object:
        if name in _MODULES and _is_burnstore_at_work():
            raise ImportError(f"{name} is missing on this system")
        return real(name, *arguments, **keywords)  # type: ignore[arg-type]

    for owner, name in list(_places()):
        monkeypatch.setattr(owner, name, _missing(name, getattr(owner, name)))
    monkeypatch.setattr(builtins, "__import__", limited)
