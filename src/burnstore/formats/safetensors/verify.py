"""What SafeTensors readers let pass although writers do not make it. Reading has checked all the rest."""

from __future__ import annotations

from collections.abc import Iterator

from burnstore.formats.base import Contents, HeaderContents
from burnstore.formats.safetensors.reader import read_header
from burnstore.limits import Limits
from burnstore.sources.base import Source


def verify(source: Source, contents: Contents, limits: Limits) -> Iterator[str]:
    """The oddities of a SafeTensors file that was read without an error."""
    assert isinstance(contents, HeaderContents)
    header, start = read_header(source, limits)
    if header[:1] != b"{":
        yield "the header begins with white space, which the format forbids"
    if start % 8:
        yield f"the data begins at byte {start}, not at a multiple of 8, so arrays are not aligned"
    at = 0
    for name, entry in contents.entries().items():
        if entry.data_offsets.begin != at:
            yield f"the header lists tensors in another order than the data, from {name!r} on"
            break
        at = entry.data_offsets.end
