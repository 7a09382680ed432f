"""The only dtype table: what each element type is called by Burn, SafeTensors, torch and NumPy, and how big it is.

A dtype prints as Burn writes it. Those that Burn lacks print as SafeTensors writes them, the rest by a name in that style.
NumPy and ml_dtypes are imported when an array is made, not when a file is listed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Any, Literal

from burnstore.errors import DTypeError, UsageError

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["float", "int", "uint", "bool", "complex", "quantized", "unknown"]
Shape = tuple[int, ...]


# A Bool of four bytes an element is unpacked into NumPy's bool, and C32 into pairs of float16: NumPy has no such dtype.
_NOT_AS_IN_NUMPY = frozenset({"Bool(U32)", "C32"})


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type.

    >>> DType.of("bfloat16")
    BF16
    >>> DType.of("F8_E4M3").torch_name, DType.of("F4").bits
    ('float8_e4m3fn', 4)
    >>> DType.of("float32") == "F32"
    True
    """

    name: str
    bits: int
    kind: Kind
    burn_name: str | None
    safetensors_name: str | None
    torch_name: str | None
    numpy_name: str
    # Whether the bytes of a file are the bytes of the NumPy array, so that a view can stand for them.
    is_plain: bool = field(init=False)

    def __post_init__(self) -> None:
        plain = self.bits % 8 == 0 and self.kind not in ("quantized", "unknown") and self.name not in _NOT_AS_IN_NUMPY
        object.__setattr__(self, "is_plain", plain)

    @staticmethod
    def of(name: object) -> DType:
        """The dtype that any of its names, or a dtype or scalar type of NumPy or torch, stands for."""
        if isinstance(name, DType):
            return name
        called = name.__name__ if isinstance(name, type) else getattr(name, "name", name)
        text = str(called).removeprefix("torch.")
        found = _BY_NAME.get(text) or _BY_NAME.get(text.upper())
        if found is not None:
            return found
        raise DTypeError(f"there is no dtype {text!r}", do="use a name such as F32, BF16, float16 or int64")

    @property
    def is_quantized(self) -> bool:
        """Whether the values are quantised: `.dequantize()` gives floats, `.numpy()` refuses."""
        return self.kind == "quantized"

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The NumPy (or ml_dtypes) dtype of the arrays that `snapshot.numpy()` gives.

        >>> DType.of("BF16").numpy_dtype
        dtype(bfloat16)
        """
        return numpy_dtype(self.numpy_name)

    def nbytes(self, shape: Shape) -> int:
        """How many bytes a tensor of this shape takes in a file.

        >>> DType.of("F4").nbytes((2, 8))
        8
        """
        bits = self.bits
        for dim in shape:
            bits *= dim
        if bits & 7:
            raise DTypeError(f"{bits} bits of {self.name} in shape {list(shape)} are not whole bytes")
        return bits >> 3

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        return isinstance(other, str) and self.name == other

    def __hash__(self) -> int:
        return hash(self.name)


def checked_shape(shape: Iterable[int], name: str) -> Shape:
    """A shape given by hand as plain integers, none of them negative."""
    try:
        dims = tuple(index(dim) for dim in shape)
    except TypeError:
        dims = (-1,)
    if any(dim < 0 for dim in dims):
        raise UsageError(f"{shape!r} is not a shape", where=f"tensor {name!r}", do="give a tuple of sizes such as (2, 3)")
    return dims


_NUMPY_DTYPES: dict[str, np.dtype[Any]] = {}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of that name, little-endian; ml_dtypes is imported only for those that NumPy lacks."""
    found = _NUMPY_DTYPES.get(name)
    if found is None:
        import numpy as np

        try:
            found = np.dtype(name)
            if sys.byteorder == "big":
                found = found.newbyteorder("<")
        except TypeError:
            import ml_dtypes

            found = np.dtype(getattr(ml_dtypes, name))
        _NUMPY_DTYPES[name] = found
    return found


# fmt: off
#     name           bits  kind       Burn        SafeTensors      torch                NumPy / ml_dtypes
_TABLE = (
    DType("F64",       64, "float",   "F64",      "F64",           "float64",           "float64"),
    DType("F32",       32, "float",   "F32",      "F32",           "float32",           "float32"),
    DType("Flex32",    32, "float",   "Flex32",   "F32",           "float32",           "float32"),
    DType("F16",       16, "float",   "F16",      "F16",           "float16",           "float16"),
    DType("BF16",      16, "float",   "BF16",     "BF16",          "bfloat16",          "bfloat16"),
    DType("I64",       64, "int",     "I64",      "I64",           "int64",             "int64"),
    DType("I32",       32, "int",     "I32",      "I32",           "int32",             "int32"),
    DType("I16",       16, "int",     "I16",      "I16",           "int16",             "int16"),
    DType("I8",         8, "int",     "I8",       "I8",            "int8",              "int8"),
    DType("U64",       64, "uint",    "U64",      "U64",           "uint64",            "uint64"),
    DType("U32",       32, "uint",    "U32",      "U32",           "uint32",            "uint32"),
    DType("U16",       16, "uint",    "U16",      "U16",           "uint16",            "uint16"),
    DType("U8",         8, "uint",    "U8",       "U8",            "uint8",             "uint8"),
    DType("Bool",       8, "bool",    "Bool",     "BOOL",          "bool",              "bool"),
    DType("Bool(U8)",   8, "bool",    "Bool(U8)", "U8",            "bool",              "bool"),
    DType("Bool(U32)", 32, "bool",    "Bool(U32)", "U32",          "bool",              "bool"),
    DType("F8_E5M2",    8, "float",   None,       "F8_E5M2",       "float8_e5m2",       "float8_e5m2"),
    DType("F8_E4M3",    8, "float",   None,       "F8_E4M3",       "float8_e4m3fn",     "float8_e4m3fn"),
    DType("F8_E5M2FNUZ", 8, "float",  None,       "F8_E5M2FNUZ",   "float8_e5m2fnuz",   "float8_e5m2fnuz"),
    DType("F8_E4M3FNUZ", 8, "float",  None,       "F8_E4M3FNUZ",   "float8_e4m3fnuz",   "float8_e4m3fnuz"),
    DType("F8_E8M0",    8, "float",   None,       "F8_E8M0",       "float8_e8m0fnu",    "float8_e8m0fnu"),
    DType("F6_E2M3",    6, "float",   None,       "F6_E2M3",       None,                "float6_e2m3fn"),
    DType("F6_E3M2",    6, "float",   None,       "F6_E3M2",       None,                "float6_e3m2fn"),
    DType("F4",         4, "float",   None,       "F4",            "float4_e2m1fn_x2",  "float4_e2m1fn"),
    DType("C64",       64, "complex", None,       "C64",           "complex64",         "complex64"),
    DType("C128",     128, "complex", None,       None,            "complex128",        "complex128"),
    DType("C32",       32, "complex", None,       None,            "complex32",         "float16"),
    DType("QInt8",      8, "quantized", None,     None,            "qint8",             "int8"),
    DType("QUInt8",     8, "quantized", None,     None,            "quint8",            "uint8"),
    DType("QInt32",    32, "quantized", None,     None,            "qint32",            "int32"),
    DType("QUInt4x2",   4, "quantized", None,     None,            "quint4x2",          "uint8"),
    DType("QUInt2x4",   2, "quantized", None,     None,            "quint2x4",          "uint8"),
    # What a tensor is said to have whose file does not say it, or says what nobody knows.
    DType("Unknown",    0, "unknown", None,       None,            None,                "void"),
)
# fmt: on

# What people say as well.
_ALIASES = {"half": "F16", "fp16": "F16", "float": "F32", "fp32": "F32", "double": "F64", "fp64": "F64"}

_BY_NAME: dict[str, DType] = {}
for _row in _TABLE:
    for _name in (_row.name, _row.burn_name, _row.safetensors_name, _row.torch_name, _row.numpy_name):
        if _name is not None:
            _BY_NAME.setdefault(_name, _row)

_BY_NAME.update({alias: _BY_NAME[name] for alias, name in _ALIASES.items()})

SAFETENSORS_DTYPES: dict[str, DType] = {
    row.safetensors_name: DType.of(row.safetensors_name) for row in _TABLE if row.safetensors_name
}


def describe_dtypes() -> list[DType]:
    """Every dtype of the table, in its order.

    >>> F64, F32, *_ = describe_dtypes()
    >>> F64, F32
    (F64, F32)
    """
    return list(_TABLE)
