"""New names for tensors, by rules: each replaces what a regular expression finds, and the next one sees the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from burnstore.errors import DuplicateNameError, UsageError
from burnstore.patterns.regex import Replacement, RustRegex, compile_rust


@dataclass(frozen=True, slots=True)
class Renamed:
    """What a set of rules makes of a set of names.

    >>> KeyRemapper().add_pattern("^model\\\\.", "").add_pattern("^x", "y").renamed(["model.a", "b"])
    Renamed(names={'model.a': 'a', 'b': 'b'}, unused=['^x'], warnings=[])
    """

    names: dict[str, str]
    """The new name of each name, in the order of the names."""
    unused: list[str]
    """The patterns that were found in no name."""
    warnings: list[str]
    """What is probably not meant, such as a group that a pattern does not have."""


class KeyRemapper:
    """Rules that rename tensors, in the order in which they were added; each replaces every match.

    `$1`, `${1}`, `$name` and `${name}` stand for groups of the pattern, as in Rust, and so do `\\1` and `\\g<name>`; `$$` is a
    dollar sign. Before a letter, a digit or `_` braces are needed: `${1}_x`.

    >>> KeyRemapper().add_pattern(r"^conv(\\d+)\\.", "layers.$1.").rename("conv3.weight")
    'layers.3.weight'
    """

    __slots__ = ("_rules",)

    def __init__(self) -> None:
        self._rules: list[tuple[RustRegex, Replacement]] = []

    @classmethod
    def from_patterns(cls, patterns: Mapping[str, str] | Iterable[tuple[str, str]]) -> KeyRemapper:
        """The rules of a mapping or of pairs: pattern and replacement.

        >>> KeyRemapper.from_patterns({"a": "b", "b": "c"}).rename("a.bias")
        'c.cics'
        """
        remapper = cls()
        for rule in patterns.items() if isinstance(patterns, Mapping) else _rules(patterns):
            if isinstance(rule, str) or not isinstance(rule, Iterable) or len(pair := tuple(rule)) != 2:
                raise UsageError(f"{rule!r} is no rule", do="give pairs of a pattern and its replacement, or a dict")
            remapper.add_pattern(*pair)
        return remapper

    @classmethod
    def of(cls, rename: KeyRemapper | Mapping[str, str] | Iterable[tuple[str, str]] | None) -> KeyRemapper:
        """The rules that a caller means; a remapper is copied.

        >>> KeyRemapper.of(None).rename("a")
        'a'
        """
        if isinstance(rename, KeyRemapper):
            return rename.copy()
        return cls() if rename is None else cls.from_patterns(rename)

    def add_pattern(self, pattern: str, replacement: str) -> KeyRemapper:
        """Add a rule after the others; the remapper itself is changed, and returned."""
        regex = compile_rust(pattern)
        self._rules.append((regex, Replacement(replacement, regex)))
        return self

    def then(self, other: KeyRemapper) -> KeyRemapper:
        """These rules and then the others, in a remapper of their own.

        >>> KeyRemapper().add_pattern("a", "b").then(KeyRemapper().add_pattern("b", "c")).rename("a")
        'c'
        """
        both = self.copy()
        both._rules += other._rules
        return both

    def copy(self) -> KeyRemapper:
        """The same rules in a remapper of their own."""
        other = KeyRemapper()
        other._rules = self._rules.copy()
        return other

    __copy__ = copy

    @property
    def patterns(self) -> list[tuple[str, str]]:
        """The rules as pairs of texts.

        >>> KeyRemapper().add_pattern("a", "b").patterns
        [('a', 'b')]
        """
        return [(regex.pattern, replacement.text) for regex, replacement in self._rules]

    @property
    def is_empty(self) -> bool:
        """Whether there are no rules."""
        return not self._rules

    def __eq__(self, other: object) -> bool:
        return self.patterns == other.patterns if isinstance(other, KeyRemapper) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # rules can be added

    def __reduce__(self) -> tuple[object, ...]:
        return KeyRemapper.from_patterns, (self.patterns,)

    def __repr__(self) -> str:
        return f"KeyRemapper({self.patterns!r})"

    def rename(self, name: str) -> str:
        """The new name of one tensor."""
        for regex, replacement in self._rules:
            name = regex.subn(replacement, name)[0]
        return name

    def remap(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Pairs of the new and the old name, as Burn gives them; whether two become one is not looked at.

        >>> KeyRemapper().add_pattern("^model\\\\.", "").remap(["model.a", "b"])
        [('a', 'model.a'), ('b', 'b')]
        """
        old = list(names)
        return list(zip(self._apply(old)[0], old, strict=True))

    def renamed(self, names: Iterable[str]) -> Renamed:
        """The new name of each tensor, and what there is to say of the rules; two that become one are an error.

        >>> KeyRemapper().add_pattern("[ab]", "c").renamed(["a.bias", "b.bias"])
        Traceback (most recent call last):
        burnstore.errors.DuplicateNameError: 'a.bias' and 'b.bias' both become 'c.cics'; change the rules, or skip one of them.
        """
        old = list(dict.fromkeys(names))
        new, used = self._apply(old)
        check_distinct(old, new, "change the rules, or skip one of them")
        warnings = [warning for _, replacement in self._rules for warning in replacement.warnings]
        if "" in new and (empty := old[new.index("")]):
            do = warnings[0] if warnings else "let them keep a part of it"
            raise UsageError(f"the rules leave nothing of the name {empty!r}", do=do)
        unused = [regex.pattern for (regex, _), hit in zip(self._rules, used, strict=True) if not hit and old]
        return Renamed(dict(zip(old, new, strict=True)), unused, warnings)

    def _apply(self, names: list[str]) -> tuple[list[str], list[bool]]:
        """All names after all rules, and whether each rule was found in any."""
        used = []
        for regex, replacement in self._rules:
            names, hit = regex.replace_in(replacement, names)
            used.append(hit)
        return names, used


def _rules(patterns: object) -> Iterable[object]:
    if isinstance(patterns, str | bytes) or not isinstance(patterns, Iterable):
        do = "give a dict or pairs of a pattern and its replacement"
        raise UsageError(f"rules for names cannot be {type(patterns).__name__}", do=do)
    return patterns


def check_distinct(old: list[str], new: list[str], do: str) -> None:
    """Refuse new names of which two are the same.

    >>> check_distinct(["a", "b"], ["x", "y"], "rename one")
    """
    if len(set(new)) == len(new):
        return
    first: dict[str, str] = {}
    for before, after in zip(old, new, strict=True):
        other = first.setdefault(after, before)
        if other != before:
            raise DuplicateNameError(f"{other!r} and {before!r} both become {after!r}", do=do)
