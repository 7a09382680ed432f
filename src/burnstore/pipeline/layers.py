"""The dialect table: what each framework calls the tensors of a layer, and how their axes lie.

A dialect is a framework's habits. For each kind of layer, a tensor has in each dialect a name and an order of its axes; the
axes are words, so that two orders can be compared. A layer that is not in the table is the same everywhere.

                  pytorch               burn
    Linear        weight: out in        weight: in out
    BatchNorm     weight: c             gamma: c
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from burnstore.dtypes import Shape
from burnstore.errors import DialectError, UsageError

PYTORCH, BURN = "pytorch", "burn"
DIALECTS = (PYTORCH, BURN)
# Said of a dialect: the tensors as they lie. Said of a layer: it is the same in every dialect.
KEEP = "keep"

_NORM = {PYTORCH: ("weight: c", "bias: c"), BURN: ("gamma: c", "beta: c")}
_RUNNING = ("running_mean: c", "running_var: c")

# fmt: off
# kind → dialect → its tensors. The same place in two dialects is the same tensor; `...` stands for axes that are alike.
_TABLE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Linear":       {PYTORCH: ("weight: out in", "bias: out"),                BURN: ("weight: in out", "bias: out")},
    "BatchNorm":    {PYTORCH: (*_NORM[PYTORCH], *_RUNNING),                   BURN: (*_NORM[BURN], *_RUNNING)},
    "LayerNorm":    {PYTORCH: ("weight: ...", "bias: ..."),                   BURN: ("gamma: ...", "beta: ...")},
    "GroupNorm":    _NORM,
    "InstanceNorm": _NORM,
    "RmsNorm":      {PYTORCH: ("weight: ...",),                               BURN: ("gamma: ...",)},
    "PRelu":        {PYTORCH: ("weight: c",),                                 BURN: ("alpha: c",)},
    "Embedding":    {PYTORCH: ("weight: entry feature",),                     BURN: ("weight: entry feature",)},
    **{f"{conv}{n}d": dict.fromkeys(DIALECTS, ("weight: ...", "bias: c"))
       for conv in ("Conv", "ConvTranspose") for n in (1, 2, 3)},
}

# What a dialect calls a kind, where it does not use the table's own word.
_CLASSES = {
    PYTORCH: {
        "BatchNorm1d": "BatchNorm", "BatchNorm2d": "BatchNorm", "BatchNorm3d": "BatchNorm", "SyncBatchNorm": "BatchNorm",
        "InstanceNorm1d": "InstanceNorm", "InstanceNorm2d": "InstanceNorm", "InstanceNorm3d": "InstanceNorm",
        "RMSNorm": "RmsNorm", "PReLU": "PRelu", "EmbeddingBag": "Embedding", "NonDynamicallyQuantizableLinear": "Linear",
    },
    BURN: {"DeformConv2d": "Conv2d"},
}
# fmt: on

# Layers whose tensors are not one to one between the dialects.
_WOVEN = {
    PYTORCH: ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "MultiheadAttention", "Bilinear"),
    BURN: ("Lstm", "BiLstm", "Gru", "BiGru", "MultiHeadAttention", "CrossAttention"),
}


# Counters that training keeps, and that files of other dialects, or of older versions, do not have.
_OPTIONAL = {"num_batches_tracked": ("BatchNorm", "InstanceNorm")}


@dataclass(frozen=True, slots=True)
class Rule:
    """How one tensor of a layer goes from one dialect to another."""

    source: str
    target: str
    # What `transpose` wants to put the axes in order, or None where they lie alike.
    axes: tuple[int, ...] | None
    rank: int | None

    def fits(self, shape: Shape) -> bool:
        """Whether a tensor of this shape can be the one that is meant: a weight of four axes is no Linear's and no norm's."""
        return self.rank is None or len(shape) == self.rank


@cache
def rules(kind: str, source: str, target: str) -> Mapping[str, Rule]:
    """The rules of a kind of layer, by the tensor's name in the target's dialect.

    >>> rules("LayerNorm", "pytorch", "burn")["gamma"].source
    'weight'
    >>> rules("Linear", "pytorch", "burn")["weight"].axes
    (1, 0)
    """
    layer = _TABLE.get(kind)
    if layer is None or source == target:
        return {}
    made = {}
    for mine, theirs in zip(layer[source], layer[target], strict=True):
        old, _, before = mine.partition(": ")
        new, _, after = theirs.partition(": ")
        axes = None if before == after else tuple(before.split().index(axis) for axis in after.split())
        if old != new or axes:
            made[new] = Rule(old, new, axes, None if before == "..." else len(before.split()))
    return made


@cache
def rules_from(kind: str, source: str, target: str) -> Mapping[str, Rule]:
    """The same rules by the tensor's name in the source's dialect.

    >>> rules_from("LayerNorm", "pytorch", "burn")["weight"].target
    'gamma'
    """
    return {rule.source: rule for rule in rules(kind, source, target).values()}


@cache
def kind_of(class_name: str) -> str | None:
    """The kind of layer that a class of PyTorch's or Burn's is, or None for one that is the same in every dialect.

    >>> kind_of("BatchNorm2d"), kind_of("RmsNorm"), kind_of("Net")
    ('BatchNorm', 'RmsNorm', None)
    """
    if class_name in _TABLE:
        return class_name
    return next((classes[class_name] for classes in _CLASSES.values() if class_name in classes), None) or (
        class_name if is_woven(class_name) else None
    )


@cache
def is_woven(kind: str) -> bool:
    """Whether a layer's tensors are not one to one between the dialects."""
    return any(kind in names for names in _WOVEN.values())


def is_optional(kind: str | None, name: str) -> bool:
    """Whether a model can do without this tensor of a layer.

    >>> is_optional("BatchNorm", "num_batches_tracked"), is_optional("BatchNorm", "weight")
    (True, False)
    """
    return kind in _OPTIONAL.get(name, ())


def refuse_woven(kind: str, path: str, source: str, target: str) -> None:
    """Raise for a layer that no rule takes from one dialect to the other."""
    if is_woven(kind):
        raise DialectError(
            f"{source} and {target} lay out the tensors of {kind} differently, and no rule translates them",
            where=f"tensor {path!r}",
            do='leave the layer out with skip=, or pass dialect="keep" to take the tensors as they lie',
        )


def checked_dialect(name: str, option: str = "dialect") -> None:
    """Refuse a dialect that nobody knows.

    >>> checked_dialect("pytorch")
    """
    known = (*DIALECTS, KEEP)
    if name not in known:
        raise UsageError(f"{option}={name!r} is not known", do=f"known are {', '.join(known)}")


def checked_known(dialect: str | None, why: str, where: str) -> None:
    """Refuse to translate a dialect that a file names and this version does not know.

    >>> checked_known("burn", "its format", "model.bpk")
    """
    if dialect is not None and dialect not in DIALECTS:
        raise DialectError(
            f"{why} says the dialect {dialect!r}, which is not known here",
            where=where,
            do=f'pass dialect="{PYTORCH}" or "{BURN}" if it is one of these, or "{KEEP}" to take the tensors as they lie',
        )


class Kinds:
    """The kinds of layers by path, from what a user, a model or a file says.

    >>> kinds = Kinds.of({r"^fc": "Linear"})
    >>> kinds.of_tensor("fc1.weight")
    'Linear'
    """

    __slots__ = ("_layers", "_patterns")

    def __init__(self, layers: Mapping[str, str] | None = None, patterns: Iterable[tuple[Any, str]] = ()) -> None:
        # The kind of each layer by its path; patterns are asked first.
        self._layers = layers or {}
        self._patterns = tuple(patterns)

    @classmethod
    def of(cls, kinds: Mapping[str, str] | None, layers: Mapping[str, str] | None = None) -> Kinds:
        """What `kinds=` says, on top of the layers that are known already."""
        from burnstore.patterns.regex import compile_rust

        patterns = []
        if kinds is not None and not isinstance(kinds, Mapping):
            raise UsageError(f"kinds={kinds!r} has no patterns", do='give a mapping: kinds={r"^fc": "Linear"}')
        for pattern, kind in (kinds or {}).items():
            if not isinstance(kind, str) or (kind != KEEP and kind_of(kind) is None):
                raise UsageError(
                    f"kinds={{{pattern!r}: {kind!r}}}: there is no such kind of layer",
                    do=f"known are {', '.join(_TABLE)}, and {KEEP!r} for tensors that are the same everywhere",
                )
            patterns.append((compile_rust(pattern), kind_of(kind) or KEEP))
        return cls(layers, patterns)

    def of_tensor(self, path: str) -> str | None:
        """The kind of layer that a tensor belongs to; "keep" for one that is the same in every dialect, None if unknown."""
        for pattern, kind in self._patterns:
            if pattern.search(path):
                return kind
        return self._layers.get(path.rpartition(".")[0])

    def __bool__(self) -> bool:
        return bool(self._layers or self._patterns)
