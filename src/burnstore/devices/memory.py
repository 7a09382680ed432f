"""All tensors of a file as arrays in memory: views of the mapped file, or owned, read at the speed of memory.

Owned arrays lie in arenas. An arena is one allocation that takes neighbouring tensors by one read; from 4 MiB on NumPy asks
the system for huge pages, which makes fresh memory four times as fast to fill. An arena holds at most 32 MiB (or one
larger tensor), so an array that is kept keeps no more than that alive beside itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from burnstore.devices.fill import Job, fill
from burnstore.dtypes import Shape
from burnstore.formats.base import Contents
from burnstore.sources.base import FileRange, Source

if TYPE_CHECKING:
    import numpy as np

    from burnstore.snapshot import TensorSnapshot

    Array = np.ndarray[Any, Any]

_ARENA_BYTES = 32 * 1024 * 1024
# Padding between tensors is read over; a larger gap is a tensor that nobody wants.
_GAP_BYTES = 4096
# Each read is long enough to be worth a system call and short enough for two threads to share the work.
_READ_BYTES = 8 * 1024 * 1024
_ALIGNMENT = 64
# More dimensions than any version of NumPy 1 takes are the snapshot's matter, which says so.
_MAX_DIMS = 32


class _Arena:
    """A stretch of a source, and the tensors in it."""

    __slots__ = ("begin", "end", "source", "tensors")

    def __init__(self, source: Source, begin: int, end: int) -> None:
        self.source, self.begin, self.end = source, begin, end
        self.tensors: list[tuple[str, np.dtype[Any], Shape, int]] = []


def read_owned(
    contents: Contents,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    instead: Mapping[str, TensorSnapshot] | None = None,
) -> dict[str, Array]:
    """Every tensor as an array of the caller's own; `instead` gives another tensor for some names, such as one that is cast."""
    import numpy as np

    arrays: dict[str, Array] = {}
    arenas: list[_Arena] = []
    arena: _Arena | None = None
    kinds: dict[str, np.dtype[Any]] = {}
    jobs: list[Job] = []
    for name, dtype, shape, source, begin, end in contents.rows():
        kind = kinds.get(dtype.name)
        if kind is None and dtype.is_plain:
            kind = kinds[dtype.name] = dtype.numpy_dtype
        other = instead.get(name) if instead else None
        if other is not None or kind is None or source is None or begin == end or len(shape) > _MAX_DIMS:
            snapshot = other or contents.snapshot(name)
            if snapshot.dtype.is_plain and snapshot.nbytes and len(shape) <= _MAX_DIMS:
                arrays[name] = np.empty(shape, snapshot.dtype.numpy_dtype)
                jobs.append(Job(snapshot, arrays[name]))
            else:
                arrays[name] = snapshot.numpy(copy=True)
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
    jobs += [Job(FileRange(arena.source, arena.begin, arena.end), buffer) for arena, buffer in zip(arenas, buffers, strict=True)]
    fill(jobs, threads, progress)
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
