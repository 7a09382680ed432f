"""Readers that are as simple as can be: parse the header with somebody else's parser, slice, trust nothing of ours."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from typing import Any

import cbor2

# (what the file calls the dtype, shape, the bytes)
Tensor = tuple[str, tuple[int, ...], bytes]

_BURN_BYTES = {
    "F64": 8, "F32": 4, "Flex32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1,
    "U64": 8, "U32": 4, "U16": 2, "U8": 1, "Bool": 1,
}  # fmt: skip
_BOOL_BYTES = {"Native": 1, "U8": 1, "U32": 4}
_SAFETENSORS_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E5M2FNUZ": 8, "F8_E4M3FNUZ": 8, "F8_E8M0": 8, "F4": 4,
    "F6_E2M3": 6, "F6_E3M2": 6, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64,
    "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip


def wanted(condition: object, what: str) -> None:
    """What a reader that accepted the file should have minded."""
    if not condition:
        raise AssertionError(f"it was accepted although {what}")


def burnpack(data: bytes) -> dict[str, Tensor]:
    """The tensors of a Burnpack file that our reader accepted."""
    wanted(data[:4] == b"NRUB" and int.from_bytes(data[4:6], "little") <= 1, "magic or version is wrong")
    length = int.from_bytes(data[6:10], "little")
    wanted(10 + length <= len(data), "its metadata is cut")
    tensors = cbor2.loads(data[10 : 10 + length])["tensors"]
    packed = 10 + length
    aligned = (packed + 255) // 256 * 256
    spans = sorted(tuple(fields["data_offsets"]) for fields in tensors.values())
    end = max((span[1] for span in spans), default=0)
    ends = itertools.accumulate((last for _, last in spans), max, initial=0)
    gapless = all(begin <= before for (begin, _), before in zip(spans, ends, strict=False))
    start = packed if aligned + end > len(data) == packed + end else aligned
    wanted(start == aligned or gapless, "it is cut: tensors of Burn 0.19 leave no gaps")
    wanted(start + end <= len(data), "its data is cut")
    found = {}
    for name, fields in tensors.items():
        begin, end = fields["data_offsets"]
        shape = tuple(fields["shape"])
        wanted(type(begin) is int and type(end) is int and 0 <= begin <= end, "a range is none")
        wanted(all(type(dim) is int and dim >= 0 for dim in shape), "a dimension is none")
        dtype = fields["dtype"]
        if isinstance(dtype, dict) and "QFloat" in dtype:
            word = "quantized"
        else:
            size = _BOOL_BYTES[dtype["Bool"]] if isinstance(dtype, dict) else _BURN_BYTES[dtype]
            word = "Bool" if isinstance(dtype, dict) else dtype
            wanted(math.prod(shape) * size == end - begin, "a range does not fit dtype and shape")
        wanted(isinstance(name, str), "a name is no text")
        found[name] = (word, shape, data[start + begin : start + end])
    spans = sorted({span for span in spans if span[0] != span[1]})
    wanted(all(a[1] <= b[0] for a, b in itertools.pairwise(spans)), "tensors share some of their bytes")
    return found


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    wanted(len(dict(pairs)) == len(pairs), "it has one key twice")
    return dict(pairs)


def _no_constant(text: str) -> Any:
    raise AssertionError(f"it was accepted although {text} is no JSON")


def strict_json(text: bytes) -> Any:
    """JSON by Python's own parser, without the liberties that it takes."""
    return json.loads(text.decode("utf-8"), object_pairs_hook=_no_repeats, parse_constant=_no_constant)


def safetensors(data: bytes) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a SafeTensors file that our reader accepted."""
    length = int.from_bytes(data[:8], "little")
    wanted(8 + length <= len(data), "its header is cut")
    header = strict_json(data[8 : 8 + length])
    bare = re.sub(rb'"(?:[^"\\]|\\.)*"', b'""', data[8 : 8 + length])
    wanted(not re.search(rb"[:,\[]\s*-\d", bare), "a number has a minus sign")
    start, found, spans = 8 + length, {}, []
    metadata = header.pop("__metadata__", None) or {}
    wanted(all(type(value) is str for value in metadata.values()), "its metadata is not text")
    for name, fields in header.items():
        wanted(set(fields) == {"dtype", "shape", "data_offsets"}, "an entry is not one")
        begin, end = fields["data_offsets"]
        shape = tuple(fields["shape"])
        wanted(all(type(number) is int and number >= 0 for number in (begin, end, *shape)), "a number is none")
        wanted(math.prod(shape) * _SAFETENSORS_BITS[fields["dtype"]] == 8 * (end - begin), "a range does not fit")
        found[name] = (fields["dtype"], shape, data[start + begin : start + end])
        spans.append((begin, end))
    at = 0
    for begin, end in sorted(spans):
        wanted(begin == at, "it has a hole or an overlap")
        at = end
    wanted(start + at == len(data), "data and file do not end together")
    return found, metadata


def index(path: str) -> dict[str, str]:
    """The names of an index that our reader accepted, each with the real path of its shard."""
    with open(path, "rb") as file:
        weight_map = strict_json(file.read())["weight_map"]
    folder = os.path.dirname(path)
    for shard in weight_map.values():
        parts = shard.split("/")
        depth = 0
        for part in parts:
            depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
            wanted(depth >= 0, f"its shard {shard!r} leaves the folder")
        wanted(shard and not shard.startswith("/") and "\\" not in shard, f"its shard {shard!r} is no file in the folder")
        wanted(not shard.lower().endswith(".index.json"), "its shard is an index")
    return {name: os.path.normpath(os.path.join(folder, shard)) for name, shard in weight_map.items()}
