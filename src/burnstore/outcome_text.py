"""How the result of a load looks: Burn's frame word for word, our notes below it, one line for an error, HTML for a notebook.

    ┌─ Tensor Loading Summary       the counts, always
    ├─ Missing Tensors              where there are some, with the names that were probably meant
    ├─ Unused Tensors               where there are some
    ├─ Errors                       where there are some, the first ten
    ├─ Notes                        ours: where there is something that Burn does not know
    └─

Names and messages come from files: each is shown as one line without control characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from burnstore.outcome import ApplyError, side_text
from burnstore.render import count_text, safe_text

if TYPE_CHECKING:
    from burnstore.outcome import ApplyResult

# As many of each as Burn shows.
_ROWS = 10
# How many names stand for the rest within one line.
_NAMES = 3
_LONGEST_NAME = 200
_LONGEST_NOTE = 600
_INDEX = re.compile(r"(?<![^.])[0-9]+(?![^.])")

_HEAD = "┌─ Tensor Loading Summary ─────────────────────────"
_FOOT = "└───────────────────────────────────────────────────"
_VARIANTS = """\
│  ⚠️  {count} paths contain enum variants (detected from container stack)
│      Burn includes enum variant names in paths, but PyTorch doesn't.
│      Example: Burn has 'field.BaseConv.weight', PyTorch has 'field.weight'
│
│      💡 Solution 1: Enable skip_enum_variants flag (simplest):
│
│         store = PytorchStore.from_file("model.pth").skip_enum_variants(True)  # ← Add this
│
│      💡 Solution 2: Remap enum keys in source (most precise):
│
│         store = SafetensorsStore.from_file("model.safetensors").with_key_remapping(r"field\\.(\\w+)", "field.BaseConv.$1")
│"""


def result_text(result: ApplyResult) -> str:
    """The report as text.

    >>> from burnstore.outcome import ApplyResult
    >>> print(result_text(ApplyResult(applied=["fc.weight"], key="state_dict")))
    ┌─ Tensor Loading Summary ─────────────────────────
    │
    │ ✓ Successfully applied: 1 tensors
    │ ⊘ Skipped (filtered):  0 tensors
    │ ✗ Missing in source:    0 tensors
    │ ? Unused in target:     0 tensors
    │ ! Errors:               0 errors
    │
    ├─ Notes
    │
    │  • Taken from under the key 'state_dict': nothing at the top of the file fits, and this alone does
    │
    └───────────────────────────────────────────────────
    """
    lines = [
        _HEAD,
        "│",
        f"│ ✓ Successfully applied: {len(result.applied)} tensors",
        f"│ ⊘ Skipped (filtered):  {len(result.skipped)} tensors",
        f"│ ✗ Missing in source:    {len(result.missing)} tensors",
        f"│ ? Unused in target:     {len(result.unused)} tensors",
        f"│ ! Errors:               {len(result.errors)} errors",
    ]
    if result.missing:
        lines += _block("Missing Tensors (requested by model but not found in source)", _missing_lines(result))
    if result.unused:
        shown = [f"│    • {_name(name)}" for name in result.unused[:_ROWS]]
        rows = ["│  First 10 unused tensors:", *shown, *_more(result.unused)]
        lines += _block("Unused Tensors (in source but not used by model)", rows)
    if result.errors:
        shown = [f"│  ⚠️  {error}" for error in result.errors[:_ROWS]]
        lines += _block("Errors", [*shown, *_more(result.errors)])
    notes = _note_lines(result)
    if notes:
        lines += _block("Notes", notes)
    return "\n".join([*lines, "│", _FOOT])


def _block(title: str, rows: Iterable[str]) -> list[str]:
    return ["│", f"├─ {title}", "│", *rows]


def _more(items: Sequence[object]) -> list[str]:
    return [f"│    ... and {len(items) - _ROWS} more"] if len(items) > _ROWS else []


def _missing_lines(result: ApplyResult) -> list[str]:
    variants = sum("Enum:" in container for _, container in result.missing)
    lines = _VARIANTS.replace("{count}", str(variants)).split("\n") if variants else []
    lines.append("│  First 10 missing tensors:")
    meant = result.first_suggestions(_ROWS)
    for path, _ in result.missing[:_ROWS]:
        lines.append(f"│    • {_name(path)}")
        if path in meant:
            lines.append(f"│        Did you mean: '{_name(meant[path])}'?")
    return lines + _more(result.missing)


def _name(name: str) -> str:
    return safe_text(name, _LONGEST_NAME)


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMES
    return ", ".join(_name(name) for name in names[:_NAMES]) + (f" and {more:,} more" if more > 0 else "")


# --- what Burn does not say


def _note_lines(result: ApplyResult) -> list[str]:
    lines = [f"│  ⚠️  {safe_text(warning, _LONGEST_NOTE)}" for warning in result.warnings[:_ROWS]] + _more(result.warnings)
    lines += [f"│  {'⚠️ ' if lossy else '•'} {text}" for lossy, text in cast_notes(result)]
    if result.key is not None:
        lines.append(
            f"│  • Taken from under the key '{_name(result.key)}': nothing at the top of the file fits, and this alone does"
        )
    spoken = result.dialects
    if spoken is not None and spoken.differ:
        why = f": {safe_text(spoken.why, _LONGEST_NOTE)}" if spoken.why else ""
        lines.append(f"│  • Translated from the dialect {_name(str(spoken.source))} into {_name(str(spoken.model))}{why}")
    families = error_families(result.errors) if len(result.errors) > _ROWS else []
    if 0 < len(families) < len(result.errors):
        lines.append(f"│  {count_text(len(result.errors), 'error')} of {_kinds(len(families))}:")
        lines += [f"│    • {family}" for family in families[:_ROWS]] + _more(families)
    lines += [f"│  💡 {safe_text(hint, _LONGEST_NOTE)}" for hint in result.hints[:_ROWS]] + _more(result.hints)
    return lines


def _kinds(count: int) -> str:
    return count_text(count, "kind")


def cast_notes(result: ApplyResult) -> list[tuple[bool, str]]:
    """The changed dtypes, a line for each pair of them, with whether values may have been lost; those first.

    >>> from burnstore.dtypes import DType
    >>> from burnstore.outcome import ApplyResult, Cast
    >>> cast_notes(ApplyResult(casts=[Cast("a", DType.of("F32"), DType.of("F16"), lossy=True)]))
    [(True, 'Cast F32 to F16, which loses precision: 1 tensor (a)')]
    """
    groups: dict[tuple[bool, str, str], list[str]] = {}
    for cast in result.casts:
        groups.setdefault((not cast.lossy, str(cast.found), str(cast.dtype)), []).append(cast.path)
    return [
        (not exact, f"Cast {found} to {dtype}{'' if exact else ', which loses precision'}: {_counted(paths)}")
        for (exact, found, dtype), paths in sorted(groups.items())
    ]


def _counted(paths: Sequence[str]) -> str:
    return f"{count_text(len(paths), 'tensor')} ({_names(paths)})"


# --- families of errors


def error_families(errors: Iterable[ApplyError]) -> list[str]:
    """Errors that are alike as one line each, the largest family first; what does not hold for all of one is not said of it.

    Alike are errors of one kind whose paths differ in list indices only, and whose two sides stand in the same relation.

    >>> from burnstore.outcome import ApplyError
    >>> alike = [ApplyError("ShapeMismatch", f"layers.{n}.fc.weight", expected=(8, 4), found=(4, 8)) for n in range(96)]
    >>> error_families(alike)
    ['96 alike: layers.*.fc.weight expected [8, 4], found [4, 8] (transposed)']
    """
    families: dict[tuple[str, str, str], list[ApplyError]] = {}
    relations: dict[tuple[object, ...], str] = {}
    for error in errors:
        sides = (error.kind, error.expected, error.found)
        relation = relations.get(sides)
        if relation is None:
            relation = relations[sides] = _relation(error)
        families.setdefault((error.kind, _INDEX.sub("*", error.path), relation), []).append(error)
    ordered = sorted(families.items(), key=lambda item: -len(item[1]))
    return [_family_text(pattern, relation, alike) for (_, pattern, relation), alike in ordered]


def _relation(error: ApplyError) -> str:
    """How what was found relates to what was expected, in words that hold for every member of a family."""
    expected, found = error.expected, error.found
    if error.kind == "DTypeMismatch":
        return f"expected {side_text(expected)}, found {side_text(found)}"
    if not isinstance(expected, tuple) or not isinstance(found, tuple):
        return ""
    if len(expected) != len(found):
        return f"{len(expected)} and {len(found)} axes"
    if expected != found and expected == found[::-1]:
        return "transposed" if len(expected) == 2 else "axes reversed"
    if sorted(expected) == sorted(found):
        return "axes in another order"
    return "other sizes"


def _family_text(pattern: str, relation: str, alike: Sequence[ApplyError]) -> str:
    first = alike[0]
    if len(alike) == 1:
        return str(first)
    start = f"{len(alike):,} alike: {_name(pattern)}"
    messages = {error.message for error in alike}
    message = safe_text(first.message, _LONGEST_NOTE) if len(messages) == 1 else ""
    if not first.is_mismatch:
        return f"{start}: {message or 'for different reasons, the first is ' + str(first)}"
    end = f"; {message}" if message else ""
    if len({(error.expected, error.found) for error in alike}) == 1:
        same = f"expected {side_text(first.expected)}, found {side_text(first.found)}"
        return f"{start} {same}{f' ({relation})' if first.kind == 'ShapeMismatch' and relation else ''}{end}"
    return f"{start} ({relation}), with different shapes, the first is {_first_shapes(first)}{end}"


def _first_shapes(error: ApplyError) -> str:
    return f"{_name(error.path)} expected {side_text(error.expected)}, found {side_text(error.found)}"


# --- one line


def summary_text(result: ApplyResult) -> str:
    """The result in one line: what is wrong with how many of the model's tensors, else how many were applied.

    >>> from burnstore.outcome import ApplyError, ApplyResult
    >>> wrong = ApplyError("ShapeMismatch", "fc.weight", expected=(2, 3), found=(3, 2))
    >>> summary_text(ApplyResult(applied=["a"], missing=[("b", ""), ("c", "")], errors=[wrong]))
    '2 of 4 tensors are missing (b, c) and 1 has another shape (fc.weight)'
    """
    facts = [([path for path, _ in result.missing], "is missing", "are missing")]
    for kind, one, many in _FACTS:
        facts.append(([error.path for error in result.errors if error.kind == kind], one, many))
    wrong = [fact for fact in facts if fact[0]]
    total = len(result.applied) + len(result.skipped) + len(result.missing) + len(result.errors)
    if not wrong:
        return _well_text(result, total)
    says: list[str] = []
    for paths, one, many in wrong:
        of = "" if says else f" of {count_text(total, 'tensor')}"
        says.append(f"{len(paths):,}{of} {one if len(paths) == 1 else many} ({_names(paths)})")
    return " and ".join([", ".join(says[:-1]), says[-1]]) if len(says) > 1 else says[0]


_FACTS = (
    ("ShapeMismatch", "has another shape", "have another shape"),
    ("DTypeMismatch", "has a dtype that does not fit", "have a dtype that does not fit"),
    ("AdapterError", "could not be adapted", "could not be adapted"),
    ("LoadError", "could not be loaded", "could not be loaded"),
)


def _well_text(result: ApplyResult, total: int) -> str:
    if not total:
        return "the model has no tensors"
    if not result.applied:
        return (
            f"no tensor was applied, all {total:,} were skipped"
            if total > 1
            else "no tensor was applied, the only one was skipped"
        )
    were = "was" if len(result.applied) == total == 1 else "were"
    skipped = len(result.skipped)
    rest = f", {skipped:,} {'was' if skipped == 1 else 'were'} skipped" if skipped else ""
    return f"{len(result.applied):,} of {count_text(total, 'tensor')} {were} applied{rest}"


# --- HTML


def result_html(result: ApplyResult) -> str:
    """The report for a notebook: the counts as a table, what there is to see of each behind its line.

    >>> from burnstore.outcome import ApplyResult
    >>> "<li>&lt;b&gt;</li>" in result_html(ApplyResult(unused=["<b>"]))
    True
    """
    from html import escape

    meant = result.first_suggestions(_ROWS)
    missing = [f"{_name(path)} (did you mean {_name(meant[path])}?)" if path in meant else _name(path) for path in _paths(result)]
    sections = (
        ("applied", len(result.applied), [_name(path) for path in result.applied[:_ROWS]]),
        ("skipped", len(result.skipped), [_name(path) for path in result.skipped[:_ROWS]]),
        ("missing", len(result.missing), missing),
        ("unused", len(result.unused), [_name(name) for name in result.unused[:_ROWS]]),
        ("errors", len(result.errors), [str(error) for error in result.errors[:_ROWS]]),
    )
    parts = []
    for title, count, rows in sections:
        more = [f"… and {count - _ROWS:,} more"] if count > _ROWS else []
        items = "".join(f"<li>{escape(row)}</li>" for row in rows + more)
        body = f"<details><summary>{title}</summary><ul>{items}</ul></details>" if rows else title
        style = "text-align:left;vertical-align:top"
        parts.append(f"<tr><td style='{style}'>{count:,}</td><td style='{style}'>{body}</td></tr>")
    notes = [line.removeprefix("│").strip() for line in _note_lines(result)]
    foot = f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>" if notes else ""
    return f"<table><caption>{escape(summary_text(result))}</caption><tbody>{''.join(parts)}</tbody></table>{foot}"


def _paths(result: ApplyResult) -> list[str]:
    return [path for path, _ in result.missing[:_ROWS]]
