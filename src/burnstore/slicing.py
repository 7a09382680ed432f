"""`snapshot[...]`: the part of a tensor that basic indexing names, read without the rest.

Where there is a view, NumPy slices it. Otherwise the wanted elements lie in runs of bytes, one for each combination of
the outer indices. A run reaches from its first wanted element to its last; runs that are less than a page apart are read
as one. The array is then laid over what was read, by strides.
"""

from __future__ import annotations

from itertools import product
from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from burnstore.errors import DTypeError, TensorIndexError, UsageError
from burnstore.sources.base import FileRange

if TYPE_CHECKING:
    import numpy as np

    from burnstore.dtypes import Shape
    from burnstore.snapshot import TensorSnapshot

# The page cache reads whole pages, so a smaller gap costs nothing to read over.
_PAGE = 4096


def take(snapshot: TensorSnapshot, key: object) -> Any:
    """The part of `snapshot` that `key` names: a view where the file is mapped, otherwise an array of one's own."""
    keys = key if isinstance(key, tuple) else (key,)
    wanted, shape = _resolve(snapshot, keys)
    data = snapshot.data
    if not prod(shape) and snapshot.dtype.is_plain:
        import numpy as np

        _ = data.nbytes  # a tensor that has no values to give says so here
        try:
            return np.empty(shape, snapshot.dtype.numpy_dtype)
        except (ValueError, OverflowError):
            raise DTypeError(
                f"an array cannot have the shape {shape}", where=f"tensor {snapshot.name!r}", do="take .tobytes()"
            ) from None
    gather = getattr(data, "part", None)  # bytes that lie in no order know better which of them are wanted
    if gather is not None:
        found = gather(keys)
        return snapshot.numpy()[keys] if found is None else found
    if not (snapshot.dtype.is_plain and isinstance(data, FileRange) and wanted) or data.view() is not None:
        return snapshot.numpy()[keys]
    part = _read(snapshot, wanted).reshape(shape)
    return part if any(item is ... for item in keys) else part[()]  # as NumPy does: a lone element is a scalar


def _resolve(snapshot: TensorSnapshot, keys: tuple[Any, ...]) -> tuple[list[range], list[int]]:
    """Which indices are wanted of each axis, and the shape of the result."""
    named = sum(item is not None and item is not ... for item in keys)
    cuts = [place for place, item in enumerate(keys) if item is ...]
    if len(cuts) > 1 or named > len(snapshot.shape):
        what = "an index can hold one ... only" if len(cuts) > 1 else f"there are {named} indices"
        do = f"give at most {len(snapshot.shape)}, and one ... at most"
        raise TensorIndexError(what, where=f"tensor {snapshot.name!r} {list(snapshot.shape)}", do=do)
    cut = cuts[0] if cuts else len(keys)
    rest = [slice(None)] * (len(snapshot.shape) - named)

    wanted: list[range] = []
    shape: list[int] = []
    for item in (*keys[:cut], *rest, *keys[cut + 1 :]):
        if item is None:
            shape.append(1)
            continue
        dim = snapshot.shape[len(wanted)]
        if isinstance(item, slice):
            if item.step == 0:
                raise TensorIndexError("a slice's step cannot be zero", where=f"tensor {snapshot.name!r}", do="use another step")
            try:
                wanted.append(range(*item.indices(dim)))
            except TypeError:
                where = f"tensor {snapshot.name!r} {list(snapshot.shape)}"
                raise UsageError(f"{item} is no slice of integers", where=where, do="use integers or None in it") from None
            shape.append(len(wanted[-1]))
        else:
            wanted.append(_one(snapshot, item, len(wanted), dim))
    return wanted, shape


def _one(snapshot: TensorSnapshot, item: Any, axis: int, dim: int) -> range:
    where = f"tensor {snapshot.name!r} {list(snapshot.shape)}"
    if not hasattr(item, "__index__") or isinstance(item, (bool, EllipsisType)) or getattr(item, "ndim", False):
        raise UsageError(
            f"{type(item).__name__} is not a basic index",
            where=where,
            do="use integers, slices, ... and None here, or index snapshot.numpy()",
        )
    index = item.__index__()
    if not -dim <= index < dim:
        do = f"use -{dim} to {dim - 1}" if dim else "the axis is empty"
        raise TensorIndexError(f"index {index} is out of range for axis {axis}", where=where, do=do)
    return range(index % dim, index % dim + 1)


def _read(snapshot: TensorSnapshot, wanted: list[range]) -> np.ndarray[Any, Any]:
    """The wanted elements, as an array with all axes."""
    import numpy as np

    item = snapshot.dtype.bits // 8
    strides = _strides(snapshot.shape, item)
    rising = [axis if axis.step > 0 else axis[::-1] for axis in wanted]
    steps = [axis.step * stride for axis, stride in zip(rising, strides, strict=True)]
    split, run = _split(rising, steps, item)

    outer = rising[:split]
    buffer = np.empty(prod(map(len, outer)) * run, np.uint8)
    view = memoryview(buffer)
    first = sum(axis.start * stride for axis, stride in zip(rising[split:], strides[split:], strict=True))
    for number, index in enumerate(product(*outer)):
        begin = first + sum(i * stride for i, stride in zip(index, strides, strict=False))
        snapshot.data.read_into(view[number * run : (number + 1) * run], begin)

    packed = _strides(tuple(map(len, outer)), run)
    part = np.ndarray(list(map(len, rising)), snapshot.dtype.numpy_dtype, buffer, 0, [*packed, *steps[split:]])
    part = part[tuple(slice(None, None, -1 if axis.step < 0 else 1) for axis in wanted)]
    return np.ascontiguousarray(part)


def _split(rising: list[range], steps: list[int], item: int) -> tuple[int, int]:
    """The first axis that is inside a run, and how many bytes a run has."""
    split, run = len(rising), item
    while split:
        count, step = len(rising[split - 1]), steps[split - 1]
        if count > 1 and step - run >= _PAGE:
            break
        run += (count - 1) * step
        split -= 1
    return split, run


def _strides(shape: Shape, item: int) -> list[int]:
    """How many bytes one step along each axis is, in C order."""
    strides = [item] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return strides
