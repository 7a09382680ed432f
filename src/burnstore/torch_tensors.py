"""Tensors of torch from arrays and from files. torch is imported only where a caller asks for tensors of it by name."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from burnstore.dtypes import DType
from burnstore.errors import DTypeError, UsageError

if TYPE_CHECKING:
    import numpy as np

    from burnstore.snapshot import TensorSnapshot

_KNOWN: dict[str, Any] = {}


def torch_module() -> Any:
    """torch, if it is installed; whoever asks for tensors of it means it to be imported."""
    found = sys.modules.get("torch")
    if found is None:
        try:
            found = importlib.import_module("torch")
        except ImportError:
            raise UsageError("torch is not installed", do='pip install torch, or ask for framework="numpy"') from None
    return found


def torch_dtype(dtype: DType, where: str) -> Any:
    """torch's dtype of that name."""
    found = _KNOWN.get(dtype.name)
    if found is None:
        found = getattr(torch_module(), dtype.torch_name or "", None)
        if found is None or dtype.is_quantized:
            raise DTypeError(f"torch has no plain dtype for {dtype}", where=where, do="take .numpy(), or .tobytes()")
        _KNOWN[dtype.name] = found
    return found


def from_array(array: np.ndarray[Any, Any], dtype: DType) -> Any:
    """A tensor over the memory of a writable array."""
    torch = torch_module()
    if array.dtype.kind in "biufc" and array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    kind = torch_dtype(dtype, "array")
    if dtype.bits < 8:
        from burnstore.packing import pack

        packed = torch.from_numpy(pack(array, dtype))
        return packed.view(kind).reshape(*array.shape[:-1], array.shape[-1] // 2)
    return torch.from_numpy(array.view(f"u{array.itemsize}")).view(kind)


def from_snapshot(snapshot: TensorSnapshot, *, device: object = None, copy: bool = False) -> Any:
    """The tensor of a snapshot: over the file where it can be changed without changing the file, otherwise a copy."""
    torch = torch_module()
    kind = torch_dtype(snapshot.dtype, f"tensor {snapshot.name!r}")
    import numpy as np

    dtype = snapshot.dtype
    memory = None if copy else _private(snapshot)
    if memory is None:
        nbytes = snapshot.data.nbytes
        array = np.empty(nbytes, np.uint8)
        if nbytes:
            snapshot.data.read_into(memoryview(array))
        memory = array
    shape = snapshot.shape
    if dtype.bits < 8:
        shape = (*shape[:-1], shape[-1] // 2)
    if dtype.name == "Bool(U32)":
        tensor = torch.from_numpy(memory.view("<u4") != 0).reshape(shape)
    elif not len(memory):
        tensor = torch.empty(shape, dtype=kind)
    else:
        tensor = torch.frombuffer(memory, dtype=kind).reshape(shape)
    return tensor if device is None else tensor.to(device)


def _private(snapshot: TensorSnapshot) -> np.ndarray[Any, Any] | None:
    """The bytes of a mapped file in a way that writing to them changes nothing but this process's own pages."""
    import numpy as np

    data: Any = snapshot.data
    source = getattr(data, "source", None)
    private = getattr(source, "private_view", None)
    if private is None or snapshot.dtype.name == "Bool(U32)":
        return None
    view = private(data.begin, data.end)
    if view is None or not len(view):
        return None
    array = np.frombuffer(view, np.uint8)
    return array if array.ctypes.data % max(1, snapshot.dtype.bits // 8) == 0 else None
