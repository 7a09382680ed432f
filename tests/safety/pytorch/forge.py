"""PyTorch files written by hand, opcode by opcode."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

ORDERED = b"ccollections\nOrderedDict\n)R"
PROTOCOL = b"\x80\x02"


def text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return (b"\x8a" + bytes([len(data)]) if len(data) < 256 else b"\x8b" + struct.pack("<I", len(data))) + data


def numbers(*values: int) -> bytes:
    """A tuple of them."""
    return b"(" + b"".join(map(number, values)) + b"t"


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def storage(kind: str = "FloatStorage", key: str = "0", count: int = 4) -> bytes:
    return b"(" + text("storage") + name("torch", kind) + text(key) + text("cpu") + number(count) + b"tQ"


def tensor(
    stored: bytes | None = None, size: bytes = numbers(4), strides: bytes = numbers(1), bits: bytes = b"", dtype: str = ""
) -> bytes:
    """A call of torch's own function, with its metadata if `bits` is given, of version 3 if `dtype` is."""
    function = name("torch._utils", "_rebuild_tensor_v3" if dtype else "_rebuild_tensor_v2")
    kind = name("torch", dtype) if dtype else b""
    return function + b"(" + (stored or storage()) + number(0) + size + strides + b"\x89" + ORDERED + kind + bits + b"tR"


def items(**values: bytes) -> bytes:
    """A dict."""
    return b"}(" + b"".join(text(key) + value for key, value in values.items()) + b"u"


def archive(pickle: bytes, storages: Mapping[str, bytes] | None = None) -> bytes:
    """A file of one pickle, which is given without its protocol and its end, and of storages: four numbers if none is given."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("a/data.pkl", PROTOCOL + pickle + b".")
        file.writestr("a/version", b"3\n")
        for key, data in ({"0": struct.pack("<4f", 1, 2, 3, 4)} if storages is None else storages).items():
            file.writestr(f"a/data/{key}", data)
    return out.getvalue()
