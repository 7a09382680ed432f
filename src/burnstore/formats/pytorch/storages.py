"""The names of storage classes and dtypes in pickles, and what a persistent id says of a storage."""

from __future__ import annotations

import re
from typing import Any

from burnstore.dtypes import DType, describe_dtypes
from burnstore.formats.pytorch.nodes import Global, Made, Storage, shown

_TYPED = {
    "Double": "F64",
    "Float": "F32",
    "Half": "F16",
    "BFloat16": "BF16",
    "Long": "I64",
    "Int": "I32",
    "Short": "I16",
    "Char": "I8",
    "Byte": "U8",
    "Bool": "Bool",
    "ComplexDouble": "C128",
    "ComplexFloat": "C64",
    "QInt8": "QInt8",
    "QUInt8": "QUInt8",
    "QInt32": "QInt32",
    "QUInt4x2": "QUInt4x2",
    "QUInt2x4": "QUInt2x4",
}
STORAGE_DTYPES: dict[str, DType | None] = {f"{name}Storage": DType.of(dtype) for name, dtype in _TYPED.items()}
STORAGE_DTYPES["UntypedStorage"] = None
_STORAGE_MODULES = frozenset({"torch", "torch.storage", "torch.cuda", "torch.sparse"})

# The tensor classes of torch before 0.4 and of TAR files: `torch.FloatTensor`.
TENSOR_DTYPES = {f"{name}Tensor": DType.of(dtype) for name, dtype in _TYPED.items()}


def storage_dtype(kind: object) -> tuple[DType | None, str | None]:
    """The dtype of a storage class (None for bytes), and why the class is none that is known."""
    if type(kind) is not Global:
        return None, "its storage's type is not a class"
    if kind.module not in _STORAGE_MODULES or kind.name not in STORAGE_DTYPES:
        dtype = STORAGE_DTYPES.get(kind.name)
        return dtype, f"there is no storage type {shown(kind.module)[1:-1]}.{shown(kind.name)[1:-1]}"
    return STORAGE_DTYPES[kind.name], None


def torch_dtype(value: object) -> DType | None:
    """The dtype that a `torch.float32` of a pickle stands for."""
    if type(value) is Global and value.module == "torch":
        return _BY_TORCH_NAME.get(value.name)
    return None


_BY_TORCH_NAME = {row.torch_name: DType.of(row.torch_name) for row in describe_dtypes() if row.torch_name}


def storage_of(pid: object, offset: int) -> object:
    """What a persistent id stands for: a storage, or the class of a pickled module."""
    if type(pid) is str:
        pid = _spelled(pid) or pid
    if type(pid) is not tuple or not pid:
        return Made(None, (pid,), offset)
    if pid[0] == "module" and len(pid) >= 2:
        return pid[1]
    if pid[0] != "storage" or not 5 <= len(pid) <= 6:
        return Made(None, pid, offset)
    return storage_of_fields(*pid[1:])


# Protocol 0 has only texts for persistent ids, so torch's tuple is written as Python prints it.
_as_printed = re.compile(r"\('storage', <class '([\w.]+)\.(\w+)'>, '([^'\\]*)', '([^'\\]*)', (\d{1,18})(, None)?\)")


def _spelled(pid: str) -> tuple[Any, ...] | None:
    match = _as_printed.fullmatch(pid)
    if match is None:
        return None
    module, name, key, location, numel, view = match.groups()
    return ("storage", Global(module, name, 0), key, location, int(numel), *((None,) if view else ()))


def storage_of_fields(kind: object, key: Any, location: object, numel: Any, view: Any = None) -> Storage:
    """A storage from the fields of its persistent id, with the fault that they have."""
    dtype, fault = storage_dtype(kind)
    if type(key) is not str:
        fault = fault or f"its storage's key is {shown(key)}, not a text"
        key = ""
    if type(numel) is not int or not 0 <= numel < 2**63:
        fault = fault or f"its storage has {shown(numel)} elements"
        numel = 0
    if view is not None and not _is_view(view):
        fault, view = fault or "the view of its storage is not a key, an offset and a size", None
    return Storage(dtype, key, location, numel, view, fault)


def _is_view(view: object) -> bool:
    return (
        type(view) is tuple
        and len(view) == 3
        and type(view[0]) is str
        and all(type(number) is int and 0 <= number < 2**63 for number in view[1:])
    )
