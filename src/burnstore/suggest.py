"""The name that somebody probably meant."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

# Burn's threshold: below it a suggestion is a guess.
THRESHOLD = 0.7
# Comparing costs the product of both lengths, and a file can have any number of names: the likeliest ones are looked at.
_MOST_COMPARISONS = 2_000_000


def similarity(a: str, b: str) -> float:
    """Jaro similarity as Burn computes it.

    >>> round(similarity("norm.gamma", "norm.weight"), 8)
    0.71515152
    >>> round(similarity("conv1.weight", "conv2.weight"), 8)
    0.94444444
    """
    if not a or not b:
        return float(a == b)
    if len(a) == len(b) == 1:
        return float(a == b)
    reach = max(len(a), len(b)) // 2 - 1
    used = [False] * len(b)
    matches = swaps = last = 0
    for i, letter in enumerate(a):
        for j in range(max(0, i - reach), min(len(b) - 1, i + reach) + 1):
            if not used[j] and b[j] == letter:
                used[j] = True
                matches += 1
                swaps += j < last
                last = j
                break
    if not matches:
        return 0.0
    return (matches / len(a) + matches / len(b) + (matches - swaps) / matches) / 3


def _shared(a: str, b: str) -> int:
    """How many letters two names begin with alike."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def closest(name: str, names: Iterable[str]) -> str | None:
    """The most similar of `names`, if it is similar enough; of equals the first in the alphabet.

    >>> closest("conv1.wieght", ["conv1.weight", "conv1.bias"])
    'conv1.weight'
    """
    best, score, left = None, THRESHOLD, _MOST_COMPARISONS
    for candidate in sorted(names, key=lambda other: (-_shared(name, other), other)):
        short, long = sorted((len(name), len(candidate)))
        if (2 + short / max(1, long)) / 3 < THRESHOLD:  # no letters in common could make up for the length
            continue
        cost = len(name) * len(candidate)
        if cost > left:
            continue
        left -= cost
        this = similarity(name, candidate)
        if this > score or (this == score and (best is None or candidate < best)):
            best, score = candidate, this
    return best


# Many paths among many names.

# Paths longer than this are not compared.
_LONGEST_PATH = 600
MOST_SUGGESTED = 1000
# Comparing costs the product of both lengths: for one path, and for all of them together.
MOST_LETTERS = 250_000
ALL_LETTERS = 25_000_000
# Up to so many names are all looked at; of more, so many on each side of the place where the path would stand.
_FEW = 500
_NEIGHBORS = 16
# A layer's other names end alike: among so many on each side the one with the path's own numbers is looked for.
_NEIGHBORHOOD = 200
_NUMBERS = re.compile("[0-9]+")


class Suggestions:
    """Names to be suggested, sorted in such a way that the likely ones are found without looking at all."""

    def __init__(self, names: Sequence[str]) -> None:
        self._known = set(names)
        self._sorted = sorted(self._known)
        few = len(self._sorted) <= _FEW
        self._backward = [] if few else sorted(name[::-1] for name in self._sorted)
        self._slots: dict[tuple[str, int], int] = {}
        self._masks: dict[str, int] = {}

    def closest(self, path: str, letters: int) -> str | None:
        """The name without an enum's variant if there is one, else the most similar name; of equals the first in the alphabet."""
        stripped = without_variant(path)
        if stripped in self._known:
            return stripped
        if len(path) > _LONGEST_PATH:
            return None
        best, score = None, THRESHOLD
        for bound, name in sorted(self._bounded(path), key=lambda pair: (-pair[0], pair[1])):
            if bound < score:
                break
            letters -= len(path) * len(name)
            if letters < 0:
                break
            this = similarity(path, name)
            if this > score or (this == score and (best is None or name < best)):
                best, score = name, this
        return best

    def _bounded(self, path: str) -> Iterator[tuple[float, str]]:
        """Names that may be similar enough, and how similar at most: by the letters that they share, wherever these stand."""
        mine = self._mask(path)
        for name in self._candidates(path):
            short, long = sorted((len(path), len(name)))
            if not short or (2 + short / long) / 3 < THRESHOLD:  # no letters in common could make up for the length
                continue
            shared = (mine & self._mask(name)).bit_count()
            bound = (shared / len(path) + shared / len(name) + 1) / 3 + 1e-9
            if bound >= THRESHOLD:
                yield bound, name

    def _candidates(self, path: str) -> Sequence[str] | set[str]:
        if len(self._sorted) <= _FEW:
            return self._sorted
        near = set(_around(self._sorted, path, _NEIGHBORS))
        backward = path[::-1]
        near.update(name[::-1] for name in _around(self._backward, backward, _NEIGHBORS))
        numbers = _NUMBERS.findall(backward)
        for name in _around(self._backward, backward, _NEIGHBORHOOD):
            if numbers == _NUMBERS.findall(name):
                near.add(name[::-1])
        return near

    def _mask(self, name: str) -> int:
        """A bit for the first a, one for the second a, and so on: common bits are letters in common."""
        mask = self._masks.get(name)
        if mask is None:
            mask, counts = 0, dict[str, int]()
            for letter in name:
                count = counts[letter] = counts.get(letter, 0) + 1
                mask |= 1 << self._slots.setdefault((letter, count), len(self._slots))
            self._masks[name] = mask
        return mask


def _around(names: list[str], name: str, reach: int) -> list[str]:
    at = bisect_left(names, name)
    return names[max(0, at - reach) : at + reach]


def without_variant(path: str) -> str | None:
    """The path without its first segment that looks like an enum's variant, as Burn guesses it.

    >>> without_variant("field.BaseConv.weight")
    'field.weight'
    """
    segments = path.split(".")
    for at, segment in enumerate(segments[1:-1], 1):
        if segment[:1].isupper() and any(letter.islower() for letter in segment[1:]):
            return ".".join(segments[:at] + segments[at + 1 :])
    return None
