"""Writing `.pt` files: byte for byte what torch 2.13 writes for the same tensors, but for the id of the archive.

    archive/data.pkl                   the state dict
    archive/.format_version            1
    archive/.storage_alignment         64
    archive/byteorder                  little
    archive/extra/metadata.json        only if there is metadata; torch does not look at it
    archive/data/0 …                   the storages
    archive/version                    3
    archive/.data/serialization_id     40 digits: torch draws them, ours follow from names, sizes and CRCs

Tensors of one memory share one storage, as tied weights do in torch. The folder is always called `archive`, as torch
calls it when it saves to a buffer, so the bytes do not depend on the name of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from burnstore.data import ComputedBytes, HeldBytes
from burnstore.dtypes import DType
from burnstore.errors import DTypeError, UsageError
from burnstore.formats.base import WriteOptions
from burnstore.formats.pytorch.pickle_out import Described, Kind, state_dict_pickle
from burnstore.formats.pytorch.zip_out import END_BYTES, Entry, Worker, end_of_archive
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.base import FileRange, TensorBytes
from burnstore.sources.write import Layout, Part

if TYPE_CHECKING:
    from typing_extensions import Buffer

_ROOT = b"archive/"
# Where the tensors lie if something lies beside them: what Lightning and most others call it.
STATE_DICT = "state_dict"
_METADATA = b"extra/metadata.json"
# The dtypes whose storages have a class of their own; torch writes all others as untyped bytes.
_STORAGES = {
    "float64": "Double",
    "float32": "Float",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


def write(tensors: Sequence[TensorSnapshot], metadata: Mapping[str, str] | None, options: WriteOptions) -> Layout:
    """What a `.pt` file of these tensors looks like."""
    storages: dict[Hashable, int] = {}
    order: list[tuple[str, TensorBytes]] = []
    described: list[Described] = []
    kinds: dict[str, Kind] = {}
    for tensor in tensors:
        name, dtype, data, shape = tensor.name, tensor.dtype, tensor.data, tensor.shape
        kind = kinds.get(dtype.name)
        if kind is None:
            kind = kinds[dtype.name] = _kind(tensor)
        key = storages.setdefault(_memory(data, dtype.name), len(order))
        if dtype.bits != kind.itemsize * 8:
            if dtype.bits == 4:
                shape = _halved(tensor)
            elif dtype.kind == "bool":  # four bytes each
                data = ComputedBytes(name, DType.of("Bool"), shape, tensor.numpy)
        if key == len(order):
            order.append((name, data))
        described.append(Described(name, kind, shape, key, data.nbytes))
    over, extra = _beside(options)
    return _layout(state_dict_pickle(described, over, extra), order, metadata)


def _kind(tensor: TensorSnapshot) -> Kind:
    name = tensor.dtype.torch_name
    if name is None or tensor.dtype.is_quantized:
        do = "save tensor.dequantize() or write a .bpk" if tensor.dtype.is_quantized else "cast it first"
        raise DTypeError(f"PyTorch has no dtype for {tensor.dtype}", where=f"tensor {tensor.name!r}", do=do)
    if name in _STORAGES:
        itemsize = 1 if name == "bool" else tensor.dtype.bits // 8
        return Kind(f"ctorch\n{_STORAGES[name]}Storage\n".encode(), itemsize)
    return Kind(b"ctorch.storage\nUntypedStorage\n", 1, f"ctorch\n{name}\n".encode())


def _halved(tensor: TensorSnapshot) -> tuple[int, ...]:
    """torch counts pairs of four bits."""
    shape = tensor.shape
    if not shape or shape[-1] % 2:
        raise DTypeError(
            f"an odd last dimension of {tensor.dtype} is not whole bytes", where=f"tensor {tensor.name!r} {list(shape)}"
        )
    return (*shape[:-1], shape[-1] // 2)


def _memory(data: TensorBytes, dtype: str) -> Hashable:
    """What two tensors of one dtype have in common exactly if the one's bytes are the other's."""
    nbytes = data.nbytes
    if not nbytes:
        return object()  # torch too gives each empty tensor a storage of its own
    if isinstance(data, FileRange):
        return id(data.source), data.begin, nbytes, dtype
    array = getattr(data, "array", None)
    if array is None:
        return id(data), dtype
    inner = array.__array_interface__
    address, strides = inner["data"][0], inner["strides"]
    return (address, nbytes, dtype) if strides is None else (address, strides, array.shape, dtype)


def _beside(options: WriteOptions) -> tuple[str | None, Mapping[str, Any]]:
    """The key that the tensors lie under, if any, and the values beside it."""
    key, extra = options.extras.get("key"), options.extras.get("extra")
    if extra is None:
        return key, {}
    if not isinstance(extra, Mapping) or not all(isinstance(name, str) for name in extra):
        raise UsageError("extra= is not a mapping of text to values", do='write extra={"epoch": 3}')
    key = key or STATE_DICT
    if key in extra:
        raise UsageError(f"the tensors themselves lie under {key!r}", where=f"extra[{key!r}]", do="use another key")
    return key, extra


def _layout(pickled: bytes, order: Sequence[tuple[str, TensorBytes]], metadata: Mapping[str, str] | None) -> Layout:
    records = [
        (b"data.pkl", pickled),
        (b".format_version", b"1"),
        (b".storage_alignment", b"64"),
        (b"byteorder", b"little"),
    ]
    if metadata:
        text = msgspec.json.encode(dict(sorted(metadata.items())))
        records.append((_METADATA, msgspec.json.format(text, indent=2)))
    entries: list[Entry] = []
    at = 0
    for record, content in records:
        entries.append(Entry(_ROOT + record, at, HeldBytes(content), record.decode()))
        at = entries[-1].end
    header = b"".join(bytes(entry.view() or b"".join(map(bytes, entry.blocks()))) for entry in entries)
    worker = Worker()
    parts = []
    for key, (name, data) in enumerate(order):
        entry = Entry(b"%bdata/%d" % (_ROOT, key), at, data, f"tensor {name!r}", worker)
        worker.expect(at, data)
        entries.append(entry)
        parts.append(Part(name, at, entry))
        at = entry.end
    tail = _Tail(entries, at)
    parts.append(Part("the directory", at, tail))
    return Layout(header, parts, at + tail.nbytes)


class _Tail:
    """The last two records and the directory, which hold the CRCs of all that was written before them."""

    __slots__ = ("_begin", "_entries", "nbytes")

    def __init__(self, entries: list[Entry], begin: int) -> None:
        self._entries = entries
        self._begin = begin
        last = self._last(bytes(40))
        directory = sum([entry.directory_size() for entry in (*entries, *last)])
        self.nbytes = last[-1].end - begin + directory + END_BYTES

    def view(self) -> None:
        return None

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        whole = b"".join(bytes(block) for block in self.blocks())
        out[:] = whole[begin : begin + len(out)]

    def blocks(self) -> Iterator[Buffer]:
        records = [entry.directory() for entry in self._entries]
        identity = hashlib.sha256(b"".join(records)).digest()
        last = self._last(b"%040d" % (int.from_bytes(identity, "little") % 10**40))
        for entry in last:
            yield from entry.blocks()
            records.append(entry.directory())
        directory = b"".join(records)
        yield directory
        yield end_of_archive(len(records), last[-1].end, len(directory))

    def _last(self, identity: bytes) -> tuple[Entry, Entry]:
        version = Entry(_ROOT + b"version", self._begin, HeldBytes(b"3\n"), "version")
        return version, Entry(_ROOT + b".data/serialization_id", version.end, HeldBytes(identity), "serialization_id")
