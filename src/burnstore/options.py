"""The one record behind keywords and builder methods: what a user may say of a store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burnstore.errors import UsageError
from burnstore.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from burnstore.formats.base import BurnVersion
    from burnstore.pipeline.adapt import Adapter
    from burnstore.pipeline.filter import PathFilter
    from burnstore.pipeline.remap import KeyRemapper
    from burnstore.sources.local import IO

_IO = ("auto", "mmap", "pread")
# The version of Burn that each spelling stands for in the metadata.
BURN_VERSIONS = {"0.20": "0.20.1", "0.22": "0.22.1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything that can be said of a source and of a file to be written.

    >>> Options(io="pread").io
    'pread'
    """

    # reading
    format: str | None = None
    # The part of a file that is opened, where a file nests: `state_dict`, or a dotted path.
    key: str | None = None
    io: IO = "auto"
    limits: Limits = DEFAULT_LIMITS
    # what becomes of the tensors on their way
    filter: PathFilter | None = None
    rename: KeyRemapper | None = None
    # None: what the two dialects say, which is per list and only where a model asks for it.
    map_indices_contiguous: bool | None = None
    map_indices_contiguous_except: tuple[str, ...] = ()
    skip_enum_variants: bool | None = None
    # Whose names and axes a file has, on each side; "keep" takes the tensors as they lie.
    from_dialect: str | None = None
    to_dialect: str | None = None
    # An adapter replaces the dialect that would be found.
    from_adapter: Adapter | None = None
    to_adapter: Adapter | None = None
    kinds: Mapping[str, str] | None = None
    like: Any = None
    # loading: "model" casts to what the model has, "file" keeps what the file has; saving: what floats become.
    dtype: str | None = None
    allow_partial: bool = False
    validate: bool = True
    zero_copy: bool = False
    # writing
    metadata: Mapping[str, str] | None = None
    overwrite: bool = False
    fsync: bool = True
    for_burn: BurnVersion = "0.22"
    shard_size: int | str | None = None
    auto_extension: bool = False
    extra: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        said: tuple[tuple[str, object, Collection[str]], ...] = (
            ("io", self.io, _IO),
            ("for_burn", self.for_burn, BURN_VERSIONS),
        )
        for option, value, known in said:
            if not isinstance(value, str) or value not in known:
                raise UsageError(f"{option}={value!r} is not known", do=f"known are {', '.join(known)}")
