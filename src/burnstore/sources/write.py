"""From a layout to bytes in a file, a file object or memory.

A format says what lies where (`Layout`); this file moves the bytes. Small tensors are gathered into one `writev`,
large ones go in the pieces that their owner gives, so nothing is held but one block.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

from burnstore.errors import SourceError, TensorDataError
from burnstore.sources.base import TensorBytes

if TYPE_CHECKING:
    from typing_extensions import Buffer

# Below this size one more system call costs more than the copy that it saves.
_SMALL = 64 * 1024
_BATCH_BYTES = 8 * 1024 * 1024
_BATCH_BUFFERS = 1000  # Linux takes 1,024 in one writev
_ZEROS = bytes(4096)


@dataclass(frozen=True, slots=True)
class Part:
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
    """Where bytes go, in order."""

    def __call__(self, buffers: Sequence[Buffer], /) -> None: ...


def write_layout(layout: Layout, sink: Sink) -> None:
    """Send the bytes of `layout` to `sink`, in order."""
    batch: list[Buffer] = [layout.header]
    at = batched = len(layout.header)

    for part in layout.parts:
        if part.begin > at:
            batch.extend(_zeros(part.begin - at))
            at = part.begin
        nbytes = part.data.nbytes
        if nbytes > _SMALL:
            sink(batch)
            batch, batched = [], 0
            _write_large(part, sink)
        elif nbytes:
            batch.append(_whole(part))
            batched += nbytes
            if len(batch) >= _BATCH_BUFFERS or batched >= _BATCH_BYTES:
                sink(batch)
                batch, batched = [], 0
        at += nbytes
    if layout.size > at:
        batch.extend(_zeros(layout.size - at))
    if batch:
        sink(batch)


def _whole(part: Part) -> Buffer:
    view = part.data.view()
    if view is not None:
        return view
    pieces = [bytes(block) for block in part.data.blocks()]
    whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if len(whole) != part.data.nbytes:
        raise _wrong_length(part, len(whole))
    return whole


def _write_large(part: Part, sink: Sink) -> None:
    written = 0
    for block in part.data.blocks():
        length = memoryview(block).nbytes
        if written + length > part.data.nbytes:
            raise _wrong_length(part, written + length)
        sink([block])
        written += length
    if written != part.data.nbytes:
        raise _wrong_length(part, written)


def _wrong_length(part: Part, got: int) -> TensorDataError:
    return TensorDataError(
        f"its shape and dtype need {part.data.nbytes} bytes, and its blocks gave {got}",
        where=f"tensor {part.name!r}",
        do="give blocks that add up; nothing was written",
    )


def _zeros(length: int) -> Iterator[bytes]:
    while length > 0:
        piece = _ZEROS[:length]
        yield piece
        length -= len(piece)


def to_descriptor(fd: int) -> Sink:
    """A sink that writes to an open file, all buffers in one call where the system has it."""

    def plain(buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            _write_all(fd, memoryview(buffer).cast("B") if memoryview(buffer).nbytes else memoryview(b""))

    def gathered(buffers: Sequence[Buffer]) -> None:
        for start in range(0, len(buffers), _BATCH_BUFFERS):
            some = buffers[start : start + _BATCH_BUFFERS]
            if len(some) == 1:
                plain(some)
                continue
            want = sum(memoryview(buffer).nbytes for buffer in some)
            done = os.writev(fd, some)
            if done < want:  # a signal came, or the call reached the system's 2 GiB
                plain(list(_after(some, done)))

    return gathered if hasattr(os, "writev") else plain


def _after(buffers: Iterable[Buffer], done: int) -> Iterator[Buffer]:
    for buffer in buffers:
        view = memoryview(buffer)
        if done >= view.nbytes:
            done -= view.nbytes
        else:
            yield view.cast("B")[done:]
            done = 0


def _write_all(fd: int, view: memoryview) -> None:
    while view.nbytes:
        view = view[os.write(fd, view) :]


def to_file_object(file: BinaryIO) -> Sink:
    """A sink that writes to a binary file object, which need not be able to seek."""

    def write(buffers: Sequence[Buffer]) -> None:
        _send(file.write, b"".join(buffers) if len(buffers) > 1 else buffers[0], file)

    return write


def _send(write: Callable[[Buffer], int | None], buffer: Buffer, file: BinaryIO) -> None:
    view = memoryview(buffer)
    view = view.cast("B") if view.nbytes else view
    while view.nbytes:
        done = write(view)
        if done is None or done == view.nbytes:  # buffered files take all, or do not say
            return
        if done <= 0:
            raise SourceError(f"it took {done} of {view.nbytes} bytes", where=f"<{getattr(file, 'name', type(file).__name__)}>")
        view = view[done:]
