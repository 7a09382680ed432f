"""Writing Burnpack: byte for byte what Burn 0.20.1 and 0.22.1 write for the same tensors in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burnstore.dtypes import Shape
from burnstore.errors import LimitError, UsageError
from burnstore.formats.base import BurnVersion, WriteOptions
from burnstore.formats.burnpack.cbor import encode, head
from burnstore.formats.burnpack.header import HEADER_BYTES, align, pack_header
from burnstore.formats.burnpack.spelling import write_dtype
from burnstore.limits import Limits
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.write import Layout, Part

_DTYPE, _SHAPE, _OFFSETS, _PARAM_ID = (encode(word) for word in ("dtype", "shape", "data_offsets", "param_id"))


def write(tensors: Sequence[TensorSnapshot], metadata: Mapping[str, str] | None, options: WriteOptions) -> Layout:
    """What a Burnpack file of these tensors looks like."""
    begins, end = _places(tensors, options.limits)
    block = _metadata(tensors, begins, metadata or {}, options)
    start = align(HEADER_BYTES + len(block))
    _check_limits(len(block), len(tensors), start + end, options.limits)
    header = pack_header(len(block)) + block + bytes(start - HEADER_BYTES - len(block))
    parts = [Part(tensor.name, start + begin, tensor.data) for tensor, begin in zip(tensors, begins, strict=True)]
    return Layout(header, parts, start + end)


def _places(tensors: Sequence[TensorSnapshot], limits: Limits) -> tuple[list[int], int]:
    """Where each tensor begins, and where the last one ends, counted from the start of the data."""
    begins, end = [], 0
    for tensor in tensors:
        nbytes = tensor.data.nbytes
        begin = align(end)
        end = begin + nbytes
        if nbytes > limits.burnpack_tensor_bytes:
            raise LimitError(
                f"it has {nbytes} bytes, and Burn reads at most {limits.burnpack_tensor_bytes}",
                where=f"tensor {tensor.name!r}",
                do="split it, or pass limits=Limits(burnpack_tensor_bytes=...)",
            )
        begins.append(begin)
    return begins, end


def _check_limits(metadata_bytes: int, tensors: int, size: int, limits: Limits) -> None:
    for what, have, cap, option in (
        ("bytes of metadata", metadata_bytes, limits.burnpack_metadata_bytes, "burnpack_metadata_bytes"),
        ("tensors", tensors, limits.burnpack_tensors, "burnpack_tensors"),
        ("bytes", size, limits.burnpack_file_bytes, "burnpack_file_bytes"),
    ):
        if have > cap:
            raise LimitError(
                f"the file would have {have} {what}, and Burn reads at most {cap}",
                do=f"save as SafeTensors, split the model, or pass limits=Limits({option}=...)",
            )


def _metadata(
    tensors: Sequence[TensorSnapshot], begins: Sequence[int], metadata: Mapping[str, str], options: WriteOptions
) -> bytes:
    scalars = options.extras.get("scalars") or {}
    pieces = [head(0xA0, 1 + bool(metadata) + bool(scalars)), encode("tensors"), head(0xA0, len(tensors))]
    kinds: dict[tuple[str, Shape], bytes] = {}  # by the dtype's name: its own hash is a call of Python
    for name, begin, tensor in sorted((tensor.name, begin, tensor) for tensor, begin in zip(tensors, begins, strict=True)):
        key = tensor.dtype.name, tensor.shape
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = _kind(tensor, options.for_burn)
        text, param_id = name.encode(), tensor.param_id
        pieces += (
            head(0x60, len(text)),
            text,
            b"\xa3" if param_id is None else b"\xa4",
            kind,
            head(0x00, begin),
            head(0x00, begin + tensor.data.nbytes),
        )
        if param_id is not None:
            pieces += (_PARAM_ID, _param_id(tensor))
    for word, texts in (("metadata", metadata), ("scalars", scalars)):
        if texts:
            pieces += (encode(word), encode(dict(sorted(texts.items()))))
    return b"".join(pieces)


def _kind(tensor: TensorSnapshot, version: BurnVersion) -> bytes:
    """Everything of a descriptor that tensors of one dtype and shape share."""
    spelled: Any = write_dtype(tensor.dtype, version, tensor.name)
    return _DTYPE + encode(spelled) + _SHAPE + encode(tensor.shape) + _OFFSETS + b"\x82"


def _param_id(tensor: TensorSnapshot) -> bytes:
    number = tensor.param_id
    if not isinstance(number, int) or not 0 <= number < 2**64:
        raise UsageError(f"a param_id of {number!r} is not a number of 64 bits", where=f"tensor {tensor.name!r}")
    return head(0x00, number)
