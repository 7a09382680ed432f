"""The arguments of protocol 0: lines of text that spell numbers and texts."""

from __future__ import annotations

import re

from burnstore.formats.pytorch.pickle_machine import Machine, PickleEndedError, PickleFaultError

# Python's own limit on texts of numbers: reading a longer one takes time in the square of its length.
_MAX_DIGITS = 4300
_integer = re.compile(rb"[-+]?[0-9]{1,4300}")


def line(m: Machine, at: int) -> tuple[bytes, int]:
    """The text up to the next newline, and where the next opcode is."""
    end = m.data.find(b"\n", at)
    if end < 0:
        raise PickleEndedError
    return m.data[at:end], end + 1


def integer_text(text: bytes) -> int:
    """A decimal number.

    >>> integer_text(b"-12")
    -12
    """
    if not _integer.fullmatch(text):
        raise PickleFaultError("its number is too long" if len(text) > _MAX_DIGITS else "its argument is not a whole number")
    return int(text)


def long_value(text: bytes) -> int:
    """A decimal number that Python 2 ends with L."""
    return integer_text(text[:-1] if text.endswith(b"L") else text)


def escaped_string(text: bytes) -> bytes:
    """A quoted string of Python 2.

    >>> escaped_string(b"'a\\\\n'")
    b'a\\n'
    """
    if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in b"'\"":
        raise PickleFaultError("its text is not quoted")
    return _escape.sub(_unescaped, text[1:-1])


_escape = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.?)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v", b"\n": b""}


def _unescaped(match: re.Match[bytes]) -> bytes:
    what = match[1]
    if what[:1] == b"x" and len(what) == 3:
        return bytes.fromhex(what[1:].decode())
    if what[:1].isdigit() and what[:1] < b"8":
        return bytes([int(what, 8) & 255])
    if what in (b"", b"x"):
        raise PickleFaultError("its text has a broken escape")
    return _LETTERS.get(what) or (b"" if what == b"\n" else what if what in (b"\\", b"'", b'"') else b"\\" + what)


def raw_unicode(text: bytes) -> str:
    """A text whose other letters are spelled as in `\\u00fc`."""
    try:
        return str(text, "raw-unicode-escape")
    except UnicodeDecodeError:
        raise PickleFaultError("its text has a broken escape") from None
