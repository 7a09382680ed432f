"""Whether each pair of a tensor and a slot fits, and the report of it all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burnstore.data import PartsOnly
from burnstore.dtypes import DType
from burnstore.errors import BurnstoreError, TensorDataError
from burnstore.formats.base import Contents, Row
from burnstore.hints import find_hints
from burnstore.options import Options
from burnstore.outcome import ApplyError, ApplyResult, Cast, Dialects, ErrorKind
from burnstore.pipeline.cast import cast_fault, check_integers, is_lossy, recast
from burnstore.pipeline.layers import is_woven
from burnstore.pipeline.reshape import permuted
from burnstore.snapshot import TensorSnapshot
from burnstore.targets.base import Slot, Target
from burnstore.targets.bind import Binding, Pair
from burnstore.verbs.offers import Offers

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_SCALARS = {(), (1,)}


@dataclass(slots=True)
class Write:
    """One tensor on its way: where it lies in the file, and what has to be done to it."""

    pair: Pair
    row: Row
    # The tensor itself, where it is not simply the bytes of the row.
    snapshot: TensorSnapshot | None
    dtype: DType
    # Other slots that are the same tensor.
    aliases: Sequence[Slot] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """What would be written, and the report of it."""

    contents: Contents
    writes: list[Write]
    result: ApplyResult


class Judge:
    """Decides for each pair whether it can be written."""

    def __init__(self, offers: Offers, binding: Binding, options: Options, dialects: tuple[str, str] | None) -> None:
        self._offers = offers
        self._binding = binding
        self._options = options
        self._dialects = dialects
        # What a caller has in hand is not checked by a format.
        self._is_held = offers.contents.format == "memory"
        self._errors: dict[str, ApplyError] = {}
        self._casts: list[Cast] = []

    def bound(self, target: Target, where: str, warnings: list[str], spoken: Dialects | None) -> Bound:
        """Everything put together."""
        binding = self._binding
        assigns = self._options.zero_copy or target.replaces
        writes = [write for pair in binding.pairs if (write := self._write(pair, assigns)) is not None]
        self._check_rivals()
        self._check_claims()
        self._pass_on_errors()
        if binding.crossing and not assigns:
            self._check_overlaps(writes)
        if self._errors:
            writes = [write for write in writes if write.pair.path not in self._errors]
        if binding.tied or binding.rivals:
            same: dict[str, list[Slot]] = {}
            for slot, path in [*binding.tied, *((second.slot, first.path) for first, second in binding.rivals)]:
                same.setdefault(path, []).append(slot)
            for write in writes:
                write.aliases = same.get(write.pair.path, ())
        for path, head in binding.shared:
            warnings.append(f"{path!r} is left out by the filter, but it is one tensor with {head!r}")
        return Bound(self._offers.contents, writes, self._result(writes, target, where, warnings, spoken))

    def _write(self, pair: Pair, assigns: bool) -> Write | None:
        slot, row = pair.slot, self._offers.rows[pair.name]
        dtype, shape, axes, wanted = row[1], row[2], pair.axes, slot.dtype
        if self._dialects is not None and pair.kind is not None and is_woven(pair.kind):
            self._fail(
                pair, "AdapterError", f"no rule translates the tensors of {pair.kind} between {' and '.join(self._dialects)}"
            )
            return None
        if axes is not None:
            shape = tuple(shape[axis] for axis in axes)
        if dtype is not wanted and dtype != wanted and cast_fault(dtype, wanted) is not None:
            message = "dequantize it first: snapshot.dequantize()" if dtype.is_quantized else ""
            self._errors[pair.path] = ApplyError("DTypeMismatch", pair.path, wanted, dtype, message)
            return None
        # Burn has no tensors without axes, and old versions of PyTorch had none either
        scalar = {shape, slot.shape} == _SCALARS and (self._dialects is not None or slot.shape == ())
        if shape != slot.shape and not scalar:
            self._errors[pair.path] = ApplyError("ShapeMismatch", pair.path, slot.shape, shape)
            return None
        if self._options.dtype == "file" and dtype != wanted and "bool" not in (dtype.kind, wanted.kind):
            wanted = dtype
        fault = slot.fault(assigns or wanted is not slot.dtype)
        if fault is not None:
            self._fail(pair, "LoadError", fault)
            return None
        snapshot = None
        if self._is_held or row[3] is None or axes is not None or dtype is not wanted or shape != slot.shape:
            snapshot = self._changed(pair, wanted)
        return Write(pair, row, snapshot, wanted) if pair.path not in self._errors else None

    def _changed(self, pair: Pair, wanted: DType) -> TensorSnapshot | None:
        """The tensor as the slot takes it; what cannot be read is found out now."""
        try:
            snapshot = self._offers.snapshot(pair.name)
            data = snapshot.data
            if isinstance(data, PartsOnly):
                data.view()
            if data.nbytes != snapshot.dtype.nbytes(snapshot.shape):  # a snapshot can be made, or changed, by hand
                raise TensorDataError(f"{snapshot.dtype} {list(snapshot.shape)} does not take {data.nbytes} bytes")
            if pair.axes is not None:
                snapshot = permuted(snapshot, pair.axes)
            if snapshot.shape != pair.slot.shape:  # a number without axes, which Burn has with one
                snapshot = snapshot.changed(shape=pair.slot.shape)
            if snapshot.dtype != wanted:
                if "int" in snapshot.dtype.kind and "int" in wanted.kind:
                    check_integers(snapshot, wanted)
                if snapshot.dtype.numpy_name != wanted.numpy_name:
                    self._casts.append(Cast(pair.path, snapshot.dtype, wanted, is_lossy(snapshot.dtype, wanted)))
                snapshot = recast(snapshot, wanted)
        except BurnstoreError as error:
            self._fail(pair, "LoadError", error.what)
            return None
        return snapshot

    def _fail(self, pair: Pair, kind: ErrorKind, message: str) -> None:
        self._errors[pair.path] = ApplyError(kind, pair.path, message=message)

    def _check_rivals(self) -> None:
        """Weights that are tied in the model and lie twice in the file must be alike there."""
        for first, second in self._binding.rivals:
            if first.path in self._errors or second.path in self._errors:
                continue
            if not self._alike(first, second):
                for pair, other in ((first, second), (second, first)):
                    message = f"it is one tensor with {other.path!r}, and the file has different values for the two"
                    self._fail(pair, "LoadError", message)

    def _alike(self, first: Pair, second: Pair) -> bool:
        one, two = self._offers.rows[first.name], self._offers.rows[second.name]
        if one[3] is not None and one[1:] == two[1:] and first.axes == second.axes:
            return True
        a, b = self._offers.snapshot(first.name), self._offers.snapshot(second.name)
        if first.axes is not None:
            a = permuted(a, first.axes)
        if second.axes is not None:
            b = permuted(b, second.axes)
        return a.dtype == b.dtype and a.data.nbytes == b.data.nbytes and a.tobytes() == b.tobytes()

    def _pass_on_errors(self) -> None:
        """What is one tensor with a slot that could not be loaded could not be loaded either."""
        tied = [(slot.path, path) for slot, path in self._binding.tied]
        for slot, path in [*tied, *((second.path, first.path) for first, second in self._binding.rivals)]:
            if path in self._errors and slot not in self._errors:
                message = f"it is one tensor with {path!r}, which could not be loaded"
                self._errors[slot] = ApplyError("LoadError", slot, message=message)

    def _check_overlaps(self, writes: Sequence[Write]) -> None:
        """One memory seen in several ways, such as a weight and its transpose, can hold one value only."""
        from burnstore.kernels import byte_bounds

        arrays = [(write, array) for write in writes if (array := write.pair.slot.array()) is not None and array.size]
        crossing: list[tuple[Write, Array]] = []
        furthest = 0
        for begin, end, at in sorted((*byte_bounds(array), at) for at, (_, array) in enumerate(arrays)):
            if begin >= furthest:
                self._check_crossing(crossing)
                crossing = []
            crossing.append(arrays[at])
            furthest = max(furthest, end)
        self._check_crossing(crossing)

    def _check_crossing(self, crossing: Sequence[tuple[Write, Array]]) -> None:
        """Whether all that is written is still there after all was written: tried on a copy of the stretch."""
        if len(crossing) < 2:
            return
        import numpy as np

        from burnstore.kernels import byte_bounds

        bounds = [byte_bounds(array) for _, array in crossing]
        low = min(begin for begin, _ in bounds)
        memory = np.zeros(max(end for _, end in bounds) - low, np.uint8)
        views = [
            np.ndarray(array.shape, array.dtype, memory, array.__array_interface__["data"][0] - low, array.strides)
            for _, array in crossing
        ]

        def value(write: Write) -> Array:
            return (write.snapshot or self._offers.snapshot(write.pair.name)).numpy()

        for (write, _), view in zip(crossing, views, strict=True):
            np.copyto(view, value(write))
        for at, (write, _) in enumerate(crossing):
            if views[at].tobytes() == np.ascontiguousarray(value(write), views[at].dtype).tobytes():
                continue
            for other, (that, _) in enumerate(crossing):
                if other != at and np.may_share_memory(views[at], views[other]):
                    for this, path in ((write, that.pair.path), (that, write.pair.path)):
                        message = f"it shares memory with {path!r}, and the file has another value there"
                        self._fail(this.pair, "LoadError", message)

    def _check_claims(self) -> None:
        for name, one, two in self._binding.claimed:
            for path, other in ((one, two), (two, one)):
                self._errors[path] = ApplyError("LoadError", path, message=f"{name!r} would also go into {other!r}")

    def _result(
        self, writes: Sequence[Write], target: Target, where: str, warnings: list[str], spoken: Dialects | None
    ) -> ApplyResult:
        binding, errors, origin = self._binding, self._errors, self._offers.origin
        done = {write.pair.path for write in writes}
        done.update([second.path for first, second in binding.rivals if first.path in done])
        tied = {id(slot) for slot, path in binding.tied if path in done}
        absent = {id(slot): slot for slot in binding.missing}
        through_alias = {self._offers.aliases.get(origin(write.pair.name)) for write in writes} if self._offers.aliases else ()
        by_path = dict(zip(binding.paths, target.slots, strict=True))
        result = ApplyResult(
            applied=[path for path, slot in by_path.items() if path in done or id(slot) in tied],
            skipped=sorted(binding.skipped),
            missing=sorted((path, ".".join(slot.containers)) for path, slot in by_path.items() if id(slot) in absent),
            unused=[name for name in binding.unused if origin(name) not in through_alias],
            errors=[errors[path] for path in by_path if path in errors] if errors else [],
            casts=self._casts,
            renames=[(old, write.pair.path) for write in writes if (old := origin(write.pair.name)) != write.pair.path],
            dialects=spoken,
            warnings=warnings,
            hints=[],
            source=where,
            model=target.name,
        )
        if result.missing or result.errors:
            wanted = {path: slot.shape for path, slot in by_path.items()}
            missing = [path for path, _ in result.missing]
            hints = find_hints(missing, result.unused, wanted, self._offers.shapes, result.errors)
            if target.dialect is None and any("dialect=" in hint for hint in hints):
                hints = [hint for hint in hints if "dialect=" not in hint]
                hints.append(
                    "the file seems to be another framework's, and a dict does not say what its layers are: convert it first, "
                    "with to_dialect= and kinds=, or pass adapter=BurnToPyTorchAdapter() (or the reverse) and kinds="
                )
            result.hints.extend(hints)
        return result
