"""Of which kind layers are, told by something that is like the model: a live model, or a file of one.

A live model says it. A pickle of a whole model names its classes. A file in Burn's dialect shows it: a norm's tensors are
called gamma there, and a Linear's weight lies the other way round, which its shape tells unless it is square.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from burnstore.errors import UsageError
from burnstore.formats.base import Contents
from burnstore.formats.table import by_name
from burnstore.options import Options
from burnstore.pipeline.dialects import dialect_of
from burnstore.pipeline.layers import BURN, KEEP, PYTORCH, kind_of
from burnstore.verbs.opening import open_contents

if TYPE_CHECKING:
    from burnstore.dtypes import Shape


def kinds_like(like: Any, contents: Contents, dialect: str | None) -> Mapping[str, str]:
    """The kind of each layer by its path, as `like` tells it for these contents, which are in a dialect."""
    from burnstore.targets.table import find_module

    target = find_module(like)
    if target is not None and target.kinds:
        return target.kinds
    other: Contents = like.unlisted if hasattr(type(like), "unlisted") else open_contents(like, Options())
    layers = layers_of(other)
    if layers:
        return layers
    format = by_name(other.format).dialect if other.format != "memory" else None
    if dialect_of(format, other.metadata, other.names()) != BURN:
        raise UsageError(
            "it does not say of which kind its layers are",
            where="like=",
            do="give a model, a .bpk of it, or a pickle of the whole model; or say kinds={pattern: kind}",
        )
    shapes = {row[0]: row[2] for row in contents.rows()} if dialect == PYTORCH else {}
    return _compared({row[0]: row[2] for row in other.rows()}, shapes)


def layers_of(contents: Contents) -> Mapping[str, str]:
    """The kinds that a pickle of a whole model names."""
    classes: Mapping[str, str] = getattr(contents, "layers", {})
    return {path: kind_of(name) or KEEP for path, name in classes.items()}


def _compared(burn: Mapping[str, Shape], shapes: Mapping[str, Shape]) -> dict[str, str]:
    """What the names and shapes of a file of Burn's say about the layers of another file."""
    kinds: dict[str, str] = {}
    for name, shape in burn.items():
        layer, _, leaf = name.rpartition(".")
        if leaf == "gamma":
            kinds[layer] = "BatchNorm" if f"{layer}.running_mean" in burn else "LayerNorm"
        elif leaf == "alpha":
            kinds[layer] = "PRelu"
        elif leaf == "weight" and layer not in kinds:
            other = shapes.get(name)
            if len(shape) != 2:
                kinds[layer] = KEEP
            elif shape[0] != shape[1] and other is not None and other in (shape, shape[::-1]):
                kinds[layer] = KEEP if other == shape else "Linear"
    return kinds
