"""Reading Burnpack: files of Burn 0.19 to 0.22, every number of the header checked against the file's real size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from burnstore.dtypes import DType, Shape
from burnstore.errors import FormatError, LimitError, TruncatedError
from burnstore.formats.base import Entry, HeaderContents, Span
from burnstore.formats.burnpack.cbor import decode
from burnstore.formats.burnpack.header import HEADER_BYTES, MAGIC, VERSION, align, unpack_header
from burnstore.formats.burnpack.plain import TooManyTensorsError, read_plain
from burnstore.formats.burnpack.spelling import PLAIN, enter_dtype
from burnstore.formats.geometry import checked_nbytes
from burnstore.limits import Limits
from burnstore.sources.base import Source

ParamId = Annotated[int, msgspec.Meta(ge=0)]
Scalars = dict[str, dict[str, bool | int | float]]


class Descriptor(msgspec.Struct, frozen=True, gc=False):
    """What the metadata says of one tensor; keys that are not known are left alone, as Burn does."""

    dtype: str | dict[str, Any]
    shape: tuple[int, ...]
    data_offsets: Span
    param_id: ParamId | None = None


class Metadata(msgspec.Struct, frozen=True, gc=False):
    """The whole of the CBOR."""

    tensors: dict[str, Descriptor]
    metadata: dict[str, str] = {}
    scalars: Scalars = {}


class Rest(msgspec.Struct, frozen=True, gc=False):
    """The CBOR without the tensors."""

    metadata: dict[str, str] = {}
    scalars: Scalars = {}


def read(source: Source, limits: Limits) -> HeaderContents:
    """The tensors of a Burnpack file, in the order of the data."""
    block, _ = read_metadata(source, limits)
    dtypes: dict[str, DType] = dict(PLAIN)
    try:
        entries, ids, rest = _parse(block, dtypes, source.name, limits)
    except TooManyTensorsError as error:
        raise _too_many(error.args[0], source.name, limits) from None
    if len(entries) > limits.burnpack_tensors:
        raise _too_many(len(entries), source.name, limits)
    if not _check_sizes(entries, dtypes, source.name, limits):
        entries = dict(sorted(entries.items(), key=_by_place))
    _check_overlaps(entries, source.name)
    start = _data_start(source, len(block), entries, rest.metadata)
    extras = {"scalars": rest.scalars}
    return HeaderContents("burnpack", source, entries, dtypes, start, rest.metadata, ids, extras)


def _too_many(count: int, name: str, limits: Limits) -> LimitError:
    return LimitError(
        f"it has {count} tensors, and Burn reads at most {limits.burnpack_tensors}",
        where=name,
        do="pass limits=Limits(burnpack_tensors=...) if it is meant",
    )


def read_metadata(source: Source, limits: Limits) -> tuple[bytes, int]:
    """The CBOR block and the format's version, after the checks that need neither."""
    name, size = source.name, source.size
    if size < HEADER_BYTES:
        raise TruncatedError(
            f"a Burnpack file begins with {HEADER_BYTES} bytes of header, this has {size}", where=name, do=_AGAIN
        )
    magic, version, length = unpack_header(source.read(0, HEADER_BYTES))
    if magic != MAGIC:
        raise FormatError(f"it begins with {magic!r}, not with {MAGIC!r}", where=f"{name}, byte 0", do="it is not Burnpack")
    if version > VERSION:
        raise FormatError(
            f"it is of version {version}, and {VERSION} is known",
            where=f"{name}, byte 4",
            do="look for a newer burnstore",
        )
    if length > size - HEADER_BYTES:
        raise TruncatedError(
            f"its metadata is said to have {length} bytes, and {size - HEADER_BYTES} follow",
            where=f"{name}, byte 6",
            do=_AGAIN,
        )
    for what, have, cap, option in (
        ("its metadata has", length, limits.burnpack_metadata_bytes, "burnpack_metadata_bytes"),
        ("the file has", size, limits.burnpack_file_bytes, "burnpack_file_bytes"),
    ):
        if have > cap:
            raise LimitError(
                f"{what} {have} bytes, and Burn reads at most {cap}",
                where=name,
                do=f"pass limits=Limits({option}=...) if it is meant",
            )
    return bytes(source.read(HEADER_BYTES, HEADER_BYTES + length)), version


_DAMAGED = "the file is damaged"
_AGAIN = "it is damaged, or its download is not finished: get it again"


def _parse(
    block: bytes, dtypes: dict[str, DType], name: str, limits: Limits
) -> tuple[dict[str, Entry], dict[str, int], Rest | Metadata]:
    """The tensors with their dtypes as text, their ids, and what else the metadata says."""
    try:
        plain = read_plain(block, dtypes, limits)
        if plain is not None:
            return plain.entries, plain.ids, msgspec.convert(plain.rest, Rest)
        metadata = msgspec.convert(decode(block, limits, f"{name}, byte {HEADER_BYTES}"), Metadata)
    except (msgspec.ValidationError, RecursionError) as error:
        raise FormatError(f"its metadata is not what it must be: {error}", where=f"{name}, metadata", do=_DAMAGED) from None
    tensors = metadata.tensors.items()
    entries = {
        key: Entry(enter_dtype(tensor.dtype, dtypes, f"{name}, tensor {key!r}"), tensor.shape, tensor.data_offsets)
        for key, tensor in tensors
    }
    return entries, {key: tensor.param_id for key, tensor in tensors if tensor.param_id is not None}, metadata


def _check_sizes(entries: Mapping[str, Entry], dtypes: Mapping[str, DType], name: str, limits: Limits) -> bool:
    """Each range against dtype and shape. Returns whether the entries are in the order of the data."""
    sizes: dict[tuple[str, Shape], int] = {}
    cap = limits.burnpack_tensor_bytes
    at, in_order = 0, True
    for key, entry in entries.items():
        span = entry.data_offsets
        kind = entry.dtype, entry.shape
        nbytes = sizes.get(kind)
        if nbytes is None:
            nbytes = sizes[kind] = checked_nbytes(entry.dtype, entry.shape, dtypes, f"{name}, tensor {key!r}")
        begin, end = span.begin, span.end
        if end - begin != nbytes or begin < 0:
            raise _bad_range(f"{name}, tensor {key!r}", dtypes[entry.dtype], entry.shape, span, nbytes)
        if nbytes > cap:
            raise LimitError(
                f"it has {nbytes} bytes, and Burn reads at most {cap}",
                where=f"{name}, tensor {key!r}",
                do="pass limits=Limits(burnpack_tensor_bytes=...) if it is meant",
            )
        if begin < at:
            in_order = False
        at = end
    return in_order


def _by_place(item: tuple[str, Entry]) -> tuple[int, int]:
    span = item[1].data_offsets
    return span.begin, span.end


def _bad_range(where: str, dtype: DType, shape: Shape, span: Span, nbytes: int) -> FormatError:
    if span.begin < 0 or span.end < span.begin:
        return FormatError(f"its range [{span.begin}, {span.end}] ends before it begins", where=where, do=_DAMAGED)
    return FormatError(
        f"{dtype} {list(shape)} needs {nbytes} bytes, and its range [{span.begin}, {span.end}] has {span.end - span.begin}",
        where=where,
        do=_DAMAGED,
    )


def _check_overlaps(entries: Mapping[str, Entry], name: str) -> None:
    """Two tensors may be one (exactly the same range), but they may not share some of their bytes."""
    last_begin = last_end = 0
    for key, entry in entries.items():
        span = entry.data_offsets
        if span.begin < last_end and span.begin != span.end and (span.begin, span.end) != (last_begin, last_end):
            raise FormatError(
                f"its range [{span.begin}, {span.end}] shares bytes with the tensor at [{last_begin}, {last_end}]",
                where=f"{name}, tensor {key!r}",
                do=_DAMAGED,
            )
        if span.end > last_end:
            last_begin, last_end = span.begin, span.end


def _data_start(source: Source, length: int, entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> int:
    """Where the data begins. The version does not tell 0.19, which has no zeros there, but the file's size does."""
    packed = HEADER_BYTES + length
    end = max((entry.data_offsets.end for entry in entries.values()), default=0)
    start = align(packed)
    if start + end != source.size == packed + end and _is_packed(source, packed, entries, metadata):
        start = packed
    if start + end > source.size:
        raise TruncatedError(f"its tensors need {start + end} bytes, and it has {source.size}", where=source.name, do=_AGAIN)
    return start


def _is_packed(source: Source, packed: int, entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> bool:
    """Whether a file is 0.19's and not a newer one that was cut by just the size of the zeros before its data."""
    at = 0
    for entry in entries.values():
        if entry.data_offsets.begin > at:
            return False
        at = max(at, entry.data_offsets.end)
    if metadata.get("version", "").startswith("0.19."):
        return True
    return bool(bytes(source.read(packed, min(align(packed), source.size))).strip(b"\0"))
