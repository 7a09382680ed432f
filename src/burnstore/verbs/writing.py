"""The one step that changes a model: every planned tensor is brought to its place."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from burnstore.devices.fill import Job, fill
from burnstore.errors import BurnstoreError, LoadError
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.base import FileRange, Source
from burnstore.targets.base import Slot, Target

if TYPE_CHECKING:
    from burnstore.verbs.fitting import Bound, Write


def write(target: Target, bound: Bound, assign: bool, threads: int | None, progress: Callable[[int, int], object] | None) -> None:
    """Write what was bound. What could be refused was refused before; what is left are failures of the disk.

    Memory is filled first and arrays are replaced after that, so that a failure leaves at most some parameters with their
    new values and the others with their old ones, and never a parameter without a value.
    """
    if bound.contents.format == "memory" and not assign:
        _copy_what_is_overwritten(bound)
    jobs: list[Job] = []
    values: list[tuple[Write, object]] = []
    changed: list[Slot] = []
    puts: list[Write] = []
    for item in bound.writes:
        slot = item.pair.slot
        if assign:
            values.append((item, slot.view(_snapshot(bound, item))))
        elif target.replaces or item.dtype != slot.dtype:
            values.append((item, _owned(bound, item, jobs)))
        else:
            changed.append(slot)
            if not _place(bound, item, jobs):
                puts.append(item)
    _check_sources(bound)
    try:
        try:
            fill(jobs, threads, progress)
            for item in puts:
                item.pair.slot.put(_snapshot(bound, item))
        finally:
            target.written(changed)  # also of what an interruption left half done
    except BurnstoreError as error:
        if not changed:
            raise
        raise LoadError(
            f"reading stopped in the middle: {error.what}",
            where=error.where or bound.result.source,
            do="some tensors of the model are new now and some are old: load again, from a file that is whole",
            report=bound.result,
        ) from error
    for item, value in values:
        placed = item.pair.slot.assign(value)
        for slot in item.aliases:
            slot.assign(placed)
    target.written([slot for item, _ in values for slot in (item.pair.slot, *item.aliases)])
    _remember_ids(bound)


def _copy_what_is_overwritten(bound: Bound) -> None:
    """Tensors that lie in the model's own memory are copied first: two layers may be swapped."""
    from burnstore.arrays import HeldArray
    from burnstore.data import HeldBytes
    from burnstore.kernels import byte_bounds

    arrays = [array for item in bound.writes if (array := item.pair.slot.array()) is not None and array.size]
    written = sorted(map(byte_bounds, arrays))
    begins = [begin for begin, _ in written]
    furthest = list(accumulate((end for _, end in written), max))

    def is_overwritten(data: object) -> bool:
        if not isinstance(data, HeldArray) or not data.array.size:
            return False
        begin, end = byte_bounds(data.array)
        at = bisect_left(begins, end) - 1
        return at >= 0 and furthest[at] > begin

    if not any(is_overwritten(bound.contents.snapshot(name).data) for name in bound.contents.names()):
        return
    for item in bound.writes:
        snapshot = _snapshot(bound, item)
        if not isinstance(snapshot.data, HeldArray) or is_overwritten(snapshot.data):
            item.snapshot = snapshot.changed(data=HeldBytes(snapshot.tobytes()))


def _check_sources(bound: Bound) -> None:
    """Read the last byte that is wanted of each file: one that was cut meanwhile is found out before anything is written."""
    ends: dict[Source, int] = {}
    for item in bound.writes:
        _, _, _, source, begin, end = item.row
        if source is not None and end > begin:
            ends[source] = max(ends.get(source, 0), end)
    for source, end in ends.items():
        source.read_into(end - 1, memoryview(bytearray(1)))


def _place(bound: Bound, item: Write, jobs: list[Job]) -> bool:
    """Add the job that fills a slot's memory; False where it has none."""
    address = item.pair.slot.address()
    if address is not None:
        jobs.append(Job(_bytes(bound, item), address))
        return True
    array = item.pair.slot.array()
    if array is None:
        return False
    jobs.append(Job(_snapshot(bound, item), array))
    return True


def _owned(bound: Bound, item: Write, jobs: list[Job]) -> object:
    """Fresh memory for a tensor, as what its slot can be given."""
    import numpy as np

    snapshot = _snapshot(bound, item)
    if not snapshot.dtype.is_plain:
        return item.pair.slot.own(snapshot.numpy(copy=True), snapshot.dtype)
    array = np.empty(snapshot.shape, snapshot.dtype.numpy_dtype)
    jobs.append(Job(snapshot, array))
    return item.pair.slot.own(array, snapshot.dtype)


def _bytes(bound: Bound, item: Write) -> FileRange | TensorSnapshot:
    if item.snapshot is not None:
        return item.snapshot
    _, _, _, source, begin, end = item.row
    return FileRange(source, begin, end) if source is not None else _snapshot(bound, item)


def _snapshot(bound: Bound, item: Write) -> TensorSnapshot:
    return item.snapshot if item.snapshot is not None else bound.contents.snapshot(item.row[0])


def _remember_ids(bound: Bound) -> None:
    """Parameters keep the ids that the file gives them, so that they can be saved again under the same ones."""
    ids: Mapping[str, int] = getattr(bound.contents, "param_ids", {})
    for item in bound.writes:
        param_id = item.snapshot.param_id if item.snapshot is not None else ids.get(item.row[0])
        if param_id is not None:
            item.pair.slot.set_param_id(param_id)
