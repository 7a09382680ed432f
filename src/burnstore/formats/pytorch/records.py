"""The bytes of one storage inside its container, wherever they are: a stretch of the file, or an entry to be inflated."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

from burnstore.errors import FormatError
from burnstore.sources.base import BLOCK_BYTES, FileRange, TensorBytes

# What one byte of deflate can stand for at most.
MAX_INFLATION = 1032


class Container(Protocol):
    """A file as the pickle sees it: storages by their keys."""

    @property
    def kind(self) -> str:
        """`zip`, `legacy`, `tar` or `pickle`."""

    @property
    def big_endian(self) -> bool:
        """Whether numbers in storages have their highest byte first."""

    def record(self, key: str) -> FileRange | Inflated:
        """The bytes of a storage; an error for one that is not there or cannot be read."""


def part_of(record: FileRange | Inflated, begin: int, end: int) -> FileRange | Inflated:
    """Some of a record's bytes."""
    if isinstance(record, FileRange):
        return FileRange(record.source, record.begin + begin, record.begin + end)
    return Inflated(record.packed, record.whole, record.begin + begin, record.begin + end, record.name)


class Inflated:
    """Bytes of a deflated entry; they are unpacked each time that they are asked for, in blocks."""

    __slots__ = ("begin", "end", "name", "packed", "whole")

    def __init__(self, packed: FileRange, whole: int, begin: int, end: int, name: str) -> None:
        self.packed, self.whole, self.begin, self.end, self.name = packed, whole, begin, end, name

    @property
    def nbytes(self) -> int:
        return self.end - self.begin

    def view(self) -> None:
        return None

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        at = 0
        for block in Inflated(self.packed, self.whole, self.begin + begin, self.begin + begin + len(out), self.name).blocks():
            out[at : at + len(block)] = block
            at += len(block)

    def blocks(self) -> Iterator[memoryview]:
        at = 0
        for block in inflate(self.packed, self.whole, self.name):
            low, high = max(self.begin - at, 0), min(self.end - at, len(block))
            if low < high:
                yield memoryview(block)[low:high]
            at += len(block)
            if at >= self.end < self.whole:
                return  # the rest is unpacked only where it is wanted: to read the end is to check the whole


def inflate(packed: TensorBytes, whole: int, name: str) -> Iterator[bytes]:
    """The unpacked bytes in blocks; more or fewer than `whole` are an error, and no more are ever made."""
    unpacker = zlib.decompressobj(-15)
    left = whole
    try:
        for piece in packed.blocks():
            feed: bytes | memoryview = bytes(piece)
            while feed and not unpacker.eof:
                block = unpacker.decompress(feed, BLOCK_BYTES)
                left -= len(block)
                if left < 0:
                    raise FormatError(f"it unpacks to more than the {whole} bytes that it says", where=name, do=_DO)
                feed = unpacker.unconsumed_tail
                if block:
                    yield block
        rest = b"" if unpacker.eof else unpacker.flush()
    except zlib.error as error:
        raise FormatError(f"it cannot be unpacked ({error})", where=name, do=_DO) from None
    left -= len(rest)
    if rest and left >= 0:
        yield rest
    if left or not unpacker.eof:
        raise FormatError(f"it unpacks to {whole - left} bytes, and says {whole}", where=name, do=_DO)


_DO = "the file is damaged: get it again"
