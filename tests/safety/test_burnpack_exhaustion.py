"""Metadata that is small on the disk and large in memory, or quick to write and slow to read."""

from __future__ import annotations

import struct
from itertools import product
from pathlib import Path

import cbor2
import pytest

from tests.safety.forge import bpk, tensor, text
from tests.safety.prison import assert_refused, attack

_TENSORS = text("tensors") + b"\xa1" + text("t") + cbor2.dumps(tensor())

SIZE = 40_000_000  # the cap on metadata is 100 MiB; this is large enough to fill the child, and quicker

pytestmark = pytest.mark.usefixtures("fresh_child")


def _colliding(size: int, prefix: bytes, value: bytes) -> bytes:
    """A map whose keys are lists, all with one hash: Python's -1 and -2 hash alike."""
    keys = [prefix + bytes(key) for key in product((0x20, 0x21), repeat=size)]
    return b"\xbf" + b"".join(key + value for key in keys) + b"\xff"


def test_keys_with_equal_hashes_do_not_hold_up_the_reader() -> None:
    files = {
        "lists as unknown keys": bpk(b"\xa2" + _TENSORS + text("z") + _colliding(17, b"\x91", b"\x00")),
        "lists as names": bpk(b"\xa1" + text("tensors") + _colliding(17, b"\x91", cbor2.dumps(tensor()))),
    }
    assert_refused(files)


@pytest.mark.parametrize(
    "item",
    [b"\x19\x01\x01", b"\x62ab", b"\x42ab", b"\x80", b"\xa1\x00\x00", b"\xf6"],
    ids=["numbers", "texts", "bytes", "lists", "full maps", "nulls"],
)
def test_megabytes_of_small_items_do_not_end_the_process(tmp_path: Path, item: bytes) -> None:
    """Each item costs up to seventy times its size in memory; refused or read, but without a process that ends."""
    path = tmp_path / "bomb.bpk"
    path.write_bytes(bpk(b"\xa2" + _TENSORS + text("z") + b"\x9f" + item * (SIZE // len(item)) + b"\xff"))
    attack({"bomb": path})
    path.unlink()


@pytest.mark.parametrize("piece", [b"\x61a", b"\x60"], ids=["letters", "nothing"])
def test_text_in_millions_of_pieces_does_not_end_the_process(tmp_path: Path, piece: bytes) -> None:
    path = tmp_path / "pieces.bpk"
    path.write_bytes(bpk(b"\xa2" + _TENSORS + text("z") + b"\x7f" + piece * (SIZE // len(piece)) + b"\xff"))
    attack({"pieces": path})
    path.unlink()


def test_millions_of_keys_do_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "keys.bpk"
    keys = b"".join(b"\x1a" + struct.pack(">I", at) + b"\x00" for at in range(4_000_000))
    path.write_bytes(bpk(b"\xa2" + _TENSORS + text("z") + b"\xbf" + keys + b"\xff"))
    attack({"keys": path})
    path.unlink()


def test_the_word_that_the_fast_way_cuts_at_does_not_fill_memory(tmp_path: Path) -> None:
    path = tmp_path / "cuts.bpk"
    word = text("data_offsets") + b"\x82"
    path.write_bytes(bpk(b"\xa1" + text("tensors") + b"\xba\x00\x01\x00\x00" + (word + b"\x18\xff") * (95_000_000 // 16)))
    assert_refused({"cuts": path}, "cuts.bpk")
    path.unlink()


def test_more_tensors_than_burn_reads_are_refused_by_their_number() -> None:
    one = cbor2.dumps(tensor(shape=[0], data_offsets=[0, 0]))
    names = b"".join(b"\x66" + b"%06d" % at + one for at in range(100_001))
    assert_refused({"100,001": bpk(b"\xa1" + text("tensors") + b"\xba" + struct.pack(">I", 100_001) + names, b"")}, "100001")


def test_a_tensor_over_burns_cap_is_refused_although_the_file_holds_it(tmp_path: Path) -> None:
    size = 10 * 2**30 + 1
    path = tmp_path / "large.bpk"
    path.write_bytes(bpk({"tensors": {"t": tensor(dtype="U8", shape=[size], data_offsets=[0, size])}}, b""))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + size)  # a hole in the file: nothing of it is on the disk
    assert_refused({"large": path}, "10737418240", io="pread")
