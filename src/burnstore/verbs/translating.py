"""Tensors from one framework's layout into another's where no model is being loaded: which way to go, and what that takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from burnstore.errors import DialectError, UsageError
from burnstore.formats.base import Contents
from burnstore.options import Options
from burnstore.pipeline.adapt import Adapter, ChainAdapter, DialectAdapter, IdentityAdapter, adapted, between
from burnstore.pipeline.dialects import layout_matters
from burnstore.pipeline.layers import KEEP, Kinds, checked_known, kind_of, rules_from
from burnstore.render import names_text
from burnstore.snapshot import TensorSnapshot
from burnstore.verbs.likeness import kinds_like, layers_of


@dataclass(frozen=True, slots=True)
class Origin:
    """Where tensors come from: whose layout they have, who says so, and what messages call the source."""

    dialect: str | None
    why: str
    name: str
    # All of a model's paths, also those that a filter leaves out: a part of a list keeps the numbers that it has in the whole.
    paths: Sequence[str] = ()
    # Weights of a model that are tied, each with the name under which it is written.
    tied: Mapping[str, str] = field(default_factory=dict)
    is_model: bool = False


@dataclass(frozen=True, slots=True)
class Course:
    """The steps that tensors go through, and whose layout comes out."""

    steps: tuple[Adapter, ...]
    dialect: str | None
    warning: str | None = None
    # A layout that is wanted, while nobody says which one there is.
    unsaid: str | None = None

    @property
    def is_straight(self) -> bool:
        """Whether every tensor stays as it lies."""
        return not self.steps and self.unsaid is None


def course_of(options: Options, origin: Origin, to: str | None) -> Course:
    """The way from the source's layout to the file's.

    An adapter takes the place of the translation, but one between dialects only says where it goes; a way that is gone
    already is not gone twice.
    """
    dialect = None if origin.dialect == KEEP else origin.dialect
    adapter = options.to_adapter
    if to not in (None, KEEP, dialect):
        checked_known(dialect, origin.why, origin.name)
    if adapter is None or isinstance(adapter, IdentityAdapter):
        if adapter is not None or to is None or to in (KEEP, dialect) or origin.dialect == KEEP:
            return Course((), dialect)
        return Course((between(dialect, to),), to) if dialect is not None else Course((), to, unsaid=to)
    parts = adapter.adapters if isinstance(adapter, ChainAdapter) else (adapter,)
    goes = any(isinstance(part, DialectAdapter) for part in parts)
    wanted = options.to_dialect if options.to_dialect != KEEP else None
    steps: list[Adapter] = []
    now = dialect
    if not goes and wanted is not None and now not in (None, wanted):  # the caller said so, and wants both
        steps.append(between(now or wanted, wanted))
        now = wanted
    for part in parts:
        if not isinstance(part, DialectAdapter):
            steps.append(part)
        elif now != part.target:  # nobody but the adapter may know where the tensors come from
            steps.append(part)
            now = part.target
    if wanted is not None and now is not None and now != wanted:
        raise UsageError(f"{adapter!r} ends in the layout of {now}, and to_dialect={wanted!r}", do="leave one of the two out")
    warning = None
    if not goes and now is not None and to not in (None, KEEP, now):
        warning = f"{origin.name}: {adapter!r} took the place of the translation to {to}; the file says that it is {now}'s"
    return Course(tuple(steps), now, warning)


def translated(
    tensors: Sequence[TensorSnapshot], contents: Contents, options: Options, origin: Origin, course: Course
) -> list[TensorSnapshot]:
    """The tensors after all steps; refused where it matters what kind of layer they belong to and nobody said it."""
    first = next((step.source for step in course.steps if isinstance(step, DialectAdapter)), None)
    made = _with_kinds(tensors, contents, options, origin.dialect or first)
    if course.unsaid is not None:
        _refuse_unknown({tensor.name: tensor.shape for tensor in made}, None, course.unsaid, options, origin)
    for step in course.steps:
        if isinstance(step, DialectAdapter):
            unknown = {tensor.name: tensor.shape for tensor in made if not _has_kind(tensor, step.source, step.target)}
            _refuse_unknown(unknown, step.source, step.target, options, origin)
        made = adapted(step, made)
    return made


def _with_kinds(
    tensors: Sequence[TensorSnapshot], contents: Contents, options: Options, dialect: str | None
) -> list[TensorSnapshot]:
    """The tensors, each with the kind of layer that it belongs to, where that is known.

    What the caller says is asked by the names after renaming, what the file itself names by its own; the numbers of lists are
    in both as the file has them, because the model's lists may have gaps too.
    """
    said = Kinds.of(options.kinds, {} if options.like is None else kinds_like(options.like, contents, dialect))
    own = Kinds.of(None, layers_of(contents))
    if not said and not own:
        return list(tensors)
    spoken: Mapping[str, str] = getattr(contents, "spoken", {})
    origins: Mapping[str, str] = getattr(contents, "origins", {})
    made = []
    for tensor in tensors:
        name = tensor.name
        kind = said.of_tensor(spoken.get(name, name)) or own.of_tensor(origins.get(name, name))
        made.append(tensor if kind is None else tensor.changed(kind=kind))
    return made


def _has_kind(tensor: TensorSnapshot, source: str, to: str) -> bool:
    """Whether it is known of which kind its layer is. A weight of one axis is no Linear's, whatever was said."""
    kind = tensor.kind or kind_of(tensor.module_type() or KEEP)
    rule = None if kind is None else rules_from(kind, source, to).get(tensor.name.rpartition(".")[2])
    return kind is not None and (rule is None or rule.fits(tensor.shape))


def _refuse_unknown(shapes: Mapping[str, tuple[int, ...]], source: str | None, to: str, options: Options, origin: Origin) -> None:
    depends = layout_matters(shapes)
    if depends:
        whose = f"its tensors lie as {source}'s do" if source else "nothing says whose layout its tensors have"
        raise DialectError(
            f"{whose}, and {to}'s are wanted; it matters for {names_text(depends)}",
            where=origin.name,
            do=_advice(options, source),
        )


def _advice(options: Options, source: str | None) -> str:
    kinds = 'like=model or kinds={r"fc$": "Linear", r"norm": "LayerNorm"}'
    keep = 'dialect="keep" writes them as they lie'
    told = options.like is not None or bool(options.kinds)
    if source is not None:
        return f"say it in kinds= too; {keep}" if told else f"pass {kinds}; {keep}"
    whose = 'from_dialect="pytorch", or "burn"'
    return f"pass {whose}; {keep}" if told else f"pass {whose}, and {kinds}; {keep}"
