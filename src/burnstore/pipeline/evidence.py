"""Whose dialect a file has, when a model is there to compare it with.

A file has one dialect. What it says of itself is believed unless its tensors contradict it: the names of norms, and each
Linear that is not square, fit one dialect only. A square Linear fits both and tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from burnstore.dtypes import Shape
from burnstore.pipeline.dialects import Claim
from burnstore.pipeline.layers import BURN, DIALECTS, rules


@dataclass(slots=True)
class Tally:
    """How many tensors speak for and against each dialect."""

    supports: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DIALECTS, 0))
    contradicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DIALECTS, 0))

    def __bool__(self) -> bool:
        return any(self.supports.values())

    def only(self) -> str | None:
        """The one dialect that something speaks for and nothing against."""
        fitting = [name for name in DIALECTS if not self.contradicts[name] and self.supports[name]]
        return fitting[0] if len(fitting) == 1 else None


@dataclass(slots=True)
class Evidence:
    """What the tensors of a file say. Shapes count more than names: Burn's exports for PyTorch keep some of Burn's names."""

    shapes: Tally = field(default_factory=Tally)
    names: Tally = field(default_factory=Tally)
    # Tensors that would be written differently for another dialect, though nothing tells which it is.
    silent: list[str] = field(default_factory=list)

    @property
    def best(self) -> Tally:
        """The tally that counts."""
        return self.shapes or self.names

    def only(self) -> str | None:
        """The one dialect that fits."""
        return self.best.only()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The dialect of a file, and why; None where nothing tells it although it matters."""

    dialect: str | None
    why: str
    warning: str | None = None
    # The tensors that fit both ways.
    silent: Sequence[str] = ()


def weigh(wanted: Iterable[tuple[str, str, Shape]], shapes: Mapping[str, Shape], own: str) -> Evidence:
    """Compare a model's tensors (path, kind of layer, shape), which are in the dialect `own`, with those of a file.

    >>> weigh([("fc.weight", "Linear", (3, 2))], {"fc.weight": (2, 3)}, "pytorch").only()
    'burn'
    """
    evidence = Evidence()
    for path, kind, shape in wanted:
        parent, dot, leaf = path.rpartition(".")
        spellings = _spellings(kind, own).get(leaf)
        if spellings is None:
            continue
        fits: dict[str, bool | None] = {}
        turned = False
        for dialect, name, back in spellings:
            meant = shape
            if back is not None and len(back) == len(shape):
                meant, turned = tuple([shape[axis] for axis in back]), True
            found = shapes.get(f"{parent}{dot}{name}")
            fits[dialect] = None if found is None else found == meant
        if kind in _KEPT and fits[BURN]:
            continue
        _count(evidence, evidence.shapes if turned else evidence.names, path, fits)
    return evidence


# Layers that keep Burn's names in Burn's exports for PyTorch: such a name tells nothing.
_KEPT = ("InstanceNorm", "RmsNorm", "PRelu")


@cache
def _spellings(kind: str, own: str) -> Mapping[str, list[tuple[str, str, tuple[int, ...] | None]]]:
    """For each tensor of a layer that the dialects have differently: its name in each, and where its axes come from."""
    leaves = dict.fromkeys(leaf for dialect in DIALECTS for leaf in rules(kind, dialect, own))
    found = {}
    for leaf in leaves:
        spellings: list[tuple[str, str, tuple[int, ...] | None]] = []
        for dialect in DIALECTS:
            rule = rules(kind, dialect, own).get(leaf)
            if rule is None:
                spellings.append((dialect, leaf, None))
            else:
                axes = rule.axes
                back = None if axes is None else tuple(axes.index(axis) for axis in range(len(axes)))
                spellings.append((dialect, rule.source, back))
        found[leaf] = spellings
    return found


def _count(evidence: Evidence, tally: Tally, path: str, fits: Mapping[str, bool | None]) -> None:
    values = set(fits.values())
    if values == {None}:
        return
    if values == {True}:
        evidence.silent.append(path)
        return
    for dialect, fit in fits.items():
        if fit:
            tally.supports[dialect] += 1
        else:
            tally.contradicts[dialect] += 1


def decide(claim: Claim, evidence: Evidence, own: str) -> Verdict:
    """What a file's dialect is, given what is claimed of it and what its tensors say."""
    dialect, why = claim.dialect, claim.why
    only = evidence.only()
    if dialect is not None:
        if not evidence.best.contradicts.get(dialect) or only is None or only == dialect:
            return Verdict(dialect, why)
        warning = f"{why} says {dialect}, but the names and shapes fit {only} only"
        if claim.plainly:
            return Verdict(dialect, why, f"{warning}; it was taken as {dialect}")
        return Verdict(only, "its tensors", warning)
    if only is not None:
        return Verdict(only, "its names and shapes")
    tally = evidence.best
    if not tally and evidence.silent:
        return Verdict(None, "nothing tells it", silent=evidence.silent)
    best = min(DIALECTS, key=lambda name: (tally.contradicts[name], -tally.supports[name], name != own))
    return Verdict(best, "most of its names and shapes" if tally else "nothing that differs")
