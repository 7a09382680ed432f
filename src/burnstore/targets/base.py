"""The contract of a target: a live model seen as slots.

A slot is one place that wants a tensor. It knows its path, dtype and shape, and how to be filled: most have memory that
bytes can be read into, some only take values (`put`), and all of them can be given another array (`assign`). A target lists
its slots in the model's order; nothing else of a model is known here.

A target of your own is an object with these attributes and methods, made by a function `target_of(model) -> Target | None`
that is announced under the entry point group `burnstore.targets`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from burnstore.dtypes import DType, Shape

if TYPE_CHECKING:
    import numpy as np

    from burnstore.snapshot import TensorSnapshot


class Slot(Protocol):
    """One place in a model that wants a tensor."""

    @property
    def path(self) -> str:
        """Its dotted name in the model."""

    @property
    def containers(self) -> tuple[str, ...]:
        """The types of the modules around it, as Burn writes them: `("Struct:Net", "Struct:Linear")`."""

    @property
    def variants(self) -> tuple[int, ...]:
        """Which segments of the path are variants of an enum, counted from 0; only Burn's modules have such."""

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> Shape: ...

    @property
    def identity(self) -> object:
        """Equal for slots that are one and the same tensor: weights that are tied."""

    @property
    def param_id(self) -> int | None:
        """Burn's id of the parameter, if it has one."""

    def fault(self, assigned: bool) -> str | None:
        """Why it cannot be changed in place, or with `assigned` not be given another array; None if it can."""

    def address(self) -> int | None:
        """Where its bytes begin in the CPU's memory; None where they do not lie there in C order."""

    def array(self) -> np.ndarray[Any, Any] | None:
        """Its memory as an array of any strides; None where it is not the CPU's."""

    def put(self, snapshot: TensorSnapshot) -> None:
        """Take the values of a tensor of its own shape and dtype, where it has no memory of the CPU's."""

    def own(self, array: np.ndarray[Any, Any], dtype: DType) -> object:
        """An array of the caller's own as what `assign` takes, without a copy."""

    def view(self, snapshot: TensorSnapshot) -> object:
        """A tensor of a file as what `assign` takes, without a copy where that can be."""

    def assign(self, value: object) -> object:
        """Put another array in its place, and give what is there now; slots that are one tensor are given that very thing."""

    def set_param_id(self, param_id: int) -> None:
        """Remember Burn's id of the parameter, where the model can."""

    def snapshot(self) -> TensorSnapshot:
        """The tensor that is there now."""


def overlaps(shape: Shape, strides: Sequence[int]) -> bool:
    """Whether several elements may be one place in memory: strides in elements, whatever their order.

    >>> overlaps((2, 3), (3, 1)), overlaps((2, 3), (1, 2)), overlaps((2, 3), (0, 1)), overlaps((2, 2), (0, 5))
    (False, False, True, True)
    """
    if 0 in shape:
        return False
    reach = 1
    for stride, size in sorted((abs(stride), size) for size, stride in zip(shape, strides, strict=True) if size > 1):
        if stride < reach:
            return True
        reach += (size - 1) * stride
    return False


class Target(Protocol):
    """A live model."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def dialect(self) -> str | None:
        """Whose names and axes its layers have; None where it is only a mapping of arrays."""

    @property
    def slots(self) -> Sequence[Slot]:
        """All slots, in the model's order."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each layer by its path: a word of the dialect table, or "keep"."""

    @property
    def warnings(self) -> Sequence[str]:
        """What of the model is no tensor, and so neither saved nor loaded."""

    @property
    def replaces(self) -> bool:
        """Whether slots are given new arrays rather than changed: those of a model that must stay as it is."""

    @property
    def model(self) -> object:
        """The model, with what was written or assigned."""

    def again(self) -> Target:
        """The same model looked at anew, to see whether it is still as it was."""

    def fresh(self) -> Target:
        """A copy that may be changed while the model stays as it is."""

    def written(self, slots: Sequence[Slot]) -> None:
        """These slots' memory was changed, or they were given other arrays."""
