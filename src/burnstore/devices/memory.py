"""All tensors of a file as arrays in memory: views of the mapped file, or owned, read at the speed of memory.

Owned arrays lie in arenas. An arena is one allocation that takes neighbouring tensors by one read; from 4 MiB on NumPy asks
the system for huge pages, which makes fresh memory four times as fast to fill. An arena holds at most 32 MiB (or one
larger tensor), so an array that is kept keeps no more than that alive beside itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from burnstore.dtypes import Shape
from burnstore.formats.base import Contents
from burnstore.sources.base import Source

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_ARENA_BYTES = 32 * 1024 * 1024
# Padding between tensors is read over; a larger gap is a tensor that nobody wants.
_GAP_BYTES = 4096
# Each read is long enough to be worth a system call and short enough for two threads to share the work.
_READ_BYTES = 8 * 1024 * 1024
# Below this the threads cost more than they bring.
_THREADS_FROM = 64 * 1024 * 1024
_ALIGNMENT = 64
# More dimensions than any version of NumPy 1 takes are the snapshot's matter, which says so.
_MAX_DIMS = 32


class _Arena:
    """A stretch of a source, and the tensors in it."""

    __slots__ = ("begin", "end", "source", "tensors")

    def __init__(self, source: Source, begin: int, end: int) -> None:
        self.source, self.begin, self.end = source, begin, end
        self.tensors: list[tuple[str, np.dtype[Any], Shape, int]] = []


def read_owned(contents: Contents, threads: int | None = None) -> dict[str, Array]:
    """Every tensor as an array of the caller's own."""
    import numpy as np

    arrays: dict[str, Array] = {}
    arenas: list[_Arena] = []
    arena: _Arena | None = None
    kinds: dict[str, np.dtype[Any]] = {}
    for name, dtype, shape, source, begin, end in contents.rows():
        kind = kinds.get(dtype.name)
        if kind is None and dtype.is_plain:
            kind = kinds[dtype.name] = dtype.numpy_dtype
        if kind is None or source is None or begin == end or len(shape) > _MAX_DIMS:
            arrays[name] = contents.snapshot(name).numpy(copy=True)
            continue
        arrays[name] = _PENDING
        if (
            arena is None
            or arena.source is not source
            or not 0 <= begin - arena.end <= _GAP_BYTES
            or end - arena.begin > _ARENA_BYTES
            or (begin - arena.begin) % kind.itemsize
        ):
            arena = _Arena(source, begin, begin)
            arenas.append(arena)
        arena.tensors.append((name, kind, shape, begin - arena.begin))
        arena.end = end

    buffers = [_aligned(arena.end - arena.begin) for arena in arenas]
    _fill(arenas, buffers, threads)
    for arena, buffer in zip(arenas, buffers, strict=True):
        for name, kind, shape, offset in arena.tensors:
            arrays[name] = np.ndarray(shape, kind, buffer, offset)
    return arrays


_PENDING: Any = None


def _aligned(nbytes: int) -> Array:
    import numpy as np

    block = np.empty(nbytes + _ALIGNMENT, np.uint8)
    start = -block.ctypes.data % _ALIGNMENT
    return block[start : start + nbytes]


def _fill(arenas: Sequence[_Arena], buffers: Sequence[Array], threads: int | None) -> None:
    total = sum(arena.end - arena.begin for arena in arenas)
    if threads is None:
        threads = min(8, os.cpu_count() or 1) if total >= _THREADS_FROM else 1
    reads = _reads(arenas, buffers)
    if threads <= 1:
        for source, begin, out in reads:
            source.read_into(begin, out)
    else:
        _in_threads(list(reads), threads)


def _reads(arenas: Sequence[_Arena], buffers: Sequence[Array]) -> Iterable[tuple[Source, int, memoryview]]:
    for arena, buffer in zip(arenas, buffers, strict=True):
        view = memoryview(buffer)
        for at in range(0, len(view), _READ_BYTES):
            yield arena.source, arena.begin + at, view[at : at + _READ_BYTES]


def _in_threads(reads: list[tuple[Source, int, memoryview]], threads: int) -> None:
    """The first error stops all threads and is raised."""
    from threading import Thread

    left = iter(reads)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for source, begin, out in left:  # a list's iterator may be shared: each item is given once
                if errors:
                    return
                source.read_into(begin, out)
        except BaseException as error:
            errors.append(error)

    workers: list[Thread] = []
    try:
        for _ in range(min(threads, len(reads)) - 1):
            worker = Thread(target=work, daemon=True)
            try:
                worker.start()
            except RuntimeError:  # no threads here, or no more of them: this one does the rest
                break
            workers.append(worker)
        work()
    finally:
        for worker in workers:
            worker.join()
    if errors:
        raise errors[0]


def read_views(contents: Contents) -> dict[str, Array]:
    """Every tensor as a read-only view of the mapped file, or of the buffer it came from; owned where that cannot be."""
    import numpy as np

    wholes: dict[int, Array | None] = {}
    arrays: dict[str, Array] = {}
    kinds: dict[str, np.dtype[Any]] = {}
    for name, dtype, shape, source, begin, end in contents.rows():
        if source is None or begin == end:
            arrays[name] = contents.snapshot(name).numpy()
            continue
        key = id(source)
        if key not in wholes:
            view = source.view(0, source.size)
            # frombuffer holds on to the buffer, so that its owner cannot close or resize it; ndarray alone would not
            wholes[key] = None if view is None else np.frombuffer(view, np.uint8)
        kind = kinds.get(dtype.name)
        if kind is None and dtype.is_plain:
            kind = kinds[dtype.name] = dtype.numpy_dtype
        whole = wholes[key]
        if whole is None or kind is None or len(shape) > _MAX_DIMS:
            arrays[name] = contents.snapshot(name).numpy()
        else:
            arrays[name] = np.ndarray(shape, kind, whole, begin)
    return arrays
