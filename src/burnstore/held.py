"""Tensors that a caller has in hand, seen as the contents of a file: a mapping of arrays, or an iterable of snapshots."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from burnstore.arrays import held
from burnstore.errors import DuplicateNameError, UsageError
from burnstore.formats.base import Contents, Row
from burnstore.snapshot import TensorSnapshot, check_name
from burnstore.sources.base import FileRange, Source


class HeldContents:
    """Snapshots by name, in the caller's order."""

    format = "memory"
    source: Source | None = None
    metadata: Mapping[str, str] = {}
    extras: Mapping[str, Any] = {}

    def __init__(self, snapshots: dict[str, TensorSnapshot], arrays: bool = False) -> None:
        """`arrays` says that all of them are arrays that somebody holds, of which nothing more is known."""
        self._snapshots = snapshots
        self._arrays = arrays

    def names(self) -> Collection[str]:
        return self._snapshots.keys()

    def __len__(self) -> int:
        return len(self._snapshots)

    def __contains__(self, name: object) -> bool:
        return name in self._snapshots

    def snapshot(self, name: str) -> TensorSnapshot:
        return self._snapshots[name]

    def rows(self) -> Iterator[Row]:
        for name, snapshot in self._snapshots.items():
            data = snapshot.data
            if isinstance(data, FileRange):
                yield name, snapshot.dtype, snapshot.shape, data.source, data.begin, data.end
            else:
                yield name, snapshot.dtype, snapshot.shape, None, 0, 0

    def dialects(self) -> set[str]:
        """Whose layouts they have, as far as the models or files that they come from say it."""
        if self._arrays:
            return set()
        return {tensor.dialect for tensor in self._snapshots.values() if tensor.dialect is not None}

    @property
    def param_ids(self) -> Mapping[str, int]:
        """The ids of those that have one."""
        return {name: tensor.param_id for name, tensor in self._snapshots.items() if tensor.param_id is not None}

    def close(self) -> None:
        """Nothing of it is ours to close."""


class Derived(HeldContents):
    """Tensors that were changed on the way, with what their source says of itself."""

    def __init__(self, tensors: Iterable[TensorSnapshot], like: Contents) -> None:
        super().__init__(hold(tensors)._snapshots)
        self.format = like.format
        self.metadata = like.metadata
        self.extras = like.extras


def hold(tensors: object) -> HeldContents:
    """The contents that a mapping of arrays or snapshots, or an iterable of snapshots, amounts to."""
    if isinstance(tensors, Mapping):
        kinds = set(map(type, tensors.values()))
        if any(issubclass(kind, (Mapping, list, tuple)) for kind in kinds):
            return HeldContents(_flattened(tensors))
        return HeldContents({name: _named(name, value) for name, value in tensors.items()}, TensorSnapshot not in kinds)
    if not isinstance(tensors, Iterable):
        raise UsageError(
            f"an object of type {type(tensors).__name__} holds no tensors", do="give a mapping of names to arrays, or snapshots"
        )
    snapshots: dict[str, TensorSnapshot] = {}
    for value in tensors:
        if not isinstance(value, TensorSnapshot):
            raise UsageError(
                f"a list of {type(value).__name__} has no names", do="give a mapping of names to arrays, or a list of snapshots"
            )
        if value.name in snapshots:
            raise DuplicateNameError(
                "two tensors have this name", where=f"tensor {value.name!r}", do="rename one: snapshot.with_name(...)"
            )
        snapshots[value.name] = _named(value.name, value)
    return HeldContents(snapshots)


def _flattened(tensors: Mapping[str, Any]) -> dict[str, TensorSnapshot]:
    """Nested dicts and lists of arrays, their keys joined by dots."""
    from burnstore.targets.mappings import leaves

    snapshots: dict[str, TensorSnapshot] = {}
    for path, value, _ in leaves(tensors, "<dict>", numbers=True):
        if path in snapshots:
            raise DuplicateNameError("two tensors have this name", where=f"tensor {path!r}", do="rename a key that holds a dot")
        snapshots[path] = _named(path, value)
    return snapshots


def _named(name: str, value: object) -> TensorSnapshot:
    if type(name) is not str or not name.isascii():
        check_name(name)
    if isinstance(value, TensorSnapshot):
        return value if value.name == name else value.with_name(name)
    return TensorSnapshot(name, *held(value, name))
