"""The modules around a tensor, as Burn writes them: `Struct:Net`, `Vec`, `Struct:Linear`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def container_path(containers: Iterable[str]) -> str:
    """The types of modules as predicates see them.

    >>> container_path(["Struct:Net", "Vec", "Struct:Linear"])
    'Net.Vec.Linear'
    """
    return ".".join(container.partition(":")[2] or container for container in containers)


def module_type(containers: Sequence[str]) -> str | None:
    """The innermost type of a module; None where nothing is known.

    >>> module_type(["Struct:Net", "Vec"])
    'Net'
    """
    found = (container for container in reversed(containers) if container.startswith(("Struct:", "Enum:")))
    return next(found, "").partition(":")[2] or None
