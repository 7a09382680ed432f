"""The name that somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable

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
