"""Values that a pickle makes once and refers to many times: work and memory stay linear in the file.

Each of these would take minutes, or gigabytes, if what is shared were copied, hashed or walked for every reference.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

import burnstore as bs
from burnstore.errors import BurnstoreError
from burnstore.formats.pytorch.values import plain_values

_MANY = 20_000


def _text(text: bytes) -> bytes:
    return b"X" + len(text).to_bytes(4, "little") + text


def _name(module: bytes, name: bytes) -> bytes:
    return b"c" + module + b"\n" + name + b"\n"


def _items(count: int) -> bytes:
    return b"(" + b"".join(_text(b"%d" % i) + b"N" for i in range(count)) + b"u"


def _numbers(count: int) -> bytes:
    return b"(" + b"K\1" * count + b"e"


_FILES: dict[str, Callable[[], bytes]] = {
    "bytes spelled by one text": lambda: (
        _text(b"a" * 100_000) + b"q\0" + _text(b"latin1") + b"q\1" + _name(b"_codecs", b"encode") + b"q\2"
        + b"](" + b"h\2h\0h\1\x86R" * _MANY + b"e"
    ),
    "arrays over one text": lambda: (
        _name(b"numpy.core.numeric", b"_frombuffer") + b"q\0" + _name(b"_codecs", b"encode") + _text(b"a" * 100_000)
        + b"\x85R" + b"q\1" + _name(b"numpy", b"dtype") + _text(b"u1") + b"\x85Rq\2" + b"J\xa0\x86\1\0\x85q\3"
        + _text(b"C") + b"q\4"
        + b"](" + b"h\0(h\1h\2h\3h\4tR" * _MANY + b"e"
    ),
    "dicts made of one dict": lambda: (
        b"}" + _items(_MANY) + b"\x85q\0" + _name(b"collections", b"OrderedDict") + b"q\1" + b"](" + b"h\1h\0R" * _MANY + b"e"
    ),
    "objects with one state": lambda: (
        b"}" + _items(_MANY) + b"q\0" + _name(b"a", b"B") + b"q\1" + b"](" + b"h\1)\x81h\0b" * _MANY + b"e"
    ),
    "objects with one pair of states": lambda: (
        b"N}" + _items(_MANY) + b"\x86q\0" + _name(b"a", b"B") + b"q\1" + b"](" + b"h\1)\x81h\0b" * _MANY + b"e"
    ),
    "sets of one list": lambda: (
        b"]" + _numbers(_MANY) + b"\x85q\0" + _name(b"builtins", b"set") + b"q\1" + b"](" + b"h\1h\0R" * _MANY + b"e"
    ),
    "calls with one long tuple": lambda: (
        b"(" + b"K\1" * _MANY + b"tq\0" + _name(b"a", b"B") + b"q\1" + b"](" + b"h\1h\0R" * _MANY + b"e"
    ),
    "tensors with one long size": lambda: (
        b"(" + b"K\1" * _MANY + b"tq\0" + _name(b"torch._utils", b"_rebuild_tensor") + b"q\1("
        + _text(b"storage") + _name(b"torch", b"FloatStorage") + _text(b"0") + _text(b"cpu") + b"K\1tQq\2"
        + b"](" + b"h\1(h\2K\0h\0h\0tR" * _MANY + b"e"
    ),
    "one long number as a key": lambda: (
        b"\x8b" + (50_000).to_bytes(4, "little") + b"\1" * 50_000 + b"q\0" + b"}(" + b"h\0N" * _MANY + b"u"
    ),
    "one long text as a key": lambda: (
        _text(b"k" * 100_000) + b"q\0" + b"}(" + b"h\0N" * _MANY + _text(b"k" * 100_000) + b"N" + b"u"
    ),
    "paths of one long part": lambda: (
        _text(b"p" * 100_000) + b"q\0" + _name(b"pathlib", b"PosixPath") + b"q\1" + b"](" + b"h\1h\0h\0\x86R" * _MANY + b"e"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(_FILES))
def test_what_is_shared_is_not_paid_for_again(name: str) -> None:
    file = b"\x80\2" + _text(b"first") + b"0" + _FILES[name]() + b"."
    tracemalloc.start()
    try:
        store = bs.open(file, format="pytorch")
        repr(store), store.describe(), list(store)
        plain_values(store.contents)  # type: ignore[arg-type]
    except BurnstoreError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 50_000_000 + 100 * len(file)


def test_nested_subclass_calls_do_not_recurse() -> None:
    inner = b"N"
    for _ in range(5000):
        inner = b"(h\0h\0" + inner + b"Nt"
    file = b"\x80\2" + _name(b"torch._tensor", b"_rebuild_from_type_v2") + b"q\0" + inner + b"R."
    with pytest.raises(BurnstoreError):
        bs.open(file)["tensor"].numpy()
