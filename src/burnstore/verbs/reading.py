"""All tensors of a store as arrays of NumPy or tensors of torch: the second half of `read`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from burnstore.devices.memory import read_owned, read_views
from burnstore.dtypes import DType
from burnstore.errors import DTypeError, UsageError
from burnstore.formats.base import Contents
from burnstore.snapshot import TensorSnapshot

Progress = Callable[[int, int], object]


def read_all(
    contents: Contents,
    framework: str,
    device: object,
    dtype: str | None,
    copy: bool,
    threads: int | None,
    progress: Progress | None,
) -> dict[str, Any]:
    """What `read` gives."""
    if framework not in ("numpy", "torch"):
        raise UsageError(f"framework={framework!r} is not known", do='known are "numpy" and "torch"')
    if framework == "numpy" and device is not None:
        raise UsageError("arrays of NumPy are on no device", do='leave device= out, or ask for framework="torch"')
    casts = _casts(contents, dtype) if dtype is not None else {}
    if framework == "torch" and not copy and not casts:
        return {name: contents.snapshot(name).torch(device=device) for name in contents.names()}
    arrays = read_owned(contents, threads, progress, casts) if copy or casts else read_views(contents)
    if framework == "numpy":
        return arrays
    from burnstore.torch_tensors import from_array

    tensors = {}
    for name, kind, _, _, _, _ in contents.rows():
        found = casts[name].dtype if name in casts else kind
        tensor = from_array(arrays[name], found) if found.is_plain else contents.snapshot(name).torch(copy=True)
        tensors[name] = tensor if device is None else tensor.to(device)
    return tensors


def _casts(contents: Contents, dtype: str) -> Mapping[str, TensorSnapshot]:
    """The tensors of floats, cast; nothing is read."""
    from burnstore.pipeline.cast import recast

    wanted = DType.of(dtype)
    if wanted.kind != "float" or not wanted.is_plain:
        raise DTypeError(f"{wanted} is no dtype of floats that arrays have", do="use F32, BF16, F16 or F64")
    return {
        name: recast(contents.snapshot(name), wanted)
        for name, kind, _, _, _, _ in contents.rows()
        if kind.kind == "float" and kind != wanted
    }
