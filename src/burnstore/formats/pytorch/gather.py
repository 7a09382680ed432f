"""Tensors that do not lie in C order in their file: strided, expanded, big-endian, conjugated, negated.

Their bytes are put in order when they are asked for, in blocks of rows. Where the file is mapped, a block is gathered straight
from the mapping; otherwise the storage is read once, as far as the tensor reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from burnstore.errors import LimitError
from burnstore.formats.pytorch.nodes import Geometry
from burnstore.formats.pytorch.records import Inflated
from burnstore.sources.base import FileRange

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

# Large enough for NumPy to be busy, small enough to stay in the processor's cache.
_BLOCK_BYTES = 4 * 1024 * 1024
_COMPLEX = {"C32": ("<f2", 2), "C64": ("<f4", 2), "C128": ("<f8", 2)}


class Gathered:
    """The bytes of a tensor whose elements lie anywhere in a record."""

    __slots__ = ("_big", "_geometry", "_name", "_record", "nbytes")

    def __init__(self, name: str, geometry: Geometry, record: FileRange | Inflated, big: bool, cap: int) -> None:
        """`record` begins at the tensor's first element. `cap` bounds what repeated elements may grow to."""
        self._name, self._geometry, self._record, self._big = name, geometry, record, big
        self.nbytes = geometry.nbytes
        cap = max(cap, 64 * geometry.storage_nbytes)
        if self.nbytes > cap:
            raise LimitError(
                f"shape {list(geometry.shape)[:8]} over {geometry.storage_nbytes} bytes of storage would be {self.nbytes} bytes",
                where=f"tensor {name!r}",
                do="pass limits=Limits(pytorch_expanded_bytes=...) if it is meant",
            )

    def view(self) -> None:
        return None

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        end, at = begin + len(out), 0
        row = self._row_bytes()
        first = begin // row if row else 0
        for block in self._blocks(first, -(-end // row) if row else 0):
            at = at or first * row
            low, high = max(begin - at, 0), min(end - at, len(block))
            if low < high:
                out[at + low - begin : at + high - begin] = block[low:high]
            at += len(block)

    def blocks(self) -> Iterator[memoryview]:
        rows = self._geometry.shape[0] if self._geometry.shape else 1
        return self._blocks(0, rows)

    def part(self, keys: tuple[Any, ...]) -> Array | None:
        """What basic indexing gives, gathered alone; None where all would have to be read for it anyway."""
        if self._record.view() is None or self._geometry.dtype.bits < 8 or self._geometry.dtype.name == "C32":
            return None
        import numpy as np

        chosen = self._raw()[keys]
        ordered = self._in_order(np.asarray(chosen))
        return ordered.view(self._geometry.dtype.numpy_dtype).reshape(np.shape(chosen)).copy()

    def _row_bytes(self) -> int:
        shape = self._geometry.shape
        return self.nbytes // shape[0] if shape and shape[0] else self.nbytes

    def _blocks(self, first: int, end: int) -> Iterator[memoryview]:
        if not self.nbytes:
            return
        raw = self._raw()
        if not raw.ndim:
            yield memoryview(self._in_order(raw))
            return
        row = self._row_bytes()
        if row > 4 * _BLOCK_BYTES and raw.ndim > 1 and raw.shape[0] < 64:
            yield from self._by_inner_rows(raw[first:end])
            return
        step = max(1, _BLOCK_BYTES // row)
        for at in range(first, end, step):
            yield memoryview(self._in_order(raw[at : min(at + step, end)]))

    def _by_inner_rows(self, raw: Array) -> Iterator[memoryview]:
        """Few rows that are large: in blocks of their own rows."""
        for outer in raw:
            step = max(1, _BLOCK_BYTES * max(1, len(outer)) // (outer.size * self._geometry.itemsize)) if outer.ndim else 1
            for at in range(0, len(outer), step):
                yield memoryview(self._in_order(outer[at : at + step]))

    def _raw(self) -> Array:
        """The elements as integers, or as pairs of floats, over the file's bytes."""
        import numpy as np

        geometry = self._geometry
        view = self._record.view()
        if view is None:
            buffer = bytearray(self._record.nbytes)
            self._record.read_into(memoryview(buffer))
            view = memoryview(buffer)
        size = geometry.itemsize
        kind = np.dtype(f"u{size}") if size <= 8 else np.dtype("c16")
        strides = [stride * size if dim > 1 else 0 for stride, dim in zip(geometry.strides, geometry.shape, strict=True)]
        return np.ndarray(geometry.shape, kind, view, 0, strides)

    def _in_order(self, raw: Array) -> Array:
        """Contiguous little-endian bytes with the bits of conj and neg applied."""
        import numpy as np

        geometry = self._geometry
        array = np.ascontiguousarray(raw).reshape(-1)
        if geometry.dtype.kind == "complex":
            kind, _ = _COMPLEX[geometry.dtype.name]
            pairs = np.array(array.view(kind.replace("<", ">") if self._big else kind).astype(kind, copy=False))
            if geometry.conj:
                np.negative(pairs[1::2], out=pairs[1::2])
            if geometry.neg:
                np.negative(pairs, out=pairs)
            return pairs.view(np.uint8)
        if self._big and geometry.itemsize > 1:
            array = array.byteswap()
        if geometry.neg:
            array = np.negative(array.view(geometry.dtype.numpy_dtype))
        return array.view(np.uint8)
