"""Facts about what was read or loaded; how they look is `render.py`'s matter."""

from __future__ import annotations

from dataclasses import dataclass


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
