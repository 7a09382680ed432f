"""Writing SafeTensors: byte for byte what the official crate writes, with the metadata sorted by key."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter

import msgspec

from burnstore.errors import DTypeError, LimitError, UsageError
from burnstore.formats.base import Entry, Span, WriteOptions
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.write import Layout, Part

# The crate sorts by its list of dtypes, largest last, then by name: so that every tensor is aligned.
_RANK: dict[str | None, int] = {
    name: -rank
    for rank, name in enumerate(
        [
            "BOOL",
            "F4",
            "F6_E2M3",
            "F6_E3M2",
            "U8",
            "I8",
            "F8_E5M2",
            "F8_E4M3",
            "F8_E8M0",
            "F8_E4M3FNUZ",
            "F8_E5M2FNUZ",
            "I16",
            "U16",
            "F16",
            "BF16",
            "I32",
            "U32",
            "F32",
            "C64",
            "F64",
            "I64",
            "U64",
        ]
    )
}


def write(tensors: Sequence[TensorSnapshot], metadata: Mapping[str, str] | None, options: WriteOptions) -> Layout:
    """What a SafeTensors file of these tensors looks like."""
    ordered = sorted(tensors, key=_name)
    ranks = {dtype: _rank(dtype, tensors) for dtype in set(map(_dtype, tensors))}
    _refuse(ordered, ranks)
    if len(ranks) > 1:
        ordered.sort(key=lambda tensor: ranks[tensor.dtype.name])
    header: dict[str, Mapping[str, str] | Entry] = {}
    if metadata is not None:
        header["__metadata__"] = dict(sorted(metadata.items()))
    at = 0
    begins = []
    for tensor in ordered:
        end = at + tensor.data.nbytes
        header[tensor.name] = Entry(tensor.dtype.safetensors_name or "", tensor.shape, Span(at, end))
        begins.append(at)
        at = end
    text = msgspec.json.encode(header)
    text += b" " * (-len(text) % 8)
    if len(text) > options.limits.safetensors_header_bytes:
        raise LimitError(
            f"the header would have {len(text)} bytes, and readers refuse more than {options.limits.safetensors_header_bytes}",
            do="save in shards (shard_size=...), with shorter names or less metadata",
        )
    start = 8 + len(text)
    parts = [Part(tensor.name, start + begin, tensor.data) for tensor, begin in zip(ordered, begins, strict=True)]
    return Layout(len(text).to_bytes(8, "little") + text, parts, start + at)


_name, _dtype = attrgetter("name"), attrgetter("dtype.name")


def _rank(dtype: str, tensors: Sequence[TensorSnapshot]) -> int:
    """Where tensors of a dtype stand in the file; a dtype that no SafeTensors file can hold is refused."""
    one = next(tensor for tensor in tensors if tensor.dtype.name == dtype)
    rank = _RANK.get(one.dtype.safetensors_name)
    if rank is None:
        do = "save tensor.dequantize() or write a .bpk" if one.dtype.is_quantized else "cast it first"
        raise DTypeError(f"SafeTensors has no dtype for {dtype}", where=f"tensor {one.name!r}", do=do)
    return rank


def _refuse(ordered: Sequence[TensorSnapshot], dtypes: Collection[str]) -> None:
    """What no SafeTensors file can hold."""
    at = bisect_left(ordered, "__metadata__", key=_name)
    if at < len(ordered) and ordered[at].name == "__metadata__":
        raise UsageError("no tensor of a SafeTensors file can have this name", where="tensor '__metadata__'", do="rename it")
    for tensor in ordered if "F4" in dtypes else ():
        if tensor.dtype.name == "F4" and tensor.shape and tensor.shape[-1] % 2:
            raise DTypeError(
                f"an odd last dimension of {tensor.dtype} is not whole bytes",
                where=f"tensor {tensor.name!r} {list(tensor.shape)}",
                do="pad it",
            )
