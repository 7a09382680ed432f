"""A model in several files: an index says which tensor is in which.

`model.safetensors.index.json`, and `pytorch_model.bin.index.json` for PyTorch files:

    {"metadata": {"total_size": 1234}, "weight_map": {"layer.weight": "model-00001-of-00002.safetensors", …}}

The index is the truth: tensors that it does not name are not part of the model, nor are other files in the folder. A
shard lies in the index's folder or below it; that it may be a symlink to elsewhere is how the caches of hubs work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from burnstore.errors import FormatError, LimitError, SourceNotFoundError, UsageError
from burnstore.formats.base import Contents, Row
from burnstore.formats.json_keys import refuse_repeated_keys
from burnstore.limits import Limits
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.base import Source

SUFFIX = ".index.json"


class _Metadata(msgspec.Struct):
    total_size: int | float | str | None = None


_decode_index = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_weight_map = msgspec.json.Decoder(dict[str, str]).decode
_decode_metadata = msgspec.json.Decoder(_Metadata).decode


class ShardedContents:
    """The tensors of an index, each in its shard."""

    source: Source | None = None

    def __init__(self, shards: Mapping[str, Contents], weight_map: Mapping[str, str], oddities: Sequence[str]) -> None:
        self.shards = shards
        self.oddities = oddities
        self._weight_map = weight_map
        first = next(iter(shards.values()), None)
        self.format = first.format if first else "safetensors"
        self.metadata: Mapping[str, str] = first.metadata if first else {}
        self.extras: Mapping[str, Any] = {}

    def names(self) -> Collection[str]:
        return self._weight_map.keys()

    def __len__(self) -> int:
        return len(self._weight_map)

    def __contains__(self, name: object) -> bool:
        return name in self._weight_map

    def snapshot(self, name: str) -> TensorSnapshot:
        return self.shards[self._weight_map[name]].snapshot(name)

    def rows(self) -> Iterator[Row]:
        rows = {shard: {row[0]: row for row in contents.rows()} for shard, contents in self.shards.items()}
        for name, shard in self._weight_map.items():
            yield rows[shard][name]

    def close(self) -> None:
        for contents in self.shards.values():
            contents.close()


def is_index(path: str | None) -> bool:
    """Whether a path is that of an index."""
    return path is not None and path.lower().endswith(SUFFIX)


def read_index(source: Source, path: str, limits: Limits, open_shard: Callable[[str], Contents]) -> ShardedContents:
    """The tensors that an index names; its shards are opened by `open_shard`."""
    weight_map, total_size = _parse(source, limits)
    folder = os.path.dirname(path)
    shards: dict[str, Contents] = {}
    for shard in dict.fromkeys(weight_map.values()):
        inside = os.path.normpath(shard)
        if not _is_inside(shard, inside):
            raise FormatError(
                f"its shard {shard[:100]!r} is outside its folder, or no weight file",
                where=source.name,
                do="shards lie beside it",
            )
        try:
            shards[shard] = open_shard(os.path.join(folder, inside))
        except SourceNotFoundError:
            raise SourceNotFoundError(
                f"its shard {shard} is missing",
                where=source.name,
                do="get the missing file; all shards lie beside the index",
            ) from None
    for name, shard in weight_map.items():
        if name not in shards[shard]:
            raise FormatError(
                f"tensor {name!r} is not in its shard {shard}",
                where=source.name,
                do="index and shards do not belong together",
            )
    return ShardedContents(shards, weight_map, _oddities(shards, weight_map, total_size))


def _is_inside(shard: str, path: str) -> bool:
    odd = not shard or len(shard) > 1000 or "\\" in shard or "\0" in shard
    return not (odd or os.path.isabs(shard) or path.startswith("..") or is_index(path))


def _parse(source: Source, limits: Limits) -> tuple[dict[str, str], object]:
    if source.size > limits.index_bytes:
        raise LimitError(
            f"an index of {source.size} bytes is over the cap of {limits.index_bytes}",
            where=source.name,
            do="pass limits=Limits(index_bytes=...)",
        )
    text = bytes(source.read(0, source.size))
    try:
        text.decode()  # the parser does not look into what it skips
        index = _decode_index(text)
        weight_map = _decode_weight_map(index["weight_map"])
        metadata = _decode_metadata(index.get("metadata", b"{}"))
    except KeyError:
        raise FormatError("it has no map called weight_map", where=source.name, do=_NO_INDEX) from None
    except msgspec.ValidationError as error:
        raise FormatError(f"its weight_map is no map of names to file names: {error}", where=source.name, do=_NO_INDEX) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"it is not JSON ({error})", where=source.name, do=_NO_INDEX) from None
    refuse_repeated_keys(bytes(index["weight_map"]), len(weight_map), f"{source.name}, weight_map")
    outside = text
    for value in index.values():
        if b":" in bytes(value):
            outside = outside.replace(bytes(value), b"", 1)
    refuse_repeated_keys(outside, len(index), source.name)
    return weight_map, metadata.total_size


_NO_INDEX = "it is no index of shards"


def _oddities(shards: Mapping[str, Contents], weight_map: Mapping[str, str], total_size: object) -> list[str]:
    found = []
    sizes: dict[str, int] = {}
    for shard, contents in shards.items():
        extra = [name for name in contents.names() if weight_map.get(name) != shard]
        if extra:
            found.append(f"shard {shard} holds {len(extra)} tensors that the index does not name, {extra[0]!r} for one")
        for name, _, _, source, begin, end in contents.rows():
            if weight_map.get(name) == shard:
                sizes[name] = end - begin if source is not None else contents.snapshot(name).nbytes
    if total_size is not None and total_size != sum(sizes.values()):
        found.append(f"the index says {total_size} bytes, and its tensors have {sum(sizes.values())}")
    return found


def shard_names(path: str, count: int) -> list[str]:
    """The file names that huggingface_hub gives to shards.

    >>> shard_names("model.safetensors", 2)
    ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors']
    """
    stem, suffix = os.path.splitext(path)
    return [f"{stem}-{number:05d}-of-{count:05d}{suffix}" for number in range(1, count + 1)]


def split(tensors: Sequence[TensorSnapshot], shard_bytes: int) -> list[list[TensorSnapshot]]:
    """Tensors in their order, into as few files as their order allows; one that is larger than a shard gets one of its own."""
    shards: list[list[TensorSnapshot]] = []
    current: list[TensorSnapshot] = []
    size = 0
    for tensor in tensors:
        if tensor.nbytes > shard_bytes:
            shards.append([tensor])
            continue
        if size + tensor.nbytes > shard_bytes:
            shards.append(current)
            current, size = [], 0
        current.append(tensor)
        size += tensor.nbytes
    if current or not shards:
        shards.append(current)
    return shards


def encode_index(shards: Mapping[str, Sequence[TensorSnapshot]]) -> bytes:
    """The index's text."""
    weight_map = {tensor.name: shard for shard, tensors in shards.items() for tensor in tensors}
    total = sum(tensor.nbytes for tensors in shards.values() for tensor in tensors)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    return msgspec.json.format(msgspec.json.encode(index), indent=2) + b"\n"


_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}


def parse_size(size: int | str) -> int:
    """Bytes, from a number or a text such as "5GB".

    >>> parse_size("5GB"), parse_size("1.5 MiB"), parse_size(100)
    (5000000000, 1572864, 100)
    """
    text = str(size).strip().upper()
    number = text.rstrip("BKMGTI ")
    unit = text[len(number) :].strip()
    try:
        value = int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise UsageError(f"{size!r} is not a size", do='say it like "5GB", "200MB" or in bytes') from None
    if value < 1:
        raise UsageError(f"a shard of {size!r} holds nothing", do='say it like "5GB"')
    return value
