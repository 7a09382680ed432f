"""JSON as Rust's serde_json prints it, so that Burn's and our configurations are the same bytes.

Two spaces of indent, no line for an empty list or object, no escapes beyond those that JSON needs, floats as short as they
can be and always recognizable as floats, enum members by their names.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from burnstore.errors import ConfigError, FormatError
from burnstore.fields import tagged_fields

_MAX_DEPTH = 128  # as deep as serde_json reads


def to_json(value: object) -> str:
    """The JSON of plain values, dataclasses and enums.

    >>> print(to_json({"a": [1, 2.0], "b": {}}))
    {
      "a": [
        1,
        2.0
      ],
      "b": {}
    }
    """
    return "".join(_pieces(value, "", "\n"))


def _pieces(value: Any, path: str, line: str) -> Iterator[str]:
    if len(line) > 2 * _MAX_DEPTH:
        raise ConfigError("it is nested too deep, or contains itself", where=path[:60])
    if value is None or isinstance(value, bool):
        yield "null" if value is None else "true" if value else "false"
    elif isinstance(value, enum.Enum):
        yield _text(value.name, path)
    elif isinstance(value, str):
        yield _text(value, path)
    elif isinstance(value, int):
        yield str(int(value))
    elif isinstance(value, float):
        yield float_text(value, path)
    elif isinstance(value, os.PathLike):
        yield _text(os.fsdecode(value), path)
    elif dataclasses.is_dataclass(value):
        yield from _object(_fields(value), path, line)
    elif isinstance(value, Mapping):
        yield from _object(((_key(key, path), item) for key, item in value.items()), path, line)
    elif isinstance(value, (list, tuple, bytes, bytearray)):
        items = ((f"{path}.{index}", "", item) for index, item in enumerate(value))
        yield from _bracketed("[", "]", items, line)
    else:
        raise ConfigError(
            f"a {type(value).__name__} has no place in JSON",
            where=path or None,
            do="use numbers, text, booleans, None, lists, dicts, enums and other configs",
        )


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Names and values; where one of several classes may stand, its name goes with it, as with Rust's enums."""
    kind: Any = type(value)
    tagged = tagged_fields(kind)
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        yield field.name, {type(item).__name__: item} if field.name in tagged and dataclasses.is_dataclass(item) else item


def _object(items: Any, path: str, line: str) -> Iterator[str]:
    named = ((f"{path}.{name}" if path else name, f"{_text(name, path)}: ", item) for name, item in items)
    return _bracketed("{", "}", named, line)


def _bracketed(begin: str, end: str, items: Any, line: str) -> Iterator[str]:
    empty = True
    inner = line + "  "
    yield begin
    for path, name, item in items:
        yield inner if empty else "," + inner
        empty = False
        yield name
        yield from _pieces(item, path, inner)
    yield end if empty else line + end


def _key(key: object, path: str) -> str:
    if isinstance(key, enum.Enum):
        return key.name
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, (str, int)):
        return str(key)
    raise ConfigError(f"a {type(key).__name__} cannot be a key in JSON", where=path or None, do="use text or whole numbers")


def _text(text: str, path: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError("it is not valid Unicode", where=path or None, do="leave the broken character out") from None
    return json.dumps(text, ensure_ascii=False)


def float_text(value: float, path: str = "") -> str:
    """A float as Rust prints it in JSON: the shortest digits that mean it, with a point or an exponent.

    >>> [float_text(x) for x in (1.0, 0.1, 1e-5, 1e-7, 1e16, 1.5e300, -0.0)]
    ['1.0', '0.1', '0.00001', '1e-7', '1e16', '1.5e300', '-0.0']
    """
    if not math.isfinite(value):
        raise ConfigError(f"JSON has no {value}", where=path or None, do="use a finite number, or None")
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    digits, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = digits.partition(".")
    significant = (whole + fraction).lstrip("0")
    point = int(exponent or 0) + (len(whole) if whole != "0" else len(significant) - len(fraction))
    significant = significant.rstrip("0")
    if 0 < point <= 16:
        padded = significant.ljust(point, "0")
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    if -5 < point <= 0:
        return f"{sign}0.{'0' * -point}{significant}"
    rest = f".{significant[1:]}" if len(significant) > 1 else ""
    return f"{sign}{significant[0]}{rest}e{point - 1}"


def from_json(data: bytes, name: str = "") -> object:
    """The values of a JSON document; a key that stands twice in one object is refused."""
    try:
        return json.loads(data.decode(), object_pairs_hook=_object_maker(name), parse_constant=_no_constant)
    except ConfigError:
        raise
    except RecursionError:
        raise FormatError("it is nested too deep", where=name or None) from None
    except ValueError as error:
        raise FormatError(f"it is not JSON: {error}", where=name or None, do="get it again") from None


def _object_maker(name: str) -> Any:
    """What makes a dict of the pairs of an object."""

    def make(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [key for key, _ in pairs]
            twice = next(key for key in names if names.count(key) > 1)
            raise ConfigError(f"the key {twice!r} stands twice in one object", where=name or None, do="remove one of them")
        return made

    return make


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")
