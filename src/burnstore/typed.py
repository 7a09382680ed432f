"""Plain values as the types that somebody wants: dataclasses and their relatives, lists, unions, enums.

Nothing is guessed: text stays text, a bool is no int, a float is no int. An int may stand for a float, a list for a tuple
and the other way round, and what a class does not name is left out. The first value that does not fit is the error, and
its path is in it.
"""

from __future__ import annotations

import collections.abc
import datetime
import enum
import os
import pathlib
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from burnstore.errors import BurnstoreError, ConfigError, UsageError
from burnstore.fields import Field, Record, alternatives, record_of

_LISTS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}
_DICTS = (dict, collections.OrderedDict, collections.abc.Mapping, collections.abc.MutableMapping)
_AS_THEY_ARE = (complex, datetime.datetime, datetime.date, datetime.time, datetime.timedelta)
_UNIONS = (typing.Union, types.UnionType)


def convert(value: object, type: Any, path: str = "", *, source: str = "") -> Any:
    """`value` as a `type`; `path` is where it lies, in dots, and `source` the file that it came from.

    >>> convert({"sizes": [1, 2]}, dict[str, tuple[int, ...]])
    {'sizes': (1, 2)}
    >>> convert({"n_head": "eight"}, dict[str, int], "hyper_parameters")
    Traceback (most recent call last):
    burnstore.errors.ConfigError: hyper_parameters.n_head: expected int, found str 'eight'.
    """
    try:
        return _Conversion(source).convert(value, type, path)
    except RecursionError:
        raise ConfigError("its values are nested too deep", where=source or None, do="pass a key further down") from None


class _Conversion:
    """One conversion: what errors call the file."""

    __slots__ = ("_records", "_source")

    def __init__(self, source: str) -> None:
        self._source = source
        self._records: dict[Any, Record | None] = {}

    def convert(self, value: Any, type: Any, path: str) -> Any:
        origin = typing.get_origin(type)
        if type in (Any, object) or isinstance(type, typing.TypeVar):
            return value
        if origin is typing.Annotated:
            return self.convert(value, typing.get_args(type)[0], path)
        if origin in _UNIONS:
            return self._union(value, type, path)
        if origin is typing.Literal:
            if any(value == choice and value.__class__ is choice.__class__ for choice in typing.get_args(type)):
                return value
            raise self._wrong(value, type, path)
        if hasattr(type, "__supertype__") or hasattr(type, "__value__"):  # NewType, and `type X = ...`
            return self.convert(value, getattr(type, "__supertype__", None) or type.__value__, path)
        if type is None or type is types.NoneType:
            return None if value is None else self._raise(value, types.NoneType, path)
        return self._class(value, origin or type, typing.get_args(type), type, path)

    def _class(self, value: Any, kind: Any, arguments: tuple[Any, ...], type: Any, path: str) -> Any:
        if kind in (int, float, bool, str):
            return self._scalar(value, kind, path)
        if kind is tuple:
            return self._tuple(value, arguments, type, path)
        if kind in _LISTS:
            inner = arguments[0] if arguments else Any
            items = self._items(value, type, path)
            return _LISTS[kind]([self.convert(item, inner, _join(path, index)) for index, item in enumerate(items)])
        if kind in _DICTS:
            return self._dict(value, arguments or (Any, Any), type, path)
        if kind not in self._records:
            self._records[kind] = record_of(kind)
        record = self._records[kind]
        if record is not None:
            return self._record(value, record, kind, path)
        if hasattr(kind, "model_validate"):
            return self._model(value, kind, path)
        return self._other(value, kind, path)

    def _scalar(self, value: Any, kind: Any, path: str) -> Any:
        found = value.__class__
        if found is kind:
            return value
        if kind is float and found is int:
            return float(value)
        raise self._wrong(value, kind, path)

    def _items(self, value: Any, type: Any, path: str) -> list[Any]:
        if isinstance(value, (list, tuple, set, frozenset)):
            return list(value)
        raise self._wrong(value, type, path)

    def _tuple(self, value: Any, arguments: tuple[Any, ...], type: Any, path: str) -> Any:
        items = self._items(value, type, path)
        if not arguments:
            return tuple(items)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            arguments = (arguments[0],) * len(items)
        if len(arguments) != len(items):
            raise self._wrong(value, type, path)
        pairs = zip(items, arguments, strict=True)
        return tuple(self.convert(item, inner, _join(path, index)) for index, (item, inner) in enumerate(pairs))

    def _dict(self, value: Any, arguments: tuple[Any, ...], type: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise self._wrong(value, type, path)
        key_type, inner = arguments
        return {self._key(key, key_type, path): self.convert(item, inner, _join(path, key)) for key, item in value.items()}

    def _key(self, key: Any, type: Any, path: str) -> Any:
        """JSON has text for keys: there an int is its digits."""
        if type is int and isinstance(key, str) and key.lstrip("-").isdecimal():
            return int(key)
        return self.convert(key, type, _join(path, key))

    def _record(self, value: Any, record: Record, kind: Any, path: str) -> Any:
        if value.__class__ is kind:
            return value
        if isinstance(value, tuple) and issubclass(kind, tuple):
            value = dict(zip((field.key for field in record.fields), value, strict=False))
        if not isinstance(value, Mapping):
            raise self._wrong(value, kind, path)
        made = {}
        for field in record.fields:
            if field.key in value:
                made[field.keyword] = self.convert(value[field.key], field.type, _join(path, field.key))
            elif field.required:
                raise self._missing(field, value, kind, path)
        try:
            return record.make(made)
        except BurnstoreError:
            raise
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{kind.__name__} refused it: {error}", where=self._where(path)) from error

    def _missing(self, field: Field, value: Mapping[Any, Any], kind: Any, path: str) -> ConfigError:
        from burnstore.suggest import closest

        meant = closest(field.key, [key for key in value if isinstance(key, str)])
        do = f"did you mean {meant!r}?" if meant else f"give the field of {kind.__name__} a default, or make it optional"
        return ConfigError(f"expected {type_name(field.type)}, found nothing", where=self._where(_join(path, field.key)), do=do)

    def _union(self, value: Any, type: Any, path: str) -> Any:
        choices = typing.get_args(type)
        if value is None and types.NoneType in choices:
            return None
        choices = tuple(choice for choice in choices if choice is not types.NoneType)
        if len(choices) == 1:
            try:
                return self.convert(value, choices[0], path)
            except ConfigError as error:
                raise self._wrong(value, type, path) if error.where == self._where(path) else error from None
        if value.__class__ in choices:
            return value
        records = alternatives(type)
        if len(records) > 1 and isinstance(value, Mapping):
            return self._alternative(value, records, type, path)
        for choice in choices:
            try:
                return self.convert(value, choice, path)
            except ConfigError:
                pass
        raise self._wrong(value, type, path)

    def _alternative(self, value: Any, records: Mapping[str, Any], type: Any, path: str) -> Any:
        """One of several classes: named as Rust names an enum's variant, or the only one that has all these fields."""
        if len(value) == 1:
            name, inner = next(iter(value.items()))
            if name in records:
                return self.convert(inner, records[name], _join(path, name))
        fitting = []
        for choice in records.values():
            known = record_of(choice)
            if known is not None and set(value) <= {field.key for field in known.fields}:
                try:
                    fitting.append(self.convert(value, choice, path))
                except ConfigError:
                    pass
        if len(fitting) == 1:
            return fitting[0]
        do = f"name the class: {{{next(iter(records))!r}: {{...}}}}"
        raise ConfigError(f"expected {type_name(type)}, and {len(fitting)} of them fit", where=self._where(path), do=do)

    def _model(self, value: Any, kind: Any, path: str) -> Any:
        """A pydantic model has rules of its own; its first complaint is ours."""
        try:
            return kind.model_validate(value)
        except ValueError as error:
            first = error.errors()[0]  # type: ignore[attr-defined]
            where = path
            for step in first["loc"]:
                where = _join(where, step)
            raise ConfigError(f"{first['msg']}, found {describe(first['input'])}", where=self._where(where)) from error

    def _other(self, value: Any, kind: Any, path: str) -> Any:
        if not isinstance(kind, builtins_type):
            raise UsageError(f"values cannot become a {kind!r}", where=self._where(path))
        if issubclass(kind, enum.Enum):
            for member in kind:
                if value == member.name or (value == member.value and value.__class__ is member.value.__class__):
                    return member
        elif isinstance(value, kind):
            return value
        elif kind in (bytes, bytearray) and isinstance(value, (bytes, bytearray)):
            return kind(value)
        elif issubclass(kind, (pathlib.PurePath, os.PathLike)) and isinstance(value, str):
            return kind(value) if issubclass(kind, pathlib.PurePath) else pathlib.Path(value)
        elif not issubclass(kind, (*_AS_THEY_ARE, bytes, bytearray, pathlib.PurePath, os.PathLike)):
            raise UsageError(
                f"values cannot become a {kind.__name__}",
                where=self._where(path),
                do="give a dataclass, an attrs class, a msgspec Struct, a TypedDict, a pydantic model or a burnstore.Config",
            )
        raise self._wrong(value, kind, path)

    def _raise(self, value: Any, type: Any, path: str) -> Any:
        raise self._wrong(value, type, path)

    def _wrong(self, value: Any, type: Any, path: str) -> ConfigError:
        return ConfigError(f"expected {type_name(type)}, found {describe(value)}", where=self._where(path))

    def _where(self, path: str) -> str | None:
        return ", ".join(part for part in (self._source, path) if part) or None


builtins_type = type


def _join(path: str, step: object) -> str:
    return f"{path}.{step}" if path else str(step)


def type_name(type: Any) -> str:
    """How a user writes a type.

    >>> type_name(dict[str, list[int]]), type_name(int | None), type_name(typing.Literal["a"])
    ('dict[str, list[int]]', 'int | None', "'a'")
    """
    origin = typing.get_origin(type)
    if origin in _UNIONS:
        return " | ".join(map(type_name, typing.get_args(type)))
    if origin is typing.Literal:
        return " | ".join(map(repr, typing.get_args(type)))
    if origin is not None and typing.get_args(type):
        return f"{getattr(origin, '__name__', origin)}[{', '.join(map(type_name, typing.get_args(type)))}]"
    if type is types.NoneType:
        return "None"
    if isinstance(type, builtins_type) and issubclass(type, enum.Enum):
        return f"{type.__name__} ({', '.join(member.name for member in type)})"
    return "..." if type is Ellipsis else getattr(type, "__name__", str(type))


def describe(value: object) -> str:
    """What a value is, shortly.

    >>> describe("eight"), describe(None), describe([1, 2]), describe({})
    ("str 'eight'", 'None', 'a list of 2', 'an empty dict')
    """
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, str, bytes)):
        text = repr(value)
        return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return f"a {type(value).__name__} of {len(value)}" if value else f"an empty {type(value).__name__}"
    return str(getattr(value, "class_name", None) or type(value).__name__)
