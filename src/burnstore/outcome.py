"""What a load did, tensor by tensor: facts. How they look is `outcome_text.py`'s matter, what to do next `hints.py`'s."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from burnstore.dtypes import DType, Shape
from burnstore.errors import one_line
from burnstore.render import safe_text
from burnstore.suggest import ALL_LETTERS, MOST_LETTERS, MOST_SUGGESTED, Suggestions

if TYPE_CHECKING:
    from typing import TextIO

ErrorKind = Literal["ShapeMismatch", "DTypeMismatch", "AdapterError", "LoadError"]

# A message can quote anything that a file holds.
_LONGEST = 600
_WORDS: dict[ErrorKind, str] = {
    "ShapeMismatch": "Shape mismatch",
    "DTypeMismatch": "DType mismatch",
    "AdapterError": "Adapter error",
    "LoadError": "Load error",
}


@dataclass(frozen=True, slots=True, repr=False)
class ApplyError:
    """One tensor of the model that could not be filled, and why; it prints as Burn prints it.

    `expected` is what the model has, `found` what the file has: shapes of a ShapeMismatch, dtypes of a DTypeMismatch.

    >>> error = ApplyError("ShapeMismatch", "fc.weight", expected=(2, 3), found=(3, 2))
    >>> print(error)
    Shape mismatch for 'fc.weight': expected [2, 3], found [3, 2]
    >>> error
    ShapeMismatch { path: "fc.weight", expected: [2, 3], found: [3, 2] }
    >>> path, text = error
    >>> path
    'fc.weight'
    """

    kind: ErrorKind
    path: str
    expected: Shape | DType | None = None
    found: Shape | DType | None = None
    message: str = ""

    @property
    def is_mismatch(self) -> bool:
        """Whether shapes or dtypes are what differs."""
        return self.kind in ("ShapeMismatch", "DTypeMismatch")

    def __iter__(self) -> Iterator[str]:
        return iter((self.path, str(self)))

    def __str__(self) -> str:
        message = safe_text(self.message, _LONGEST)
        if self.is_mismatch:
            says = f"expected {side_text(self.expected)}, found {side_text(self.found)}"
            message = f"{says}; {message}" if message else says
        return f"{_WORDS[self.kind]} for '{safe_text(self.path, _LONGEST)}': {message}"

    def __repr__(self) -> str:
        fields = [f"path: {_quoted(self.path)}"]
        if self.is_mismatch:
            fields += [f"expected: {side_text(self.expected)}", f"found: {side_text(self.found)}"]
        if self.message or not self.is_mismatch:
            fields.append(f"message: {_quoted(self.message)}")
        return f"{self.kind} {{ {', '.join(fields)} }}"


def side_text(side: Shape | DType | None) -> str:
    """A shape or a dtype as Burn 0.20 writes it in an error.

    >>> side_text((2, 3)), side_text(DType.of("float32"))
    ('[2, 3]', 'F32')
    """
    return str(list(side)) if isinstance(side, tuple) else str(side)


def _quoted(text: str) -> str:
    """A text in quotes, as Rust's Debug writes it."""
    escaped = text[:_LONGEST].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{one_line(escaped)}"'


@dataclass(frozen=True, slots=True)
class Cast:
    """One tensor whose dtype was changed on its way into the model: `found` is the file's, `dtype` the model's.

    >>> Cast("fc.weight", DType.of("F32"), DType.of("F16"), lossy=True)
    Cast(path='fc.weight', found=F32, dtype=F16, lossy=True)
    """

    path: str
    found: DType
    dtype: DType
    lossy: bool


@dataclass(frozen=True, slots=True)
class Dialects:
    """Whose habits the file and the model follow, and how that is known; None where it does not matter.

    >>> Dialects("pytorch", "burn", "the file says format: pt").differ
    True
    """

    source: str | None
    model: str | None
    why: str

    @property
    def differ(self) -> bool:
        """Whether names or axes had to be translated."""
        return self.source is not None and self.model is not None and self.source != self.model


@dataclass(frozen=True, slots=True, repr=False)
class ApplyResult:
    """What became of every tensor of the model, and of every tensor of the file.

    `applied` and `errors` are in the model's order; `skipped` (left out by a filter), `missing` (in the model, not in the
    file; with the containers around it) and `unused` (in the file, not in the model) are sorted. `casts` lists changed dtypes,
    `renames` (name in the file, path in the model) where they differ, `key` is a part of the file that was taken by itself.

    >>> result = ApplyResult(applied=["fc.weight"], missing=[("fc.bias", "Struct:Net.Struct:Linear")], unused=["fc.bais"])
    >>> result.is_success()
    True
    >>> result.suggestions
    {'fc.bias': 'fc.bais'}
    >>> result.summary()
    '1 of 2 tensors is missing (fc.bias)'
    >>> result.print()
    ┌─ Tensor Loading Summary ─────────────────────────
    │
    │ ✓ Successfully applied: 1 tensors
    │ ⊘ Skipped (filtered):  0 tensors
    │ ✗ Missing in source:    1 tensors
    │ ? Unused in target:     1 tensors
    │ ! Errors:               0 errors
    │
    ├─ Missing Tensors (requested by model but not found in source)
    │
    │  First 10 missing tensors:
    │    • fc.bias
    │        Did you mean: 'fc.bais'?
    │
    ├─ Unused Tensors (in source but not used by model)
    │
    │  First 10 unused tensors:
    │    • fc.bais
    │
    └───────────────────────────────────────────────────
    """

    applied: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    errors: list[ApplyError] = field(default_factory=list)
    casts: list[Cast] = field(default_factory=list)
    renames: list[tuple[str, str]] = field(default_factory=list)
    dialects: Dialects | None = None
    warnings: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    source: str = ""
    model: str = ""
    key: str | None = None

    def is_success(self) -> bool:
        """Whether there are no errors. As in Burn, a missing tensor is none: a load without `partial=True` raises for it.

        >>> ApplyResult(errors=[ApplyError("LoadError", "fc.weight", message="the file ends before it")]).is_success()
        False
        """
        return not self.errors

    @property
    def suggestions(self) -> dict[str, str]:
        """For missing paths, the unused name that was probably meant; only those that are alike enough.

        Looked for when asked, and within a budget: for the first thousand missing paths, and in a file of many thousand unused
        names among those that begin or end as the path does.

        >>> ApplyResult(missing=[("net.Conv.bias", "Struct:Net.Enum:Kind")], unused=["net.bias"]).suggestions
        {'net.Conv.bias': 'net.bias'}
        """
        return self.first_suggestions(MOST_SUGGESTED)

    def first_suggestions(self, count: int) -> dict[str, str]:
        """The suggestions for the first `count` missing paths: what a report shows without asking for all of them.

        >>> ApplyResult(missing=[("a.bias", ""), ("b.bias", "")], unused=["a.bais"]).first_suggestions(1)
        {'a.bias': 'a.bais'}
        """
        paths = [path for path, _ in self.missing[:MOST_SUGGESTED]]
        letters = min(MOST_LETTERS, ALL_LETTERS // max(1, len(paths)))
        names = Suggestions(self.unused) if self.unused and paths else None
        found = ((path, names.closest(path, letters)) for path in paths[:count]) if names else ()
        return {path: name for path, name in found if name is not None}

    def summary(self) -> str:
        """The result in one line, for an error or a log.

        >>> ApplyResult(applied=["a", "b"], skipped=["c"]).summary()
        '2 of 3 tensors were applied, 1 was skipped'
        """
        from burnstore.outcome_text import summary_text

        return summary_text(self)

    def print(self, file: TextIO | None = None) -> None:
        """Print the report, to `file` or to standard output."""
        print(self, file=file)

    def to_dict(self) -> dict[str, object]:
        """Everything as lists, texts and numbers, ready for `json.dumps`.

        The keys are always these: `source`, `model`, `key`, `success`, `summary`; `applied`, `skipped`, `unused` (names);
        `missing` (`path`, `container`); `suggestions` (path: name); `errors` (`kind`, `path`, `expected`, `found`, `message`,
        with shapes as lists and dtypes as text); `casts` (`path`, `found`, `dtype`, `lossy`); `renames` (`name`, `path`);
        `dialects` (`source`, `model`, `why`, or None); `warnings`, `hints` (texts).

        >>> ApplyResult(casts=[Cast("a", DType.of("F32"), DType.of("F16"), lossy=True)]).to_dict()["casts"]
        [{'path': 'a', 'found': 'F32', 'dtype': 'F16', 'lossy': True}]
        """
        spoken = self.dialects
        return {
            "source": self.source,
            "model": self.model,
            "key": self.key,
            "success": self.is_success(),
            "summary": self.summary(),
            "applied": list(self.applied),
            "skipped": list(self.skipped),
            "missing": [{"path": path, "container": container} for path, container in self.missing],
            "unused": list(self.unused),
            "suggestions": self.suggestions,
            "errors": [_error_dict(error) for error in self.errors],
            "casts": [
                {"path": cast.path, "found": str(cast.found), "dtype": str(cast.dtype), "lossy": cast.lossy}
                for cast in self.casts
            ],
            "renames": [{"name": name, "path": path} for name, path in self.renames],
            "dialects": {"source": spoken.source, "model": spoken.model, "why": spoken.why} if spoken else None,
            "warnings": list(self.warnings),
            "hints": list(self.hints),
        }

    def __str__(self) -> str:
        from burnstore.outcome_text import result_text

        return result_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from burnstore.outcome_text import result_html

        return result_html(self)


def _error_dict(error: ApplyError) -> dict[str, object]:
    sides = {"expected": error.expected, "found": error.found}
    shown = {key: list(side) if isinstance(side, tuple) else side and str(side) for key, side in sides.items()}
    return {"kind": error.kind, "path": error.path, **shown, "message": error.message}
