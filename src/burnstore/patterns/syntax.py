"""The grammar of Rust's `regex` crate, read into a small tree.

Python reads many patterns otherwise than Rust, and some of Rust's not at all, so the pattern is not handed on as text: it is
read as Rust reads it, and what Rust refuses is refused here. Four things that Rust accepts are refused too, with another way
to write them: `\\p`, `[[:alpha:]]` and the set operations `&&`, `--` and `~~`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from burnstore.errors import UsageError
from burnstore.patterns.tree import Alternate, Concat, Group, Item, Leaf, Look, Node, Repeat, Syntax, inner_nodes

_DEEPEST = 250  # Rust's nest_limit
_META = frozenset("*+?{")
_CONTROL = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_HEX = {"x": 2, "u": 4, "U": 8}
_SPACE = frozenset("\t\n\v\f\r \x85\u200e\u200f\u2028\u2029")  # what (?x) skips: Unicode's Pattern_White_Space
_COUNT = re.compile(r"\{\s*([0-9]+)\s*(?:(,)\s*([0-9]+)?\s*)?\}")
_NAME = re.compile(r"(?!\d)[\w.\[\]]+\Z")
_POSIX = {
    "alnum": "[0-9A-Za-z]",
    "alpha": "[A-Za-z]",
    "ascii": r"[\x00-\x7f]",
    "blank": r"[\t ]",
    "cntrl": r"[\x00-\x1f\x7f]",
    "digit": "[0-9]",
    "graph": "[!-~]",
    "lower": "[a-z]",
    "print": "[ -~]",
    "punct": "[!-/:-@\\[-`{-~]",
    "space": r"[\t-\r ]",
    "upper": "[A-Z]",
    "word": "[0-9A-Za-z_]",
    "xdigit": "[0-9A-Fa-f]",
}
_POSIX_CLASS = re.compile(rf"\[:(\^?)({'|'.join(_POSIX)}):\]")
_INSTEAD = {
    "&&": "list the characters that are meant",
    "--": "list the characters that are meant, or write \\- for a hyphen",
    "~~": "list the characters that are meant",
}


@dataclass(slots=True)
class _Frame:
    """A group that is still open: the branches before the last `|`, and the parts after it."""

    at: int
    flags: frozenset[str]
    index: int | None
    branches: list[Node]
    parts: list[Node]
    # Whether there is something that `*` could repeat: `(?i)` is not.
    repeatable: bool = False

    def close(self) -> Node:
        last: Node = self.parts[0] if len(self.parts) == 1 else Concat(tuple(self.parts))
        body = Alternate((*self.branches, last)) if self.branches else last
        return body if self.index is None else Group(body, self.index)


def parse(pattern: str) -> Syntax:
    """The tree of a pattern, read as Rust reads it.

    >>> parse("(?<n>a)").names
    {'n': 1}
    """
    reader = _Reader(pattern)
    root = reader.read()
    depths = [(root, 1)]
    while depths:
        node, depth = depths.pop()
        if depth > _DEEPEST:
            raise UsageError("the pattern is nested too deeply", where=f"regex '{pattern}'", do="write it with fewer groups")
        depths += [(inner, depth + 1) for inner in inner_nodes(node)]
    return Syntax(root, reader.groups, reader.names)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags: frozenset[str] = frozenset("u")
        self.groups = 0
        self.names: dict[str, int] = {}

    def refuse(self, what: str, do: str, at: int | None = None) -> NoReturn:
        raise UsageError(what, where=f"regex '{self.text}', character {(self.at if at is None else at) + 1}", do=do)

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def skip_space(self) -> None:
        """With (?x), pass over white space and comments."""
        while "x" in self.flags and (c := self.peek()):
            if c == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end + 1
            elif c in _SPACE:
                self.at += 1
            else:
                return

    # --- the pattern

    def read(self) -> Node:
        stack = [_Frame(0, self.flags, None, [], [])]
        while True:
            self.skip_space()
            frame, c = stack[-1], self.peek()
            if not c:
                break
            if c == "(":
                opened = self.open_group()
                if opened is None:
                    frame.repeatable = False
                else:
                    stack.append(opened)
                continue
            if c == ")":
                if len(stack) == 1:
                    self.refuse("this parenthesis closes nothing", "write \\) for a parenthesis")
                self.at += 1
                self.flags = frame.flags
                stack.pop()
                stack[-1].parts.append(frame.close())
                stack[-1].repeatable = True
            elif c == "|":
                self.at += 1
                frame.branches.append(frame.parts[0] if len(frame.parts) == 1 else Concat(tuple(frame.parts)))
                frame.parts, frame.repeatable = [], False
            elif c in _META:
                if not frame.repeatable:
                    self.refuse(f"there is nothing that {c} could repeat", f"write \\{c} for the character itself")
                frame.parts.append(self.repeat(frame.parts.pop()))
            else:
                frame.parts.append(self.one())
                frame.repeatable = True
        if len(stack) > 1:
            self.refuse("this group is not closed", "add a )", stack[-1].at)
        return stack[0].close()

    def one(self) -> Node:
        """A character, a class, or a place."""
        c = self.peek()
        if c == "[":
            return self.char_class(0)
        if c == "\\":
            return self.escape()
        self.at += 1
        if c == ".":
            if "u" not in self.flags:
                self.refuse("Rust allows no . where Unicode is off", "leave (?-u) out", self.at - 1)
            ends = () if "s" in self.flags else ("\n", "\r") if "R" in self.flags else ("\n",)
            return Leaf(tuple((end, end) for end in ends) or (("\0", "\U0010ffff"),), negated=bool(ends))
        if c in "^$":
            edge = "start" if c == "^" else "end"
            many = "m" in self.flags
            return Look(f"{'crlf' if 'R' in self.flags else 'line'}_{edge}" if many else edge)
        return self.literal(c)

    def literal(self, c: str) -> Leaf:
        return Leaf(((c, c),), fold="i" in self.flags, ascii="u" not in self.flags and c.isascii())

    def repeat(self, body: Node) -> Repeat:
        c, begin = self.peek(), self.at
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(c, (0, 0))
        self.at += 1
        if c == "{":
            found = _COUNT.match(self.text, begin)
            if not found:
                self.refuse("this is no count of repetitions", "write {2}, {2,} or {2,5}, or \\{ for a brace", begin)
            self.at = found.end()
            least = int(found[1][:20])
            most = int(found[3][:20]) if found[3] else None if found[2] else least
            if max(least, most or 0) >= 1 << 32 or (most is not None and most < least):
                self.refuse("this count of repetitions is impossible", "give the smaller number first", begin)
        self.skip_space()
        lazy = self.peek() == "?"
        self.at += lazy
        return Repeat(body, least, most, greedy=lazy == ("U" in self.flags))

    # --- groups and flags

    def open_group(self) -> _Frame | None:
        """The frame of a new group; None if it only sets flags."""
        begin = self.at
        self.at += 1
        self.skip_space()
        if self.peek() != "?":
            return self.frame(begin, self.new_group())
        self.at += 1
        rest = self.peek(2)
        if rest[:1] in ("=", "!") or rest in ("<=", "<!"):
            self.refuse("Rust has no look-around", "say what the name is, not what stands around it; a group keeps a part", begin)
        if rest == "P<" or rest[:1] == "<":
            self.at += 2 if rest == "P<" else 1
            end = self.text.find(">", self.at)
            name = self.text[self.at : end]
            if end < 0 or not _NAME.match(name):
                self.refuse("this is no name for a group", "write (?<name>...) with letters, digits and _", begin)
            self.at = end + 1
            if name in self.names:
                self.refuse(f"two groups are called {name!r}", "rename one", begin)
            self.names[name] = self.groups + 1
            return self.frame(begin, self.new_group())
        return self.set_flags(begin)

    def new_group(self) -> int:
        self.groups += 1
        return self.groups

    def frame(self, begin: int, index: int | None) -> _Frame:
        return _Frame(begin, self.flags, index, [], [])

    def set_flags(self, begin: int) -> _Frame | None:
        on, seen, sign = set(self.flags), "", True
        while True:
            c = self.peek()
            self.at += 1
            if c == "-" and sign:
                sign, dangling = False, self.at
            elif c and c in "imsRUux" and c not in seen:
                seen += c
                (on.add if sign else on.discard)(c)
            elif c == ")" or c == ":":
                break
            else:
                known = "Rust knows (?:...), (?<name>...) and the flags i, m, s, R, U, u and x, each once"
                self.refuse("Rust cannot read what follows (?", known, begin)
        if (not sign and dangling == self.at - 1) or (c == ")" and not seen):
            self.refuse("a flag is missing", "write (?i) or (?-i)", begin)
        opened = self.frame(begin, None) if c == ":" else None
        self.flags = frozenset(on)
        return opened

    # --- escapes

    def escape(self) -> Node:
        begin = self.at
        c = self.text[begin + 1 : begin + 2]
        self.at += 2
        ascii = "u" not in self.flags
        if c and c in "dDsSwW":
            return Leaf((self.named(c, begin),), ascii=ascii)
        if c == "b" and self.peek() == "{":
            end = self.text.find("}", self.at)
            word = self.text[self.at + 1 : max(end, self.at)]
            if end < 0 or re.match(r"[-A-Za-z]", word):
                if end < 0 or word not in ("start", "end", "start-half", "end-half"):
                    self.refuse("this is no word boundary", "write \\b{start}, \\b{end}, \\b{start-half} or \\b{end-half}", begin)
                self.at = end + 1
                return Look(f"word_{word.replace('-', '_')}", ascii)
        place = {"A": "start", "z": "end", "b": "word", "B": "not_word", "<": "word_start", ">": "word_end"}.get(c)
        if place:
            if ascii and c == "B":
                self.refuse("Rust allows no \\B where Unicode is off", "leave (?-u) out", begin)
            return Look(place, ascii and "word" in place)
        return self.literal(self.escaped_char(c, begin))

    def named(self, c: str, begin: int) -> str:
        if c.isupper() and "u" not in self.flags:
            self.refuse(f"Rust allows no \\{c} where Unicode is off", "leave (?-u) out", begin)
        return c

    def escaped_char(self, c: str, begin: int) -> str:
        """The character that an escape stands for, the place being behind its letter."""
        if c in _CONTROL:
            return _CONTROL[c]
        if c in _HEX:
            return self.hex_char(_HEX[c], begin)
        if c and c.isascii() and not c.isalnum() and c not in "<>":
            return c
        if not c:
            self.refuse("the pattern ends with a backslash", "write \\\\ for a backslash", begin)
        if c.isdigit():
            self.refuse("Rust has no backreferences", "repeat the expression of the group; \\1 is for replacements", begin)
        if c in "pP":
            self.refuse(
                f"\\{c} is not supported", "write \\w for letters and digits, \\d for digits, or a class like [A-Z]", begin
            )
        do = "write \\z or $ for the end" if c == "Z" else f"write {c} if that is meant"
        return self.refuse(f"Rust does not know \\{c}", do, begin)

    def hex_char(self, digits: int, begin: int) -> str:
        self.skip_space()
        braced = self.peek() == "{"
        end = self.text.find("}", self.at) if braced else self.at + digits
        text = "".join(self.text[self.at + braced : max(end, 0)].split() if "x" in self.flags or braced else self.peek(digits))
        number = int(text, 16) if re.fullmatch(r"[0-9A-Fa-f]+", text) else -1
        if end < 0 or end > len(self.text) or not 0 <= number < 0x110000 or 0xD800 <= number < 0xE000:
            self.refuse("this is no character's number", "write \\x41, \\u0041 or \\x{41}", begin)
        if number > 0x7F and "u" not in self.flags and digits == 2 and not braced:
            self.refuse("Rust allows no such byte where Unicode is off", "leave (?-u) out", begin)
        self.at = end + braced
        return chr(number)

    # --- classes

    def char_class(self, depth: int) -> Leaf:
        begin = self.at
        if depth > _DEEPEST:
            self.refuse("the class is nested too deeply", "list its characters in one class", begin)
        self.at += 1
        self.skip_space()
        negated = self.peek() == "^"
        self.at += negated
        items: list[Item] = []
        others: list[Leaf] = []
        self.skip_space()
        while self.peek() == "-":
            self.at += 1
            items.append(("-", "-"))
            self.skip_space()
        if self.peek() == "]" and not items:
            self.at += 1
            items.append(("]", "]"))
        while True:
            self.skip_space()
            c, two = self.peek(), self.peek(2)
            if not c:
                self.refuse("this class is not closed", "add a ], or write \\[ for a bracket", begin)
            if c == "]":
                break
            if two in _INSTEAD:
                self.refuse(f"{two} within a class is not supported", _INSTEAD[two])
            if c == "[":
                self.nested(items, others, depth)
            else:
                items.append(self.class_item())
        self.at += 1
        if "u" not in self.flags and (negated or any(not item[-1].isascii() for item in items)):
            self.refuse("Rust allows only ASCII classes where Unicode is off", "leave (?-u) out", begin)
        return Leaf(tuple(items), negated, tuple(others), "i" in self.flags, "u" not in self.flags)

    def nested(self, items: list[Item], others: list[Leaf], depth: int) -> None:
        posix = _POSIX_CLASS.match(self.text, self.at)
        if posix:
            spelled = _POSIX[posix[2]]
            self.refuse(f"{posix[0]} is not supported", f"write {'[^' + spelled[1:] if posix[1] else spelled} for [{posix[0]}]")
        inner = self.char_class(depth + 1)
        if inner.negated:
            others.append(inner)
        else:
            items += inner.items
            others += inner.others

    def class_item(self) -> Item:
        begin = self.at
        first = self.class_char()
        self.skip_space()
        following = self.text[self.at + 1 :].lstrip("".join(_SPACE))[:1] if "x" in self.flags else self.peek(2)[1:]
        if self.peek() != "-" or following in ("]", "-", ""):
            return first if isinstance(first, str) else (first[0], first[0])
        self.at += 1
        self.skip_space()
        last = self.class_char()
        if isinstance(first, str) or isinstance(last, str):
            self.refuse("a range must go from one character to another", "write \\- for a hyphen", begin)
        if first[0] > last[0]:
            self.refuse("this range ends before it begins", "give the smaller character first", begin)
        return first[0], last[0]

    def class_char(self) -> Item:
        begin, c = self.at, self.peek()
        self.at += 1
        if c == "\\":
            c = self.peek()
            self.at += 1
            if c and c in "dDsSwW":
                return self.named(c, begin)
            c = self.escaped_char(c, begin)
        return c, c
