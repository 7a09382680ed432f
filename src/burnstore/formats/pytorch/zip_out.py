"""The zip archive that torch writes: entries stored, their data at multiples of 64.

    ┌──────────────┬──────────┬────────────────┬──────┬────────────────────┐
    │ local header │ name     │ FB, n, Z Z Z … │ data │ PK 7 8, CRC, sizes │  and so on, one entry after another;
    └──────────────┴──────────┴────────────────┴──────┴────────────────────┘
    central directory, zip64 end, its locator, end

CRC and sizes follow the data and are repeated in the directory at the end, so a file can be written from front to back while
its data is read for the first time. The CRCs are real, as torch's are: torch itself never looks at them, but Python's
`zipfile`, `unzip` and Burn 0.20 refuse a file whose CRCs are wrong.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any

from burnstore.errors import TensorDataError
from burnstore.sources.base import FileRange, TensorBytes

if TYPE_CHECKING:
    from typing_extensions import Buffer

ALIGNMENT = 64
# From this size on it pays to have another thread sum up data while this one writes: zlib sums up 4 to 7 GB/s, and a file
# takes about as many.
_LARGE = 1024 * 1024
# How many tensors the other thread may be ahead. Waiting for it after each one would cost a third of the gain.
_AHEAD = 4
_LOCAL = Struct("<4sHHHIIIIHH")
_CENTRAL = Struct("<4sHHHHIIIIHHHHHII")
_DESCRIPTOR = Struct("<4sIII")
_DESCRIPTOR64 = Struct("<4sIQQ")
_END64 = Struct("<4sQHHIIQQQQ")
_LOCATOR = Struct("<4sIQI")
_END = Struct("<4sHHHHIIH")
# Names are UTF-8 (0x800); CRC and sizes follow the data (8). An entry of no bytes has no descriptor.
_FLAGS, _FLAGS_EMPTY = 0x808, 0x800
# From here on a number stands in the zip64 extra field, and _MAX in its place.
_LIMIT = _MAX = 0xFFFFFFFF
# Extra fields of torch's own kind, which hold nothing: a letter for each byte of padding.
_FB = [b"FB" + n.to_bytes(2, "little") + b"Z" * n for n in range(ALIGNMENT)]


class Entry:
    """One file in the archive: its header, its data wherever that is, and the CRC of it, known once it has been written."""

    __slots__ = ("_data", "_described", "_head", "_worker", "begin", "crc", "name", "nbytes", "size")

    def __init__(self, name: bytes, begin: int, data: TensorBytes, described: str, worker: Worker | None = None) -> None:
        self.name = name
        self.begin = begin
        self.size = data.nbytes
        self.crc = 0
        self._data = data
        self._described = described
        self._worker = worker
        size = self.size
        self._head = _local_header(name, begin, size)
        after = 0 if not size else 24 if size >= _LIMIT or begin >= _LIMIT else 16
        self.nbytes = len(self._head) + size + after

    @property
    def end(self) -> int:
        return self.begin + self.nbytes

    def view(self) -> Buffer | None:
        """Header, data and descriptor of a small entry in one piece; None where that would copy much, or cannot be."""
        if self.size >= _LARGE:
            return None
        data = self._data.view()
        if data is None:
            return None
        self.crc = zlib.crc32(data)
        return b"".join((self._head, data, self._descriptor()))

    def blocks(self) -> Iterator[Buffer]:
        yield self._head
        worker = self._worker if self.size >= _LARGE else None
        known = worker.begun(self.begin) if worker else None
        crc = done = 0
        for block in self._data.blocks():
            done += memoryview(block).nbytes
            if done > self.size:
                break
            if worker is None or known is not None:
                crc = zlib.crc32(block, crc) if known is None else 0
                yield block
            else:
                sum_of = worker.start(block, crc)
                yield block
                crc = sum_of()  # before the next block, which may come in the same memory
        if done != self.size:
            raise TensorDataError(
                f"its shape and dtype need {self.size} bytes, and its blocks gave {done}",
                where=self._described,
                do="give blocks that add up; nothing was written",
            )
        self.crc = crc if known is None else known()
        yield self._descriptor()

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        whole = b"".join(bytes(block) for block in self.blocks())
        out[:] = whole[begin : begin + len(out)]

    def _descriptor(self) -> bytes:
        """The CRC and the sizes, which follow the data of an entry that has any."""
        size = self.size
        if not size:
            return b""
        how = _DESCRIPTOR64 if size >= _LIMIT or self.begin >= _LIMIT else _DESCRIPTOR
        return how.pack(b"PK\x07\x08", self.crc, size, size)

    def directory_size(self) -> int:
        """How long its record in the central directory is."""
        return _CENTRAL.size + len(self.name) + len(_zip64_extra(self.size, self.begin, self.size))

    def directory(self) -> bytes:
        """Its record in the central directory."""
        size, begin, extra = self.size, self.begin, b""
        if size >= _LIMIT or begin >= _LIMIT:
            extra = _zip64_extra(size, begin, size)
            size, begin = (number if number < _LIMIT else _MAX for number in (size, begin))
        flags = _FLAGS if size else _FLAGS_EMPTY
        fixed = _CENTRAL.pack(
            b"PK\x01\x02", 0, 0, flags, 0, 0, self.crc, size, size, len(self.name), len(extra), 0, 0, 0, 0, begin
        )
        return fixed + self.name + extra


def _zip64_extra(size: int, begin: int, packed: int) -> bytes:
    """The extra field with the numbers that do not fit into 32 bits; empty if all fit."""
    if size < _LIMIT and begin < _LIMIT:
        return b""
    numbers = ([size, packed] if size >= _LIMIT else []) + ([begin] if begin >= _LIMIT else [])
    return Struct(f"<HH{len(numbers)}Q").pack(1, 8 * len(numbers), *numbers)


def _local_header(name: bytes, begin: int, size: int) -> bytes:
    """The header before an entry's data; its extra field is as long as the alignment needs."""
    zip64 = b"" if begin < _LIMIT > size else _zip64_extra(size, begin, 0)
    length = len(name)
    extra = len(zip64) + 4
    padding = -(begin + 30 + length + extra) % ALIGNMENT
    flags = _FLAGS if size else _FLAGS_EMPTY
    fixed = _LOCAL.pack(b"PK\x03\x04", 0, flags, 0, 0, 0, 0, 0, length, extra + padding)
    return fixed + name + zip64 + _FB[padding]


def end_of_archive(count: int, begin: int, size: int) -> bytes:
    """What follows a central directory of `count` records that lies at `begin`."""
    end = begin + size
    return b"".join(
        (
            _END64.pack(b"PK\x06\x06", 44, 0x31E, 45, 0, 0, count, count, size, begin),
            _LOCATOR.pack(b"PK\x06\x07", 0, end, 1),
            _END.pack(b"PK\x05\x06", 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), min(size, _MAX), min(begin, _MAX), 0),
        )
    )


END_BYTES = _END64.size + _LOCATOR.size + _END.size


class Worker:
    """One thread that sums up data while another writes it.

    It is some tensors ahead where they are in memory. What it did not begin with in time, or all where threads cannot be
    had, is summed up by the thread that asks.
    """

    __slots__ = ("_begun", "_coming", "_pool")

    def __init__(self) -> None:
        self._pool: Any = None
        self._coming: deque[tuple[int, Buffer]] = deque()
        self._begun: dict[int, Callable[[], int]] = {}

    def expect(self, begin: int, data: TensorBytes) -> None:
        """Data of the entry at `begin`, which will be written later; only what is in memory can be summed up ahead."""
        if data.nbytes >= _LARGE and not isinstance(data, FileRange):
            view = data.view()
            if view is not None:
                self._coming.append((begin, view))

    def begun(self, begin: int) -> Callable[[], int] | None:
        """What gives the CRC of an entry that was expected; None for others."""
        while self._coming and len(self._begun) <= _AHEAD:
            at, view = self._coming.popleft()
            self._begun[at] = self.start(view, 0)
        return self._begun.pop(begin, None)

    def start(self, block: Buffer, so_far: int) -> Callable[[], int]:
        """Begin to sum up a block; calling the result waits for it."""
        try:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(1)
            future = self._pool.submit(zlib.crc32, block, so_far)
        except (ImportError, RuntimeError):
            return lambda: zlib.crc32(block, so_far)
        return lambda: zlib.crc32(block, so_far) if future.cancel() else future.result()
