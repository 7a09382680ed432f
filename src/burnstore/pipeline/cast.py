"""Tensors in another dtype: which casts there are, what they lose, and the bytes, cast while they are read.

    float     ─► float      every dtype of them; what is too large becomes infinite, as everywhere
    integer   ─► integer    signed or not; a value that does not fit is an error
    complex   ─► complex
    bool      ─► bool       in each of its sizes; anything but zero is true
    U8, U32   ─► bool       likewise: some formats have no other way to write them

Nothing else: a float that becomes an integer, or the reverse, is a mistake more often than a wish.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any

from burnstore.data import PartsOnly, PendingBytes
from burnstore.dtypes import DType, Shape
from burnstore.errors import DTypeError, TensorDataError
from burnstore.snapshot import TensorSnapshot

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Buffer

    from burnstore.sources.base import TensorBytes

    Array = np.ndarray[Any, Any]

_WORDS = {"float": "floats", "int": "integers", "uint": "integers", "bool": "booleans", "complex": "complex numbers"}
# Elements that are cast at a time: in and out of the processor's cache. Whole bytes of any dtype.
_CHUNK = 128 * 1024


def cast_fault(found: DType, wanted: DType) -> str | None:
    """Why values of one dtype are not cast to another; None where they are.

    >>> cast_fault(DType.of("F32"), DType.of("I64"))
    'F32 holds floats and I64 integers, and nothing is cast between those'
    >>> cast_fault(DType.of("F32"), DType.of("BF16")) is None
    True
    """
    if found == wanted:
        return None
    for dtype in (found, wanted):
        if dtype.is_quantized:
            return f"{dtype} is quantised" + (
                "; .dequantize() gives its floats" if dtype is found else ", and nothing is cast to that"
            )
        if dtype.kind == "unknown":
            return "nothing is known of its dtype"
    ours, theirs = _WORDS[found.kind], _WORDS[wanted.kind]
    if ours == theirs or (wanted.kind == "bool" and found.name in ("U8", "U32")):
        return None
    return f"{found} holds {ours} and {wanted} {theirs}, and nothing is cast between those"


@cache
def is_lossy(found: DType, wanted: DType) -> bool:
    """Whether values may change when they are cast; integers do not, because one that does not fit is an error.

    >>> is_lossy(DType.of("F32"), DType.of("BF16")), is_lossy(DType.of("BF16"), DType.of("F32"))
    (True, False)
    """
    if found.kind not in ("float", "complex") or found.numpy_name == wanted.numpy_name:
        return False
    if wanted.bits < found.bits:
        return True
    if found.bits > 16 or found.kind == "complex":
        return False
    import numpy as np

    # so few values that all of them can be tried
    raw = np.arange(1 << found.bits, dtype=np.uint16 if found.bits > 8 else np.uint8)
    values = raw.view(found.numpy_dtype)
    back = _astype(_astype(values, wanted.numpy_dtype), found.numpy_dtype)
    with np.errstate(all="ignore"):
        kept = (back.view(raw.dtype) == raw) | (np.isnan(values) & np.isnan(back))
    return not kept.all()


def recast(snapshot: TensorSnapshot, dtype: DType | str) -> TensorSnapshot:
    """The same tensor in another dtype; nothing is read.

    >>> recast(TensorSnapshot.from_data("w", [1.5, 2.5]), "F32").numpy()
    array([1.5, 2.5], dtype=float32)
    """
    wanted = DType.of(dtype)
    if wanted == snapshot.dtype:
        return snapshot
    fault = cast_fault(snapshot.dtype, wanted)
    if fault is not None:
        raise DTypeError(fault, where=f"tensor {snapshot.name!r}", do=f"make a {wanted} array of it yourself if it is meant")
    return snapshot.changed(dtype=wanted, data=PendingBytes(partial(_bytes_of, snapshot, wanted)))


def _bytes_of(snapshot: TensorSnapshot, wanted: DType) -> TensorBytes:
    data, found = snapshot.data, snapshot.dtype
    if isinstance(data, PartsOnly):
        return PartsOnly(data.error)
    if found.kind == "float" and found.numpy_name == wanted.numpy_name:
        return data
    return Recast(data, found, wanted, snapshot.shape, snapshot.name)


def check_integers(snapshot: TensorSnapshot, dtype: DType | str) -> None:
    """Read an integer tensor and refuse the first value that `dtype` cannot hold; what always fits is not read.

    >>> check_integers(TensorSnapshot.from_data("steps", [1, 300]), "U8")
    Traceback (most recent call last):
    burnstore.errors.TensorDataError: tensor 'steps': 300 at [1] does not fit into U8, which goes from 0 to 255; ...
    """
    found, wanted = snapshot.dtype, DType.of(dtype)
    if _always_fits(found, wanted):
        return
    bytes_ = Recast(snapshot.data, found, wanted, snapshot.shape, snapshot.name)
    for at, raw in bytes_.chunks():
        check_range(raw.view(found.numpy_dtype), wanted, at, snapshot.shape, snapshot.name)


def _range(dtype: DType) -> tuple[int, int]:
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)


def _always_fits(found: DType, wanted: DType) -> bool:
    if {found.kind, wanted.kind} - {"int", "uint"}:
        return True
    (low, high), (least, most) = _range(found), _range(wanted)
    return least <= low and high <= most


def check_range(values: Array, wanted: DType, at: int, shape: Shape, name: str) -> None:
    """Refuse the first integer that does not fit; `at` is where in the tensor the `values` begin."""
    low, high = _range(wanted)
    if not values.size or (low <= int(values.min()) and int(values.max()) <= high):
        return
    import numpy as np

    # bounds that the values' own dtype can hold, so that nothing is compared by way of floats
    own = np.iinfo(values.dtype)
    outside = (values < max(low, own.min)) | (values > min(high, own.max))
    first = int(outside.argmax())
    index = [int(i) for i in np.unravel_index(at + first, shape)]
    raise TensorDataError(
        f"{values[first]} at {index} does not fit into {wanted}, which goes from {low} to {high}",
        where=f"tensor {name!r}",
        do="keep the file's dtype, or correct the value",
    )


class Recast:
    """The bytes of a tensor that are cast while they are read, a block at a time."""

    __slots__ = ("_count", "_data", "_found", "_name", "_shape", "_wanted", "nbytes")

    def __init__(self, data: TensorBytes, found: DType, wanted: DType, shape: Shape, name: str = "data") -> None:
        self._data, self._found, self._wanted, self._shape, self._name = data, found, wanted, shape, name
        self._count = prod(shape)
        self.nbytes: int = wanted.nbytes(shape)

    @property
    def grain(self) -> int:
        """At which multiples reading may begin at no extra cost; 0 where a part costs as much as the whole."""
        step = self._step()
        return step * self._wanted.bits // 8 if step else 0

    def view(self) -> None:
        return None

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        import numpy as np

        target = np.frombuffer(out, np.uint8) if len(out) else np.empty(0, np.uint8)
        bits, end = self._wanted.bits, begin + len(out)
        for at, raw in self.chunks(begin * 8 // bits, -(-end * 8 // bits)):
            low = at * bits // 8
            size = len(raw) * 8 // self._found.bits * bits // 8
            if begin <= low and low + size <= end:
                self._cast(raw, target[low - begin : low - begin + size], at)
                continue
            whole = np.empty(size, np.uint8)  # the range begins or ends inside
            self._cast(raw, whole, at)
            first, last = max(begin, low), min(end, low + size)
            target[first - begin : last - begin] = whole[first - low : last - low]

    def blocks(self) -> Iterator[Buffer]:
        import numpy as np

        block: Array | None = None
        for at, raw in self.chunks():
            size = len(raw) * 8 // self._found.bits * self._wanted.bits // 8
            if block is None:  # the first is the largest
                block = np.empty(size, np.uint8)
            self._cast(raw, block[:size], at)
            yield block[:size]

    def chunks(self, first: int = 0, end: int | None = None) -> Iterator[tuple[int, Array]]:
        """The uncast bytes of the elements from `first` to `end`, and a few around them, with the place of the first."""
        import numpy as np

        from burnstore.kernels import Pieces

        end = self._count if end is None else end
        if not self._count or first >= end:
            return
        bits, view, step = self._found.bits, self._data.view(), self._step()
        pieces = None if step else Pieces(self._data.blocks(), f"tensor {self._name!r}")
        held = None if view is None else np.frombuffer(view, np.uint8)
        chunk = _CHUNK if held is not None else step or _CHUNK
        scratch = np.empty(0 if held is not None else min(chunk, self._count) * bits // 8, np.uint8)
        for at in range(0 if pieces else first - first % 4, end, chunk):
            size = min(chunk, self._count - at) * bits // 8
            begin = at * bits // 8
            if held is not None:
                yield at, held[begin : begin + size]
                continue
            raw = scratch[:size]
            if pieces:
                pieces.read_into(memoryview(raw))
            else:
                self._data.read_into(memoryview(raw), begin)
            if at + chunk > first:
                yield at, raw
        if pieces and end == self._count:
            pieces.end()

    def _step(self) -> int:
        """How many elements are read at a time; 0 where the source can only be read from its beginning."""
        if self._data.view() is not None:
            return _CHUNK
        grain: int = getattr(self._data, "grain", 0)
        step = grain * 8 // self._found.bits
        return step - step % 4

    def _cast(self, raw: Array, out: Array, at: int) -> None:
        found, wanted = self._found, self._wanted
        if not _always_fits(found, wanted):
            check_range(raw.view(found.numpy_dtype), wanted, at, self._shape, self._name)
        cast_into(out, raw, wanted, found)


def cast_into(out: Array, raw: Array, wanted: DType, found: DType) -> None:
    """Cast elements from the bytes `raw` of a file into the bytes `out` of another, exactly as `astype` does."""
    import numpy as np

    if wanted.kind == "bool":
        true = raw.view(f"<u{found.bits // 8}") != 0
        np.copyto(out.view(f"<u{wanted.bits // 8}"), true)
    elif not (found.bits % 8 or wanted.bits % 8):
        _cast_plain(out.view(_element(wanted)), raw.view(_element(found)))
    else:
        from burnstore.packing import pack, unpack

        values = unpack(raw, found, (len(raw) * 8 // found.bits,)) if found.bits % 8 else raw.view(found.numpy_dtype)
        cast = np.empty(values.shape, wanted.numpy_dtype)
        _cast_plain(cast, values)
        out[:] = pack(cast, wanted) if wanted.bits % 8 else cast.view(np.uint8)


def _element(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype of one number: a complex one is two."""
    import numpy as np

    return np.dtype(f"<f{dtype.bits // 16}") if dtype.kind == "complex" else dtype.numpy_dtype


def _cast_plain(out: Array, values: Array) -> None:
    import numpy as np

    size = values.dtype.itemsize
    if size > 2 or values.dtype.kind in "iu" or values.size < _CHUNK // 8 or values.dtype.name == "bfloat16":
        _copy_cast(out, values)
        return
    # float16 and fp8 have so few values that looking them up is faster than casting each
    kind = np.dtype(f"u{out.dtype.itemsize}")
    np.take(_table(values.dtype, out.dtype).view(kind), values.view(f"u{size}"), out=out.view(kind), mode="wrap")


@lru_cache(maxsize=8)
def _table(found: np.dtype[Any], wanted: np.dtype[Any]) -> Array:
    import numpy as np

    return _astype(np.arange(1 << (8 * found.itemsize), dtype=f"u{found.itemsize}").view(found), wanted)


def _astype(values: Array, wanted: np.dtype[Any]) -> Array:
    import numpy as np

    out = np.empty(values.shape, wanted)
    _copy_cast(out, values)
    return out


def _copy_cast(out: Array, values: Array) -> None:
    """What is too large becomes infinite without a warning: the report says that the cast is lossy."""
    import numpy as np

    with np.errstate(all="ignore"):
        if not np.can_cast(values.dtype, out.dtype, casting="unsafe"):  # ml_dtypes has no way between some of its own
            values = values.astype(np.float32)  # which holds all of theirs
        np.copyto(out, values, casting="unsafe")
