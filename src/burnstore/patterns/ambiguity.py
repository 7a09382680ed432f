"""How long Python's `re` could take for a pattern, told from its tree.

`re` tries one way after the other. The number of ways grows with each repeat that could end at several places, that is, whose
next character could as well belong to what follows: `.*` before `=` is one, `\\d+` before `\\.` is not. Such a repeat within
another makes the number of ways exponential. What comes out is the length of the longest text that `re` may be given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from burnstore.errors import UsageError
from burnstore.patterns.spelling import leaf_text
from burnstore.patterns.tree import Alternate, Concat, Group, Leaf, Look, Node, Repeat

# The number of steps that one text may cost in the worst case: some milliseconds.
_STEPS = 1_000_000
_UNROLLED = 4  # a group repeated so often is looked at as if it were written so often
_ALL_ASCII = "".join(map(chr, range(128)))
# Rust refuses a pattern that compiles to more than 10 MiB. These are the sizes of its parts, in bytes, about.
_MOST_BYTES = 10 << 20
_BYTES = {"d": 3000, "D": 4000, "s": 400, "S": 800, "w": 16000, "W": 16000}

# Which ASCII characters, and whether any other: enough to tell that two sets are apart.
_Chars = tuple[frozenset[str], bool]
_NONE: _Chars = (frozenset(), False)


class _Exponential(Exception):  # noqa: N818
    """No power of the text's length bounds the number of ways."""


@dataclass(slots=True)
class _Cost:
    """The number of ways is at most `factor` times the length of the text to the power of `power`."""

    power: int = 0
    factor: int = 1
    runs: bool = False

    def times(self, other: _Cost) -> None:
        self.power += other.power
        self.factor *= other.factor
        self.runs |= other.runs


def longest_text(root: Node) -> int:
    """The longest text that is safe with `re`; -1 if none is.

    >>> from burnstore.patterns.syntax import parse
    >>> longest_text(parse("(a+)+$").root), longest_text(parse(r"^encoder\\..*").root)
    (-1, 1000000)
    """
    try:
        cost = _Walk().cost(root, _NONE, loop=False)
    except _Exponential:
        return -1
    # The ways are as many again from each place where a match can begin.
    power = cost.power + cost.runs + (not starts_at_start(root))
    if cost.factor > _STEPS:
        return -1
    return int((_STEPS / cost.factor) ** (1 / power) + 1e-9) if power else 1 << 40


def starts_at_start(node: Node) -> bool:
    """Whether a match can only be at the start of the text.

    >>> from burnstore.patterns.syntax import parse
    >>> starts_at_start(parse("^a|^b").root), starts_at_start(parse("^a|b").root)
    (True, False)
    """
    match node:
        case Look("start"):
            return True
        case Group(body):
            return starts_at_start(body)
        case Concat(parts):
            return bool(parts) and starts_at_start(parts[0])
        case Alternate(branches):
            return all(starts_at_start(branch) for branch in branches)
    return False


def can_be_empty(node: Node) -> bool:
    """Whether a node can match without taking a character.

    >>> from burnstore.patterns.syntax import parse
    >>> can_be_empty(parse("a*$").root), can_be_empty(parse("a+").root)
    (True, False)
    """
    match node:
        case Leaf():
            return False
        case Look():
            return True
        case Group(body):
            return can_be_empty(body)
        case Repeat(body, least):
            return least == 0 or can_be_empty(body)
        case Concat(parts):
            return all(can_be_empty(part) for part in parts)
        case Alternate(branches):
            return any(can_be_empty(branch) for branch in branches)


def check_size(root: Node, pattern: str) -> None:
    """Refuse a pattern that Rust would not compile for its size.

    >>> from burnstore.patterns.syntax import parse
    >>> check_size(parse("(a{1000}){1000}").root, "(a{1000}){1000}")
    Traceback (most recent call last):
    burnstore.errors.UsageError: regex '(a{1000}){1000}': the pattern is too large; repeat less: Rust refuses it too.
    """
    if _bytes(root) > _MOST_BYTES:
        raise UsageError("the pattern is too large", where=f"regex '{pattern}'", do="repeat less: Rust refuses it too")


def _bytes(node: Node) -> int:
    match node:
        case Leaf():
            wide = 800 if node.negated or node.fold or node.others else 0
            return wide + sum(_BYTES[item] if isinstance(item, str) else _range_bytes(*item) for item in node.items)
        case Look():
            return 24
        case Group(body):
            return 48 + _bytes(body)
        case Repeat(body, least, most):
            return 24 + (24 + _bytes(body)) * max(1, least, most or 0)
        case Concat(parts):
            return sum(map(_bytes, parts))
        case Alternate(branches):
            return 24 * len(branches) + sum(map(_bytes, branches))


def _range_bytes(first: str, last: str) -> int:
    return 8 if last.isascii() or first == last else 800


class _Walk:
    """One walk over a tree; what each node can begin with is kept, as it is asked for again and again."""

    def __init__(self) -> None:
        self._firsts: dict[int, _Chars] = {}

    def first(self, node: Node) -> _Chars:
        """The characters that a node can begin with, if it takes one."""
        known = self._firsts.get(id(node))
        if known is None:
            known = self._firsts[id(node)] = self._first(node)
        return known

    def _first(self, node: Node) -> _Chars:
        match node:
            case Leaf():
                return _chars(node)
            case Look():
                return _NONE
            case Group(body) | Repeat(body):
                return self.first(body)
            case Alternate(branches):
                return _union(*(self.first(branch) for branch in branches))
            case Concat(parts):
                found = _NONE
                for part in parts:
                    found = _union(found, self.first(part))
                    if not can_be_empty(part):
                        break
                return found

    def cost(self, node: Node, follow: _Chars, loop: bool) -> _Cost:
        """The cost of a node that may be followed by those characters, within a repeat without end or not."""
        match node:
            case Leaf() | Look():
                return _Cost()
            case Group(body):
                return self.cost(body, follow, loop)
            case Repeat():
                return self._repeat(node, follow, loop)
            case Alternate(branches):
                return self._alternate(branches, follow, loop)
            case Concat(parts):
                total = _Cost()
                for part in reversed(parts):
                    total.times(self.cost(part, follow, loop))
                    follow = _union(self.first(part), follow) if can_be_empty(part) else self.first(part)
                return total

    def _repeat(self, node: Repeat, follow: _Chars, loop: bool) -> _Cost:
        if node.most == 0:
            return _Cost()
        many = node.most is None or node.most > 1
        if many and can_be_empty(node.body):
            raise _Exponential  # and what the groups hold afterwards is not the same in Python and Rust
        begins = self.first(node.body)
        endless = node.most is None or node.most > _UNROLLED
        inner = self.cost(node.body, _union(begins, follow) if many else follow, loop or endless)
        count = 1 if endless else node.most or 1
        total = _Cost(inner.power * count, min(inner.factor**count, _STEPS + 1), inner.runs)
        if node.most == node.least:
            total.runs |= endless
            return total
        # Taking nothing once and not taking it at all are two ways as well.
        if _overlap(begins, follow) or can_be_empty(node.body):
            if loop:
                raise _Exponential
            ways = None if node.most is None else node.most - node.least + 1
            total.times(_Cost(power=1, runs=False) if ways is None else _Cost(factor=ways))
        else:
            total.runs |= endless
        return total

    def _alternate(self, branches: tuple[Node, ...], follow: _Chars, loop: bool) -> _Cost:
        total, begun, apart = _Cost(), _NONE, True
        for branch in branches:
            inner = self.cost(branch, follow, loop)
            total.power, total.factor = max(total.power, inner.power), max(total.factor, inner.factor)
            total.runs |= inner.runs
            begins = _union(self.first(branch), follow) if can_be_empty(branch) else self.first(branch)
            apart = apart and not _overlap(begun, begins)
            begun = _union(begun, begins)
        if not apart or sum(map(can_be_empty, branches)) > 1:
            if loop:
                raise _Exponential
            total.factor *= len(branches)
        return total


def _chars(leaf: Leaf) -> _Chars:
    known = frozenset(re.findall(leaf_text(leaf), _ALL_ASCII))
    named = any(isinstance(item, str) or not item[1].isascii() for item in leaf.items)
    return known, leaf.negated or leaf.fold or bool(leaf.others) or named


def _union(*sets: _Chars) -> _Chars:
    return frozenset().union(*(known for known, _ in sets)), any(beyond for _, beyond in sets)


def _overlap(a: _Chars, b: _Chars) -> bool:
    return not a[0].isdisjoint(b[0]) or (a[1] and b[1])
