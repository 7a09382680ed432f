"""Writing SafeTensors: byte for byte what the official crate writes, with the metadata sorted by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    _refuse(tensors)
    ordered = sorted(tensors, key=_name)
    ranks = {tensor.dtype.name: _rank(tensor) for tensor in _one_a_dtype(tensors)}
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


_name = attrgetter("name")


def _one_a_dtype(tensors: Sequence[TensorSnapshot]) -> Iterable[TensorSnapshot]:
    return {tensor.dtype.name: tensor for tensor in tensors}.values()


def _rank(tensor: TensorSnapshot) -> int:
    """Where tensors of this dtype stand in the file; a dtype that no SafeTensors file can hold is refused."""
    rank = _RANK.get(tensor.dtype.safetensors_name)
    if rank is None:
        do = "save tensor.dequantize() or write a .bpk" if tensor.dtype.is_quantized else "cast it first"
        raise DTypeError(f"SafeTensors has no dtype for {tensor.dtype}", where=f"tensor {tensor.name!r}", do=do)
    return rank


def _refuse(tensors: Sequence[TensorSnapshot]) -> None:
    """What no SafeTensors file can hold."""
    for tensor in tensors:
        if tensor.name == "__metadata__":
            raise UsageError("no tensor of a SafeTensors file can have this name", where="tensor '__metadata__'", do="rename it")
        if tensor.dtype.bits == 4 and tensor.shape and tensor.shape[-1] % 2:
            raise DTypeError(
                f"an odd last dimension of {tensor.dtype} is not whole bytes",
                where=f"tensor {tensor.name!r} {list(tensor.shape)}",
                do="pad it",
            )
