"""Binary file objects: what `open(path, "rb")`, `io.BytesIO`, a zip member or a socket's file gives.

One that can seek is read piece by piece, under a lock, and left where it was found. One that cannot is read to its end
once, because the tensors of a file lie in any order.
"""

from __future__ import annotations

import io
from typing import BinaryIO, Protocol, runtime_checkable

from burnstore.errors import BurnstoreError, SourceClosedError, SourceError, TruncatedError, UsageError, from_os_error
from burnstore.sources.memory import MemorySource


@runtime_checkable
class Readable(Protocol):
    """All that a file object must have."""

    def read(self, size: int = -1, /) -> bytes: ...


class StreamSource:
    """A seekable binary file object as a source. Closing the source leaves the file object open: it is its owner's."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        from threading import Lock

        self._file: BinaryIO | None = file
        self._lock = Lock()
        self.size = size
        self.name = f"<{getattr(file, 'name', None) or type(file).__name__}>"

    def view(self, begin: int, end: int) -> None:
        return None

    def read(self, begin: int, end: int) -> bytes:
        block = bytearray(max(0, min(end, self.size) - begin))
        self.read_into(begin, memoryview(block))
        return bytes(block)

    def read_into(self, begin: int, out: memoryview) -> None:
        file = self._file
        if file is None or getattr(file, "closed", False):
            raise SourceClosedError("it was closed", where=self.name, do="read tensors before closing it")
        with self._lock:
            try:
                was = file.tell()
                try:
                    file.seek(begin)
                    self._fill(file, begin, out)
                finally:
                    file.seek(was)
            except Exception as error:
                raise _unreadable(error, self.name) from None

    def _fill(self, file: BinaryIO, begin: int, out: memoryview) -> None:
        done = 0
        readinto = getattr(file, "readinto", None)
        while done < len(out):
            if readinto is not None:
                got = readinto(out[done:])
            else:
                piece = file.read(len(out) - done)
                got = len(piece)
                out[done : done + got] = piece
            if not got:
                raise TruncatedError(
                    f"bytes {begin} to {begin + len(out)} are wanted, and it ends at {begin + done}",
                    where=self.name,
                    do="it was cut while it was in use: open it again",
                )
            done += got

    def close(self) -> None:
        self._file = None


def open_stream(file: object) -> StreamSource | MemorySource:
    """A source for a binary file object, seekable or not."""
    if isinstance(file, io.TextIOBase):
        raise UsageError("this file object gives text", do='open the file in binary mode: open(path, "rb")')
    name = f"<{getattr(file, 'name', None) or type(file).__name__}>"
    size = _size_of(file, name)
    if size is not None:
        return StreamSource(file, size)  # type: ignore[arg-type]
    try:
        content = file.read()  # type: ignore[attr-defined]
    except Exception as error:
        raise _unreadable(error, name) from None
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise UsageError("this file object gives text", where=name, do='open the file in binary mode: open(path, "rb")')
    return MemorySource(content, name)


def _size_of(file: object, name: str) -> int | None:
    """How many bytes a file object has, if it can seek."""
    try:
        if not file.seekable():  # type: ignore[attr-defined]
            return None
        was = file.tell()  # type: ignore[attr-defined]
        file.seek(0, 2)  # type: ignore[attr-defined]
        size: int = file.tell()  # type: ignore[attr-defined]
        file.seek(was)  # type: ignore[attr-defined]
    except (AttributeError, io.UnsupportedOperation):
        return None
    except ValueError:  # "I/O operation on closed file"
        raise SourceClosedError("this file object is closed", where=name, do="open it again") from None
    except Exception as error:
        raise _unreadable(error, name) from None
    return size


def _unreadable(error: Exception, name: str) -> BurnstoreError:
    """What a file object raised: gzip, zip and network files have errors of their own beside OSError."""
    if isinstance(error, BurnstoreError):
        return error
    if isinstance(error, OSError):
        return from_os_error(error, name)
    return SourceError(f"reading it failed: {type(error).__name__}: {error}", where=name, do="the file is damaged: get it again")
