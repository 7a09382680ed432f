"""Reading a PyTorch file: find its container, run its pickle, flatten what it holds to names."""

from __future__ import annotations

import msgspec

from burnstore.errors import FormatError, TensorNotFoundError, TruncatedError
from burnstore.formats.pytorch.archive import ZipFile
from burnstore.formats.pytorch.contents import PytorchContents
from burnstore.formats.pytorch.keys import value_at
from burnstore.formats.pytorch.legacy import HEADS, LegacyFile
from burnstore.formats.pytorch.names import Names
from burnstore.formats.pytorch.nodes import Global, Made
from burnstore.formats.pytorch.pickle_machine import Machine
from burnstore.formats.pytorch.records import Container, Inflated
from burnstore.formats.pytorch.storages import storage_of
from burnstore.formats.pytorch.tar import TarFile, is_tar
from burnstore.limits import Limits
from burnstore.sources.base import HEAD_BYTES, FileRange, Source


def recognizes(head: bytes, size: int) -> bool:
    """A zip archive, a tar archive, or a pickle."""
    return (
        head[:4] in (b"PK\3\4", b"PK\5\6")
        or head.startswith(HEADS)
        or is_tar(head)
        or (head[:1] == b"\x80" and head[1:2] in (b"\1", b"\2", b"\3", b"\4", b"\5") and size > 2)
    )


class Opened:
    """A file whose pickle was run: the container, and the value that it holds."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self.source = source
        self.container, self.root, self.machine = _contained(source, limits)

    def close(self) -> None:
        if isinstance(self.container, ZipFile):
            self.container.archive.close()
        self.source.close()


def read(source: Source, limits: Limits) -> PytorchContents:
    """The tensors of a PyTorch file, all of them, under their full names."""
    opened = Opened(source, limits)
    return _contents(opened, opened.root, limits)


def read_key(source: Source, limits: Limits, key: str) -> PytorchContents:
    """The tensors under a key of the object that the file holds."""
    opened = Opened(source, limits)
    value = value_at(opened.root, key, source.name)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        raise TensorNotFoundError(
            f"{key!r} is a {type(value).__name__} there, not tensors",
            where=source.name,
            do=f"burnstore.read_config(path, key={key!r})",
        )
    contents = _contents(opened, value, limits)
    if not contents and type(value) is Made:
        called = value.func.shown if type(value.func) is Global else "something"
        raise TensorNotFoundError(
            f"{key!r} is an object of {called} without tensors",
            where=source.name,
            do="open the file without key= to see its names",
        )
    return contents


def _contents(opened: Opened, root: object, limits: Limits) -> PytorchContents:
    where = opened.source.name
    cap = max(limits.pytorch_names_bytes, 16 * len(opened.machine.data))
    leaves = Names(root, where, cap).table()
    if not leaves and isinstance(opened.container, PlainPickle) and type(root) is Made:
        called = root.func.shown if type(root.func) is Global else "something"
        raise FormatError(
            f"it is a pickle of an object of {called}, without tensors",
            where=where,
            do="it is not a PyTorch file; do not load it with pickle unless you trust it",
        )
    if not leaves and isinstance(opened.container, ZipFile) and opened.container.is_script and root is opened.root:
        leaves = Names({"constants": opened.container.constants()}, where, cap).table()
    return PytorchContents(opened, root, leaves, _metadata(opened), limits)


def _contained(source: Source, limits: Limits) -> tuple[Container, object, Machine]:
    head = bytes(source.read(0, min(HEAD_BYTES, source.size)))
    if head[:2] == b"PK":
        archive = ZipFile(source, limits)
        return archive, archive.root, archive.machine
    if head.startswith(HEADS):
        legacy = LegacyFile(source)
        return legacy, legacy.root, legacy.machine
    if is_tar(head):
        tar = TarFile(source)
        return tar, tar.root, tar.machine
    plain = PlainPickle(source)
    return plain, plain.root, plain.machine


class PlainPickle:
    """A pickle without a container: it has no storages, but may hold arrays of NumPy."""

    kind = "pickle"
    big_endian = False

    def __init__(self, source: Source) -> None:
        self._name = source.name
        length = min(source.size, 1024 * 1024)
        while True:
            self.machine = Machine(bytes(source.read(0, length)), source.name, storage_of)
            try:
                self.root, end = self.machine.run()
                break
            except TruncatedError:
                if length == source.size:
                    raise
                length = min(length * 8, source.size)
        if end + 1 < source.size and source.read(end, end + 2) in (b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5"):
            raise FormatError(
                "it is several pickles, and the first is not torch's magic number",
                where=source.name,
                do="it is not a PyTorch file, or it is damaged",
            )

    def record(self, key: str) -> FileRange | Inflated:
        raise FormatError("a pickle by itself has no storages", where=self._name, do="open the file that it was taken from")


def _metadata(opened: Opened) -> dict[str, str]:
    """The texts that burnstore's own writer attaches; torch has none."""
    if not isinstance(opened.container, ZipFile):
        return {}
    raw = opened.container.attached(b"extra/metadata.json")
    try:
        return msgspec.json.decode(raw, type=dict[str, str]) if raw else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
