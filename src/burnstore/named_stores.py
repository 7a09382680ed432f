"""Burn's stores: `BurnpackStore`, `SafetensorsStore` and `PytorchStore`, with Burn's builder methods and Burn's defaults.

They are a second door to the same options, for people who follow Burn's book. Each builder method gives a new store. What
differs from `burnstore.open` are the defaults: names are sorted, and Burn's three metadata keys are written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, KeysView, Mapping
from typing import TYPE_CHECKING, Any, Self

from burnstore.errors import SourceError, UsageError
from burnstore.formats.base import BurnVersion, Contents
from burnstore.options import Options
from burnstore.saving import BURN_VERSIONS
from burnstore.snapshot import TensorSnapshot
from burnstore.store import Metadata, Store

if TYPE_CHECKING:
    from typing_extensions import Buffer


class MemorySink:
    """Bytes in memory that a store reads from and saves to; the stores derived from it share it."""

    def __init__(self, data: Buffer | None = None) -> None:
        self.data = data


class _NamedStore(Store):
    """What Burn's stores have in common."""

    _format: str
    _sorted_names: list[str] | None = None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """A store of a file, which need not exist if it is to be written."""
        return cls(os.fspath(path), cls._defaults())

    @classmethod
    def from_bytes(cls, data: Buffer | None = None) -> Self:
        """A store of bytes in memory, or with None of memory that saving fills."""
        return cls(MemorySink(data), cls._defaults())

    @classmethod
    def _defaults(cls) -> Options:
        return Options(format=cls._format, metadata={"format": cls._format, "producer": "burn", "version": ""})

    # What is to be written

    @property
    def metadata(self) -> Metadata:
        """`store.metadata("k", "v")` gives a store that writes it; `store.metadata["k"]` what the file says, or will say."""
        return Metadata(self._written_metadata() if not self._can_read() else self.contents.metadata, self._with_metadata)

    def _with_metadata(self, key: str, value: str) -> Self:
        return self._with(metadata={**(self._options.metadata or {}), key: value})

    def clear_metadata(self) -> Self:
        """Write no metadata, not even Burn's three keys."""
        return self._with(metadata={})

    def overwrite(self, overwrite: bool = True) -> Self:
        """Replace a file that exists; otherwise saving over it is an error."""
        return self._with(overwrite=overwrite)

    def for_burn(self, version: BurnVersion) -> Self:
        """Whose spelling booleans and quantised tensors get: that of Burn "0.20" or "0.22"."""
        return self._with(for_burn=version)

    def write_options(self) -> Options:
        """The options to save with: the version of Burn that is imitated stands in the metadata."""
        from dataclasses import replace

        return replace(self._options, metadata=self._written_metadata())

    def _written_metadata(self) -> dict[str, str]:
        metadata = dict(self._options.metadata or {})
        if metadata.get("version") == "":
            metadata["version"] = BURN_VERSIONS[self._options.for_burn]
        return metadata

    @property
    def destination(self) -> object:
        """Where saving puts the bytes: a path, or the memory of the store."""
        return self._path() if isinstance(self._given, str) else self._given

    def saved(self) -> None:
        """Forget what was read: the file is another one now."""
        self._contents = self._sorted_names = None

    def get_bytes(self) -> bytes:
        """The bytes of a store in memory: those it was made from, or those that saving put there."""
        if not isinstance(self._given, MemorySink):
            raise UsageError("this store is a file", where=self.name, do="read the file, or use from_bytes(None)")
        if self._given.data is None:
            raise SourceError("nothing was saved into this store yet", where=self.name, do="save into it first")
        return bytes(memoryview(self._given.data).cast("B")) if not isinstance(self._given.data, bytes) else self._given.data

    # What is there

    @property
    def contents(self) -> Contents:
        """What the format read; the file is opened when this is first asked."""
        if self._contents is None:
            from burnstore.opening import open_contents

            given = self._given
            if isinstance(given, MemorySink):
                if given.data is None:
                    raise SourceError("nothing was saved into this store yet", where=self.name, do="save into it first")
                given = given.data
            self._contents = open_contents(self._path() if isinstance(given, str) else given, self._options)
        return self._contents

    def _can_read(self) -> bool:
        if isinstance(self._given, MemorySink):
            return self._given.data is not None
        return self._contents is not None or os.path.exists(self._path())

    def _path(self) -> str:
        return str(self._given)

    @property
    def name(self) -> str:
        return "<memory>" if isinstance(self._given, MemorySink) else self._path()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def keys(self) -> SortedNames:
        """All names, sorted; it prints as a list and can be indexed."""
        return SortedNames(self, self._names())

    def _names(self) -> list[str]:
        if self._sorted_names is None:
            self._sorted_names = sorted(self.contents.names())
        return self._sorted_names

    def get_snapshot(self, name: str) -> TensorSnapshot | None:
        """One tensor, or None if there is none of that name."""
        return self.get(name)

    def get_all_snapshots(self) -> dict[str, TensorSnapshot]:
        """All tensors by name, sorted."""
        return {name: self[name] for name in self._names()}

    def __repr__(self) -> str:
        if self._can_read():
            return super().__repr__()
        return f"{type(self).__name__}({self.name!r}, nothing saved yet)"


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
        from dataclasses import replace

        return replace(super()._defaults(), auto_extension=True)

    @classmethod
    def from_static(cls, data: bytes) -> Self:
        """A store of bytes that are part of the program; its arrays are views of them."""
        return cls.from_bytes(data).auto_extension(False).zero_copy(True)

    def auto_extension(self, enabled: bool = True) -> Self:
        """Add `.bpk` to a path that has no extension; on unless it is switched off."""
        return self._with(auto_extension=enabled)

    def zero_copy(self, enabled: bool = True) -> Self:
        """Give a model views of the file instead of copies when it is loaded."""
        return self._with(zero_copy=enabled)

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
        return Options(format=cls._format)

    def with_top_level_key(self, key: str) -> Self:
        """Take only the tensors under one key of the file, or under a path of keys such as `model.encoder`; save them there."""
        from dataclasses import replace

        return type(self)(self._given, replace(self._options, key=key))

    def extra(self, values: Mapping[str, Any]) -> Self:
        """Save plain values beside the tensors, which then lie under the top-level key, or under "state_dict".

        >>> PytorchStore.from_file("model.pt").extra({"epoch": 3}).options.extra
        {'epoch': 3}
        """
        return self._with(extra=dict(values))


class SortedNames(KeysView[str]):
    """The sorted names of a store: a view of keys that prints as a list and can be indexed."""

    def __init__(self, store: Store, names: list[str]) -> None:
        super().__init__(store)
        self._names = names

    def __getitem__(self, index: Any) -> Any:
        return self._names[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __repr__(self) -> str:
        return repr(self._names)

    def __eq__(self, other: object) -> bool:
        return self._names == other if isinstance(other, list) else super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]


def _with_extension(path: str, extension: str) -> str:
    """Rust's rule: a file name has an extension if it has a dot that is not its first letter.

    >>> [_with_extension(p, "bpk") for p in ("model", "model.v1", ".hidden", "a.b/c", "m.")]
    ['model.bpk', 'model.v1', '.hidden.bpk', 'a.b/c.bpk', 'm.']
    """
    name = os.path.basename(path)
    return path if "." in name[1:] or not name else f"{path}.{extension}"
