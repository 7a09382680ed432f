"""Bytes of many tensors into memory that exists already: the parameters of a model.

    large, in a file        read straight to where they are wanted, in pieces that the threads share
    small, in a file        neighbours are read together into a block that stays in the cache, and moved from there
    made while read         asked for their bytes; in parts, where they can give parts
    into strided memory     through what the source shows, or a few megabytes at a time

Nothing is mapped for plain reads: a file that somebody cuts meanwhile gives an error, and no page faults are paid for.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from operator import itemgetter, sub
from typing import TYPE_CHECKING, Any

from burnstore.devices.threads import in_threads, threads_for
from burnstore.errors import UsageError
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.base import FileRange, Source, TensorBytes

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

# From here on a system call costs less than moving the bytes once more.
_STRAIGHT_FROM = 256 * 1024
_BLOCK_BYTES = 1024 * 1024
# A gap of this length is read over faster than a read is begun anew.
_GAP_BYTES = 16 * 1024
# Long enough to be worth a system call and short enough for the threads to share the work.
_PIECE_BYTES = 8 * 1024 * 1024

# How many bytes something moves, and what moves them.
Task = tuple[int, Callable[[], object]]
# Where a tensor begins and ends in its source, and where it is wanted.
Range = tuple[int, int, "int | Array"]


class Job:
    """One tensor and where it is wanted.

    `out` is the address of as much writable memory as the tensor takes in a file, which the caller keeps alive; or an array
    of its shape and dtype, with any strides.

    >>> import numpy as np
    >>> out = np.zeros((3, 2), np.float32)
    >>> fill([Job(TensorSnapshot.from_data("w", np.array([[1, 2, 3], [4, 5, 6]], np.float32)), out.T)])
    >>> out.tolist()
    [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    """

    __slots__ = ("data", "out")

    def __init__(self, data: TensorBytes | TensorSnapshot, out: int | Array) -> None:
        self.data = data
        self.out = out


def fill(jobs: Iterable[Job], threads: int | None = None, progress: Callable[[int, int], object] | None = None) -> None:
    """Bring every tensor to its memory; when this returns or raises, nothing is written any more.

    What cannot be done is refused before anything is written. `threads` is chosen by size where it is None. `progress` is
    called on the caller's thread with how many bytes are done and how many there are: now and then, and at the end. The first
    error stops all threads and is raised, one of `progress` too.

    >>> import ctypes
    >>> memory = ctypes.create_string_buffer(2)
    >>> job = Job(TensorSnapshot.from_data("w", [True, False]), ctypes.addressof(memory))
    >>> fill([job], progress=lambda done, total: print(done, "of", total))
    2 of 2
    >>> memory.raw
    b'\\x01\\x00'
    """
    tasks = _tasks(jobs)
    total = sum(map(itemgetter(0), tasks))
    if threads is None:
        threads = threads_for(total)
    if progress is None:
        in_threads(_do, tasks, threads)
        return
    from threading import Lock

    done, shown, lock = 0, -1, Lock()

    def counted(task: Task) -> None:
        nonlocal done
        task[1]()
        with lock:
            done += task[0]

    def show() -> None:
        nonlocal shown
        if done > shown:
            shown = done
            progress(done, total)

    in_threads(counted, tasks, threads, show)
    show()


def _do(task: Task) -> None:
    task[1]()


def _tasks(jobs: Iterable[Job]) -> list[Task]:
    """What is to be done, file by file in the order of the bytes."""
    ranges: dict[Source, list[Range]] = {}
    others: list[Task] = []
    source: Source | None = None
    for job in jobs:
        data, out = job.data, job.out
        if isinstance(data, TensorSnapshot):
            data = data.data
        if not isinstance(out, int) and not _lies_as_bytes(job, out, data):
            others.extend(_strided(job, out, data))
        elif type(data) is FileRange:
            if data.source is not source:
                source = data.source
                found = ranges.setdefault(source, [])
            found.append((data.begin, data.end, out))
        else:
            others.extend(_asked(data, out))
    spare: list[_Block] = []
    return [*(task for source, found in ranges.items() for task in _reads(source, found, spare)), *others]


# From files


def _reads(source: Source, ranges: list[Range], spare: list[_Block]) -> Iterator[Task]:
    """Large ranges one by one, and between them as many small ones at a time as fit into a block."""
    ranges.sort(key=itemgetter(0))
    start = first = last = 0  # where the group begins, in the list and in the source, and where it ends
    for place, (begin, end, out) in enumerate(ranges):
        is_large = end - begin >= _STRAIGHT_FROM
        if start < place and (is_large or begin - last > _GAP_BYTES or end - first > _BLOCK_BYTES):
            yield from _together(source, ranges[start:place], spare)
            start = place
        if is_large:
            yield from _straight(source, begin, end, out)
            start = place + 1
        elif start == place:  # ranges may overlap: nothing is taken over from what came before
            first, last = begin, end
        elif end > last:
            last = end
    yield from _together(source, ranges[start:], spare)


def _straight(source: Source, begin: int, end: int, out: int | Array) -> Iterator[Task]:
    memory = memory_of(out, end - begin)
    for at in range(0, end - begin, _PIECE_BYTES):
        piece = memory[at : at + _PIECE_BYTES]
        yield len(piece), partial(source.read_into, begin + at, piece)


def _together(source: Source, near: list[Range], spare: list[_Block]) -> Iterator[Task]:
    if len(near) == 1:
        yield from _straight(source, *near[0])
    elif near:
        begins, ends, outs = zip(*near, strict=True)
        yield sum(ends) - sum(begins), partial(_read_near, source, begins, ends, outs, spare)


def _read_near(
    source: Source, begins: Sequence[int], ends: Sequence[int], outs: Sequence[int | Array], spare: list[_Block]
) -> None:
    """Read a few neighbours at once and move each to its place."""
    try:
        block = spare.pop()
    except IndexError:
        block = _Block()
    begin = begins[0]
    source.read_into(begin, block.memory[: max(ends) - begin])
    if set(map(type, outs)) == {int}:
        # 20,000 of them: the loop is left to `map`
        deque(map(_memmove(), outs, map((block.address() - begin).__add__, begins), map(sub, ends, begins)), maxlen=0)
    else:
        for first, last, out in zip(begins, ends, outs, strict=True):
            memory_of(out, last - first)[:] = block.memory[first - begin : last - begin]
    spare.append(block)


class _Block:
    """Memory of one thread at a time, which stays in its cache."""

    __slots__ = ("memory",)

    def __init__(self) -> None:
        self.memory = memoryview(bytearray(_BLOCK_BYTES))

    def address(self) -> int:
        import ctypes

        return ctypes.addressof(ctypes.c_char.from_buffer(self.memory))


@lru_cache(maxsize=1)
def _memmove() -> Callable[..., None]:
    """`ctypes.memmove` without giving the interpreter's lock back each time, which costs more than a small move."""
    import ctypes

    address = ctypes.cast(ctypes.memmove, ctypes.c_void_p).value
    kind = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    return kind(address or 0)


@lru_cache(maxsize=1)
def _from_memory() -> Callable[[int, int, int], memoryview]:
    import ctypes

    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
    return kind(("PyMemoryView_FromMemory", ctypes.pythonapi))


def memory_of(out: int | Array, nbytes: int) -> memoryview:
    """The memory at an address, or of an array that lies in one piece, as Python sees bytes."""
    if isinstance(out, int):
        writable = 0x200  # PyBUF_WRITE
        return _from_memory()(out, nbytes, writable)
    try:
        return memoryview(out).cast("B")
    except (ValueError, TypeError):  # the buffer protocol knows neither bf16 and fp8, nor axes without elements
        import numpy as np

        return memoryview(out.reshape(-1).view(np.uint8))


# From anywhere else


def _asked(data: TensorBytes, out: int | Array) -> Iterator[Task]:
    """Tasks that ask the data for its bytes: in parts where it says that it can give them, or is somebody's own array."""
    size = data.nbytes
    if not size:
        return
    memory = memory_of(out, size)
    if size <= _PIECE_BYTES:
        yield size, partial(data.read_into, memory)
        return
    read, grain = data.read_into, getattr(data, "grain", 0)
    array = _own_array(data)
    if array is not None:
        from burnstore.kernels import copy_range

        read, grain = partial(copy_range, array), _PIECE_BYTES
    step = max(grain, _PIECE_BYTES - _PIECE_BYTES % grain) if grain else size
    for at in range(0, size, step):
        part = memory[at : at + step]
        yield len(part), partial(read, part, at)


def _own_array(data: Any) -> Array | None:
    """The elements of an array that is held in memory, in whatever order."""
    if not hasattr(data, "array") or not data.dtype.is_plain:
        return None
    from burnstore.kernels import array_over

    return array_over(data, data.dtype, data.array.shape)


# Into arrays


def _lies_as_bytes(job: Job, array: Array, data: TensorBytes) -> bool:
    """Whether the memory of an array is what a file holds: in one piece, little-endian, nothing packed."""
    _check(job, array, data)
    return array.flags.c_contiguous and _is_little(array.dtype) and _is_plain(job.data)


def _check(job: Job, array: Array, data: TensorBytes) -> None:
    if not array.flags.writeable:
        raise UsageError("an array that cannot be written to was given", where=_name(job), do="give a writable one")
    given = job.data
    if isinstance(given, TensorSnapshot):
        shape = (*given.shape, 2) if given.dtype.name == "C32" else given.shape
        fits = shape == array.shape and given.dtype.numpy_dtype == _little(array.dtype)
    else:
        fits = data.nbytes == array.nbytes
    if not fits:
        raise UsageError(
            f"its values do not fit into an array of {array.dtype} {list(array.shape)}",
            where=_name(job),
            do="give an array of its shape and dtype",
        )


def _name(job: Job) -> str:
    return f"tensor {job.data.name!r}" if isinstance(job.data, TensorSnapshot) else "data"


def _is_plain(data: TensorBytes | TensorSnapshot) -> bool:
    return not isinstance(data, TensorSnapshot) or data.dtype.is_plain


@lru_cache(maxsize=64)
def _little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("<")


def _is_little(dtype: np.dtype[Any]) -> bool:
    return dtype.isnative is (sys.byteorder == "little") or _little(dtype) == dtype


def _strided(job: Job, array: Array, data: TensorBytes) -> Iterator[Task]:
    if not array.size:
        return
    if _is_plain(job.data) and _is_little(array.dtype):
        yield data.nbytes, partial(_scatter, data, array, _name(job))
    else:
        yield data.nbytes, partial(_copy_values, job.data, array)


def _scatter(data: TensorBytes, out: Array, name: str) -> None:
    from burnstore.kernels import copy_blocks, copy_into, raw_dtype

    raw = out.view(raw_dtype(out.itemsize))
    array = _own_array(data)
    if array is not None:
        copy_into(raw, array)
    else:
        copy_blocks(raw, data.blocks(), name)


def _copy_values(data: TensorBytes | TensorSnapshot, out: Array) -> None:
    """Values that are not spelled as in a file: packed elements, and arrays of the other byte order."""
    import numpy as np

    if isinstance(data, TensorSnapshot):
        values = data.numpy()
    else:
        values = np.empty(out.shape, _little(out.dtype))
        data.read_into(memory_of(values, values.nbytes))
    np.copyto(out, values)
