"""Patterns and replacements with the meaning that they have in Rust's `regex` crate, on Python's `re`.

A pattern is read as Rust reads it (`syntax`), spelled for Python (`spelling`) and run by `re`, unless its shape and the
length of the text could keep `re` busy for ever (`ambiguity`): then the `automaton` runs it. Replacing follows Rust's
`replace_all`: no empty match right behind another match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from burnstore.errors import UsageError
from burnstore.patterns.ambiguity import can_be_empty, check_size, longest_text
from burnstore.patterns.automaton import Automaton, Spans
from burnstore.patterns.spelling import reads_alike, spell
from burnstore.patterns.syntax import parse
from burnstore.patterns.tree import Syntax

# $1, ${1}, $name, ${name} and $$ as in Rust; \1 and \g<name> as in Python, unless another backslash stands before.
_REFERENCE = re.compile(
    r"(?P<literal>\$\$|\\\\(?=[0-9]|g<))|\$(?:\{(?P<braced>[^}]*)\}|(?P<bare>\w+))|\\(?:(?P<number>[0-9]{1,2})|g<(?P<named>[^>]*)>)",
    re.ASCII,
)
_NUMBER = re.compile(r"\+?[0-9]{1,19}\Z", re.ASCII)


class Replacement:
    """A replacement for the matches of one pattern.

    >>> Replacement("$1_x", compile_rust("(a)")).warnings
    ["the replacement '$1_x' asks for a group '1_x', which the pattern '(a)' does not have: it is empty; write ${1}_x"]
    """

    __slots__ = ("pieces", "python", "text", "warnings")

    def __init__(self, text: str, regex: RustRegex) -> None:
        if not isinstance(text, str):
            raise UsageError(f"a replacement is text, not {type(text).__name__}", do="write $1 or ${name} for a group")
        self.text = text
        self.warnings: list[str] = []
        self.pieces: list[str | int] = []
        at = 0
        for found in _REFERENCE.finditer(text):
            self.pieces.append(text[at : found.start()])
            at = found.end()
            if found["literal"]:
                self.pieces.append(found["literal"][0])
                continue
            name = next(found[kind] for kind in ("braced", "bare", "number", "named") if found[kind] is not None)
            index = int(name) if _NUMBER.match(name) else regex.names.get(name, -1)
            if 0 <= index <= regex.groups:
                self.pieces.append(index)
            else:
                self.warnings.append(self._unknown(name, regex))
        self.pieces = [piece for piece in [*self.pieces, text[at:]] if piece != ""]
        # The same for `re.sub`.
        self.python = "".join(piece.replace("\\", "\\\\") if isinstance(piece, str) else f"\\g<{piece}>" for piece in self.pieces)

    def _unknown(self, name: str, regex: RustRegex) -> str:
        what = f"the replacement '{self.text}' asks for a group '{name}', which the pattern '{regex.pattern}' does not have"
        known = [group for group in regex.names if group and name.startswith(group)]
        known += [name[:end] for end in range(len(name), 0, -1) if _NUMBER.match(name[:end]) and int(name[:end]) <= regex.groups]
        if known:
            return f"{what}: it is empty; write ${{{known[0]}}}{name[len(known[0]) :]}"
        has = ", ".join(
            [*(f"${number}" for number in range(1, regex.groups + 1)), *(f"${{{group}}}" for group in regex.names)][:10]
        )
        return f"{what}: it is empty; the pattern has {has or 'no groups, make one with (...)'}"

    def for_re(self) -> str | Callable[[re.Match[str]], str]:
        """What `re.sub` takes: plain text, or a function, because templates with groups are expanded slowly."""
        pieces = self.pieces
        if not any(isinstance(piece, int) for piece in pieces):
            return self.python
        match pieces:
            case [str(before), int(group), str(after)]:
                return lambda found: f"{before}{found[group] or ''}{after}"
        return lambda found: "".join([piece if isinstance(piece, str) else found[piece] or "" for piece in pieces])

    def expand(self, text: str, spans: Spans) -> str:
        """The replacement of one match."""
        parts = []
        for piece in self.pieces:
            if isinstance(piece, str):
                parts.append(piece)
            elif spans[2 * piece] >= 0:
                parts.append(text[spans[2 * piece] : spans[2 * piece + 1]])
        return "".join(parts)


class RustRegex:
    """A pattern that means what it means in Rust; made by `compile_rust`.

    >>> regex = compile_rust(r"^conv(?<n>\\d+)\\.")
    >>> regex.search("conv12.weight"), regex.search("fc.weight")
    (True, False)
    >>> regex.replace_all("layers.${n}.", "conv12.weight")
    'layers.12.weight'
    """

    __slots__ = ("_alike", "_automaton", "_can_be_empty", "_longest", "_plain", "_root", "_wide", "groups", "names", "pattern")

    def __init__(self, pattern: str, syntax: Syntax) -> None:
        self.pattern = pattern
        self.groups = syntax.groups
        self.names = syntax.names
        self._root = syntax.root
        self._longest = longest_text(syntax.root)
        self._alike = reads_alike(syntax.root)
        self._can_be_empty = can_be_empty(syntax.root)
        self._plain: re.Pattern[str] = re.compile(spell(syntax.root) if self._longest >= 0 else "")
        self._wide: re.Pattern[str] | None = None
        self._automaton: Automaton | None = None

    def __repr__(self) -> str:
        return f"RustRegex({self.pattern!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RustRegex) and self.pattern == other.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def __reduce__(self) -> tuple[object, ...]:
        return compile_rust, (self.pattern,)

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in a text."""
        if len(text) <= self._longest and (self._alike or text.isascii()):
            return self._plain.search(text) is not None
        regex = self._python(text)
        return self._machine().matches(text) if regex is None else regex.search(text) is not None

    def replace_all(self, replacement: str | Replacement, text: str) -> str:
        """A text with every match replaced.

        >>> compile_rust(r"\\d*").replace_all("#", "a12b")
        '#a#b#'
        """
        return self.subn(replacement, text)[0]

    def subn(self, replacement: str | Replacement, text: str) -> tuple[str, int]:
        """A text with every match replaced, and the number of matches.

        >>> compile_rust("a").subn("b", "banana")
        ('bbnbnb', 3)
        """
        if not isinstance(replacement, Replacement):
            replacement = Replacement(replacement, self)
        if not self._can_be_empty:
            regex = self._python(text)
            if regex is not None:
                return regex.subn(replacement.python, text)
        parts, at, count = [], 0, 0
        for spans in self._matches(text):
            parts += [text[at : spans[0]], replacement.expand(text, spans)]
            at = spans[1]
            count += 1
        return ("".join([*parts, text[at:]]) if count else text), count

    def replace_in(self, replacement: Replacement, texts: list[str]) -> tuple[list[str], bool]:
        """All texts with every match replaced, and whether there was any.

        >>> regex = compile_rust("a")
        >>> regex.replace_in(Replacement("b", regex), ["a", "c"])
        (['b', 'c'], True)
        """
        plain = not self._can_be_empty and max(map(len, texts), default=0) <= self._longest
        if plain and (self._alike or "".join(texts).isascii()):
            subn, template = self._plain.subn, replacement.for_re()
            pairs = [subn(template, text) for text in texts]
        else:
            pairs = [self.subn(replacement, text) for text in texts]
        return [text for text, _ in pairs], any(count for _, count in pairs)

    def _python(self, text: str) -> re.Pattern[str] | None:
        """Python's pattern for a text, None if it could take for ever."""
        if len(text) > self._longest:
            return None
        if self._alike or text.isascii():
            return self._plain
        if self._wide is None:
            self._wide = re.compile(spell(self._root, wide=True))
        return self._wide

    def _machine(self) -> Automaton:
        if self._automaton is None:
            self._automaton = Automaton(self._root, self.groups)
        return self._automaton

    def _finder(self, text: str) -> Callable[[int], Spans | None] | None:
        """What finds the next match from a place on; None where there is no match at all."""
        regex = self._python(text)
        if regex is None:
            return self._machine().search(text).find if self._machine().matches(text) else None

        def find(at: int) -> Spans | None:
            match = regex.search(text, at)
            return [end for group in range(self.groups + 1) for end in match.span(group)] if match else None

        return find

    def _matches(self, text: str) -> Iterator[Spans]:
        find = self._finder(text)
        if find is None:
            return
        at, last = 0, -1
        while at <= len(text) and (spans := find(at)):
            if spans[0] == spans[1] == last:
                at += 1
                last = -1
                continue
            yield spans
            at = last = spans[1]


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> RustRegex:
    syntax = parse(pattern)
    check_size(syntax.root, pattern)
    try:
        return RustRegex(pattern, syntax)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        raise UsageError(f"the pattern is too much for Python: {error}", where=f"regex '{pattern}'", do="simplify it") from error


def compile_rust(pattern: str | re.Pattern[str] | RustRegex) -> RustRegex:
    """A pattern with Rust's meaning; what Rust refuses, and what cannot be translated, is refused with the right spelling.

    >>> compile_rust("a[[:digit:]]")
    Traceback (most recent call last):
    burnstore.errors.UsageError: regex 'a[[:digit:]]', character 3: [:digit:] is not supported; write [0-9] for [[:digit:]].
    """
    if isinstance(pattern, RustRegex):
        return pattern
    if isinstance(pattern, re.Pattern):
        pattern = _text_of(pattern)
    if not isinstance(pattern, str):
        raise UsageError(f"a regex is text, not {type(pattern).__name__}", do=r'write it as r"^encoder\."')
    return _compiled(pattern)


# The flags that Rust has too, and the one that is on there anyway. White space in the classes of (?x) means something else.
_FLAGS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.UNICODE: ""}


def _text_of(pattern: re.Pattern[str]) -> str:
    """The text of a compiled pattern of Python's, with its flags written into it."""
    letters = "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)
    if not isinstance(pattern.pattern, str) or pattern.flags & ~sum(_FLAGS):
        raise UsageError("this compiled regex has flags that cannot be translated", do="give its text")
    return f"(?{letters}){pattern.pattern}" if letters else pattern.pattern
