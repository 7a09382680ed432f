"""Weight files put together byte by byte, and taken apart again, without burnstore: what its tests compare with."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

import cbor2
import numpy as np

# What SafeTensors calls the arrays that these tests use.
_SAFETENSORS_NAMES = {
    "<f4": "F32",
    "<f8": "F64",
    "<i4": "I32",
    "<i8": "I64",
    "|u1": "U8",
    "|b1": "BOOL",
    "<i2": "I16",
    "<c8": "C64",
}


def safetensors_bytes(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> bytes:
    """A SafeTensors file of arrays in the order given."""
    header: dict[str, object] = {} if metadata is None else {"__metadata__": dict(metadata)}
    data, at = [], 0
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        kind = _SAFETENSORS_NAMES[array.dtype.str]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *data])


def safetensors_parts(data: bytes) -> tuple[dict[str, object], bytes]:
    """The header and the data of a SafeTensors file."""
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def burnpack_bytes(
    tensors: Mapping[str, tuple[object, tuple[int, ...], bytes]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """A Burnpack file of (dtype, shape, bytes), in the order given."""
    described, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        data += bytes(-len(data) % 256)
        described[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    top: dict[str, object] = {"tensors": dict(sorted(described.items()))}
    if metadata:
        top["metadata"] = dict(metadata)
    block = cbor2.dumps(top)
    head = b"NRUB" + struct.pack("<HI", 1, len(block)) + block
    return head + bytes(-len(head) % 256) + data


def burnpack_parts(data: bytes) -> tuple[dict[str, object], bytes]:
    """The metadata and the data of a Burnpack file."""
    assert data[:4] == b"NRUB"
    version, length = struct.unpack("<HI", data[4:10])
    assert version == 1
    start = -(-(10 + length) // 256) * 256
    return cbor2.loads(data[10 : 10 + length]), data[start:]
