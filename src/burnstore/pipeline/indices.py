"""List indices in names: closing the gaps that layers without tensors leave, for all lists or to fit a model.

PyTorch counts every layer of a `Sequential`, Burn's `Vec` has no gaps: `fc.0, fc.2, fc.4` there is `fc.0, fc.1, fc.2` here.
Names are read as paths in a tree of segments, and each segment is looked at once, however deep a name is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from burnstore.patterns.regex import compile_rust
from burnstore.pipeline.remap import check_distinct

_NUMBER = re.compile(r"\+?[0-9]+\Z")
_NUMBERS = re.compile(r"(?<![^.])\+?[0-9]+(?![^.])")
_SHARD = re.compile(r"(?:^|[-_.])([0-9]+)-of-([0-9]+)(?:\.|$)")
_CLASH = "two spellings of one index cannot both be kept; rename one of them first"


def index_of(segment: str) -> int | None:
    """The index that a segment stands for, as Rust reads numbers; None if it is none.

    >>> index_of("07"), index_of("+1"), index_of("-1"), index_of("18446744073709551616")
    (7, 1, None, None)
    """
    if not _NUMBER.match(segment):
        return None
    digits = segment.lstrip("+").lstrip("0")
    if len(digits) > 20:
        return None
    index = int(digits or "0")
    return index if index < 1 << 64 else None


class _Place(NamedTuple):
    """An index in a name: the list it belongs to, and where it stands."""

    list: int
    value: int
    begin: int
    end: int


class _Lists:
    """The lists in a set of names. An item of a list is a node, in which further lists begin; node 0 is the whole.

    A name is cut at its indices, and each piece is kept once, so that a name may be as deep as it likes.
    """

    def __init__(self) -> None:
        # A list by the node it is in and the text from there to its first index, an item by its list and its spelling. The
        # prefix of `.0` and that of `0` are one, the empty text, as in Burn 0.22, so an item is spelled with the dot before it.
        self.lists: dict[tuple[int, str], int] = {}
        self.items: dict[tuple[int, str], int] = {}

    def places(self, name: str) -> list[_Place]:
        """The indices in a name, from left to right."""
        found, node, at = [], 0, 0
        for number in _NUMBERS.finditer(name):
            begin, end = number.span()
            index = int(number[0]) if end - begin < 19 else index_of(number[0])
            if index is None:
                continue
            before = max(begin - 1, 0)
            list_ = self.lists.setdefault((node, name[at:before]), len(self.lists))
            node = self.items.setdefault((list_, name[before:end]), len(self.items) + 1)
            found.append(_Place(list_, index, begin, end))
            at = end
        return found

    def items_of_lists(self) -> dict[int, dict[str, int]]:
        """The items of each list, by spelling."""
        found: dict[int, dict[str, int]] = {}
        for (list_, spelling), node in self.items.items():
            found.setdefault(list_, {})[spelling] = node
        return found


def _put(name: str, places: list[_Place], new: Callable[[_Place], str | None]) -> str:
    """A name with other indices, where there are others."""
    parts, at = [], 0
    for place in places:
        index = new(place)
        if index is not None:
            parts += [name[at : place.begin], index]
            at = place.end
    return "".join([*parts, name[at:]]) if parts else name


def map_indices_contiguous(names: Iterable[str], *, keep: Iterable[str] = ()) -> dict[str, str]:
    """The new name of each name, with every list numbered 0, 1, 2 in the order of its indices.

    A list whose prefix, without the dot behind it, one of the patterns of `keep` is found in keeps its indices.

    >>> map_indices_contiguous(["fc.0.weight", "fc.2.weight", "fc.10.weight"])
    {'fc.0.weight': 'fc.0.weight', 'fc.2.weight': 'fc.1.weight', 'fc.10.weight': 'fc.2.weight'}
    >>> map_indices_contiguous(["fc.2.weight", "flows.2.weight"], keep=["^flows$"])
    {'fc.2.weight': 'fc.0.weight', 'flows.2.weight': 'flows.2.weight'}
    """
    kept = [compile_rust(pattern) for pattern in ([keep] if isinstance(keep, str) else keep)]
    old = list(dict.fromkeys(names))
    lists = _Lists()
    places = [lists.places(name) for name in old]
    found: dict[int, dict[int, str] | None] = {}
    for name, row in zip(old, places, strict=True):
        for place in row:
            if place.list not in found:
                prefix = name[: max(place.begin - 1, 0)] if kept else ""
                found[place.list] = None if any(regex.search(prefix) for regex in kept) else {}
            table = found[place.list]
            if table is not None:
                table[place.value] = ""
    ranks = {
        list_: {index: str(rank) for rank, index in enumerate(sorted(table))}
        for list_, table in found.items()
        if table is not None
    }

    def rank(place: _Place) -> str | None:
        table = ranks.get(place.list)
        return None if table is None else table[place.value]

    new = [_put(name, row, rank) for name, row in zip(old, places, strict=True)]
    check_distinct(old, new, _CLASH)
    return dict(zip(old, new, strict=True))


def aligned(names: Iterable[str], wanted: Iterable[str], *, counted: bool = False) -> dict[str, str]:
    """The new name of each name, with the indices of each list moved where a model has its own.

    A list whose indices the model has too stays as it is. Another one is paired with the model's list in order; what is more
    than the model has counts on behind it. A list that the model does not have stays as it is. With `counted` the indices are
    places in lists without gaps, as in files of Burn's, so that a part of a list finds its place too.

    >>> aligned(["fc.0.w", "fc.2.w", "flows.0.w", "flows.2.w"], ["fc.0.w", "fc.1.w", "flows.0.w", "flows.1.b", "flows.2.w"])
    {'fc.0.w': 'fc.0.w', 'fc.2.w': 'fc.1.w', 'flows.0.w': 'flows.0.w', 'flows.2.w': 'flows.2.w'}
    >>> aligned(["fc.1.w"], ["fc.0.w", "fc.2.w", "fc.4.w"], counted=True)
    {'fc.1.w': 'fc.2.w'}
    """
    old = list(dict.fromkeys(names))
    known = frozenset(wanted)
    if known.issuperset(old) and (not counted or len(known) == len(old)):
        return {name: name for name in old}
    mine, theirs = _Lists(), _Lists()
    places = [mine.places(name) for name in old]
    for name in known:
        theirs.places(name)
    moved = _pair(mine, theirs, counted)

    def move(place: _Place) -> str | None:
        table = moved.get(place.list)
        return None if table is None else table[place.value]

    new = [_put(name, row, move) for name, row in zip(old, places, strict=True)]
    check_distinct(old, new, _CLASH)
    return dict(zip(old, new, strict=True))


def _pair(mine: _Lists, theirs: _Lists, counted: bool) -> dict[int, dict[int, str]]:
    """For each list that the model has too, where its indices go. Outer lists come before those in their items."""
    moved: dict[int, dict[int, str]] = {}
    my_items, their_items = mine.items_of_lists(), theirs.items_of_lists()
    nodes = {0: 0}
    for (node, text), list_ in mine.lists.items():
        other = theirs.lists.get((nodes.get(node, -1), text))
        if other is None:
            continue
        items, others = my_items[list_], their_items[other]
        table = moved[list_] = _moved(items, others, counted)
        for spelling, item in items.items():
            digits = spelling.removeprefix(".")
            place = spelling[: len(spelling) - len(digits)] + table[_number(digits)]
            if place in others:
                nodes[item] = others[place]
    return moved


def _number(item: str) -> int:
    return int(item.lstrip(".+0") or "0")


def _moved(items: Iterable[str], others: Iterable[str], counted: bool) -> dict[int, str]:
    """Where the indices of one list go, given those of the model's."""
    have = sorted({_number(item) for item in items})
    spelled = {_number(other): other.removeprefix(".") for other in others}
    want = sorted(spelled)
    if counted and have[-1] < len(want):
        return {index: spelled[want[index]] for index in have}
    if spelled.keys() >= set(have):
        return {index: spelled[index] for index in have}
    beyond = want[-1] + 1 - len(want)
    return {index: spelled[want[rank]] if rank < len(want) else str(beyond + rank) for rank, index in enumerate(have)}


def is_shard(file_name: str) -> bool:
    """Whether a file is one of several that hold a model together: its lists have gaps that the others fill.

    >>> is_shard("model-00002-of-00005.safetensors"), is_shard("model.safetensors"), is_shard("model-00001-of-00001.safetensors")
    (True, False, False)
    """
    found = _SHARD.search(os.path.basename(file_name))
    return found is not None and int(found[2][:20]) > 1
