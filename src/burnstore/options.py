"""The one record behind keywords and builder methods: what a user may say of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burnstore.errors import UsageError
from burnstore.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from burnstore.formats.base import BurnVersion
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
        for option, value, known in (("io", self.io, _IO), ("for_burn", self.for_burn, BURN_VERSIONS)):
            if not isinstance(value, str) or value not in known:
                raise UsageError(f"{option}={value!r} is not known", do=f"known are {', '.join(known)}")
