"""Which tensor of a file goes into which slot of a model. Nothing is written here.

A slot is looked up by its path; then by what the file's dialect calls the same tensor; then, where Burn's enums stand between
the two, by the path without a variant. A tensor that two different slots claim is nobody's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from burnstore.containers import container_path, module_type
from burnstore.dtypes import Shape
from burnstore.pipeline.filter import PathFilter
from burnstore.pipeline.layers import BURN, DIALECTS, KEEP, Kinds, is_optional, rules
from burnstore.suggest import without_variant
from burnstore.targets.base import Slot

# What a slot is called in a file beside its path, if anything: an adapter of the user's may know.
Alternative = Callable[[str, str], "str | None"]


@dataclass(slots=True)
class Pair:
    """A slot and the tensor of the file that goes into it."""

    slot: Slot
    path: str
    name: str
    kind: str | None
    # How its axes have to be turned round, if at all.
    axes: tuple[int, ...] | None = None


@dataclass(slots=True)
class Binding:
    """Every slot and every name accounted for."""

    pairs: list[Pair] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    missing: list[Slot] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    # Tensors that two different slots claim: the name, and both paths.
    claimed: list[tuple[str, str, str]] = field(default_factory=list)
    # Slots that are one tensor with a slot that is bound: (alias, bound path).
    tied: list[tuple[Slot, str]] = field(default_factory=list)
    # Slots that a filter leaves out, although they are one tensor with a slot that is bound.
    shared: list[tuple[str, str]] = field(default_factory=list)
    # Slots that are one tensor, and have a tensor each in the file.
    rivals: list[tuple[Pair, Pair]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    # Whether the memory of some slots may lie across that of others.
    crossing: bool = False


def paths_of(slots: Sequence[Slot], skip_variants: bool) -> list[str]:
    """The paths of all slots, without the variants of enums where a file does not have them."""
    if not skip_variants:
        return [slot.path for slot in slots]
    paths = []
    for slot in slots:
        segments = slot.path.split(".") if slot.variants else []
        without = [segment for at, segment in enumerate(segments) if at not in slot.variants]
        paths.append(".".join(without) if segments else slot.path)
    return paths


def kinds_of(slots: Sequence[Slot], paths: Iterable[str], kinds: Kinds) -> list[str | None]:
    """The kind of layer that each slot belongs to."""
    if not kinds:
        return [None] * len(slots)
    return [kinds.of_tensor(slot.path if slot.variants else path) for slot, path in zip(slots, paths, strict=True)]


def bind(
    slots: Sequence[Slot],
    paths: Sequence[str],
    kinds: Sequence[str | None],
    shapes: Mapping[str, Shape],
    dialects: tuple[str, str] | None,
    filter: PathFilter | None,
    alternative: Alternative | None = None,
    implied: Iterable[str] = (),
    own: str | None = None,
) -> Binding:
    """Pair slots with names.

    `dialects` are the file's and the model's, where they differ; `own` is the model's. `implied` names stand for tensors
    under other names.
    """
    binding = Binding(paths=list(paths))
    bare = _without_variants(shapes) if dialects is not None and dialects[0] == BURN != dialects[1] else {}
    asked: set[str] = set(implied)
    claims: dict[str, Pair] = {}
    bound: list[Pair | None] = []
    for slot, path, kind in zip(slots, paths, kinds, strict=True):
        name, axes = _look_up(slot, path, kind, shapes, dialects, alternative, bare)
        if name is None and own is not None and kind is not None:
            name = _under_another_name(path, kind, own, shapes)
        pair = None
        if name is not None:
            asked.add(name)
        if filter is not None and not filter.matches(path, container_path(slot.containers)):
            binding.skipped.append(path)
        elif name is not None:
            pair = Pair(slot, path, name, kind, axes)
            binding.pairs.append(pair)
            first = claims.setdefault(name, pair)
            if first is not pair and first.slot.identity != slot.identity:
                binding.claimed.append((name, first.path, path))
        elif not is_optional(kind, path.rpartition(".")[2]):
            binding.missing.append(slot)
        bound.append(pair)
    binding.unused = sorted(name for name in shapes if name not in asked)
    _tie(binding, slots, bound)
    return binding


def _look_up(
    slot: Slot,
    path: str,
    kind: str | None,
    shapes: Mapping[str, Shape],
    dialects: tuple[str, str] | None,
    alternative: Alternative | None,
    bare: Mapping[str, str],
) -> tuple[str | None, tuple[int, ...] | None]:
    if dialects is None and path in shapes:
        return path, None
    parent, dot, leaf = path.rpartition(".")
    rule = rules(kind, *dialects).get(leaf) if dialects is not None and kind is not None else None
    names = [path]
    if rule is not None and rule.source != leaf:
        names.append(f"{parent}{dot}{rule.source}")
    if alternative is not None:
        other = alternative(leaf, kind if kind not in (None, KEEP) else module_type(slot.containers) or "")
        if other is not None:
            names.append(f"{parent}{dot}{other}")
    name = next((name for name in names if name in shapes), None)
    if name is None and bare:
        name = next((bare[name] for name in names if name in bare), None)
    if name is None or rule is None or rule.axes is None or not rule.fits(shapes[name]):
        return name, None
    return name, rule.axes


def _under_another_name(path: str, kind: str, own: str, shapes: Mapping[str, Shape]) -> str | None:
    """What another dialect calls a tensor that lies alike in both: some exports keep a norm's old names."""
    parent, dot, leaf = path.rpartition(".")
    for dialect in DIALECTS:
        rule = rules(kind, dialect, own).get(leaf)
        if rule is not None and rule.axes is None and f"{parent}{dot}{rule.source}" in shapes:
            return f"{parent}{dot}{rule.source}"
    return None


def _without_variants(names: Iterable[str]) -> dict[str, str]:
    """Names of Burn's without the segment that looks like an enum's variant, where that is unambiguous."""
    bare: dict[str, str] = {}
    twice = set()
    for name in names:
        short = without_variant(name)
        if short is not None:
            twice.update([short] if short in bare else [])
            bare[short] = name
    return {short: name for short, name in bare.items() if short not in twice}


def _tie(binding: Binding, slots: Sequence[Slot], bound: Sequence[Pair | None]) -> None:
    """Slots that are one tensor are filled once; an alias that the file does not name is filled with the other."""
    places: dict[object, int] = {}
    stretches: list[tuple[int, int]] = []
    groups: dict[int, list[int]] = {}
    for at, slot in enumerate(slots):
        address = slot.address()
        if address:
            stretches.append((address, address + (prod(slot.shape) * slot.dtype.bits >> 3)))
        elif 0 not in slot.shape:
            binding.crossing = True  # strided memory, which may lie anywhere
        before = places.setdefault(address or slot.identity, at)
        if before != at:
            groups.setdefault(before, [before]).append(at)
    stretches.sort()
    binding.crossing = binding.crossing or any(end > begin for (_, end), (begin, _) in pairwise(stretches))
    if not groups:
        return
    absent = {id(slot) for slot in binding.missing}
    again = set()
    for group in groups.values():
        heads: dict[object, Pair] = {}
        for pair in (bound[at] for at in group):
            if pair is None:
                continue
            head = heads.setdefault(pair.slot.identity, pair)
            if head is not pair:
                again.add(id(pair))
                binding.rivals.append((head, pair))
        first, *others = heads.values() or (None,)
        if first is not None:  # one memory under several shapes: all are written, so they had better be alike
            binding.rivals.extend((first, other) for other in others if other is not None)
        for at in group:
            slot, head_of = slots[at], heads.get(slots[at].identity)
            if head_of is None or bound[at] is not None:
                continue
            if id(slot) in absent:
                binding.tied.append((slot, head_of.path))
            else:
                binding.shared.append((binding.paths[at], head_of.path))
    tied = {id(slot) for slot, _ in binding.tied}
    binding.missing = [slot for slot in binding.missing if id(slot) not in tied]
    binding.pairs = [pair for pair in binding.pairs if id(pair) not in again]
