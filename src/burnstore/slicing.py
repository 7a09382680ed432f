"""`snapshot[...]`: the part of a tensor that basic indexing names, read without the rest.

Where there is a view, NumPy slices it. Otherwise the wanted elements lie in runs of bytes, one for each combination of
the outer indices; a run is read as one piece, and runs that are less than a page apart are read together.
"""

from __future__ import annotations

from itertools import product
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from burnstore.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from burnstore.dtypes import Shape
    from burnstore.snapshot import TensorSnapshot

# The page cache reads whole pages, so a smaller gap costs nothing to read over.
_PAGE = 4096


def take(snapshot: TensorSnapshot, key: object) -> Any:
    """The part of `snapshot` that `key` names: a view where the file is mapped, otherwise an array of one's own."""
    keys = key if isinstance(key, tuple) else (key,)
    for item in keys:
        if not (
            item is None or isinstance(item, (slice, EllipsisType)) or (hasattr(item, "__index__") and not isinstance(item, bool))
        ):
            raise UsageError(
                f"{type(item).__name__} is not a basic index",
                where=f"tensor {snapshot.name!r}",
                do="use integers, slices, ... and None here, or index snapshot.numpy()",
            )
    part = getattr(snapshot.data, "part", None)
    if part is not None:
        try:
            found = part(keys)
        except IndexError as error:
            raise UsageError(str(error), where=f"tensor {snapshot.name!r} {list(snapshot.shape)}") from None
        return _index(snapshot, snapshot.numpy(), keys) if found is None else found
    if not snapshot.dtype.is_plain or snapshot.data.view() is not None or not snapshot.nbytes:
        return _index(snapshot, snapshot.numpy(), keys)
    ranges = _ranges(snapshot, keys)
    part, offsets = _read_box(snapshot, ranges)
    return _index(snapshot, part, _inside(keys, ranges, offsets, len(snapshot.shape)))


def _index(snapshot: TensorSnapshot, array: np.ndarray[Any, Any], keys: tuple[Any, ...]) -> Any:
    try:
        return array[keys]
    except IndexError as error:
        raise UsageError(str(error), where=f"tensor {snapshot.name!r} {list(snapshot.shape)}") from None


def _ranges(snapshot: TensorSnapshot, keys: tuple[Any, ...]) -> list[range]:
    """The indices that are wanted of each axis, rising."""
    full = [range(dim) for dim in snapshot.shape]
    plain = [item for item in keys if item is not None]
    if sum(item is ... for item in plain) > 1:
        raise UsageError("an index can hold one ... only", where=f"tensor {snapshot.name!r}")
    named = [item for item in plain if item is not ...]
    if len(named) > len(full):
        raise UsageError(
            f"{len(named)} indices for {len(full)} dimensions", where=f"tensor {snapshot.name!r} {list(snapshot.shape)}"
        )
    cut = next((i for i, item in enumerate(plain) if item is ...), len(plain))
    front, back = plain[:cut], plain[cut + 1 :]
    for axis, item in [*enumerate(front), *((len(full) - len(back) + i, item) for i, item in enumerate(back))]:
        dim = snapshot.shape[axis]
        if isinstance(item, slice):
            chosen = range(*item.indices(dim))
            full[axis] = chosen if chosen.step > 0 else chosen[::-1]
        else:
            index = item.__index__()
            if not -dim <= index < dim:
                raise UsageError(
                    f"index {index} is out of range for axis {axis}",
                    where=f"tensor {snapshot.name!r} {list(snapshot.shape)}",
                )
            full[axis] = range(index % dim, index % dim + 1)
    return full


def _read_box(snapshot: TensorSnapshot, ranges: list[range]) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Read what `ranges` want: an array that holds it, and at which index of the tensor each of its axes begins.

    The axes before `split` are read index by index; from it on, the bounding box comes in one piece.
    """
    import numpy as np

    shape, item = snapshot.shape, snapshot.dtype.bits // 8
    strides = _strides(shape, item)
    if any(len(r) == 0 for r in ranges):
        return np.empty([len(r) for r in ranges], snapshot.dtype.numpy_dtype), [r.start for r in ranges]

    split = max((axis for axis, r in enumerate(ranges) if len(r) != shape[axis]), default=0)
    while split and strides[split - 1] * ranges[split - 1].step - _span(ranges[split]) * strides[split] < _PAGE:
        split -= 1

    first = ranges[split] if ranges else range(1)
    rows = _span(first)
    outer = ranges[:split]
    box = (*(len(r) for r in outer), rows, *shape[split + 1 :]) if ranges else ()
    array = np.empty(box, snapshot.dtype.numpy_dtype)
    run = rows * strides[split] if ranges else item
    flat = memoryview(array.reshape(-1).view(np.uint8))
    begin = first.start * strides[split] if ranges else 0
    for number, index in enumerate(product(*outer)):
        at = begin + sum(i * stride for i, stride in zip(index, strides, strict=False))
        snapshot.data.read_into(flat[number * run : (number + 1) * run], at)
    # An outer axis holds only the chosen indices (-1 says so), the split axis begins at the first, the rest are whole.
    return array, [*(-1 for _ in outer), first.start, *(0 for _ in shape[split + 1 :])] if ranges else []


def _span(r: range) -> int:
    return r[-1] - r[0] + 1


def _strides(shape: Shape, item: int) -> list[int]:
    strides = [item] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return strides


def _inside(keys: tuple[Any, ...], ranges: list[range], offsets: list[int], ndim: int) -> tuple[Any, ...]:
    """The same index, meant for the box that was read instead of for the whole tensor."""
    named = sum(item is not None and item is not ... for item in keys)
    if all(item is not ... for item in keys):
        keys = (*keys, ...)
    inside: list[Any] = []
    axis = 0
    for item in keys:
        if item is None:
            inside.append(None)
            continue
        if item is ...:
            for _ in range(ndim - named):
                inside.append(_one(slice(None), ranges[axis], offsets[axis]))
                axis += 1
            continue
        inside.append(_one(item, ranges[axis], offsets[axis]))
        axis += 1
    return tuple(inside)


def _one(item: Any, wanted: range, offset: int) -> Any:
    if not isinstance(item, slice):
        return 0 if offset < 0 else wanted.start - offset
    backwards = item.step is not None and item.step < 0
    if offset < 0 or not len(wanted):
        return slice(None, None, -1 if backwards else 1)
    low, high = wanted[0] - offset, wanted[-1] - offset
    if backwards:
        return slice(high, low - 1 if low else None, -wanted.step)
    return slice(low, high + 1, wanted.step)
