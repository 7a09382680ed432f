"""Which format a source has: its content says so. The suffix is asked only when the content says nothing."""

from __future__ import annotations

from burnstore.errors import UnknownFormatError
from burnstore.formats.base import Format
from burnstore.formats.table import by_suffix, in_order, known_names
from burnstore.sources.base import Source

# What people have in their hands when they think that it is a weight file: first bytes, what it is, what to do.
_LOOK_ALIKES: tuple[tuple[bytes, str, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "run: git lfs pull"),
    (
        b"<!doctype html",
        "an HTML page: the download was answered by a web page",
        "download it again, logged in if need be",
    ),
    (b"<html", "an HTML page: the download was answered by a web page", "download it again, logged in if need be"),
    (
        b"<?xml",
        "an XML page, as object stores answer when access is denied",
        "download it again with the right to read it",
    ),
    (b"\x1f\x8b", "a gzip archive", "unpack it first: gunzip"),
    (b"bzh", "a bzip2 archive", "unpack it first: bunzip2"),
    (b"\xfd7zxz\x00", "an xz archive", "unpack it first: unxz"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it first: unzstd"),
    (b"\x89hdf", "an HDF5 file", "burnstore does not read it"),
    (b"gguf", "a GGUF file", "burnstore does not read it"),
    (b"\x93numpy", "a NumPy array file", "read it with numpy.load and save it with burnstore.save"),
    (b"burn", "almost Burnpack: Burnpack begins with NRUB", "the file was written with its magic bytes reversed"),
)

# Enough for every magic number, and for white space before a text.
_HEAD_BYTES = 1024


def detect(source: Source, path: str | None = None) -> Format:
    """The format of a source; `path` breaks ties, and decides who explains a file that nobody recognizes."""
    head = bytes(source.read(0, min(_HEAD_BYTES, source.size)))
    for format in in_order():
        if format.recognizes(head, source.size):
            return format
    look_alike = _look_alike(head)
    if look_alike is None and path is not None and head:
        named = by_suffix(path)
        if named is not None:
            return named  # its reader says what is wrong
    what, do = look_alike or (_describe(head), f"known formats are {', '.join(known_names())}")
    raise UnknownFormatError(f"this is {what}", where=source.name, do=do)


def _look_alike(head: bytes) -> tuple[str, str] | None:
    start = head.lstrip(b" \t\r\n\xef\xbb\xbf")[:64].lower()
    for first, what, do in _LOOK_ALIKES:
        if start.startswith(first):
            return what, do
    if not head:
        return "an empty file", "get it again"
    if not head.strip(b"\0"):
        return "nothing but zeros so far: an unfinished download", "get it again"
    return None


def _describe(head: bytes) -> str:
    return f"no format that is known; it begins with {head[:8]!r}"
