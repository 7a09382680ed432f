"""The fields of a class that describes a record: dataclass, attrs, msgspec Struct, NamedTuple or TypedDict.

attrs and msgspec are recognized by what their classes carry, so neither is imported.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from burnstore.errors import UsageError


@dataclass(frozen=True, slots=True)
class Field:
    """One field: the key in the values, the keyword of the class, its type, and whether it may be absent."""

    key: str
    keyword: str
    type: Any
    required: bool


@dataclass(frozen=True, slots=True)
class Record:
    """A class with fields, and how an object of it is made."""

    fields: tuple[Field, ...]
    make: Callable[[dict[str, Any]], Any]


def record_of(type: Any) -> Record | None:
    """What is known of a class with fields; None for all other types."""
    if not isinstance(type, builtins_type):
        return None
    finder = next((finder for claims, finder in _KINDS if claims(type)), None)
    if finder is None:
        return None
    make = type if finder is not _of_typed_dict else dict
    return Record(tuple(finder(type, _hints(type))), lambda values: make(**values))


@cache
def tagged_fields(type: Any) -> frozenset[str]:
    """The fields of a dataclass that hold one of several classes with fields: only a name can tell which."""
    try:
        hints = _hints(type)
    except UsageError:  # classes inside a function: they can be written, and reading them says what is wrong
        return frozenset()
    return frozenset(name for name, hint in hints.items() if len(alternatives(hint)) > 1)


def alternatives(type: Any) -> dict[str, Any]:
    """The classes with fields that a union allows, by their names."""
    if typing.get_origin(type) not in (typing.Union, types.UnionType):
        return {}
    return {choice.__name__: choice for choice in typing.get_args(type) if record_of(choice) is not None}


builtins_type = type


def _hints(type: Any) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(type)
    except (NameError, TypeError) as error:
        raise UsageError(
            f"the annotations of {type.__name__} cannot be resolved: {error}",
            do="define the classes that it names at the top of a module",
        ) from None


def _of_dataclass(type: Any, hints: Mapping[str, Any]) -> Iterator[Field]:
    for field in dataclasses.fields(type):
        if field.init:
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            yield Field(field.name, field.name, hints[field.name], required)


def _of_attrs(type: Any, hints: Mapping[str, Any]) -> Iterator[Field]:
    for field in type.__attrs_attrs__:
        if field.init:
            required = repr(field.default) == "NOTHING"
            keyword = getattr(field, "alias", None) or field.name.lstrip("_")
            yield Field(field.name, keyword, hints.get(field.name, Any), required)


def _of_struct(type: Any, hints: Mapping[str, Any]) -> Iterator[Field]:
    defaults = type.__struct_defaults__
    import msgspec

    least = len(type.__struct_fields__) - len(defaults)
    for index, (name, key) in enumerate(zip(type.__struct_fields__, type.__struct_encode_fields__, strict=True)):
        required = index < least or defaults[index - least] is msgspec.NODEFAULT
        yield Field(key, name, hints[name], required)


def _of_named_tuple(type: Any, hints: Mapping[str, Any]) -> Iterator[Field]:
    for name in type._fields:
        yield Field(name, name, hints.get(name, Any), name not in type._field_defaults)


def _of_typed_dict(type: Any, hints: Mapping[str, Any]) -> Iterator[Field]:
    marked = typing.get_type_hints(type, include_extras=True)  # where annotations are text, the class itself sees no marks
    for name, hint in hints.items():
        mark = typing.get_origin(marked[name])
        required = mark is typing.Required or (mark is not typing.NotRequired and name in type.__required_keys__)
        yield Field(name, name, hint, required)


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Mapping[str, Any]], Iterator[Field]]], ...] = (
    (dataclasses.is_dataclass, _of_dataclass),
    (lambda kind: hasattr(kind, "__attrs_attrs__"), _of_attrs),
    (lambda kind: hasattr(kind, "__struct_fields__"), _of_struct),
    (lambda kind: issubclass(kind, tuple) and hasattr(kind, "_fields"), _of_named_tuple),
    (typing.is_typeddict, _of_typed_dict),
)
