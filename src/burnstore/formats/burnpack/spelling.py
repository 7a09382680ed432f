"""How Burn's versions spell dtypes in Burnpack: Bool and quantised ones changed, and no spelling suits all of them.

                 0.19, 0.20                                     0.21                  0.22
    Bool         "Bool"                                         {"Bool": "Native"}, "U8" or "U32"
    QFloat       {"value", "param", "store", "level", "mode"}   the same              {"value", "store", "mode",
                                                                                       "tensor", "block"}

Reading takes all of them, also a scheme that has the keys of both.
"""

from __future__ import annotations

from typing import Any

from burnstore.dtypes import DType, describe_dtypes
from burnstore.errors import DTypeError, FormatError
from burnstore.formats.base import BurnVersion
from burnstore.quantized import SCALES, VALUES, QuantizedDType, Scheme

PLAIN: dict[str, DType] = {
    dtype.burn_name: dtype for dtype in describe_dtypes() if dtype.burn_name and "(" not in dtype.burn_name
}
_BOOLS = {"Native": DType.of("Bool"), "U8": DType.of("Bool(U8)"), "U32": DType.of("Bool(U32)")}


def read_dtype(spelled: object, where: str) -> DType:
    """The dtype that a one-entry map in the metadata means."""
    if isinstance(spelled, dict) and len(spelled) == 1:
        ((word, detail),) = spelled.items()
        if word == "Bool" and isinstance(detail, str) and detail in _BOOLS:
            return _BOOLS[detail]
        if word == "QFloat" and isinstance(detail, dict):
            return QuantizedDType.with_scheme(_read_scheme(detail, where))
    raise FormatError(f"there is no dtype {repr(spelled)[:200]}", where=where, do=f"known are {', '.join(PLAIN)} and QFloat")


def enter_dtype(spelled: object, dtypes: dict[str, DType], where: str) -> str:
    """The name under which a file's table has a dtype; one that is spelled as a map is entered there."""
    if isinstance(spelled, str) and spelled in PLAIN:
        return spelled
    found = read_dtype(spelled, where)
    dtypes.setdefault(found.name, found)
    return found.name


def write_dtype(dtype: DType, version: BurnVersion, name: str) -> object:
    """What stands in the metadata for a dtype, in the words of a version of Burn."""
    if isinstance(dtype, QuantizedDType):
        write = _write_scheme_020 if version == "0.20" else _write_scheme_022
        return {"QFloat": write(dtype.scheme, name)}
    if dtype.kind == "bool" and dtype.burn_name:
        store = dtype.burn_name.partition("(")[2].rstrip(")") or "Native"
        if version == "0.22":
            return {"Bool": store}
        if store == "U32":
            raise DTypeError("Burn 0.20 has no booleans of four bytes", where=f"tensor {name!r}", do='pass for_burn="0.22"')
        return "Bool"
    if dtype.burn_name is None:
        do = "cast it, or save as SafeTensors" if dtype.safetensors_name else "cast it first"
        raise DTypeError(f"Burn has no dtype for {dtype}", where=f"tensor {name!r}", do=do)
    return dtype.burn_name


def _read_scheme(scheme: dict[str, Any], where: str) -> Scheme:
    try:
        value, mode = scheme["value"], scheme.get("mode", "Symmetric")
        store, packed_dim = _read_store(scheme.get("store", "Native"))
        if value not in VALUES or mode != "Symmetric":
            raise KeyError(value if value not in VALUES else mode)
        tensor, block, block_scale = _read_levels(scheme)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"this quantisation scheme has no meaning: {error} in {str(scheme)[:200]}", where=where) from None
    return Scheme(value, store, packed_dim, tensor, block, block_scale)


def _read_store(store: object) -> tuple[Any, int]:
    if store == "U32":  # 0.19
        return "PackedU32", 0
    if isinstance(store, dict) and len(store) == 1:
        ((word, dim),) = store.items()
        if word in ("PackedU32", "PackedNative") and type(dim) is int and dim >= 0:
            return word, dim
    if store != "Native":
        raise ValueError(f"store {store!r}")
    return "Native", 0


def _read_levels(scheme: dict[str, Any]) -> tuple[str | None, tuple[int, ...] | None, str | None]:
    if "tensor" in scheme or "block" in scheme or "level" not in scheme:
        tensor, block = scheme.get("tensor"), scheme.get("block")
        if tensor is not None and tensor not in SCALES:
            raise ValueError(f"tensor scale {tensor!r}")
        if block is None:
            return tensor, None, None
        if block["dtype"] not in SCALES or (tensor is not None and tensor != "F32"):
            raise ValueError(f"scales {block['dtype']!r} and {tensor!r}")
        return tensor, _read_block(block["size"]), block["dtype"]
    level, param = scheme["level"], scheme["param"]
    if param not in SCALES:
        raise ValueError(f"scale {param!r}")
    if level == "Tensor":
        return param, None, None
    return None, _read_block(level["Block"]), param


def _read_block(block: dict[str, Any]) -> tuple[int, ...]:
    sizes, length = block["storage"], block["len"]
    if type(length) is not int or not 0 < length <= len(sizes):
        raise ValueError(f"block length {length!r}")
    if not all(type(size) is int and 0 < size < 256 for size in sizes[:length]):
        raise ValueError(f"block {sizes!r}")
    return tuple(sizes[:length])


def _write_block(block: tuple[int, ...]) -> dict[str, Any]:
    return {"storage": [*block, *[1] * (5 - len(block))], "len": len(block)}


def _write_store(scheme: Scheme) -> object:
    return "Native" if scheme.store == "Native" else {scheme.store: scheme.packed_dim}


def _write_scheme_020(scheme: Scheme, name: str) -> dict[str, Any]:
    if scheme.block and scheme.tensor:
        raise DTypeError("Burn 0.20 has no two levels of scales", where=f"tensor {name!r}", do='pass for_burn="0.22"')
    if scheme.store == "Native" and VALUES[scheme.value][0] < 8:
        raise DTypeError(f"Burn 0.20 cannot hold {scheme.value} natively", where=f"tensor {name!r}", do='pass for_burn="0.22"')
    return {
        "value": scheme.value,
        "param": scheme.block_scale or scheme.tensor or "F32",
        "store": _write_store(scheme),
        "level": {"Block": _write_block(scheme.block)} if scheme.block else "Tensor",
        "mode": "Symmetric",
    }


def _write_scheme_022(scheme: Scheme, name: str) -> dict[str, Any]:
    block = {"size": _write_block(scheme.block), "dtype": scheme.block_scale} if scheme.block else None
    return {
        "value": scheme.value,
        "store": _write_store(scheme),
        "mode": "Symmetric",
        "tensor": scheme.tensor,
        "block": block,
    }
