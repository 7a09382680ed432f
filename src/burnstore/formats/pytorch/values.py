"""The values of a PyTorch file that are no tensors, as plain Python: configs, hyper-parameters, epochs.

    dict, OrderedDict, defaultdict, Counter, Namespace, objects with nothing but attributes     dict
    list, tuple, set, torch.Size, namedtuple                                                    list, tuple, set
    enum members (their value), NumPy scalars, numbers, texts, bytes, datetimes                 themselves
    paths, UUIDs, decimals, torch.dtype, torch.device, classes, functions, ranges               text
    tensors, storages, arrays, and what only its own class knows                                left out of dicts, else `Opaque`

Every node is converted once, however often it is referred to; what would not end, or grow beyond `Limits.config_values` when
it is walked, is refused.
"""

from __future__ import annotations

from typing import Any

from burnstore.errors import FormatError, LimitError
from burnstore.formats.pytorch.contents import PytorchContents
from burnstore.formats.pytorch.keys import value_at
from burnstore.formats.pytorch.nodes import Bag, Composite, Global, Items, Made, OddKey, Storage, Tensor
from burnstore.formats.pytorch.numpy_arrays import array_of, encoded_text, latin1, scalar_of
from burnstore.formats.pytorch.plain_objects import plain_object
from burnstore.formats.pytorch.rebuild import old_tensor
from burnstore.limits import DEFAULT_LIMITS, Limits
from burnstore.sources.base import Source

_MAX_DEPTH = 500
_TEXT_UNIT = 64
# Calls with more are of nothing that has a plain form.
_MOST_ARGUMENTS = 64


class Opaque:
    """Something that has no plain form; its class is known."""

    __slots__ = ("class_name",)

    def __init__(self, class_name: str) -> None:
        self.class_name = class_name

    def __repr__(self) -> str:
        return f"<{self.class_name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and other.class_name == self.class_name

    def __hash__(self) -> int:
        return hash(self.class_name)


def plain_values(source: Source | PytorchContents, key: str | None = None, limits: Limits = DEFAULT_LIMITS) -> object:
    """What a file holds beside its tensors, or what it holds under `key`."""
    if isinstance(source, PytorchContents):
        root, name = source.root, source.opened.source.name
    else:
        from burnstore.formats.pytorch.reader import Opened

        root, name = Opened(source, limits).root, source.name
    if key is not None:
        root = value_at(root, key, name)
    return Plain(name, limits).convert(root)


class Plain:
    """One conversion: nodes to values, children before parents."""

    def __init__(self, where: str, limits: Limits) -> None:
        self._where, self._cap = where, limits.config_values
        # id of a node → its value, and how large it is when walked
        self._done: dict[int, tuple[object, int]] = {}
        self._open: set[int] = set()
        self._spent = 0
        # Long texts and numbers that a call was given already, by their ids.
        self._given: set[int] = set()
        # Bytes that are spelled as text, by the id of the text: many may share one.
        self._spelled: dict[int, bytes] = {}
        # What was made on the way is kept, so that no id is given twice.
        self._kept: list[object] = []

    def convert(self, root: object) -> object:
        """The plain form of a node."""
        stack: list[tuple[object, list[object] | None]] = [(root, None)]
        while stack:
            node, children = stack.pop()
            if children is not None:
                self._finish(node, children)
                continue
            if id(node) in self._done:
                continue
            if id(node) in self._open:
                raise FormatError("a value in it holds itself", where=self._where, do="it has no plain form")
            parts = _parts(node)
            if type(node) is Made and parts is not None:  # objects may share what they are made of
                self._spend(sum(len(part) for part in parts if isinstance(part, (dict, list, tuple))) + 1)
            if parts is None:
                text = encoded_text(node)
                self._done[id(node)] = _leaf(node) if text is None else self._bytes(text)
                self._kept.append(node)
                continue
            self._open.add(id(node))
            if len(self._open) > _MAX_DEPTH:
                raise LimitError(
                    f"its values are nested more than {_MAX_DEPTH} deep", where=self._where, do="pass a key further down"
                )
            self._kept.append(parts)
            stack.append((node, parts))
            stack.extend((part, None) for part in reversed(parts) if id(part) not in self._done)
        return self._done[id(root)][0]

    def _spend(self, amount: int) -> None:
        self._spent += amount
        if self._spent > self._cap:
            raise self._too_many()

    def _too_many(self) -> LimitError:
        return LimitError(
            f"its values would be more than {self._cap} when each is shown as often as it is used",
            where=self._where,
            do="pass limits=Limits(config_values=...) if it is meant, or a key",
        )

    def _again(self, value: object) -> int:
        """What it costs that a long text or number, which a call may copy, is given to one call more."""
        size = len(value) if isinstance(value, (str, bytes, bytearray)) else value.bit_length() // 8 if type(value) is int else 0
        if size <= _TEXT_UNIT or id(value) in self._given:
            return size if size > _TEXT_UNIT else 0
        self._given.add(id(value))
        return 0

    def _bytes(self, text: str) -> tuple[object, int]:
        found = self._spelled.get(id(text))
        if found is None:
            found = self._spelled[id(text)] = latin1(text)
        return found, 1 + len(found) // _TEXT_UNIT

    def _finish(self, node: object, parts: list[object]) -> None:
        found = [self._done[id(part)] for part in parts]
        size = 1 + sum(part[1] for part in found)
        if type(node) is Made:
            self._spend(sum(self._again(part[0]) for part in found))
        if size > self._cap:
            raise self._too_many()
        self._open.discard(id(node))
        self._done[id(node)] = _assembled(node, [part[0] for part in found]), size


# A container's parts, in the order in which `_assembled` wants them; None for a leaf.
def _parts(node: Any) -> list[object] | None:
    kind = type(node)
    if kind is dict or kind is Items:
        odd = [key.value for key in node if type(key) is OddKey]
        return [*node.values(), *odd]
    if kind is list or kind is tuple:
        return list(node)
    if kind is Bag:
        return list(node.items)
    if kind is Made and len(node.args) <= _MOST_ARGUMENTS and not _is_leaf(node):
        attributes = _plain_attributes(node)
        return [attributes] if attributes is not None else [*node.args]
    return None


def _plain_attributes(made: Made) -> dict[Any, object] | None:
    """The attributes of an object that is nothing but them."""
    if made.items or made.appended or made.keywords:
        return None
    if made.args and not _is_reconstructed(made):
        return None
    return made.attributes() if made.states else None


def _is_reconstructed(made: Made) -> bool:
    """An object of protocols 0 and 1: `copyreg._reconstructor(class, object, None)`."""
    return type(made.func) is Global and made.func.name == "_reconstructor" and len(made.args) == 3


def _is_leaf(made: Made) -> bool:
    return (
        encoded_text(made) is not None
        or scalar_of(made) is not None
        or array_of(made) is not None
        or old_tensor(made) is not None
    )


def _leaf(node: Any) -> tuple[object, int]:
    kind = type(node)
    if kind in (str, bytes, bytearray):
        return node, 1 + len(node) // _TEXT_UNIT
    if kind is int:
        return node, 1 + node.bit_length() // 512
    if kind is Global:
        return _name_text(node), 1
    if kind is Tensor or kind is Composite:
        return Opaque("torch.Tensor"), 1
    if kind is Storage:
        return Opaque("torch.storage.UntypedStorage"), 1
    if kind is Made:
        scalar = scalar_of(node)
        if scalar is not None:
            return scalar, 1
        if len(node.args) > _MOST_ARGUMENTS:
            return Opaque(_class_name(node)), 1
        return Opaque("numpy.ndarray" if array_of(node) is not None else "torch.Tensor"), 1
    return node, 1


def _assembled(node: Any, parts: list[Any]) -> object:
    kind = type(node)
    if kind is dict or kind is Items:
        return _dict(node, parts)
    if kind is list:
        return parts
    if kind is tuple:
        return tuple(parts)
    if kind is Bag:
        return _set(parts)
    if _plain_attributes(node) is not None:
        return _uuid_text(parts[0]) if type(node.func) is Global and node.func.text == "uuid.UUID" else parts[0]
    made = plain_object(node, parts)
    return Opaque(_class_name(node)) if made is NotImplemented else made


def _dict(node: dict[Any, Any], parts: list[Any]) -> dict[Any, object]:
    odd = iter(parts[len(node) :])
    made: dict[Any, object] = {}
    for key, value in zip(node, parts, strict=False):
        if type(key) is OddKey:
            key = next(odd)
            if not _hashable(key):
                key = f"<{type(key).__name__}>"
        if not isinstance(value, Opaque):
            made[key] = value
    return made


def _name_text(name: Global) -> str:
    """A name as Python 3 writes it."""
    if name.module == "torch._utils" and name.name.startswith("torch."):
        return name.name
    if name.module == "__builtin__":
        return f"builtins.{'int' if name.name == 'long' else 'str' if name.name == 'unicode' else name.name}"
    return name.text


def _uuid_text(attributes: Any) -> object:
    number = attributes.get("int") if isinstance(attributes, dict) else None
    if type(number) is not int or not 0 <= number < 2**128:
        return attributes
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _set(items: list[Any]) -> object:
    return set(items) if all(_hashable(item) for item in items) else items


def _hashable(value: object) -> bool:
    """Whether hashing is cheap: a value that is no container, or a flat tuple of such."""
    if type(value) is tuple:
        return len(value) <= 64 and all(not isinstance(item, (tuple, list, dict, set, bytearray)) for item in value)
    return not isinstance(value, (list, dict, set, bytearray))


def _class_name(made: Made) -> str:
    func: Any = made.func
    if _is_reconstructed(made):
        func = made.args[0]
    return func.text if type(func) is Global else type(func).__name__
