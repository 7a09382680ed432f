"""Work shared by a few threads, the caller's own among them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")

# Below this the threads cost more than they bring.
_THREADS_FROM = 64 * 1024 * 1024
_MOST = 8


def threads_for(nbytes: int) -> int:
    """How many threads are worth their cost for so many bytes."""
    return min(_MOST, os.cpu_count() or 1) if nbytes >= _THREADS_FROM else 1


def in_threads(
    work: Callable[[Item], object], items: Iterable[Item], threads: int, between: Callable[[], object] | None = None
) -> None:
    """Call `work` with each item; `between` is called on the caller's thread alone, after each item that it did itself.

    The first error stops all threads and is raised, Ctrl-C in the caller's thread too. No thread works on when this returns.

    >>> done = []
    >>> in_threads(done.append, range(3), 2)
    >>> sorted(done)
    [0, 1, 2]
    """
    if threads <= 1:
        for item in items:
            work(item)
            if between is not None:
                between()
        return
    from threading import Lock, Thread

    given = list(items)
    left, lock = iter(given), Lock()
    errors: list[BaseException] = []

    def run(between: Callable[[], object] | None = None) -> None:
        try:
            while not errors:
                with lock:
                    item = next(left, _END)
                if item is _END:
                    return
                work(item)
                if between is not None:
                    between()
        except BaseException as error:
            errors.append(error)

    workers: list[Thread] = []
    try:
        for _ in range(min(threads, len(given)) - 1):
            worker = Thread(target=run, daemon=True)
            workers.append(worker)
            try:
                worker.start()
            except RuntimeError:  # no threads here, or no more of them: this one does the rest
                workers.pop()
                break
        run(between)
    except BaseException as error:
        errors.append(error)
    _wait(workers, errors)
    if errors:
        try:
            raise errors[0]
        finally:
            errors.clear()  # or the error would hold this frame, and with it the files


_END: Any = object()


def _wait(workers: list[Any], errors: list[BaseException]) -> None:
    """Until every worker is done, however often Ctrl-C is pressed meanwhile: none may write behind the caller's back."""
    while workers:
        try:
            workers[-1].join()
        except RuntimeError:  # Ctrl-C came before it could begin; if it ever does, it finds the error and does nothing
            pass
        except BaseException as error:
            errors.append(error)
            continue
        workers.pop()
