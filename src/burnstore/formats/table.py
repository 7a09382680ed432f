"""The formats by name and by suffix. Plugins are asked only when the built-in ones have no answer."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import cast

from burnstore.errors import UsageError
from burnstore.formats.base import Format

ENTRY_POINTS = "burnstore.formats"

# name → (module, suffixes); a module is imported when its format is wanted. The order is that in which content is looked at.
_BUILT_IN = {
    "safetensors": ("burnstore.formats.safetensors", (".safetensors",)),
    "burnpack": ("burnstore.formats.burnpack", (".bpk",)),
    "pytorch": ("burnstore.formats.pytorch", (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pth.tar", ".pt2")),
}
_ALIASES = {
    "bpk": "burnpack",
    ".bpk": "burnpack",
    ".safetensors": "safetensors",
    "pt": "pytorch",
    ".pt": "pytorch",
    ".pth": "pytorch",
    "torch": "pytorch",
}


def by_name(name: str) -> Format:
    """The format that `format=` names.

    >>> by_name("bpk").name
    'burnpack'
    """
    name = _ALIASES.get(name, name)
    if name in _BUILT_IN:
        return _built_in(name)
    plugin = next((plugin for plugin in plugins() if name in (plugin.name, *plugin.suffixes)), None)
    if plugin is None:
        raise UsageError(f"there is no format {name!r}", do=f"known are {', '.join(known_names())}")
    return plugin


def by_suffix(path: str) -> Format | None:
    """The format whose suffix a path has."""
    lower = path.lower()
    for name, (_, suffixes) in _BUILT_IN.items():
        if lower.endswith(suffixes):
            return _built_in(name)
    return next((plugin for plugin in plugins() if plugin.suffixes and lower.endswith(tuple(plugin.suffixes))), None)


def in_order() -> Iterator[Format]:
    """All formats, built-in ones first."""
    yield from map(_built_in, _BUILT_IN)
    yield from plugins()


def known_names() -> list[str]:
    """What `format=` can be."""
    return [*_BUILT_IN, *(plugin.name for plugin in plugins())]


@cache
def _built_in(name: str) -> Format:
    return cast(Format, importlib.import_module(_BUILT_IN[name][0]).FORMAT)


def plugins() -> list[Format]:
    """The formats that installed packages announce."""
    from importlib.metadata import entry_points

    return [point.load() for point in entry_points(group=ENTRY_POINTS)]
