"""Objects of the standard library, NumPy and torch as plain values, from what their class was called with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from typing import Any

from burnstore.formats.pytorch.nodes import Global, Made

Args = list[Any]


def plain_object(made: Made, args: Args) -> object:
    """The plain form of a call whose arguments are plain already; NotImplemented for one that has none."""
    func = made.func
    if type(func) is not Global or made.keywords or made.items or made.appended:
        return NotImplemented
    known = _OBJECTS.get((func.module, func.name))
    if known is not None:
        try:
            return known(args)
        except (TypeError, ValueError, OverflowError, IndexError, ArithmeticError):
            return NotImplemented
    if func.module.startswith("numpy") or func.module in _PROGRAMS:
        return NotImplemented
    if len(args) == 1 and not made.states and isinstance(args[0], (str, int, float)) and func.name[:1].isupper():
        return args[0]  # a member of an enum is its class, called with its value
    if len(args) > 1 and not made.states and func.name[:1].isupper():
        return tuple(args)  # a namedtuple
    return NotImplemented


# Modules of Python whose names are functions: what they are called with is no value.
_PROGRAMS = frozenset({"builtins", "__builtin__", "os", "posix", "nt", "subprocess", "sys"})


_LONGEST_PATH = 4096


def _path(separator: str) -> Callable[[Args], object]:
    def convert(args: Args) -> object:
        texts = [part for part in args if isinstance(part, str)]
        if len(texts) != len(args) or sum(map(len, texts)) > _LONGEST_PATH:
            return NotImplemented
        if not texts:
            return "."
        first, rest = texts[0], separator.join(texts[1:])
        if not rest:
            return first
        return first + rest if first.endswith(separator) else first + separator + rest

    return convert


def _bytes_or_fields(kind: Any, size: int) -> Callable[[Args], object]:
    """The date and time classes: packed into bytes by pickle."""

    def convert(args: Args) -> object:
        raw = args[0]
        if isinstance(raw, str):
            raw = raw.encode("latin1")
        if not isinstance(raw, bytes) or len(raw) != size:
            return NotImplemented
        zone = args[1] if len(args) > 1 and isinstance(args[1], timezone) else None
        if kind is date:
            return date(int.from_bytes(raw[:2], "big"), raw[2], raw[3])
        if kind is time:
            return time(raw[0] & 0x7F, raw[1], raw[2], int.from_bytes(raw[3:], "big"), zone, fold=raw[0] >> 7)
        return datetime(
            int.from_bytes(raw[:2], "big"), raw[2] & 0x7F, raw[3], raw[4], raw[5], raw[6], int.from_bytes(raw[7:], "big"), zone,
            fold=raw[2] >> 7,
        )  # fmt: skip

    return convert


def _is_short(arg: object) -> bool:
    """A number whose digits are soon written."""
    return isinstance(arg, int) and arg.bit_length() <= 256


def _text(args: Args) -> object:
    return args[0] if isinstance(args[0], str) else NotImplemented


def _set(args: Args) -> object:
    items = args[0] if args else []
    if not isinstance(items, (list, tuple, set)):
        return NotImplemented
    cheap = all(not isinstance(item, (list, dict, set, bytearray, tuple)) for item in items)
    return set(items) if cheap else list(items)


def _sequence(kind: Any) -> Callable[[Args], object]:
    def convert(args: Args) -> object:
        return kind(args[0]) if args and isinstance(args[0], (list, tuple)) else kind() if not args else NotImplemented

    return convert


def _called(name: str) -> Callable[[Args], object]:
    def convert(args: Args) -> object:
        if not all(arg is None or _is_short(arg) for arg in args):
            return NotImplemented
        return f"{name}({', '.join(map(str, args))})"

    return convert


def _device(args: Args) -> object:
    kind, *index = args
    return f"{kind}:{index[0]}" if index and isinstance(index[0], int) else _text(args)


def _fraction(args: Args) -> object:
    if isinstance(args[0], str):
        return args[0]
    return f"{args[0]}/{args[1]}" if all(map(_is_short, args[:2])) else NotImplemented


def _bytearray(args: Args) -> object:
    if not args:
        return bytearray()
    raw = args[0].encode("latin1") if isinstance(args[0], str) and args[1:] == ["latin-1"] else args[0]
    return bytearray(raw) if isinstance(raw, (bytes, bytearray)) else NotImplemented


def _range(args: Args) -> object:
    start, stop, step = args
    return _called("range")([start, stop] if step == 1 else args)


_OBJECTS: dict[tuple[str, str], Callable[[Args], object]] = {
    **{
        (module, name): _path("\\" if "Windows" in name else "/")
        for module in ("pathlib", "pathlib._local")
        for name in ("Path", "PurePath", "PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath")
    },
    ("datetime", "datetime"): _bytes_or_fields(datetime, 10),
    ("datetime", "date"): _bytes_or_fields(date, 4),
    ("datetime", "time"): _bytes_or_fields(time, 6),
    ("datetime", "timedelta"): lambda args: timedelta(*args),
    ("datetime", "timezone"): lambda args: timezone(*args[:1]),
    ("decimal", "Decimal"): _text,
    ("fractions", "Fraction"): _fraction,
    ("torch", "Size"): _sequence(tuple),
    ("torch", "device"): _device,
    ("torch.serialization", "_get_layout"): _text,
    **{
        (module, name): convert
        for module in ("builtins", "__builtin__")
        for name, convert in (
            ("set", _set),
            ("frozenset", _set),
            ("list", _sequence(list)),
            ("tuple", _sequence(tuple)),
            ("complex", lambda args: complex(*args)),
            ("bytearray", _bytearray),
            ("range", _range),
            ("xrange", _range),
            ("slice", _called("slice")),
        )
    },
}
