"""Which target a model is. Built-in ones are asked first, then those that installed packages announce."""

from __future__ import annotations

import importlib
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from io import IOBase
from typing import cast

from burnstore.errors import UsageError
from burnstore.targets.base import Target

ENTRY_POINTS = "burnstore.targets"

# Each module has a function `target_of(model)`, which gives None for what is not its own.
_BUILT_IN = ("burnstore.targets.torch_modules",)
_MAPPINGS = "burnstore.targets.mappings"


def find_target(model: object) -> Target | None:
    """The target for a model or for arrays, or None if nobody knows what it is."""
    holds_arrays = isinstance(model, (Mapping, list, tuple))
    if type(model) in (dict, OrderedDict, list, tuple):
        return _arrays(model)
    return _framework(model) or _plugin(model) or (_arrays(model) if holds_arrays else None)


def find_module(source: object) -> Target | None:
    """The target for a model of a framework where a source of tensors may be meant as well; None for anything else."""
    plain = type(source) in (dict, OrderedDict, list, tuple, str, bytes, bytearray, memoryview)
    if plain or isinstance(source, (str, bytes, os.PathLike, Iterator, IOBase, type)) or hasattr(type(source), "unlisted"):
        return None
    return _framework(source) or _plugin(source)


def _framework(model: object) -> Target | None:
    for module in _BUILT_IN:
        target = importlib.import_module(module).target_of(model)
        if target is not None:
            return cast(Target, target)
    return None


def _plugin(model: object) -> Target | None:
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        target = point.load()(model)
        if target is not None:
            return cast(Target, target)
    return None


def _arrays(model: object) -> Target:
    return cast(Target, importlib.import_module(_MAPPINGS).target_of(model))


def target_for(model: object) -> Target:
    """The target for a model; an error if nobody knows what it is."""
    target = find_target(model)
    if target is None:
        what = f"an object of type {type(model).__name__} is no model that burnstore knows"
        do = "give a torch.nn.Module, or a dict or list of arrays"
        if isinstance(model, type):
            what, do = f"{model.__name__} is a class, not a model", f"make one: {model.__name__}(...)"
        elif isinstance(model, (str, bytes, os.PathLike)):
            do = "the source comes first and the model second: load(path, model)"
        raise UsageError(what, do=do)
    return target
