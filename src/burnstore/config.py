"""Configurations: `Config`, Burn's base for them, and `read_config`, which takes one out of a PyTorch file."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform, overload

from burnstore.errors import ConfigError, UsageError, from_os_error
from burnstore.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from typing import BinaryIO

    from typing_extensions import Buffer

    from burnstore.store import Store

    Source = str | os.PathLike[str] | Buffer | BinaryIO | Store

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, field_specifiers=(dataclasses.field,))
class Config:
    """What a model was built with, as Burn keeps it: a dataclass that is saved as JSON.

    A child is a dataclass whose fields are given by keyword, in any order. For each field there is a `with_...`
    that gives a changed copy.

    >>> class NetConfig(Config):
    ...     d_model: int
    ...     dropout: float = 0.1
    ...     layers: list[int] = []
    >>> NetConfig(d_model=512).with_dropout(0.5)
    NetConfig(d_model=512, dropout=0.5, layers=[])
    >>> print(NetConfig(d_model=512))
    {
      "d_model": 512,
      "dropout": 0.1,
      "layers": []
    }
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__()
        for name in inspect.get_annotations(cls):
            default = cls.__dict__.get(name)
            if isinstance(default, (list, dict, set, Config)):  # each object gets one of its own
                setattr(cls, name, dataclasses.field(default_factory=partial(copy.deepcopy, default)))
        dataclasses.dataclass(kw_only=True, **options)(cls)
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            builder = f"with_{field.name}"
            if field.init and not hasattr(cls, builder):
                setattr(cls, builder, _builder(cls, field.name))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[[Any], Self]: ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, as Burn writes it; a file that exists is replaced, as Burn does."""
        from burnstore.json_text import to_json
        from burnstore.sources.atomic import AtomicFile

        text = to_json(self).encode()
        with AtomicFile(path, len(text), overwrite=True) as file:
            view = memoryview(text)
            while view:
                view = view[os.write(file.fd, view) :]
            file.commit()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read it from JSON. What is missing takes its default, what has no field is left out."""
        name = os.fsdecode(path)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise from_os_error(error, name) from None
        return cls.load_binary(data, name)

    @classmethod
    def load_binary(cls, data: bytes, name: str = "") -> Self:
        """Read it from the bytes of such a file."""
        from burnstore.json_text import from_json
        from burnstore.typed import convert

        made: Self = convert(from_json(data, name), cls, source=name)
        return made

    def __str__(self) -> str:
        """Its JSON, as Burn prints it."""
        from burnstore.json_text import to_json

        return to_json(self)


def _builder(cls: type, name: str) -> Callable[[Any, Any], Any]:
    def with_field(self: Any, value: Any) -> Any:
        return dataclasses.replace(self, **{name: value})

    with_field.__name__ = f"with_{name}"
    with_field.__qualname__ = f"{cls.__qualname__}.with_{name}"
    with_field.__doc__ = f"The same with another `{name}`."
    return with_field


@overload
def read_config(source: Source, type: type[T], key: str | None = None, *, limits: Limits = DEFAULT_LIMITS) -> T: ...
@overload
def read_config(source: Source, type: Any = None, key: str | None = None, *, limits: Limits = DEFAULT_LIMITS) -> Any: ...
def read_config(source: Source, type: Any = None, key: str | None = None, *, limits: Limits = DEFAULT_LIMITS) -> Any:
    """The values of a PyTorch file that are no tensors, as plain Python or as a `type` of yours.

    `key` is a key of the file's dict, or a path of keys with dots between them. `type` is a dataclass, attrs class, msgspec
    Struct, NamedTuple, TypedDict, pydantic model or `burnstore.Config`, or any annotation such as `dict[str, int]`.
    Ints are taken for floats and lists for tuples; values without a field are left out. No code from the file runs.

    >>> import burnstore as bs
    >>> data = bs.save({"w": [1.0]}, bytes, format="pytorch", extra={"config": {"n_head": 8}})
    >>> bs.read_config(data, key="config.n_head")
    8
    >>> bs.read_config(data, dict[str, str], "config")
    Traceback (most recent call last):
    burnstore.errors.ConfigError: ... config.n_head: expected str, found int 8.
    """
    from burnstore.options import Options
    from burnstore.store import Store

    if key is not None and not isinstance(key, str):
        raise UsageError(f"key={key!r} is not text", do='write key="hyper_parameters", or key="a.b" for a key inside')
    if isinstance(source, Store):  # the whole file, also where the store takes only what is under one key of it
        contents = source.contents
        return _typed(_values_of(contents.source or contents, contents.format, source.name, key, limits), type, key, source.name)
    from burnstore.formats.detect import detect
    from burnstore.formats.sharded import is_index
    from burnstore.verbs.opening import open_source

    opened = open_source(source, Options(limits=limits))
    if opened is None:
        raise UsageError("these are tensors in hand, not a file", do="give the path of a PyTorch file")
    try:
        if is_index(opened.name):
            raise ConfigError("this is an index of shards", where=opened.name, do="read_config takes one of its files")
        path = os.fsdecode(source) if isinstance(source, (str, os.PathLike)) else None
        values = _values_of(opened, detect(opened, path).name, opened.name, key, limits)
        return _typed(values, type, key, opened.name)
    finally:
        opened.close()


def _values_of(source: Any, format: str, name: str, key: str | None, limits: Limits) -> object:
    if format != "pytorch":
        raise ConfigError(
            f"a {format} file holds tensors and texts only",
            where=name,
            do="read its texts: burnstore.open(...).metadata",
        )
    from burnstore.formats.pytorch.values import plain_values

    return plain_values(source, key, limits)


def _typed(values: object, type: Any, key: str | None, name: str) -> Any:
    if type is None:
        return values
    from burnstore.typed import convert

    return convert(values, type, key or "", source=name)
