"""Burnpack files put together by hand, with a CBOR encoder that is not ours."""

from __future__ import annotations

import struct
from typing import Any

import cbor2


def burnpack(
    top: Any, data: bytes = b"", *, version: int = 1, magic: bytes = b"NRUB", aligned: bool = True, inside: bytes = b""
) -> bytes:
    """A file whose metadata is `top`, a value or its CBOR; `inside` follows it within its block."""
    block = (top if isinstance(top, bytes) else cbor2.dumps(top)) + inside
    head = struct.pack("<4sHI", magic, version, len(block)) + block
    return head + bytes(-len(head) % 256 if aligned else 0) + data


def entry(begin: int = 0, end: int = 8, *, dtype: Any = "F32", shape: Any = (2,), **more: Any) -> dict[str, Any]:
    """What the metadata says of a tensor."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end], **more}


def scheme_020(**changes: Any) -> dict[str, Any]:
    return {"value": "Q8S", "param": "F32", "store": "Native", "level": "Tensor", "mode": "Symmetric", **changes}


def scheme_022(**changes: Any) -> dict[str, Any]:
    return {"value": "Q8S", "store": "Native", "mode": "Symmetric", "tensor": "F32", "block": None, **changes}


def block(*sizes: int) -> dict[str, Any]:
    return {"storage": [*sizes, *[1] * (5 - len(sizes))], "len": len(sizes)}


EIGHT = struct.pack("<2f", 1.5, -2.0)
