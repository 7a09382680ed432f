"""Dicts, nested dicts and lists of arrays as a target: the keys, joined by dots, are the paths.

An array in a dict is changed in place. What cannot be changed, such as an array of JAX, is given another array by
`assign=True`, or by `burnstore.loaded`, which leaves the dict as it is and gives a new one.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from functools import partial
from typing import Any

import numpy as np

from burnstore.arrays import held
from burnstore.dtypes import DType, Shape
from burnstore.errors import DuplicateNameError, UsageError
from burnstore.snapshot import TensorSnapshot
from burnstore.targets.base import overlaps
from burnstore.targets.torch_slots import TorchSlot, tell_autograd, unsupported

Replace = Callable[[Any], None]


class ArraySlot:
    """A NumPy array, or an array that NumPy can see."""

    __slots__ = ("_replace", "dtype", "path", "shape", "value")

    containers: tuple[str, ...] = ()
    variants: tuple[int, ...] = ()
    param_id: int | None = None

    def __init__(self, path: str, value: Any, replace: Replace | None) -> None:
        self.path = path
        self.value = value
        # How another array is put in its place; None where that cannot be.
        self._replace = replace
        self.dtype: DType
        self.shape: Shape
        self.dtype, self.shape, _ = held(value, path)

    @property
    def identity(self) -> object:
        value = self.value
        if type(value) is not np.ndarray or not value.size:
            return id(value)
        return value.__array_interface__["data"][0], value.shape, value.strides, value.dtype

    def set_param_id(self, param_id: int) -> None:
        """An array has no place for it."""

    def fault(self, assigned: bool) -> str | None:
        value = self.value
        if assigned:
            return "an item of a tuple cannot be replaced; use burnstore.loaded" if self._replace is None else None
        if not isinstance(value, np.ndarray):
            return f"a {type(value).__name__} cannot be changed in place; use burnstore.loaded, or pass assign=True"
        if not value.flags.writeable:
            return "it is read-only; use burnstore.loaded, or pass assign=True"
        if value.flags.c_contiguous or not overlaps(value.shape, [step // value.itemsize for step in value.strides]):
            return None
        return "several of its elements are one place in memory (it was broadcast)"

    def address(self) -> int | None:
        value = self.value
        if not isinstance(value, np.ndarray) or not value.flags.c_contiguous or value.shape != self.shape:
            return None
        if self.dtype.bits < 8 or not value.dtype.isnative:
            return None
        address: int = value.__array_interface__["data"][0]
        return address

    def array(self) -> np.ndarray[Any, Any] | None:
        return self.value if isinstance(self.value, np.ndarray) else None

    def put(self, snapshot: TensorSnapshot) -> None:
        np.copyto(self.value, snapshot.numpy())

    def own(self, array: np.ndarray[Any, Any], dtype: DType) -> object:
        return array

    def view(self, snapshot: TensorSnapshot) -> object:
        return snapshot.numpy()

    def assign(self, value: Any) -> object:
        if self._replace is not None:
            self._replace(value)
        self.value = value
        return value

    def snapshot(self) -> TensorSnapshot:
        return TensorSnapshot.from_data(self.path, self.value)


class Arrays:
    """A mapping or a list of arrays, however deep."""

    dialect: str | None = None
    kinds: Mapping[str, str] = {}

    def __init__(self, model: Any, restored: Callable[[Any], Any] | None = None) -> None:
        self._model = model
        # A copy's tuples are lists while they are being changed.
        self._restored = restored
        self.replaces = restored is not None
        self.name = f"<{type(model).__name__}>"
        self.slots: list[Any] = []
        paths: dict[str, None] = {}
        for path, value, replace in leaves(model, self.name):
            if value is None:
                continue
            if path in paths:
                raise DuplicateNameError(
                    f"two arrays have the path {path!r}", where=self.name, do="rename a key that holds a dot, or a number as text"
                )
            paths[path] = None
            self.slots.append(_slot(path, value, replace, self.name, self.replaces))

    @property
    def model(self) -> object:
        return self._model if self._restored is None else self._restored(self._model)

    @property
    def warnings(self) -> Sequence[str]:
        return ()

    def again(self) -> Arrays:
        return Arrays(self._model, self._restored)

    def fresh(self) -> Arrays:
        try:
            return Arrays(_copied(self._model), partial(_shaped, self._model))
        except RecursionError:
            raise UsageError(
                "it is nested too deep to be copied", where=self.name, do="load into it with burnstore.load"
            ) from None

    def written(self, slots: Sequence[Any]) -> None:
        tensors = [slot for slot in slots if isinstance(slot, TorchSlot) and not slot.tensor.is_meta]
        if tensors:
            tell_autograd(tensors)


def _slot(path: str, value: Any, replace: Replace | None, where: str, swaps: bool) -> Any:
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor") and isinstance(value, torch.Tensor):
        why = unsupported(value)
        if why is not None:
            raise UsageError(why[0], where=f"{where}, tensor {path!r}", do=why[1])
        return TorchSlot(path, value, (), replace, swaps=swaps)
    if not (hasattr(value, "dtype") and hasattr(value, "shape")) or isinstance(value, TensorSnapshot):
        raise UsageError(
            f"an object of type {type(value).__name__} is no array that could take a tensor",
            where=f"{where}, {path!r}",
            do="give arrays, such as numpy.empty(shape, dtype)",
        )
    return ArraySlot(path, value, replace)


def is_nest(value: object) -> bool:
    """Whether a value holds arrays rather than being one: a list of numbers is an array.

    >>> is_nest({}), is_nest([1.0, 2.0]), is_nest([np.zeros(1)])
    (True, False, True)
    """
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
        if isinstance(value, TensorSnapshot) or (hasattr(value, "dtype") and hasattr(value, "shape")):
            return True
    return isinstance(value, Mapping)


def leaves(model: Any, where: str, numbers: bool = False) -> Iterator[tuple[str, Any, Replace | None]]:
    """Every array with its path and the way to replace it, in order; with `numbers`, lists of numbers are arrays too."""
    stack: list[tuple[str, Any, Replace | None, frozenset[int]]] = [("", model, None, frozenset())]
    outermost = True
    while stack:
        path, value, replace, around = stack.pop()
        if not isinstance(value, (Mapping, list, tuple)) or (numbers and not outermost and not is_nest(value)):
            yield path, value, replace
            continue
        if id(value) in around:
            raise UsageError(f"{path!r} contains itself", where=where, do="take the reference out")
        items = list(value.items() if isinstance(value, Mapping) else enumerate(value))
        inside = around | {id(value)}
        prefix = "" if outermost else f"{path}."
        outermost = False
        for key, item in reversed(items):
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                raise UsageError(f"the key {key!r} is no name", where=where, do="use text, or numbers, as keys")
            changeable = isinstance(value, (MutableMapping, MutableSequence))
            stack.append((f"{prefix}{key}", item, partial(_replace, value, key) if changeable else None, inside))


def _replace(holder: Any, key: Any, value: Any) -> None:
    holder[key] = value


def _copied(value: Any) -> Any:
    """The same dicts and lists made anew, holding the same arrays; tuples become lists, which can be changed."""
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(item) for item in value]
    return value


def _shaped(like: Any, value: Any) -> Any:
    """A copy with the containers that the original has."""
    if isinstance(like, Mapping):
        items = {key: _shaped(item, value[key]) for key, item in like.items()}
        if type(like) is dict:
            return items
        if not isinstance(like, MutableMapping):
            return type(like)(items)  # type: ignore[call-arg]
        made = copy.copy(like)
        made.update(items)
        return made
    if isinstance(like, (list, tuple)):
        shaped = [_shaped(item, value[at]) for at, item in enumerate(like)]
        return type(like)(*shaped) if hasattr(like, "_fields") else type(like)(shaped)
    return value


def target_of(model: object) -> Arrays | None:
    """The target for a mapping or a list of arrays; None for anything else."""
    return Arrays(model) if isinstance(model, (Mapping, list, tuple)) else None
