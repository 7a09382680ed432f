"""Arrays that somebody holds: which dtype they have, and their bytes in C order and little-endian.

NumPy arrays of any memory order, stride or byte order are taken as their values. Tensors of torch are seen through
`sys.modules`: whoever holds one has imported it. Anything else that says `__array__` (JAX, MLX, lists of numbers) works too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

# Not in `held`, where the statement would run for each of 20,000 arrays: whoever imports this module holds some.
import numpy as np

from burnstore.dtypes import DType, Shape
from burnstore.errors import BurnstoreError, DTypeError, TensorDataError, UsageError
from burnstore.packing import pack

if TYPE_CHECKING:
    from typing_extensions import Buffer

# How much of an array that does not lie in C order is put in order at a time.
_BLOCK_BYTES = 8 * 1024 * 1024


class HeldArray:
    """The bytes of an array in memory, as a file holds them."""

    __slots__ = ("array", "dtype", "nbytes")

    def __init__(self, array: np.ndarray[Any, Any], dtype: DType) -> None:
        self.array = array
        self.dtype = dtype
        # an array of C32 has one more axis, of 2
        self.nbytes: int = array.nbytes if dtype.is_plain or dtype.name == "C32" else dtype.nbytes(array.shape)

    def view(self) -> Buffer | None:
        array = self.array
        direct = _DIRECT.get(array.dtype)
        if direct is None:
            direct = _DIRECT[array.dtype] = _is_direct(array.dtype)
        if not array.flags.c_contiguous or not self.dtype.is_plain:
            return None
        if direct:
            return array if array.ndim else array.data
        return _as_buffer(array) if array.dtype.isnative else None

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        view = self.view()
        whole = memoryview(_as_buffer(self._in_order(self.array)) if view is None else view)
        if whole.nbytes:
            out[:] = whole.cast("B")[begin : begin + len(out)]

    def blocks(self) -> Iterator[Buffer]:
        view = self.view()
        if view is not None:
            yield view
            return
        array = self.array
        rows = len(array) if array.ndim and self.dtype.bits % 8 == 0 else 1
        step = max(1, rows * _BLOCK_BYTES // max(1, self.nbytes))
        if step >= rows:
            yield _as_buffer(self._in_order(array))
            return
        for start in range(0, rows, step):
            yield _as_buffer(self._in_order(array[start : start + step]))

    def _in_order(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if not self.dtype.is_plain:
            return pack(array, self.dtype)
        return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


# Whether the buffer protocol takes arrays of a dtype, and they lie as a file holds them.
_DIRECT: dict[np.dtype[Any], bool] = {}


def _is_direct(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biufc" and dtype.isbuiltin == 1 and dtype.isnative  # float8_e5m2 says that it is a float


def _as_buffer(array: np.ndarray[Any, Any]) -> Buffer:
    """The array where the buffer protocol takes its dtype, its bytes where it does not (bf16, fp8)."""
    if array.dtype.kind in "biufc" and array.dtype.isbuiltin != 2:  # float8_e5m2 says that it is a float
        return array.data if array.ndim == 0 else array
    return array.reshape(-1).view(np.uint8)


def held(value: object, name: str) -> tuple[DType, Shape, HeldArray]:
    """What a snapshot needs to know of an array that somebody holds."""
    if type(value) is np.ndarray:
        array = value
    elif "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
        return _held_torch(value, name)
    else:
        array = _to_numpy(value, name)
    dtype = _DTYPES.get(array.dtype)
    if dtype is None:
        dtype = _DTYPES[array.dtype] = _dtype_of(array, name)
    try:
        return dtype, array.shape, HeldArray(array, dtype)
    except DTypeError as error:
        raise DTypeError(error.what, where=f"tensor {name!r}", do="pad its last axis") from None


_DTYPES: dict[np.dtype[Any], DType] = {}


def _dtype_of(array: np.ndarray[Any, Any], name: str) -> DType:
    if array.dtype.kind in "OSUMmV" and array.dtype.names is None and array.dtype.isbuiltin != 2:
        raise DTypeError(
            f"an array of {array.dtype} has no plain numbers",
            where=f"tensor {name!r}",
            do="give numbers or booleans; text belongs into metadata",
        )
    return _named_dtype(array.dtype, name)


def _named_dtype(dtype: object, name: str) -> DType:
    try:
        return DType.of(dtype)
    except DTypeError as error:
        raise DTypeError(error.what, where=f"tensor {name!r}", do="cast it to a dtype that weight files have") from None


def _to_numpy(value: object, name: str) -> np.ndarray[Any, Any]:
    if isinstance(value, (str, bytes, bytearray, dict)) or value is None:
        raise UsageError(
            f"an object of type {type(value).__name__} is not a tensor",
            where=f"tensor {name!r}",
            do="give an array or a snapshot; flatten nested dicts to dotted names",
        )
    if isinstance(value, np.ma.MaskedArray):
        raise UsageError("a masked array would lose its mask", where=f"tensor {name!r}", do="save .data and .mask by themselves")
    try:
        return np.asarray(value)
    except Exception as error:
        raise UsageError(f"this {type(value).__name__} cannot become an array: {error}", where=f"tensor {name!r}") from error


# For each dtype of torch: ours, and the integers through which NumPy sees its bytes, or None where it knows the dtype.
_TORCH_DTYPES: dict[object, tuple[DType, Any]] = {}


def _held_torch(value: Any, name: str) -> tuple[DType, Shape, HeldArray]:
    """A torch tensor by its bytes: NumPy has no bf16, and torch gives no other way to them."""
    torch = sys.modules["torch"]
    tensor = value if type(value) is torch.Tensor and not value.requires_grad else value.detach()
    if tensor.is_quantized or tensor.is_nested or tensor.is_meta or tensor.layout is not torch.strided:
        raise _without_values(tensor, name)
    known = _TORCH_DTYPES.get(tensor.dtype)
    if known is None:
        known = _TORCH_DTYPES[tensor.dtype] = _named_dtype(tensor.dtype, name), _integers_for(tensor, torch)
    dtype, integers = known
    if not tensor.is_cpu:
        tensor = tensor.cpu()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if dtype.bits < 8:
        from burnstore.packing import unpack

        shape = (*tensor.shape[:-1], tensor.shape[-1] * 2)
        packed = tensor.contiguous().view(torch.uint8).numpy()
        return dtype, shape, HeldArray(unpack(packed.reshape(-1), dtype, shape), dtype)
    if integers is None:
        array = tensor.numpy()
        return dtype, array.shape, HeldArray(array, dtype)
    array = tensor.view(integers).numpy().view(dtype.numpy_dtype)
    return dtype, tuple(tensor.shape), HeldArray(array, dtype)


def _integers_for(tensor: Any, torch: Any) -> Any:
    if tensor.dtype in (torch.float64, torch.float32, torch.float16, torch.bool, torch.complex64, torch.complex128):
        return None
    if not tensor.is_floating_point() and not tensor.is_complex():
        return None
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]


def _without_values(tensor: Any, name: str) -> BurnstoreError:
    where = f"tensor {name!r}"
    if tensor.is_quantized:
        return DTypeError("a quantized tensor of torch has no plain values", where=where, do="save tensor.dequantize()")
    if tensor.is_nested:
        return DTypeError("a nested tensor has no plain values", where=where, do="save tensor.to_padded_tensor(0)")
    if tensor.is_meta:
        return TensorDataError("a tensor on the meta device has no values", where=where, do="load values into it first")
    return DTypeError(f"a {tensor.layout} tensor has no plain values", where=where, do="save tensor.to_dense()")
