"""Facts about what was read or loaded; how they look is `render.py`'s matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


class Problem(str):
    """A finding of a format's verifier that is more than an oddity: something in the file is wrong."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NamedThing:
    """A class or function that a pickle names; nothing of it was imported.

    `known` says that burnstore understands it; anything else stays an opaque object. `offset` is where in the pickle it
    stands first.
    """

    name: str
    offset: int
    known: bool


@dataclass(frozen=True, slots=True)
class Description:
    """What `store.describe()` found, to be walked or printed.

    >>> print(Description("model.pt", "pytorch", (NamedThing("os.system", 2, False),)))
    model.pt: 1 name in its pickle, 1 of them not known
      offset 2  ?  os.system
    """

    store: str
    format: str
    names: tuple[NamedThing, ...]
    details: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[NamedThing]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        from burnstore.render import description_text

        return description_text(self)


@dataclass(frozen=True, slots=True)
class Verification:
    """What `burnstore.verify` found.

    `problems` are broken rules: a reader would refuse the file, or its data is not what it says. `oddities` are things that
    readers tolerate and writers do not make.

    >>> report = Verification("model.bpk", "burnpack", 3, 136, (), ("the names are not sorted",))
    >>> report.ok
    True
    >>> print(report)
    model.bpk: ok (burnpack, 3 tensors, 136 bytes)
      oddity: the names are not sorted
    """

    name: str
    format: str | None
    tensors: int
    nbytes: int
    problems: tuple[str, ...]
    oddities: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; oddities do not count."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        from burnstore.render import verification_text

        return verification_text(self)
