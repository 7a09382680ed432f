"""The words for dtypes of all versions of Burn, read and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burnstore as bs
from burnstore.errors import DTypeError, FormatError
from burnstore.formats.burnpack.cbor import encode
from burnstore.formats.burnpack.spelling import PLAIN, read_dtype, write_dtype

from .handmade import block, burnpack, entry, scheme_020, scheme_022


def _read(spelled: Any) -> Any:
    return read_dtype(spelled, "here")


def _both(dtype: Any) -> tuple[Any, Any]:
    return write_dtype(dtype, "0.20", "w"), write_dtype(dtype, "0.22", "w")


def test_plain_dtypes_are_burns_words() -> None:
    assert set(PLAIN) == {
        *("F64", "F32", "Flex32", "F16", "BF16"),
        *("I64", "I32", "I16", "I8"),
        *("U64", "U32", "U16", "U8"),
        "Bool",
    }
    for word, dtype in PLAIN.items():
        if word != "Bool":
            assert _both(dtype) == (word, word)


def test_booleans_are_read_in_both_spellings_and_written_in_the_one_asked_for() -> None:
    for spelled, size in (("Bool", 1), ({"Bool": "Native"}, 1), ({"Bool": "U8"}, 1), ({"Bool": "U32"}, 4)):
        data = np.array([0, 1, 1], f"<u{size}").tobytes()
        file = burnpack({"tensors": {"b": entry(0, 3 * size, dtype=spelled, shape=[3])}}, data)
        assert bs.open(file)["b"].numpy().tolist() == [False, True, True]
        newer = {"Bool": "Native"} if spelled == "Bool" else spelled
        again = burnpack({"tensors": {"b": entry(0, 3 * size, dtype=newer, shape=[3])}}, data)
        assert bs.convert(file, bytes, format="bpk") == again
    assert _both(_read({"Bool": "U8"})) == ("Bool", {"Bool": "U8"})
    with pytest.raises(DTypeError, match=r"0\.22"):
        write_dtype(_read({"Bool": "U32"}), "0.20", "w")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (scheme_020(), scheme_022()),
        (scheme_020(value="Q8F", param="BF16"), scheme_022(value="Q8F", tensor="BF16")),
        (scheme_020(value="Q4S", store={"PackedU32": 0}), scheme_022(value="Q4S", store={"PackedU32": 0})),
        (scheme_020(value="E2M1", store={"PackedNative": 1}), scheme_022(value="E2M1", store={"PackedNative": 1})),
        (
            scheme_020(param="F16", level={"Block": block(4, 8)}),
            scheme_022(tensor=None, block={"size": block(4, 8), "dtype": "F16"}),
        ),
    ],
)
def test_a_scheme_of_020_is_that_of_022_in_other_words(old: Any, new: Any) -> None:
    one, other = _read({"QFloat": old}), _read({"QFloat": new})
    assert one == other and one.scheme == other.scheme
    assert _both(one) == ({"QFloat": old}, {"QFloat": new})
    # the order of the keys counts, too
    assert encode(write_dtype(one, "0.20", "w")) == encode({"QFloat": old})
    assert encode(write_dtype(one, "0.22", "w")) == encode({"QFloat": new})


def test_a_scheme_with_the_keys_of_both_versions_is_read() -> None:
    """As a writer may spell it so that both versions read it; the newer keys are the ones that count."""
    for union, want in (
        ({**scheme_020(), **scheme_022()}, scheme_022()),
        (
            {**scheme_020(level={"Block": block(16)}), **scheme_022(tensor=None, block={"size": block(16), "dtype": "F32"})},
            scheme_022(tensor=None, block={"size": block(16), "dtype": "F32"}),
        ),
    ):
        assert _read({"QFloat": union}).scheme == _read({"QFloat": want}).scheme


def test_the_packed_store_of_019_is_read() -> None:
    found = _read({"QFloat": scheme_020(value="Q4F", store="U32")}).scheme
    assert (found.store, found.packed_dim) == ("PackedU32", 0)


def test_absent_or_null_scales_are_one_f32_scale() -> None:
    for scheme in (scheme_022(tensor=None), {"value": "Q8S", "store": "Native", "mode": "Symmetric"}):
        file = burnpack(
            {"tensors": {"w": entry(0, 7, dtype={"QFloat": scheme}, shape=[3])}}, b"\x01\xff\x7f" + np.float32(0.5).tobytes()
        )
        assert bs.open(file)["w"].dequantize().tolist() == [0.5, -0.5, 63.5]


def test_two_levels_of_scales_are_multiplied_from_the_inside() -> None:
    scheme = scheme_022(tensor="F32", block={"size": block(2), "dtype": "F16"})
    data = bytes([1, 2, 3, 0xFF]) + np.array([0.5, 2], np.float16).tobytes() + np.float32(10).tobytes()
    file = burnpack({"tensors": {"w": entry(0, 12, dtype={"QFloat": scheme}, shape=[4])}}, data)
    assert bs.open(file)["w"].dequantize().tolist() == [5, 10, 60, -20]


@pytest.mark.parametrize(
    ("scheme", "shape"),
    [
        (scheme_022(block={"size": block(16), "dtype": "F32"}), "two levels"),
        (scheme_022(value="Q4S"), "natively"),
    ],
)
def test_what_020_cannot_say_is_refused_for_it(scheme: Any, shape: str) -> None:
    with pytest.raises(DTypeError, match=shape):
        write_dtype(_read({"QFloat": scheme}), "0.20", "w")


def test_a_dtype_that_burn_lacks_is_refused_with_what_to_do() -> None:
    for array in (np.zeros(2, np.complex64),):
        with pytest.raises(DTypeError, match="SafeTensors"):
            bs.save({"w": array}, bytes, format="bpk")


@pytest.mark.parametrize(
    "spelled",
    [
        {},
        {"Bool": "U16"},
        {"Bool": 1},
        {"Bool": None},
        {"QFloat": None},
        {"QFloat": {}},
        {"F32": "Native"},
        {"Bool": "U8", "QFloat": {}},
        {"QFloat": scheme_020(value="Q3S")},
        {"QFloat": scheme_020(value=["Q8S"])},
        {"QFloat": scheme_020(mode="Asymmetric")},
        {"QFloat": scheme_020(param="F64")},
        {"QFloat": scheme_020(level="Row")},
        {"QFloat": scheme_020(level={"Block": {"storage": [0], "len": 1}})},
        {"QFloat": scheme_020(level={"Block": {"storage": [300], "len": 1}})},
        {"QFloat": scheme_020(level={"Block": {"storage": [1], "len": 2}})},
        {"QFloat": scheme_020(level={"Block": {"storage": [1], "len": -1}})},
        {"QFloat": scheme_020(level={"Block": {"storage": "12345", "len": 2}})},
        {"QFloat": scheme_020(store={"PackedU32": -1})},
        {"QFloat": scheme_020(store={"PackedU64": 0})},
        {"QFloat": scheme_022(tensor="F16", block={"size": block(4), "dtype": "F32"})},
        {"QFloat": scheme_022(tensor=None, block={"size": block(4)})},
        {"QFloat": scheme_022(tensor=None, block=7)},
        {"QFloat": scheme_022(tensor=["F32"])},
    ],
)
def test_a_spelling_without_meaning_is_refused_at_its_tensor(spelled: Any) -> None:
    file = burnpack({"tensors": {"w": entry(0, 12, dtype=spelled)}}, bytes(12))
    with pytest.raises(FormatError, match="tensor 'w'") as caught:
        bs.open(file)
    assert "please report" not in str(caught.value)
