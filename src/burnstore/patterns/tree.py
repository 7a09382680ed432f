"""What a pattern of Rust's is made of."""

from __future__ import annotations

from dataclasses import dataclass

# A range of characters, or the letter of one of the classes \d \D \s \S \w \W.
Item = tuple[str, str] | str


@dataclass(frozen=True, slots=True)
class Leaf:
    """One character out of a set: the items and the other sets, all together, or what is outside of them."""

    items: tuple[Item, ...]
    negated: bool = False
    others: tuple[Leaf, ...] = ()
    fold: bool = False
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """A place between two characters, such as `start` or `word`."""

    kind: str
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    body: Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Group:
    body: Node
    index: int


@dataclass(frozen=True, slots=True)
class Concat:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternate:
    branches: tuple[Node, ...]


Node = Leaf | Look | Repeat | Group | Concat | Alternate


@dataclass(frozen=True, slots=True)
class Syntax:
    """A pattern as a tree, its number of groups, and the names of those that have one."""

    root: Node
    groups: int
    names: dict[str, int]


def inner_nodes(node: Node) -> tuple[Node, ...]:
    """The nodes right below a node.

    >>> len(inner_nodes(Concat((Look("start"), Look("end")))))
    2
    """
    match node:
        case Repeat(body) | Group(body):
            return (body,)
        case Concat(parts):
            return parts
        case Alternate(branches):
            return branches
        case Leaf():
            return node.others
    return ()
