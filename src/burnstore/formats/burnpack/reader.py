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
from burnstore.formats.burnpack.spelling import PLAIN, read_dtype
from burnstore.formats.geometry import checked_nbytes
from burnstore.limits import Limits
from burnstore.sources.base import Source

ParamId = Annotated[int, msgspec.Meta(ge=0)]


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
    scalars: dict[str, dict[str, bool | int | float]] = {}


def read(source: Source, limits: Limits) -> HeaderContents:
    """The tensors of a Burnpack file, in the order of the data."""
    block, version = read_metadata(source, limits)
    metadata = _typed(decode(block, limits, f"{source.name}, byte {HEADER_BYTES}"), source.name)
    if len(metadata.tensors) > limits.burnpack_tensors:
        raise LimitError(
            f"it has {len(metadata.tensors)} tensors, and Burn reads at most {limits.burnpack_tensors}",
            where=source.name,
            do="pass limits=Limits(burnpack_tensors=...) if it is meant",
        )
    dtypes: dict[str, DType] = dict(PLAIN)
    entries = _entries(metadata.tensors, dtypes, source.name, limits)
    _check_overlaps(entries, source.name)
    start = _data_start(source, len(block), entries)
    ids = {name: tensor.param_id for name, tensor in metadata.tensors.items() if tensor.param_id is not None}
    extras = {"version": version, "scalars": metadata.scalars}
    return HeaderContents("burnpack", source, entries, dtypes, start, metadata.metadata, ids, extras)


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


_AGAIN = "it is damaged, or its download is not finished: get it again"


def _typed(value: Any, name: str) -> Metadata:
    try:
        return msgspec.convert(value, Metadata)
    except (msgspec.ValidationError, RecursionError) as error:
        raise FormatError(
            f"its metadata is not what it must be: {error}", where=f"{name}, metadata", do="the file is damaged"
        ) from None


def _entries(tensors: Mapping[str, Descriptor], dtypes: dict[str, DType], name: str, limits: Limits) -> dict[str, Entry]:
    """Each tensor with its dtype as text and its range checked, in the order of the data."""
    sizes: dict[tuple[str, Shape], int] = {}
    cap = limits.burnpack_tensor_bytes
    found: list[tuple[int, int, str, Entry]] = []
    for key, tensor in tensors.items():
        dtype, shape, span = tensor.dtype, tensor.shape, tensor.data_offsets
        if not isinstance(dtype, str):
            dtype = _spelled(dtype, dtypes, f"{name}, tensor {key!r}")
        begin, end = span.begin, span.end
        nbytes = sizes.get((dtype, shape))
        if nbytes is None:
            nbytes = sizes[dtype, shape] = checked_nbytes(dtype, shape, dtypes, f"{name}, tensor {key!r}")
        if end - begin != nbytes or begin < 0:
            raise _bad_range(f"{name}, tensor {key!r}", dtypes[dtype], shape, span, nbytes)
        if nbytes > cap:
            raise LimitError(
                f"it has {nbytes} bytes, and Burn reads at most {cap}",
                where=f"{name}, tensor {key!r}",
                do="pass limits=Limits(burnpack_tensor_bytes=...) if it is meant",
            )
        found.append((begin, end, key, Entry(dtype, shape, span)))
    found.sort(key=_by_place)
    return {key: entry for _, _, key, entry in found}


def _by_place(row: tuple[int, int, str, Entry]) -> tuple[int, int]:
    return row[0], row[1]


def _spelled(dtype: dict[str, Any], dtypes: dict[str, DType], where: str) -> str:
    """A dtype that is a map, entered into the file's table under a text of its own."""
    found = read_dtype(dtype, where)
    dtypes.setdefault(found.name, found)
    return found.name


def _bad_range(where: str, dtype: DType, shape: Shape, span: Span, nbytes: int) -> FormatError:
    if span.begin < 0 or span.end < span.begin:
        return FormatError(f"its range [{span.begin}, {span.end}] ends before it begins", where=where, do="the file is damaged")
    return FormatError(
        f"{dtype} {list(shape)} needs {nbytes} bytes, and its range [{span.begin}, {span.end}] has {span.end - span.begin}",
        where=where,
        do="the file is damaged",
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
                do="the file is damaged",
            )
        if span.end > last_end:
            last_begin, last_end = span.begin, span.end


def _data_start(source: Source, length: int, entries: Mapping[str, Entry]) -> int:
    """Where the data begins. The version does not tell 0.19, which has no zeros there, but the file's size does."""
    packed = HEADER_BYTES + length
    end = max((entry.data_offsets.end for entry in entries.values()), default=0)
    start = packed if align(packed) + end != source.size == packed + end else align(packed)
    if start + end > source.size:
        raise TruncatedError(f"its tensors need {start + end} bytes, and it has {source.size}", where=source.name, do=_AGAIN)
    return start
