"""A store: a source, its format, and what the user said of it; a mapping of names to tensors that are not read yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from burnstore.errors import MetadataNotFoundError, PickleRefusedError, TensorNotFoundError, UsageError
from burnstore.formats.base import Contents, Nested
from burnstore.options import Options
from burnstore.snapshot import TensorSnapshot

if TYPE_CHECKING:
    from burnstore.report import Description

T = TypeVar("T")

# What decides how a file is read; contents that were read under another answer are not kept.
_READING = {"format", "io", "limits", "auto_extension", "key"}


class Store(Mapping[str, TensorSnapshot]):
    """The tensors of a file by name, in the file's order; what `burnstore.open` gives.

    >>> import burnstore as bs
    >>> store = bs.open({"fc.weight": [[1.0, 2.0]], "fc.bias": [0.5]})
    >>> store["fc.weight"].shape
    (1, 2)
    >>> list(store)
    ['fc.weight', 'fc.bias']
    """

    def __init__(
        self, given: object, options: Options | None = None, *, contents: Contents | None = None, label: str | None = None
    ) -> None:
        self._given = given
        self._label = label
        self._options = options or Options()
        self._contents = contents
        self._listed: tuple[Contents, Contents] | None = None

    @property
    def options(self) -> Options:
        """What was said of it, by keywords or by builder methods."""
        return self._options

    @property
    def unlisted(self) -> Contents:
        """What its format read, under the names of the file; the file is opened when this is first asked."""
        if self._contents is None:
            from burnstore.verbs.opening import open_contents

            self._contents = open_contents(self._given, self._options)
        return self._contents

    @property
    def contents(self) -> Contents:
        """The same as the store lists it: renamed and filtered."""
        contents = self.unlisted
        if self._listed is None or self._listed[0] is not contents:
            options = self._options
            if options.rename is None and options.filter is None and not options.map_indices_contiguous:
                return contents
            from burnstore.verbs.listing import listed

            self._listed = contents, listed(contents, options, self.name)
        return self._listed[1]

    def listed_again(self, change: Callable[[Options], Options]) -> Store:
        """What this store lists, renamed and filtered once more; all else that was said of it still holds."""
        kept = replace(self._options, filter=None, rename=None, map_indices_contiguous=None, map_indices_contiguous_except=())
        return Store(self._given, change(kept), contents=self.contents, label=self.name)

    def unlisted_at(self, key: str) -> Contents:
        """What lies under a key of the same file, which is not opened again: it may be a stream that can be read once."""
        from burnstore.verbs.opening import read_contents

        contents = self.unlisted
        assert contents.source is not None  # only a file has keys
        return read_contents(contents.source, None, replace(self._options, key=key, format=contents.format))

    @property
    def name(self) -> str:
        """What messages call it: its path, or words for a buffer."""
        import os

        if self._label is not None:
            return self._label
        if isinstance(self._given, (str, os.PathLike)):
            return os.fsdecode(self._given)
        if isinstance(self._given, (bytes, bytearray, memoryview)):
            return f"<{memoryview(self._given).nbytes} bytes>"
        source = self._contents.source if self._contents is not None else None
        return source.name if source is not None else f"<{type(self._given).__name__}>"

    @property
    def format(self) -> str:
        """The name of its format."""
        return self.contents.format

    @property
    def dialect(self) -> str | None:
        """Whose names and axes its tensors have, "pytorch" or "burn", as far as it was said or the file says it.

        >>> import burnstore as bs
        >>> bs.open(bs.save({"fc.bias": [0.5]}, bytes, format="bpk")).dialect
        'burn'
        """
        said = self._options.from_dialect
        if said is None:
            from burnstore.verbs.listing import dialect_said

            said = dialect_said(self.unlisted).dialect
        return said

    @property
    def metadata(self) -> Metadata:
        """The texts that its writer attached."""
        return Metadata(lambda: self.contents.metadata, self._with_metadata)

    @property
    def scalars(self) -> Mapping[str, Any]:
        """The typed scalars of a Burnpack file, which optimizers use; kept when the file is rewritten."""
        scalars: Mapping[str, Any] = self.contents.extras.get("scalars", {})
        return scalars

    @property
    def nbytes(self) -> int:
        """How many bytes its tensors have."""
        return sum(
            end - begin if source is not None else self.contents.snapshot(name).nbytes
            for name, _, _, source, begin, end in self.contents.rows()
        )

    def describe(self) -> Description:
        """What is inside the file beside tensors: every name of a class or function that a pickle holds, and where.

        >>> import burnstore as bs
        >>> data = bs.save({"fc.bias": [0.5]}, bytes, format="pt")
        >>> [entry.name for entry in bs.open(data).describe() if not entry.known]
        []
        """
        from burnstore.report import Description

        described = getattr(self.contents, "described", None)
        return described() if described else Description(self.name, self.format, ())

    def __getitem__(self, name: str) -> TensorSnapshot:
        try:
            return self._snapshot(name)
        except KeyError:
            raise self._not_found(name) from None

    def _snapshot(self, name: str) -> TensorSnapshot:
        """One tensor; taken out of its store, it still knows whose layout it has."""
        snapshot, dialect = self.contents.snapshot(name), self._spoken
        return snapshot if dialect is None or snapshot.dialect is not None else snapshot.changed(dialect=dialect)

    @cached_property
    def _spoken(self) -> str | None:
        """What its tensors are told of their layout: nothing that their names tell as well."""
        from burnstore.verbs.listing import dialect_said

        claim = dialect_said(self.unlisted)
        return self._options.from_dialect or (None if claim.is_weak else claim.dialect)

    @overload
    def get(self, name: str, /) -> TensorSnapshot | None: ...
    @overload
    def get(self, name: str, /, default: TensorSnapshot) -> TensorSnapshot: ...
    @overload
    def get(self, name: str, /, default: T) -> TensorSnapshot | T: ...
    def get(self, name: str, /, default: object = None) -> object:
        """One tensor, or `default` where there is none of that name."""
        try:
            return self._snapshot(name)
        except KeyError:
            return default

    def _not_found(self, name: str) -> TensorNotFoundError:
        from burnstore.render import count_text
        from burnstore.suggest import closest

        if not isinstance(name, str):
            return TensorNotFoundError(f"there is no tensor {name!r}", where=self.name, do="names are text")
        nests: list[str] = self.contents.nests() if isinstance(self.contents, Nested) else []
        nest = next((nest for nest in nests if f"{nest}.{name}" in self.contents), None)
        if nest is not None:
            do = f"it is there as {f'{nest}.{name}'!r}; or open that part: burnstore.open(path, key={nest!r})"
            return TensorNotFoundError(f"there is no tensor {name!r}", where=self.name, do=do)
        meant = closest(name, self.contents.names())
        do = f"did you mean {meant!r}?" if meant else f"it has {count_text(len(self), 'tensor')}; list(store) names them"
        return TensorNotFoundError(f"there is no tensor {name!r}", where=self.name, do=do)

    def __iter__(self) -> Iterator[str]:
        return iter(self.contents.names())

    def __len__(self) -> int:
        return len(self.contents)

    def __contains__(self, name: object) -> bool:
        return name in self.contents

    def keys(self) -> Names:
        """All names in order; it prints as a list and can be indexed."""
        return Names(self)

    def open(self) -> Self:
        """Open and list the file now rather than when a tensor is first asked for."""
        _ = self.contents
        return self

    def close(self) -> None:
        """Close the file now. Not needed; arrays that were handed out stay valid, tensors not read yet do not."""
        if self._contents is not None:
            self._contents.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _with_metadata(self, key: str, value: str) -> Self:
        raise UsageError(
            "this store was opened for reading",
            where=self.name,
            do="pass metadata={...} to save or convert, or use a Burn-named store",
        )

    def _with(self, **changes: Any) -> Self:
        """The same store with other options."""
        contents = None if changes.keys() & _READING else self._contents
        return type(self)(self._given, replace(self._options, **changes), contents=contents, label=self._label)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        from burnstore.render import store_text

        return store_text(self)

    def _repr_html_(self) -> str:
        from burnstore.render import store_html

        return store_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        raise PickleRefusedError(
            "a store stands for an open file and cannot be pickled",
            where=self.name,
            do="send its path and open it there",
        )


class Names(KeysView[str]):
    """The names of a store: a view of keys that prints as a list and can be indexed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._names = list(store)

    def __getitem__(self, index: Any) -> Any:
        return self._names[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __repr__(self) -> str:
        return repr(self._names)

    def __eq__(self, other: object) -> bool:
        return self._names == other if isinstance(other, list) else super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]


class Metadata(Mapping[str, str]):
    """A store's metadata: `store.metadata["k"]` is a value, `store.metadata("k", "v")` a store that will write it."""

    __slots__ = ("_read", "_set")

    def __init__(self, read: Callable[[], Mapping[str, str]], set: Callable[[str, str], Any]) -> None:
        self._read = read  # only when a value is asked for: the file may be one that is about to be replaced
        self._set = set

    @property
    def _values(self) -> Mapping[str, str]:
        return self._read()

    def __getitem__(self, key: str) -> str:
        try:
            return self._values[key]
        except KeyError:
            raise MetadataNotFoundError(
                f"there is no metadata {key!r}", do=f"there is {', '.join(self._values) or 'none at all'}"
            ) from None

    def __call__(self, key: str, value: str) -> Any:
        return self._set(key, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(dict(self._values))
