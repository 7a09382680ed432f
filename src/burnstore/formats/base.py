"""The contract of a format, and the table of tensors that reading a file gives.

A format reads a source into `Contents` without touching the data, and turns snapshots into a `Layout` that says which
bytes go where. It neither opens files nor writes them. A format of your own is an object with these methods, announced
under the entry point group `burnstore.formats`; `burnstore.testing.FormatContract` tests it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from burnstore.dtypes import DType, Shape
from burnstore.limits import DEFAULT_LIMITS, Limits
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.base import FileRange, Source
from burnstore.sources.write import Layout

BurnVersion = Literal["0.20", "0.22"]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a caller may ask of a writer."""

    for_burn: BurnVersion = "0.22"
    limits: Limits = DEFAULT_LIMITS
    # What only the same format can say, such as Burnpack's scalars; taken over when a file is rewritten.
    extras: Mapping[str, Any] = field(default_factory=dict)


# Name, dtype, shape, and the source and range of the bytes; a source of None means that only the snapshot can read them.
Row = tuple[str, DType, Shape, "Source | None", int, int]


class Contents(Protocol):
    """The tensors of one file, by name, in the file's order."""

    @property
    def format(self) -> str:
        """The name of the file's format."""

    @property
    def source(self) -> Source | None:
        """The file, for `verify`; None where there is not just one."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """The texts that its writer attached."""

    @property
    def extras(self) -> Mapping[str, Any]:
        """What only this format can say."""

    def names(self) -> Collection[str]:
        """All names, in order."""

    def __len__(self) -> int: ...

    def __contains__(self, name: object) -> bool: ...

    def snapshot(self, name: str) -> TensorSnapshot:
        """One tensor; KeyError for a name that is not there."""

    def rows(self) -> Iterator[Row]:
        """All tensors in order, cheaper than snapshots."""

    def close(self) -> None:
        """Close the source."""


class Format(Protocol):
    """A file format."""

    @property
    def name(self) -> str:
        """What `format=` calls it."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The endings of its files, such as `(".bpk",)`."""

    @property
    def dialect(self) -> str | None:
        """Whose names and axes its tensors have, where the format itself says so."""

    def recognizes(self, head: bytes, size: int) -> bool:
        """Whether a file of `size` bytes that begins with `head` is one of this format."""

    def read(self, source: Source, limits: Limits) -> Contents:
        """The tensors of a source, without reading their data."""

    def write(self, tensors: Sequence[TensorSnapshot], metadata: Mapping[str, str] | None, options: WriteOptions) -> Layout:
        """What a file of these tensors looks like; everything that would make it invalid is refused here.

        Names are known to be text and different. Metadata of `None` is none at all, an empty one may be written as such.
        """

    def verify(self, source: Source, contents: Contents, limits: Limits) -> Iterator[str]:
        """The oddities that reading tolerates."""


@runtime_checkable
class KeyedFormat(Format, Protocol):
    """A format whose files nest, so that a part of one can be opened by its key."""

    def read_key(self, source: Source, limits: Limits, key: str) -> Contents:
        """The tensors under a key; dots lead further down where no key is exactly that."""


@runtime_checkable
class Nested(Protocol):
    """Contents that may hold what is wanted one level further down."""

    def nests(self) -> list[str]:
        """The keys to open: `burnstore.open(path, key=...)`."""


class Span(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Where a tensor's bytes are, counted from the start of the data."""

    begin: int
    end: int


class Entry(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a header says of one tensor: Burnpack and SafeTensors use the same three words."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: Span


class HeaderContents:
    """The contents of a file whose header lists every tensor with its range: Burnpack and SafeTensors."""

    __slots__ = ("_dtypes", "_entries", "_start", "extras", "format", "metadata", "param_ids", "source")

    def __init__(
        self,
        format: str,
        source: Source,
        entries: Mapping[str, Entry],
        dtypes: Mapping[str, DType],
        start: int,
        metadata: Mapping[str, str],
        ids: Mapping[str, int] | None = None,
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        self.format = format
        self.source: Source = source
        self.metadata = metadata
        self.extras: Mapping[str, Any] = extras or {}
        self._entries = entries
        self._dtypes = dtypes
        self._start = start
        self.param_ids = ids or {}

    def names(self) -> KeysView[str]:
        return self._entries.keys()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def snapshot(self, name: str) -> TensorSnapshot:
        entry = self._entries[name]
        span, start = entry.data_offsets, self._start
        data = FileRange(self.source, start + span.begin, start + span.end)
        return TensorSnapshot(name, self._dtypes[entry.dtype], entry.shape, data, (), self.param_ids.get(name))

    def rows(self) -> Iterator[Row]:
        source, start, dtypes = self.source, self._start, self._dtypes
        for name, entry in self._entries.items():
            span = entry.data_offsets
            yield name, dtypes[entry.dtype], entry.shape, source, start + span.begin, start + span.end

    def entries(self) -> Mapping[str, Entry]:
        """What the header says, for `verify`."""
        return self._entries

    def close(self) -> None:
        self.source.close()
