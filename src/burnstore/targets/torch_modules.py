"""A PyTorch module as a target: its parameters and persistent buffers, under the names of its `state_dict()`."""

from __future__ import annotations

import copy
import sys
from collections.abc import Hashable, Sequence
from functools import lru_cache, partial
from typing import Any

from burnstore.errors import UsageError
from burnstore.pipeline.layers import KEEP, PYTORCH, kind_of
from burnstore.targets.torch_slots import TorchSlot, tell_autograd, unsupported

# Their weights are packed, and no parameters.
_PACKED = "packed"
_QUANTIZED = ("torch.ao.nn.quantized.", "torch.ao.nn.intrinsic.quantized.", "torch.nn.quantized.")


class TorchModule:
    """A module of torch."""

    dialect = PYTORCH
    replaces = False

    def __init__(self, model: Any) -> None:
        self.model = model
        self.name = type(model).__name__
        self.slots: list[TorchSlot] = []
        self.kinds: dict[str, str] = {}
        self.warnings: list[str] = []
        self._walk()

    def again(self) -> TorchModule:
        return TorchModule(self.model)

    def fresh(self) -> TorchModule:
        try:
            return TorchModule(copy.deepcopy(self.model))
        except Exception as error:
            raise UsageError(
                f"this model cannot be copied: {error}", where=self.name, do="load into it with burnstore.load"
            ) from error

    def written(self, slots: Sequence[Any]) -> None:
        tell_autograd([slot for slot in slots if not slot.tensor.is_meta])

    def _walk(self) -> None:
        """Every module once for each of its names; a module inside of itself would have names without end."""
        root = _plain(self.model)
        stack: list[tuple[str, Any, tuple[str, ...], frozenset[int]]] = [
            ("", root, (f"Struct:{type(root).__name__}",), frozenset())
        ]
        while stack:
            prefix, module, containers, around = stack.pop()
            cls: Any = type(module)
            kind = _kind(cls)
            if kind == _PACKED:
                raise UsageError(
                    f"a quantized {cls.__name__} keeps its weights in a form of its own",
                    where=f"{self.name}, module {prefix[:-1]!r}",
                    do="load into the model before it is quantized",
                )
            self.kinds[prefix[:-1]] = kind
            if _has_extra_state(cls):
                self.warnings.append(
                    f"the extra state of {prefix[:-1] or self.name!r} is no tensor: it is neither saved nor loaded"
                )
            if module._parameters:
                self._add(prefix, module._parameters, containers, kind)
            if module._buffers:
                skipped = module._non_persistent_buffers_set
                kept = {name: buffer for name, buffer in module._buffers.items() if name not in skipped}
                self._add(prefix, kept, containers, kind, of=module._buffers)
            if not module._modules:
                continue
            if id(module) in around:
                raise UsageError(
                    f"the module {prefix[:-1]!r} contains itself", where=self.name, do="take the reference out of its modules"
                )
            inside = around | {id(module)}
            alike: dict[type, tuple[str, ...]] = {}
            for name, child in reversed(module._modules.items()):
                if child is not None:
                    child = _plain(child)
                    of_class = alike.setdefault(type(child), (*containers, f"Struct:{type(child).__name__}"))
                    stack.append((f"{prefix}{name}.", child, of_class, inside))

    def _add(self, prefix: str, tensors: Any, containers: tuple[str, ...], kind: str, of: Any = None) -> None:
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            path = f"{prefix}{name}"
            why = unsupported(tensor)
            if why is not None:
                raise UsageError(why[0], where=f"{self.name}, tensor {path!r}", do=why[1])
            replace = partial((tensors if of is None else of).__setitem__, name)
            self.slots.append(TorchSlot(path, tensor, containers, replace, kind, PYTORCH))


def _plain(module: Any) -> Any:
    """What `torch.compile` wraps: its names are those of the module itself."""
    inner = module._modules.get("_orig_mod") if type(module).__name__ == "OptimizedModule" else None
    return module if inner is None else inner


@lru_cache(maxsize=1024)
def _has_extra_state(cls: Hashable) -> bool:
    return getattr(cls, "get_extra_state", None) is not sys.modules["torch"].nn.Module.get_extra_state


@lru_cache(maxsize=1024)
def _kind(cls: Any) -> str:
    """The kind of layer that a class is: what torch's own class among its ancestors is, whatever its name."""
    if cls.__module__.startswith(_QUANTIZED):
        return _PACKED
    for ancestor in cls.__mro__:
        kind = kind_of(ancestor.__name__) if ancestor.__module__.startswith("torch.") else None
        if kind is not None:
            return kind
    return KEEP


def target_of(model: object) -> TorchModule | None:
    """The target for a module of torch; None for anything else."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn") or not isinstance(model, torch.nn.Module):
        return None
    return TorchModule(model)
