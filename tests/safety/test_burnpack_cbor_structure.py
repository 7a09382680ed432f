"""CBOR that is not the map that Burnpack wants: broken, twisted, endless, or full of things that look equal."""

from __future__ import annotations

import struct

import cbor2
import pytest

from tests.safety.forge import bpk, head, tensor, text
from tests.safety.prison import assert_refused, attack

ONE = text("tensors") + b"\xa1" + text("t") + cbor2.dumps(tensor())


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        -1,
        1.5,
        True,
        "tensors",
        b"tensors",
        [],
        [[]],
        {},
        {"tensor": {}},
        {"Tensors": {}},
        {b"tensors": {}},
        {"tensors": None},
    ],
    ids=repr,
)
def test_metadata_that_is_not_a_map_with_tensors_is_refused(value: object) -> None:
    assert_refused({"value": bpk(value)})


@pytest.mark.parametrize(
    "tensors", [[], [["t", {}]], "t", 5, {"t": None}, {"t": []}, {"t": ["F32", [2], [0, 8]]}, {"t": {}}], ids=repr
)
def test_tensors_that_are_no_descriptors_are_refused(tensors: object) -> None:
    assert_refused({"tensors": bpk({"tensors": tensors})})


@pytest.mark.parametrize("missing", ["dtype", "shape", "data_offsets"])
def test_a_descriptor_without_a_field_is_refused(missing: str) -> None:
    fields = {key: value for key, value in tensor().items() if key != missing}
    assert_refused({missing: bpk({"tensors": {"t": fields}})}, missing)


@pytest.mark.parametrize(
    "metadata", [None, [], "text", 5, {"k": 5}, {"k": None}, {"k": ["v"]}, {"k": b"v"}, {5: "v"}, {b"k": "v"}], ids=repr
)
def test_metadata_that_is_not_text_by_text_is_refused(metadata: object) -> None:
    assert_refused({"metadata": bpk({"tensors": {"t": tensor()}, "metadata": metadata})})


@pytest.mark.parametrize("number", [-1, 2**64, 1.0, True, "5", b"5", [5], float("nan")], ids=repr)
def test_a_param_id_that_is_no_number_of_64_bits_is_refused(number: object) -> None:
    assert_refused({"id": bpk({"tensors": {"t": tensor(param_id=number)}})})


def test_equal_keys_are_refused_at_each_level() -> None:
    fields = cbor2.dumps(tensor())
    again = b"\xa4" + fields[1:] + text("shape") + b"\x81\x02"
    files = {
        "tensors": b"\xa2" + ONE + ONE,
        "a name": b"\xa1" + text("tensors") + b"\xa2" + (text("t") + fields) * 2,
        "a name in another form": b"\xa1" + text("tensors") + b"\xa2" + text("t") + fields + b"\x78\x01t" + fields,
        "a name in pieces": b"\xa1" + text("tensors") + b"\xa2" + text("t") + fields + b"\x7f\x61t\xff" + fields,
        "a field": b"\xa1" + text("tensors") + b"\xa1" + text("t") + again,
        "metadata": b"\xa2" + ONE + text("metadata") + b"\xa2" + (text("k") + text("v")) * 2,
        "a map of a dtype": b"\xa1"
        + text("tensors")
        + b"\xa1"
        + text("t")
        + cbor2.dumps(tensor(dtype="@")).replace(text("@"), b"\xa2" + (text("Bool") + text("U32")) * 2),
        "an indefinite map": b"\xbf" + ONE + ONE + b"\xff",
    }
    assert_refused({label: bpk(block) for label, block in files.items()})


@pytest.mark.parametrize("key", [5, -1, 1.5, None, True, b"x", (1, 2), b"tensors"], ids=repr)
def test_a_key_that_is_not_text_is_refused(key: object) -> None:
    files = {
        "at the top": bpk({"tensors": {"t": tensor()}, key: 1}),
        "as a name": bpk({"tensors": {key: tensor()}}),
        "as a field": bpk({"tensors": {"t": {**tensor(), key: 1}}}),
    }
    assert_refused(files)


@pytest.mark.parametrize("depth", [129, 1000, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    kinds = {
        "lists": b"\x81",
        "maps": b"\xa1\x60",
        "keys": b"\xa1",
        "endless lists": b"\x9f",
        "endless maps": b"\xbf\x60",
        "tags": b"\xc6",
    }
    files = {kind: bpk(b"\xa2" + ONE + text("z") + opening * depth + b"\x00") for kind, opening in kinds.items()}
    assert_refused(files)
    assert_refused({f"{kind} first": bpk(opening * depth) for kind, opening in kinds.items()})


@pytest.mark.parametrize("claimed", [2**16, 2**31 - 1, 2**31, 2**32, 2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1], ids=hex)
def test_a_length_that_the_block_cannot_hold_is_refused(claimed: int) -> None:
    kinds = {"bytes": 2, "text": 3, "list": 4, "map": 5}
    files = {f"{kind} for tensors": bpk(b"\xa1" + text("tensors") + head(major, claimed)) for kind, major in kinds.items()}
    files |= {f"{kind} as the whole": bpk(head(major, claimed)) for kind, major in kinds.items()}
    files |= {f"{kind} as a key": bpk(b"\xa1" + head(major, claimed)) for kind, major in kinds.items()}
    files |= {
        f"{kind} for a shape": bpk(b"\xa1" + text("tensors") + b"\xa1\x61t\xa1" + text("shape") + head(major, claimed))
        for kind, major in kinds.items()
    }
    assert_refused(files)


def test_text_that_is_not_utf8_is_refused() -> None:
    wrong = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80")
    files = {}
    for raw in wrong:
        broken = bytes([0x60 + len(raw)]) + raw
        files[f"{raw!r} as a name"] = b"\xa1" + text("tensors") + b"\xa1" + broken + cbor2.dumps(tensor())
        files[f"{raw!r} in metadata"] = b"\xa2" + ONE + text("metadata") + b"\xa1" + text("k") + broken
        files[f"{raw!r} unknown"] = b"\xa2" + ONE + text("z") + broken
    files["a character cut in two pieces"] = b"\xa2" + ONE + text("metadata") + b"\xa1" + text("k") + b"\x7f\x61\xc3\x61\xa9\xff"
    assert_refused({label: bpk(block) for label, block in files.items()})


def test_reserved_and_misplaced_heads_are_refused() -> None:
    firsts = [major << 5 | low for major in range(8) for low in (28, 29, 30)] + [0x1F, 0x3F, 0xDF, 0xFF]
    files = {f"{first:#x} first": bpk(bytes([first])) for first in firsts}
    files |= {f"{first:#x} for tensors": bpk(b"\xa1" + text("tensors") + bytes([first])) for first in firsts}
    files |= {f"{first:#x} as a value": bpk(b"\xa2" + ONE + text("z") + bytes([first])) for first in firsts}
    files["a break in a definite list"] = bpk(b"\xa2" + ONE + text("z") + b"\x82\x00\xff")
    files["a map that ends on a key"] = bpk(b"\xbf" + ONE + text("z") + b"\xff")
    files["text pieces that are bytes"] = bpk(b"\xa2" + ONE + text("z") + b"\x7f\x41a\xff")
    files["a simple value in the wrong form"] = bpk(b"\xa2" + ONE + text("z") + b"\xf8\x10")
    assert_refused(files)


@pytest.mark.parametrize(
    "raw",
    [b"\xf7", b"\xf6", b"\xf4", b"\xf9\x7e\x00", b"\xf9\x7c\x00", b"\xfb" + struct.pack(">d", -1e300), b"\xe0", b"\xf8\xff"],
)
def test_undefined_nan_and_simple_values_are_no_numbers_or_texts(raw: bytes) -> None:
    places = {
        "tensors": b"\xa1" + text("tensors") + raw,
        "a descriptor": b"\xa1" + text("tensors") + b"\xa1\x61t" + raw,
        "a shape": b"\xa1" + text("tensors") + b"\xa1\x61t" + cbor2.dumps(tensor(shape="@")).replace(b"\x61@", raw),
        "a dimension": b"\xa1" + text("tensors") + b"\xa1\x61t" + cbor2.dumps(tensor(shape=["@"])).replace(b"\x61@", raw),
        "an offset": b"\xa1" + text("tensors") + b"\xa1\x61t" + cbor2.dumps(tensor(data_offsets=[0, "@"])).replace(b"\x61@", raw),
        "a dtype": b"\xa1" + text("tensors") + b"\xa1\x61t" + cbor2.dumps(tensor(dtype="@")).replace(b"\x61@", raw),
        "metadata": b"\xa2" + ONE + text("metadata") + b"\xa1\x61k" + raw,
        "a key": b"\xa2" + ONE + raw + b"\x00",
    }
    assert_refused({label: bpk(block) for label, block in places.items()})


@pytest.mark.parametrize(
    "scalars",
    [
        None,
        [],
        {"s": None},
        {"s": 5},
        {"s": {"Int": "5"}},
        {"s": {"Int": None}},
        {"s": ["Int", 5]},
        {5: {"Int": 5}},
        {"s": {"Int": [5]}},
    ],
    ids=repr,
)
def test_scalars_that_are_none_are_refused(scalars: object) -> None:
    assert_refused({"scalars": bpk({"tensors": {"t": tensor()}, "scalars": scalars})})


def test_what_burn_reads_too_is_read() -> None:
    """Indefinite lengths, bytes after the map, unknown keys, ids of null and version 0 do not change a value."""
    good = {"tensors": {"t": tensor()}}
    plain = attack({"plain": bpk(good)})["plain"].tensors
    files = {
        "indefinite": bpk(cbor2.dumps(good, indefinite_containers=True)),
        "bytes after the map": bpk(cbor2.dumps(good) + b"\xff\x00\xff"),
        "bytes after the data": bpk(good) + b"more",
        "unknown keys": bpk({**good, "more": [1, {"x": None}], "tensors": {"t": {**tensor(), "more": 1.5}}}),
        "an id of null": bpk({"tensors": {"t": tensor(param_id=None)}}),
        "version 0": bpk(good, version=0),
        "names not sorted": bpk({"tensors": {"t": tensor(), "a": tensor(shape=[0], data_offsets=[0, 0])}}),
    }
    for label, outcome in attack(files).items():
        assert outcome.error is None and outcome.tensors["t"] == plain["t"], f"{label}: {outcome}"


def test_names_that_hold_pieces_of_cbor_are_only_names() -> None:
    piece = text("data_offsets") + b"\x82\x00\x08"
    fields = cbor2.dumps(tensor())
    names = [piece.decode("latin-1"), text("dtype").decode() + "F32", "ldata_offsets", "edtype", "\x63F32eshape", "hparam_id"]
    for name in (*names, (piece[1:13] * 3).decode()):
        want = attack({name: bpk({"tensors": {name: tensor(), "z": tensor(dtype="U8", shape=[0], data_offsets=[0, 0])}})})[name]
        assert want.error is None and set(want.tensors) == {name, "z"}, (name, want.text)
    raw = b"\xa1" + text("tensors") + b"\xa1" + bytes([0x78, len(piece)]) + piece + fields  # 0x82 is no text by itself
    assert_refused({"not UTF-8": bpk(raw), "one too few": bpk(b"\xa1" + text("tensors") + b"\xa2" + text("t") + fields)})
