"""Elements smaller than a byte, and booleans of four: from a file's bytes to arrays of one element an item, and back.

F4        two values a byte, the first in the low four bits
F6        the bits of all values one after another, lowest first: four values in three bytes
Bool(U32) four little-endian bytes a value, anything but zero is true
C32       two float16 a value, which become a last axis of 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burnstore.errors import DTypeError

if TYPE_CHECKING:
    import numpy as np

    from burnstore.dtypes import DType, Shape


def unpack(raw: np.ndarray[Any, Any], dtype: DType, shape: Shape) -> np.ndarray[Any, Any]:
    """The array that the `raw` bytes of a file stand for, owned by the caller."""
    import numpy as np

    if dtype.name == "Bool(U32)":
        return np.asarray(raw.view("<u4") != 0).reshape(shape)
    if dtype.name == "C32":
        return raw.view("<f2").reshape(*shape, 2)
    if dtype.bits == 4:
        codes = np.empty(raw.size * 2, np.uint8)
        codes[0::2] = raw & 15
        codes[1::2] = raw >> 4
    elif dtype.bits == 6:
        bits = np.unpackbits(raw, bitorder="little").reshape(-1, 6)
        codes = np.packbits(bits, axis=1, bitorder="little").reshape(-1)
    else:
        raise DTypeError(f"{dtype} is not a packed dtype")
    return codes.view(dtype.numpy_dtype).reshape(shape)


def pack(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """The bytes of a file for an array of one element an item; the inverse of `unpack`."""
    import numpy as np

    if dtype.name == "Bool(U32)":
        return np.ascontiguousarray(array).reshape(-1).astype("<u4").view(np.uint8)
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if dtype.name == "C32":
        return codes
    if dtype.bits == 4:
        return np.asarray((codes[0::2] & 15) | (codes[1::2] << 4))
    if dtype.bits == 6:
        bits = np.unpackbits(codes.reshape(-1, 1), axis=1, bitorder="little")[:, :6]
        return np.packbits(bits.reshape(-1), bitorder="little")
    raise DTypeError(f"{dtype} is not a packed dtype")
