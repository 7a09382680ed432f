"""The CBOR of Burnpack: strict reading, and writing exactly as Burn's encoder (ciborium) does.

Reading is cbor2's, with every tag closed: no tag has a meaning here, and some of cbor2's own do work that a file must
not be able to ask for.
"""

from __future__ import annotations

import struct
from typing import Any

import cbor2

from burnstore.errors import FormatError, LimitError
from burnstore.limits import Limits

# The tags that cbor2 would act upon by itself; those that it does not know come to `tag_hook`.
_BUILT_IN_TAGS = (0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000, 55799)


def decode(block: bytes, limits: Limits, where: str) -> Any:
    """The plain value of a CBOR block; what comes after it is left alone, as Burn does."""
    if len(block) > limits.burnpack_decoded_bytes:  # a byte can open a list that costs 64
        raise LimitError(
            f"its metadata is not as Burn writes it, and {len(block)} bytes are over the cap of {limits.burnpack_decoded_bytes}",
            where=where,
            do="pass limits=Limits(burnpack_decoded_bytes=...) if it is meant",
        )
    try:
        return cbor2.loads(
            block,
            max_depth=limits.burnpack_depth,
            allow_duplicate_keys=False,
            strict_hashable_types=True,  # others can be made to collide
            semantic_decoders=_REFUSED,
            tag_hook=_refuse,
        )
    except (cbor2.CBORError, ValueError, RecursionError, OverflowError, MemoryError, TypeError) as error:
        raise FormatError(
            f"its metadata is not the CBOR that Burnpack wants: {_root(error)}", where=where, do="the file is damaged"
        ) from None


def _refuse(*_: object) -> Any:
    raise ValueError("it has a tag, and Burnpack has none")


_REFUSED = dict.fromkeys(_BUILT_IN_TAGS, _refuse)


def _root(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def encode(value: Any) -> bytes:
    """CBOR with definite lengths, the shortest heads and the shortest exact floats.

    >>> encode({"a": [1, 500, -1, 1.5]}).hex()
    'a1616184011901f420f93e00'
    """
    if isinstance(value, str):
        text = value.encode()
        return head(0x60, len(text)) + text
    if value is None or isinstance(value, bool):
        return b"\xf6" if value is None else b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0x00, value) if value >= 0 else head(0x20, -1 - value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        return head(0xA0, len(value)) + b"".join(encode(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple)):
        return head(0x80, len(value)) + b"".join(map(encode, value))
    raise TypeError(f"Burnpack's metadata cannot hold a {type(value).__name__}")


def head(major: int, number: int) -> bytes:
    """A CBOR head: the kind of item in the upper three bits, and its number in as few bytes as hold it."""
    if number < 24:
        return bytes((major | number,))
    if number < 0x100:
        return bytes((major | 24, number))
    if number < 0x10000:
        return _two_bytes(major | 25, number)
    if number < 0x100000000:
        return _four_bytes(major | 26, number)
    return _eight_bytes(major | 27, number)


_two_bytes, _four_bytes, _eight_bytes = (struct.Struct(code).pack for code in (">BH", ">BI", ">BQ"))


def _float(value: float) -> bytes:
    for mark, code in ((0xF9, ">Be"), (0xFA, ">Bf")):
        try:
            short = struct.pack(code, mark, value)
        except OverflowError:
            continue
        again = struct.unpack(code, short)[1]
        if again == value or value != value:
            return short
    return struct.pack(">Bd", 0xFB, value)
