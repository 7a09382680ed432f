"""Good files, made worse: bytes flipped, numbers replaced by dangerous ones, pieces cut, doubled, moved and mixed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

_NUMBERS = (0, 1, 9, 23, 24, 255, 256, 2**16 - 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
_CBOR_PIECES = (
    *(b"\x00", b"\xff", b"\x80", b"\x9f", b"\xbf", b"\x7f", b"\xf6", b"\xf7", b"\xf9\x7e\x00", b"\xc0", b"\xd8\x1c"),
    *(b"\xd9\xd9\xf7", b"\xc2\x49\x01" + bytes(8), b"\x20", b"\x3b" + b"\xff" * 8, b"\x1b" + b"\xff" * 8, b"\x65shape"),
)
_JSON_PIECES = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b" ", b"\t", b"null", b"true", b"1e1", b"-0", b"-1", b"0.0", b'"a":'),
    *(b"\\u0061", b'"__metadata__":', b'"\\u005f_metadata__":', b'"dtype":"F32",', b'"shape":[],', b"18446744073709551616"),
)
_PIECES = (*_CBOR_PIECES, *_JSON_PIECES)


@st.composite
def mutated(draw: st.DrawFn, good_files: Callable[[], Sequence[bytes]], head: int = 10) -> bytes:
    """One of the good files after one to six changes, most of them in its header."""
    good = good_files()  # a function: hypothesis spells its arguments out
    data = bytearray(good[draw(st.integers(0, len(good) - 1))])
    for _ in range(draw(st.integers(1, 6))):
        _change(draw, data, good, head)
    return bytes(data)


def _place(draw: st.DrawFn, data: bytearray, head: int) -> int:
    limit = len(data)
    if draw(st.integers(0, 3)):
        limit = min(limit, draw(st.sampled_from((head, 64, 512, 2048))))
    return draw(st.integers(0, max(0, limit)))


def _change(draw: st.DrawFn, data: bytearray, good: Sequence[bytes], head: int) -> None:
    at = _place(draw, data, head)
    kind = draw(st.sampled_from(("flip", "byte", "number", "piece", "insert", "cut", "delete", "double", "mix", "more")))
    if kind == "flip" and at < len(data):
        data[at] ^= 1 << draw(st.integers(0, 7))
    elif kind == "byte" and at < len(data):
        data[at] = draw(st.integers(0, 255))
    elif kind == "number":
        code = draw(st.sampled_from(("<B", "<H", "<I", "<Q", ">H", ">I", ">Q")))
        value = draw(st.sampled_from(_NUMBERS)) & ((1 << 8 * struct.calcsize(code)) - 1)
        data[at : at + struct.calcsize(code)] = struct.pack(code, value)
    elif kind == "piece":
        piece = draw(st.sampled_from(_PIECES))
        data[at : at + len(piece)] = piece
    elif kind == "insert":
        data[at:at] = draw(st.sampled_from(_PIECES))
    elif kind == "cut":
        del data[at:]
    elif kind == "delete":
        del data[at : at + draw(st.integers(1, 300))]
    elif kind == "double":
        data[at:at] = data[at : at + draw(st.integers(1, 100))]
    elif kind == "mix":
        other = good[draw(st.integers(0, len(good) - 1))]
        data[at:] = other[at:]
    elif kind == "more":
        data += draw(st.binary(max_size=300))
