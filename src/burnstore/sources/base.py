"""The contract of a source: bytes somewhere, known by their size before any of them is read.

A source gives a view of its bytes where that costs no copy, and otherwise fills memory that the caller made.
It knows no format. `FileRange` is one stretch of a source, the thing that a lazy tensor holds on to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from burnstore.errors import TruncatedError, UsageError

if TYPE_CHECKING:
    from typing_extensions import Buffer

# What one read of a header brings: most headers are smaller, and one page of a disk costs as much as sixteen.
HEAD_BYTES = 64 * 1024
# A block that stays in the processor's cache is copied faster than a larger one.
BLOCK_BYTES = 1024 * 1024


@runtime_checkable
class Source(Protocol):
    """Bytes somewhere. Implementations are safe to use from many threads."""

    @property
    def name(self) -> str:
        """What messages call it: a path, or words such as `<68 bytes>`."""

    @property
    def size(self) -> int:
        """How many bytes there were when it was opened."""

    def view(self, begin: int, end: int) -> memoryview | None:
        """The bytes without a copy, read-only, or None where the source cannot do that."""

    def read_into(self, begin: int, out: memoryview) -> None:
        """Fill `out` from `begin`; fewer bytes than that are an error, never zeros."""

    def read(self, begin: int, end: int) -> bytes | memoryview:
        """The bytes, by whichever way is cheaper for a small piece such as a header."""

    def close(self) -> None:
        """Give back what the source holds; views that were handed out stay valid."""


class TensorBytes(Protocol):
    """The bytes of one tensor, little-endian and in C order, wherever they are and whether or not they exist yet."""

    @property
    def nbytes(self) -> int: ...

    def view(self) -> Buffer | None:
        """All of them without a copy, or None where that cannot be."""

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        """Fill `out` with those from `begin` on."""

    def blocks(self) -> Iterator[Buffer]:
        """All of them in order, in pieces; each is valid until the next is asked for."""


class FileRange:
    """One stretch of a source: the bytes of a tensor that nobody has read yet."""

    __slots__ = ("begin", "end", "source")

    def __init__(self, source: Source, begin: int, end: int) -> None:
        self.source = source
        self.begin = begin
        self.end = end

    @property
    def nbytes(self) -> int:
        return self.end - self.begin

    def view(self) -> memoryview | None:
        return self.source.view(self.begin, self.end)

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        self.source.read_into(self.begin + begin, out)

    def blocks(self) -> Iterator[memoryview]:
        length = min(BLOCK_BYTES, self.nbytes)
        block = memoryview(bytearray(length))
        at = self.begin
        while at < self.end:
            piece = block[: min(length, self.end - at)]
            self.source.read_into(at, piece)
            yield piece
            at += len(piece)


def flat(buffer: Buffer) -> memoryview:
    """The bytes of a buffer, one after another."""
    view = memoryview(buffer)
    if not view.nbytes:
        return memoryview(b"")
    try:
        return view.cast("B")
    except TypeError as error:
        raise UsageError(f"a buffer does not lie in one piece ({error})", do="give contiguous bytes") from None


def check_range(source: Source, begin: int, end: int, size: int) -> None:
    """Refuse a range that is not inside the `size` bytes that there are now."""
    if end > size:
        raise TruncatedError(
            f"bytes {begin} to {end} are wanted, and it now ends at {size} (it had {source.size} when it was opened)",
            where=source.name,
            do="it was cut or replaced while it was in use: open it again",
        )
