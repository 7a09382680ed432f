"""Copying between arrays of any strides at the speed of memory.

A matrix that is copied column by column touches a new cache line for each element. So it is cut into tiles:

    source ──rows──► scratch in the cache ──columns──► destination

Both ways then move whole cache lines in memory, and only the scratch is read across. Its rows are padded, so that the elements
of a column do not all fall into one set of the cache. Arrays of more axes are cut in the same way, each axis as far as a tile
reaches. What is small, or lies well already, NumPy copies by itself. Elements are moved as integers of their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from burnstore.errors import TensorDataError
from burnstore.sources.base import flat

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from burnstore.dtypes import DType, Shape
    from burnstore.sources.base import TensorBytes

    Array = np.ndarray[Any, Any]

# A tile takes so many elements along the source's fastest axes, and along the destination's as many as fit a quarter of a
# small L2 cache: 512 x 128 of four bytes.
_WIDE = 512
_TALLEST = 256
_SCRATCH_BYTES = 256 * 1024
# Shorter rows fall into different sets of the cache by themselves.
_PADDED_FROM = 128
_PADDING = 16
# NumPy itself is as fast where there are fewer elements than these, where the destination's rows are short, and where
# the elements of one of them lie near each other in the source.
_TILES_FROM = 64 * 1024
_TILED_ROW = 32
_TILED_STEP = 64
# How much of a source without a view is read at a time before it is put in its place.
_GROUP_BYTES = 2 * 1024 * 1024

_RAW: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
    16: np.dtype(np.complex128),
}


def raw_dtype(itemsize: int) -> np.dtype[Any]:
    """The dtype through which elements of that size are moved without being looked at."""
    return _RAW[itemsize]


def copy_into(out: Array, source: Array) -> None:
    """Copy `source` into `out`: the same shape and dtype, each with any strides.

    >>> matrix = np.arange(6, dtype=np.int16).reshape(2, 3)
    >>> out = np.empty((3, 2), np.int16)
    >>> copy_into(out, matrix.T)
    >>> out.tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    raw = _RAW.get(out.itemsize)
    if raw is None or out.dtype != source.dtype or out.size < _TILES_FROM or not source.flags.aligned or not out.flags.aligned:
        np.copyto(out, source)
        return
    axes = _axes(out, source)
    if not axes or not _needs_tiles(axes, out.itemsize):
        np.copyto(out, source)
        return
    shape, to, at = zip(*axes, strict=True)
    strided = np.lib.stride_tricks.as_strided
    _copy_tiles(strided(out.view(raw), shape, to), strided(source.view(raw), shape, at))


def _axes(out: Array, source: Array) -> list[tuple[int, int, int]]:
    """Length and strides of each axis: those of one element left out, neighbours made one; the source's slowest first."""
    axes = [axis for axis in zip(out.shape, out.strides, source.strides, strict=True) if axis[0] > 1]
    axes.sort(key=lambda axis: abs(axis[1]), reverse=True)
    merged: list[tuple[int, int, int]] = []
    for length, to, at in axes:
        if merged and merged[-1][1] == length * to and merged[-1][2] == length * at:
            merged[-1] = merged[-1][0] * length, to, at
        else:
            merged.append((length, to, at))
    return sorted(merged, key=lambda axis: abs(axis[2]), reverse=True)


def _needs_tiles(axes: list[tuple[int, int, int]], itemsize: int) -> bool:
    length, _, step = min(axes, key=lambda axis: abs(axis[1]))
    return length >= _TILED_ROW and abs(step) >= _TILED_STEP * itemsize and all(axis[2] for axis in axes)


def _copy_tiles(out: Array, source: Array) -> None:
    """`source` has its slowest axis first; `out` has the same axes in the same order."""
    edges = _edges(out, source)
    scratch = _scratch(edges, source.dtype)
    for corner in product(*(range(0, length, edge) for length, edge in zip(source.shape, edges, strict=True))):
        window = tuple(slice(at, at + edge) for at, edge in zip(corner, edges, strict=True))
        part = source[window]
        tile = scratch if part.shape == edges else scratch[tuple(map(slice, part.shape))]
        np.copyto(tile, part)
        np.copyto(out[window], tile)


def _edges(out: Array, source: Array) -> tuple[int, ...]:
    """How far a tile reaches along each axis: far along the fastest axes of the source, and of the destination."""
    tall = min(_TALLEST, _SCRATCH_BYTES // (_WIDE * source.itemsize))
    edges = [1] * source.ndim
    fastest_out = sorted(range(out.ndim), key=lambda axis: abs(out.strides[axis]))
    for order, room in ((range(source.ndim - 1, -1, -1), _WIDE), (fastest_out, tall)):
        for axis in order:
            length = source.shape[axis]
            reach = -(-length // -(-length // room))  # tiles of one size: 320 and 320 of 640, not 512 and 128
            edges[axis] = max(edges[axis], reach)
            room //= reach
            if room < 2:
                break
    return tuple(edges)


def _scratch(edges: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    strides = [0] * len(edges)
    step = 1
    for axis in range(len(edges) - 1, -1, -1):
        strides[axis] = step * dtype.itemsize
        step *= edges[axis]
        if step >= _PADDED_FROM:
            step += _PADDING
    return np.ndarray(edges, dtype, np.empty(step, dtype), 0, strides)


def copy_range(source: Array, out: memoryview, begin: int = 0) -> None:
    """Fill `out` with the bytes of `source` in C order, from byte `begin` on.

    >>> out = bytearray(4)
    >>> copy_range(np.array([[1, 2], [3, 4]], np.uint8).T, memoryview(out)[:3], 1)
    >>> list(out)
    [3, 2, 4, 0]
    """
    size = len(out)
    if size == source.nbytes:
        if size:
            copy_into(np.ndarray(source.shape, source.dtype, out), source)
        return
    if not source.ndim:
        out[:] = source.tobytes()[begin : begin + size]
        return
    row = source.nbytes // len(source)
    first, skipped = divmod(begin, row)
    done = 0
    if skipped:
        done = min(size, row - skipped)
        copy_range(source[first, ...], out[:done], skipped)
        first += 1
    rows = (size - done) // row
    if rows:
        whole = source[first : first + rows]
        copy_into(np.ndarray(whole.shape, whole.dtype, out, done), whole)
        done += rows * row
    if done < size:
        copy_range(source[first + rows, ...], out[done:])


def copy_blocks(out: Array, blocks: Iterable[Buffer], name: str = "data") -> None:
    """Fill `out`, of any strides, with values whose bytes come in C order in pieces of any length.

    >>> out = np.zeros((3, 2), np.uint8)
    >>> copy_blocks(out.T, [bytes([1, 2]), bytes([3, 4, 5, 6])])
    >>> out.tolist()
    [[1, 4], [2, 5], [3, 6]]
    """
    pieces = Pieces(blocks, name)
    if out.flags.c_contiguous:
        pieces.read_into(flat(out.reshape(-1).view(np.uint8)))
    elif out.size:
        _copy_groups(out, pieces, np.empty(min(out.nbytes, max(_GROUP_BYTES, out.itemsize)), np.uint8))
    pieces.end()


def _copy_groups(out: Array, pieces: Pieces, scratch: Array) -> None:
    if not out.ndim:
        pieces.read_into(memoryview(scratch)[: out.nbytes])
        np.copyto(out, np.ndarray((), out.dtype, scratch))
        return
    row = out.nbytes // len(out)
    if row > len(scratch):
        for index in range(len(out)):
            _copy_groups(out[index, ...], pieces, scratch)
        return
    step = len(scratch) // row
    for at in range(0, len(out), step):
        group = out[at : at + step]
        pieces.read_into(memoryview(scratch)[: group.nbytes])
        copy_into(group, np.ndarray(group.shape, group.dtype, scratch))


class Pieces:
    """Bytes that come in blocks of any length, asked for in other lengths.

    >>> pieces = Pieces([b"abc", b"de"])
    >>> out = bytearray(4)
    >>> pieces.read_into(memoryview(out))
    >>> out
    bytearray(b'abcd')
    """

    __slots__ = ("_block", "_blocks", "_name")

    def __init__(self, blocks: Iterable[Buffer], name: str = "data") -> None:
        self._blocks: Iterator[Buffer] = iter(blocks)
        self._block = memoryview(b"")
        self._name = name

    def read_into(self, out: memoryview) -> None:
        """Fill `out` with those that come next; it is an error if they end before."""
        done = 0
        while done < len(out):
            if not self._block:
                self._block = self._next()
                continue
            part = self._block[: len(out) - done]
            out[done : done + len(part)] = part
            self._block = self._block[len(part) :]
            done += len(part)

    def _next(self) -> memoryview:
        for block in self._blocks:
            return flat(block)
        raise TensorDataError("its bytes end before its shape and dtype say", where=self._name)

    def end(self) -> None:
        """Let the source of the blocks finish, and refuse any that are left."""
        if self._block or any(flat(block) for block in self._blocks):
            raise TensorDataError("it has more bytes than its shape and dtype need", where=self._name)


def array_over(data: TensorBytes, dtype: DType, shape: Shape) -> Array | None:
    """The elements of a tensor where they lie, as integers of their size; None where they have to be read first.

    >>> from burnstore.data import HeldBytes
    >>> from burnstore.dtypes import DType
    >>> array_over(HeldBytes(bytes([1, 0, 2, 0])), DType.of("BF16"), (2,))
    array([1, 2], dtype=uint16)
    """
    raw = _RAW[dtype.bits // 8]
    array = getattr(data, "array", None)  # somebody's own array, of any strides
    if isinstance(array, np.ndarray) and array.dtype.itemsize == raw.itemsize and _is_little(array.dtype):
        return array.view(raw)
    view = data.view()
    if view is None:
        return None
    held = flat(view)
    if not held.nbytes:
        return np.empty(shape, raw)
    # frombuffer holds on to the buffer, so that its owner cannot close or resize it; ndarray alone would not
    return np.ndarray(shape, raw, np.frombuffer(held.toreadonly(), np.uint8))


def _is_little(dtype: np.dtype[Any]) -> bool:
    return dtype.newbyteorder("<") == dtype


def byte_bounds(array: Array) -> tuple[int, int]:
    """Where an array's memory begins and ends, whatever its strides.

    >>> begin, end = byte_bounds(np.zeros((2, 3), np.float32)[:, ::-1])
    >>> end - begin
    24
    """
    begin = end = array.__array_interface__["data"][0]
    for size, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            begin += (size - 1) * stride
        else:
            end += (size - 1) * stride
    return begin, end + array.itemsize
