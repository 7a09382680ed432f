"""Matching in time linear in the text, for patterns that Python's `re` could try for ever.

The pattern's tree becomes a program in the way of Rust's `regex` crate (Thompson's construction), so that the match found, its
groups and its repeats over nothing are Rust's. Two machines run it:

- a table of states built while it is used (a lazy DFA) tells in one pass whether there is a match at all,
- a backtracker that never takes the same step at the same place twice tells where the match and its groups are.

Both cost at most the size of the program times the length of the text, whatever the pattern is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from burnstore.errors import LimitError
from burnstore.patterns.ambiguity import can_be_empty, starts_at_start
from burnstore.patterns.spelling import is_word, leaf_text
from burnstore.patterns.tree import Alternate, Concat, Group, Leaf, Look, Node, Repeat

# Where a match begins and ends, and each group in it: -1 for one that took no part.
Spans = list[int]

_CHAR, _SPLIT, _SAVE, _LOOK, _MATCH = range(5)
_MOST_STEPS = 1 << 26  # of one text: some seconds at worst, and the backtracker's memory
_MOST_MOVES = 20_000  # the table starts anew beyond


class _Accepts(dict[str, bool]):
    """Which characters a leaf takes, asked of `re` once for each."""

    def __init__(self, leaf: Leaf) -> None:
        self._leaf = leaf

    def __missing__(self, c: str) -> bool:
        found = self[c] = re.fullmatch(leaf_text(self._leaf, wide=not c.isascii()), c) is not None
        if len(self) > _MOST_MOVES:
            self.clear()
        return found


# Whether a place is what it should be, told from the characters on both sides; "" where the text ends.
_Place = Callable[[str, str], bool]


def _place(look: Look) -> _Place:
    def word(c: str) -> bool:
        return is_word(c, look.ascii)

    places: dict[str, _Place] = {
        "start": lambda a, _: not a,
        "end": lambda _, b: not b,
        "line_start": lambda a, _: a in ("", "\n"),
        "line_end": lambda _, b: b in ("", "\n"),
        "crlf_start": lambda a, b: a in ("", "\n") or (a == "\r" and b != "\n"),
        "crlf_end": lambda a, b: b in ("", "\r") or (b == "\n" and a != "\r"),
        "word": lambda a, b: word(a) != word(b),
        "not_word": lambda a, b: word(a) == word(b),
        "word_start": lambda a, b: not word(a) and word(b),
        "word_end": lambda a, b: word(a) and not word(b),
        "word_start_half": lambda a, _: not word(a),
        "word_end_half": lambda _, b: not word(b),
    }
    return places[look.kind]


def _side(c: str) -> str:
    """One character for all that look the same from the place behind them."""
    return c if c in ("", "\n", "\r") else "a" if is_word(c, ascii=True) else "é" if is_word(c) else " "


class Automaton:
    """A pattern's program, built from its end to its start.

    >>> from burnstore.patterns.syntax import parse
    >>> machine = Automaton(parse("(a+)+$").root, groups=1)
    >>> machine.matches("a" * 5000 + "b"), machine.search("baa").find(0)
    (False, [1, 3, 1, 3])
    """

    def __init__(self, root: Node, groups: int) -> None:
        # Each step is its kind and two operands: a set or two next steps or a slot, and the next step.
        self.chars: dict[int, tuple[_Accepts, int]] = {}
        self.splits: dict[int, tuple[int, int]] = {}
        self.saves: dict[int, tuple[int, int]] = {}
        self.places: dict[int, tuple[_Place, int]] = {}
        self.kinds: list[int] = [_MATCH]
        self._sets: dict[Leaf, _Accepts] = {}
        self.slots = 2 * (groups + 1)
        self.anchored = starts_at_start(root)
        self.start = self._build(root, 0)
        self._table = _Table(self)

    def matches(self, text: str) -> bool:
        """Whether there is a match anywhere."""
        self.steps(text)
        return self._table.matches(text)

    def search(self, text: str) -> Search:
        """A search for one match after the other."""
        return Search(self, text)

    def steps(self, text: str) -> int:
        """The most steps that a text can cost; a text that would cost too many is refused."""
        steps = len(self.kinds) * (len(text) + 1)
        if steps > _MOST_STEPS:
            what = f"a name of {len(text):,} characters is too long for a pattern that compiles to {len(self.kinds):,} steps"
            raise LimitError(what, do="use a pattern with fewer and smaller repeats")
        return steps

    # --- building

    def _add(self, kind: int) -> int:
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def _split(self, first: int, second: int, greedy: bool, at: int | None = None) -> int:
        at = self._add(_SPLIT) if at is None else at
        self.splits[at] = (first, second) if greedy else (second, first)
        return at

    def _save(self, slot: int, following: int) -> int:
        at = self._add(_SAVE)
        self.saves[at] = (slot, following)
        return at

    def _build(self, node: Node, following: int) -> int:
        """The first step of a node, after which that step follows."""
        match node:
            case Leaf():
                at = self._add(_CHAR)
                self.chars[at] = (self._sets.setdefault(node, _Accepts(node)), following)
                return at
            case Look():
                at = self._add(_LOOK)
                self.places[at] = (_place(node), following)
                return at
            case Group(body, index):
                return self._save(2 * index, self._build(body, self._save(2 * index + 1, following)))
            case Concat(parts):
                for part in reversed(parts):
                    following = self._build(part, following)
                return following
            case Alternate(branches):
                entry = self._build(branches[-1], following)
                for branch in reversed(branches[:-1]):
                    entry = self._split(self._build(branch, following), entry, greedy=True)
                return entry
            case Repeat():
                return self._repeat(node, following)

    def _repeat(self, node: Repeat, following: int) -> int:
        body, greedy = node.body, node.greedy
        entry, copies = following, node.least
        if node.most is None:
            loop = self._add(_SPLIT)
            entry = self._build(body, loop)
            self._split(entry, following, greedy, loop)
            if node.least == 0:
                # Over a body that can be empty, x* is (x+)?: else the order of the ways would not be right.
                entry = self._split(entry, following, greedy) if can_be_empty(body) else loop
            copies = node.least - 1
        else:
            for _ in range(node.most - node.least):
                entry = self._split(self._build(body, entry), following, greedy)
        for _ in range(copies):
            entry = self._build(body, entry)
        return entry


class Search:
    """One text and what has been tried on it; each search begins where the last match ended, or later."""

    def __init__(self, machine: Automaton, text: str) -> None:
        self._machine = machine
        self._text = text
        self._width = len(machine.kinds)
        # What was tried and led nowhere leads nowhere the next time either, except at the end of the last match.
        self._tried = bytearray(machine.steps(text))

    def find(self, begin: int) -> Spans | None:
        """The leftmost match at `begin` or later, of those the one that Rust prefers."""
        at = self._width * begin
        self._tried[at : at + self._width] = bytes(self._width)
        last = 0 if self._machine.anchored else len(self._text)
        for start in range(begin, last + 1):
            slots = self._try(start)
            if slots is not None:
                return slots
        return None

    def _try(self, start: int) -> Spans | None:
        machine, text, tried, width = self._machine, self._text, self._tried, self._width
        kinds, chars, splits, end = machine.kinds, machine.chars, machine.splits, len(text)
        slots = [-1] * machine.slots
        ways = [(machine.start, start)]
        while ways:
            step, at = ways.pop()
            if step < 0:  # back from a way that led nowhere: a slot gets its old value
                slots[~step] = at
                continue
            while not tried[width * at + step]:
                tried[width * at + step] = 1
                kind = kinds[step]
                if kind == _CHAR:
                    accepts, step = chars[step]
                    if at == end or not accepts[text[at]]:
                        break
                    at += 1
                elif kind == _SPLIT:
                    step, other = splits[step]
                    ways.append((other, at))
                elif kind == _SAVE:
                    slot, step = machine.saves[step]
                    ways.append((~slot, slots[slot]))
                    slots[slot] = at
                elif kind == _LOOK:
                    fits, step = machine.places[step]
                    if not fits(text[at - 1 : at] if at else "", text[at : at + 1]):
                        break
                else:
                    slots[0], slots[1] = start, at
                    return slots
        return None


class _State(dict[str, "_State | None"]):
    """A row of the table: for each next character the next state, None where the match is found; "" is the text's end."""

    def __init__(self, table: _Table, steps: frozenset[int], before: str) -> None:
        self._table = table
        self.steps = steps
        self.before = before

    def __missing__(self, c: str) -> _State | None:
        found = self[c] = self._table.move(self, c)
        return found


class _Table:
    def __init__(self, machine: Automaton) -> None:
        self._machine = machine
        self._sees_sides = bool(machine.places)
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._moves = 0

    def matches(self, text: str) -> bool:
        state = self._state(frozenset([self._machine.start]), "")
        for c in text:
            following = state[c]
            if following is None:
                return True
            state = following
        return state[""] is None

    def _state(self, steps: frozenset[int], before: str) -> _State:
        key = steps, _side(before) if self._sees_sides else " "
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(self, *key)
        return state

    def move(self, state: _State, c: str) -> _State | None:
        self._moves += 1
        if self._moves > _MOST_MOVES:
            self._moves = 0
            self._states = {}
        machine, reached = self._machine, set[int]()
        taken = set() if machine.anchored else {machine.start}
        steps = list(state.steps)
        while steps:
            step = steps.pop()
            if step in reached:
                continue
            reached.add(step)
            kind = machine.kinds[step]
            if kind == _CHAR:
                accepts, following = machine.chars[step]
                if c and accepts[c]:
                    taken.add(following)
            elif kind == _SPLIT:
                steps += machine.splits[step]
            elif kind == _SAVE:
                steps.append(machine.saves[step][1])
            elif kind == _LOOK:
                fits, following = machine.places[step]
                if fits(state.before, c):
                    steps.append(following)
            else:
                return None
        return self._state(frozenset(taken), c)
