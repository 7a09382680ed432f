"""A zip archive as torch fills it: `<root>/data.pkl`, `<root>/data/0`, `<root>/byteorder`, …; and TorchScript's.

    <root>/data.pkl             the object                  <root>/constants.pkl    TorchScript: a tuple of constants
    <root>/data/<key>           a storage                   <root>/constants/<key>  their storages
    <root>/byteorder            "little" or "big"           <root>/code/…           TorchScript: sources, never read

The root is any folder name, or none.
"""

from __future__ import annotations

from burnstore.errors import FormatError, LimitError, TruncatedError
from burnstore.formats.pytorch.nodes import Storage, Tensor
from burnstore.formats.pytorch.pickle_machine import Machine
from burnstore.formats.pytorch.records import Inflated
from burnstore.formats.pytorch.storages import storage_of
from burnstore.formats.pytorch.zip import Archive
from burnstore.limits import Limits
from burnstore.sources.base import FileRange, Source

_PICKLE = b"data.pkl"
_SMALL = 64
_MOST_ATTACHED = 1024 * 1024
# A deflated pickle is unpacked as far as it makes sense: one that is damaged ends early.
_FIRST_READ = 1024 * 1024


class ZipFile:
    """The storages of a zip archive by key."""

    kind = "zip"

    def __init__(self, source: Source, limits: Limits) -> None:
        self.source = source
        self.archive = Archive(source)
        self._limits = limits
        entries = self.archive.entries
        self.pickle_entry = _pickle_entry(self.archive)
        self._root = self.pickle_entry[: -len(_PICKLE)]
        self.is_script = self._root + b"constants.pkl" in entries
        self.big_endian = self._byteorder() == "big"
        self.root, self.machine = self._load(self.pickle_entry)
        self._records: dict[str, FileRange | Inflated] = {}

    def record(self, key: str) -> FileRange | Inflated:
        found = self._records.get(key)
        if found is None:
            found = self._records[key] = self._record(key)
        return found

    def _record(self, key: str) -> FileRange | Inflated:
        folder, _, number = key.rpartition("\0")
        name = self._root + (folder or "data").encode() + b"/" + number.encode("utf-8", "surrogatepass")
        if name not in self.archive.entries:
            raise FormatError(
                f"its storage {number[:64]!r} is not in the file",
                where=self.source.name,
                do="the file is damaged, or only a part of it: get it again",
            )
        return self.archive.record(name)

    def constants(self) -> object:
        """TorchScript's constants; their storages are told from the others by a prefix of the key."""
        return self._load(self._root + b"constants.pkl", "constants\0")[0]

    def version(self) -> str | None:
        """What the archive's `version` says."""
        return self._small(b"version") or self._small(b".data/version")

    def attached(self, name: bytes) -> bytes | None:
        """A small entry that is no part of what torch writes."""
        name = self._root + name
        if name not in self.archive.entries or self.archive.size(name) > _MOST_ATTACHED:
            return None
        return b"".join(bytes(block) for block in self.archive.record(name).blocks())

    def _small(self, name: bytes) -> str | None:
        name = self._root + name
        if name not in self.archive.entries or self.archive.size(name) > _SMALL:
            return None
        record = self.archive.record(name)
        return b"".join(bytes(block) for block in record.blocks()).decode("utf-8", "replace").strip()

    def _byteorder(self) -> str:
        name = self._root + b"byteorder"
        if name not in self.archive.entries:
            return "little"
        said = self._small(b"byteorder")
        if said not in ("little", "big"):
            shown = repr(said) if said is not None else f"{self.archive.size(name)} bytes long"
            raise FormatError(f"its byte order is {shown}, neither little nor big", where=self.archive.where(name))
        return said

    def _load(self, entry: bytes, prefix: str = "") -> tuple[object, Machine]:
        """The value of a pickle; of a deflated one no more is unpacked than can be read without an error."""

        def persistent(pid: object, offset: int) -> object:
            made = storage_of(pid, offset)
            if prefix and type(made) is Storage:
                made.key = prefix + made.key
            return made

        where = self.archive.where(entry)
        record = self.archive.record(entry)
        if isinstance(record, FileRange):
            machine = Machine(bytes(self.source.read(record.begin, record.end)), where, persistent)
            return self._prefixed(machine, prefix), machine
        cap = max(self._limits.pytorch_inflated_pickle_bytes, 32 * record.packed.nbytes)
        length = min(record.nbytes, _FIRST_READ)
        while True:
            data = bytearray(length)
            Inflated(record.packed, record.whole, 0, length, where).read_into(memoryview(data))
            machine = Machine(bytes(data), where, persistent)
            try:
                return self._prefixed(machine, prefix), machine
            except TruncatedError:
                if length == record.nbytes:
                    raise
                if length * 8 > cap:
                    raise LimitError(
                        f"{record.packed.nbytes} bytes unpack to a pickle of {record.nbytes}, over the cap of {cap}",
                        where=where,
                        do="pass limits=Limits(pytorch_inflated_pickle_bytes=...) if it is meant",
                    ) from None
                length = min(length * 8, record.nbytes)

    def _prefixed(self, machine: Machine, prefix: str) -> object:
        value, _ = machine.run()
        if prefix:
            for _, _, _, tensor in machine.runs:
                assert isinstance(tensor, Tensor)
                tensor.key = prefix + tensor.key
        return value


def _pickle_entry(archive: Archive) -> bytes:
    """The entry that holds the object: `data.pkl` in the root folder."""
    found = [name for name in archive.entries if name.endswith(_PICKLE) and (len(name) == 8 or name[-9:-8] == b"/")]
    if len(found) > 1:
        depth = min(name.count(b"/") for name in found)
        found = [name for name in found if name.count(b"/") == depth]
    if len(found) == 1:
        return found[0]
    source = archive.source
    if found:
        shown = " and ".join(repr(name[:100].decode("utf-8", "backslashreplace")) for name in found[:2])
        raise FormatError(f"it holds {shown}: two files in one", where=source.name, do="make an archive of one of them")
    what, do = _diagnosis(archive)
    raise FormatError(f"this is {what}, without a data.pkl: not a PyTorch file", where=source.name, do=do)


def _diagnosis(archive: Archive) -> tuple[str, str]:
    """What a zip archive is that is no weight file of torch."""
    names = archive.entries
    if any(name.endswith((b"/archive_format", b"models/model.json")) for name in names):
        return "a program of torch.export (.pt2)", "save the weights: torch.save(program.state_dict, path)"
    if any(name.endswith(b".npy") for name in names):
        return "an archive of NumPy arrays (.npz)", "read it with numpy.load and save it with burnstore.save"
    if any(name.endswith((b"config.json", b".weights.h5")) for name in names):
        return "a Keras model", "load it with Keras"
    if any(name.endswith(b".json") and b"model" in name for name in names) and any(b"tensors/" in name for name in names):
        return "a TorchScript file from before torch 1.4", "load it with torch.jit and save its state_dict"
    if not names:
        return "an empty zip archive", "get it again"
    return "a zip archive", "unpack it, and open the weight file in it"
