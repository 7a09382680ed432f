"""The fast way through Burnpack's metadata: all entries that Burn writes have one shape, so the block is cut, not decoded.

    … name {"dtype": kind, "shape": kind, "data_offsets": [ │ begin, end] "param_id": id │ name {"dtype": …

The block is split where the two offsets of each entry begin. A piece then holds one entry's offsets and id, and the next
entry's name, dtype and shape; the bytes of dtype and shape are the same for many tensors and decoded once. Whatever is
not exactly as Burn writes it makes this give up (None), and the general decoder has the word.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import cbor2

from burnstore.dtypes import DType, Shape
from burnstore.formats.base import Entry, Span
from burnstore.formats.burnpack.cbor import decode, encode
from burnstore.formats.burnpack.spelling import enter_dtype
from burnstore.limits import Limits

_TENSORS = encode("tensors")
_DTYPE = encode("dtype")
_OFFSETS = encode("data_offsets") + b"\x82"
_PARAM_ID = encode("param_id")
_WIDTHS = {0x18: 1, 0x19: 2, 0x1A: 4, 0x1B: 8}
# Most offsets are numbers of four bytes, each after its head.
_two_of_four_bytes = struct.Struct(">xIxI").unpack_from


class TooManyTensorsError(Exception):
    """The block is as Burn writes it, and has more tensors than `limits` allow."""


class Plain(NamedTuple):
    """What the metadata says."""

    entries: dict[str, Entry]
    ids: dict[str, int]
    rest: dict[str, Any]


def read_plain(block: bytes, dtypes: dict[str, DType], limits: Limits) -> Plain | None:
    """The metadata, cut; None for a block that needs the general decoder. Dtypes are entered into `dtypes`."""
    try:
        return _read(block, dtypes, limits)
    except (KeyError, IndexError, ValueError, TypeError, struct.error, cbor2.CBORError):
        return None


def _read(block: bytes, dtypes: dict[str, DType], limits: Limits) -> Plain | None:
    if not 0xA1 <= block[0] <= 0xA3 or not block.startswith(_TENSORS, 1):
        return None
    count, at = _count(block, 1 + len(_TENSORS))
    if count == 0 or count != block.count(_OFFSETS):
        return None
    if count > limits.burnpack_tensors:
        raise TooManyTensorsError(count)
    pieces = block.split(_OFFSETS)

    entries: dict[str, Entry] = {}
    ids: dict[str, int] = {}
    kinds: dict[bytes, tuple[str, Shape]] = {}
    piece = pieces[0]
    for following in pieces[1:]:
        # what is left of this piece: the entry's name, its map head, its dtype and shape
        cut = piece.rindex(_DTYPE)
        head = piece[at]
        if 0x60 <= head < 0x78:
            begin, end = at + 1, at + 1 + head - 0x60
        elif head == 0x78:
            begin, end = at + 2, at + 2 + piece[at + 1]
        elif head == 0x79:
            begin, end = at + 3, at + 3 + int.from_bytes(piece[at + 1 : at + 3], "big")
        else:
            return None
        if end != cut - 1:
            return None
        name, fields, kind = piece[begin:end].decode(), piece[end], piece[cut:]
        known = kinds.get(kind)
        if known is None:
            known = kinds[kind] = _kind(kind, dtypes, limits)

        # what the next piece begins with: the entry's offsets and id
        if following[0] == 0x1A == following[5]:
            low, high = _two_of_four_bytes(following)
            at = 10
        else:
            low, at = _number(following, 0)
            high, at = _number(following, at)
        if fields == 0xA4:
            if not following.startswith(_PARAM_ID, at):
                return None
            ids[name], at = _number(following, at + len(_PARAM_ID))
        elif fields != 0xA3:
            return None
        dtype, shape = known
        entries[name] = Entry(dtype, shape, Span(low, high))
        piece = following
    if len(entries) != count or at > len(piece):
        return None
    return Plain(entries, ids, _rest(block[0] - 1, piece[at:], limits))


def _count(block: bytes, at: int) -> tuple[int, int]:
    """The number in the head of the map of tensors, and where its first name begins."""
    head = block[at]
    if 0xA0 <= head < 0xB8:
        return head - 0xA0, at + 1
    end = at + 1 + _WIDTHS[head - 0xA0]
    return int.from_bytes(block[at + 1 : end], "big"), end


def _number(piece: bytes, at: int) -> tuple[int, int]:
    head = piece[at]
    if head < 24:
        return head, at + 1
    end = at + 1 + _WIDTHS[head]
    if end > len(piece):
        raise IndexError(end)
    return int.from_bytes(piece[at + 1 : end], "big"), end


def _kind(kind: bytes, dtypes: dict[str, DType], limits: Limits) -> tuple[str, Shape]:
    """Dtype and shape of an entry; their bytes must be what our own encoder makes of them."""
    whole = b"\xa2" + kind
    value = decode(whole, limits, "")
    if (
        encode(value) != whole
        or list(value) != ["dtype", "shape"]
        or not isinstance(value["shape"], list)
        or set(map(type, value["shape"])) - {int}
    ):
        raise ValueError(kind)
    return enter_dtype(value["dtype"], dtypes, ""), tuple(value["shape"])


def _rest(count: int, rest: bytes, limits: Limits) -> dict[str, Any]:
    """The keys after `tensors`."""
    value = decode(bytes((count,)) + rest, limits, "")
    if not isinstance(value, dict) or "tensors" in value:
        raise ValueError("two maps of tensors")
    return value
