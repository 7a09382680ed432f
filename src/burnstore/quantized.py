"""Burn's quantised tensors: what their bytes are, and the floats that they stand for.

    values · block scales, or the one scale · tensor scale (two levels only, F32)          no padding anywhere

    one scale     x = f32(q) * S
    blocks        x = f32(q) * f32(s[block of the element])
    two levels    x = f32(q) * (f32(s[block of the element]) * T)                          each product rounded to f32

Blocks are counted over the innermost axes; `scheme.block == (4, 8)` cuts the last axis into eights and the one before
into fours. The two spellings of a scheme in Burnpack's metadata are that format's matter; here is only the meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from burnstore.dtypes import DType, Shape, numpy_dtype
from burnstore.errors import DTypeError, TensorDataError

if TYPE_CHECKING:
    import numpy as np

    from burnstore.snapshot import TensorSnapshot

    Array = np.ndarray[Any, Any]

Store = Literal["Native", "PackedU32", "PackedNative"]

# value → bits, and the NumPy dtype of one code a byte
VALUES = {
    "Q8F": (8, "int8"),
    "Q8S": (8, "int8"),
    "Q4F": (4, "int8"),
    "Q4S": (4, "int8"),
    "Q2F": (2, "int8"),
    "Q2S": (2, "int8"),
    "E5M2": (8, "float8_e5m2"),
    "E4M3": (8, "float8_e4m3fn"),
    "E2M1": (4, "float4_e2m1fn"),
}
SCALES = {"F32": 4, "F16": 2, "BF16": 2, "UE8M0": 1, "UE4M3": 1}


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a tensor was quantised.

    `tensor` is the dtype of the one scale, `block` and `block_scale` the size of a block and the dtype of its scale; both
    together are two levels, neither is one F32 scale.
    """

    value: str
    store: Store = "Native"
    packed_dim: int = 0
    tensor: str | None = None
    block: tuple[int, ...] | None = None
    block_scale: str | None = None

    def sizes(self, shape: Shape) -> tuple[int, int, int]:
        """The bytes of the values, of the block scales (or the one scale), and of the tensor scale of two levels."""
        count, bits = prod(shape), VALUES[self.value][0]
        if self.store == "PackedU32":
            values = -(-count * bits // 32) * 4
        else:
            values = -(-count // 2) if self.store == "PackedNative" and self.value == "E2M1" else count
        if self.block is None:
            return values, SCALES[self.tensor or "F32"], 0
        scales = prod(self.grid(shape)) * SCALES[self.block_scale or "F32"]
        return values, scales, SCALES[self.tensor] if self.tensor else 0

    def grid(self, shape: Shape) -> Shape:
        """How many blocks there are along each axis."""
        return tuple(-(-dim // block) for dim, block in zip(shape, self.blocks(len(shape)), strict=True))

    def blocks(self, ndim: int) -> Shape:
        """The size of a block along each axis."""
        block = self.block or ()
        if len(block) > ndim:
            if any(size != 1 for size in block[: len(block) - ndim]):
                raise TensorDataError(f"blocks of {list(block)} do not fit {ndim} dimensions")
            block = block[len(block) - ndim :]
        return (1,) * (ndim - len(block)) + block

    def __str__(self) -> str:
        store = self.store if self.store == "Native" else f"{self.store}({self.packed_dim})"
        level = f"block {list(self.block)} {self.block_scale}" if self.block else ""
        tensor = f"tensor {self.tensor or 'F32'}" if self.tensor or not self.block else ""
        return ", ".join(part for part in (self.value, store, level, tensor) if part)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuantizedDType(DType):
    """The dtype of a quantised tensor; it prints as `QFloat(Q8S, Native, tensor F32)`."""

    scheme: Scheme

    @staticmethod
    def with_scheme(scheme: Scheme) -> QuantizedDType:
        name = f"QFloat({scheme})"
        return QuantizedDType(name, VALUES[scheme.value][0], "quantized", name, None, None, "float32", scheme)

    def nbytes(self, shape: Shape) -> int:
        return sum(self.scheme.sizes(shape))

    def __str__(self) -> str:
        return self.name


def scheme_of(snapshot: TensorSnapshot) -> Scheme:
    """How a quantised snapshot was quantised."""
    assert isinstance(snapshot.dtype, QuantizedDType)
    return snapshot.dtype.scheme


def parts(snapshot: TensorSnapshot) -> Mapping[str, Array]:
    """The pieces of a quantised tensor as they lie: `values`, and `scales` or `scale`, and `tensor_scale` of two levels."""
    import numpy as np

    scheme = scheme_of(snapshot)
    raw = np.frombuffer(snapshot.tobytes(), np.uint8)
    values, scales, tensor = scheme.sizes(snapshot.shape)
    if raw.size != values + scales + tensor:
        raise TensorDataError(
            f"{snapshot.dtype} {list(snapshot.shape)} needs {values + scales + tensor} bytes, not {raw.size}",
            where=f"tensor {snapshot.name!r}",
        )
    pieces: dict[str, Array] = {"values": _stored(raw[:values], scheme, snapshot.shape)}
    rest = raw[values : values + scales]
    if scheme.block is None:
        pieces["scale"] = _scale_array(rest, scheme.tensor or "F32").reshape(())
    else:
        pieces["scales"] = _scale_array(rest, scheme.block_scale or "F32").reshape(scheme.grid(snapshot.shape))
        if tensor:
            pieces["tensor_scale"] = _scale_array(raw[values + scales :], scheme.tensor or "F32").reshape(())
    return pieces


def dequantize(snapshot: TensorSnapshot) -> Array:
    """The floats that a quantised tensor stands for."""
    import numpy as np

    scheme, shape = scheme_of(snapshot), snapshot.shape
    pieces = parts(snapshot)
    codes = _codes(pieces["values"], scheme, shape, snapshot.name)
    with np.errstate(all="ignore"):  # a product may be infinite or no number, as it is in Burn
        return _products(codes, pieces, scheme)


def _products(codes: Array, pieces: Mapping[str, Array], scheme: Scheme) -> Array:
    import numpy as np

    shape = codes.shape
    if "scale" in pieces:
        return codes * _floats(pieces["scale"], scheme.tensor or "F32")
    scales = _floats(pieces["scales"], scheme.block_scale or "F32")
    if "tensor_scale" in pieces:
        scales = scales * _floats(pieces["tensor_scale"], scheme.tensor or "F32")
    for axis, (block, dim) in enumerate(zip(scheme.blocks(len(shape)), shape, strict=True)):
        if block != 1:
            # No more of each scale than there are elements: a block may be far larger than the tensor.
            scales = np.repeat(scales, min(block, dim), axis=axis).take(range(dim), axis=axis)
    return codes * scales


def _stored(raw: Array, scheme: Scheme, shape: Shape) -> Array:
    if scheme.store == "PackedU32":
        return raw.view("<u4")
    if scheme.store == "PackedNative" and scheme.value == "E2M1":
        return raw
    array: Array = raw.view(numpy_dtype(VALUES[scheme.value][1])).reshape(shape)
    return array


def _codes(values: Array, scheme: Scheme, shape: Shape, name: str) -> Array:
    """The values as float32, one an element."""
    import numpy as np

    bits, kind = VALUES[scheme.value]
    if scheme.store == "PackedU32" and kind == "int8" and scheme.packed_dim == 0:
        per_word = 32 // bits
        shifts = np.arange(per_word, dtype=np.uint32) * np.uint32(bits)
        fields = (values[:, None] >> shifts) & np.uint32((1 << bits) - 1)
        signed = fields.astype(np.int32)
        signed -= (signed >> (bits - 1)) << bits
        return np.asarray(signed.reshape(-1)[: prod(shape)].astype(np.float32).reshape(shape))
    if scheme.store == "PackedU32" or (scheme.store == "PackedNative" and scheme.value == "E2M1"):
        raise DTypeError(
            f"no release of Burn says what the elements of {scheme} are",
            where=f"tensor {name!r}",
            do="take .parts and unpack them as the program that wrote them does",
        )
    return values.astype(np.float32)


def _scale_array(raw: Array, dtype: str) -> Array:
    names = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
    return raw.view(numpy_dtype(names[dtype])) if dtype in names else raw


def _floats(scales: Array, dtype: str) -> Array:
    """Scale codes as float32."""
    import numpy as np

    if dtype == "UE8M0":
        powers = np.ldexp(np.float32(1), np.minimum(scales, 254).astype(np.int32) - 127)
        return np.where(scales == 255, np.float32(np.nan), powers).astype(np.float32)
    if dtype == "UE4M3":
        return (scales & 0x7F).view(numpy_dtype("float8_e4m3fn")).astype(np.float32)
    return scales.astype(np.float32)
