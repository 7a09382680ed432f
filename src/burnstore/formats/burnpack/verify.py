"""What Burn reads without doubt about a value although it does not write it. Reading has refused all the rest."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import cbor2

from burnstore.formats.base import Contents, HeaderContents
from burnstore.formats.burnpack.header import ALIGNMENT, HEADER_BYTES, align
from burnstore.formats.burnpack.reader import read_metadata
from burnstore.limits import Limits
from burnstore.sources.base import FileRange, Source

_TOP = {"tensors", "metadata", "scalars"}
_FIELDS = {"dtype", "shape", "data_offsets", "param_id"}


def verify(source: Source, contents: Contents, limits: Limits) -> Iterator[str]:
    """The oddities of a Burnpack file that was read without an error."""
    assert isinstance(contents, HeaderContents)
    block, version = read_metadata(source, limits)
    if version != 1:
        yield f"the format's version is {version}, and every release of Burn writes 1"
    yield from _of_metadata(block)
    yield from _of_layout(source, len(block), contents)


def _of_metadata(block: bytes) -> Iterator[str]:
    stream = io.BytesIO(block)
    value: Any = cbor2.CBORDecoder(stream, read_size=1).decode()
    if stream.tell() < len(block):
        yield f"{len(block) - stream.tell()} bytes follow the metadata inside its block"
    try:
        cbor2.loads(block, allow_indefinite=False)
    except cbor2.CBORError:
        yield "the metadata has maps or lists of indefinite length"
    unknown = sorted(set(value) - _TOP)
    if unknown:
        yield f"the metadata has unknown keys: {', '.join(map(str, unknown))}"
    tensors = value["tensors"]
    if list(tensors) != sorted(tensors):
        yield "the names are not sorted"
    odd = next((name for name, fields in tensors.items() if set(fields) - _FIELDS), None)
    if odd is not None:
        yield f"tensor {odd!r} has unknown keys"
    null = next((name for name, fields in tensors.items() if "param_id" in fields and fields["param_id"] is None), None)
    if null is not None:
        yield f"tensor {null!r} has a param_id of null"


def _of_layout(source: Source, length: int, contents: HeaderContents) -> Iterator[str]:
    packed = HEADER_BYTES + length
    rows = list(contents.rows())
    start = min((begin for *_, begin, _ in rows), default=align(packed))
    base = start - min((entry.data_offsets.begin for entry in contents.entries().values()), default=0)
    if base == packed != align(packed):
        yield "the layout is that of Burn 0.19: nothing is aligned, and newer versions of Burn read wrong values or refuse it"
    else:
        loose = next((name for name, *_, begin, _ in rows if (begin - base) % ALIGNMENT), None)
        if loose is not None:
            yield f"tensor {loose!r} does not begin at a multiple of {ALIGNMENT}"
    at, before = packed, ("", 0, 0)
    for name, *_, begin, end in rows:
        if begin != end and (begin, end) == before[1:]:
            yield f"tensors {before[0]!r} and {name!r} are one: they have the same bytes"
        if begin > at and _any_byte(source, at, begin):
            yield f"the padding before tensor {name!r} is not zero"
        at, before = max(at, end), (name, begin, end)
    at = max(at, align(packed)) if base != packed else at
    if at < source.size:
        yield f"{source.size - at} bytes follow the last tensor"


def _any_byte(source: Source, begin: int, end: int) -> bool:
    return any(bytes(block).strip(b"\0") for block in FileRange(source, begin, end).blocks())
