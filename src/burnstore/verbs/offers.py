"""The tensors of a file under the names by which a model is asked for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from burnstore.dtypes import Shape
from burnstore.errors import BurnstoreError, DuplicateNameError
from burnstore.formats.base import Contents, Row
from burnstore.options import Options
from burnstore.pipeline.indices import aligned
from burnstore.snapshot import TensorSnapshot
from burnstore.verbs.listing import Named, aliases_in, renamed


@dataclass(frozen=True, slots=True)
class Offers:
    """What a file offers: rows and shapes by name. Weights that were tied are offered under all of their names."""

    contents: Contents
    where: str
    named: Named
    # Other names of tied weights in the file, each with the one that is stored.
    aliases: Mapping[str, str]
    rows: Mapping[str, Row]
    # What an adapter made, by name.
    adapted: Mapping[str, TensorSnapshot] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", {name: row[2] for name, row in self.rows.items()})

    @classmethod
    def of(cls, contents: Contents, options: Options, where: str) -> Offers:
        """The tensors of a file, renamed as the options say."""
        rows = {row[0]: row for row in contents.rows()}
        aliases = aliases_in(contents)
        for alias, kept in aliases.items():
            rows[alias] = rows[kept]
        if options.map_indices_contiguous and not options.map_indices_contiguous_except:
            options = replace(options, map_indices_contiguous=None)  # done against the model's own lists
        named = renamed(rows, options, where)
        if not all(name is origin for name, origin in named.origins.items()):
            rows = {name: rows[origin] for name, origin in named.origins.items()}
        return cls(contents, where, named, aliases, rows)

    def counted_as(self, paths: Sequence[str], counted: bool) -> Offers:
        """The same with the indices that a model's lists have; `counted` says that the file's have no gaps, as Burn's."""
        try:
            changes = aligned(self.rows, paths, counted=counted)
        except BurnstoreError as error:
            error.where = error.where or self.where
            raise
        if all(old == new for old, new in changes.items()):
            return self
        named = self.named.through(changes)
        return replace(self, named=named, rows={changes[name]: row for name, row in self.rows.items()})

    def instead(self, snapshots: Sequence[TensorSnapshot]) -> Offers:
        """These tensors instead, which an adapter made."""
        adapted: dict[str, TensorSnapshot] = {}
        for snapshot in snapshots:
            if adapted.setdefault(snapshot.name, snapshot) is not snapshot:
                raise DuplicateNameError(
                    "the adapter gives two tensors of this name", where=f"tensor {snapshot.name!r}", do="give each its own name"
                )
        rows: dict[str, Row] = {name: (name, tensor.dtype, tensor.shape, None, 0, 0) for name, tensor in adapted.items()}
        return replace(self, adapted=adapted, rows=rows)

    def implied(self) -> list[str]:
        """The names of tied weights that the file itself does not hold."""
        return [name for name, origin in self.named.origins.items() if origin in self.aliases] if self.aliases else []

    def origin(self, name: str) -> str:
        """What the file itself calls a tensor."""
        return self.named.origins.get(name, name)

    def snapshot(self, name: str) -> TensorSnapshot:
        """One tensor, with what an adapter made of it."""
        found = self.adapted.get(name)
        return found if found is not None else self.contents.snapshot(self.rows[name][0])
