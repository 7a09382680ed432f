"""How many bytes a tensor of a header must have: the checks on dtype and shape that the formats share."""

from __future__ import annotations

from collections.abc import Mapping

from burnstore.dtypes import DType, Shape
from burnstore.errors import FormatError

_MAX_DIM = 2**63 - 1
_DAMAGED = "the file is damaged"


def checked_nbytes(dtype: str, shape: Shape, dtypes: Mapping[str, DType], where: str) -> int:
    """The bytes that `shape` elements of `dtype` take; an error for what no tensor can have."""
    kind = dtypes.get(dtype)
    if kind is None:
        raise FormatError(f"there is no dtype {dtype!r}", where=where, do=f"known are {', '.join(sorted(dtypes))}")
    bits = max(1, kind.bits)
    for dim in shape:
        if not 0 <= dim <= _MAX_DIM:
            raise FormatError(f"a dimension of {dim} in shape {_short(shape)} is not a size", where=where, do=_DAMAGED)
        bits *= dim or 1
        if bits >= 2**64:
            raise FormatError(f"the size of shape {_short(shape)} overflows 64 bits", where=where, do=_DAMAGED)
    if kind.name == "F4" and shape and shape[-1] % 2:
        raise FormatError(
            f"an odd last dimension of {dtype} in shape {_short(shape)} is not whole bytes", where=where, do=_DAMAGED
        )
    try:
        return kind.nbytes(shape)
    except (TypeError, ValueError) as error:
        raise FormatError(str(error).rstrip("."), where=where, do=_DAMAGED) from None


def _short(shape: Shape) -> str:
    if len(shape) <= 8:
        return str(list(shape))
    return f"[{', '.join(map(str, shape[:8]))}, … {len(shape)} dimensions]"
