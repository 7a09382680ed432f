"""From tensors to a file, a file object or memory: the second half of `save` and `convert`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from burnstore.collection import CollectionPaused
from burnstore.errors import SourceClosedError, SourceError, SourceIsDirectoryError, TargetExistsError, UsageError, from_os_error
from burnstore.formats.base import Contents, Format, WriteOptions
from burnstore.formats.sharded import SUFFIX, encode_index, parse_size, shard_names, split
from burnstore.formats.table import by_name, by_suffix, known_names
from burnstore.options import Options
from burnstore.snapshot import TensorSnapshot, check_name
from burnstore.sources.base import flat
from burnstore.sources.write import Layout, to_file_object, write_layout

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from burnstore.sources.atomic import AtomicFile


def save_contents(contents: Contents, dest: object, options: Options, *, rewrite: bool = False) -> bytes | None:
    """Write all tensors of `contents` to `dest`; with `rewrite`, also what only their format can say."""
    format = format_for(dest, options)
    extras = contents.extras if rewrite and contents.format == format.name else {}
    write_options = WriteOptions(options.for_burn, options.limits, {**extras, **_beside(format, options)})
    metadata = None if options.metadata is None else checked_metadata(options.metadata)
    with CollectionPaused():
        tensors = [contents.snapshot(name) for name in contents.names()]
        if not "".join(contents.names()).isascii():
            for tensor in tensors:
                check_name(tensor.name)
    if options.shard_size is not None:
        _save_shards(tensors, dest, format, metadata, options, write_options)
        return None
    with CollectionPaused():
        layout = format.write(tensors, metadata, write_options)
    return _send(layout, dest, options)


def _beside(format: Format, options: Options) -> dict[str, Any]:
    """The values beside the tensors, and the key over them, which only a `.pt` file can have."""
    if format.name == "pytorch":
        return {"extra": options.extra, "key": options.key}
    if options.extra is not None:
        raise UsageError(
            f"a {format.name} file cannot hold values beside its tensors (extra=)",
            do="save a .pt, or put texts into metadata={...}",
        )
    return {}


def format_for(dest: object, options: Options) -> Format:
    """The format that is to be written: what `format=` says, or what the suffix of the path means."""
    if options.format is not None:
        return by_name(options.format)
    if isinstance(dest, (str, os.PathLike)):
        path = os.fsdecode(dest)
        found = by_suffix(path)
        if found is not None:
            return found
        raise UsageError(
            f"the suffix of {os.path.basename(path)!r} names no format",
            where=path,
            do=f'use .bpk, .safetensors or .pt, or pass format="...": {", ".join(known_names())}',
        )
    raise UsageError("nothing says which format to write", do=f'pass format="...": {", ".join(known_names())}')


def checked_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Metadata that every format can hold; anything but text by text is refused."""
    if not isinstance(metadata, Mapping):
        raise UsageError(f"metadata of type {type(metadata).__name__} has no keys", do="give a mapping of text to text")
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise UsageError(
                f"metadata {key!r}: {type(value).__name__} is not text",
                do="metadata is text by text: use str(value) or json.dumps(value)",
            )
        try:
            (key + value).encode()
        except UnicodeEncodeError:
            raise UsageError(f"metadata {key!r} is not valid Unicode", do="leave the broken character out") from None
    return {str(key): str(value) for key, value in metadata.items()}  # plain text, also of its subclasses


def _send(layout: Layout, dest: object, options: Options) -> bytes | None:
    if isinstance(dest, (str, os.PathLike)):
        _to_path(layout, os.fsdecode(dest), options)
        return None
    if dest is bytes:
        memory = io.BytesIO()
        write_layout(layout, to_file_object(memory))
        return memory.getvalue()
    if isinstance(dest, bytearray):
        _to_bytearray(layout, dest)
        return None
    if hasattr(dest, "write"):
        _to_file_object(layout, dest)
        return None
    raise UsageError(
        f"an object of type {type(dest).__name__} is no place to save to",
        do="give a path, a binary file object, a bytearray, a Burn-named store, or `bytes` to get the bytes",
    )


def _to_path(layout: Layout, path: str, options: Options) -> None:
    from burnstore.sources.atomic import AtomicFile

    with AtomicFile(path, layout.size, overwrite=options.overwrite, fsync=options.fsync) as file:
        _write(layout, file, options.fsync)
        file.commit()


def _write(layout: Layout, file: AtomicFile, durable: bool) -> None:
    from burnstore.sources.write import to_descriptor

    try:
        write_layout(layout, to_descriptor(file.fd, durable=durable))
    except OSError as error:
        raise error if isinstance(error, SourceError) else file.explain(error, layout.size) from None


def _to_bytearray(layout: Layout, dest: bytearray) -> None:
    before = len(dest)

    def append(buffers: Sequence[Buffer], nbytes: int) -> None:
        for buffer in buffers:
            dest.extend(flat(buffer))

    try:
        write_layout(layout, append)
    except BufferError:
        raise UsageError("this bytearray cannot grow while a view of it is held", do="release the view") from None
    except BaseException:
        del dest[before:]
        raise


def _to_file_object(layout: Layout, file: Any) -> None:
    name = f"<{getattr(file, 'name', None) or type(file).__name__}>"
    if isinstance(file, io.TextIOBase):
        raise UsageError("this file object takes text", where=name, do='open the file in binary mode: open(path, "wb")')
    if getattr(file, "closed", False):
        raise SourceClosedError("this file object is closed", where=name, do="open it again")
    try:
        write_layout(layout, to_file_object(file))
    except io.UnsupportedOperation:
        raise UsageError("this file object cannot be written", where=name, do='open it for writing: open(path, "wb")') from None
    except OSError as error:
        raise error if isinstance(error, SourceError) else from_os_error(error, name) from None


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        raise from_os_error(error, path) from None


def _save_shards(
    tensors: Sequence[TensorSnapshot],
    dest: object,
    format: Format,
    metadata: Mapping[str, str] | None,
    options: Options,
    write_options: WriteOptions,
) -> None:
    """All shards are written beside their targets, then renamed one after another, the index last."""
    if not isinstance(dest, (str, os.PathLike)) or format.name != "safetensors":
        raise UsageError("shards are SafeTensors files in a folder", do='save to a path that ends in ".safetensors"')
    path = os.fsdecode(dest)
    groups = split(tensors, parse_size(options.shard_size or 0))
    if len(groups) == 1:
        _to_path(format.write(tensors, metadata, write_options), path, options)
        return
    from burnstore.sources.atomic import AtomicFile

    if os.path.isdir(path):
        raise SourceIsDirectoryError("this is a folder", where=path, do="give the path of a file in it")
    if os.path.lexists(path) and not options.overwrite:  # opening `path` would find that file, not the shards
        raise TargetExistsError(
            "the file exists, and the shards would lie beside it", where=path, do="pass overwrite=True to replace it"
        )
    names = shard_names(path, len(groups))
    index = encode_index({os.path.basename(name): group for name, group in zip(names, groups, strict=True)})
    layouts = [format.write(group, metadata, write_options) for group in groups]
    with ExitStack() as stack:
        files = []
        for name, layout in [*zip(names, layouts, strict=True), (path + SUFFIX, Layout(index, (), len(index)))]:
            file = stack.enter_context(AtomicFile(name, layout.size, overwrite=options.overwrite, fsync=options.fsync))
            _write(layout, file, options.fsync)
            file.finish()  # or many shards would need many open files
            files.append(file)
        try:
            for file in files:
                file.commit()
            if os.path.lexists(path):
                _remove(path)
        except BaseException:
            if not options.overwrite:  # all of them are new, so none of them was there before
                for file in files:
                    file.retract()
            raise
