"""Tags: CBOR's way of asking the reader to do something. No tag means anything in Burnpack, wherever it stands."""

from __future__ import annotations

import cbor2
import pytest

from tests.safety.forge import bpk, text
from tests.safety.prison import assert_refused

_KNOWN = (0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000, 55799)
_UNKNOWN = (6, 21, 24, 32, 40, 64, 255, 257, 1000, 65535, 70000, 2**32, 2**64 - 1)
_INSIDE = {
    0: "2020-01-01T00:00:00Z",
    1: 1e308,
    2: b"\xff" * 16,
    3: b"\xff" * 16,
    4: [1000000000, 1],
    5: [1000000000, 1],
    25: 0,
    29: 0,
    30: [1, 0],
    35: "(a+)+$",
    36: "From: a",
    37: bytes(16),
    52: b"\x7f\0\0\1",
    54: bytes(16),
    100: 0,
    256: ["a"],
    258: [1, 1],
    260: b"\x7f\0\0\1",
    261: {b"\x7f\0\0\0": 8},
    1004: "2020-01-01",
    43000: [1.0, 2.0],
    55799: 5,
    28: [1],
}


def _tagged(tag: int, inner: bytes) -> bytes:
    encoded = cbor2.dumps(tag)
    return bytes([encoded[0] | 0xC0]) + encoded[1:] + inner


def _descriptor(**changed: bytes) -> bytes:
    fields = {"dtype": text("F32"), "shape": b"\x81\x02", "data_offsets": b"\x82\x00\x08", "param_id": b"\x05", **changed}
    return bytes([0xA0 + len(fields)]) + b"".join(text(key) + value for key, value in fields.items())


_TENSORS = text("tensors") + b"\xa1" + text("t")


def _everywhere(tag: int) -> dict[str, bytes]:
    """A good file with one more tag at each place where a value or a key can stand, and with what the tag likes to hold."""
    good = b"\xa1" + _TENSORS + _descriptor()
    places = {
        "the whole": _tagged(tag, good),
        "the key tensors": b"\xa1" + _tagged(tag, text("tensors")) + b"\xa1" + text("t") + _descriptor(),
        "tensors": b"\xa1" + text("tensors") + _tagged(tag, b"\xa1" + text("t") + _descriptor()),
        "a name": b"\xa1" + text("tensors") + b"\xa1" + _tagged(tag, text("t")) + _descriptor(),
        "a descriptor": b"\xa1" + _TENSORS + _tagged(tag, _descriptor()),
        "dtype": b"\xa1" + _TENSORS + _descriptor(dtype=_tagged(tag, text("F32"))),
        "a map of a dtype": b"\xa1" + _TENSORS + _descriptor(dtype=b"\xa1" + text("Bool") + _tagged(tag, text("U32"))),
        "shape": b"\xa1" + _TENSORS + _descriptor(shape=_tagged(tag, b"\x81\x02")),
        "a dimension": b"\xa1" + _TENSORS + _descriptor(shape=b"\x81" + _tagged(tag, b"\x02")),
        "offsets": b"\xa1" + _TENSORS + _descriptor(data_offsets=_tagged(tag, b"\x82\x00\x08")),
        "an offset": b"\xa1" + _TENSORS + _descriptor(data_offsets=b"\x82\x00" + _tagged(tag, b"\x08")),
        "param_id": b"\xa1" + _TENSORS + _descriptor(param_id=_tagged(tag, b"\x05")),
        "an unknown key's value": b"\xa1" + _TENSORS + _descriptor(more=_tagged(tag, b"\x00")),
        "a metadata value": b"\xa2" + _TENSORS + _descriptor() + text("metadata") + b"\xa1" + text("k") + _tagged(tag, text("v")),
        "a scalar": b"\xa2"
        + _TENSORS
        + _descriptor()
        + text("scalars")
        + b"\xa1"
        + text("k")
        + b"\xa1"
        + text("Int")
        + _tagged(tag, b"\0"),
    }
    if tag in _INSIDE:
        like = _tagged(tag, cbor2.dumps(_INSIDE[tag]))
        places["what it likes, as the whole"] = like
        places["what it likes, as a dimension"] = b"\xa1" + _TENSORS + _descriptor(shape=b"\x81" + like)
        places["what it likes, as a key"] = b"\xa2" + _TENSORS + _descriptor() + like + b"\x00"
        places["what it likes, unknown"] = b"\xa2" + _TENSORS + _descriptor() + text("z") + like
    return {place: bpk(block) for place, block in places.items()}


@pytest.mark.parametrize("tags", [_KNOWN, _UNKNOWN], ids=["known", "unknown"])
def test_a_tag_is_refused_wherever_it_stands(tags: tuple[int, ...]) -> None:
    assert_refused({f"tag {tag} at {place}": file for tag in tags for place, file in _everywhere(tag).items()}, "tag")


def test_a_chain_of_tags_is_refused() -> None:
    files = {f"{depth} times {first:#x}": bpk(bytes([first]) * depth) for depth in (100, 100_000) for first in (0xC0, 0xC6, 0xDB)}
    assert_refused(files)


def test_a_shared_reference_to_itself_is_refused() -> None:
    inside = b"\xd8\x1c\x81\xd8\x1d\x00"  # a list that holds itself
    assert_refused({"loop": bpk(b"\xa2" + _TENSORS + _descriptor() + text("z") + inside)}, "tag")
