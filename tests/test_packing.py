"""Elements smaller than a byte, against ml_dtypes and against bits set by hand."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import burnstore as bs
from burnstore.packing import pack, unpack

TYPES = {"F4": ml_dtypes.float4_e2m1fn, "F6_E2M3": ml_dtypes.float6_e2m3fn, "F6_E3M2": ml_dtypes.float6_e3m2fn}
SAVED = {name: bs.DType.of(name) for name in TYPES}


def packed_by_hand(codes: list[int], bits: int) -> bytes:
    """All codes as one number, the first in the lowest bits."""
    number = sum(code << (bits * place) for place, code in enumerate(codes))
    return number.to_bytes(len(codes) * bits // 8, "little")


@pytest.mark.parametrize(
    ("code", "value"), [(0, 0.0), (1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0), (5, 3.0), (6, 4.0), (7, 6.0), (9, -0.5), (15, -6.0)]
)
def test_the_first_of_two_f4_values_lies_in_the_low_bits(code: int, value: float) -> None:
    """The values are those of the OCP standard for microscaling."""
    both = unpack(np.array([code | 2 << 4], np.uint8), SAVED["F4"], (2,)).astype(np.float32)
    assert both.tolist() == [value, 1.0]


@pytest.mark.parametrize(
    ("name", "code", "value"),
    [("F6_E2M3", 0b011111, 7.5), ("F6_E2M3", 0b001000, 1.0), ("F6_E2M3", 0b100001, -0.125), ("F6_E3M2", 0b011111, 28.0)],
)
def test_four_f6_values_lie_in_three_bytes(name: str, code: int, value: float) -> None:
    raw = np.frombuffer(packed_by_hand([code, 0, 0, code], 6), np.uint8)
    assert unpack(raw, SAVED[name], (4,)).astype(np.float32).tolist() == [value, 0.0, 0.0, value]


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_packing_is_what_one_large_number_of_the_codes_gives(name: str, data: st.DataObject) -> None:
    bits = SAVED[name].bits
    codes = data.draw(st.lists(st.integers(0, 2**bits - 1), max_size=40).map(lambda some: some[: len(some) // 4 * 4]))
    array = np.array(codes, np.uint8).view(TYPES[name])
    raw = pack(array, SAVED[name])
    assert raw.tobytes() == packed_by_hand(codes, bits)
    assert unpack(raw, SAVED[name], (len(codes),)).view(np.uint8).tolist() == codes


@pytest.mark.parametrize("name", TYPES)
def test_every_code_has_the_value_that_ml_dtypes_gives_it(name: str) -> None:
    codes = np.arange(2 ** SAVED[name].bits, dtype=np.uint8)
    values = codes.view(TYPES[name])
    again = unpack(pack(values, SAVED[name]), SAVED[name], values.shape)
    assert again.dtype == values.dtype and again.flags.writeable
    np.testing.assert_array_equal(again.astype(np.float32), values.astype(np.float32))


def test_booleans_of_four_bytes_are_true_for_anything_but_zero() -> None:
    raw = np.array([0, 1, 256, 2**31], "<u4").view(np.uint8)
    array = unpack(raw, bs.DType.of("Bool(U32)"), (2, 2))
    assert array.dtype == np.bool_ and array.tolist() == [[False, True], [True, True]]
    assert pack(np.array([True, False]), bs.DType.of("Bool(U32)")).tobytes() == b"\1\0\0\0\0\0\0\0"


def test_arrays_of_any_order_are_packed_as_their_values() -> None:
    codes = np.arange(16, dtype=np.uint8).reshape(4, 4)
    wanted = packed_by_hand(codes.T.reshape(-1).tolist(), 4)
    assert pack(codes.view(TYPES["F4"]).T, SAVED["F4"]).tobytes() == wanted
    assert pack(codes.view(TYPES["F4"])[::-1, ::2], SAVED["F4"]).tobytes() == packed_by_hand(
        codes[::-1, ::2].reshape(-1).tolist(), 4
    )


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0)])
def test_empty_tensors_of_packed_dtypes_are_empty_arrays(name: str, shape: tuple[int, ...]) -> None:
    snapshot = bs.TensorSnapshot.from_data("w", bs.TensorData(b"", shape, name))
    assert snapshot.numpy().shape == shape and snapshot.numpy().dtype == TYPES[name]


@pytest.mark.parametrize("name", TYPES)
def test_a_packed_tensor_is_known_by_its_elements_and_held_as_its_bytes(name: str) -> None:
    codes = [1, 2, 3, 4, 5, 6, 7, 0]
    raw = packed_by_hand(codes, SAVED[name].bits)
    snapshot = bs.TensorSnapshot.from_data("w", bs.TensorData(raw, (2, 4), name))
    assert snapshot.shape == (2, 4) and snapshot.nbytes == len(raw) and snapshot.tobytes() == raw
    wanted = np.array(codes, np.uint8).view(TYPES[name]).reshape(2, 4)
    np.testing.assert_array_equal(snapshot.numpy().astype(np.float32), wanted.astype(np.float32))
    np.testing.assert_array_equal(snapshot[1, ::-2].astype(np.float32), wanted[1, ::-2].astype(np.float32))
    held = bs.TensorSnapshot.from_data("w", wanted)
    assert held.tobytes() == raw and held.dtype == name


def test_what_needs_no_packing_is_refused() -> None:
    with pytest.raises(bs.errors.DTypeError):
        pack(np.zeros(2), bs.DType.of("F64"))
    with pytest.raises(bs.errors.DTypeError):
        unpack(np.zeros(8, np.uint8), bs.DType.of("F64"), (1,))
