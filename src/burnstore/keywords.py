"""The keywords of the verbs, and the options that they stand for."""

from __future__ import annotations

import inspect  # which `dataclasses` imports anyway
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast

from burnstore.limits import Limits
from burnstore.options import Options

if TYPE_CHECKING:
    from burnstore.formats.base import BurnVersion
    from burnstore.pipeline.adapt import Adapter
    from burnstore.pipeline.filter import PathFilter
    from burnstore.pipeline.remap import KeyRemapper
    from burnstore.sources.local import IO

    Criterion = str | PathFilter | Callable[[str, str], object]
    Criteria = Criterion | Iterable[Criterion]
    Rename = Mapping[str, str] | Iterable[tuple[str, str]] | KeyRemapper
    Progress = Callable[[int, int], object]


Verb = TypeVar("Verb", bound=Callable[..., Any])


class _ChoiceOptions(TypedDict, total=False):
    """How tensors are named and chosen, whichever way they go."""

    format: str | None
    limits: Limits | None
    only: Criteria | None
    skip: Criteria | None
    rename: Rename | None
    map_indices_contiguous: bool | None
    map_indices_contiguous_except: Iterable[str] | str
    dialect: str | None


class ListOptions(_ChoiceOptions, total=False):
    """How a source is opened, and how its tensors are named and chosen."""

    key: str | None
    io: IO | None


class LoadOptions(ListOptions, total=False):
    """The keywords of `load`, `plan` and `loaded`."""

    adapter: Adapter | None
    kinds: Mapping[str, str] | None
    skip_enum_variants: bool | None
    partial: bool | None
    validate: bool | None
    dtype: Literal["model", "file"] | None
    assign: bool | None
    threads: int | None
    progress: Progress | None


class SaveOptions(_ChoiceOptions, total=False):
    """The keywords of `save` and `convert`."""

    metadata: Mapping[str, str] | None
    skip_enum_variants: bool | None
    from_dialect: str | None
    to_dialect: str | None
    adapter: Adapter | None
    kinds: Mapping[str, str] | None
    like: Any
    dtype: str | None
    overwrite: bool
    fsync: bool
    shard_size: int | str | None
    for_burn: BurnVersion | None
    extra: Mapping[str, Any] | None


def takes(known: type) -> Callable[[Verb], Verb]:
    """Let a verb that takes the keywords of a TypedDict show them in `help()` and in editors, and refuse any other.

    >>> @takes(ListOptions)
    ... def look(source, **options):
    ...     return options
    >>> look("model.pt", only="^fc")
    {'only': '^fc'}
    """

    def shown(verb: Verb) -> Verb:
        @wraps(verb)
        def checked(*arguments: Any, **options: Any) -> Any:
            check_keywords(options, takes_all)
            return verb(*arguments, **options)

        signature = inspect.signature(verb)
        named = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        takes_all = [*(each.name for each in named), *known.__annotations__]
        keywords = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=getattr(kind, "__forward_arg__", kind)
            )
            for name, kind in known.__annotations__.items()
        ]
        checked.__signature__ = signature.replace(parameters=[*named, *keywords])  # type: ignore[attr-defined]
        return cast(Verb, checked)

    return shown


# What other libraries call a thing.
_ELSEWHERE = {
    "strict": "partial=True or validate=False",
    "map_location": "device=",
    "include": "only=",
    "exclude": "skip=",
    "frame": "framework=",
    "mmap": "assign=True, or io=",
    "allow_partial": "partial=",
    "zero_copy": "assign=",
}


def check_keywords(given: Iterable[str], known: Collection[str]) -> None:
    """Refuse a keyword that a verb does not have.

    >>> check_keywords(["key"], ["key", "only"])
    """
    for keyword in given:
        if keyword not in known:
            from burnstore.errors import UsageError
            from burnstore.suggest import closest

            said, meant = _ELSEWHERE.get(keyword), closest(keyword, known)
            do = f"use {said}" if said else f"did you mean {meant!r}?" if meant else f"known are {', '.join(known)}"
            raise UsageError(f"there is no keyword {keyword!r}", do=do)


def check_work(threads: object, progress: object) -> None:
    """Refuse what could only fail in the middle of the work.

    >>> check_work(2, None)
    """
    from burnstore.errors import UsageError

    if threads is not None and (type(threads) is not int or threads < 0):
        raise UsageError(f"threads={threads!r} is no number of threads", do="give a number, or leave it out")
    if progress is not None and not callable(progress):
        raise UsageError(f"progress={progress!r} cannot be called", do="give a function of (done, total)")


# What an option is called where the keyword has another name.
_OPTION = {"dialect": "from_dialect", "adapter": "from_adapter", "partial": "allow_partial", "assign": "zero_copy"}


def with_keywords(options: Options, given: Mapping[str, Any], adapter: str = "from_adapter") -> Options:
    """The options with what a caller said on top; None says nothing.

    >>> with_keywords(Options(), {"key": "model", "only": "^encoder", "partial": None}).filter
    PathFilter[regex: [Regex("^encoder")]]
    """
    changes: dict[str, Any] = {}
    for keyword, value in given.items():
        if value is None or keyword in ("only", "skip", "threads", "progress"):
            continue
        option = adapter if keyword == "adapter" else _OPTION.get(keyword, keyword)
        if (option == "key" and not isinstance(value, str)) or (option == "limits" and not isinstance(value, Limits)):
            from burnstore.errors import UsageError

            do = 'write key="state_dict"' if option == "key" else "write limits=burnstore.Limits(...)"
            raise UsageError(f"{option}={value!r} cannot be meant", do=do)
        if option == "rename":
            from burnstore.pipeline.remap import KeyRemapper

            value = KeyRemapper.of(options.rename).then(KeyRemapper.of(value))
        elif option in ("from_adapter", "to_adapter"):
            from burnstore.pipeline.adapt import checked_adapter

            value = checked_adapter(value)
        elif option == "map_indices_contiguous_except":
            value = (value,) if isinstance(value, str) else tuple(value)
            if not value:
                continue
            changes["map_indices_contiguous"] = True
        elif option == "kinds":
            from burnstore.pipeline.layers import Kinds

            Kinds.of(value)
        elif option in ("from_dialect", "to_dialect"):
            from burnstore.pipeline.layers import checked_dialect

            checked_dialect(value, keyword)
        changes[option] = value
    if given.get("only") is not None or given.get("skip") is not None:
        from burnstore.pipeline.filter import PathFilter

        said = PathFilter.of(given.get("only"), given.get("skip"))
        changes["filter"] = said if options.filter is None or said is None else options.filter & said
    return replace(options, **changes) if changes else options
