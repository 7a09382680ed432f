"""From a layout to bytes in a file, a file object or memory.

A format says what lies where (`Layout`); this file moves the bytes. Small tensors are gathered into one `writev`,
large ones go in the pieces that their owner gives, so nothing is held but one block.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from burnstore.errors import SourceError, TensorDataError, UsageError
from burnstore.sources.base import TensorBytes, flat

if TYPE_CHECKING:
    from typing_extensions import Buffer

# Below this size one more system call costs more than the copy that it saves.
_SMALL = 64 * 1024
_BATCH_BYTES = 8 * 1024 * 1024
_BATCH_BUFFERS = 1000
_IOV_MAX = 1024  # what Linux takes in one writev
_PUSH_BYTES = 32 * 1024 * 1024
_ZEROS = bytes(4096)


class Part(NamedTuple):
    """One tensor's place in a file."""

    name: str
    begin: int
    data: TensorBytes


@dataclass(frozen=True, slots=True)
class Layout:
    """What a format wants written: its header, then each part at its place with zeros between them."""

    header: bytes
    parts: Sequence[Part]
    size: int


class Sink(Protocol):
    """Where bytes go, in order: some buffers, and how many bytes they have in all."""

    def __call__(self, buffers: Sequence[Buffer], nbytes: int, /) -> None: ...


def write_layout(layout: Layout, sink: Sink) -> None:
    """Send the bytes of `layout` to `sink`, in order."""
    batch: list[Buffer] = [layout.header] if layout.header else []
    at = batched = len(layout.header)

    for part in layout.parts:
        _, begin, data = part
        gap = begin - at
        if gap:
            batch.extend(_zeros(gap))
            batched += gap
        nbytes = data.nbytes
        if nbytes > _SMALL:
            if batch:
                sink(batch, batched)
            batch, batched = [], 0
            _write_large(part, sink)
        elif nbytes:
            view = data.view()
            batch.append(_whole(part) if view is None else view)
            batched += nbytes
            if len(batch) >= _BATCH_BUFFERS or batched >= _BATCH_BYTES:
                sink(batch, batched)
                batch, batched = [], 0
        at = begin + nbytes
    if layout.size > at:
        batch.extend(_zeros(layout.size - at))
        batched += layout.size - at
    if batch:
        sink(batch, batched)


def _whole(part: Part) -> Buffer:
    pieces = [flat(block).tobytes() for block in part.data.blocks()]
    whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if len(whole) != part.data.nbytes:
        raise _wrong_length(part, len(whole))
    return whole


def _write_large(part: Part, sink: Sink) -> None:
    written = 0
    for block in part.data.blocks():
        length = flat(block).nbytes
        if written + length > part.data.nbytes:
            raise _wrong_length(part, written + length)
        sink([block], length)
        written += length
    if written != part.data.nbytes:
        raise _wrong_length(part, written)


def _wrong_length(part: Part, got: int) -> TensorDataError:
    return TensorDataError(
        f"its shape and dtype need {part.data.nbytes} bytes, and its blocks gave {got}",
        where=f"tensor {part.name!r}",
        do="give blocks that add up",
    )


def _zeros(length: int) -> Iterator[bytes]:
    while length > 0:
        piece = _ZEROS[:length]
        yield piece
        length -= len(piece)


def to_descriptor(fd: int, *, durable: bool = False) -> Sink:
    """A sink that writes to an open file, all buffers in one call where the system has it.

    With `durable` the disk is set to work while the rest is still being written, so that the fsync at the end, which the
    caller does, has little left to wait for.
    """
    push = _Push(fd).after if durable and hasattr(os, "posix_fadvise") else _nothing

    def plain(buffers: Iterable[Buffer], nbytes: int) -> None:
        for buffer in buffers:
            view = flat(buffer)
            while view.nbytes:
                done = os.write(fd, view[:_PUSH_BYTES])
                push(done)
                view = view[done:]

    def gathered(buffers: Sequence[Buffer], nbytes: int) -> None:
        if len(buffers) == 1 or len(buffers) > _IOV_MAX:
            plain(buffers, nbytes)
            return
        done = os.writev(fd, buffers)
        push(done)
        if done < nbytes:  # a signal came, or the call reached the system's 2 GiB
            plain(_after(buffers, done), nbytes - done)

    return gathered if hasattr(os, "writev") else plain


class _Push:
    """Starts writing to the disk what was written to the page cache, every few megabytes.

    That is what Linux does when it is told that pages are not needed and they are not on the disk yet.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._begin = self._end = 0

    def after(self, nbytes: int) -> None:
        self._end += nbytes
        if self._end - self._begin >= _PUSH_BYTES:
            try:
                os.posix_fadvise(self._fd, self._begin, self._end - self._begin, os.POSIX_FADV_DONTNEED)
            except OSError:  # an advice that this file system does not take
                pass
            self._begin = self._end


def _nothing(nbytes: int) -> None:
    pass


def _after(buffers: Iterable[Buffer], done: int) -> Iterator[memoryview]:
    """What is left of the buffers after their first `done` bytes."""
    for buffer in buffers:
        view = flat(buffer)
        if done < len(view):
            yield view[done:]
        done = max(0, done - len(view))


def to_file_object(file: BinaryIO) -> Sink:
    """A sink that writes to a binary file object, which need not be able to seek."""

    def write(buffers: Sequence[Buffer], nbytes: int) -> None:
        _send(file.write, b"".join(buffers) if len(buffers) > 1 else buffers[0], file)

    return write


def _send(write: Callable[[Buffer], int | None], buffer: Buffer, file: BinaryIO) -> None:
    view = flat(buffer)
    while view.nbytes:
        try:
            done = write(view)
        except TypeError as error:
            name = f"<{getattr(file, 'name', None) or type(file).__name__}>"
            raise UsageError(f"this file object takes no bytes ({error})", where=name, do="open it in binary mode") from None
        if done is None or done == view.nbytes:  # buffered files take all, or do not say
            return
        if done <= 0:
            raise SourceError(f"it took {done} of {view.nbytes} bytes", where=f"<{getattr(file, 'name', type(file).__name__)}>")
        view = view[done:]
