"""Burn's stores: `BurnpackStore`, `SafetensorsStore` and `PytorchStore`, with Burn's builder methods and Burn's defaults.

They are a second door to the same options, for people who follow Burn's book. Each builder method gives a new store. What
differs from `burnstore.open` are the defaults: names are sorted, and Burn's three metadata keys are written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from burnstore.builders import PipelineBuilders
from burnstore.errors import SourceError, UsageError
from burnstore.formats.base import BurnVersion, Contents
from burnstore.formats.sharded import SUFFIX
from burnstore.limits import Limits
from burnstore.options import BURN_VERSIONS, Options
from burnstore.snapshot import TensorSnapshot
from burnstore.store import Metadata, Store
from burnstore.verbs.opening import is_buffer, open_contents
from burnstore.verbs.saving import checked_metadata

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from burnstore.sources.local import IO


class _Imitated(str):
    """The version in the metadata of a store that was told none: that of the Burn whose spelling it writes."""


_IMITATED = _Imitated()


class MemorySink:
    """Bytes in memory that a store reads from and saves to; the stores derived from it share it."""

    def __init__(self, data: Buffer | None = None) -> None:
        self.data = data

    def filled(self) -> Buffer:
        """The bytes; an error while there are none."""
        if self.data is None:
            raise SourceError("nothing was saved into this store yet", where="<memory>", do="save into it first")
        return self.data


class _NamedStore(Store, PipelineBuilders):
    """What Burn's stores have in common."""

    _format: str
    _read_from: object = None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """A store of a file, which need not exist if it is to be written.

        >>> BurnpackStore.from_file("model")
        BurnpackStore('model.bpk', nothing saved yet)
        """
        return cls(os.fsdecode(path), cls._defaults())

    @classmethod
    def from_bytes(cls, data: Buffer | None = None) -> Self:
        """A store of bytes in memory, or with None of memory that saving fills.

        >>> SafetensorsStore.from_bytes(None)
        SafetensorsStore('<memory>', nothing saved yet)
        """
        if data is not None and not is_buffer(data):
            raise UsageError(f"an object of type {type(data).__name__} holds no bytes", do="use from_file for a path")
        return cls(MemorySink(data), cls._defaults())

    @classmethod
    def _defaults(cls) -> Options:
        return Options(format=cls._format, metadata={"format": cls._format, "producer": "burn", "version": _IMITATED})

    # How it is read and written

    @property
    def metadata(self) -> Metadata:
        """`store.metadata("k", "v")` gives a store that writes it; `store.metadata["k"]` what the file says, or will say.

        >>> BurnpackStore.from_bytes(None).metadata("epoch", "3").metadata["epoch"]
        '3'
        """
        return Metadata(lambda: self.contents.metadata if self._can_read() else self._written_metadata(), self._with_metadata)

    def _with_metadata(self, key: str, value: str) -> Self:
        return self._with(metadata={**(self._options.metadata or {}), **checked_metadata({key: value})})

    def clear_metadata(self) -> Self:
        """Write no metadata, not even Burn's three keys.

        >>> BurnpackStore.from_bytes(None).clear_metadata().metadata
        {}
        """
        return self._with(metadata={})

    def overwrite(self, overwrite: bool = True) -> Self:
        """Replace a file that exists; otherwise saving over it is an error.

        >>> BurnpackStore.from_file("model.bpk").overwrite().options.overwrite
        True
        """
        return self._with(overwrite=bool(overwrite))

    def for_burn(self, version: BurnVersion) -> Self:
        """Whose spelling booleans and quantised tensors get: that of Burn "0.20" or "0.22".

        >>> BurnpackStore.from_bytes(None).for_burn("0.20").metadata["version"]
        '0.20.1'
        """
        return self._with(for_burn=version)

    def fsync(self, enabled: bool = True) -> Self:
        """Wait until what is saved is on the disk, as is done unless it is switched off.

        >>> BurnpackStore.from_file("model.bpk").fsync(False).options.fsync
        False
        """
        return self._with(fsync=bool(enabled))

    def io(self, io: IO) -> Self:
        """How a local file is read: "mmap", "pread", or "auto".

        >>> BurnpackStore.from_file("model.bpk").io("pread").options.io
        'pread'
        """
        return self._with(io=io)

    def limits(self, limits: Limits) -> Self:
        """The caps on what is read and written.

        >>> BurnpackStore.from_file("model.bpk").limits(Limits(burnpack_tensors=10**6)).options.limits.burnpack_tensors
        1000000
        """
        return self._with(limits=limits)

    def _write_options(self) -> Options:
        """The options to save with: the version of Burn that is imitated stands in the metadata."""
        return replace(self._options, metadata=self._written_metadata())

    def _written_metadata(self) -> dict[str, str]:
        metadata = dict(self._options.metadata or {})
        if metadata.get("version") is _IMITATED:
            metadata["version"] = BURN_VERSIONS[self._options.for_burn]
        return metadata

    # What is there

    def get_bytes(self) -> bytes:
        """The bytes of a store in memory: those it was made from, or those that saving put there.

        >>> BurnpackStore.from_bytes(b"NRUB...").get_bytes()
        b'NRUB...'
        """
        if not isinstance(self._given, MemorySink):
            raise UsageError("this store is a file", where=self.name, do="read the file, or use from_bytes(None)")
        return bytes(self._given.filled())

    def get_snapshot(self, name: str) -> TensorSnapshot | None:
        """One tensor, or None if there is none of that name.

        >>> import burnstore as bs
        >>> store = BurnpackStore.from_bytes(bs.save({"fc.bias": [0.5]}, bytes, format="bpk"))
        >>> store.get_snapshot("fc.bias"), store.get_snapshot("fc.wieght")
        (TensorSnapshot('fc.bias', F64, [1]), None)
        """
        return self.get(name)

    def get_all_snapshots(self) -> dict[str, TensorSnapshot]:
        """All tensors by name, sorted.

        >>> import burnstore as bs
        >>> BurnpackStore.from_bytes(bs.save({"fc.bias": [0.5]}, bytes, format="bpk")).get_all_snapshots()
        {'fc.bias': TensorSnapshot('fc.bias', F64, [1])}
        """
        return {name: self[name] for name in self}

    @property
    def unlisted(self) -> Contents:
        given = self._given.filled() if isinstance(self._given, MemorySink) else self._path()
        if self._contents is None or (given is not self._read_from and isinstance(self._given, MemorySink)):
            self._contents = open_contents(given, self._options)
            self._read_from = given
        return self._contents

    @property
    def name(self) -> str:
        return "<memory>" if isinstance(self._given, MemorySink) else self._path()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.contents.names()))

    def _path(self) -> str:
        return str(self._given)

    def _destination(self) -> str | MemorySink:
        """Where saving puts the bytes."""
        return self._given if isinstance(self._given, MemorySink) else self._path()

    def _saved(self) -> None:
        """Forget what was read: the file is another one now."""
        self._contents = None

    def _can_read(self) -> bool:
        if isinstance(self._given, MemorySink):
            return self._given.data is not None
        path = self._path()
        return self._contents is not None or os.path.exists(path) or os.path.exists(path + SUFFIX)

    def __repr__(self) -> str:
        return super().__repr__() if self._can_read() else f"{type(self).__name__}({self.name!r}, nothing saved yet)"

    def _repr_html_(self) -> str:
        from burnstore.render import text_html

        return super()._repr_html_() if self._can_read() else text_html(repr(self))


class BurnpackStore(_NamedStore):
    """Burn's native format, as the crate burn-store offers it.

    >>> import burnstore as bs
    >>> store = BurnpackStore.from_bytes(None).metadata("version", "1.0")
    >>> bs.save({"fc.weight": [[1.0, 2.0]]}, store)
    >>> store.keys()
    ['fc.weight']
    >>> store.metadata["version"]
    '1.0'
    """

    _format = "burnpack"

    @classmethod
    def _defaults(cls) -> Options:
        return replace(super()._defaults(), auto_extension=True)

    @classmethod
    def from_static(cls, data: bytes) -> Self:
        """A store of bytes that are part of the program; its arrays are views of them.

        >>> BurnpackStore.from_static(b"NRUB...").options.zero_copy
        True
        """
        return cls.from_bytes(data).auto_extension(False).zero_copy(True)

    def auto_extension(self, enabled: bool = True) -> Self:
        """Add `.bpk` to a path that has no extension; on unless it is switched off.

        >>> BurnpackStore.from_file("model").auto_extension(False).name
        'model'
        """
        return self._with(auto_extension=enabled)

    def with_remap_pattern(self, pattern: str, replacement: str) -> Self:
        """Burnpack's own name for `with_key_remapping`.

        >>> BurnpackStore.from_file("model").with_remap_pattern("^a", "b").options.rename.rename("a.w")
        'b.w'
        """
        return self.with_key_remapping(pattern, replacement)

    def _path(self) -> str:
        path = str(self._given)
        return _with_extension(path, "bpk") if self._options.auto_extension else path


class SafetensorsStore(_NamedStore):
    """SafeTensors, as the crate burn-store offers it; no extension is ever added.

    >>> import burnstore as bs
    >>> store = SafetensorsStore.from_bytes(None)
    >>> bs.save({"b": [1.0], "a": [2.0]}, store)
    >>> store.keys()
    ['a', 'b']
    """

    _format = "safetensors"

    def shard_size(self, size: int | str | None) -> Self:
        """Save in shards of at most this size, with their index.

        >>> SafetensorsStore.from_file("model.safetensors").shard_size("5GB").options.shard_size
        '5GB'
        """
        return self._with(shard_size=size)


class PytorchStore(_NamedStore):
    """PyTorch files of every age. Burn only reads them; this store writes them too, without metadata unless it is given.

    >>> import burnstore as bs
    >>> store = PytorchStore.from_bytes(None).with_top_level_key("model")
    >>> bs.save({"fc.weight": [[1.0, 2.0]]}, store, extra={"epoch": 3})
    >>> store.keys()
    ['fc.weight']
    >>> bs.read_config(store, key="epoch")
    3
    """

    _format = "pytorch"

    @classmethod
    def _defaults(cls) -> Options:
        return Options(format=cls._format, map_indices_contiguous=True, skip_enum_variants=True)

    def with_top_level_key(self, key: str) -> Self:
        """Take only the tensors under one key of the file, or under a path of keys such as `model.encoder`; save them there.

        >>> PytorchStore.from_file("checkpoint.pt").with_top_level_key("state_dict").options.key
        'state_dict'
        """
        return self._with(key=key)

    def extra(self, values: Mapping[str, Any]) -> Self:
        """Save plain values beside the tensors, which then lie under the top-level key, or under "state_dict".

        >>> PytorchStore.from_file("model.pt").extra({"epoch": 3}).options.extra
        {'epoch': 3}
        """
        return self._with(extra=dict(values))


def _with_extension(path: str, extension: str) -> str:
    """Rust's rule: a file name has an extension if it has a dot that is not its first letter.

    >>> [_with_extension(p, "bpk") for p in ("model", "model.v1", ".hidden", "a.b/c", "m.")]
    ['model.bpk', 'model.v1', '.hidden.bpk', 'a.b/c.bpk', 'm.']
    """
    name = os.path.basename(path)
    return path if "." in name[1:] or not name else f"{path}.{extension}"
