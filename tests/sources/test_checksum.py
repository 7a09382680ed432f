"""CRC-32 by folding, beside zlib's."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnstore.sources.checksum import Checksum


def folded(data: bytes, cuts: list[int]) -> int:
    """The CRC of data that comes in pieces."""
    checksum = Checksum()
    for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        checksum.update(data[begin:end])
    return checksum.value()


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=5))
def test_short_data_in_any_pieces_has_zlibs_crc(data: bytes, cuts: list[int]) -> None:
    assert folded(data, sorted(min(cut, len(data)) for cut in cuts)) == zlib.crc32(data)


@pytest.mark.parametrize("size", [32768, 49961, 49962, 91638, 91639, 91640, 262144, 353783, 353784, 1_000_003])
def test_long_data_in_any_pieces_has_zlibs_crc(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    cuts = sorted(random.Random(size).sample(range(size), 6))
    assert folded(data, []) == folded(data, cuts) == zlib.crc32(data)


def test_the_value_can_be_asked_for_again_and_more_can_follow() -> None:
    checksum = Checksum()
    checksum.update(b"1234")
    assert checksum.value() == checksum.value() == zlib.crc32(b"1234")
    checksum.update(b"56789")
    assert checksum.value() == 0xCBF43926  # the check value of CRC-32


def test_zeros_and_ones_are_told_apart_by_their_length() -> None:
    assert folded(bytes(200_000), []) == zlib.crc32(bytes(200_000)) != zlib.crc32(bytes(200_001))
