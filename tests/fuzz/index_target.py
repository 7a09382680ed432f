"""Indexes of shards that might be right, and what must be true of each that our reader takes."""

from __future__ import annotations

import json
import os
import tempfile
from functools import cache

from hypothesis import strategies as st

import burnstore as bs
from burnstore.errors import BurnstoreError
from tests.fuzz import naive
from tests.fuzz.mutations import mutated
from tests.fuzz.safetensors_target import pack

_ENTRY = '{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}'
_kept: list[tempfile.TemporaryDirectory[str]] = []


@cache
def folder() -> str:
    """A folder with three shards, one of them in a folder below, a file outside and the index itself."""
    _kept.append(tempfile.TemporaryDirectory())
    outer = _kept[-1].name
    inner = os.path.join(outer, "model")
    os.makedirs(os.path.join(inner, "sub"))
    for path, names, data in (("one", "ab", b"xy"), ("two", "bc", b"zw"), ("sub/three", "ad", b"uv"), ("../out", "ab", b"!!")):
        header = "{" + ",".join(f'"{name}":{_ENTRY % (i, i + 1)}' for i, name in enumerate(names)) + "}"
        with open(os.path.join(inner, path + ".safetensors"), "wb") as file:
            file.write(pack(header.encode(), data))
    with open(os.path.join(inner, "loop.safetensors.index.json"), "w") as text:
        json.dump({"weight_map": {"a": "one.safetensors"}}, text)
    return inner


_shards = st.sampled_from(
    [
        *["one.safetensors", "two.safetensors", "sub/three.safetensors"] * 4,
        *("./one.safetensors", "sub/../one.safetensors", "sub//three.safetensors", "sub/./three.safetensors"),
        *("../out.safetensors", "sub/../../out.safetensors", "../model/one.safetensors", "/etc/passwd", "//etc/passwd"),
        *("", ".", "..", "sub", "one.safetensors/", "one.safetensors/.", "a\\b", "..\\out", "C:\\x", "~", "$HOME"),
        *("one.safetensors\0", "\0", "none.safetensors", "é", "x" * 300, "file:///etc/passwd"),
        *("loop.safetensors.index.json", "LOOP.SAFETENSORS.INDEX.JSON", "model.safetensors.index.json"),
    ]
) | st.text(max_size=4)


@st.composite
def _index(draw: st.DrawFn) -> bytes:
    pairs = draw(st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d", "e", ""]), _shards), max_size=4))
    if draw(st.integers(0, 4)):
        pairs = list(dict(pairs).items())
    texts = [f"{json.dumps(name)}:{json.dumps(shard)}" for name, shard in pairs]
    texts += draw(st.sampled_from(([],) * 15 + (['"x":1'], ['"x":null'], ['"x":{}'], ['"a":"one.safetensors"'])))
    weight_map = draw(st.sampled_from(("{" + ",".join(texts) + "}",) * 15 + ("[]", "null", "1", '"a"')))
    total = draw(st.sampled_from(("2", "2", "0", "-1", "1e400", '"2"', "null", "[1]", "NaN", "9" * 30)))
    odd = ("", '"metadata":[],', '"metadata":1,', '"weight_map":{},')
    metadata = draw(st.sampled_from(('"metadata":{"total_size":' + total + "},",) * 5 + odd))
    end = draw(st.sampled_from(("}",) * 15 + ("", "}}", ",}", "} ")))
    return ("{" + metadata + '"weight_map":' + weight_map + end).encode("utf-8", "surrogatepass")


@cache
def _good() -> list[bytes]:
    maps = ({"a": "one.safetensors", "c": "two.safetensors"}, {"d": "sub/three.safetensors"}, {})
    return [json.dumps({"metadata": {"total_size": 2}, "weight_map": weight_map}).encode() for weight_map in maps]


def files() -> st.SearchStrategy[bytes]:
    """Everything that this target reads."""
    return st.one_of(mutated(_good, head=100), _index(), _index())


def check(data: bytes) -> str:
    """The property; says what became of the index."""
    path = os.path.join(folder(), "model.safetensors.index.json")
    with open(path, "wb") as file:
        file.write(data)
    try:
        with bs.open(path) as store:
            found = {name: snapshot.tobytes() for name, snapshot in store.items()}
    except BurnstoreError as error:
        assert error.where, f"no place: {error}"
        assert len(str(error)) < 4000 and "\n" not in str(error), "the message is not one short line"
        return "refused"
    want = naive.index(path)
    assert found.keys() == want.keys(), "names differ"
    for name, shard in want.items():
        with open(shard, "rb") as file:
            assert naive.safetensors(file.read())[0][name][2] == found[name], f"tensor {name!r} differs"
    assert not bs.verify(path).problems, "read, but verify says it is broken"
    return "read"
