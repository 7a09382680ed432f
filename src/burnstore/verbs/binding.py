"""A file bound to a model: names, dialects and adapters settled, so that every slot knows its tensor. Nothing is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import eq

from burnstore.errors import DialectError
from burnstore.formats.base import Contents
from burnstore.options import Options
from burnstore.outcome import Dialects
from burnstore.pipeline.adapt import Adapter, ChainAdapter, DialectAdapter, IdentityAdapter, adapted, between
from burnstore.pipeline.dialects import INDICES, KEPT, Claim
from burnstore.pipeline.evidence import Evidence, Verdict, decide, weigh
from burnstore.pipeline.layers import BURN, KEEP, Kinds, checked_known
from burnstore.pipeline.reshape import permuted
from burnstore.render import names_text
from burnstore.targets.base import Slot, Target
from burnstore.targets.bind import bind, kinds_of, paths_of
from burnstore.verbs.fitting import Bound, Judge
from burnstore.verbs.listing import dialect_said
from burnstore.verbs.offers import Offers


def bind_contents(contents: Contents, where: str, target: Target, options: Options, asks: bool) -> Bound:
    """Bind the tensors of a file to a model; `asks` is whether to ask for a dialect that nothing tells."""
    slots, own = target.slots, target.dialect
    kinds = Kinds.of(options.kinds, target.kinds)
    adapter, claimed = _adapter_of(options, target)
    offers = Offers.of(contents, options, where)
    verdict, offers = _dialect(offers, target, options, kinds, claimed, where)
    if own is not None and verdict.dialect is None:
        verdict = _undecided(verdict, own, where, asks)  # a square matrix fits both ways
    dialects = (verdict.dialect, own) if own is not None and verdict.dialect not in (None, own) else None
    skip = options.skip_enum_variants
    paths = paths_of(slots, skip if skip is not None else dialects is not None and own == BURN)
    of_slots = kinds_of(slots, paths, kinds)
    spoken = Dialects(verdict.dialect, own, verdict.why) if dialects is not None else None
    alternative = None
    if adapter is not None:
        offers = _adapted(offers, slots, paths, of_slots, adapter, dialects)
        alternative, dialects = adapter.alternative_name, None
    binding = bind(slots, paths, of_slots, offers.shapes, dialects, options.filter, alternative, offers.implied(), own)
    warnings = [*target.warnings, *offers.named.warnings]
    if own is None and (
        options.from_dialect not in (None, KEEP) or (isinstance(options.from_adapter, DialectAdapter) and not kinds)
    ):
        warnings.append("nothing was translated: a dict does not say of which kind its layers are; pass an adapter and kinds=")
    if verdict.warning:
        warnings.append(verdict.warning)
    if options.filter is not None:
        warnings += [f"the filter {pattern!r} matched no tensor of the model" for pattern in options.filter.unmatched(paths)]
    return Judge(offers, binding, options, dialects).bound(target, where, warnings, spoken)


def _undecided(verdict: Verdict, own: str, where: str, asks: bool) -> Verdict:
    if asks:
        raise DialectError(
            f"nothing tells whether its tensors lie as PyTorch's or as Burn's, and it matters for {names_text(verdict.silent)}",
            where=where,
            do='pass dialect="pytorch" or dialect="burn" (a state_dict() is PyTorch\'s)',
        )
    return Verdict(own, verdict.why, "nothing tells whose layout the file has; its tensors were taken as they lie")


def _adapter_of(options: Options, target: Target) -> tuple[Adapter | None, str | None]:
    """The adapter to run, and the dialect that it says the file has.

    An adapter takes the place of the dialect that would be found. One that goes between dialects says whose the file's is;
    the model says whose its own is.
    """
    adapter = options.from_adapter
    if adapter is None:
        return None, None
    if isinstance(adapter, IdentityAdapter):
        return None, KEEP
    first, *rest = adapter.adapters if isinstance(adapter, ChainAdapter) else (adapter,)
    if target.dialect is None or not isinstance(first, DialectAdapter):
        return adapter, KEEP
    return (ChainAdapter(*rest) if rest else None), first.source


def _dialect(
    offers: Offers, target: Target, options: Options, kinds: Kinds, claimed: str | None, where: str
) -> tuple[Verdict, Offers]:
    """Whose dialect the file has, and its tensors under the indices that this model has."""
    own = target.dialect
    claim = dialect_said(offers.contents)
    if claim.is_weak and own is not None:
        claim = Claim()
    if options.from_dialect is not None:
        claim = Claim(options.from_dialect, True, "dialect=")
    elif claimed is not None:
        claim = Claim(claimed, True, "the adapter")
    keeps = claim.dialect == KEEP
    if keeps:
        claim = Claim(own, True, claim.why)
    if own is not None:
        checked_known(claim.dialect, claim.why, where)
    wants = options.map_indices_contiguous
    compacts = bool(wants) and not options.map_indices_contiguous_except
    paths = [slot.path for slot in target.slots]
    kept = offers.contents.metadata.get(INDICES) == KEPT
    counted = claim.dialect == BURN and own not in (None, BURN) and not kept
    near = (
        offers.counted_as(paths, counted) if compacts or (wants is None and own is not None and claim.dialect != own) else offers
    )
    if own is None:
        return Verdict(None, ""), near
    if claim.dialect == own and not keeps and all(map(eq, map(near.shapes.get, paths), [slot.shape for slot in target.slots])):
        return Verdict(own, claim.why), near if compacts else offers  # nothing could contradict it
    of_slots = kinds_of(target.slots, paths, kinds)
    wanted = [
        (path, kind, slot.shape)
        for path, kind, slot in zip(paths, of_slots, target.slots, strict=True)
        if kind is not None and kind != KEEP
    ]
    evidence = weigh(wanted, near.shapes, own)
    verdict = decide(claim, evidence, own)
    if keeps and claimed == KEEP and options.from_dialect is None:
        verdict = _untranslated(decide(dialect_said(offers.contents), evidence, own), verdict, evidence, options, own)
    return verdict, near if compacts or verdict.dialect not in (None, own) else offers


def _untranslated(found: Verdict, taken: Verdict, evidence: Evidence, options: Options, own: str) -> Verdict:
    """What to say of an adapter that takes the place of a translation which would be needed."""
    if found.dialect in (None, own):
        return taken
    adapter = options.from_adapter
    warning = f"{found.why} says {found.dialect}, and {adapter!r} took the place of the translation to {own}"
    if evidence.silent and not isinstance(adapter, IdentityAdapter):
        raise DialectError(
            f"{warning}; it would be wrong for {names_text(evidence.silent)}, and nothing would show it",
            do=f"chain them: {between(found.dialect or KEEP, own)!r}.chain({adapter!r}), or pass dialect='keep' if it is meant",
        )
    return replace(taken, warning=warning)


def _adapted(
    offers: Offers,
    slots: Sequence[Slot],
    paths: Sequence[str],
    kinds: Sequence[str | None],
    adapter: Adapter,
    dialects: tuple[str, str] | None,
) -> Offers:
    """What an adapter makes of the tensors, each of which knows the layer of the model that it is for."""
    binding = bind(slots, paths, kinds, offers.shapes, dialects, None, adapter.alternative_name)
    homes = {pair.name: pair for pair in [*binding.pairs, *(pair for _, pair in binding.rivals)]}
    tensors = []
    for name in offers.rows:
        tensor = offers.snapshot(name).with_name(name)
        home = homes.get(name)
        if home is not None:
            tensor = tensor.changed(containers=home.slot.containers or tensor.containers, kind=home.kind or tensor.kind)
            if home.axes is not None:
                tensor = permuted(tensor, home.axes)
            if dialects is not None:
                tensor = tensor.with_name(home.path)
        tensors.append(tensor)
    return offers.instead(adapted(adapter, tensors))
