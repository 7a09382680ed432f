"""Our CBOR against another encoder and against bytes written by hand."""

from __future__ import annotations

from typing import Any

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnstore.errors import FormatError, LimitError
from burnstore.formats.burnpack.cbor import decode, encode
from burnstore.limits import DEFAULT_LIMITS, Limits

text = st.text(st.characters(codec="utf-8"), max_size=30)
plain = st.none() | st.booleans() | st.integers(-(2**64), 2**64 - 1) | text
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(text, inner, max_size=5), max_leaves=20)


def _decode(block: bytes, limits: Limits = DEFAULT_LIMITS) -> Any:
    return decode(block, limits, "here")


@settings(max_examples=150, deadline=None)
@given(values)
def test_values_are_encoded_as_cbor2_encodes_them_and_come_back(value: Any) -> None:
    assert encode(value) == cbor2.dumps(value)
    assert _decode(encode(value)) == value


@settings(max_examples=100, deadline=None)
@given(st.floats())
def test_floats_are_as_short_as_they_can_be(number: float) -> None:
    ours = encode(number)
    assert ours == cbor2.dumps(number, canonical=True) or number != number
    assert cbor2.loads(ours) == number or number != number


@pytest.mark.parametrize(
    ("value", "bytes_"),
    [
        (0, "00"),
        (23, "17"),
        (24, "1818"),
        (255, "18ff"),
        (256, "190100"),
        (65536, "1a00010000"),
        (2**32, "1b0000000100000000"),
        (2**64 - 1, "1bffffffffffffffff"),
        (-1, "20"),
        (-500, "3901f3"),
        (1.5, "f93e00"),
        (100000.0, "fa47c35000"),
        (0.1, "fb3fb999999999999a"),
        (-0.0, "f98000"),
        (float("inf"), "f97c00"),
        ("", "60"),
        ("ü", "62c3bc"),
        ("a" * 24, "7818" + "61" * 24),
        ([], "80"),
        ({}, "a0"),
        ([1, [2]], "82018102"),
        ({"a": True, "b": None}, "a26161f56162f6"),
    ],
)
def test_bytes_written_by_hand(value: Any, bytes_: str) -> None:
    assert encode(value).hex() == bytes_
    assert _decode(bytes.fromhex(bytes_)) == value


def test_indefinite_lengths_and_bytes_after_the_value_are_read() -> None:
    assert _decode(bytes.fromhex("bf61619f0102ff6162 7f61786179ff ff" + "0000")) == {"a": [1, 2], "b": "xy"}


@pytest.mark.parametrize(
    ("what", "bytes_"),
    [
        ("nothing", ""),
        ("half a number", "1b00"),
        ("half a text", "6461"),
        ("a map that ends early", "a2616101"),
        ("two equal keys", "a26161016161 02"),
        ("two equal keys, one spelled longer", "a2616101780161 02"),
        ("text that is not UTF-8", "61ff"),
        ("a break alone", "ff"),
        ("a reserved head", "1c"),
        ("a list of 2**63 items", "9b8000000000000000"),
        ("a text of 2**63 bytes", "7b8000000000000000"),
    ],
)
def test_what_is_no_cbor_is_refused_with_the_place(what: str, bytes_: str) -> None:
    with pytest.raises(FormatError, match=r"^here: "):
        _decode(bytes.fromhex(bytes_))


@pytest.mark.parametrize("tag", [0, 1, 2, 3, 4, 5, 21, 25, 28, 29, 30, 35, 36, 37, 256, 258, 260, 261, 1000, 55799, 2**63])
def test_no_tag_means_anything(tag: int) -> None:
    from burnstore.formats.burnpack.cbor import head

    for content in (b"\x00", b"\x61a", b"\x80", b"\x82\x01\x02", b"\x41a"):
        with pytest.raises(FormatError):
            _decode(b"\x81" + head(0xC0, tag) + content)


def test_nesting_deeper_than_burn_reads_is_refused() -> None:
    assert _decode(b"\x81" * 100 + b"\x00")
    for depth in (130, 100_000):
        with pytest.raises(FormatError):
            _decode(b"\x81" * depth + b"\x00")


def test_metadata_that_is_not_as_burn_writes_it_may_not_be_large() -> None:
    with pytest.raises(LimitError, match="burnpack_decoded_bytes"):
        _decode(b"\x98\xc8" + b"\x80" * 200, Limits(burnpack_decoded_bytes=100))


def test_what_the_metadata_cannot_hold_is_not_encoded() -> None:
    with pytest.raises(TypeError):
        encode({"a": b"bytes"})
