"""Tensors with their axes in another order, which costs nothing until their bytes are wanted.

Where the source can show its bytes, each part of the result is gathered straight from them. Otherwise the source is read once
from beginning to end, and what was read is put in its place: beside the result there are never more than a few megabytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from burnstore.data import ComputedBytes, PartsOnly, PendingBytes
from burnstore.dtypes import DType, Shape
from burnstore.errors import DTypeError, UsageError
from burnstore.snapshot import TensorSnapshot

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Buffer

    from burnstore.sources.base import TensorBytes

    Array = np.ndarray[Any, Any]

# How much is put in order at a time: whole rows, and as many of them as tiles are high where that fits.
_BLOCK_BYTES = 4 * 1024 * 1024
_TILE_ROWS = 256


def permuted(snapshot: TensorSnapshot, axes: Sequence[int]) -> TensorSnapshot:
    """The same tensor with its axes in another order, as `numpy.transpose` counts them; nothing is read.

    >>> snap = TensorSnapshot.from_data("fc.weight", [[1, 2, 3], [4, 5, 6]])
    >>> permuted(snap, (1, 0))
    TensorSnapshot('fc.weight', I64, [3, 2])
    >>> permuted(snap, (1, 0)).numpy().tolist()
    [[1, 4], [2, 5], [3, 6]]
    """
    order = _checked(snapshot, axes)
    if order == tuple(range(len(order))):
        return snapshot
    shape = tuple(snapshot.shape[axis] for axis in order)
    return snapshot.changed(shape=shape, data=PendingBytes(partial(_bytes_of, snapshot, order, shape)))


def _checked(snapshot: TensorSnapshot, axes: Sequence[int]) -> tuple[int, ...]:
    count = len(snapshot.shape)
    order = tuple(axis + count if -count <= axis < 0 else axis for axis in axes)
    if sorted(order) != list(range(count)):
        raise UsageError(
            f"{tuple(axes)} is no order of the axes of {list(snapshot.shape)}",
            where=f"tensor {snapshot.name!r}",
            do=f"name each of 0 to {count - 1} once" if count else "give none",
        )
    if snapshot.dtype.kind in ("quantized", "unknown"):
        raise DTypeError(
            f"the axes of {snapshot.dtype} cannot be put in another order",
            where=f"tensor {snapshot.name!r}",
            do="take .dequantize() and save that" if snapshot.dtype.is_quantized else "take it as it is",
        )
    return order


def _bytes_of(snapshot: TensorSnapshot, axes: tuple[int, ...], shape: Shape) -> TensorBytes:
    data, dtype = snapshot.data, snapshot.dtype
    if isinstance(data, PartsOnly):
        return PartsOnly(data.error)  # its parts lie as they did, and would contradict the shape
    if dtype.bits % 8:
        return ComputedBytes(snapshot.name, dtype, shape, lambda: snapshot.numpy().transpose(axes))
    if isinstance(data, Permuted):
        return data.permuted(axes)
    return Permuted(data, dtype, snapshot.shape, axes, snapshot.name)


class Permuted:
    """The bytes of a tensor whose axes are put in another order while they are read."""

    __slots__ = ("_axes", "_data", "_dtype", "_name", "_shape")

    def __init__(self, data: TensorBytes, dtype: DType, shape: Shape, axes: tuple[int, ...], name: str = "data") -> None:
        """`shape` is that of `data`; an element of `dtype` is one or more whole bytes."""
        self._data, self._dtype, self._shape, self._axes, self._name = data, dtype, shape, axes, name

    def permuted(self, axes: tuple[int, ...]) -> TensorBytes:
        """These bytes in yet another order: still one step from where they come from, or none."""
        both = tuple(self._axes[axis] for axis in axes)
        if both == tuple(range(len(both))):
            return self._data
        return Permuted(self._data, self._dtype, self._shape, both, self._name)

    @property
    def nbytes(self) -> int:
        return self._data.nbytes

    @property
    def grain(self) -> int:
        """At which multiples reading may begin at no extra cost; 0 where a part costs as much as the whole."""
        return self._step() if self._source() is not None else 0

    def view(self) -> None:
        return None

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        if not len(out):
            return
        from burnstore.kernels import copy_range

        source = self._source()
        if source is not None:
            copy_range(source, out, begin)
        elif len(out) == self.nbytes:
            self._read_all(out)
        else:
            import numpy as np

            whole = memoryview(np.empty(self.nbytes, np.uint8))
            self._read_all(whole)
            out[:] = whole[begin : begin + len(out)]

    def blocks(self) -> Iterator[Buffer]:
        import numpy as np

        source, size = self._source(), self.nbytes
        block = memoryview(np.empty(size if source is None else min(self._step(), size), np.uint8))
        for at in range(0, size, len(block) or 1):
            part = block[: size - at]
            self.read_into(part, at)
            yield part

    def part(self, keys: tuple[Any, ...]) -> Array | None:
        """What basic indexing gives, without the rest; None where all has to be read for it anyway."""
        source = self._source() if self._dtype.is_plain else None
        return None if source is None else source.view(self._dtype.numpy_dtype)[keys]

    def _source(self) -> Array | None:
        """The elements where they lie, seen in the new order."""
        from burnstore.kernels import array_over

        array = array_over(self._data, self._dtype, self._shape)
        return None if array is None else array.transpose(self._axes)

    def _read_all(self, out: memoryview) -> None:
        import numpy as np

        from burnstore.kernels import copy_blocks, raw_dtype

        shape = tuple(self._shape[axis] for axis in self._axes)
        back = sorted(range(len(self._axes)), key=self._axes.__getitem__)
        array = np.ndarray(shape, raw_dtype(self._dtype.bits // 8), out)
        copy_blocks(array.transpose(back), self._data.blocks(), f"tensor {self._name!r}")

    def _step(self) -> int:
        """How many bytes of the result are made at a time."""
        row = prod(self._shape[axis] for axis in self._axes[1:]) * self._dtype.bits // 8
        if not 0 < row <= _BLOCK_BYTES:
            return _BLOCK_BYTES
        rows = _BLOCK_BYTES // row
        return row * (rows - rows % _TILE_ROWS or rows)
