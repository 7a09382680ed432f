"""Which tensors are meant: by regular expression, by full path, by a function of one's own.

The criteria of a filter are alternatives: a path that meets one of them passes. Filters are values, every method gives a new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from burnstore.errors import UsageError, one_line
from burnstore.patterns.regex import RustRegex, compile_rust

# Called with the path of a tensor and the types of the modules around it, joined by dots: `Net.Vec.Linear`.
Predicate = Callable[[str, str], object]


@dataclass(frozen=True, slots=True)
class _Not:
    filter: PathFilter

    def matches(self, path: str, container: str) -> bool:
        return not self.filter.matches(path, container)

    def parts(self) -> tuple[PathFilter, ...]:
        return (self.filter,)

    def __str__(self) -> str:
        return f"~{self.filter}"


@dataclass(frozen=True, slots=True)
class _Both:
    one: PathFilter
    other: PathFilter

    def matches(self, path: str, container: str) -> bool:
        return self.one.matches(path, container) and self.other.matches(path, container)

    def parts(self) -> tuple[PathFilter, ...]:
        return (self.one, self.other)

    def __str__(self) -> str:
        return f"({self.one} & {self.other})"


@dataclass(frozen=True, slots=True, repr=False)
class PathFilter:
    """A choice of tensors.

    >>> chosen = PathFilter().with_regex(r"^encoder\\.").with_full_path("head.bias")
    >>> chosen.matches("encoder.0.weight"), chosen.matches("head.bias"), chosen.matches("head.weight")
    (True, True, False)
    >>> chosen
    PathFilter[regex: [Regex("^encoder\\\\.")], paths: ["head.bias"]]
    >>> (chosen & ~PathFilter().with_regex("bias$")).matches("head.bias")
    False

    A filter without criteria matches nothing.
    """

    regexes: tuple[RustRegex, ...] = ()
    full_paths: tuple[str, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    everything: bool = False
    _terms: tuple[_Not | _Both, ...] = ()
    _paths: frozenset[str] = field(default=frozenset(), init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_paths", frozenset(self.full_paths))

    # --- making filters

    @classmethod
    def all(cls) -> PathFilter:
        """The filter that everything passes.

        >>> PathFilter.all()
        PathFilter::all()
        """
        return cls(everything=True)

    @classmethod
    def none(cls) -> PathFilter:
        """The filter that nothing passes.

        >>> PathFilter.none()
        PathFilter::none()
        """
        return cls()

    @classmethod
    def of(cls, only: object = None, skip: object = None) -> PathFilter | None:
        """The filter for what a caller says: a regex, a function, a filter, or several of them; None where nothing is said.

        What `skip` names is left out even if `only` names it. An empty list of things to skip skips nothing; an empty list for
        `only` is an error, as nothing would be left.

        >>> PathFilter.of(only=["^a", "^b"], skip="bias$").matches("a.weight")
        True
        >>> PathFilter.of() is None
        True
        """
        left_out = None if skip is None else _criteria(skip, "skip")
        if left_out is not None and left_out.is_empty:
            left_out = None
        if only is None:
            return None if left_out is None else ~left_out
        chosen = _criteria(only, "only")
        if chosen.is_empty and not isinstance(only, PathFilter):
            raise UsageError("only= names nothing, so nothing would be left", do="leave it out to take everything")
        return chosen if left_out is None else chosen & ~left_out

    def with_regex(self, pattern: str) -> PathFilter:
        """Also what a regular expression is found in, anywhere: write `^` and `$` where the ends are meant."""
        return replace(self, regexes=(*self.regexes, compile_rust(pattern)))

    def with_regexes(self, patterns: Iterable[str]) -> PathFilter:
        """Also what one of these regular expressions is found in."""
        several = _several(patterns, "with_regexes", "with_regex")
        return replace(self, regexes=(*self.regexes, *map(compile_rust, several)))

    def with_full_path(self, path: str) -> PathFilter:
        """Also the tensor of exactly this path."""
        return self.with_full_paths((path,))

    def with_full_paths(self, paths: Iterable[str]) -> PathFilter:
        """Also the tensors of exactly these paths."""
        several = _several(paths, "with_full_paths", "with_full_path")
        for path in several:
            if not isinstance(path, str):
                raise UsageError(f"a path is text, not {type(path).__name__}", do='write it as "encoder.0.weight"')
        return replace(self, full_paths=(*self.full_paths, *several))

    def with_predicate(self, predicate: Predicate) -> PathFilter:
        """Also what a function says yes to; it is called with the path and the container, such as `Net.Vec.Linear`.

        >>> PathFilter().with_predicate(lambda path, container: container.endswith("Linear")).matches("fc.bias", "Net.Linear")
        True
        """
        return self.with_predicates((predicate,))

    def with_predicates(self, predicates: Iterable[Predicate]) -> PathFilter:
        """Also what one of these functions says yes to."""
        several = (predicates,) if callable(predicates) else tuple(predicates)
        for predicate in several:
            if not callable(predicate):
                raise UsageError(f"{predicate!r} cannot be called", do="give a function of (path, container)")
        return replace(self, predicates=(*self.predicates, *several))

    def match_all(self) -> PathFilter:
        """Everything, whatever else is said."""
        return replace(self, everything=True)

    def or_(self, other: PathFilter) -> PathFilter:
        """What passes this filter or another one; the same as `|`."""
        if not isinstance(other, PathFilter):
            raise UsageError(f"{other!r} is not a PathFilter", do="make one with PathFilter().with_regex(...)")
        return PathFilter(
            self.regexes + other.regexes,
            self.full_paths + other.full_paths,
            self.predicates + other.predicates,
            self.everything or other.everything,
            self._terms + other._terms,
        )

    def __or__(self, other: PathFilter) -> PathFilter:
        return self.or_(other) if isinstance(other, PathFilter) else NotImplemented

    def __and__(self, other: PathFilter) -> PathFilter:
        if not isinstance(other, PathFilter):
            return NotImplemented
        if self.everything or other.is_empty:
            return other
        return self if other.everything or self.is_empty else PathFilter(_terms=(_Both(self, other),))

    def __invert__(self) -> PathFilter:
        if self.everything or self.is_empty:
            return PathFilter(everything=self.is_empty)
        if self.criteria_count() == 1 and self._terms and isinstance(self._terms[0], _Not):
            return self._terms[0].filter
        return PathFilter(_terms=(_Not(self),))

    # --- asking

    def matches(self, path: str, container: str = "") -> bool:
        """Whether a tensor passes.

        >>> PathFilter().with_regex("weight").matches("fc.weight")
        True
        """
        if self.everything or path in self._paths:
            return True
        for regex in self.regexes:
            if regex.search(path):
                return True
        for predicate in self.predicates:
            if _ask(predicate, path, container):
                return True
        return any(term.matches(path, container) for term in self._terms)

    @property
    def is_empty(self) -> bool:
        """Whether there is no criterion, so that nothing passes."""
        return not (self.everything or self.regexes or self.full_paths or self.predicates or self._terms)

    def criteria_count(self) -> int:
        """The number of criteria, as Burn counts them: 1 if everything passes.

        >>> PathFilter().with_regexes(["a", "b"]).with_full_path("c").criteria_count()
        3
        """
        if self.everything:
            return 1
        return len(self.regexes) + len(self.full_paths) + len(self.predicates) + len(self._terms)

    def unmatched(self, paths: Iterable[str]) -> list[str]:
        """The regular expressions and full paths, here and in the filters that this one is made of, that none of the paths meets.

        >>> PathFilter().with_regexes(["^a", "^x"]).with_full_path("y").unmatched(["a.weight"])
        ['^x', 'y']
        """
        known = paths if isinstance(paths, list | tuple | set | frozenset | dict) else list(paths)
        names = frozenset(known)
        found: dict[str, None] = {}
        waiting = [self]
        while waiting:
            one = waiting.pop()
            for regex in one.regexes:
                if not any(map(regex.search, known)):
                    found[regex.pattern] = None
            found.update((path, None) for path in one.full_paths if path not in names)
            waiting += [part for term in reversed(one._terms) for part in reversed(term.parts())]
        return list(found)

    def __repr__(self) -> str:
        if self.everything:
            return "PathFilter::all()"
        if self.is_empty:
            return "PathFilter::none()"
        if self._terms and self.criteria_count() == 1:
            return str(self._terms[0])
        parts = []
        if self.regexes:
            parts.append(f"regex: [{', '.join(f'Regex({_quoted(regex.pattern)})' for regex in self.regexes)}]")
        if self.full_paths:
            parts.append(f"paths: [{', '.join(map(_quoted, self.full_paths))}]")
        if self.predicates:
            parts.append(f"predicates: {len(self.predicates)}")
        if self._terms:
            parts.append(f"filters: [{', '.join(map(str, self._terms))}]")
        return f"PathFilter[{', '.join(parts)}]"


def _quoted(text: str) -> str:
    """A text as Rust's Debug shows it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{one_line(escaped)}"'


def _several(given: Iterable[Any], method: str, one: str) -> tuple[Any, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise UsageError(f"{method} takes several, and {given!r} is one", do=f"call {one}, or put it into a list")
    return tuple(given)


def _ask(predicate: Predicate, path: str, container: str) -> bool:
    try:
        return bool(predicate(path, container))
    except Exception as error:
        name = getattr(predicate, "__qualname__", None) or repr(predicate)
        reason = str(error) or "no reason given"
        what = f"the predicate {name} failed for {path!r} in {container!r}: {type(error).__name__}: {reason}"
        raise UsageError(what, do="a predicate takes (path, container) and says yes or no") from error


def _criteria(given: object, word: Literal["only", "skip"]) -> PathFilter:
    """One filter of everything that was given, at any depth of lists."""
    if isinstance(given, PathFilter):
        return given
    if isinstance(given, str | re.Pattern | RustRegex):
        return PathFilter(regexes=(compile_rust(given),))
    if callable(given):
        return PathFilter().with_predicate(given)
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        do = "give a regex, a function of (path, container), a PathFilter, or a list of them"
        raise UsageError(f"{word}= cannot be {type(given).__name__}", do=do)
    chosen = PathFilter()
    for one in given:
        if isinstance(one, list | tuple | set | frozenset):
            raise UsageError(f"{word}= cannot be a list of lists", do="give one list")
        chosen |= _criteria(one, word)
    return chosen
