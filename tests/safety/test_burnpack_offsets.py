"""Ranges that are no ranges of the file."""

from __future__ import annotations

from typing import Any

import pytest

from tests.safety.forge import bpk, bpk_with, tensor
from tests.safety.prison import assert_refused, attack

TOP = 2**64


@pytest.mark.parametrize(
    "offsets",
    [
        *([0, 4], [0, 9], [1, 9], [8, 16], [256, 264], [8, 0], [8, 8], [9, 8], [2**63, 2**63 + 8], [2**32, 2**32 + 8]),
        *([TOP - 8, TOP - 1], [TOP - 9, TOP - 1], [TOP - 1, 7], [0, TOP - 1], [TOP - 1, TOP - 1], [0, 2**63], [-8, 0], [-1, 7]),
        *([-(2**63), -(2**63) + 8], [-TOP, -TOP + 8], [0, -8], [0], [], [0, 8, 8], [0, 8, 16], 8, None, "0,8", b"\0\x08"),
        *([0.0, 8.0], [0, 8.5], [False, 8], [0, None], ["0", "8"], [[0], [8]], {"begin": 0, "end": 8}, {0: 0, 1: 8}),
        *([float("nan"), 8], [0, float("inf")], [TOP, TOP + 8]),
    ],
    ids=str,
)
def test_a_range_that_is_none_is_refused(offsets: Any) -> None:
    assert_refused({"offsets": bpk_with(data_offsets=offsets)})


def test_the_error_names_the_tensor() -> None:
    assert_refused({"t": bpk_with(data_offsets=[0, 4])}, "'t'", "[0, 4]")


@pytest.mark.parametrize("spans", [([0, 8], [4, 12]), ([0, 8], [0, 4]), ([0, 8], [4, 8]), ([0, 8], [0, 8], [4, 12])], ids=str)
def test_tensors_that_share_some_of_their_bytes_are_refused(spans: tuple[list[int], ...]) -> None:
    tensors = {
        f"t{at}": tensor(dtype="U8", shape=[end - begin], data_offsets=[begin, end]) for at, (begin, end) in enumerate(spans)
    }
    assert_refused({"shared": bpk({"tensors": tensors}, bytes(16))}, "shares bytes")


def test_a_large_range_hides_no_smaller_one_further_on() -> None:
    spans = [(0, 100), (100, 110), (20, 30)]
    tensors = {f"t{at}": tensor(dtype="U8", shape=[e - b], data_offsets=[b, e]) for at, (b, e) in enumerate(spans)}
    assert_refused({"inside": bpk({"tensors": tensors}, bytes(110))}, "shares bytes")


def test_one_range_for_two_tensors_is_read_as_one_tensor_twice() -> None:
    outcome = attack({"tied": bpk({"tensors": {"a": tensor(), "b": tensor()}})})["tied"]
    assert outcome.error is None and outcome.tensors["a"] == outcome.tensors["b"]


def test_an_empty_tensor_may_lie_anywhere_in_the_file_but_not_behind_it() -> None:
    tensors = {"t": tensor(), "e": tensor(shape=[0], data_offsets=[4, 4])}
    assert attack({"inside": bpk({"tensors": tensors})})["inside"].error is None
    tensors["e"]["data_offsets"] = [300, 300]
    assert_refused({"behind": bpk({"tensors": tensors})})


def test_numbers_that_only_a_bignum_can_hold_are_refused() -> None:
    assert_refused({str(n): bpk_with(data_offsets=[n, n + 8]) for n in (2**64, 2**65, 2**200, 2**4096)}, "tag")
