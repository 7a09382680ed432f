"""The ten bytes of the header and each byte of the metadata, damaged one at a time."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

from tests.fuzz import naive
from tests.safety.forge import DATA, bpk, tensor
from tests.safety.prison import assert_refused, attack

GOOD = bpk({"tensors": {"t": tensor()}})


@pytest.mark.parametrize("magic", [b"BURN", b"NRU\0", b"\0RUB", b"nrub", b"PK\3\4", bytes(4)])
def test_another_magic_is_refused(magic: bytes) -> None:
    assert_refused({"magic": bpk({"tensors": {"t": tensor()}}, magic=magic)})
    assert_refused({"magic": bpk({"tensors": {"t": tensor()}}, magic=magic)}, format="burnpack")


def test_a_newer_version_is_refused_by_its_number() -> None:
    assert_refused({str(v): bpk({"tensors": {}}, version=v) for v in (2, 3, 256, 2**16 - 1)}, "byte 4", "version")


def test_a_length_that_reaches_past_the_end_is_refused() -> None:
    lengths = (len(GOOD), 10**9, 2**30, 2**31 - 1, 2**31, 2**32 - 1)
    assert_refused({str(length): bpk({"tensors": {"t": tensor()}}, length=length) for length in lengths}, "byte 6", "metadata")


def test_a_length_that_is_too_short_is_refused() -> None:
    block = len(GOOD) - 256 - len(DATA)
    assert_refused({str(length): bpk({"tensors": {"t": tensor()}}, length=length) for length in range(min(block, 42))})


def test_a_gigabyte_of_metadata_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.bpk"
    with path.open("wb") as file:
        file.write(b"NRUB" + struct.pack("<HI", 1, 2**30))
        file.truncate(2**30 + 4096)  # a hole in the file: nothing of it is on the disk
    assert_refused({"huge": path}, "huge.bpk", "104857600")


def test_each_damaged_byte_is_refused_or_read_as_what_the_file_then_says(data: Path) -> None:
    good = (data / "burn" / "v0.22.1" / "ramp" / "net.bpk").read_bytes()
    end = 10 + int.from_bytes(good[6:10], "little")
    files = {}
    for at in range(end + 4):
        for change in (*(1 << bit for bit in range(8)), good[at], 255 - good[at]):
            if change:
                files[f"byte {at} ^ {change:#x}"] = good[:at] + bytes([good[at] ^ change]) + good[at + 1 :]
    for label, outcome in attack(files, format="burnpack").items():
        if outcome.error is None:
            want = naive.burnpack(files[label])
            got = {name: (shape, digest) for name, (_, shape, digest) in outcome.tensors.items()}
            assert got == {name: (shape, hashlib.sha256(raw).hexdigest()) for name, (_, shape, raw) in want.items()}, label
        else:
            assert outcome.where, label
