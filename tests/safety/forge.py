"""Files by hand, right or wrong in exactly the way that a test wants."""

from __future__ import annotations

import json
import struct
from typing import Any

import cbor2

DATA = bytes(range(8))


def tensor(**changed: Any) -> dict[str, Any]:
    """What a header says of two floats in `DATA`, with some of it changed."""
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changed}


def bpk(metadata: Any, data: bytes = DATA, *, magic: bytes = b"NRUB", version: int = 1, length: int | None = None) -> bytes:
    """A Burnpack file around a CBOR block, given as bytes or as a value."""
    block = metadata if isinstance(metadata, bytes) else cbor2.dumps(metadata)
    header = magic + struct.pack("<HI", version, len(block) if length is None else length) + block
    return header + bytes(-len(header) % 256) + data


def bpk_with(data: bytes = DATA, **changed: Any) -> bytes:
    """A Burnpack file of one tensor `t` with a few of its words changed."""
    return bpk({"tensors": {"t": tensor(**changed)}}, data)


def st(header: Any, data: bytes = DATA, *, length: int | None = None) -> bytes:
    """A SafeTensors file around a header, given as bytes, text or a value."""
    if not isinstance(header, (bytes, str)):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def st_with(data: bytes = DATA, **changed: Any) -> bytes:
    """A SafeTensors file of one tensor `t` with a few of its words changed."""
    return st({"t": tensor(**changed)}, data)


def head(major: int, number: int) -> bytes:
    """A CBOR head of nine bytes, whatever the number."""
    return bytes((major << 5 | 27,)) + struct.pack(">Q", number)


def text(value: str) -> bytes:
    return cbor2.dumps(value)
