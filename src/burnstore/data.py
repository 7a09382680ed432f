"""Tensors' bytes that are not in a file: held in memory, computed when they are wanted, or given in pieces."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burnstore.dtypes import DType, Shape, checked_shape
from burnstore.errors import BurnstoreError, TensorDataError
from burnstore.sources.base import flat

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Buffer

    from burnstore.sources.base import TensorBytes

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, repr=False)
class TensorData:
    """The bytes of a tensor with its shape and dtype: Burn's word for a tensor that has been read.

    >>> data = TensorData(b"\\x00\\x00\\x80?", (1,), "F32")
    >>> data.numpy()
    array([1.], dtype=float32)
    """

    bytes: builtins.bytes
    shape: Shape
    dtype: DType

    def __init__(self, data: Buffer, shape: Iterable[int], dtype: DType | str) -> None:
        kind, dims, size = DType.of(dtype), checked_shape(shape, "data"), flat(data).nbytes
        if kind.nbytes(dims) != size:
            raise TensorDataError(
                f"{kind} {list(dims)} needs {kind.nbytes(dims)} bytes, not {size}",
                where="data",
                do="give as many bytes as dtype and shape need",
            )
        object.__setattr__(self, "bytes", bytes(data))
        object.__setattr__(self, "shape", dims)
        object.__setattr__(self, "dtype", kind)

    def numpy(self) -> Array:
        """The values as a read-only array.

        >>> TensorData(bytes([1, 0]), (2,), "Bool").numpy()
        array([ True, False])
        """
        from burnstore.snapshot import TensorSnapshot

        return TensorSnapshot("data", self.dtype, self.shape, HeldBytes(self.bytes)).numpy()

    def __repr__(self) -> str:
        size = len(self.bytes)
        return f"TensorData({self.dtype}, {list(self.shape)}, {size:,} byte{'' if size == 1 else 's'})"


class HeldBytes:
    """Bytes that are in memory already, as a file holds them."""

    __slots__ = ("_bytes",)

    def __init__(self, data: Buffer) -> None:
        self._bytes = flat(data)

    @property
    def nbytes(self) -> int:
        return len(self._bytes)

    def view(self) -> Buffer:
        return self._bytes

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        out[:] = self._bytes[begin : begin + len(out)]

    def blocks(self) -> Iterator[Buffer]:
        yield self._bytes


class ComputedBytes:
    """An array that a function makes when it is asked."""

    __slots__ = ("_closure", "_dtype", "_name", "_shape", "nbytes")

    def __init__(self, name: str, dtype: DType, shape: Shape, closure: Callable[[], object]) -> None:
        self._name, self._dtype, self._shape, self._closure = name, dtype, shape, closure
        self.nbytes: int = dtype.nbytes(shape)

    def view(self) -> None:
        return None

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        _fill(out, begin, self.blocks())

    def blocks(self) -> Iterator[Buffer]:
        made = self._closure()
        if isinstance(made, TensorData):
            if (made.dtype, made.shape) != (self._dtype, self._shape):
                raise self._wrong(f"{made.dtype} {list(made.shape)}", f"{self._dtype} {list(self._shape)}")
            made = made.bytes
        if isinstance(made, (bytes, bytearray, memoryview)):
            if memoryview(made).nbytes != self.nbytes:
                raise self._wrong(f"{memoryview(made).nbytes} bytes", f"{self.nbytes} bytes")
            yield made
            return
        import numpy as np

        from burnstore.arrays import HeldArray, held

        if isinstance(made, (list, tuple, bool, int, float, complex)):  # Python's numbers have no dtype of their own
            made = np.asarray(made, self._dtype.numpy_dtype)
        dtype, shape, data = held(made, self._name)
        if shape != self._shape or dtype.numpy_name != self._dtype.numpy_name:
            raise self._wrong(f"{dtype} {list(shape)}", f"{self._dtype} {list(self._shape)}")
        yield from HeldArray(data.array, self._dtype).blocks()

    def _wrong(self, got: str, want: str) -> TensorDataError:
        return TensorDataError(
            f"its function gave {got}, and {want} was announced", where=f"tensor {self._name!r}", do="announce what it gives"
        )


class BlockBytes:
    """Bytes that come in pieces."""

    __slots__ = ("_blocks", "_name", "nbytes")

    def __init__(self, name: str, nbytes: int, blocks: Callable[[], Iterable[Buffer]] | Iterable[Buffer]) -> None:
        self._name, self._blocks = name, blocks
        self.nbytes = nbytes

    def view(self) -> None:
        return None

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        _fill(out, begin, self.blocks())

    def blocks(self) -> Iterator[Buffer]:
        made = self._blocks() if callable(self._blocks) else self._blocks
        done = 0
        for block in made:
            view = flat(block)
            done += len(view)
            yield view
        if done != self.nbytes:
            again = "" if done or callable(self._blocks) else " (an iterator can be read once; give a function to read it again)"
            raise TensorDataError(
                f"its shape and dtype need {self.nbytes} bytes, and its blocks gave {done}{again}",
                where=f"tensor {self._name!r}",
            )


class PendingBytes:
    """Where a tensor's bytes lie, found when they are first wanted: listing a file should not look for them."""

    __slots__ = ("_find",)

    def __init__(self, find: Callable[[], TensorBytes]) -> None:
        self._find = find

    def find(self) -> TensorBytes:
        """The bytes."""
        return self._find()


class PartsOnly:
    """A tensor that has no plain values, or none that can be had: it says why when they are asked for.

    What it is made of, as far as its file has it, are its parts: the indices and values of a sparse tensor, the codes and
    scales of a quantised one.
    """

    __slots__ = ("_parts", "error")

    def __init__(self, error: BurnstoreError, parts: Callable[[], Mapping[str, Any]] | None = None) -> None:
        self.error, self._parts = error, parts

    @property
    def nbytes(self) -> int:
        """Writers ask this before anything is written, and are told why there is nothing to write."""
        raise self._error()

    def parts(self) -> Mapping[str, Any]:
        """The arrays and numbers that it is made of, by what they are."""
        return self._parts() if self._parts else {}

    def view(self) -> None:
        raise self._error()

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        raise self._error()

    def blocks(self) -> Iterator[Buffer]:
        raise self._error()

    def _error(self) -> BurnstoreError:
        error = self.error  # a new one each time: an error that is raised keeps what its raiser held
        return type(error)(error.what, where=error.where, do=error.do)


def _fill(out: memoryview, begin: int, blocks: Iterable[Buffer]) -> None:
    """Copy the bytes from `begin` on, out of pieces that come in order."""
    at, end = 0, begin + len(out)
    for block in blocks:
        view = flat(block)
        low, high = max(at, begin), min(at + len(view), end)
        if low < high:
            out[low - begin : high - begin] = view[low - at : high - at]
        at += len(view)
