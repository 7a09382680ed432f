"""From a store into a model: `load`, `plan`, `loaded` and `apply`.

    names ─► rename ─► indices ─► bind to slots ─► filter ─► adapt ─► cast          planned: nothing is written
                                                                       └─► write     one pass, straight into the model

Everything is decided before the first element is written. A load that fails leaves the model as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from re import escape
from typing import TYPE_CHECKING

from burnstore.collection import CollectionPaused
from burnstore.errors import BurnstoreError, LoadError, UsageError
from burnstore.formats.base import Contents, Nested
from burnstore.options import Options
from burnstore.outcome import ApplyResult
from burnstore.render import names_text
from burnstore.targets.base import Target

if TYPE_CHECKING:
    from burnstore.store import Store
    from burnstore.verbs.fitting import Bound

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Leniency:
    """What a caller of a load lets pass."""

    partial: bool = False
    validate: bool = True
    # `apply` writes what fits and reports the rest, as Burn does.
    nothing: bool = False
    # Burn's stores take tensors as they lie where nothing tells their dialect; `load` asks.
    asks: bool = True


class Plan:
    """What a load would do; `apply()` does it.

    >>> import burnstore as bs, numpy as np
    >>> model = {"fc.bias": np.zeros(2, np.float32)}
    >>> plan = bs.plan({"fc.bias": np.ones(2, np.float32)}, model)
    >>> plan.result.applied
    ['fc.bias']
    >>> model["fc.bias"]
    array([0., 0.], dtype=float32)
    >>> _ = plan.apply()
    >>> model["fc.bias"]
    array([1., 1.], dtype=float32)
    """

    def __init__(
        self, target: Target, bound: Bound, leniency: Leniency, assign: bool, threads: int | None, progress: Progress | None
    ) -> None:
        self._assign = assign
        self._target = target
        self._bound = bound
        self._leniency = leniency
        self._threads = threads
        self._progress = progress
        self._planned: list[object] | None = None

    def _remember(self) -> Plan:
        """Note what the model is like now, so that `apply()` can tell whether it was changed meanwhile."""
        self._planned = [slot.identity for slot in self._target.slots]
        return self

    @property
    def result(self) -> ApplyResult:
        """The report that `apply()` would give."""
        return self._bound.result

    @property
    def model(self) -> object:
        """The model that is loaded, with what was written."""
        return self._target.model

    def print(self) -> None:
        """Print the report."""
        self.result.print()

    def apply(self) -> ApplyResult:
        """Write what was planned; a model that has changed since is refused."""
        self._check_unchanged()
        why = self.fault()
        if why is not None:
            try:
                raise why
            finally:
                del why  # or the error would hold this frame, and with it the file and the model
        self._write()
        return self.result

    def fault(self) -> LoadError | None:
        """Why the load would fail, as the error that `apply()` raises; None if it would not.

        >>> import burnstore as bs, numpy as np
        >>> bs.plan({"w": np.ones(2, np.float32)}, {"w": np.zeros(2, np.float32)}).fault() is None
        True
        """
        result, leniency = self.result, self._leniency
        wrong = result.errors and leniency.validate
        lacking = result.missing and not leniency.partial
        empty = not result.applied and not leniency.nothing
        if not (wrong or lacking or empty):
            return None
        what = result.summary() if wrong or lacking else _why_nothing(result)
        do = result.hints[0] if result.hints else _advice(result, bool(wrong), bool(lacking))
        report = replace(result, warnings=[*result.warnings, "nothing was written: the model is as it was"])
        return LoadError(what, where=f"{result.source} into {result.model}", do=do, report=report)

    def _check_unchanged(self) -> None:
        if self._planned is None:
            return
        then, now = self._target.slots, self._target.again().slots
        same = len(now) == len(then) and all(
            (new.path, new.shape, new.dtype, new.identity) == (old.path, old.shape, old.dtype, identity)
            for new, old, identity in zip(now, then, self._planned, strict=True)
        )
        if not same or any(item.pair.slot.fault(self._assign) for item in self._bound.writes):
            raise UsageError("the model was changed after the load was planned", where=self._target.name, do="plan it again")

    def _write(self) -> None:
        from burnstore.verbs.writing import write

        with CollectionPaused():  # a plan may be applied later
            write(self._target, self._bound, self._assign, self._threads, self._progress)

    def __repr__(self) -> str:
        return f"<Plan: {self.result.source} into {self.result.model}, {len(self.result.applied)} tensors>"


def make_plan(
    store: Store,
    target: Target,
    options: Options,
    leniency: Leniency,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Bind a store to a model; a nest of the file is taken where nothing else fits and it alone does."""
    from burnstore.verbs.binding import bind_contents

    bound = bind_contents(store.unlisted, store.name, target, options, leniency.asks)
    if not bound.writes and not bound.result.errors and options.key is None:
        bound = _from_nest(store, target, options, leniency) or bound
    return Plan(target, bound, leniency, options.zero_copy, threads, progress)


def _from_nest(store: Store, target: Target, options: Options, leniency: Leniency) -> Bound | None:
    """What the one nest of a file that fits gives, if there is exactly one."""
    from burnstore.verbs.binding import bind_contents

    contents: Contents = store.unlisted
    nests = contents.nests() if isinstance(contents, Nested) else []
    fitting: dict[str, Bound] = {}
    for nest in nests:
        try:
            bound = bind_contents(store.unlisted_at(nest), store.name, target, options, leniency.asks)
        except BurnstoreError:  # what does not even make sense there does not fit
            continue
        if bound.writes:
            fitting[nest] = bound
    if len(fitting) > 1:
        raise UsageError(
            f"the model fits what is under {names_text(fitting)}",
            where=store.name,
            do=f"choose one: key={next(iter(fitting))!r}",
        )
    for nest, bound in fitting.items():
        return replace(bound, result=replace(bound.result, key=nest))
    return None


def _why_nothing(result: ApplyResult) -> str:
    if result.skipped:
        return "nothing was loaded: the filter leaves out every tensor of the model"
    if result.missing or result.errors:
        return f"nothing was loaded: {'no tensor of the model is in the file' if not result.errors else 'no tensor fits'}"
    return "nothing was loaded: the model has no tensors"


def _advice(result: ApplyResult, wrong: bool, lacking: bool) -> str:
    if lacking and not wrong:
        meant = result.first_suggestions(1)
        if meant:
            path, name = next(iter(meant.items()))
            return f"did you mean {name!r} for {path!r}? rename={{...}} renames, partial=True loads what is there"
        if len(result.missing) > len(result.applied) and result.unused:
            return "rename={pattern: replacement} gives the file's tensors other names; error.report has the whole list"
        return "pass partial=True to load what is there; error.report has the whole list"
    if not result.errors:
        return "bs.plan(...).result.skipped lists the paths of the model" if result.skipped else "give a model that has tensors"
    first = result.errors[0]
    layers = {error.path.rpartition(".")[0] for error in result.errors}
    leave = ""
    if len(layers) == 1 and first.is_mismatch and all(layers):
        leave = f'; skip=r"^{escape(layers.pop())}\\." leaves that layer as it is'
    return f"{first.message or first}{leave}; error.report has the whole list"
