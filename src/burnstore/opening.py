"""From whatever a user calls a source to the contents of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from burnstore.errors import FormatError, SourceError, SourceIsDirectoryError, UsageError
from burnstore.formats.base import Contents, KeyedFormat
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
    if isinstance(given, (bytes, bytearray, memoryview)):
        return MemorySource(given)
    if isinstance(given, Readable) and not isinstance(given, Mapping):
        return open_stream(given)
    if isinstance(given, Mapping) or (isinstance(given, Iterable) and not _is_buffer(given)):
        return None
    if _is_buffer(given):
        return MemorySource(given)  # type: ignore[arg-type]
    raise UsageError(
        f"a {type(given).__name__} is no source of tensors",
        do="give a path, bytes, a binary file object, a store, or a mapping of names to arrays",
    )


def open_contents(given: object, options: Options) -> Contents:
    """The tensors of a source, listed and checked; no data is read."""
    try:
        source = open_source(given, options)
    except SourceIsDirectoryError:
        return open_contents(_index_of(os.fsdecode(given)), options)  # type: ignore[arg-type]
    if source is None:
        from burnstore.held import hold

        return hold(given)
    path = os.fsdecode(given) if isinstance(given, (str, os.PathLike)) else None
    try:
        return _read(source, path, options)
    except BaseException:
        source.close()
        raise


def _read(source: Source, path: str | None, options: Options) -> Contents:
    if path is not None and is_index(path) and options.format is None:
        return read_index(source, path, options.limits, lambda shard: _open_shard(shard, options))
    format = by_name(options.format) if options.format else detect(source, path)
    try:
        if options.key is None:
            return format.read(source, options.limits)
        if not isinstance(format, KeyedFormat):
            raise UsageError(f"a {format.name} file has no keys", where=source.name, do="leave key= out")
        return format.read_key(source, options.limits, options.key)
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError) as error:
        from burnstore.errors import BurnstoreError

        if isinstance(error, BurnstoreError):
            raise
        raise FormatError(  # a reader must not let these out; say it plainly rather than crash
            f"its reader failed: {type(error).__name__}: {error}",
            where=source.name,
            do="it is damaged; please report it",
        ) from error


def _open_shard(path: str, options: Options) -> Contents:
    source = open_source(path, options)
    assert source is not None
    return _read(source, path, options)


def _index_of(folder: str) -> str:
    """The one index, or the one weight file, in a folder."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise SourceError(str(error), where=folder) from None
    for suffixes in ((".safetensors" + SUFFIX,), (SUFFIX,), (".safetensors", ".bpk"), (".pt", ".pth", ".bin", ".ckpt")):
        found = [name for name in names if name.endswith(suffixes)]
        if len(found) == 1:
            return os.path.join(folder, found[0])
        if found:
            raise SourceIsDirectoryError(
                f"this folder holds {len(found)} candidates: {', '.join(found[:4])}{', …' if len(found) > 4 else ''}",
                where=folder,
                do="give the path of one of them",
            )
    raise SourceIsDirectoryError("this is a folder without an index or a weight file", where=folder, do="give the path of a file")


def _is_buffer(given: object) -> bool:
    try:
        memoryview(given)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True
