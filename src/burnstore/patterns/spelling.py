"""A pattern of Rust's in Python's spelling.

Python and Rust agree on ASCII letters and digits and differ beyond: Rust's `\\w` takes combining marks and leaves out `²`, its
`\\s` leaves out four control characters. So each pattern has two spellings: a plain one for texts in ASCII, which names nearly
always are, and a wide one with Rust's sets written out.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from burnstore.patterns.tree import Alternate, Concat, Group, Item, Leaf, Look, Node, Repeat, inner_nodes

_SPACES = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_NOT_SPACES = (
    "\\x00-\\x08\\x0e-\\x1f!-\\x84\\x86-\\x9f\\xa1-\\u167f\\u1681-\\u1fff\\u200b-\\u2027"
    "\\u202a-\\u202e\\u2030-\\u205e\\u2060-\\u2fff\\u3001-\\U0010ffff"
)
_ASCII = {"d": "0-9", "s": "\\t-\\r ", "w": "0-9A-Za-z_"}
_PLAIN = {"d": "0-9", "D": "\\D", "s": "\\t-\\r ", "S": _NOT_SPACES, "w": "\\w", "W": "\\W"}
# Alphabetic, but neither letters nor marks: letters in circles and squares; then the two joiners.
_MORE_WORD = ((0x24B6, 0x24EA), (0x1F130, 0x1F14A), (0x1F150, 0x1F16A), (0x1F170, 0x1F18A), (0x200C, 0x200E))
_WORD_KINDS = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Mn", "Mc", "Me", "Nd", "Pc"))
# Beyond these planes Unicode has nothing that belongs to words but the variation selectors.
_PLANES = ((0, 0x40000), (0xE0100, 0xE01F0))


@cache
def _words() -> tuple[str, str]:
    """The insides of two classes: what Rust's `\\w` takes, and the rest."""
    members = {n for begin, end in _PLANES for n in range(begin, end) if unicodedata.category(chr(n)) in _WORD_KINDS}
    members.update(n for begin, end in _MORE_WORD for n in range(begin, end))
    inside, outside, begin, before = [], [], -1, -1
    for number in [*sorted(members), 0x110000]:
        if number != before + 1:
            if begin >= 0:
                inside.append(f"{_class_char(chr(begin))}-{_class_char(chr(before))}")
            outside.append(f"{_class_char(chr(before + 1))}-{_class_char(chr(number - 1))}")
            begin = number
        before = number
    return "".join(inside), "".join(outside)


def is_word(c: str, ascii: bool = False) -> bool:
    """Whether a character is one of Rust's `\\w`; nothing is not.

    >>> is_word("e"), is_word("\\u0301"), is_word(".")
    (True, True, False)
    """
    if not c or c.isascii() or ascii:
        return c.isascii() and (c.isalnum() or c == "_")
    return any(b <= ord(c) < e for b, e in _MORE_WORD) or unicodedata.category(c) in _WORD_KINDS


def _class_char(c: str) -> str:
    return c if c.isalnum() else f"\\U{ord(c):08x}" if not c.isascii() or not c.isprintable() else f"\\{c}"


def _item_text(item: Item, ascii: bool, wide: bool) -> str:
    if isinstance(item, tuple):
        first, last = item
        return _class_char(first) if first == last else f"{_class_char(first)}-{_class_char(last)}"
    if ascii:
        return _ASCII[item]
    if not wide:
        return _PLAIN[item]
    if item in "wW":
        return _words()[item == "W"]
    return {"s": _SPACES, "S": _NOT_SPACES}.get(item, f"\\{item}")


def leaf_text(leaf: Leaf, wide: bool = False) -> str:
    """A pattern of Python's for one character.

    >>> leaf_text(Leaf((("a", "z"), "d"), negated=True))
    '[^a-z0-9]'
    """
    text = _unfolded(leaf, wide)
    flags = "a" * leaf.ascii + "i" * leaf.fold
    return f"(?{flags}:{text})" if flags else text


def _unfolded(leaf: Leaf, wide: bool) -> str:
    if is_literal(leaf):
        return re.escape(leaf.items[0][0])
    body = "".join(_item_text(item, leaf.ascii, wide) for item in leaf.items)
    if not leaf.others:
        return f"[{'^' if leaf.negated else ''}{body}]"
    any_of = "|".join([f"[{body}]"] * bool(body) + [leaf_text(other, wide) for other in leaf.others])
    return f"(?:(?!{any_of})[\\s\\S])" if leaf.negated else f"(?:{any_of})"


def is_literal(node: Node) -> bool:
    """Whether a node is one character and nothing else.

    >>> is_literal(Leaf((("a", "a"),))), is_literal(Leaf((("a", "b"),)))
    (True, False)
    """
    if not isinstance(node, Leaf) or node.negated or node.others or len(node.items) != 1:
        return False
    return isinstance(node.items[0], tuple) and node.items[0][0] == node.items[0][1]


_CRLF = {"crlf_start": "(?:\\A|(?<=\\n)|(?<=\\r)(?!\\n))", "crlf_end": "(?:\\Z|(?=\\r)|(?<!\\r)(?=\\n))"}
_PLACES = {"start": "\\A", "end": "\\Z", "line_start": "(?m:^)", "line_end": "(?m:$)", **_CRLF}
_WORD_PLACES = {
    "word": "(?:(?<=W)(?!W)|(?<!W)(?=W))",
    "not_word": "(?:(?<=W)(?=W)|(?<!W)(?!W))",
    "word_start": "(?<!W)(?=W)",
    "word_end": "(?<=W)(?!W)",
    "word_start_half": "(?<!W)",
    "word_end_half": "(?!W)",
}


def _look_text(look: Look, wide: bool) -> str:
    if look.kind in _PLACES:
        return _PLACES[look.kind]
    if not wide and look.kind == "word":
        return "\\b"
    word = f"[{_item_text('w', look.ascii, wide)}]"
    return f"(?:{_WORD_PLACES[look.kind].replace('W', word)})"


def spell(node: Node, wide: bool = False) -> str:
    """A tree as a pattern of Python's; `wide` is for texts beyond ASCII.

    >>> from burnstore.patterns.syntax import parse
    >>> spell(parse(r"(?<n>\\d+)\\.(?i)w$").root)
    '([0-9]+)\\\\.(?i:w)\\\\Z'
    """
    match node:
        case Leaf():
            return leaf_text(node, wide)
        case Look():
            return _look_text(node, wide)
        case Group(body):
            return f"({spell(body, wide)})"
        case Alternate(branches):
            return f"(?:{'|'.join(spell(branch, wide) for branch in branches)})"
        case Repeat():
            return _repeat_text(node, wide)
        case Concat(parts):
            return _concat_text(parts, wide)


def _repeat_text(node: Repeat, wide: bool) -> str:
    body = spell(node.body, wide)
    if not isinstance(node.body, Leaf | Group | Alternate):
        body = f"(?:{body})"
    counts = f"{{{node.least},{'' if node.most is None else node.most}}}"
    sign = {"{0,}": "*", "{1,}": "+", "{0,1}": "?"}.get(counts, counts)
    return f"{body}{sign}{'' if node.greedy else '?'}"


def _concat_text(parts: tuple[Node, ...], wide: bool) -> str:
    texts: list[str] = []
    run: list[str] = []  # letters of either case, together: (?i:abc)
    for part in parts:
        if isinstance(part, Leaf) and part.fold and not part.ascii and is_literal(part):
            run.append(_unfolded(part, wide))
            continue
        if run:
            texts.append(f"(?i:{''.join(run)})")
            run = []
        texts.append(spell(part, wide))
    if run:
        texts.append(f"(?i:{''.join(run)})")
    return "".join(texts)


def reads_alike(node: Node) -> bool:
    """Whether both spellings of a tree are the same.

    >>> from burnstore.patterns.syntax import parse
    >>> reads_alike(parse("^a.b$").root), reads_alike(parse(r"\\w").root)
    (True, False)
    """
    if isinstance(node, Look) and node.kind not in _PLACES:
        return False
    if isinstance(node, Leaf) and any(isinstance(item, str) for item in node.items):
        return False
    return all(reads_alike(inner) for inner in inner_nodes(node))
