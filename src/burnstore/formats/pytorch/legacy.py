"""Files of torch 0.1.10 to 1.5, and of `_use_new_zipfile_serialization=False`.

    magic number · 1001 · sys_info · the object · the list of storage keys          five pickles, one after another
    then for each key, in the order of the list:   u64 number of elements · the elements

A storage's dtype stands in the object's pickle alone. Numbers are always little-endian, whatever sys_info says, as torch
writes and reads them.
"""

from __future__ import annotations

from burnstore.errors import FormatError, TruncatedError
from burnstore.formats.pytorch.nodes import Storage
from burnstore.formats.pytorch.pickle_machine import Machine
from burnstore.formats.pytorch.records import Inflated
from burnstore.formats.pytorch.storages import storage_of
from burnstore.sources.base import FileRange, Source

MAGIC = 0x1950A86A20F9469CFC6C
HEAD = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e"
# The magic number as other protocols spell it.
_FRAMED = b"\x95\x0d" + bytes(7)
HEADS = (
    HEAD,
    b"\x80\x03" + HEAD[2:],
    *(bytes([0x80, protocol]) + frame + HEAD[2:] for protocol in (4, 5) for frame in (b"", _FRAMED)),
    b"L%dL\n." % MAGIC,
)
_VERSION = 1001
# Most pickles are smaller; one that is not is read again with eight times as much.
_FIRST_READ = 1024 * 1024
_AGAIN = "it is damaged, or its download is not finished: get it again"


class LegacyFile:
    """The storages of a legacy file by key, each found by walking over those before it."""

    kind = "legacy"
    big_endian = False

    def __init__(self, source: Source) -> None:
        self.source = source
        self._units: dict[str, tuple[int, int]] = {}
        self._ranges: dict[str, FileRange] = {}
        self.root, self.machine = self._pickles()

    def record(self, key: str) -> FileRange | Inflated:
        try:
            return self._ranges[key]
        except KeyError:
            raise FormatError(f"its storage {key[:64]!r} is not in the file", where=self.source.name, do=_AGAIN) from None

    def _pickles(self) -> tuple[object, Machine]:
        size = self.source.size
        length = min(size, _FIRST_READ)
        while True:
            self._units.clear()
            machine = Machine(bytes(self.source.read(0, length)), self.source.name, self._persistent)
            try:
                root, keys, end = self._run(machine)
                break
            except TruncatedError:
                if length == size:
                    raise
                length = min(size, length * 8)
        self._walk(keys, end)
        return root, machine

    def _run(self, machine: Machine) -> tuple[object, list[str], int]:
        where = self.source.name
        magic, at = machine.run(0)
        if magic != MAGIC or type(magic) is not int:
            raise FormatError("it does not begin with torch's magic number", where=where, do="it is not a PyTorch file")
        version, at = machine.run(at)
        if version != _VERSION or type(version) is not int:
            shown = version if type(version) is int and version < 2**32 else type(version).__name__
            raise FormatError(f"its version {shown} is not known, only {_VERSION}", where=where)
        system, at = machine.run(at)
        if not isinstance(system, dict):
            raise FormatError("what it says of its system is no map", where=where, do="the file is damaged")
        root, at = machine.run(at)
        for _, _, template, tensor in machine.runs:
            self._note(tensor.key, template.numel, template.geometry.storage_unit)
        keys, at = machine.run(at)
        if type(keys) is not list or not all(type(key) is str for key in keys):
            raise FormatError("the list of its storages is no list of texts", where=where, do="the file is damaged")
        return root, keys, at

    def _persistent(self, pid: object, offset: int) -> object:
        made = storage_of(pid, offset)
        if type(made) is Storage and made.fault is None:
            self._note(made.key, made.numel, made.unit)
        return made

    def _note(self, key: str, numel: int, unit: int) -> None:
        if self._units.setdefault(key, (numel, unit)) != (numel, unit):
            raise FormatError(
                f"its storage {key[:64]!r} is declared twice, differently", where=self.source.name, do="the file is damaged"
            )

    def _walk(self, keys: list[str], at: int) -> None:
        source = self.source
        for key in keys:
            where = f"{source.name}, storage {key[:64]!r}"
            if key in self._ranges:
                raise FormatError("it is listed twice", where=where, do="the file is damaged")
            if key not in self._units:
                raise FormatError("no tensor uses it, so nothing says how large it is", where=where, do="the file is damaged")
            numel, unit = self._units[key]
            if at + 8 > source.size:
                raise TruncatedError(f"it should begin at byte {at}, and the file has {source.size}", where=where, do=_AGAIN)
            stored = int.from_bytes(source.read(at, at + 8), "little", signed=True)
            if stored != numel:
                raise FormatError(f"it has {stored} elements, and {numel} are declared", where=where, do="the file is damaged")
            end = at + 8 + numel * unit
            if end > source.size:
                raise TruncatedError(
                    f"it lies in bytes {at + 8} to {end}, and the file has {source.size}", where=where, do=_AGAIN
                )
            self._ranges[key] = FileRange(source, at + 8, end)
            at = end
        missing = next((key for key in self._units if key not in self._ranges), None)
        if missing is not None:
            raise FormatError(f"its storage {missing[:64]!r} is not in the file", where=source.name, do=_AGAIN)
        self.end = at
