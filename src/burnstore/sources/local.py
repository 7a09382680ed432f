"""Files of this machine, mapped or read by position.

    header, owned arrays   pread: one call, no page faults
    views                  mmap (io="mmap", and io="auto" on a local disk): nothing is copied, pages come when touched
                           pread (io="pread", and io="auto" on a network file system): nothing is mapped, each read is owned

A mapping of a file that somebody else cuts ends the process when the missing pages are touched. So the size is asked
again before each view; what remains is a cut between that question and the touch. Where files may shrink while they
are read, use io="pread": it turns the same accident into an error.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Literal

from burnstore.errors import SourceClosedError, SourceError, SourceIsDirectoryError, TruncatedError, from_os_error
from burnstore.sources.base import HEAD_BYTES, check_range
from burnstore.sources.mounts import is_network

if TYPE_CHECKING:
    import mmap

IO = Literal["auto", "mmap", "pread"]


class _Descriptor:
    """An open file's number, closed when the last reader lets go of it, so that no thread reads another file by it."""

    __slots__ = ("fd",)

    def __init__(self, path: str) -> None:
        # O_NONBLOCK: opening a FIFO that nobody writes to must not hang before it can be refused.
        self.fd = os.open(
            path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )

    def __del__(self, close=os.close) -> None:  # type: ignore[no-untyped-def]  # bound early: modules go first at exit
        fd = getattr(self, "fd", -1)
        if fd >= 0:
            close(fd)


class LocalFile:
    """A file of this machine as a source."""

    def __init__(self, path: str | os.PathLike[str], io: IO = "auto") -> None:
        path = os.fspath(path)
        self.name = path or "''"
        try:
            descriptor = _Descriptor(path)
            status = os.fstat(descriptor.fd)
        except ValueError as error:  # a NUL in the path
            raise SourceError(str(error), where=repr(self.name)) from None
        except OSError as error:
            raise from_os_error(error, self.name) from None
        if not stat.S_ISREG(status.st_mode):
            raise _not_a_file(self.name, status.st_mode)
        self._descriptor: _Descriptor | None = descriptor
        self.size = status.st_size
        self._device = status.st_dev
        self._io = io
        self._mapping: mmap.mmap | None = None
        self._private: mmap.mmap | None = None
        self._head = self._pread(descriptor, 0, min(HEAD_BYTES, self.size))

    @property
    def is_mapped(self) -> bool:
        """Whether views are made by mapping the file."""
        if self._io == "auto":
            self._io = "pread" if is_network(self._device) else "mmap"
        return self._io == "mmap"

    def view(self, begin: int, end: int) -> memoryview | None:
        if not self.is_mapped:
            self._open()
            return None
        mapping = self._mapped(end)
        return memoryview(b"") if mapping is None else memoryview(mapping)[begin:end]

    def private_view(self, begin: int, end: int) -> memoryview | None:
        """The bytes without a copy, writable: what is written there stays in this process and never reaches the file."""
        if not self.is_mapped or not self.size or self._mapped(end) is None:
            return None
        if self._private is None:
            import mmap

            self._private = mmap.mmap(self._open().fd, self.size, access=mmap.ACCESS_COPY)
        return memoryview(self._private)[begin:end]

    def _mapped(self, end: int) -> mmap.mmap | None:
        """The mapped file, after making sure that it still reaches to `end`; None for an empty file."""
        descriptor = self._open()
        check_range(self, 0, end, os.fstat(descriptor.fd).st_size)
        if self._mapping is None and self.size:
            import mmap

            try:
                self._mapping = mmap.mmap(descriptor.fd, self.size, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise SourceError(f"it cannot be mapped ({error})", where=self.name, do='pass io="pread"') from None
        return self._mapping

    def read(self, begin: int, end: int) -> bytes:
        if end <= len(self._head):
            self._open()
            return self._head[begin:end]
        check_range(self, begin, end, self.size)
        return self._pread(self._open(), begin, end - begin)

    def read_into(self, begin: int, out: memoryview) -> None:
        descriptor, done = self._open(), 0
        try:
            while done < len(out):
                got = _read_at(descriptor.fd, begin + done, out[done:])
                if not got:
                    check_range(self, begin, begin + len(out), min(begin + done, os.fstat(descriptor.fd).st_size))
                done += got
        except OSError as error:
            raise error if isinstance(error, SourceError) else from_os_error(error, self.name) from None

    def close(self) -> None:
        self._descriptor = None
        self._mapping = self._private = None

    def _open(self) -> _Descriptor:
        if self._descriptor is None:
            raise SourceClosedError(
                "it was closed", where=self.name, do="read tensors before closing the store, or open it again"
            )
        return self._descriptor

    def _pread(self, descriptor: _Descriptor, begin: int, length: int) -> bytes:
        try:
            data = _pread(descriptor.fd, length, begin)
            while len(data) < length:
                more = _pread(descriptor.fd, length - len(data), begin + len(data))
                if not more:
                    raise TruncatedError(
                        f"bytes {begin} to {begin + length} are wanted, and it ends at {begin + len(data)}",
                        where=self.name,
                        do="it was cut while it was in use: open it again",
                    )
                data += more
        except OSError as error:
            raise error if isinstance(error, SourceError) else from_os_error(error, self.name) from None
        return data


def _not_a_file(name: str, mode: int) -> SourceError:
    if stat.S_ISDIR(mode):
        return SourceIsDirectoryError("this is a folder", where=name, do="give the path of a file")
    kind = "a FIFO" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    return SourceError(f"this is {kind}, not a file", where=name, do='pass a file object instead: open(path, "rb")')


if hasattr(os, "preadv"):
    # Linux moves at most 2 GiB less a page in one call, and a smaller piece lets other threads in sooner.
    _PIECE = 64 * 1024 * 1024

    def _read_at(fd: int, begin: int, out: memoryview) -> int:
        return os.preadv(fd, [out[:_PIECE]], begin)

else:

    def _read_at(fd: int, begin: int, out: memoryview) -> int:
        piece = _pread(fd, min(len(out), 8 * 1024 * 1024), begin)
        out[: len(piece)] = piece
        return len(piece)


if hasattr(os, "pread"):
    _pread = os.pread
else:
    from threading import Lock

    _seek_lock = Lock()

    def _pread(fd: int, length: int, begin: int) -> bytes:
        with _seek_lock:
            os.lseek(fd, begin, os.SEEK_SET)
            return os.read(fd, length)
