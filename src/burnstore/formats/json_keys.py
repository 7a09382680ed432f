"""What JSON parsers hide: that a key stands there twice. They keep the last value and say nothing.

Every key is followed by a colon, and outside strings there is no other colon. So a text that was parsed into fewer keys
than it has such colons has lost some. The text must have been parsed before: it is known to be JSON here.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from burnstore.errors import FormatError

# Possessive (`*+`): what has matched is not given back, so a hostile text costs neither time nor memory.
SPACE = rb"[ \t\r\n]*+"
STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_keys = re.compile(rb"(" + STRING + rb")" + SPACE + rb":", re.DOTALL)


def refuse_repeated_keys(json: bytes, keys: int, where: str, *, besides: Collection[str] = ()) -> None:
    """An error if `json` has more than the `keys` that its parser found; `besides` are words that every entry has."""
    if json.count(b":") == keys or not _more_outside_strings(json, b":", keys):
        return
    twice = _first_repeated(json, besides)
    which = repr(twice) if twice is not None else "a key"
    raise FormatError(f"{which} stands there twice", where=where, do="one of the two would be lost")


def refuse_negative(json: bytes, where: str) -> None:
    """An error for a number below zero, and for `-0`, which parsers take for 0."""
    if b"-" in json and b"-0" in json and _more_outside_strings(json, b"-", 0):
        raise FormatError("-0 is no size and no offset", where=where, do="the file is damaged")


def _more_outside_strings(json: bytes, mark: bytes, limit: int) -> bool:
    found = 0
    for match in re.finditer(STRING + rb"|" + mark, json, re.DOTALL):
        if match[0] == mark:
            found += 1
            if found > limit:
                return True
    return False


def _first_repeated(json: bytes, besides: Collection[str]) -> str | None:
    seen: set[str] = set()
    for match in _keys.finditer(json):
        key = msgspec.json.decode(match[1], type=str)
        if key in seen and key not in besides:
            return key
        seen.add(key)
    return None
