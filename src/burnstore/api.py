"""The verbs: open, read, save, convert, verify."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypedDict, Unpack, overload

from burnstore.collection import CollectionPaused
from burnstore.limits import DEFAULT_LIMITS, Limits
from burnstore.options import Options
from burnstore.report import Verification
from burnstore.snapshot import TensorSnapshot
from burnstore.store import Store

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Buffer

    from burnstore.formats.base import BurnVersion
    from burnstore.sources.local import IO

    PathLike = str | os.PathLike[str]
    Tensors = Mapping[str, Any] | Iterable[TensorSnapshot]
    Source = PathLike | Buffer | BinaryIO | Tensors
    Destination = PathLike | BinaryIO | bytearray | Store


class SaveOptions(TypedDict, total=False):
    """The keywords of `save` and `convert`."""

    format: str | None
    metadata: Mapping[str, str] | None
    overwrite: bool
    fsync: bool
    shard_size: int | str | None
    for_burn: BurnVersion | None
    dialect: Literal["keep"] | None
    extra: Mapping[str, Any] | None
    limits: Limits | None


def open(
    source: Source, *, format: str | None = None, key: str | None = None, io: IO = "auto", limits: Limits = DEFAULT_LIMITS
) -> Store:
    """Open a weight file and list its tensors; none of them is read.

    `source` is a path (of a file, of a shards' index, or of the folder that holds one), bytes or any buffer, a binary file
    object, or tensors in hand. The content says which format it is; `format=` forces one. `key` opens a part of a PyTorch
    file, such as the `state_dict` of a checkpoint; dots lead further down. `io` says how a local file is read: "mmap" gives
    views without a copy, "pread" reads each tensor when it is asked for, "auto" takes mmap except on network file systems.

    >>> import burnstore as bs
    >>> data = bs.save({"fc.bias": [0.5, 1.5]}, bytes, format="safetensors")
    >>> store = bs.open(data)
    >>> store["fc.bias"]
    TensorSnapshot('fc.bias', F64, [2])
    """
    if isinstance(source, Store):
        if format is None and key is None:
            return source
        from burnstore.errors import UsageError

        raise UsageError("this is open already", where=source.name, do="give format= and key= where it is opened")
    store = Store(source, Options(format=format, key=key, io=io, limits=limits))
    store.open()
    return store


def read(
    source: Source,
    *,
    format: str | None = None,
    key: str | None = None,
    copy: bool = True,
    threads: int | None = None,
    io: IO = "auto",
    limits: Limits = DEFAULT_LIMITS,
) -> dict[str, np.ndarray[Any, Any]]:
    """All tensors of a weight file as NumPy arrays, by name.

    The arrays are the caller's own and the file is closed. With `copy=False` they are read-only views, which cost nothing until
    they are used and keep the file mapped.

    >>> import burnstore as bs
    >>> bs.read(bs.save({"fc.bias": [0.5, 1.5]}, bytes, format="bpk"))
    {'fc.bias': array([0.5, 1.5])}
    """
    from burnstore.devices.memory import read_owned, read_views

    store = open(source, format=format, key=key, io=io, limits=limits)
    try:
        with CollectionPaused():
            return read_owned(store.contents, threads) if copy else read_views(store.contents)
    finally:
        if store is not source:
            store.close()


@overload
def save(tensors: Tensors, dest: type[bytes], **options: Unpack[SaveOptions]) -> bytes: ...
@overload
def save(tensors: Tensors, dest: Destination, **options: Unpack[SaveOptions]) -> None: ...
def save(
    tensors: Tensors,
    dest: Destination | type[bytes],
    *,
    format: str | None = None,
    metadata: Mapping[str, str] | None = None,
    overwrite: bool = False,
    fsync: bool = True,
    shard_size: int | str | None = None,
    for_burn: BurnVersion | None = None,
    dialect: Literal["keep"] | None = None,
    extra: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
) -> bytes | None:
    """Save tensors to a file, whole or not at all.

    `tensors` is a mapping of names to arrays or snapshots, or an iterable of snapshots; they lie in the file as given, which
    `dialect="keep"` says aloud. (To write a file into another, use `convert`: it carries over what the file says of itself.)
    `dest` is a path whose suffix says the format, a binary file object, a `bytearray` to append to, a Burn-named store, or
    `bytes` to get the bytes. A file that exists is replaced only with `overwrite=True`. With `fsync=False` the file may be
    lost if the machine stops within seconds. `shard_size="5GB"` writes SafeTensors shards and their index. `for_burn` says
    which version of Burn is to read booleans and quantised tensors of a `.bpk`. `extra={"epoch": 3}` puts plain values beside
    the tensors of a `.pt`, which then lie under "state_dict".

    >>> import burnstore as bs, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "model.bpk")
    >>> bs.save({"fc.weight": [[1.0, 2.0]]}, path, metadata={"version": "1.0"})
    >>> bs.open(path).metadata["version"]
    '1.0'
    """
    options = _write_options(dest, format, metadata, overwrite, fsync, shard_size, for_burn, dialect, extra, limits)
    with CollectionPaused():
        store = open(tensors)
    return _save(store, dest, options)


@overload
def convert(source: Source, dest: type[bytes], **options: Unpack[SaveOptions]) -> bytes: ...
@overload
def convert(source: Source, dest: Destination, **options: Unpack[SaveOptions]) -> None: ...
def convert(
    source: Source,
    dest: Destination | type[bytes],
    *,
    format: str | None = None,
    metadata: Mapping[str, str] | None = None,
    overwrite: bool = False,
    fsync: bool = True,
    shard_size: int | str | None = None,
    for_burn: BurnVersion | None = None,
    dialect: Literal["keep"] | None = None,
    extra: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
) -> bytes | None:
    """Write the tensors of one file into another, of the same format or not, without holding more than a block of them.

    Values do not change, and what the file says of itself goes along: its metadata, parameter ids, scalars. PyTorch and
    Burn lay some weights out differently; where the source does not say whose layout it has and it would matter,
    `dialect="keep"` copies the tensors as they lie.

    >>> import burnstore as bs
    >>> data = bs.save({"fc.bias": [0.5]}, bytes, format="safetensors", metadata={"epoch": "3"})
    >>> bs.open(bs.convert(data, bytes, format="bpk")).metadata["epoch"]
    '3'
    """
    from burnstore.saving import format_for

    options = _write_options(dest, format, metadata, overwrite, fsync, shard_size, for_burn, dialect, extra, limits)
    store = open(source, limits=options.limits)
    try:
        target = format_for(_path_of(dest), options)
        carried = _carried_metadata(store, target, keep=dialect == "keep")
        options = replace(options, metadata={**carried, **(options.metadata or {})} or None)
        return _save(store, dest, options, rewrite=True)
    finally:
        if store is not source:
            store.close()


def verify(source: Source, *, format: str | None = None, limits: Limits = DEFAULT_LIMITS) -> Verification:
    """Check everything that a file says about itself, and list what readers tolerate although writers do not make it.

    >>> import burnstore as bs
    >>> print(bs.verify(bs.save({"fc.bias": [0.5]}, bytes, format="bpk")))
    <264 bytes>: ok (burnpack, 1 tensor, 8 bytes)
    """
    from burnstore.verifying import verify_source

    return verify_source(source, Options(format=format, limits=limits))


def _write_options(
    dest: object,
    format: str | None,
    metadata: Mapping[str, str] | None,
    overwrite: bool,
    fsync: bool,
    shard_size: int | str | None,
    for_burn: BurnVersion | None,
    dialect: str | None,
    extra: Mapping[str, Any] | None,
    limits: Limits | None,
) -> Options:
    """The options of a call, on top of those of a Burn-named store."""
    from burnstore.errors import UsageError
    from burnstore.named_stores import _NamedStore

    if dialect not in (None, "keep"):
        raise UsageError(f"dialect={dialect!r} is not known", do='leave it out, or say "keep" to write tensors as they lie')
    if isinstance(dest, Store) and not isinstance(dest, _NamedStore):
        raise UsageError("this store was opened for reading", where=dest.name, do="give a path, or a Burn-named store")
    if isinstance(dest, _NamedStore):
        if for_burn is not None:
            dest = dest.for_burn(for_burn)
        if format is not None:
            raise UsageError(f"a {type(dest).__name__} has a format already", do="leave format= out")
        base = dest._write_options()
    else:
        base = Options()
    return replace(
        base,
        format=format or base.format,
        metadata=base.metadata if metadata is None else {**(base.metadata or {}), **metadata},
        overwrite=overwrite or base.overwrite,
        fsync=fsync and base.fsync,
        shard_size=shard_size if shard_size is not None else base.shard_size,
        for_burn=for_burn or base.for_burn,
        extra=base.extra if extra is None else extra,
        limits=limits or base.limits,
    )


def _save(store: Store, dest: object, options: Options, *, rewrite: bool = False) -> bytes | None:
    from burnstore.named_stores import MemorySink, _NamedStore
    from burnstore.saving import save_contents

    if not isinstance(dest, _NamedStore):
        return save_contents(store.contents, dest, options, rewrite=rewrite)
    place = dest._destination()
    if isinstance(place, MemorySink):
        place.data = save_contents(store.contents, bytes, options, rewrite=rewrite)
    else:
        save_contents(store.contents, place, options, rewrite=rewrite)
    dest._saved()
    return None


def _path_of(dest: object) -> object:
    return dest if isinstance(dest, (str, os.PathLike)) else None


def _carried_metadata(store: Store, target: Any, *, keep: bool) -> dict[str, str]:
    """The source's metadata as the target should say it, after making sure that the layouts agree."""
    from burnstore.errors import DialectError
    from burnstore.formats.table import by_name
    from burnstore.pipeline.dialects import KEY, dialect_of, layout_matters
    from burnstore.render import names_text

    contents = store.contents
    own = by_name(contents.format).dialect if contents.format != "memory" else target.dialect
    dialect = dialect_of(own, contents.metadata, contents.names())
    if not keep and target.dialect is not None and dialect != target.dialect:
        depends = layout_matters({row[0]: row[2] for row in contents.rows()})
        if depends:
            whose = f"its tensors lie as {dialect}'s do" if dialect else "nothing says whose layout its tensors have"
            raise DialectError(
                f"{whose}, and a {target.name} file has {target.dialect}'s; it matters for {names_text(depends)}",
                where=store.name,
                do='pass dialect="keep" to write them as they lie',
            )
        dialect = target.dialect
    metadata = dict(contents.metadata)
    metadata.pop(KEY, None)
    if metadata.get("format") == contents.format != target.name:
        del metadata["format"]  # it named the container, which is another one now
    if dialect is not None and dialect != target.dialect:
        metadata[KEY] = dialect
    return metadata
