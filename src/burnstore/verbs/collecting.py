"""From models and sources to lists of snapshots: `collect` and `merge`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from burnstore.containers import container_path
from burnstore.errors import DialectError, DuplicateNameError, UsageError
from burnstore.pipeline.dialects import layout_matters
from burnstore.snapshot import TensorSnapshot
from burnstore.targets.base import Target
from burnstore.targets.bind import paths_of
from burnstore.verbs.listing import aliases_in, dialect_said

if TYPE_CHECKING:
    from burnstore.pipeline.filter import PathFilter
    from burnstore.store import Store


def collected(target: Target, filter: PathFilter | None, skip_variants: bool) -> list[TensorSnapshot]:
    """The tensors of a model that a filter lets pass; paths are the model's, as a file will name them."""
    slots = target.slots
    found = []
    for slot, path in zip(slots, paths_of(slots, skip_variants), strict=True):
        if filter is not None and not filter.matches(path, container_path(slot.containers)):
            continue
        snapshot = slot.snapshot()
        found.append(snapshot if snapshot.name == path else snapshot.with_name(path))
    return found


def aliases(target: Target) -> dict[str, str]:
    """The paths of weights that are tied, each with the first path of the same tensor."""
    places: dict[object, list[tuple[object, str]]] = {}
    found = {}
    for slot in target.slots:
        known = places.setdefault(slot.address() or slot.identity, [])
        first = next((path for identity, path in known if identity == slot.identity), None)
        if first is None:
            known.append((slot.identity, slot.path))
        else:
            found[slot.path] = first
    return found


def merged(stores: Sequence[Store], on_conflict: str) -> list[TensorSnapshot]:
    """The tensors of all stores, in order; a name that two have goes as `on_conflict` says."""
    if on_conflict not in ("error", "first", "last"):
        raise UsageError(f"on_conflict={on_conflict!r} is not known", do='known are "error", "first" and "last"')
    found: dict[str, tuple[TensorSnapshot, str]] = {}
    spoken: dict[str, str] = {}
    for store in stores:
        dialect = store.options.from_dialect or dialect_said(store.unlisted).dialect
        if dialect is not None and layout_matters({row[0]: row[2] for row in store.contents.rows()}):
            spoken.setdefault(dialect, store.name)
        if len(spoken) > 1:
            (one, here), (two, there) = spoken.items()
            raise DialectError(
                f"{here} has {one}'s layout and {there} has {two}'s",
                do="convert one of them first, or load both into a model, one after the other",
            )
        ties = aliases_in(store.contents)
        for name in [*store, *ties]:
            if name in found and on_conflict == "error":
                raise DuplicateNameError(
                    f"it is in {found[name][1]} and in {store.name}",
                    where=f"tensor {name!r}",
                    do='choose with on_conflict="first" or "last", or rename with open(..., rename=...)',
                )
            if name not in found or on_conflict == "last":
                found[name] = store[ties.get(name, name)].with_name(name).changed(dialect=dialect), store.name
    return [snapshot for snapshot, _ in found.values()]
