"""How facts look: as text in a terminal, as HTML in a notebook. Names from files are never trusted to be harmless."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from burnstore.errors import one_line

if TYPE_CHECKING:
    from burnstore.report import Description, Verification
    from burnstore.snapshot import TensorSnapshot
    from burnstore.store import Store

_ROWS = 10
_DATA_PARALLEL = "module."


def size_text(nbytes: int) -> str:
    """A size as people read it.

    >>> size_text(136), size_text(2_500_000_000)
    ('136 B', '2.5 GB')
    """
    size = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.95:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def safe_text(text: str, limit: int = 80) -> str:
    """A name as one line without control characters.

    >>> print(safe_text("a\\x1b[31m\\n"))
    a\\x1b[31m\\n
    """
    shown = one_line(text[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def _cells(snapshot: TensorSnapshot) -> tuple[str, str, str, str]:
    return (
        safe_text(snapshot.name),
        safe_text(str(snapshot.dtype), 40),
        safe_text(str(list(snapshot.shape)), 40),
        size_text(snapshot.nbytes),
    )


def _first(store: Store) -> tuple[list[tuple[str, str, str, str]], int]:
    names = list(store)
    return [_cells(store[name]) for name in names[:_ROWS]], max(0, len(names) - _ROWS)


def store_text(store: Store) -> str:
    """A short table of a store."""
    rows, more = _first(store)
    lines = [f"{safe_text(store.name)} · {store.format} · {count_text(len(store), 'tensor')} · {size_text(store.nbytes)}"]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for name, dtype, shape, size in rows:
        lines.append(f"  {name:<{widths[0]}}  {dtype:<{widths[1]}}  {shape:<{widths[2]}}  {size:>{widths[3]}}")
    if more:
        lines.append(f"  … and {more:,} more")
    lines += [f"  {line}" for line in _hints(store)]
    return "\n".join(lines)


def _hints(store: Store) -> list[str]:
    """What somebody who looks at a PyTorch file may want to do next, in words."""
    contents: object = store.contents
    nests: list[str] = getattr(contents, "nests", list)()
    hints = []
    if nests:
        hints.append(f"the weights may be under {names_text(nests)}: burnstore.open(path, key={nests[0]!r})")
    if store.format == "pytorch" and store and all(name.startswith(_DATA_PARALLEL) for name in store):
        hints.append(f"all names begin with {_DATA_PARALLEL!r}, which DataParallel adds: name.removeprefix({_DATA_PARALLEL!r})")
    return hints


def store_html(store: Store) -> str:
    """The same table for a notebook."""
    from html import escape

    rows, more = _first(store)
    head = "".join(f"<th style='text-align:left'>{cell}</th>" for cell in ("name", "dtype", "shape", "size"))
    body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    foot = f"<tr><td colspan='4'>… and {more:,} more</td></tr>" if more else ""
    foot += "".join(f"<tr><td colspan='4'>{escape(line)}</td></tr>" for line in _hints(store))
    title = f"{safe_text(store.name)} · {store.format} · {count_text(len(store), 'tensor')} · {size_text(store.nbytes)}"
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}{foot}</tbody></table>"


def text_html(text: str) -> str:
    """A line of text for a notebook.

    >>> text_html("<memory>")
    '<p>&lt;memory&gt;</p>'
    """
    from html import escape

    return f"<p>{escape(text)}</p>"


def count_text(count: int, word: str) -> str:
    """A number and its noun.

    >>> count_text(1, "tensor"), count_text(20000, "tensor")
    ('1 tensor', '20,000 tensors')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def names_text(names: Iterable[str], limit: int = 5) -> str:
    """Some names for a message.

    >>> names_text(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = [safe_text(name) for name in names]
    more = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {more:,} more" if more > 0 else "")


def verification_text(report: Verification) -> str:
    """What `verify` found, a line a fact."""
    verdict = "ok" if report.ok else count_text(len(report.problems), "problem")
    lines = [
        f"{safe_text(report.name)}: {verdict} ({report.format or 'unknown format'}, {count_text(report.tensors, 'tensor')}, "
        f"{count_text(report.nbytes, 'byte')})"
    ]
    lines += [f"  problem: {one_line(problem)}" for problem in report.problems]
    lines += [f"  oddity: {one_line(oddity)}" for oddity in report.oddities]
    return "\n".join(lines)


def description_text(described: Description) -> str:
    """What `describe` found, a line a name; those that are not known are marked."""
    unknown = sum(not entry.known for entry in described)
    lines = [f"{safe_text(described.store)}: {count_text(len(described), 'name')} in its pickle, {unknown:,} of them not known"]
    lines += [f"  {safe_text(detail)}" for detail in described.details]
    width = max((len(f"{entry.offset}") for entry in described), default=0)
    lines += [f"  offset {entry.offset:>{width}}  {' ' if entry.known else '?'}  {safe_text(entry.name)}" for entry in described]
    return "\n".join(lines)
