"""What calling something would have made, for the few names that make tensors and dicts; anything else stays opaque.

The functions are known by exact pairs of module and name, and by what torch's own source does in them. A call whose
arguments are not what they must be makes a `Composite` that says why, so that the tensors beside it can still be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnstore.formats.pytorch.nodes import MAX_RANK, Composite, Geometry, Global, Items, Made, Storage, Tensor, shown
from burnstore.formats.pytorch.storages import torch_dtype

Args = tuple[Any, ...]


def call(func: object, args: Args, offset: int, spend: Callable[[int], None]) -> Any:
    """The node for `func(*args)`; `spend` is told how much is copied, since arguments may be shared by many calls."""
    if type(func) is not Global:
        return Made(func, args, offset)
    known = KNOWN_CALLS.get((func.module, func.name))
    if known is not None:
        if known in _COPYING:
            spend(len(args))
            spend(sum(len(arg) for arg in args if isinstance(arg, (dict, list, tuple))))
            if known is _from_type and len(args) == 4 and type(args[2]) is tuple:  # what it calls copies these
                spend(sum(len(arg) for arg in args[2] if isinstance(arg, (dict, list, tuple))))
        made = known(args, func)
        return Made(func, args, offset) if made is None else made
    if func.module in _TORCH_REBUILDS and func.name.startswith("_rebuild"):
        return Composite(f"its rebuild function {func.shown} is not known")
    return Made(func, args, offset)


_TORCH_REBUILDS = frozenset({"torch._utils", "torch._tensor", "torch.tensor"})


# Dicts


def _ordered(args: Args, func: Global) -> Any:
    return _dict_of(args[:1], func) if len(args) <= 1 else None


def _defaultdict(args: Args, func: Global) -> Any:
    return _dict_of(args[1:2], func) if len(args) <= 2 else None


def _dict_of(args: Args, func: Global) -> Any:
    from burnstore.formats.pytorch.opcodes import filled

    made = Items(func)
    if args:
        (given,) = args
        if isinstance(given, dict):
            made.update(given)
        elif type(given) is list and all(type(pair) in (tuple, list) and len(pair) == 2 for pair in given):
            filled(made, [part for pair in given for part in pair])
        else:
            return None
    return made


# Tensors


def geometry_of(
    storage: Storage, offset: Any, size: Any, strides: Any, dtype: Any = None, conj: bool = False, neg: bool = False
) -> Geometry:
    """The geometry of a tensor over a storage; an untyped storage holds bytes unless a dtype is given."""
    from burnstore.dtypes import DType

    return Geometry(dtype or storage.dtype or DType.of("U8"), storage, offset, _size(size), _size(strides), conj, neg)


def _size(value: Any) -> Any:
    """A tuple of a size, which may be a `torch.Size` or, in TorchScript, a list."""
    if type(value) is Made and type(value.func) is Global and value.func.text == "torch.Size" and len(value.args) == 1:
        given = value.args[0]
        return tuple(given) if type(given) in (tuple, list) and len(given) <= MAX_RANK else value
    return value


def _strided(storage: Any, offset: Any, size: Any, strides: Any, dtype: Any = None, metadata: Any = None) -> Tensor | Composite:
    if type(storage) is not Storage:
        return Composite("what should be its storage is none")
    bits: dict[Any, Any] = {}
    if metadata is not None:
        if not isinstance(metadata, dict):
            return Composite("its metadata is not a map")
        bits = metadata
        if not all(type(bit) is bool for key, bit in bits.items() if key in ("conj", "neg")):
            return Composite("its metadata says conj or neg, and neither yes nor no", dtype or storage.dtype, _size(size))
        dtype = dtype or storage.dtype
        unknown = next((key for key in bits if key not in ("conj", "neg")), None)
        if unknown is not None:
            return Composite(f"its metadata {shown(unknown)} is not known and may change its values", dtype, _size(size))
        named = "" if dtype is None else dtype.name
        if (bits.get("conj") and named not in _COMPLEX) or (bits.get("neg") and named not in _NEGATABLE):
            return Composite(f"its metadata asks for what {named or 'bytes'} cannot have", dtype, _size(size))
    geometry = geometry_of(storage, offset, size, strides, dtype, bits.get("conj") is True, bits.get("neg") is True)
    return Tensor(geometry, storage.key)


_COMPLEX = frozenset({"C32", "C64", "C128"})
# A negated view is the imaginary part of a conjugated tensor.
_NEGATABLE = _COMPLEX | {"F16", "BF16", "F32", "F64"}


def _rebuild_tensor(args: Args, func: Global) -> Any:
    return _strided(*args) if len(args) == 4 else _wrong(args, func)


def _rebuild_tensor_v2(args: Args, func: Global) -> Any:
    if not 6 <= len(args) <= 7:
        return _wrong(args, func)
    storage, offset, size, strides = args[:4]
    return _strided(storage, offset, size, strides, None, args[6] if len(args) == 7 else None)


def _rebuild_tensor_v3(args: Args, func: Global) -> Any:
    if not 7 <= len(args) <= 8:
        return _wrong(args, func)
    storage, offset, size, strides, _, _, kind, *metadata = args
    dtype = torch_dtype(kind)
    if dtype is None:
        named = kind.shown if type(kind) is Global else shown(kind)
        return Composite(f"its dtype {named} is not known", None, size, {"storage": storage})
    return _strided(storage, offset, size, strides, dtype, *metadata)


def _wrong(args: Args, func: Global) -> Composite:
    return Composite(f"{func.name} is called with {len(args)} arguments")


def _is_tensor(value: object) -> bool:
    return isinstance(value, (Tensor, Composite))


def _first(args: Args, func: Global) -> Any:
    """Functions that change nothing of the values of their first argument."""
    if args and _is_tensor(args[0]):
        return args[0]
    return _wrong(args, func) if not args else Composite(f"{func.name} is called with what is no tensor")


def _from_type(args: Args, func: Global) -> Any:
    if len(args) != 4:
        return _wrong(args, func)
    inner, kind, given, _ = args
    if (
        type(inner) is not Global
        or type(given) is not tuple
        or not (inner.module in _TORCH_REBUILDS or inner.module.startswith("torch.nested."))
    ):
        return Composite(f"it would be made by {inner.shown if type(inner) is Global else shown(inner)}, which is not called")
    if inner.name.startswith("_rebuild_from_type"):
        return Composite("it is a subclass of a subclass, whose values only its own code knows")
    made = call(inner, given, func.offset, _nothing)
    if not _is_tensor(made):
        return Composite(f"it would be made by {inner.shown}, which is not called", parts=_tensors_in(given))
    if type(kind) is Global and kind.text in _PLAIN_CLASSES:
        return made
    named = kind.shown if type(kind) is Global else shown(kind)
    if type(made) is Composite:
        return made
    geometry = made.geometry
    return Composite(
        f"it is a {named}, a subclass whose values only its own code knows", geometry.dtype, geometry.shape, {"data": made}
    )


def _nothing(amount: int) -> None:
    """The caller has paid for the arguments."""


_PLAIN_CLASSES = frozenset({"torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer", "torch.nn.Parameter"})


def _tensors_in(values: Args) -> dict[str, object]:
    """The tensors among arguments, one level of dicts deep, by name."""
    found: dict[str, object] = {}
    for number, value in enumerate(values):
        if _is_tensor(value):
            found[str(number)] = value
        elif isinstance(value, dict):
            found.update({str(key): item for key, item in value.items() if type(key) is str and _is_tensor(item)})
    return found


def _sparse(args: Args, func: Global) -> Any:
    if len(args) != 2 or type(args[1]) is not tuple or len(args[1]) < 3:
        return _wrong(args, func)
    layout, data = args
    named = layout.args[0] if type(layout) is Made and layout.args and type(layout.args[0]) is str else "torch.sparse"
    compressed = named != "torch.sparse_coo"
    names = ("compressed_indices", "plain_indices", "values") if compressed else ("indices", "values")
    if len(data) < len(names) + 1:
        return _wrong(args, func)
    values = data[len(names) - 1]
    dtype = values.geometry.dtype if type(values) is Tensor else None
    return Composite(f"it is sparse ({shown(named)[1:-1]})", dtype, _size(data[len(names)]), dict(zip(names, data, strict=False)))


def _quantized(args: Args, func: Global) -> Any:
    if not 6 <= len(args) <= 7:
        return _wrong(args, func)
    storage, offset, size, strides, scheme = args[:5]
    codes = _strided(storage, offset, size, strides)
    dtype = codes.geometry.dtype if type(codes) is Tensor else None
    parts: dict[str, object] = {"values": codes}
    if type(scheme) is tuple and len(scheme) == 3:
        parts.update(scale=scheme[1], zero_point=scheme[2])
    elif type(scheme) is tuple and len(scheme) == 4:
        parts.update(scales=scheme[1], zero_points=scheme[2], axis=scheme[3])
    return Composite("its values are quantised", dtype, _size(size), parts)


def _nested(args: Args, func: Global) -> Any:
    if len(args) != 4:
        return _wrong(args, func)
    buffer = args[0]
    dtype = buffer.geometry.dtype if type(buffer) is Tensor else None
    parts = dict(zip(("values", "sizes", "strides", "offsets"), args, strict=True))
    return Composite("it is nested: a list of tensors of different shapes", dtype, (), parts)


def _jagged(args: Args, func: Global) -> Any:
    return Composite("it is nested (jagged): a list of tensors of different shapes", None, (), _tensors_in(args))


def _meta(args: Args, func: Global) -> Any:
    if len(args) != 4:
        return _wrong(args, func)
    return Composite("it is on the meta device and was saved without values", torch_dtype(args[0]), _size(args[1]))


def _wrapper(args: Args, func: Global) -> Any:
    if len(args) < 4:
        return _wrong(args, func)
    named = args[0].shown if type(args[0]) is Global else "wrapper subclass"
    return Composite(f"it is a {named}, whose values only its own code knows", torch_dtype(args[1]), _size(args[2]))


def _uninitialized(args: Args, func: Global) -> Any:
    return Composite(f"it is an {func.name}: it had no values yet when it was saved")


def _from_numpy(args: Args, func: Global) -> Any:
    return args[0] if args and type(args[0]) is Made else _wrong(args, func)


def _as_given(args: Args, func: Global) -> Any:
    """TorchScript's typed lists, and values with a type's name beside them."""
    return args[0] if args else None


_UTILS: dict[str, Callable[[Args, Global], Any]] = {
    "_rebuild_tensor": _rebuild_tensor,
    "_rebuild_tensor_v2": _rebuild_tensor_v2,
    "_rebuild_tensor_v3": _rebuild_tensor_v3,
    "_rebuild_parameter": _first,
    "_rebuild_parameter_with_state": _first,
    "_rebuild_sparse_tensor": _sparse,
    "_rebuild_sparse_csr_tensor": _sparse,
    "_rebuild_qtensor": _quantized,
    "_rebuild_nested_tensor": _nested,
    "_rebuild_device_tensor_from_cpu_tensor": _first,
    "_rebuild_device_tensor_from_numpy": _from_numpy,
    "_rebuild_xla_tensor": _from_numpy,
    "_rebuild_meta_tensor_no_storage": _meta,
    "_rebuild_wrapper_subclass": _wrapper,
}
KNOWN_CALLS: dict[tuple[str, str], Callable[[Args, Global], Any]] = {
    **{("torch._utils", name): function for name, function in _UTILS.items()},
    ("collections", "OrderedDict"): _ordered,
    ("collections", "Counter"): _ordered,
    ("collections", "defaultdict"): _defaultdict,
    ("torch._tensor", "_rebuild_from_type_v2"): _from_type,
    ("torch.tensor", "_rebuild_from_type_v2"): _from_type,
    ("torch._tensor", "_rebuild_from_type"): _from_type,
    ("torch.tensor", "_rebuild_from_type"): _from_type,
    ("torch.nested._internal.nested_tensor", "_rebuild_njt"): _jagged,
    ("torch.nn.parameter", "UninitializedParameter"): _uninitialized,
    ("torch.nn.parameter", "UninitializedBuffer"): _uninitialized,
    ("torch.jit._pickle", "restore_type_tag"): _as_given,
    **{("torch.jit._pickle", f"build_{kind}list"): _as_given for kind in ("int", "double", "bool", "tensor", "complex")},
}
_COPYING = frozenset({_ordered, _defaultdict, _from_type, _jagged, _sparse})


def old_tensor(made: Made) -> Tensor | Composite | None:
    """A tensor of torch before 0.2: its class, and a state of storage, offset, size and strides."""
    state = made.states[-1] if made.states else None
    if type(state) is not tuple or len(state) != 4 or type(state[0]) is not Storage or type(made.func) is not Global:
        return None
    return _strided(*state) if made.func.module.startswith("torch") and made.func.name.endswith("Tensor") else None
