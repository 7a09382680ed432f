"""From whatever a user calls a source to the contents of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from burnstore.collection import CollectionPaused
from burnstore.errors import (
    BurnstoreError,
    FormatError,
    LimitError,
    SourceError,
    SourceIsDirectoryError,
    SourceNotFoundError,
    UnknownFormatError,
    UsageError,
)
from burnstore.formats.base import Contents, Format, KeyedFormat
from burnstore.formats.detect import detect
from burnstore.formats.sharded import SUFFIX, is_index, read_index
from burnstore.formats.table import by_name
from burnstore.sources.base import Source
from burnstore.sources.memory import MemorySource
from burnstore.sources.stream import Readable, open_stream

if TYPE_CHECKING:
    from burnstore.options import Options


def open_source(given: object, options: Options) -> Source | None:
    """The bytes of a path, a buffer or a binary file object; None for what holds tensors rather than bytes."""
    if isinstance(given, (str, os.PathLike)):
        from burnstore.sources.local import LocalFile

        path: str | bytes = os.fspath(given)
        return LocalFile(os.fsdecode(path), options.io)
    holds_bytes = is_buffer(given) and getattr(getattr(given, "dtype", None), "itemsize", 1) == 1
    if holds_bytes:
        return MemorySource(given)  # type: ignore[arg-type]
    if hasattr(given, "dtype") and hasattr(given, "shape"):
        raise UsageError("an array has no name", do="give a mapping: {name: array}")
    if isinstance(given, Mapping):
        return None
    if isinstance(given, Readable):
        return open_stream(given)
    if isinstance(given, Iterable):
        return None
    raise UsageError(
        f"an object of type {type(given).__name__} is no source of tensors",
        do="give a path, bytes, a binary file object, a store, or a mapping of names to arrays",
    )


def open_contents(given: object, options: Options) -> Contents:
    """The tensors of a source, listed and checked; no data is read."""
    try:
        source = open_source(given, options)
    except SourceIsDirectoryError:
        return open_contents(_index_of(os.fsdecode(given)), options)  # type: ignore[arg-type]
    except SourceNotFoundError:
        index = os.fsdecode(given) + SUFFIX  # type: ignore[arg-type]
        if index == SUFFIX or not os.path.exists(index):
            raise
        return open_contents(index, options)  # the model was saved in shards under this name
    if source is None:
        from burnstore.held import hold

        return hold(given)
    path = os.fsdecode(given) if isinstance(given, (str, os.PathLike)) else None
    try:
        return read_contents(source, path, options)
    except BaseException:
        source.close()
        raise


def read_contents(source: Source, path: str | None, options: Options) -> Contents:
    """The tensors of a source that is open already."""
    if path is not None and is_index(path):
        return read_index(source, path, options.limits, lambda shard: _open_shard(shard, options))
    format = by_name(options.format) if options.format else detect(source, path)
    try:
        with CollectionPaused():
            if options.key is None:
                return format.read(source, options.limits)
            if not isinstance(format, KeyedFormat):
                raise UsageError(f"a {format.name} file has no keys", where=source.name, do="leave key= out")
            return format.read_key(source, options.limits, options.key)
    except MemoryError:
        raise LimitError("its header needs more memory than there is", where=source.name, do="the file is damaged") from None
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError) as error:
        if isinstance(error, BurnstoreError):
            raise _better(error, source, format) from None
        raise FormatError(  # a reader must not let these out; say it plainly rather than crash
            f"its reader failed: {type(error).__name__}: {error}",
            where=source.name,
            do="it is damaged; please report it",
        ) from error


def _better(error: BurnstoreError, source: Source, format: Format) -> BurnstoreError:
    """What to say of a file that was forced into a format: if it is another's, that is the news."""
    try:
        other = detect(source, next(iter(format.suffixes), None))  # the suffix: so that only look-alikes are unknown
    except BurnstoreError as known:
        return known if isinstance(known, UnknownFormatError) and source.size else error
    if other.name == format.name:
        return error
    return FormatError(
        f"this is a {other.name} file, not {format.name}", where=source.name, do="leave format= out, or use its store"
    )


def _open_shard(path: str, options: Options) -> Contents:
    source = open_source(path, options)
    assert source is not None
    return read_contents(source, path, options)


def _index_of(folder: str) -> str:
    """The one index, or the one weight file, in a folder."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise SourceError(str(error), where=folder) from None
    for suffixes in ((".safetensors" + SUFFIX,), (SUFFIX,), (".safetensors", ".bpk"), (".pt", ".pth", ".bin", ".ckpt")):
        found = [name for name in names if name.endswith(suffixes)]
        if len(found) == 1:
            plain = found[0].removesuffix(SUFFIX)
            if plain != found[0] and plain in names:
                raise SourceIsDirectoryError(
                    f"this folder holds both {plain} and the index of shards {found[0]}",
                    where=folder,
                    do="give the path of the one you mean, and delete the other",
                )
            return os.path.join(folder, found[0])
        if found:
            raise SourceIsDirectoryError(
                f"this folder holds {len(found)} candidates: {', '.join(found[:4])}{', …' if len(found) > 4 else ''}",
                where=folder,
                do="give the path of one of them",
            )
    raise SourceIsDirectoryError("this is a folder without an index or a weight file", where=folder, do="give the path of a file")


def is_buffer(given: object) -> bool:
    """Whether an object gives its bytes by the buffer protocol."""
    try:
        memoryview(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # ValueError: bf16 arrays, for one, have no buffer
        return False
    return True
