"""Tensors of torch as slots. torch is never imported here: whoever holds a tensor has done so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burnstore.dtypes import DType, Shape
from burnstore.errors import DTypeError, UsageError
from burnstore.targets.base import overlaps

if TYPE_CHECKING:
    import numpy as np

    from burnstore.snapshot import TensorSnapshot

_DTYPES: dict[object, DType] = {}
# Where the id of a parameter is kept: on the tensor itself, so that it goes wherever the tensor goes.
_ID = "burn_param_id"


class TorchSlot:
    """A parameter, a buffer, or a tensor in a dict."""

    __slots__ = ("_replace", "_size", "_swaps", "containers", "dialect", "dtype", "kind", "path", "shape", "tensor")

    variants: tuple[int, ...] = ()

    def __init__(
        self,
        path: str,
        tensor: Any,
        containers: tuple[str, ...],
        replace: Callable[[Any], None] | None,
        kind: str | None = None,
        dialect: str | None = None,
        swaps: bool = False,
    ) -> None:
        self.path = path
        self.tensor = tensor
        self.containers = containers
        self.kind = kind
        self.dialect = dialect
        # How another tensor is put in its place; None where that cannot be.
        self._replace = replace
        # Whether the tensor itself must stay as it is, so that another is put in its place.
        self._swaps = swaps
        dtype = _DTYPES.get(tensor.dtype)
        if dtype is None:
            dtype = _DTYPES[tensor.dtype] = _dtype_of(tensor, path)
        self.dtype = dtype
        self._size = tensor.shape
        shape: Shape = tuple(tensor.shape)
        self.shape = shape if dtype.bits >= 8 or not shape else (*shape[:-1], shape[-1] * 2)

    @property
    def identity(self) -> object:
        tensor = self.tensor
        if tensor.is_meta or not tensor.numel():
            return id(tensor)
        return tensor.data_ptr(), self.shape, tensor.stride(), self.dtype

    @property
    def param_id(self) -> int | None:
        found: int | None = getattr(self.tensor, _ID, None)
        return found

    def set_param_id(self, param_id: int) -> None:
        setattr(self.tensor, _ID, param_id)

    def fault(self, assigned: bool) -> str | None:
        tensor = self.tensor
        if assigned:
            swaps = self._swaps or tensor.is_meta or tensor.is_inference()
            return "an item of a tuple cannot be replaced; use burnstore.loaded" if swaps and self._replace is None else None
        if tensor.is_meta:
            return "it is on the meta device and has no memory; pass assign=True"
        if tensor.is_contiguous() or not overlaps(tensor.shape, tensor.stride()):
            return None
        return "several of its elements are one place in memory (it was expanded)"

    def address(self) -> int | None:
        tensor = self.tensor
        self._check_size()
        if tensor.is_cpu and tensor.is_contiguous():
            address: int = tensor.data_ptr()
            return address
        return None

    def _check_size(self) -> None:
        """A parameter may be given other memory at any time, also while a load is under way."""
        tensor = self.tensor
        if tensor.shape != self._size or _DTYPES.get(tensor.dtype) is not self.dtype:
            raise UsageError(
                "the model was changed while it was being loaded",
                where=f"tensor {self.path!r}",
                do="load it when nobody changes it",
            )

    def array(self) -> np.ndarray[Any, Any] | None:
        tensor = self.tensor
        self._check_size()
        if not tensor.is_cpu or self.dtype.bits < 8:
            return None
        return _as_array(tensor, self.dtype)

    def put(self, snapshot: TensorSnapshot) -> None:
        torch: Any = sys.modules["torch"]
        from burnstore.torch_tensors import from_snapshot

        with torch.no_grad():
            self.tensor.detach().copy_(from_snapshot(snapshot))

    def own(self, array: np.ndarray[Any, Any], dtype: DType) -> object:
        from burnstore.torch_tensors import from_array

        return from_array(array, dtype)

    def view(self, snapshot: TensorSnapshot) -> object:
        from burnstore.torch_tensors import from_snapshot

        return from_snapshot(snapshot)

    def assign(self, value: Any) -> object:
        tensor = self.tensor
        if tensor.device != value.device and not tensor.is_meta:
            value = value.to(tensor.device)
        if not self._swaps and not tensor.is_meta and not tensor.is_inference():
            if tensor is not value:
                tensor.data = value  # the same object, so that an optimizer that holds it goes on with it
            return tensor
        torch: Any = sys.modules["torch"]
        if isinstance(tensor, torch.nn.Parameter) and not isinstance(value, torch.nn.Parameter):
            learns = tensor.requires_grad and (value.is_floating_point() or value.is_complex())
            value = torch.nn.Parameter(value, requires_grad=learns)
        if self._replace is not None:
            self._replace(value)
        self.tensor = value
        return value

    def snapshot(self) -> TensorSnapshot:
        from burnstore.arrays import held
        from burnstore.snapshot import TensorSnapshot

        dtype, shape, data = held(self.tensor, self.path)
        return TensorSnapshot(self.path, dtype, shape, data, self.containers, self.param_id, (), self.kind, self.dialect)


def _as_array(tensor: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """A tensor's memory as an array; NumPy sees what it has no dtype for as integers."""
    torch: Any = sys.modules["torch"]
    if type(tensor) is not torch.Tensor or tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        raise DTypeError("it is a lazy conjugate or negative", do="call .resolve_conj().resolve_neg() on it")
    if dtype.name == "C32":
        tensor = torch.view_as_real(tensor)
    try:
        array: np.ndarray[Any, Any] = tensor.numpy()
    except (TypeError, RuntimeError):
        integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
        array = tensor.view(integers).numpy().view(dtype.numpy_dtype)
    return array


def _dtype_of(tensor: Any, path: str) -> DType:
    try:
        return DType.of(tensor.dtype)
    except DTypeError as error:
        raise DTypeError(error.what, where=f"tensor {path!r}", do="cast it to a dtype that weight files have") from None


def unsupported(tensor: Any) -> tuple[str, str] | None:
    """Why a tensor can be no slot, and what to do; None for one that can."""
    torch: Any = sys.modules["torch"]
    kind = type(tensor)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        plain = tensor.layout is torch.strided
    elif torch.nn.parameter.is_lazy(tensor):
        return "it has no shape yet", "run the model once on an example"
    elif getattr(kind, "__torch_dispatch__", None) is not getattr(torch.Tensor, "__torch_dispatch__", None):
        return f"a {kind.__name__} does not keep its values in memory of its own", "take it out of the model's state"
    else:
        plain = tensor.layout is torch.strided
    if not plain:
        return f"a {tensor.layout} tensor has no plain values", "use .to_dense()"
    if tensor.is_quantized:
        return "a quantized tensor has no plain values", "load into the model before it is quantized"
    return None


def tell_autograd(slots: Sequence[Any]) -> None:
    """Bump the version of tensors whose memory was changed, so that a backward pass that needs the old values says so."""
    torch: Any = sys.modules["torch"]
    increment = getattr(torch.autograd.graph, "increment_version", None)
    if increment is None:
        return
    tensors = [slot.tensor for slot in slots if not slot.tensor.is_inference()]
    try:
        increment(tensors)
    except TypeError:  # older versions take one tensor at a time
        for tensor in tensors:
            increment(tensor)
