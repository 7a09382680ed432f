"""Pickles as data. The machine that runs their opcodes, and what it is guarded against.

A pickle is a program. Python's own interpreter of it imports what it names and calls what it likes, so loading a file is
running it. This one knows a closed world: an opcode makes one of the plain nodes of `nodes.py` or fails.

    code            nothing is imported, looked up or called; a name is two texts, a call a node that remembers it
    memory          no number of the file sizes anything; lengths are compared with the bytes that follow; the memo is a dict
    time            an opcode costs what its bytes cost: nothing is copied, hashed, compared or printed through a reference
                    (a tuple shared 2**60 times would never end), and a long number is refused
    depth           no recursion: nesting is depth of lists, not of calls
    truncation      an end in the middle is an error of its own, so that a reader may offer more bytes

Errors say the offset in the pickle and the opcode. The handlers are in `opcodes.py`; `entries.py` takes the opcodes of a
whole tensor at once, in the order in which torch writes them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NoReturn

from burnstore.errors import FormatError, TruncatedError
from burnstore.formats.pytorch.nodes import Global, shown

# Takes the persistent id and its offset, and gives the node that stands for it.
Persistent = Callable[[object, int], object]


class PickleFaultError(Exception):
    """What a handler found wrong; the machine adds where."""


class PickleEndedError(Exception):
    """The pickle ends in the middle."""


class Machine:
    """One run over the bytes of one or more pickles that follow one another."""

    __slots__ = (
        "below",
        "data",
        "entries",
        "globals",
        "memo",
        "memo_end",
        "name",
        "op_at",
        "persistent",
        "run_bases",
        "run_count",
        "runs",
        "spent",
        "stack",
        "texts",
    )

    def __init__(self, data: bytes, name: str, persistent: Persistent) -> None:
        self.data = data
        self.name = name
        self.persistent = persistent
        # Every name that the pickles hold, by module and name: also those that nothing calls.
        self.globals: dict[tuple[str, str], Global] = {}
        self.texts: dict[str, str] = {}
        self._reset()

    def _reset(self) -> None:
        from burnstore.formats.pytorch.entries import Entries

        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.memo_end = 0
        self.op_at = self.spent = 0
        # What whole entries put into the memo is made only when it is asked for: see `entries.py`.
        self.run_bases: list[int] = []
        self.runs: list[Any] = []
        self.run_count = 0
        self.entries = Entries(self)

    def run(self, at: int = 0) -> tuple[object, int]:
        """The value of the pickle that begins at `at`, and where it ends."""
        from burnstore.formats.pytorch.opcodes import HANDLERS, STOP

        self._reset()
        data = self.data
        op = -1
        try:
            while True:
                self.op_at = at
                op = data[at]
                if op == STOP:
                    break
                at = HANDLERS[op](self, at + 1)
            if self.below:
                raise PickleFaultError("it stops inside a MARK")
            if len(self.stack) != 1:
                raise PickleFaultError(f"it stops with {len(self.stack)} values")
        except (PickleFaultError, UnicodeDecodeError) as error:
            what = "a text in it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            self._fail(what, self.op_at, op)
        except (IndexError, PickleEndedError) as error:
            if isinstance(error, PickleEndedError) or self.op_at >= len(data):
                raise self._ended(op) from None
            self._fail("it takes a value from an empty stack", self.op_at, op)
        return self.stack.pop(), at + 1

    def _fail(self, what: str, at: int, op: int) -> NoReturn:
        from burnstore.formats.pytorch.opcodes import opcode_name

        raise FormatError(
            f"the pickle is damaged at offset {at}, {opcode_name(op)}: {what}",
            where=self.name,
            do="get the file again, or do not trust it",
        ) from None

    def _ended(self, op: int) -> TruncatedError:
        from burnstore.formats.pytorch.opcodes import opcode_name

        if not self.data:
            return TruncatedError("the pickle is empty", where=self.name, do="get the file again")
        last = f", inside {opcode_name(op)}" if self.op_at < len(self.data) else ""
        return TruncatedError(
            f"the pickle ends at offset {min(self.op_at, len(self.data))}{last} without STOP",
            where=self.name,
            do="get the file again",
        )

    def put(self, index: int) -> None:
        """Remember the value on top of the stack."""
        if index >= self.memo_end:
            self.memo_end = index + 1
        else:
            self.entries.forget()
            if index not in self.memo and self._in_run(index):
                self.run_count -= 1
        self.memo[index] = self.stack[-1]

    def _in_run(self, index: int) -> bool:
        position = bisect_right(self.run_bases, index) - 1
        return position >= 0 and self.entries.remembered(self.runs[position], index - self.run_bases[position]) is not None

    def get(self, index: int) -> Any:
        """A remembered value."""
        try:
            return self.memo[index]
        except KeyError:
            pass
        position = bisect_right(self.run_bases, index) - 1
        if position >= 0:
            found = self.entries.remembered(self.runs[position], index - self.run_bases[position])
            if found is not None:
                self.memo[index] = found[0]
                self.run_count -= 1  # it is counted as one of the memo now
                return found[0]
        raise PickleFaultError(f"it refers to value {shown(index)}, which was never remembered")

    def spend(self, amount: int) -> None:
        """Count what is copied out of values that many places may share: no more than the file has bytes."""
        self.spent += amount
        if self.spent > len(self.data) + 1024:
            raise PickleFaultError("it copies the same values again and again")

    def global_named(self, module: str, name: str) -> Global:
        """The node of a name, one for all its uses."""
        key = module, name
        found = self.globals.get(key)
        if found is None:
            found = self.globals[key] = Global(module, name, self.op_at)
        return found
