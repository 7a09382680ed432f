"""TAR files of torch before 0.1.10.

    sys_info    a pickle that says nothing that matters
    storages    a number; for each: pickle (key, location, class), u64 elements, the elements; then pickle [views]
    tensors     a number; for each: pickle (key, storage key, class), i32 rank, 4 bytes, sizes, strides, offset (i64 each)
    pickle      the object; a persistent id is the text of a tensor's or a storage's key

Members stand in any order. Nothing is ever unpacked to a disk, so what a member is called cannot do harm.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from burnstore.errors import FormatError, TruncatedError
from burnstore.formats.pytorch.nodes import Composite, Global, Made, Storage, Tensor, shown
from burnstore.formats.pytorch.pickle_machine import Machine, Persistent
from burnstore.formats.pytorch.rebuild import geometry_of
from burnstore.formats.pytorch.records import Inflated
from burnstore.formats.pytorch.storages import TENSOR_DTYPES, storage_of_fields
from burnstore.sources.base import FileRange, Source

_BLOCK = 512
_MEMBERS = ("storages", "tensors", "pickle")
_FIRST_READ = 4096
_AGAIN = "it is damaged, or its download is not finished: get it again"


def is_tar(head: bytes) -> bool:
    """Whether a file begins with a member's header."""
    return head[257:262] == b"ustar"


class TarFile:
    """The storages and tensors of a TAR file by key."""

    kind = "tar"
    big_endian = False

    def __init__(self, source: Source) -> None:
        self.source = source
        self._members = _members(source)
        missing = [name for name in _MEMBERS if name not in self._members]
        if missing:
            raise FormatError(
                f"this is a tar archive, but not PyTorch's: it has no member {' or '.join(missing)}",
                where=source.name,
                do="unpack it, and open the weight file in it",
            )
        self._storages: dict[str, Storage] = {}
        self._ranges: dict[str, FileRange] = {}
        self._read_storages()
        self._tensors: dict[str, Tensor | Composite] = {}
        self._read_tensors()
        begin, end = self._members["pickle"]
        self.machine = Machine(bytes(source.read(begin, end)), source.name, self._persistent)
        self.root, _ = self.machine.run()

    def record(self, key: str) -> FileRange | Inflated:
        try:
            return self._ranges[key]
        except KeyError:
            raise FormatError(f"its storage {key[:64]!r} is not in the file", where=self.source.name, do=_AGAIN) from None

    def _persistent(self, pid: object, offset: int) -> object:
        if type(pid) is tuple and pid:
            return pid[0]
        key = pid if type(pid) is str else None
        found = self._tensors.get(key) or self._storages.get(key) if key is not None else None
        if found is None:
            raise FormatError(f"its tensor {shown(pid)} is not in the file", where=self.source.name, do="the file is damaged")
        return found

    def _read_storages(self) -> None:
        at, end = self._members["storages"]
        count, at = self._count(at, end)
        for _ in range(count):
            fields, at = self._pickle(at, end)
            key, location, kind = self._three(fields)
            storage = storage_of_fields(kind, key, location, _number(self._bytes(at, at + 8, end)))
            if storage.fault:
                raise FormatError(storage.fault, where=f"{self.source.name}, storage {key[:64]!r}", do="the file is damaged")
            at += 8
            self._bytes(at, at + storage.nbytes, end, read=False)
            self._enter(storage, FileRange(self.source, at, at + storage.nbytes))
            at += storage.nbytes
        views, _ = self._pickle(at, end)
        for view in views if type(views) is list else ():
            self._read_view(view)

    def _read_view(self, view: Any) -> None:
        if type(view) is not tuple or len(view) != 4 or not all(type(number) is int for number in view[2:]):
            raise FormatError("a view of a storage is not what it must be", where=self.source.name, do="the file is damaged")
        root = self._storages.get(_text(view[1]))
        key, offset, numel = _text(view[0]), view[2], view[3]
        if root is None or offset < 0 or numel < 0 or offset + numel > root.numel:
            raise FormatError(f"the view {key[:64]!r} reaches past its storage", where=self.source.name, do="the file is damaged")
        base = self._ranges[root.key]
        begin = base.begin + offset * root.unit
        storage = Storage(root.dtype, key, root.location, numel)
        self._enter(storage, FileRange(self.source, begin, begin + storage.nbytes))

    def _enter(self, storage: Storage, data: FileRange) -> None:
        if storage.key in self._storages:
            raise FormatError(
                "it is listed twice", where=f"{self.source.name}, storage {storage.key[:64]!r}", do="the file is damaged"
            )
        self._storages[storage.key], self._ranges[storage.key] = storage, data

    def _read_tensors(self) -> None:
        at, end = self._members["tensors"]
        count, at = self._count(at, end)
        for _ in range(count):
            fields, at = self._pickle(at, end)
            key, storage_key, kind = self._three(fields)
            where = f"{self.source.name}, tensor {key[:64]!r}"
            rank = _number(self._bytes(at, at + 4, end))
            if rank < 0:
                raise FormatError(f"its rank is {rank}", where=where, do="the file is damaged")
            numbers = self._bytes(at + 8, at + 8 + 16 * rank + 8, end)
            at += 8 + 16 * rank + 8
            values = Struct(f"<{2 * rank + 1}q").unpack(numbers)
            storage = self._storages.get(_text(storage_key))
            if storage is None:
                raise FormatError(f"its storage {_text(storage_key)[:64]!r} is missing", where=where, do="the file is damaged")
            if type(kind) is not Global or TENSOR_DTYPES.get(kind.name) != storage.dtype:
                raise FormatError(f"it is no tensor of {storage.dtype}", where=where, do="the file is damaged")
            geometry = geometry_of(storage, values[-1], values[:rank], values[rank:-1])
            if geometry.fault:
                raise FormatError(geometry.fault, where=where, do="the file is damaged")
            self._tensors[key] = Tensor(geometry, storage.key)

    def _count(self, at: int, end: int) -> tuple[int, int]:
        count, at = self._pickle(at, end)
        if type(count) is not int or count < 0 or count > end - at:
            raise TruncatedError(f"{shown(count)} entries do not fit its {end - at} bytes", where=self.source.name, do=_AGAIN)
        return count, at

    def _three(self, fields: object) -> tuple[str, Any, Any]:
        if type(fields) is not tuple or len(fields) != 3 or type(fields[0]) not in (int, str):
            raise FormatError("an entry is not a key and two more values", where=self.source.name, do="the file is damaged")
        return _text(fields[0]), fields[1], fields[2]

    def _pickle(self, at: int, end: int) -> tuple[object, int]:
        """One small pickle between data: a few bytes are read, and more if they do not hold it."""
        length = min(_FIRST_READ, end - at)
        while True:
            try:
                value, used = Machine(bytes(self.source.read(at, at + length)), self.source.name, _nothing_persistent).run()
                return value, at + used
            except TruncatedError:
                if length >= end - at:
                    raise
                length = min(length * 8, end - at)

    def _bytes(self, begin: int, wanted: int, end: int, *, read: bool = True) -> bytes:
        if wanted > end:
            raise TruncatedError(f"bytes {begin} to {wanted} are wanted, and it ends at {end}", where=self.source.name, do=_AGAIN)
        return bytes(self.source.read(begin, wanted)) if read else b""


_nothing_persistent: Persistent = lambda pid, offset: Made(None, (pid,), offset)  # noqa: E731


def _number(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def _text(key: object) -> str:
    return str(key) if type(key) in (int, str) else ""


def _members(source: Source) -> dict[str, tuple[int, int]]:
    """Where the members lie that are plain files."""
    found: dict[str, tuple[int, int]] = {}
    at = 0
    while at + _BLOCK <= source.size:
        header = bytes(source.read(at, at + _BLOCK))
        if not header.strip(b"\0"):
            break
        digits = header[124:136].strip(b" \0")
        if header[257:262] != b"ustar" or not digits or digits.strip(b"01234567"):
            raise FormatError(f"there is no tar header at byte {at}", where=source.name, do=_AGAIN)
        size = int(digits, 8)
        begin = at + _BLOCK
        if begin + size > source.size:
            raise TruncatedError(
                f"a member lies in bytes {begin} to {begin + size}, and the file has {source.size}", where=source.name, do=_AGAIN
            )
        name = header[:100].partition(b"\0")[0].decode("utf-8", "replace").removeprefix("./")
        if header[156:157] in (b"0", b"\0") and name in _MEMBERS:
            if name in found:
                raise FormatError(f"its member {name} stands there twice", where=source.name, do="the file is damaged")
            found[name] = begin, begin + size
        at = begin + -(-size // _BLOCK) * _BLOCK
    return found
