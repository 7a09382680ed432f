"""Quantised tensors, against bytes and floats worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import burnstore as bs
from burnstore.quantized import QuantizedDType, Scheme
from tests.sources.handmade import burnpack_bytes

BLOCK = {"storage": [4, 1, 1, 1, 1], "len": 1}


def spelled_022(value: str = "Q8S", store: object = "Native", tensor: object = None, block: object = None) -> dict[str, object]:
    return {"QFloat": {"value": value, "store": store, "mode": "Symmetric", "tensor": tensor, "block": block}}


def opened(dtype: object, shape: tuple[int, ...], raw: bytes) -> bs.TensorSnapshot:
    return bs.open(burnpack_bytes({"q": (dtype, shape, raw)}))["q"]


def f32(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


def test_one_scale_multiplies_every_value() -> None:
    snapshot = opened(spelled_022(tensor="F32"), (2, 2), np.array([1, -2, 127, -127], np.int8).tobytes() + f32(0.5))
    assert snapshot.dequantize().tolist() == [[0.5, -1.0], [63.5, -63.5]]
    assert snapshot.dequantize().dtype == np.float32
    assert snapshot.parts["values"].tolist() == [[1, -2], [127, -127]] and snapshot.parts["scale"] == 0.5


def test_the_old_spelling_of_one_scale_means_the_same() -> None:
    old = {"QFloat": {"value": "Q8S", "param": "F32", "store": "Native", "level": "Tensor", "mode": "Symmetric"}}
    assert opened(old, (2,), b"\x01\xff" + f32(3.0)).dequantize().tolist() == [3.0, -3.0]


def test_no_level_at_all_is_one_scale() -> None:
    assert opened(spelled_022(), (1,), b"\x02" + f32(4.0)).dequantize().tolist() == [8.0]


def test_block_scales_count_over_the_innermost_axis() -> None:
    raw = np.array([1, 2, 3, 4, 5, 6, 7, 8], np.int8).tobytes() + f32(1.0, 10.0)
    snapshot = opened(spelled_022(block={"size": BLOCK, "dtype": "F32"}), (2, 4), raw)
    assert snapshot.dequantize().tolist() == [[1, 2, 3, 4], [50, 60, 70, 80]]
    assert snapshot.parts["scales"].shape == (2, 1)


def test_a_block_at_the_end_may_be_short() -> None:
    raw = bytes(range(1, 7)) + f32(1.0, 10.0)
    assert opened(spelled_022(block={"size": BLOCK, "dtype": "F32"}), (6,), raw).dequantize().tolist() == [1, 2, 3, 4, 50, 60]


def test_blocks_of_two_axes_are_cut_from_both() -> None:
    block = {"storage": [2, 2, 1, 1, 1], "len": 2}
    raw = bytes([1] * 8) + f32(1, 2)
    snapshot = opened(spelled_022(block={"size": block, "dtype": "F32"}), (2, 4), raw)
    assert snapshot.dequantize().tolist() == [[1, 1, 2, 2], [1, 1, 2, 2]]


def test_two_levels_multiply_their_scales_first() -> None:
    """(s * T) rounded to float32, then q times that: the order shows in the last bit."""
    s, t, q = np.float32(1.1), np.float32(1.3), 3
    raw = bytes([q]) + s.tobytes() + t.tobytes()
    snapshot = opened(spelled_022(tensor="F32", block={"size": BLOCK, "dtype": "F32"}), (1,), raw)
    assert snapshot.dequantize()[0] == np.float32(q) * (s * t)
    assert set(snapshot.parts) == {"values", "scales", "tensor_scale"}


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        ("F16", np.float16(0.25).tobytes(), 0.25),
        ("BF16", b"\x80\x3e", 0.25),
        ("UE8M0", bytes([127]), 1.0),
        ("UE8M0", bytes([130]), 8.0),
        ("UE8M0", bytes([0]), 2.0**-127),
        ("UE8M0", bytes([254]), 2.0**127),
        ("UE4M3", bytes([0x7E]), 448.0),
        ("UE4M3", bytes([0x38]), 1.0),
        ("UE4M3", bytes([0x01]), 2.0**-9),
    ],
)
def test_scales_of_every_dtype_have_the_value_of_their_code(kind: str, raw: bytes, value: float) -> None:
    snapshot = opened(spelled_022(block={"size": BLOCK, "dtype": kind}), (2,), b"\x01\xff" + raw)
    assert snapshot.dequantize().tolist() == [value, -value]


@pytest.mark.parametrize(("kind", "raw"), [("UE8M0", b"\xff"), ("UE4M3", b"\x7f")])
def test_the_code_for_not_a_number_gives_nan(kind: str, raw: bytes) -> None:
    assert np.isnan(opened(spelled_022(block={"size": BLOCK, "dtype": kind}), (1,), b"\x01" + raw).dequantize()).all()


def test_values_of_four_bits_packed_in_words_begin_with_the_lowest_bits() -> None:
    values = [1, -1, 7, -8, 0, 3, -2, 5, -7]
    word = sum((value & 15) << (4 * place) for place, value in enumerate(values[:8]))
    raw = word.to_bytes(4, "little") + (values[8] & 15).to_bytes(4, "little") + f32(2.0)
    snapshot = opened(spelled_022("Q4F", {"PackedU32": 0}, tensor="F32"), (3, 3), raw)
    assert snapshot.dequantize().reshape(-1).tolist() == [2.0 * value for value in values]
    assert snapshot.parts["values"].dtype == np.uint32


def test_values_of_two_and_eight_bits_packed_in_words() -> None:
    two = [1, -2, -1, 0] * 4
    word = sum((value & 3) << (2 * place) for place, value in enumerate(two))
    snapshot = opened(spelled_022("Q2F", {"PackedU32": 0}, tensor="F32"), (16,), word.to_bytes(4, "little") + f32(1.0))
    assert snapshot.dequantize().tolist() == two
    snapshot = opened(spelled_022("Q8S", {"PackedU32": 0}, tensor="F32"), (3,), b"\x01\xff\x7f\x00" + f32(1.0))
    assert snapshot.dequantize().tolist() == [1, -1, 127]


def test_a_whole_byte_is_stored_for_four_bits_that_are_not_packed() -> None:
    assert opened(spelled_022("Q4S", tensor="F32"), (3,), b"\x07\xf9\x00" + f32(2.0)).dequantize().tolist() == [14, -14, 0]


def test_numpy_refuses_and_names_what_to_call() -> None:
    snapshot = opened(spelled_022(tensor="F32"), (1,), b"\x01" + f32(1.0))
    for read in (snapshot.numpy, lambda: snapshot.numpy(copy=True), lambda: snapshot[0]):
        with pytest.raises(bs.errors.QuantizedError, match="dequantize"):
            read()
    assert snapshot.dtype.is_quantized and "Q8S" in str(snapshot.dtype)


def test_a_plain_tensor_has_no_parts_and_nothing_to_dequantize() -> None:
    snapshot = bs.TensorSnapshot.from_data("w", [1.0])
    assert snapshot.parts == {} and not snapshot.dtype.is_quantized
    with pytest.raises(bs.errors.DTypeError, match=r"\.numpy\(\)"):
        snapshot.dequantize()


def test_a_scheme_whose_elements_no_release_explains_says_so() -> None:
    snapshot = opened(spelled_022("E2M1", {"PackedNative": 0}, tensor="F32"), (4,), b"\x12\x34" + f32(1.0))
    with pytest.raises(bs.errors.DTypeError, match=r"\.parts"):
        snapshot.dequantize()
    assert snapshot.parts["values"].tolist() == [0x12, 0x34]


@pytest.mark.parametrize(
    ("value", "store"),
    [("E2M1", {"PackedNative": 0}), ("E2M1", {"PackedU32": 0}), ("Q8S", {"PackedU32": 1}), ("Q4F", {"PackedU32": 1})],
)
def test_a_lone_packed_element_is_refused_too_although_its_word_looks_like_one_value(value: str, store: object) -> None:
    words = b"\x01" if store == {"PackedNative": 0} else b"\x01\0\0\0"
    with pytest.raises(bs.errors.DTypeError, match=r"\.parts"):
        opened(spelled_022(value, store, tensor="F32"), (1,), words + f32(1.0)).dequantize()


def test_read_refuses_a_quantised_tensor_by_name() -> None:
    data = burnpack_bytes({"q": (spelled_022(tensor="F32"), (1,), b"\x01" + f32(1.0))})
    with pytest.raises(bs.errors.QuantizedError, match="'q'"):
        bs.read(data)


def test_safetensors_refuses_a_quantised_tensor_with_advice() -> None:
    snapshot = opened(spelled_022(tensor="F32"), (1,), b"\x01" + f32(1.0))
    with pytest.raises(bs.errors.DTypeError, match="dequantize"):
        bs.save([snapshot], bytes, format="safetensors")


def test_the_bytes_of_a_quantised_tensor_survive_in_tensor_data() -> None:
    raw = b"\x01\xff" + f32(3.0)
    data = opened(spelled_022(tensor="F32"), (2,), raw).to_data()
    assert data.bytes == raw and data.shape == (2,) and "Q8S" in repr(data)
    again = bs.TensorSnapshot.from_data("again", data)
    assert again.dequantize().tolist() == [3.0, -3.0]


def test_tensor_data_of_the_wrong_length_is_refused_for_quantised_dtypes_too() -> None:
    dtype = QuantizedDType.with_scheme(Scheme("Q8S"))
    with pytest.raises(bs.errors.TensorDataError, match="6 bytes"):
        bs.TensorData(b"\0" * 5, (2,), dtype)


def test_a_block_far_larger_than_its_tensor_takes_no_more_memory_than_the_tensor() -> None:
    scheme = Scheme("Q8S", block=(255,) * 5, block_scale="F32")
    dtype = QuantizedDType.with_scheme(scheme)
    data = bs.TensorData(bytes([3]) + np.array(0.5, np.float32).tobytes(), (1,) * 5, dtype)
    assert bs.TensorSnapshot.from_data("w", data).dequantize().tolist() == [[[[[1.5]]]]]
