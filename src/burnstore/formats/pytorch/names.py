"""From what a pickle holds to tensors by their dotted names.

Dicts, lists and objects are walked in the file's order; a module gives the names that its `state_dict()` would give. One
object may stand under many names, so the walk first weighs each node once: where no tensor is, it never goes, and names that
would outgrow the file are refused before they are made. What holds itself is not entered twice on one way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from burnstore.errors import DuplicateNameError, LimitError
from burnstore.formats.pytorch.nodes import Bag, Composite, Items, Made, OddKey, Storage, Tensor
from burnstore.formats.pytorch.numpy_arrays import PickledArray, array_of
from burnstore.formats.pytorch.rebuild import old_tensor

BARE = "tensor"
Leaf = Tensor | Composite | Storage | PickledArray
_LEAVES = (Tensor, Composite, Storage, PickledArray)
# A child and its key; no key where the child's names are its parent's, as with the dict of an object's attributes.
Edge = tuple[Any, object]


class _Transparent:
    """The key of a child that adds nothing to the names."""


_NONE = _Transparent()
# What a name costs beside its text.
_NAME_BYTES = 64


class Names:
    """One walk over one value."""

    def __init__(self, root: object, where: str, cap: int) -> None:
        self._where = where
        self._cap = cap
        # id → number of names, their length; the nodes are kept alive by the root.
        self._weights: dict[int, tuple[int, int]] = {}
        self._edges: dict[int, list[Edge]] = {}
        self._arrays: dict[int, object] = {}
        self._states: dict[int, _State] = {}
        self._root = self._node(root)

    def table(self) -> dict[str, Leaf]:
        """All tensors by name, in the file's order."""
        root = self._root
        if isinstance(root, _LEAVES):
            return {BARE if type(root) is not PickledArray else "": root}
        if (
            isinstance(root, dict)
            and all(type(leaf) is Tensor for leaf in root.values())
            and all(type(key) is str for key in root)
        ):
            return dict(root)
        count, length = self._weigh(root)
        self._most_steps = 4 * (count + length) + 1000
        if length + count * _NAME_BYTES > self._cap:
            raise LimitError(
                f"its tensors have {_about(count)} names with {_about(length)} letters, over the cap of {self._cap} bytes",
                where=self._where,
                do="pass limits=Limits(pytorch_names_bytes=...) if it is meant",
            )
        found: dict[str, Leaf] = {}
        for name, path, leaf in self._walk(root):
            if name in found:
                raise self._collision(name, path)
            found[name] = leaf
        return found

    def _collision(self, name: str, path: list[Any]) -> DuplicateNameError:
        first = next((list(other) for same, other, _ in self._walk(self._root) if same == name), path)
        return DuplicateNameError(
            f"two tensors flatten to the name {name[:200]!r}: one under {_path_text(first)}, one under {_path_text(path)}",
            where=self._where,
            do="open one of them: burnstore.open(path, key=...)",
        )

    def _node(self, value: Any) -> Any:
        """A value as the walk sees it: arrays of NumPy and tensors of old torch are tensors."""
        if type(value) is _State:  # objects may share their attributes: those are one node
            return self._states.setdefault(id(value.state), value)
        if type(value) is not Made:
            return value
        known = self._arrays.get(id(value))
        if known is None:
            known = self._arrays[id(value)] = array_of(value) or old_tensor(value) or value
        return known

    def _edges_of(self, node: Any) -> list[Edge]:
        edges = self._edges.get(id(node))
        if edges is None:
            argument = type(node) in (list, tuple)  # a storage in a tuple is a part of something else
            edges = [(key, self._node(child)) for key, child in _children(node)]
            edges = [edge for edge in edges if type(edge[1]) is not Storage or not (argument or edge[1].fault)]
            self._edges[id(node)] = edges
        return edges

    def _weigh(self, root: Any) -> tuple[int, int]:
        """How many names there are below a node and how long they are together, children before parents, each once."""
        weights = self._weights
        stack: list[tuple[Any, bool]] = [(root, False)]
        while stack:
            node, done = stack.pop()
            if done:
                weights[id(node)] = self._weight_of(node)
                continue
            if id(node) in weights:
                continue
            weights[id(node)] = (0, 0)  # while it is being weighed: a way back to it leads nowhere
            stack.append((node, True))
            for _, child in self._edges_of(node):
                if _is_container(child) and id(child) not in weights:
                    stack.append((child, False))
        return weights[id(root)] if not isinstance(root, _LEAVES) else (1, 0)

    def _weight_of(self, node: Any) -> tuple[int, int]:
        count = length = 0
        for key, child in self._edges_of(node):
            if isinstance(child, _LEAVES):
                below, letters = 1, 0
            elif _is_container(child):
                below, letters = self._weights[id(child)]
            else:
                continue
            count += below
            length += letters + (0 if key is _NONE else below * (_key_length(key) + 1))
        return count, length

    def _walk(self, root: Any) -> Iterator[tuple[str, list[Any], Leaf]]:
        path: list[Any] = []
        active = {id(root)}
        stack: list[tuple[Any, Iterator[Edge], bool, list[str]]] = [(root, iter(self._edges_of(root)), False, [])]
        steps = 0
        while stack:
            node, edges, named, prefix = stack[-1]
            for key, child in edges:
                leaf = isinstance(child, _LEAVES)
                if not leaf and (not _is_container(child) or not self._weights[id(child)][0] or id(child) in active):
                    continue
                steps += 1
                if steps > self._most_steps:
                    raise LimitError("its values hold themselves in too many ways", where=self._where)
                if key is not _NONE:
                    path.append(key)
                if leaf:
                    if not prefix:
                        prefix.append("".join(f"{key_text(part)}." for part in (path[:-1] if key is not _NONE else path)))
                    name = prefix[0] + key_text(key) if key is not _NONE else prefix[0][:-1]
                    yield name, path, cast(Leaf, child)
                    if key is not _NONE:
                        path.pop()
                    continue
                active.add(id(child))
                stack.append((child, iter(self._edges_of(child)), key is not _NONE, []))
                break
            else:
                stack.pop()
                active.discard(id(node))
                if named:
                    path.pop()


def _is_container(value: object) -> bool:
    kind = type(value)
    return kind in (dict, Items, list, tuple, Made, Bag, _State)


def _children(node: Any) -> Iterator[Edge]:
    kind = type(node)
    if kind is dict or kind is Items:
        yield from node.items()
    elif kind is list or kind is tuple:
        yield from enumerate(node)
    elif kind is Bag:
        yield from enumerate(node.items)
    elif kind is Made:
        yield from _object_children(node)
    elif kind is _State:
        yield from node.children()


class _State:
    """The attributes of an object; those of a module give what its `state_dict()` would."""

    __slots__ = ("state",)

    def __init__(self, state: dict[Any, Any]) -> None:
        self.state = state

    def children(self) -> Iterator[Edge]:
        groups = [self.state.get(name) for name in ("_parameters", "_buffers", "_modules")]
        if not all(isinstance(group, dict) for group in groups):
            yield from self.state.items()
            return
        parameters, buffers, modules = groups
        yield _NONE, parameters
        left_out = _texts_of(self.state.get("_non_persistent_buffers_set"))
        if left_out:
            yield from ((key, value) for key, value in buffers.items() if key not in left_out)  # type: ignore[union-attr]
        else:
            yield _NONE, buffers
        yield _NONE, modules


def _object_children(made: Made) -> Iterator[Edge]:
    states: list[Any] = []
    for state in made.states or ():
        states += state if type(state) is tuple and len(state) == 2 and all(_is_state(part) for part in state) else [state]
    for state in states:
        if isinstance(state, dict):
            yield _NONE, _State(state)
        elif state is not None:
            yield "state", state
    if made.items:
        yield _NONE, made.items
    if made.appended:
        yield _NONE, made.appended
    if made.args:
        yield ("args" if made.appended else _NONE), made.args
    if made.keywords:
        yield _NONE, made.keywords


def _is_state(part: object) -> bool:
    return part is None or isinstance(part, dict)


def _texts_of(value: object) -> frozenset[str]:
    """The texts in a set."""
    items: object = value.items if type(value) is Bag else value.args[0] if type(value) is Made and value.args else ()
    return frozenset(item for item in items if type(item) is str) if isinstance(items, (list, tuple)) else frozenset()


def key_text(key: Any) -> str:
    """A dict's key as a part of a name.

    >>> key_text("weight"), key_text(0), key_text(None)
    ('weight', '0', 'None')
    """
    if type(key) is str:
        return key
    if type(key) is bytes:
        return key.decode("utf-8", "backslashreplace")
    if type(key) is not OddKey:
        return str(key)
    value = key.value
    flat = (
        type(value) is tuple and len(value) <= 8 and all(item is None or type(item) in (str, int, float, bool) for item in value)
    )
    return repr(value) if flat and _key_length(key) < 1000 else f"<{type(value).__name__}>"


def _key_length(key: Any) -> int:
    if type(key) in (str, bytes):
        return len(key)
    if type(key) is OddKey and type(key.value) is tuple and len(key.value) <= 8:
        return 4 + sum(len(item) + 4 if type(item) is str else 24 for item in key.value)
    return 24


def _path_text(path: list[Any]) -> str:
    shown = [repr(key_text(key)[:60]) if type(key) is str else key_text(key)[:60] for key in path[-8:]]
    return "".join(f"[{part}]" for part in shown)


def _about(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"about 2**{number.bit_length() - 1}"
