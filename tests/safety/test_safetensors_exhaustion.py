"""Headers of forty megabytes (the format allows a hundred) that are meant to fill memory or time."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.safety.prison import assert_refused, attack

pytestmark = pytest.mark.usefixtures("fresh_child")

SIZE = 40_000_000
_ENTRY = b'{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
_START = b'{"__metadata__":{'

BOMBS: dict[str, Callable[[], bytes]] = {
    "quotes": lambda: _START + b'"' * SIZE,
    "strings": lambda: _START + b'"",' * (SIZE // 3),
    "an endless string of escapes": lambda: _START + b'"' + b'\\"' * (SIZE // 2),
    "a string of escapes": lambda: _START + b'"' + b'\\"' * (SIZE // 2) + b'"',
    "backslashes": lambda: _START + b'"' + b"\\" * SIZE,
    "one metadata key again and again": lambda: _START + b'"a":"b"' + b',"a":"b"' * (SIZE // 8) + b"}}",
    "spaces": lambda: b"{" + b" " * SIZE,
    "spaces before a colon": lambda: b'{"__metadata__"' + b" " * SIZE + b"x",
    "spaces after metadata": lambda: b'{"__metadata__":{}' + b" " * SIZE + b"x",
    "brackets": lambda: b'{"a":' + b"[" * SIZE,
    "braces": lambda: b'{"__metadata__":' + b"{" * SIZE,
    "objects": lambda: b'{"a":' * (SIZE // 5),
    "brackets before metadata": lambda: b'{"a":' + b"[" * SIZE + b'"__metadata__"',
    "digits": lambda: b'{"a":{"dtype":"U8","shape":[' + b"1" * SIZE,
    "the lists of an unknown field": lambda: b'{"a":{"x":[' + b"[]," * (SIZE // 3) + b"[]]}}",
    "colons": lambda: b'{"' + b":" * SIZE + b'":' + _ENTRY + b',"a":' + _ENTRY + b',"a":' + _ENTRY + b"}",
    "names with quotes twice": lambda: (
        b'{"' + b'\\":' * (SIZE // 3) + b'":' + _ENTRY + b',"a":' + _ENTRY + b',"a":' + _ENTRY + b"}"
    ),
    "a shape of ones": lambda: b'{"a":{"dtype":"U8","shape":[1' + b",1" * SIZE + b'],"data_offsets":[0,2]}}',
    "a shape of zeros": lambda: b'{"a":{"dtype":"U8","shape":[0' + b",0" * SIZE + b'],"data_offsets":[0,2]}}',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused(tmp_path: Path, bomb: str) -> None:
    header = BOMBS[bomb]()
    path = tmp_path / "bomb.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    del header
    assert_refused({bomb: path}, "bomb.safetensors", format="safetensors")
    path.unlink()


def test_a_header_over_the_cap_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 100_000_001) + b'{"a":')
        file.truncate(100_000_009)
    assert_refused({"huge": path}, "100000000")


def test_long_names_and_values_without_fault_are_read(tmp_path: Path) -> None:
    long = b"\\u0061" * 1_000_000
    path = tmp_path / "long.safetensors"
    header = b'{"__metadata__":{"k":"' + long + b'"},"' + long + b'":' + _ENTRY + b"}"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    assert attack({"long": path})["long"].tensors.keys() == {"a" * 1_000_000}
