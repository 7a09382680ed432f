"""Burnpack files made by hand and by Python: what both versions of Burn read without doubt is read, the rest refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

import burnstore as bs
from burnstore.errors import BurnstoreError, FormatError, LimitError, TruncatedError

from .handmade import EIGHT, burnpack, entry

TOLERATED = (
    *("cbor_trailing", "dtype_bool_native", "dtype_bool_plain", "indefinite_map", "no_param_id", "offsets_overlap", "ok"),
    *("offsets_unaligned", "param_id_null", "trailing_bytes", "unaligned_v019", "unknown_key", "unknown_tensor_key"),
    *("unsorted_names", "version0"),
)


def _values(raw: bytes) -> dict[str, list[Any]]:
    return {name: tensor.numpy().tolist() for name, tensor in bs.open(raw).items()}


def test_what_burn_reads_without_doubt_is_read_and_all_else_refused(data: Path) -> None:
    files = sorted((data / "burn/errors").glob("*.bpk"))
    assert len(files) >= 40
    for path in files:
        if path.stem in TOLERATED:
            assert {tensor.nbytes for tensor in bs.open(path).values()} <= {8}, path.name
        else:
            with pytest.raises(BurnstoreError) as caught:
                print(path.name, dict(bs.open(path)))
            assert path.name in str(caught.value) and "please report" not in str(caught.value)


def test_what_burn_lists_of_odd_files_is_what_burnstore_lists(shared: Path, oracle: Any) -> None:
    """Of those that both versions read; where they read other bytes (0.19's layout), neither is believed."""
    import hashlib

    for stem in sorted(set(TOLERATED) - {"unaligned_v019"}):
        path = shared / "fixtures/burn/errors" / f"{stem}.bpk"
        version = "0.20" if stem == "dtype_bool_plain" else "0.22"
        rows = oracle(version, "list", path, {})["tensors"]
        wanted = {row["name"]: (row["shape"], row["sha256"]) for row in rows}
        found = {n: (list(t.shape), hashlib.sha256(t.tobytes()).hexdigest()) for n, t in bs.open(path).items()}
        assert found == wanted, stem
        if version == "0.22":
            assert {n: t.param_id for n, t in bs.open(path).items()} == {row["name"]: row["param_id"] for row in rows}


def test_too_many_tensors_are_refused_as_burn_does_unless_limits_say_otherwise(shared: Path) -> None:
    path = shared / "fixtures/burn/errors/too_many.bpk"
    with pytest.raises(LimitError, match="100001 tensors"):
        bs.open(path)
    assert len(bs.open(path, limits=bs.Limits(burnpack_tensors=200_000))) == 100_001


def test_bytes_written_by_hand() -> None:
    """Header 10, metadata 54, padding to 256, one I16 tensor of two elements."""
    block = bytes.fromhex(
        "a1" "6774656e736f7273" "a1" "6161" "a4" "656474797065" "63493136" "657368617065" "8102"
        "6c646174615f6f666673657473" "820004" "68706172616d5f6964" "07"
    )  # fmt: skip
    raw = b"NRUB\x01\0" + struct.pack("<I", len(block)) + block
    raw += bytes(256 - len(raw)) + b"\x01\x00\xff\xff"
    (tensor,) = bs.open(raw).values()
    assert (tensor.name, tensor.dtype, tensor.shape, tensor.param_id) == ("a", "I16", (2,), 7)
    assert tensor.numpy().tolist() == [1, -1]


def test_names_come_in_the_order_of_the_data() -> None:
    top = {"tensors": {"a": entry(256, 264), "b": entry(0, 8), "c": entry(8, 8, shape=[0])}}
    raw = burnpack(top, bytes(256) + EIGHT)
    assert list(bs.open(raw)) == ["b", "c", "a"]
    assert _values(raw) == {"b": [0, 0], "c": [], "a": [1.5, -2.0]}


def test_files_of_burn_019_have_no_padding_and_are_told_by_their_size() -> None:
    top = {"tensors": {"a": entry(0, 8), "b": entry(8, 16)}}
    packed = burnpack(top, EIGHT + bytes(8), aligned=False)
    assert _values(packed) == {"a": [1.5, -2.0], "b": [0, 0]}
    # the same offsets in an aligned file, as both versions of Burn read them
    assert _values(burnpack(top, bytes(8) + EIGHT)) == {"a": [0, 0], "b": [1.5, -2.0]}


def test_a_metadata_block_that_ends_at_256_needs_no_layout_to_be_guessed() -> None:
    for pad in range(200):
        raw = burnpack({"tensors": {"a": entry()}, "metadata": {"k": "x" * pad}}, EIGHT)
        assert _values(raw) == {"a": [1.5, -2.0]}


def test_unknown_keys_missing_ids_null_ids_and_order_do_not_matter() -> None:
    tensors = {"z": entry(param_id=None, extra=[1, {"deep": 2}]), "a": entry(256, 264, param_id=2**64 - 1)}
    raw = burnpack({"more": 1, "metadata": {"k": "ü"}, "tensors": tensors, "scalars": {"s": {"Int": -5}}}, EIGHT + bytes(256))
    store = bs.open(raw + b"trailing")
    assert {name: tensor.param_id for name, tensor in store.items()} == {"z": None, "a": 2**64 - 1}
    assert dict(store.metadata) == {"k": "ü"} and dict(store.scalars) == {"s": {"Int": -5}}


def test_two_tensors_of_one_range_are_one_tensor_twice_but_parts_are_not_shared() -> None:
    raw = burnpack({"tensors": {"a": entry(), "b": entry()}}, EIGHT)
    assert _values(raw) == {"a": [1.5, -2.0], "b": [1.5, -2.0]}
    for begin in (4, 1, 7):
        with pytest.raises(FormatError, match="shares bytes"):
            bs.open(burnpack({"tensors": {"a": entry(), "b": entry(begin, begin + 8)}}, bytes(16)))
    with pytest.raises(FormatError, match="shares bytes"):
        bs.open(burnpack({"tensors": {"a": entry(0, 16, shape=[4]), "b": entry(0, 8)}}, bytes(16)))


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (entry(8, 0), "ends before it begins"),
        (entry(0, 9), "has 9"),
        (entry(0, 8, shape=[3]), "needs 12 bytes"),
        (entry(0, 8, shape=[]), "needs 4 bytes"),
        (entry(0, 8, shape=[-2]), "not a size"),
        (entry(0, 0, shape=[2**32, 2**32]), "overflows"),
        (entry(0, 0, shape=[0, 2**70]), "size|int|integer|tag"),
        (entry(2**64 - 8, 2**64 - 1), "has 7"),
        (entry(0, 8, dtype="f32"), "no dtype 'f32'"),
        (entry(0, 8, dtype=7), "dtype"),
        (entry(0, 8, shape=[2.0]), "float"),
        (entry(0, 8, shape=[True]), "bool"),
        (entry(0, 8, param_id=-1), "param_id"),
        (entry(0, 8, param_id="5"), "param_id"),
        (entry(0, 8, data_offsets=[0]), "data_offsets"),
        (entry(0, 8, data_offsets=[0, 8, 9]), "data_offsets"),
        (entry(0, 8, data_offsets=[0, 8.0]), "data_offsets"),
        ({"dtype": "F32", "shape": [2]}, "data_offsets"),
        ({"dtype": "F32", "data_offsets": [0, 8]}, "shape"),
        ([], "object"),
    ],
)
def test_a_broken_entry_is_refused(tensor: Any, words: str) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        bs.open(burnpack({"tensors": {"x": tensor}}, EIGHT))
    assert "please report" not in str(caught.value)


@pytest.mark.parametrize(
    "top",
    [
        [],
        {},
        7,
        {"tensors": []},
        {"tensors": None},
        {"metadata": {}},
        {"tensors": {}, "metadata": {"k": 1}},
        {"tensors": {}, "metadata": {1: "v"}},
        {"tensors": {7: entry()}},
        {"tensors": {}, "scalars": {"s": 1}},
        {1: 2, "tensors": {}},
    ],
)
def test_broken_metadata_is_refused_or_its_unknown_keys_ignored(top: Any) -> None:
    try:
        assert len(bs.open(burnpack(top))) == 0 and top == {1: 2, "tensors": {}}
    except FormatError as error:
        assert "please report" not in str(error)


def test_a_tensor_beyond_the_end_of_the_file_is_an_unfinished_download() -> None:
    whole = burnpack({"tensors": {"x": entry(), "y": entry(256, 264)}}, EIGHT + bytes(248) + EIGHT)
    with pytest.raises(TruncatedError, match="need 520 bytes"):
        bs.open(whole[:-1])


def test_a_cut_file_with_gaps_is_not_taken_for_one_of_burn_019() -> None:
    """Its size is that of an unpadded file by chance; the files of 0.19 have no gaps between tensors."""
    whole = burnpack({"tensors": {"x": entry(), "y": entry(256, 264)}}, EIGHT + bytes(248) + EIGHT)
    unpadded = len(burnpack({"tensors": {"x": entry(), "y": entry(256, 264)}}, aligned=False))
    with pytest.raises(TruncatedError):
        print(_values(whole[: unpadded + 264]))


def test_burns_caps_hold_and_can_be_raised() -> None:
    raw = burnpack({"tensors": {"a": entry(), "b": entry(256, 264)}}, bytes(264))
    for option, value in (
        ("burnpack_tensors", 1),
        ("burnpack_tensor_bytes", 7),
        ("burnpack_metadata_bytes", 20),
        ("burnpack_file_bytes", 300),
    ):
        with pytest.raises(LimitError, match=option):
            bs.open(raw, limits=bs.Limits(**{option: value}))
        assert len(bs.open(raw, limits=bs.Limits(**{option: 10_000}))) == 2


def test_what_both_versions_of_burn_refuse_is_refused(shared: Path) -> None:
    """By the recorded answers of the real Burn to these files."""
    folder = shared / "fixtures/burn/errors"
    refused: dict[str, int] = {}
    for version in ("0.20", "0.22"):
        for row in json.loads((folder / f"errors_{version}.json").read_text()):
            name = row["command"][-1].rpartition("/")[2]
            if row["command"][1] == "list" and name.endswith(".bpk") and ("error" in row or "panic" in row):
                refused[name] = refused.get(name, 0) + 1
    both = [name for name, times in refused.items() if times == 2]
    assert len(both) >= 20
    for name in both:
        if name not in ("unaligned_v019.bpk", "not_bpk.bpk"):
            with pytest.raises(BurnstoreError):
                print(name, dict(bs.open(folder / name)))
