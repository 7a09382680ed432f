"""The ten bytes before the metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

import burnstore as bs
from burnstore.errors import FormatError, TruncatedError, UnknownFormatError
from burnstore.formats.burnpack.header import align, pack_header, unpack_header

from .handmade import EIGHT, burnpack, entry


def test_the_header_is_the_one_that_burn_writes(data: Path) -> None:
    raw = (data / "burn/v0.20.1/seed42/net.bpk").read_bytes()
    magic, version, length = unpack_header(raw[:10])
    assert (magic, version) == (b"NRUB", 1)
    assert pack_header(length) == raw[:10]


def test_data_begins_at_the_next_multiple_of_256() -> None:
    assert [align(number) for number in (0, 1, 255, 256, 257, 2**40 + 1)] == [0, 256, 256, 256, 512, 2**40 + 256]


def test_version_0_is_read_and_a_newer_one_refused() -> None:
    top = {"tensors": {"x": entry()}}
    assert bs.open(burnpack(top, EIGHT, version=0))["x"].numpy().tolist() == [1.5, -2.0]
    for version in (2, 256, 65535):
        with pytest.raises(FormatError, match=f"version {version}"):
            bs.open(burnpack(top, EIGHT, version=version))


def test_other_magic_bytes_are_no_burnpack() -> None:
    for magic in (b"BURN", b"NRUb", b"\0\0\0\0"):
        with pytest.raises(FormatError):
            bs.open(burnpack({"tensors": {}}, magic=magic), format="burnpack")
        with pytest.raises((UnknownFormatError, FormatError)):
            bs.open(burnpack({"tensors": {}}, magic=magic))


def test_a_header_cut_anywhere_is_refused() -> None:
    whole = burnpack({"tensors": {"x": entry(), "y": entry(256, 264)}}, EIGHT + bytes(248) + EIGHT)
    assert len(bs.open(whole)) == 2
    for length in range(len(whole)):
        with pytest.raises(FormatError):
            bs.open(whole[:length], format="burnpack")


def test_a_claimed_length_beyond_the_file_is_refused_before_anything_is_allocated() -> None:
    for length in (100, 2**30, 2**32 - 1):
        with pytest.raises(TruncatedError, match="byte 6"):
            bs.open(pack_header(length) + bytes(50))
