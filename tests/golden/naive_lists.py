"""What becomes of the indices in a file's names when a model is there to be fitted: written again, plainly, to compare with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

Tree = dict[str, Any]


def align(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The names with the indices of each list moved where the model has its own.

    A list whose indices the model has too stays, and so does one that the model does not have. Another one is paired with the
    model's in order, and what is more than the model has counts on behind it.
    """
    mine, theirs = _tree(names), _tree(wanted)
    moved: dict[tuple[str, ...], tuple[str, ...]] = {}
    _walk(mine, theirs, (), (), moved)
    return [".".join(moved[tuple(name.split("."))]) for name in names]


def _tree(names: Sequence[str]) -> Tree:
    root: Tree = {}
    for name in names:
        node = root
        for segment in name.split("."):
            node = node.setdefault(segment, {})
    return root


def _walk(
    mine: Tree, theirs: Tree, old: tuple[str, ...], new: tuple[str, ...], moved: dict[tuple[str, ...], tuple[str, ...]]
) -> None:
    table = _table(mine, theirs)
    for segment, inside in mine.items():
        now = table.get(segment, segment)
        moved[*old, segment] = (*new, now)
        _walk(inside, theirs.get(now, {}), (*old, segment), (*new, now), moved)


def _table(mine: Tree, theirs: Tree) -> dict[str, str]:
    have = {segment: int(segment) for segment in mine if _is_index(segment)}
    want = {int(segment): segment for segment in theirs if _is_index(segment)}
    if not want or not have:
        return {}
    if set(have.values()) <= set(want):
        return {segment: want[index] for segment, index in have.items()}
    slots = [want[index] for index in sorted(want)]
    ranks = {index: rank for rank, index in enumerate(sorted(set(have.values())))}
    behind = max(want) + 1 - len(slots)
    return {segment: slots[ranks[i]] if ranks[i] < len(slots) else str(behind + ranks[i]) for segment, i in have.items()}


def _is_index(segment: str) -> bool:
    return bool(re.fullmatch(r"\+?[0-9]+", segment)) and int(segment) < 1 << 64
