"""Random patterns of Rust's and random names: short, odd, and likely to match."""

from __future__ import annotations

import random

LETTERS = "ab1._-Aé²\u0301\u200dſkK sß\x1f"
_LEAVES = (
    *"aabb1",
    *("\\.", "_", "-", "A", "k", "s", "é", ".", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "²", "ß", "\\x61"),
    *("[ab]", "[^a]", "[a-c1]", "[^\\w.]", "[\\d_]", "[a[b1]]", "[a[^b]]", "[^a[^b]]", "[^\\s]", "[]a]", "[\\w-]"),
    *("(?i:a)", "(?i:k)", "(?i:[^k])", "(?i:s)", "(?-u:\\w)", "(?s:.)"),
)
_PLACES = ("^", "$", "\\b", "\\B", "\\A", "\\z", "(?m:^)", "(?m:$)", "\\b{start}", "\\b{end}", "\\b{start-half}", "\\b{end-half}")
_COUNTS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,3}?", "{2,}", "{0}", "**")
_FLAGS = ("i", "s", "U", "-i", "m", "x", "i-s", "R")
REPLACEMENTS = ("#", "[$1|$2]", "<$0>", "${1}_", "$$1", "[$1][$2][$3]")


def pattern(draw: random.Random, depth: int) -> str:
    """A random pattern that Rust accepts."""
    kind = draw.random()
    if depth == 0 or kind < 0.3:
        return draw.choice(_LEAVES)
    if kind < 0.38:
        return draw.choice(_PLACES)
    if kind < 0.58:
        return "".join(pattern(draw, depth - 1) for _ in range(draw.randint(0, 4)))
    if kind < 0.73:
        branches = [pattern(draw, depth - 1) if draw.random() < 0.85 else "" for _ in range(draw.randint(1, 3))]
        return f"({'?:' if kind > 0.7 else ''}{'|'.join(branches)})"
    if kind < 0.77:
        return f"(?{draw.choice(_FLAGS)}{'):'[kind > 0.75]}{pattern(draw, depth - 1)}{')' * (kind > 0.75)}"
    return f"({'?:' if draw.random() < 0.5 else ''}{pattern(draw, depth - 1)}){draw.choice(_COUNTS)}"


def name(draw: random.Random) -> str:
    """A random name that can stand on a line of its own."""
    return f"a{''.join(draw.choice(LETTERS) for _ in range(draw.randint(0, 8)))}b"
