"""NumPy arrays and scalars inside pickles, read from their state without calling anything of NumPy that the file names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burnstore.dtypes import DType, Shape
from burnstore.errors import FormatError
from burnstore.formats.pytorch.nodes import MAX_RANK, Global, Made

if TYPE_CHECKING:
    import numpy as np

_MULTIARRAY = frozenset({"numpy.core.multiarray", "numpy._core.multiarray"})
_NUMERIC = frozenset({"numpy.core.numeric", "numpy._core.numeric"})
_DTYPES = {
    "f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8",
    "u8": "U64", "u4": "U32", "u2": "U16", "u1": "U8", "b1": "Bool", "c8": "C64", "c16": "C128",
}  # fmt: skip


class PickledArray:
    """An array of numbers: its dtype, shape, order and bytes, as the pickle has them."""

    __slots__ = ("big_endian", "dtype", "fortran", "raw", "shape")

    def __init__(self, dtype: DType, big_endian: bool, shape: Shape, fortran: bool, raw: object) -> None:
        """`raw` is the node of the bytes: many arrays may share one text, which is not turned into bytes for each."""
        self.dtype, self.big_endian, self.shape, self.fortran, self.raw = dtype, big_endian, shape, fortran, raw

    def array(self) -> np.ndarray[Any, Any]:
        """The array, read-only."""
        import numpy as np

        kind = self.dtype.numpy_dtype.newbyteorder(">" if self.big_endian else "<")
        return np.ndarray(self.shape, kind, encoded_bytes(self.raw), order="F" if self.fortran else "C")


def encoded_text(value: object) -> str | None:
    """The text, a letter a byte, that protocol 2 writes where bytes are meant."""
    if type(value) is not Made:
        return None
    if is_call(value, ("builtins", "__builtin__"), "bytes") and not value.args:
        return ""
    if is_call(value, ("_codecs",), "encode") and 1 <= len(value.args) <= 2 and type(value.args[0]) is str:
        named = value.args[1] if len(value.args) == 2 else "latin1"
        return value.args[0] if named in ("latin1", "latin-1") and type(named) is str else None
    return None


def _length(value: object) -> int | None:
    """How many bytes `encoded_bytes` gives, without making them."""
    if isinstance(value, (bytes, bytearray)):
        return len(value)
    text = encoded_text(value)
    return None if text is None else len(text)


def encoded_bytes(value: object) -> bytes:
    """Bytes, from what pickles have for them."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    return latin1(encoded_text(value) or "")


def latin1(text: str) -> bytes:
    """The bytes that a text spells, a letter each."""
    try:
        return text.encode("latin1")
    except UnicodeEncodeError:
        raise FormatError("bytes are spelled by a text with letters that are none", do="the file is damaged") from None


def is_call(value: object, modules: Any, name: str) -> bool:
    """Whether a value is what calling `name` of one of `modules` would have made."""
    return type(value) is Made and type(value.func) is Global and value.func.name == name and value.func.module in modules


def dtype_of(value: object) -> tuple[DType, bool] | None:
    """The dtype, and whether it is big-endian, of a pickled `numpy.dtype` of numbers."""
    if not is_call(value, ("numpy",), "dtype"):
        return None
    assert isinstance(value, Made)
    spelled = value.args[0] if value.args else None
    state = value.states[-1] if value.states else None
    order = state[1] if type(state) is tuple and len(state) > 1 else "<"
    if type(spelled) is not str or type(order) is not str:
        return None
    named = _DTYPES.get(spelled.lstrip("<>=|"))
    return (DType.of(named), order == ">" or spelled[:1] == ">") if named else None


def array_of(value: Made) -> PickledArray | None:
    """The array that a call of `_reconstruct` with its state, or of `_frombuffer`, stands for; None for anything else."""
    if is_call(value, _MULTIARRAY, "_reconstruct"):
        state = value.states[-1] if value.states else None
        kind = value.args[0] if value.args else None
        if type(kind) is not Global or kind.text != "numpy.ndarray" or type(state) is not tuple or len(state) != 5:
            return None
        _, shape, dtype, fortran, raw = state
    elif is_call(value, _NUMERIC, "_frombuffer") and len(value.args) == 4:
        raw, dtype, shape, order = value.args
        fortran = order == "F"
    else:
        return None
    known = dtype_of(dtype)
    if known is None or type(shape) is not tuple or len(shape) > MAX_RANK:
        return None
    if not all(type(dim) is int and 0 <= dim < 2**63 for dim in shape):
        return None
    if known[0].nbytes(shape) != _length(raw) or known[0].nbytes(tuple(dim or 1 for dim in shape)) >= 2**63:
        return None
    return PickledArray(known[0], known[1], shape, fortran is True, raw)


def scalar_of(value: Made) -> object:
    """The Python number of a pickled NumPy scalar; None for another value."""
    if not is_call(value, _MULTIARRAY, "scalar") or len(value.args) != 2:
        return None
    known = dtype_of(value.args[0])
    if known is None or known[0].nbytes(()) != _length(value.args[1]):
        return None
    return PickledArray(known[0], known[1], (), False, value.args[1]).array()[()].item()
