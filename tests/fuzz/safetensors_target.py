"""SafeTensors files that might be right, and what must be true of each that our reader takes."""

from __future__ import annotations

import json
import struct
from functools import cache
from pathlib import Path

import safetensors
from hypothesis import strategies as st

import burnstore as bs
from burnstore.errors import BurnstoreError
from tests.fuzz import naive
from tests.fuzz.mutations import mutated

_DATA = Path(__file__).parents[1] / "data" / "safetensors"


@cache
def good_files() -> list[bytes]:
    """Small files, most of which the official package takes."""
    files = [path.read_bytes() for path in sorted(_DATA.glob("*.safetensors")) if path.stat().st_size < 4096]
    files.append(pack(b'{"__metadata__":{"k":"v:\\""},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(range(8))))
    return files


def pack(header: bytes, data: bytes = b"", *, length: int | None = None) -> bytes:
    """A SafeTensors file around a header."""
    return struct.pack("<Q", (len(header) if length is None else length) % 2**64) + header + data


_bits = {"F32": 32, "U8": 8, "BOOL": 8, "F64": 64, "F4": 4, "BF16": 16, "F6_E2M3": 6, "C64": 64}
_names = st.text(max_size=3) | st.sampled_from(
    ["a", "b", "w", "__metadata__", "", "dtype", 'q"', "\\", ":", "é", "\U0001f525", "{", "\n"]
)
_space = st.sampled_from(["", "", "", "", " ", "\n", "\t", "\r", "\x0b", "\x0c", "\u00a0"])


@st.composite
def _text(draw: st.DrawFn, value: str) -> str:
    """A JSON string; some characters of it are escaped although they need not be."""
    mark = draw(st.integers(0, 5))
    if mark == 0:
        return '"' + "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in value if not 0xD800 <= ord(c) < 0xE000) + '"'
    return json.dumps(value, ensure_ascii=mark == 1)


def _number(draw: st.DrawFn, value: int) -> str:
    odd = (f"{value}.0", f"{value}e0", f"-{value}", f"0{value}", "null", "true", f'"{value}"', str(value + 2**64), "[]")
    return draw(st.sampled_from((str(value),) * 60 + odd))


@st.composite
def _pairs(draw: st.DrawFn, pairs: list[tuple[str, str]]) -> str:
    """A JSON object; now and then a pair stands there twice, is lost, or changes its place."""
    pairs = list(pairs)
    if pairs:
        kind = draw(st.integers(0, 30))
        if kind == 0:
            pairs.append(draw(st.sampled_from(pairs)))
        elif kind == 1:
            pairs.pop()
        elif kind < 8:
            pairs = draw(st.permutations(pairs))
    space = draw(_space)
    inside = ",".join(f"{space}{draw(_text(key))}{space}:{space}{value}{space}" for key, value in pairs)
    return "{" + inside + draw(st.sampled_from(("",) * 40 + (",", "}", "{"))) + "}"


@st.composite
def _file(draw: st.DrawFn) -> bytes:
    """A file by the grammar: mostly right, with a few wrong words."""
    pairs: list[tuple[str, str]] = []
    if draw(st.booleans()):
        texts = draw(st.dictionaries(_names, _names, max_size=3))
        pairs.append(("__metadata__", draw(_pairs([(key, draw(_text(value))) for key, value in texts.items()]))))
    at = 0
    for name in draw(st.lists(_names, max_size=4, unique=True)):
        dtype = draw(st.sampled_from(sorted(_bits)))
        shape = draw(st.lists(st.sampled_from([0, 1, 2, 4]), max_size=3))
        bits = _bits[dtype]
        for dim in shape:
            bits *= dim
        begin = draw(st.sampled_from((at,) * 20 + (0, at + 1, max(0, at - 1), 2**64 - 1)))
        end = begin + bits // 8
        dims = "[" + ",".join(_number(draw, dim) for dim in shape) + "]"
        span = f"[{_number(draw, begin)},{_number(draw, end)}]"
        word = draw(st.sampled_from((dtype,) * 30 + (dtype.lower(), "X", "")))
        fields = [("dtype", draw(_text(word))), ("shape", dims), ("data_offsets", span)]
        if not draw(st.integers(0, 40)):
            fields.append((draw(_names), draw(st.sampled_from(["1", "null", '"x"', "{}", dims]))))
        pairs.append((name, draw(_pairs(fields))))
        at = max(at, end) if end < 2**32 else at
    text = draw(_space) + draw(_pairs(pairs)) + draw(_space) + " " * draw(st.sampled_from([0, 0, 0, 7]))
    header = text.encode("utf-8", "surrogatepass")
    length = len(header) + draw(st.sampled_from((0,) * 20 + (1, -1, 2**64 - 1)))
    return pack(header, bytes(i % 256 for i in range(max(0, at + draw(st.sampled_from((0,) * 20 + (1, -1)))))), length=length)


def files() -> st.SearchStrategy[bytes]:
    """Everything that this target reads."""
    return st.one_of(mutated(good_files, head=200), _file())


def _official(data: bytes) -> dict[str, naive.Tensor] | None:
    try:
        return {name: (info["dtype"], tuple(info["shape"]), bytes(info["data"])) for name, info in safetensors.deserialize(data)}
    except (safetensors.SafetensorError, ValueError, OverflowError):
        return None


def check(data: bytes) -> str:
    """The property; says what became of the file, and where the official package thinks otherwise."""
    official = _official(data)
    try:
        store = bs.open(data, format="safetensors")
        found = {name: (snapshot.dtype.safetensors_name, snapshot.shape, snapshot.tobytes()) for name, snapshot in store.items()}
    except BurnstoreError as error:
        assert error.where, f"no place: {error}"
        assert len(str(error)) < 4000 and "\n" not in str(error), "the message is not one short line"
        return "refused" if official is None else f"refused, official takes it: {_reason(str(error))}"
    want, metadata = naive.safetensors(data)
    assert found == want, "tensors differ"
    assert dict(store.metadata) == metadata, "metadata differs"
    assert official is None or found == official, "the official package reads something else"
    for snapshot in store.values():
        _use(snapshot)
    assert not bs.verify(data, format="safetensors").problems, "read, but verify says it is broken"
    return "read" if official is not None else "read, official refuses it"


def _reason(text: str) -> str:
    for words in ("twice", "unknown field", "got `array`", "got `null`", "odd last dimension", "is not a size", "overflows"):
        if words in text:
            return words
    return text[-120:]


def _use(snapshot: bs.TensorSnapshot) -> None:
    try:
        assert snapshot.numpy(copy=True).shape == snapshot.shape
    except BurnstoreError:
        pass  # what no array can be; its bytes were right
