"""What a PyTorch file says of itself that reading does not need, and what is odd about it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import islice

from burnstore.errors import BurnstoreError
from burnstore.formats.base import Contents
from burnstore.formats.pytorch.archive import ZipFile
from burnstore.formats.pytorch.contents import PytorchContents
from burnstore.formats.pytorch.legacy import LegacyFile
from burnstore.formats.pytorch.zip import Archive
from burnstore.limits import Limits
from burnstore.report import Problem
from burnstore.sources.base import Source

_ALIGNMENT = 64


def verify(source: Source, contents: Contents, limits: Limits) -> Iterator[str]:
    """The oddities of a file that was read without an error; a checksum that is wrong is an error."""
    assert isinstance(contents, PytorchContents)
    container = contents.opened.container
    if isinstance(container, ZipFile):
        yield from _verify_zip(container)
    elif isinstance(container, LegacyFile) and container.end < source.size:
        yield f"{source.size - container.end} bytes follow the last storage"
    unknown = [entry.name for entry in contents.described() if not entry.known]
    if unknown:
        shown = ", ".join(repr(text[:60])[1:-1] for text in unknown[:5]) + (", …" if len(unknown) > 5 else "")
        yield f"its pickle names {len(unknown)} classes or functions that burnstore does not know: {shown}"


def _verify_zip(container: ZipFile) -> Iterator[str]:
    archive = container.archive
    ranges: list[tuple[int, int, bytes]] = []
    odd_places = 0
    wrong: list[str] = []
    shared = _shared(archive)
    if shared:
        yield Problem(f"{len(shared)} entries share their bytes with others: {', '.join(map(_shown, islice(shared, 2)))}")
    for name, (_, method, crc, *_) in archive.entries.items():
        if name.endswith(b"/") or name in shared:  # a few bytes can be a million entries: they are not read for each
            continue
        try:
            place = archive.data(name)
            found = 0
            for block in archive.record(name).blocks():
                found = zlib.crc32(block, found)
        except BurnstoreError as error:
            yield Problem(f"entry {_shown(name)} cannot be read: {error.what}")
            continue
        if found != crc:
            wrong.append(f"entry {_shown(name)} has the checksum {found:08x}, and the directory says {crc:08x}")
        if place.begin != place.end:
            ranges.append((place.begin, place.end, name))
        odd_places += method == 0 and b"/data/" in name and place.begin % _ALIGNMENT != 0
    if len(wrong) == len(ranges) > 1:
        yield "it was written without checksums"
    else:
        yield from map(Problem, wrong)
    if odd_places:
        yield f"{odd_places} storages do not begin at multiples of {_ALIGNMENT}, where torch puts them"


def _shared(archive: Archive) -> dict[bytes, None]:
    """The entries whose data overlaps that of another."""
    ranges = []
    for name in archive.entries:
        try:
            place = archive.data(name)
        except BurnstoreError:
            continue
        if place.begin < place.end:
            ranges.append((place.begin, place.end, name))
    ranges.sort()
    found: dict[bytes, None] = {}
    last, furthest = b"", 0
    for begin, end, name in ranges:
        if begin < furthest:
            found[last] = found[name] = None
        if end > furthest:
            last, furthest = name, end
    return found


def _shown(name: bytes) -> str:
    return repr(name[:80].decode("utf-8", "backslashreplace"))
