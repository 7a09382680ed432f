"""The contents of a file as its options name them: renamed, counted anew, filtered. Nothing is read.

    names of the file ─► rename (rules in order) ─► list indices without gaps ─► filter

Loading into a model uses the first two steps and filters by the model's own paths.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from burnstore.errors import BurnstoreError, DialectError, DuplicateNameError
from burnstore.formats.base import Contents, Row
from burnstore.formats.table import by_name
from burnstore.options import Options
from burnstore.pipeline.dialects import KEY, Claim, said
from burnstore.pipeline.indices import is_shard, map_indices_contiguous
from burnstore.snapshot import TensorSnapshot


@dataclass(slots=True)
class Named:
    """The names of a file as a model is asked for them, each with the name in the file."""

    origins: dict[str, str]
    warnings: list[str]
    # What each was called after renaming and before its lists were counted anew.
    spoken: Mapping[str, str] = field(default_factory=dict)

    def through(self, changes: Mapping[str, str]) -> Named:
        """The same after one more change of names."""
        origins: dict[str, str] = {}
        spoken = {}
        for name, origin in self.origins.items():
            new = changes.get(name, name)
            spoken[new] = self.spoken.get(name, name)
            if new in origins:
                raise DuplicateNameError(
                    f"{origins[new]!r} and {origin!r} both become {new!r}", do="rename one of them, or leave one out with skip="
                )
            origins[new] = origin
        return Named(origins, self.warnings, spoken)


def renamed(names: Iterable[str], options: Options, where: str) -> Named:
    """Apply the rules of `rename=`, then `map_indices_contiguous=True`."""
    warnings: list[str] = []
    try:
        if options.rename is not None:
            found = options.rename.renamed(names)
            named = Named({new: old for old, new in found.names.items()}, list(found.warnings))
            named.warnings += [f"the rule {pattern!r} matched no name" for pattern in found.unused]
        else:
            named = Named({name: name for name in names}, warnings)
        if options.map_indices_contiguous and not _is_lone_shard(where, named):
            named = named.through(map_indices_contiguous(named.origins, keep=options.map_indices_contiguous_except))
    except BurnstoreError as error:
        if error.where is None:
            error.where = where
        raise
    return named


def _is_lone_shard(where: str, named: Named) -> bool:
    """Whether indices must stay because the other layers are in other files."""
    if not is_shard(os.path.basename(where)):
        return False
    named.warnings.append("this is one shard of several, so the indices of its lists were kept")
    return True


def aliases_in(contents: Contents) -> dict[str, str]:
    """Weights that were tied and lie in the file once: their other names, as its metadata tells them."""
    return {
        alias: kept
        for alias, kept in contents.metadata.items()
        if kept in contents and alias not in contents and ("." in alias or "." not in kept) and alias not in _WORDS
    }


# Keys of metadata that are never the name of a tensor.
_WORDS = (KEY, "format", "producer", "version")


def dialect_said(contents: Contents) -> Claim:
    """What a file says of its dialect, or what the models say that tensors in hand were collected from."""
    if contents.format != "memory":
        return said(by_name(contents.format).dialect, contents.metadata, contents.names())
    spoken: Callable[[], set[str]] | None = getattr(contents, "dialects", None)
    dialects = spoken() if spoken is not None else set()
    if len(dialects) > 1:
        raise DialectError(
            f"some of these tensors have {' and some '.join(sorted(map(str, dialects)))}'s layout",
            do="save them apart, or load them into a model one after the other",
        )
    return Claim(dialects.pop(), True, "the model that they come from") if dialects else Claim()


class Listed:
    """Contents under other names, or fewer of them."""

    _contents: Contents
    # What the file itself calls each tensor, and what it was called before lists were counted anew.
    origins: Mapping[str, str]
    spoken: Mapping[str, str]

    def __init__(
        self, contents: Contents, origins: Mapping[str, str], spoken: Mapping[str, str], metadata: Mapping[str, str]
    ) -> None:
        if isinstance(contents, Listed):  # there is only ever one step from a name to the file's own
            spoken = {name: contents.spoken.get(spoken.get(name, name), spoken.get(name, name)) for name in origins}
            origins = {name: contents.origins[origin] for name, origin in origins.items()}
            contents = contents._contents
        self._contents = contents
        self.origins = origins
        self.spoken = spoken
        self.format = contents.format
        self.source = contents.source
        self.metadata = metadata
        self.extras: Mapping[str, Any] = contents.extras

    def names(self) -> Collection[str]:
        return self.origins.keys()

    def __len__(self) -> int:
        return len(self.origins)

    def __contains__(self, name: object) -> bool:
        return name in self.origins

    def snapshot(self, name: str) -> TensorSnapshot:
        snapshot = self._contents.snapshot(self.origins[name])
        return snapshot if snapshot.name == name else snapshot.with_name(name)

    def rows(self) -> Iterator[Row]:
        rows = {row[0]: row for row in self._contents.rows()}
        for name, origin in self.origins.items():
            yield name, *rows[origin][1:]

    def close(self) -> None:
        self._contents.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._contents, name)  # what only some formats can say, such as `nests`


def listed(contents: Contents, options: Options, where: str) -> Contents:
    """The contents as the options name them; the contents themselves where the options say nothing."""
    if options.rename is None and not options.map_indices_contiguous and options.filter is None:
        return contents
    aliases = aliases_in(contents)
    named = renamed([*contents.names(), *aliases], options, where)
    origins = named.origins
    filter = options.filter
    if filter is not None:
        held = contents.format == "memory"  # a file does not know in which modules its tensors belong
        origins = {
            name: origin
            for name, origin in origins.items()
            if filter.matches(name, contents.snapshot(origin).container_path() if held else "")
        }
    metadata = contents.metadata
    if aliases:
        metadata = {key: value for key, value in metadata.items() if key not in aliases}
        origins = _with_ties(origins, aliases, metadata)
    return Listed(contents, origins, named.spoken, metadata)


def _with_ties(origins: Mapping[str, str], aliases: Mapping[str, str], metadata: dict[str, str]) -> dict[str, str]:
    """The names of what is stored. The metadata tells the other names of tied weights, also where the stored one is left out."""
    stored = {name: origin for name, origin in origins.items() if origin not in aliases}
    names = {origin: name for name, origin in stored.items()}
    for name, origin in origins.items():
        kept = aliases.get(origin)
        if kept is None:
            continue
        if kept in names:
            metadata[name] = names[kept]
        else:
            stored[name], names[kept] = kept, name
    return stored
