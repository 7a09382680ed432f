"""Opcodes that push numbers and texts: each a function that takes the machine and the offset after the opcode's byte."""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import Struct
from typing import Any

from burnstore.formats.pytorch.machine_texts import escaped_string, integer_text, line, long_value, raw_unicode
from burnstore.formats.pytorch.pickle_machine import Machine, PickleEndedError, PickleFaultError

Handler = Callable[[Machine, int], int]

_u32 = Struct("<I").unpack_from
_f64 = Struct(">d").unpack_from
_LONG_TEXT = 1024
# What follows a name in the `_metadata` of a state dict, {"version": 1} for each module: the name's put; an empty dict and its
# put; a text that was met before; a small number; SETITEM.
_version = re.compile(rb"(?:q(.)|r(....))\}(?:q(.)|r(....))(?:h(.)|j(....))K(.)s", re.DOTALL).match


def take(m: Machine, at: int, length: int) -> bytes:
    """The bytes of an argument."""
    end = at + length
    if length < 0:
        raise PickleFaultError(f"a length of {length} is not possible")
    if end > len(m.data):
        raise PickleEndedError
    return m.data[at:end]


def number(m: Machine, at: int, size: int) -> int:
    return int.from_bytes(take(m, at, size), "little")


def push(value: Any) -> Handler:
    def handler(m: Machine, at: int) -> int:
        m.stack.append(value)
        return at

    return handler


def push_new(make: Callable[[], Any]) -> Handler:
    def handler(m: Machine, at: int) -> int:
        m.stack.append(make())
        return at

    return handler


def binint1(m: Machine, at: int) -> int:
    m.stack.append(m.data[at] if at < len(m.data) else take(m, at, 1))
    return at + 1


def binint2(m: Machine, at: int) -> int:
    m.stack.append(number(m, at, 2))
    return at + 2


def binint(m: Machine, at: int) -> int:
    m.stack.append(int.from_bytes(take(m, at, 4), "little", signed=True))
    return at + 4


def long(width: int) -> Handler:
    def handler(m: Machine, at: int) -> int:
        length = int.from_bytes(take(m, at, width), "little", signed=width == 4)
        m.stack.append(int.from_bytes(take(m, at + width, length), "little", signed=True))
        return at + width + length

    return handler


def binfloat(m: Machine, at: int) -> int:
    m.stack.append(_f64(take(m, at, 8))[0])
    return at + 8


def int_text(m: Machine, at: int) -> int:
    text, at = line(m, at)
    m.stack.append({b"00": False, b"01": True}.get(text) if text in (b"00", b"01") else integer_text(text))
    return at


def long_text(m: Machine, at: int) -> int:
    text, at = line(m, at)
    m.stack.append(long_value(text))
    return at


def float_text(m: Machine, at: int) -> int:
    text, at = line(m, at)
    if len(text) > 512 or not re.fullmatch(rb"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|inf|nan)", text):
        raise PickleFaultError("its argument is not a number")
    m.stack.append(float(text))
    return at


def text(width: int) -> Handler:
    def handler(m: Machine, at: int) -> int:
        start = at + width
        length = number(m, at, width)
        text = str(take(m, start, length), "utf-8", "surrogatepass")
        m.stack.append(m.texts.setdefault(text, text) if length > _LONG_TEXT else text)
        return start + length

    return handler


def binunicode(m: Machine, at: int) -> int:
    data = m.data
    if at + 4 > len(data):
        raise PickleEndedError
    length: int = _u32(data, at)[0]
    end = at + 4 + length
    if end > len(data):
        raise PickleEndedError
    put = data[end : end + 1] if m.entries.active else b""
    after_put = end + 5 if put == b"r" else end + 2
    is_version = bool(put) and data[after_put : after_put + 1] == b"}"
    if put in (b"q", b"r") and not is_version:  # an entry of a state dict goes on with a tensor
        after = m.entries.take(at - 1)
        if after:
            return after
    text = str(data[at + 4 : end], "utf-8", "surrogatepass")
    m.stack.append(m.texts.setdefault(text, text) if length > _LONG_TEXT else text)
    return _versioned(m, end) if is_version else end


def _versioned(m: Machine, at: int) -> int:
    """Take an entry of `_metadata` in one step, from the put of its name on; exactly what its opcodes would do."""
    entry = _version(m.data, at)
    if entry is None:
        return at
    name, long_name, made, long_made, key, long_key, value = entry.groups()
    m.put(name[0] if name else _u32(long_name)[0])
    found: dict[Any, object] = {}
    m.stack.append(found)
    m.put(made[0] if made else _u32(long_made)[0])
    word = m.get(key[0] if key else _u32(long_key)[0])
    if type(word) is not str:  # what may be a key is decided elsewhere
        return entry.start(5 if key else 6) - 1
    found[word] = value[0]
    return entry.end()


def binbytes(width: int) -> Handler:
    def handler(m: Machine, at: int) -> int:
        length = number(m, at, width)
        m.stack.append(take(m, at + width, length))
        return at + width + length

    return handler


def bytearray8(m: Machine, at: int) -> int:
    length = number(m, at, 8)
    m.stack.append(bytearray(take(m, at + 8, length)))
    return at + 8 + length


def binstring(width: int) -> Handler:
    """A text of Python 2: bytes that are nearly always UTF-8."""

    def handler(m: Machine, at: int) -> int:
        length = int.from_bytes(take(m, at, width), "little", signed=width == 4)
        m.stack.append(text_or_bytes(take(m, at + width, length)))
        return at + width + length

    return handler


def text_or_bytes(raw: bytes) -> str | bytes:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


def string(m: Machine, at: int) -> int:
    text, at = line(m, at)
    m.stack.append(text_or_bytes(escaped_string(text)))
    return at


def unicode(m: Machine, at: int) -> int:
    text, at = line(m, at)
    m.stack.append(raw_unicode(text))
    return at
