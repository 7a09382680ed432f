"""The zip archive that torch has written since 1.6; also one that other tools packed again, deflated or with zip64.

    local header · data ·  …  · central directory: an entry each · [zip64 end, locator] · end

The central directory is the truth. It is read once; the local header of an entry, which says where its data begins, only
when the data is wanted. CRCs are left alone, as torch leaves them; `verify` checks them.
"""

from __future__ import annotations

from struct import Struct, error

from burnstore.errors import FormatError, TruncatedError
from burnstore.formats.pytorch.records import MAX_INFLATION, Inflated
from burnstore.sources.base import FileRange, Source

_end = Struct("<4sHHHHIIH").unpack_from
_end64 = Struct("<4sQHHIIQQQQ").unpack_from
_locator = Struct("<4sIQI").unpack_from
_central = Struct("<4s4xHHHHIIIHHHHH4xI").unpack_from
_local = Struct("<4sHHHHHIIIHH").unpack_from
_END_BYTES, _CENTRAL_BYTES, _LOCAL_BYTES = 22, 46, 30
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF
_METHODS = {12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz"}

# flags, method, crc, packed size, size, offset of the local header, extra field
Entry = tuple[int, int, int, int, int, int, bytes]


class Archive:
    """The entries of a zip file by name."""

    def __init__(self, source: Source) -> None:
        self.source = source
        begin, size, count = _directory(source)
        self.directory_begin = begin
        directory = bytes(source.read(begin, begin + size))
        self.entries = _entries(directory, count, source.name)
        self._whole: memoryview | None = None
        self._mapped = False

    def data(self, name: bytes) -> FileRange:
        """The stored or deflated bytes of an entry, after all that its headers say was checked."""
        flags, method, _, packed, size, offset, extra = self.entries[name]
        if _MAX32 in (packed, size, offset):
            packed, size, offset = _zip64(extra, packed, size, offset, self.where(name))
        if flags & 1 or method not in (0, 8) or (method == 0 and packed != size):
            raise self._unreadable(name, flags, method, packed, size)
        begin = offset + _LOCAL_BYTES + len(name)
        if begin + packed > self.source.size:
            raise TruncatedError(
                f"it lies in bytes {offset} to {begin + packed}, and the file has {self.source.size}",
                where=self.where(name),
                do=_DO,
            )
        header = self._read(offset, begin)
        signature, _, _, _, _, _, _, _, _, name_bytes, extra_bytes = _local(header)
        if signature != b"PK\3\4":
            raise FormatError(f"there is no local header at byte {offset}", where=self.where(name), do=_DO)
        if name_bytes != len(name) or header[_LOCAL_BYTES:] != name:
            raise FormatError("its local header has another name", where=self.where(name), do=_DO)
        begin += extra_bytes
        if begin + packed > self.directory_begin:
            raise TruncatedError(f"its {packed} bytes from {begin} on run into the directory", where=self.where(name), do=_DO)
        return FileRange(self.source, begin, begin + packed)

    def _unreadable(self, name: bytes, flags: int, method: int, packed: int, size: int) -> FormatError:
        where = self.where(name)
        if flags & 1:
            return FormatError("it is encrypted", where=where, do="decrypt the archive first")
        if method not in (0, 8):
            named = f"{method} ({_METHODS[method]})" if method in _METHODS else str(method)
            return FormatError(f"its compression method {named} is not known", where=where, do="pack it again with deflate")
        return FormatError(f"it is stored, and has two sizes, {packed} and {size}", where=where, do=_DO)

    def record(self, name: bytes) -> FileRange | Inflated:
        """The bytes that an entry stands for."""
        data = self.data(name)
        _, method, _, packed, size, offset, extra = self.entries[name]
        if method == 0:
            return data
        if _MAX32 in (packed, size, offset):
            packed, size, offset = _zip64(extra, packed, size, offset, self.where(name))
        if size > packed * MAX_INFLATION + 64:
            raise FormatError(f"{packed} bytes cannot unpack to {size}", where=self.where(name), do=_DO)
        return Inflated(data, size, 0, size, self.where(name))

    def size(self, name: bytes) -> int:
        """How many bytes an entry says it stands for."""
        _, _, _, packed, size, offset, extra = self.entries[name]
        return _zip64(extra, packed, size, offset, self.where(name))[1] if size == _MAX32 else size

    def where(self, name: bytes) -> str:
        """What messages call an entry."""
        return f"{self.source.name}, entry {name[:200].decode('utf-8', 'backslashreplace')!r}"

    def _read(self, begin: int, end: int) -> bytes | memoryview:
        if not self._mapped:
            self._whole, self._mapped = self.source.view(0, self.source.size), True
        return self.source.read(begin, end) if self._whole is None else self._whole[begin:end]

    def close(self) -> None:
        self._whole, self._mapped = None, False


_DO = "the file is damaged: get it again"


def _directory(source: Source) -> tuple[int, int, int]:
    """Where the central directory begins, its size, and how many entries it has."""
    size, name = source.size, source.name
    tail_begin = max(0, size - _END_BYTES)
    tail = bytes(source.read(tail_begin, size))
    found = 0 if tail[:4] == b"PK\5\6" and tail[-2:] == b"\0\0" else -1
    if found < 0:  # a comment, or bytes after the archive
        tail_begin = max(0, size - _END_BYTES - _MAX16)
        tail = bytes(source.read(tail_begin, size))
        found = _find_end(tail)
    if found < 0:
        raise TruncatedError(
            "it begins like a zip archive and has no directory at its end",
            where=name,
            do="its download is not finished, or it was cut: get it again",
        )
    _, _, _, _, count, length, begin, _ = _end(tail, found)
    end = tail_begin + found
    if begin + length != end or count == _MAX16 or _MAX32 in (length, begin):
        end, count, length, begin = _zip64_end(source, end, count, length, begin)
    if begin + length != end:
        raise FormatError(
            f"its directory should end at byte {end}, and is said to lie in {begin} to {begin + length}",
            where=name,
            do="bytes before the archive, or a damaged one: get it again",
        )
    if count * _CENTRAL_BYTES > length:
        raise FormatError(f"{count} entries do not fit its directory of {length} bytes", where=name, do=_DO)
    return begin, length, count


def _find_end(tail: bytes) -> int:
    """The first end record whose comment reaches the end of the file; else the last that there is."""
    last, at = -1, tail.find(b"PK\5\6")
    while at >= 0:
        if at + _END_BYTES <= len(tail):
            last = at
            if at + _END_BYTES + int.from_bytes(tail[at + 20 : at + 22], "little") == len(tail):
                return at
        at = tail.find(b"PK\5\6", at + 1)
    return last


def _zip64_end(source: Source, end: int, count: int, length: int, begin: int) -> tuple[int, int, int, int]:
    if end < 20:
        return end, count, length, begin
    signature, _, at, _ = _locator(bytes(source.read(end - 20, end)))
    if signature != b"PK\6\7":
        return end, count, length, begin  # just that many entries
    if at + 56 > end - 20:
        raise FormatError(f"its zip64 end record at byte {at} is past the end", where=source.name, do=_DO)
    signature, _, _, _, _, _, _, count, length, begin = _end64(bytes(source.read(at, at + 56)))
    if signature != b"PK\6\6":
        raise FormatError(f"there is no zip64 end record at byte {at}", where=source.name, do=_DO)
    return at, count, length, begin


def _entries(directory: bytes, count: int, name: str) -> dict[bytes, Entry]:
    entries: dict[bytes, Entry] = {}
    at, end = 0, len(directory)
    try:
        while at < end:
            signature, flags, method, _, _, crc, packed, size, names, extras, comments, _, _, offset = _central(directory, at)
            if signature != b"PK\1\2":
                raise error
            begin = at + _CENTRAL_BYTES
            after = begin + names
            key = directory[begin:after]
            if key in entries:
                raise FormatError(
                    f"the entry {key[:200].decode('utf-8', 'backslashreplace')!r} stands there twice",
                    where=name,
                    do="one of the two is wrong: make the archive again",
                )
            entries[key] = flags, method, crc, packed, size, offset, directory[after : after + extras]
            at = after + extras + comments
    except error:
        raise FormatError(f"its directory is damaged at byte {at}", where=name, do=_DO) from None
    if at != end or len(entries) != count:
        raise FormatError(f"its directory has {len(entries)} entries, and its end says {count}", where=name, do=_DO)
    return entries


def _zip64(extra: bytes, packed: int, size: int, offset: int, where: str) -> tuple[int, int, int]:
    """The sizes that did not fit 32 bits, from the extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = int.from_bytes(extra[at : at + 2], "little"), int.from_bytes(extra[at + 2 : at + 4], "little")
        if kind == 1:
            fields = [int.from_bytes(extra[i : i + 8], "little") for i in range(at + 4, at + 4 + length - 7, 8)]
            wanted = sum(value == _MAX32 for value in (size, packed, offset))
            if len(fields) >= wanted and at + 4 + length <= len(extra):
                given = iter(fields)
                size, packed, offset = (next(given) if value == _MAX32 else value for value in (size, packed, offset))
                return packed, size, offset
        at += 4 + length
    raise FormatError("its sizes are said to stand in a zip64 field, and there is none", where=where, do=_DO)
