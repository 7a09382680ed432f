"""A snapshot where NumPy wants an array: `np.asarray(snapshot, copy=...)` keeps NumPy's rules.

NumPy asks `__array__` by those words from version 2 on, so the tests ask it themselves.
"""

from __future__ import annotations

import io

import numpy as np
import pytest

import burnstore as bs
from tests.sources.handmade import burnpack_bytes, safetensors_bytes

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)
DATA = safetensors_bytes({"w": VALUES})


@pytest.mark.parametrize("dtype", [None, np.float32, "<f4"])
def test_no_copy_is_made_where_none_may_be(dtype: object) -> None:
    view = bs.open(DATA)["w"].__array__(dtype, copy=False)
    assert np.shares_memory(view, np.frombuffer(DATA, np.uint8)) and not view.flags.writeable
    np.testing.assert_array_equal(view, VALUES)


def test_what_cannot_be_had_without_a_copy_is_refused_where_none_may_be_made() -> None:
    made = bs.TensorSnapshot.from_closure("w", "F32", (2, 3), lambda: VALUES)
    wide = bs.open(burnpack_bytes({"w": ({"Bool": "U32"}, (1,), b"\1\0\0\0")}))["w"]
    refused = [(bs.open(DATA)["w"], np.float64), (bs.open(io.BytesIO(DATA))["w"], None), (made, None), (wide, None)]
    for snapshot, dtype in refused:
        with pytest.raises(ValueError, match="'w': it cannot be had without a copy") as caught:
            snapshot.__array__(dtype, copy=False)
        assert isinstance(caught.value, bs.errors.BurnstoreError)
        wanted = snapshot.numpy() if dtype is None else snapshot.numpy().astype(dtype)
        for array in (snapshot.__array__(dtype), np.asarray(snapshot, dtype)):
            assert array.dtype == wanted.dtype and array.tolist() == wanted.tolist()


@pytest.mark.parametrize("dtype", [None, np.float32, np.float64])
def test_a_copy_that_is_asked_for_is_ones_own(dtype: object) -> None:
    array = bs.open(DATA)["w"].__array__(dtype, copy=True)
    assert array.flags.writeable and not np.shares_memory(array, np.frombuffer(DATA, np.uint8))
    array += 1
    np.testing.assert_array_equal(bs.open(DATA)["w"].numpy(), VALUES)


def test_the_same_dtype_said_again_costs_no_copy() -> None:
    for array in (np.asarray(bs.open(DATA)["w"], np.float32), bs.open(DATA)["w"].__array__(np.float32)):
        assert np.shares_memory(array, np.frombuffer(DATA, np.uint8))
