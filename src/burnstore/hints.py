"""What to do next when a file does not fit a model: found from what is missing and what is unused.

Each hint is checked before it is given: it would make most of the names that it speaks of fit. The names are looked at once for
each of their dots, so that twenty thousand of them take no longer than opening the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from burnstore.dtypes import Shape
from burnstore.outcome import ApplyError
from burnstore.render import count_text, safe_text

Shapes = Mapping[str, Shape]

# A prefix of more parts than this is nobody's wrapper, and a name in a file may have any number of dots.
_MOST_PARTS = 16
_SHOWN = 3
_LONGEST_NAME = 100
# A prefix that can be written into a pattern and into a replacement without a second thought.
_PLAIN = re.compile(r"[A-Za-z0-9_.\-/:]{1,100}")
# What Burn and PyTorch call the two tensors of a norm.
_OTHER_NAME = {"gamma": "weight", "beta": "bias", "weight": "gamma", "bias": "beta"}
_NORM_ENDS = (".gamma", ".beta")
# More parts than this are no list in a list, and each part costs the length of the name.
_MOST_SEGMENTS = 64
_LONGEST_INDEX = 18


def find_hints(
    missing: Sequence[str], unused: Sequence[str], wanted: Shapes, found: Shapes, errors: Sequence[ApplyError]
) -> list[str]:
    """What would make most of the missing tensors fit, a line for each thing to try.

    `missing` and `unused` are the names that are left over, `wanted` all tensors of the model, `found` all of the file.

    >>> wanted = {"fc.weight": (2, 3), "fc.bias": (2,)}
    >>> found = {"module.fc.weight": (2, 3), "module.fc.bias": (2,)}
    >>> for hint in find_hints(list(wanted), list(found), wanted, found, []):
    ...     print(hint)
    every name in the file begins with 'module.': strip it with rename={r"^module\\.": ""}
    """
    hints: list[str] = []
    names = _Leftovers(missing, unused, wanted, found)
    stripped = names.prefixes_to_strip()
    added = None if stripped else names.prefix_to_add()
    if stripped:
        hints.append(_strip_hint(stripped, names))
        names = names.without(stripped[0])
    elif added is not None:
        hints.append(_add_hint(added))
        names = names.with_prefix(added)
    hints += _norm_hints(names)
    hints += _transposed_hints(errors)
    hints += _gap_hints(names)
    if not hints:
        hints += _stranger_hints(wanted, found)
    return hints


class _Leftovers:
    """The names on both sides that found no partner, under the renaming that was hinted at so far."""

    def __init__(self, missing: Iterable[str], unused: Iterable[str], wanted: Shapes, found: Shapes) -> None:
        self.missing = dict.fromkeys(missing)
        self.unused = dict.fromkeys(unused)
        self.wanted = wanted
        self.found = found

    def fits(self, path: str, name: str) -> bool:
        """Whether the tensor of the file could be the model's: of the same sizes, in whatever order a dialect has them."""
        one, other = self.wanted.get(path), self.found.get(name)
        return one is None or other is None or one == other or sorted(one) == sorted(other)

    def prefixes_to_strip(self) -> list[str]:
        """What most names of the file that begin with it only have to lose; several where each would do as well."""
        votes: dict[str, list[str]] = {}
        for name in self.unused:
            for head, tail in _cuts(name):
                # The names of norms may differ as well, which is another hint's matter.
                if any(path in self.missing and self.fits(path, name) for path in _spellings(tail)):
                    votes.setdefault(head, []).append(tail)
        return _elected(votes, self.found, self.wanted)

    def prefix_to_add(self) -> str | None:
        """What most names of the file only lack; nothing fits without it, since it would stand before every name."""
        if any(name in self.wanted for name in self.found):
            return None
        votes: dict[str, list[str]] = {}
        for path in self.missing:
            for head, tail in _cuts(path):
                if any(name in self.unused and self.fits(path, name) for name in _spellings(tail)):
                    votes.setdefault(head, []).append(tail)
        elected = _elected(votes, self.wanted, self.found)
        return elected[0] if elected and 2 * len(votes[elected[0]]) > len(self.found) else None

    def without(self, prefix: str) -> _Leftovers:
        return self._renamed(lambda name: name.removeprefix(prefix))

    def with_prefix(self, prefix: str) -> _Leftovers:
        return self._renamed(lambda name: prefix + name)

    def _renamed(self, rename: Callable[[str], str]) -> _Leftovers:
        found = {rename(name): shape for name, shape in self.found.items()}
        missing = (path for path in self.missing if path not in found)
        unused = (name for name in map(rename, self.unused) if name not in self.wanted)
        return _Leftovers(missing, unused, self.wanted, found)


def _elected(votes: Mapping[str, list[str]], names: Shapes, others: Shapes) -> list[str]:
    """The prefix with the most votes, and those that stand before the very same names.

    Most names that begin with it must have voted for it, and none may fit already: it would no longer.
    """
    if not votes:
        return []
    first = min(votes, key=lambda head: (-len(votes[head]), len(head), head))
    heirs = [name for name in names if name.startswith(first)]
    if 2 * len(votes[first]) <= len(heirs) or any(name in others for name in heirs):
        return []
    tails = set(votes[first])
    rivals = (head for head in votes if head != first and len(votes[head]) == len(tails) and tails.issuperset(votes[head]))
    return [first, *sorted(rivals)]


def _cuts(name: str) -> Iterator[tuple[str, str]]:
    """A name cut in two behind each of its first dots."""
    at = 0
    for _ in range(_MOST_PARTS):
        at = name.find(".", at) + 1
        if not at:
            return
        yield name[:at], name[at:]


def _spellings(name: str) -> tuple[str, ...]:
    """The name, and what another dialect may call it."""
    head, dot, last = name.rpartition(".")
    other = _OTHER_NAME.get(last)
    return (name, f"{head}{dot}{other}") if other else (name,)


def _strip_hint(prefixes: Sequence[str], names: _Leftovers) -> str:
    prefix, *rivals = prefixes
    count = sum(name.startswith(prefix) for name in names.found)
    if count == len(names.found):
        start = f"every name in the file begins with {_quoted(prefix)}"
    else:
        start = f"{count:,} of {len(names.found):,} names in the file begin with {_quoted(prefix)}"
    if rivals:
        start += f" (those with {' or '.join(map(_quoted, rivals[:_SHOWN]))} would fit as well: choose)"
    if _PLAIN.fullmatch(prefix) is None:
        return f"{start}, and the model's do not: strip it with rename="
    strip = f"rename={_rule(prefix)}"
    key, _, rest = prefix.partition(".")
    if not key.endswith("state_dict"):
        return f"{start}: strip it with {strip}"
    more = f" and rename={_rule(rest)}" if rest else ""
    return f'{start}: pass key="{key}"{more} if it is a .pt file, or strip it with {strip}'


def _rule(prefix: str) -> str:
    """A rule that takes the prefix away, as one types it."""
    return f'{{r"^{re.escape(prefix)}": ""}}'


def _add_hint(prefix: str) -> str:
    start = f"the model has under {_quoted(prefix)} what the file has at its top"
    if _PLAIN.fullmatch(prefix) is None:
        return f"{start}: add it with rename="
    return f'{start}: add it with rename={{r"^": "{prefix}"}}'


def _norm_hints(names: _Leftovers) -> list[str]:
    """Norms whose tensors are called gamma and beta on one side, weight and bias on the other."""
    ours = _norm_pairs(names.missing, names.unused)
    if ours:
        return [
            f"the model says gamma and beta where the file says weight and bias ({_pairs_text(ours)}): "
            'the file follows another dialect, pass dialect="pytorch"'
        ]
    theirs = _norm_pairs(names.unused, names.missing)
    if theirs:
        return [
            f"the file says gamma and beta where the model says weight and bias ({_pairs_text(theirs)}): "
            'if Burn wrote it pass dialect="burn", else rename={r"\\.gamma$": ".weight", r"\\.beta$": ".bias"}'
        ]
    return []


def _norm_pairs(mine: Iterable[str], theirs: Mapping[str, None]) -> list[str]:
    """The names in Burn's words that the other side has in PyTorch's, if most of them are."""
    norms = [name for name in mine if name.endswith(_NORM_ENDS)]
    pairs = [name for name in norms if _spellings(name)[1] in theirs]
    return pairs if 2 * len(pairs) > len(norms) else []


def _pairs_text(pairs: Sequence[str]) -> str:
    return f"{count_text(len(pairs), 'tensor')}, such as {_shown(pairs[0])}"


def _transposed_hints(errors: Sequence[ApplyError]) -> list[str]:
    """Matrices that differ only in which axis comes first."""
    shapes = [error for error in errors if error.kind == "ShapeMismatch"]
    swapped = [error for error in shapes if _is_swapped(error)]
    if not swapped or 2 * len(swapped) <= len(shapes):
        return []
    every = len(swapped) == len(shapes)
    who = "every shape that differs is" if every else f"{len(swapped):,} of {len(shapes):,} shapes that differ are"
    return [
        f"{who} the transpose of what the model wants ({_shown(swapped[0].path)}): the file may follow another dialect, "
        'pass dialect="pytorch" or dialect="burn"'
    ]


def _is_swapped(error: ApplyError) -> bool:
    one, other = error.expected, error.found
    return isinstance(one, tuple) and isinstance(other, tuple) and len(one) == 2 and one != other and one == other[::-1]


def _gap_hints(names: _Leftovers) -> list[str]:
    """Lists whose indices have holes in the file, and none in the model."""
    if not names.missing or not names.unused:
        return []
    lists = _indices(names.found)
    gaps = {head: indices for head, indices in lists.items() if max(indices) - min(indices) >= len(indices)}
    if not gaps:
        return []
    ranks = {head: {index: rank for rank, index in enumerate(sorted(indices))} for head, indices in lists.items()}
    before = after = moved = landed = 0
    for name in names.found:
        new = _renumbered(name, ranks)
        fits = new in names.wanted and names.fits(new, name)
        before += name in names.wanted and names.fits(name, name)
        after += fits
        moved += new != name
        landed += fits and new != name
    if after <= before or 2 * landed <= moved:
        return []
    head, indices = next(iter(gaps.items()))
    some = ", ".join(_shown(f"{head}{index}") for index in sorted(indices)[:_SHOWN])
    return [f"the file counts with gaps ({some}), the model without: pass map_indices_contiguous=True"]


def _indices(names: Iterable[str]) -> dict[str, set[int]]:
    """The indices of every list, by what stands before them."""
    lists: dict[str, set[int]] = {}
    for name in names:
        for head, index in _numbers(name):
            lists.setdefault(head, set()).add(index)
    return lists


def _numbers(name: str) -> Iterator[tuple[str, int]]:
    if name.count(".") > _MOST_SEGMENTS:
        return
    at = 0
    for segment in name.split("."):
        if segment.isascii() and segment.isdigit() and len(segment) <= _LONGEST_INDEX:
            yield name[:at], int(segment)
        at += len(segment) + 1


def _renumbered(name: str, ranks: Mapping[str, Mapping[int, int]]) -> str:
    for head, index in reversed(list(_numbers(name))):
        _, dot, rest = name[len(head) :].partition(".")
        name = f"{head}{ranks[head][index]}{dot}{rest}"
    return name


def _stranger_hints(wanted: Shapes, found: Shapes) -> list[str]:
    """A file of another model."""
    if not found or not wanted:
        return [f"the {'model' if found else 'file'} has no tensors"] if found or wanted else []
    if any(name in wanted for name in found):
        return []
    whose = f"none of the file's {len(found):,} names is" if len(found) > 1 else "the file's only name is not"
    return [f"{whose} a name of the model: the file has {_some(found)}; the model wants {_some(wanted)}"]


def _some(names: Iterable[str]) -> str:
    shown = [_shown(name) for name, _ in zip(names, range(_SHOWN + 1), strict=False)]
    return ", ".join(shown[:_SHOWN]) + (", …" if len(shown) > _SHOWN else "")


def _shown(name: str) -> str:
    return safe_text(name, _LONGEST_NAME)


def _quoted(name: str) -> str:
    return f"'{_shown(name)}'"
