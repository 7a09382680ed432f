"""Burnpack files that might be right, and what must be true of each that our reader takes."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import Any

import cbor2
from hypothesis import strategies as st

import burnstore as bs
from burnstore.errors import BurnstoreError
from tests.fuzz import naive
from tests.fuzz.mutations import mutated

_DATA = Path(__file__).parents[1] / "data" / "burn"


@cache
def good_files() -> list[bytes]:
    """Small files that the real Burn wrote, and a few by hand."""
    paths = [path for path in sorted(_DATA.rglob("*.bpk")) if "errors" not in path.parts]
    files = [path.read_bytes() for path in paths if path.stat().st_size < 8192]
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    files.append(pack(cbor2.dumps({"tensors": {"a": tensor}}), bytes(range(8))))
    files.append(pack(cbor2.dumps({"tensors": {}, "metadata": {"k": "v"}, "scalars": {"s": {"Int": -5}}}), b""))
    return files


def pack(block: bytes, data: bytes, *, version: int = 1, length: int | None = None, aligned: bool = True) -> bytes:
    """A Burnpack file around a CBOR block."""
    header = struct.pack("<4sHI", b"NRUB", version, (len(block) if length is None else length) % 2**32) + block
    return header + bytes(-len(header) % 256 if aligned else 0) + data


_sizes = {"F64": 8, "F32": 4, "BF16": 2, "I8": 1, "U16": 2, "Flex32": 4, "Bool": 1}
_names = st.text(max_size=4) | st.sampled_from(["a", "b", "a.b", "tensors", "__metadata__"])
_odd = st.one_of(
    *(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(width=16), st.binary(max_size=3), st.text(max_size=3))
)
_anything = st.recursive(
    _odd | st.builds(cbor2.CBORTag, st.sampled_from([0, 2, 4, 25, 28, 35, 258, 55799, 70000]), _odd),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(0, 3), inner, max_size=3),
    max_leaves=6,
)
_schemes = st.fixed_dictionaries(
    {},
    optional={
        "value": st.sampled_from(["Q8S", "Q4S", "Q2F", "E2M1", "E4M3", "Q9"]),
        "store": st.sampled_from(["Native", "U32", {"PackedU32": 0}, {"PackedNative": 0}, {"PackedU32": -1}, {}]),
        "mode": st.sampled_from(["Symmetric", "Asymmetric"]),
        "tensor": st.sampled_from(["F32", "F16", "UE8M0", None, "F99"]),
        "block": st.none()
        | st.fixed_dictionaries(
            {
                "size": st.fixed_dictionaries(
                    {"storage": st.lists(st.integers(0, 40), min_size=1, max_size=6), "len": st.integers(0, 6)}
                ),
                "dtype": st.sampled_from(["F32", "F16"]),
            }
        ),
        "level": st.sampled_from(["Tensor", {"Block": {"storage": [4, 1, 1, 1, 1], "len": 1}}, "Row"]),
        "param": st.sampled_from(["F32", "BF16"]),
    },
)


@st.composite
def _file(draw: st.DrawFn) -> bytes:
    """A file by the grammar: mostly right, with a few wrong words."""
    tensors: dict[str, Any] = {}
    at = top = 0
    step = draw(st.sampled_from([256, 256, 256, 1]))
    for name in draw(st.lists(_names, max_size=4, unique=True)):
        shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 16]), max_size=3))
        word: Any = draw(st.sampled_from(sorted(_sizes)))
        nbytes = _sizes[word]
        for dim in shape:
            nbytes *= dim
        kind = draw(st.integers(0, 12))
        if word == "Bool" and kind < 6:
            word = {"Bool": draw(st.sampled_from(["Native", "U8", "U16"]))}
        elif kind == 12:
            word = {"QFloat": draw(_schemes)}
            nbytes = draw(st.integers(0, 40))
        begin = draw(st.sampled_from([at, at, at, at, 0, at + step, max(0, at - 1), 2**64 - 8]))
        fields: dict[str, Any] = {"dtype": word, "shape": shape, "data_offsets": [begin, begin + nbytes]}
        if kind % 2:
            fields["param_id"] = draw(st.integers(0, 2**64 - 1) | st.none())
        if kind == 11:
            fields[draw(st.sampled_from(["dtype", "shape", "data_offsets", "param_id", "more"]))] = draw(_anything)
        tensors[name] = fields
        top = max(top, begin + nbytes)
        at = -(-top // step) * step if top < 2**32 else 0
    value: dict[Any, Any] = {"tensors": tensors}
    if draw(st.booleans()):
        value["metadata"] = draw(st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2) | _anything)
    if not draw(st.integers(0, 9)):
        value[draw(st.text(max_size=3) | st.integers(0, 3) | st.just("scalars"))] = draw(_anything)
    try:
        block = cbor2.dumps(value, indefinite_containers=not draw(st.integers(0, 5)))
    except (cbor2.CBORError, OverflowError):
        block = b"\xa1\x67tensors\xa0"
    block += draw(st.sampled_from([b"", b"", b"", b"\x00", b"\xff"]))
    short = draw(st.sampled_from([0, 0, 0, 0, 1, -1, 100]))
    data = draw(st.binary(min_size=min(top, 4096), max_size=min(top, 4096))) if top < 65536 else b""
    length = len(block) + draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
    return pack(block, data[: max(0, len(data) - short)], length=length, aligned=step == 256)


def files() -> st.SearchStrategy[bytes]:
    """Everything that this target reads."""
    return st.one_of(mutated(good_files, head=400), _file())


def check(data: bytes) -> str:
    """The property; says what became of the file."""
    try:
        store = bs.open(data, format="burnpack")
        found = {name: (snapshot.dtype.name, snapshot.shape, snapshot.tobytes()) for name, snapshot in store.items()}
    except BurnstoreError as error:
        assert error.where, f"no place: {error}"
        assert len(str(error)) < 4000 and "\n" not in str(error), "the message is not one short line"
        return "refused"
    want = naive.burnpack(data)
    assert found.keys() == want.keys(), "names differ"
    for name, (dtype, shape, content) in want.items():
        assert found[name][1:] == (shape, content), f"tensor {name!r} differs"
        assert len(content) == store[name].nbytes, "nbytes is wrong"
        assert dtype == "quantized" or found[name][0].partition("(")[0] == dtype, "dtype differs"
        _use(store[name])
    assert not bs.verify(data, format="burnpack").problems, "read, but verify says it is broken"
    return "read"


def _use(snapshot: bs.TensorSnapshot) -> None:
    try:
        if snapshot.dtype.is_quantized:
            for part in snapshot.parts.values():
                assert part.size >= 0
            snapshot.dequantize()
        else:
            assert snapshot.numpy(copy=True).shape == snapshot.shape
    except BurnstoreError:
        pass  # what no array can be; its bytes were right
