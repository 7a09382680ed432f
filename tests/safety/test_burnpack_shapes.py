"""Shapes that are none, and shapes whose product is not the number that a careless reader computes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.safety.forge import bpk_with
from tests.safety.prison import assert_refused


@pytest.mark.parametrize(
    "shape",
    [
        *([-2], [-1, -2], [2, -1], [1, 1, -2], [-(2**63)], [3], [1], [2, 2], [0], [2**62], [2**64 - 1]),
        *(
            [2**62, 4],
            [2**32, 2**32],
            [2**63, 2],
            [2**61, 8, 2],
            [2**64 - 1] * 9,
            [2**63 + 1, 2],
            [2**62 + 1, 4],
            [65536] * 4 + [2],
        ),
        *([2.0], [2.5], ["2"], [True, 2], [None], [[2]], [[]], 2, None, "2", b"\x02", {}, {"0": 2}, {2: 1}),
        *([float("nan")], [float("inf")], [-0.0]),
    ],
    ids=lambda shape: str(shape)[:40],
)
def test_a_shape_that_does_not_fit_is_refused(shape: Any) -> None:
    assert_refused({"shape": bpk_with(shape=shape)})


def test_a_shape_that_overflows_beside_a_zero_is_refused() -> None:
    shapes = ([2**62, 2**62, 0], [0, 2**63, 2**63], [2**64 - 1, 0], [0] + [2**40] * 4)
    assert_refused({str(shape): bpk_with(b"", shape=shape, data_offsets=[0, 0]) for shape in shapes})


def test_a_shape_of_a_million_dimensions_is_one_short_error() -> None:
    assert_refused({"ones": bpk_with(shape=[1] * 1_000_000), "zeros": bpk_with(shape=[0] * 1_000_000)}, "'t'")
