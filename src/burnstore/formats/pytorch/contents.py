"""The tensors of a PyTorch file: names and geometries until somebody asks for more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from burnstore.data import PartsOnly, PendingBytes
from burnstore.dtypes import DType, Shape
from burnstore.errors import BurnstoreError, DTypeError, FormatError, QuantizedError
from burnstore.formats.base import Row
from burnstore.formats.pytorch.known import is_known
from burnstore.formats.pytorch.nodes import Composite, Geometry, Storage, Tensor
from burnstore.formats.pytorch.numpy_arrays import PickledArray
from burnstore.formats.pytorch.rebuild import geometry_of
from burnstore.formats.pytorch.records import part_of
from burnstore.limits import Limits
from burnstore.render import names_text
from burnstore.report import Description, NamedThing
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.base import FileRange, Source, TensorBytes

if TYPE_CHECKING:
    from burnstore.formats.pytorch.names import Leaf
    from burnstore.formats.pytorch.reader import Opened

_UNKNOWN = DType.of("Unknown")
_F4 = DType.of("F4")
# Tied weights have two or three names; a file can give a tensor a hundred thousand.
_MOST_SHARES = 64


class PytorchContents:
    """The contents of one file, or of the part of it that a key names."""

    format = "pytorch"

    def __init__(
        self, opened: Opened, root: object, leaves: dict[str, Leaf], metadata: Mapping[str, str], limits: Limits
    ) -> None:
        self.opened = opened
        self.source: Source | None = opened.source
        self.root = root
        self.metadata = metadata
        self.extras: Mapping[str, Any] = {}
        self._leaves = leaves
        self._limits = limits
        self._groups: dict[str, list[str]] | None = None

    def names(self) -> Collection[str]:
        return self._leaves.keys()

    def __len__(self) -> int:
        return len(self._leaves)

    def __contains__(self, name: object) -> bool:
        return name in self._leaves

    def snapshot(self, name: str) -> TensorSnapshot:
        leaf = self._leaves[name]
        dtype, shape = _kind(leaf)
        return TensorSnapshot(name, dtype, shape, _Pending(self, name, leaf), (), None, self._others(name))

    def _others(self, name: str) -> tuple[str, ...]:
        """The other names of a tensor; of very many, the first."""
        if self._groups is None:
            self._groups = _tied(self._leaves)
        group = self._groups.get(name)
        return tuple(islice((other for other in group if other != name), _MOST_SHARES)) if group else ()

    def rows(self) -> Iterator[Row]:
        record_of = self.opened.container.record
        for name, leaf in self._leaves.items():
            if type(leaf) is Tensor:
                geometry = leaf.geometry
                if self._lies_in_order(geometry):
                    try:
                        record = record_of(leaf.key)
                    except BurnstoreError:
                        record = None
                    if type(record) is FileRange and record.end - record.begin >= geometry.storage_nbytes:
                        begin = record.begin + geometry.begin
                        shape = geometry.shape if geometry.dtype is not _F4 else _values_shape(geometry.shape)
                        yield name, geometry.dtype, shape, record.source, begin, begin + geometry.nbytes
                        continue
            dtype, shape = _kind(leaf)
            yield name, dtype, shape, None, 0, 0

    def _lies_in_order(self, geometry: Geometry) -> bool:
        """Whether the bytes of the file are the bytes of the tensor."""
        if geometry.fault or not geometry.contiguous or geometry.conj or geometry.neg:
            return False
        return geometry.itemsize == 1 or not self.opened.container.big_endian

    def nests(self) -> list[str]:
        """The keys under which people keep the state dict of a checkpoint, as far as this file has them."""
        from burnstore.formats.pytorch.keys import nests_of

        return nests_of(self.root)

    @property
    def layers(self) -> Mapping[str, str]:
        """The classes of layers by path, where the pickle is of a whole model."""
        from burnstore.formats.pytorch.layers import layers_of

        return layers_of(self.root)

    def described(self) -> Description:
        """Every name that the pickle holds, in its order, and what the file is."""
        names = tuple(NamedThing(name.text, name.offset, is_known(name)) for name in self.opened.machine.globals.values())
        container = self.opened.container
        details = [f"container: {container.kind}" + (", big-endian" if container.big_endian else "")]
        nests = self.nests()
        if nests:
            details.append(f"weights may be under: {names_text(nests)}")
        return Description(self.opened.source.name, self.format, names, tuple(details))

    def close(self) -> None:
        self.opened.close()

    def bytes_of(self, name: str, leaf: Leaf) -> TensorBytes:
        where = f"{self.opened.source.name}, tensor {name[:200]!r}"
        if type(leaf) is PickledArray:
            from burnstore.arrays import HeldArray

            try:
                return HeldArray(leaf.array(), leaf.dtype)
            except FormatError as error:
                return PartsOnly(FormatError(error.what, where=where, do=error.do))
        if type(leaf) is Composite:
            return self._composite(leaf, where)
        tensor = _as_tensor(leaf)
        try:
            return self._strided(name, tensor, where)
        except BurnstoreError as error:
            where = where if error.where is None else f"{where}: {error.where}"
            return PartsOnly(type(error)(error.what, where=where, do=error.do))

    def _strided(self, name: str, tensor: Tensor, where: str) -> TensorBytes:
        geometry, container = tensor.geometry, self.opened.container
        if geometry.fault:
            raise FormatError(geometry.fault, do="the file is damaged, or made to deceive")
        record = container.record(tensor.key)
        if record.nbytes < geometry.storage_nbytes:
            raise FormatError(
                f"its storage {tensor.key[:64]!r} has {record.nbytes} bytes, and {geometry.storage_nbytes} are declared",
                do="the file is damaged, or its download is not finished: get it again",
            )
        begin = geometry.begin
        big = container.big_endian and geometry.itemsize > 1
        if self._lies_in_order(geometry):
            return part_of(record, begin, begin + geometry.nbytes)
        from burnstore.formats.pytorch.gather import Gathered

        return Gathered(name, geometry, part_of(record, begin, begin + geometry.reach), big, self._limits.pytorch_expanded_bytes)

    def _composite(self, leaf: Composite, where: str) -> PartsOnly:
        error: BurnstoreError
        if leaf.dtype is not None and leaf.dtype.is_quantized:
            error = QuantizedError(leaf.reason, where=where, do="take .parts: the codes, the scale and the zero point")
        elif leaf.parts:
            error = DTypeError(leaf.reason, where=where, do=f"take .parts: {', '.join(list(leaf.parts)[:8])}")
        else:
            error = DTypeError(leaf.reason, where=where, do="it has no plain values; the tensors beside it have")
        return PartsOnly(error, lambda: self._parts(leaf))

    def _parts(self, leaf: Composite) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, part in leaf.parts.items():
            if isinstance(part, (Tensor, Storage, PickledArray)):
                dtype, shape = _kind(part)
                snapshot = TensorSnapshot(name, dtype, shape, self.bytes_of(name, part))
                found[name] = snapshot.numpy() if not dtype.is_quantized else _codes(snapshot)
            elif part is None or isinstance(part, (bool, int, float, str)):
                found[name] = part
        return found


class _Pending(PendingBytes):
    """A leaf whose record nobody has looked for yet."""

    __slots__ = ("_contents", "_leaf", "_name")

    def __init__(self, contents: PytorchContents, name: str, leaf: Leaf) -> None:
        self._contents, self._name, self._leaf = contents, name, leaf

    def find(self) -> TensorBytes:
        return self._contents.bytes_of(self._name, self._leaf)


def _codes(snapshot: TensorSnapshot) -> Any:
    """The codes of a quantised tensor: a byte each, or a byte for several where they are smaller."""
    import numpy as np

    raw = np.frombuffer(b"".join(bytes(block) for block in snapshot.data.blocks()), np.uint8)
    return raw.view(snapshot.dtype.numpy_dtype).reshape(snapshot.shape) if snapshot.dtype.bits >= 8 else raw


def _as_tensor(leaf: Leaf) -> Tensor:
    """A storage that was saved by itself, as a tensor of one axis."""
    if type(leaf) is Tensor:
        return leaf
    assert isinstance(leaf, Storage)
    numel = leaf.view[2] if leaf.view else leaf.numel
    return Tensor(geometry_of(leaf, 0, (numel,), (1,)), leaf.key)


def _kind(leaf: Leaf) -> tuple[DType, Shape]:
    """Dtype and shape as a snapshot has them; what a broken tensor claims is shown only if it can be."""
    if type(leaf) is PickledArray:
        return leaf.dtype, leaf.shape
    if type(leaf) is Composite:
        return leaf.dtype or _UNKNOWN, leaf.shape
    geometry = _as_tensor(leaf).geometry
    shape = geometry.shape
    if geometry.fault is None and geometry.dtype is not _F4:
        return geometry.dtype, shape
    if geometry.fault and not (type(shape) is tuple and all(type(dim) is int and 0 <= dim < 2**63 for dim in shape[:65])):
        shape = ()
    return geometry.dtype, _values_shape(shape) if geometry.dtype is _F4 else shape


def _values_shape(shape: Shape) -> Shape:
    """torch counts pairs of F4, we count values."""
    return (*shape[:-1], shape[-1] * 2) if shape else shape


def _tied(leaves: Mapping[str, Leaf]) -> dict[str, list[str]]:
    """For each tensor that has several names, all of them: those of one storage with one geometry."""
    tensors = {name: leaf for name, leaf in leaves.items() if type(leaf) is Tensor}
    if len({tensor.key for tensor in tensors.values()}) == len(tensors):
        return {}
    groups: dict[tuple[object, ...], list[str]] = {}
    for name, tensor in tensors.items():
        g = tensor.geometry
        if not g.fault:
            groups.setdefault((tensor.key, g.dtype, g.offset, g.shape, g.strides, g.conj, g.neg, g.view), []).append(name)
    return {name: names for names in groups.values() if len(names) > 1 for name in names}
