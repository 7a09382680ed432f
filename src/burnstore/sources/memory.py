"""Bytes that are in memory already: bytes, bytearray, memoryview, arrays, anything with the buffer protocol.

This file and the formats need neither a file system, mmap, pread nor threads, so they run where those are missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burnstore.errors import SourceClosedError, UsageError
from burnstore.sources.base import check_range

if TYPE_CHECKING:
    from typing_extensions import Buffer


class MemorySource:
    """A buffer as a source; it is never copied, and views of it are read-only.

    >>> MemorySource(b"NRUB").view(1, 3).tobytes()
    b'RU'
    """

    def __init__(self, data: Buffer, name: str | None = None) -> None:
        try:
            view = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        except (TypeError, BufferError) as error:
            raise UsageError(f"these bytes cannot be read in one piece: {error}", do="give a contiguous buffer") from None
        self._view: memoryview | None = view.toreadonly()
        self.size = view.nbytes
        self.name = name or f"<{view.nbytes} bytes>"

    def view(self, begin: int, end: int) -> memoryview:
        if self._view is None:
            raise SourceClosedError("it was closed", where=self.name, do="read tensors before closing the store")
        check_range(self, begin, end, self.size)
        return self._view[begin:end]

    read = view

    def read_into(self, begin: int, out: memoryview) -> None:
        out[:] = self.view(begin, begin + len(out))

    def close(self) -> None:
        self._view = None
