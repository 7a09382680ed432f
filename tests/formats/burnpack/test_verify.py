"""Each oddity that both versions of Burn tolerate is listed, and nothing that they write is called odd."""

from __future__ import annotations

from pathlib import Path

import pytest

import burnstore as bs

from .handmade import EIGHT, burnpack, entry


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("version0", "version is 0"),
        ("cbor_trailing", "3 bytes follow the metadata inside its block"),
        ("indefinite_map", "indefinite length"),
        ("param_id_null", "tensor 'x' has a param_id of null"),
        ("unknown_key", "unknown keys: extra"),
        ("unknown_tensor_key", "tensor 'x' has unknown keys"),
        ("unsorted_names", "names are not sorted"),
        ("trailing_bytes", "4 bytes follow the last tensor"),
        ("offsets_unaligned", "tensor 'x' does not begin at a multiple of 256"),
        ("offsets_overlap", "'x' and 'y' are one"),
        ("unaligned_v019", "layout is that of Burn 0.19"),
    ],
)
def test_an_oddity_is_listed_and_the_file_is_good(data: Path, name: str, words: str) -> None:
    report = bs.verify(data / "burn/errors" / f"{name}.bpk")
    assert report.ok and any(words in oddity for oddity in report.oddities), report
    assert words in str(report)


@pytest.mark.parametrize("name", ["ok", "no_param_id", "dtype_bool_native", "dtype_bool_plain"])
def test_what_burn_writes_is_not_odd(data: Path, name: str) -> None:
    report = bs.verify(data / "burn/errors" / f"{name}.bpk")
    assert report.ok and not report.oddities


def test_no_file_of_burn_is_odd_but_those_of_019_and_the_corrupted_one(data: Path) -> None:
    odd = {path.name for path in (data / "burn").rglob("*.bpk") if "errors" not in path.parts and bs.verify(path).oddities}
    assert odd == {"mid.bpk", "net.bpk", "duplicate.bpk"}
    assert all(bs.verify(path).ok for path in (data / "burn/v0.20.1").rglob("*.bpk"))


def test_what_burnstore_writes_is_never_odd() -> None:
    tensors = {"b": [1.0], "a": [True, False], "empty": [], "scalar": 1}
    for version in ("0.20", "0.22"):
        for metadata in (None, {}, {"k": "v"}):
            written = bs.save(tensors, bytes, format="bpk", metadata=metadata, for_burn=version)  # type: ignore[call-overload]
            assert not bs.verify(written).oddities


def test_padding_that_is_not_zero_is_listed() -> None:
    top = {"tensors": {"x": entry(), "y": entry(256, 264)}}
    clean = burnpack(top, EIGHT + bytes(248) + EIGHT)
    assert not bs.verify(clean).oddities
    for at in (255, 264, 511):
        dirty = bytearray(clean)
        dirty[at] = 1
        assert any("padding" in oddity for oddity in bs.verify(bytes(dirty)).oddities), at


def test_booleans_other_than_0_and_1_are_listed() -> None:
    raw = burnpack({"tensors": {"b": entry(0, 3, dtype="Bool", shape=[3])}}, b"\x00\x01\x02")
    assert "other than 0 and 1" in bs.verify(raw).oddities[0]


def test_indefinite_lists_inside_entries_are_listed() -> None:
    shape = "6573686170659f02ff"
    block = f"a16774656e736f7273a16178a365647479706563463332{shape}6c646174615f6f666673657473820008"
    raw = burnpack(bytes.fromhex(block), EIGHT)
    assert bs.open(raw)["x"].numpy().tolist() == [1.5, -2.0]
    assert any("indefinite" in oddity for oddity in bs.verify(raw).oddities)


def test_a_broken_file_is_a_problem_that_is_told(data: Path) -> None:
    for name in ("data_truncated", "duplicate_names", "version2", "tensor_over_limit", "cbor_deep"):
        report = bs.verify(data / "burn/errors" / f"{name}.bpk")
        assert not report.ok and name in report.problems[0] and not report
