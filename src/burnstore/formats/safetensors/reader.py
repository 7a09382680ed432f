"""Reading SafeTensors: the header is parsed once, by msgspec, and every range is checked before a name is listed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from burnstore.dtypes import SAFETENSORS_DTYPES, Shape
from burnstore.errors import FormatError, LimitError, TruncatedError
from burnstore.formats.base import Entry, HeaderContents, Span
from burnstore.formats.geometry import checked_nbytes
from burnstore.formats.json_keys import SPACE, STRING, refuse_negative, refuse_repeated_keys
from burnstore.limits import Limits
from burnstore.sources.base import Source

# An entry whose dtype is one of the format's: msgspec then makes no text of it, which is a tenth of the time.
_Known = msgspec.defstruct(
    "_Known",
    [("dtype", Literal[tuple(SAFETENSORS_DTYPES)]), ("shape", tuple[int, ...]), ("data_offsets", Span)],
    bases=(Entry,),
    frozen=True,
    gc=False,
    forbid_unknown_fields=True,
)
_decode_known: Callable[[bytes], dict[str, Entry]] = msgspec.json.Decoder(dict[str, _Known]).decode  # type: ignore[valid-type]
_decode_any = msgspec.json.Decoder(dict[str, Entry]).decode
_decode_entry = msgspec.json.Decoder(Entry).decode
_decode_metadata = msgspec.json.Decoder(dict[str, str]).decode
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

# Writers put the metadata first. Then it is cut off, and what follows is nothing but tensors.
_metadata_first = re.compile(
    rb'S\{S"__metadata__"S:S(\{(?:[^"{}]*+T)*+[^"{}]*+\})(?:S,S(?=")|S(?=\}))'.replace(b"S", SPACE).replace(b"T", STRING),
    re.DOTALL,
)
_METADATA = "__metadata__"
_FIELDS = ("dtype", "shape", "data_offsets")


def read(source: Source, limits: Limits) -> HeaderContents:
    """The tensors of a SafeTensors file."""
    header, start = read_header(source, limits)
    try:
        entries, metadata = _parse(header, source.name)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(_explain(error), where=f"{source.name}, header", do="the file is damaged or not SafeTensors") from None
    end = _check_ranges(entries, source.name)
    if start + end != source.size:
        raise _wrong_size(source, start + end)
    return HeaderContents("safetensors", source, entries, SAFETENSORS_DTYPES, start, metadata)


def read_header(source: Source, limits: Limits) -> tuple[bytes, int]:
    """The JSON text, and where the data begins."""
    if source.size < 8:
        raise TruncatedError(
            f"a SafeTensors file begins with 8 bytes of length, this has {source.size}", where=source.name, do=_AGAIN
        )
    length = int.from_bytes(source.read(0, 8), "little")
    if length > source.size - 8:
        raise TruncatedError(
            f"the header is said to have {length} bytes, and {source.size - 8} follow",
            where=f"{source.name}, byte 0",
            do=_AGAIN,
        )
    if length > limits.safetensors_header_bytes:
        raise LimitError(
            f"the header has {length} bytes, over the cap of {limits.safetensors_header_bytes}",
            where=source.name,
            do="pass limits=Limits(safetensors_header_bytes=...) if it is meant",
        )
    return bytes(source.read(8, 8 + length)), 8 + length


_AGAIN = "it is damaged, or its download is not finished: get it again"


def _parse(header: bytes, name: str) -> tuple[dict[str, Entry], Mapping[str, str]]:
    where = f"{name}, header"
    refuse_negative(header, where)
    match = _metadata_first.match(header)
    metadata: dict[str, str] = {}
    if match:
        metadata = _decode_metadata(match[1])
        refuse_repeated_keys(match[1], len(metadata), where)
        header = b"{" + header[match.end() :]
    try:
        entries = _decode_known(header)
    except msgspec.ValidationError:
        if not match and b'"__metadata__"' in header:
            return _parse_mixed(header, where)
        entries = _decode_any(header)  # if it is only a dtype, the check of the ranges names the tensor
    if _METADATA in entries:
        raise FormatError(f"{_METADATA!r} is a tensor there, or stands there twice", where=where, do="the file is damaged")
    refuse_repeated_keys(header, 4 * len(entries), where, besides=_FIELDS)
    return entries, metadata


def _parse_mixed(header: bytes, where: str) -> tuple[dict[str, Entry], Mapping[str, str]]:
    """A header whose metadata stands among the tensors or after them."""
    raw = _decode_raw(header)
    metadata = _decode_metadata(raw.pop(_METADATA, b"{}"))
    entries = {key: _decode_entry(value) for key, value in raw.items()}
    refuse_repeated_keys(header, 4 * len(entries) + 1 + len(metadata), where, besides=_FIELDS)
    return entries, metadata


def _explain(error: Exception) -> str:
    text = str(error)
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, msgspec.ValidationError):
        return f"a tensor's entry is not what it must be: {text}"
    return f"it is not JSON ({text})"


def _check_ranges(entries: Mapping[str, Entry], name: str) -> int:
    """Each range fits its tensor, and all of them follow one another without a gap. Returns where the last one ends."""
    end = _check_sizes(entries, name)
    if end is not None:
        return end
    end = 0
    for key, entry in sorted(entries.items(), key=lambda item: (item[1].data_offsets.begin, item[1].data_offsets.end)):
        span = entry.data_offsets
        if span.begin != end:
            what = "overlaps the one before it" if 0 <= span.begin < end else "leaves a hole before it"
            raise FormatError(
                f"its range [{span.begin}, {span.end}] {what}, which ends at {end}",
                where=f"{name}, tensor {key!r}",
                do="the file is damaged",
            )
        end = span.end
    return end


def _check_sizes(entries: Mapping[str, Entry], name: str) -> int | None:
    """Each range against dtype and shape; None if the ranges do not follow one another in the order of the header."""
    sizes: dict[tuple[str, Shape], int] = {}
    at, in_order = 0, True
    for key, entry in entries.items():
        span = entry.data_offsets
        kind = entry.dtype, entry.shape
        nbytes = sizes.get(kind)
        if nbytes is None:
            nbytes = sizes[kind] = checked_nbytes(entry.dtype, entry.shape, SAFETENSORS_DTYPES, f"{name}, tensor {key!r}")
        begin, end = span.begin, span.end
        if end - begin != nbytes:
            raise FormatError(
                f"{entry.dtype} {list(entry.shape)} needs {nbytes} bytes, and its range [{begin}, {end}] has {end - begin}",
                where=f"{name}, tensor {key!r}",
                do="the file is damaged",
            )
        if begin != at:
            in_order = False
        at = end
    return at if in_order else None


def _wrong_size(source: Source, wanted: int) -> FormatError:
    if source.size < wanted:
        return TruncatedError(f"its tensors need {wanted} bytes, and it has {source.size}", where=source.name, do=_AGAIN)
    return FormatError(
        f"{source.size - wanted} bytes follow the last tensor",
        where=f"{source.name}, byte {wanted}",
        do="the format forbids that",
    )
