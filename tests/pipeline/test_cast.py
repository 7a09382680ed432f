"""Casts: which there are, what they lose, and values equal to those of NumPy and ml_dtypes, bit for bit."""

from __future__ import annotations

import tracemalloc
import warnings
from itertools import product

import ml_dtypes
import numpy as np
import pytest
import torch

import burnstore as bs
from burnstore.data import HeldBytes, PartsOnly, PendingBytes, TensorData
from burnstore.dtypes import DType, describe_dtypes
from burnstore.errors import DTypeError, TensorDataError
from burnstore.pipeline.cast import cast_fault, check_integers, is_lossy, recast
from burnstore.pipeline.reshape import permuted
from burnstore.snapshot import TensorSnapshot

MIB = 1024 * 1024
NAMED = {dtype.name: dtype for dtype in describe_dtypes()}
FLOATS = [dtype.name for dtype in describe_dtypes() if dtype.kind == "float"]
INTEGERS = [dtype.name for dtype in describe_dtypes() if dtype.kind in ("int", "uint")]
BOOLS = ["Bool", "Bool(U8)", "Bool(U32)"]


def every_value(name: str, count: int) -> TensorSnapshot:
    """All codes of a small dtype over and over; random ones of a large one, with what is special at its edges."""
    dtype = NAMED[name]
    if dtype.bits > 16:
        codes = np.random.default_rng(1).integers(0, 256, count * dtype.bits // 8, np.uint8)
        values = codes.view(dtype.numpy_dtype)
        limits = np.finfo(values.dtype)
        special = [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            limits.max,
            limits.tiny,
            limits.smallest_subnormal,
            65519.9,
            65520,
            1e-40,
            1 + 2**-9,
        ]
        values[: len(special)] = special
        values[20:4020] = np.linspace(-70000, 70000, 4000)
        return TensorSnapshot("w", dtype, (count,), HeldBytes(codes))
    if dtype.bits >= 8:
        codes = np.resize(np.arange(1 << dtype.bits, dtype=f"u{dtype.bits // 8}"), count)
        return TensorSnapshot("w", dtype, (count,), HeldBytes(codes))
    codes = np.resize(np.arange(1 << dtype.bits, dtype=np.uint8), count).view(dtype.numpy_dtype)
    return TensorSnapshot.from_data("w", codes)


def expected(values: np.ndarray, wanted: DType) -> np.ndarray:
    with np.errstate(all="ignore"):
        if not np.can_cast(values.dtype, wanted.numpy_dtype, casting="unsafe"):  # ml_dtypes lacks a few of its own
            values = values.astype(np.float32)
        return values.astype(wanted.numpy_dtype)


@pytest.mark.parametrize(("found", "wanted"), list(product(FLOATS, FLOATS)))
def test_floats_are_cast_as_numpy_and_ml_dtypes_do_without_warnings(found: str, wanted: str) -> None:
    snapshot = every_value(found, 140_000)  # more than a chunk, and not a multiple of one
    want = expected(snapshot.numpy(), NAMED[wanted])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cast = recast(snapshot, wanted)
        got = cast.numpy()
    assert cast.dtype == wanted and got.dtype == want.dtype
    assert np.array_equal(got.view(np.uint8), want.view(np.uint8))


@pytest.mark.parametrize(("found", "wanted"), [("F32", "BF16"), ("F32", "F16"), ("BF16", "F32"), ("F16", "F32")])
def test_torch_casts_to_the_same_values(found: str, wanted: str) -> None:
    snapshot = every_value(found, 70_000)
    whole = snapshot.tobytes()
    theirs = torch.frombuffer(bytearray(whole), dtype=getattr(torch, NAMED[found].torch_name)).to(
        getattr(torch, NAMED[wanted].torch_name)
    )
    with np.errstate(all="ignore"):  # signalling NaNs become quiet ones
        ours = recast(snapshot, wanted).numpy().astype(np.float64)
    assert np.array_equal(ours, theirs.to(torch.float64).numpy(), equal_nan=True)


@pytest.mark.parametrize(("found", "wanted"), list(product(INTEGERS, INTEGERS)))
def test_integers_that_fit_are_kept(found: str, wanted: str) -> None:
    low = max(np.iinfo(NAMED[found].numpy_dtype).min, np.iinfo(NAMED[wanted].numpy_dtype).min)
    high = min(np.iinfo(NAMED[found].numpy_dtype).max, np.iinfo(NAMED[wanted].numpy_dtype).max)
    values = np.array([[low, 0, 1], [2, high - 1, high]], NAMED[found].numpy_dtype)
    snapshot = TensorSnapshot.from_data("w", values)
    check_integers(snapshot, wanted)
    assert recast(snapshot, wanted).numpy().tolist() == [[low, 0, 1], [2, high - 1, high]]


@pytest.mark.parametrize(
    ("values", "kind", "wanted", "text"),
    [
        ([[1, 2], [300, -7]], np.int64, "U8", "300 at [1, 0] does not fit into U8, which goes from 0 to 255"),
        ([-1], np.int8, "U64", "-1 at [0] does not fit into U64, which goes from 0 to 18446744073709551615"),
        ([2**63], np.uint64, "I64", "9223372036854775808 at [0] does not fit into I64"),
        ([2**53 + 1, 2**63 - 1], np.int64, "I32", "9007199254740993 at [0]"),
        (-129, np.int16, "I8", "-129 at [] does not fit into I8, which goes from -128 to 127"),
    ],
)
def test_the_first_integer_that_does_not_fit_is_named(values: object, kind: type, wanted: str, text: str) -> None:
    snapshot = TensorSnapshot.from_data("steps", np.array(values, kind))
    with pytest.raises(TensorDataError) as caught:
        check_integers(snapshot, wanted)
    assert str(caught.value).startswith(f"tensor 'steps': {text}")
    with pytest.raises(TensorDataError):  # nobody has to remember to check
        recast(snapshot, wanted).numpy()


def test_an_integer_far_inside_a_large_tensor_is_found() -> None:
    values = np.zeros((1000, 500), np.int64)
    values[700, 33] = 1 << 40
    with pytest.raises(TensorDataError, match=r"1099511627776 at \[700, 33\]"):
        check_integers(TensorSnapshot.from_data("w", values), "I32")


def test_integers_that_always_fit_are_not_read() -> None:
    def find() -> HeldBytes:
        raise AssertionError("it was read")

    snapshot = TensorSnapshot("w", NAMED["U8"], (3,), PendingBytes(find))
    check_integers(snapshot, "I16")
    check_integers(snapshot, "U8")
    recast(snapshot, "I64")


@pytest.mark.parametrize("wanted", BOOLS)
@pytest.mark.parametrize("found", [*BOOLS, "U8", "U32"])
def test_anything_but_zero_is_true(found: str, wanted: str) -> None:
    size = NAMED[found].bits // 8
    numbers = [0, 1, 2, 255, 0, 128]
    raw = b"".join(number.to_bytes(size, "little") for number in numbers)
    cast = recast(TensorSnapshot.from_data("w", TensorData(raw, (2, 3), found)), wanted)
    assert cast.numpy().tolist() == [[False, True, True], [True, False, True]]
    if found != wanted:  # and it is written as one
        width = NAMED[wanted].bits // 8
        assert cast.tobytes() == b"".join(int(number != 0).to_bytes(width, "little") for number in numbers)


def test_a_u32_that_is_a_multiple_of_256_is_true() -> None:
    assert recast(TensorSnapshot.from_data("w", np.array([256, 0], np.uint32)), "Bool").numpy().tolist() == [True, False]


@pytest.mark.parametrize(("found", "wanted"), [("C64", "C128"), ("C128", "C64"), ("C128", "C32"), ("C32", "C64")])
def test_complex_numbers_are_cast_part_by_part(found: str, wanted: str) -> None:
    numbers = [1.5, -2.0, 1e30, np.inf, 0.25, -0.0]
    parts = {"C32": "<f2", "C64": "<f4", "C128": "<f8"}
    with np.errstate(all="ignore"):
        raw = np.array(numbers, parts[found])
        want = raw.astype(parts[wanted])
    cast = recast(TensorSnapshot.from_data("w", TensorData(raw.tobytes(), (3,), found)), wanted)
    assert cast.tobytes() == want.tobytes()


def test_kinds_are_not_mixed() -> None:
    allowed = {(a, b) for group in (FLOATS, INTEGERS, BOOLS, ["C32", "C64", "C128"]) for a, b in product(group, group)}
    allowed |= {(a, b) for a in ("U8", "U32") for b in BOOLS} | {(name, name) for name in NAMED}
    for found, wanted in product(NAMED, NAMED):
        fault = cast_fault(NAMED[found], NAMED[wanted])
        assert (fault is None) == ((found, wanted) in allowed), (found, wanted)
        if fault is not None:
            with pytest.raises(DTypeError):
                recast(TensorSnapshot("w", NAMED[found], (8,), HeldBytes(bytes(NAMED[found].bits))), wanted)


def test_a_quantised_tensor_is_refused_with_the_way_to_its_floats() -> None:
    assert cast_fault(NAMED["QInt8"], NAMED["F32"]) == "QInt8 is quantised; .dequantize() gives its floats"


def test_what_loses_nothing_is_what_survives_there_and_back() -> None:
    exact = {(found, wanted) for found, wanted in product(FLOATS, FLOATS) if not is_lossy(NAMED[found], NAMED[wanted])}
    assert {wanted for found, wanted in exact if found == "F64"} == {"F64"}
    assert {wanted for found, wanted in exact if found == "F32"} == {"F64", "F32", "Flex32"}
    assert {wanted for found, wanted in exact if found == "F16"} == {"F64", "F32", "Flex32", "F16"}
    assert {wanted for found, wanted in exact if found == "BF16"} == {"F64", "F32", "Flex32", "BF16"}
    assert ("F8_E4M3", "F16") in exact and ("F8_E5M2", "BF16") in exact and ("F8_E8M0", "F16") not in exact
    assert ("F8_E5M2", "F8_E4M3") not in exact and ("F8_E4M3", "F8_E4M3FNUZ") not in exact and ("F4", "F6_E2M3") in exact
    assert is_lossy(NAMED["C128"], NAMED["C64"]) and not is_lossy(NAMED["C64"], NAMED["C128"])
    assert not is_lossy(NAMED["I64"], NAMED["U8"]) and not is_lossy(NAMED["U8"], NAMED["Bool"])


def test_flex32_lies_as_f32_does_and_is_not_copied() -> None:
    snapshot = TensorSnapshot.from_data("w", np.ones(3, np.float32))
    flex = recast(snapshot, "Flex32")
    assert flex.dtype == "Flex32" and flex.data is snapshot.data


def test_the_dtype_that_is_there_already_gives_the_snapshot_itself() -> None:
    snapshot = TensorSnapshot.from_data("w", [1.0], containers=["Struct:Linear"], param_id=5)
    assert recast(snapshot, "F64") is snapshot
    cast = recast(snapshot, "F32")
    assert (cast.name, cast.containers, cast.param_id) == ("w", ("Struct:Linear",), 5)


@pytest.mark.parametrize(
    ("found", "wanted"), [("F32", "BF16"), ("F16", "F32"), ("F4", "F32"), ("F32", "F6_E2M3"), ("U8", "Bool(U32)")]
)
def test_any_range_of_the_bytes_can_be_read(found: str, wanted: str) -> None:
    count = 300_004
    if found == "U8":
        snapshot = TensorSnapshot.from_data("w", np.resize(np.arange(5, dtype=np.uint8), count))
    else:
        snapshot = every_value(found, count)
    whole = recast(snapshot, wanted).tobytes()
    given = snapshot.tobytes()
    once = TensorSnapshot.from_blocks("w", found, (count,), lambda: (given[at : at + 1001] for at in range(0, len(given), 1001)))
    for data in (recast(snapshot, wanted).data, recast(once, wanted).data):
        for begin, end in (
            (0, 0),
            (0, 1),
            (3, 10),
            (len(whole) // 2 + 1, len(whole) // 2 + 70_001),
            (len(whole) - 3, len(whole)),
            (0, len(whole)),
        ):
            out = bytearray(end - begin)
            data.read_into(memoryview(out), begin)
            assert bytes(out) == whole[begin:end], (begin, end)
        assert b"".join(bytes(block) for block in data.blocks()) == whole


def test_a_cast_of_a_transposed_tensor_is_the_transposed_cast() -> None:
    array = np.random.default_rng(0).standard_normal((900, 700)).astype(np.float32)
    for snapshot in (TensorSnapshot.from_data("w", array), TensorSnapshot.from_closure("w", "F32", array.shape, lambda: array)):
        want = array.T.astype(ml_dtypes.bfloat16).tobytes()
        assert recast(permuted(snapshot, (1, 0)), "BF16").tobytes() == want
        assert permuted(recast(snapshot, "BF16"), (1, 0)).tobytes() == want
        cast = recast(permuted(snapshot, (1, 0)), "BF16")
        out = bytearray(2001)
        cast.data.read_into(memoryview(out), 401)
        assert bytes(out) == want[401:2402]


def test_reading_into_memory_needs_little_beside_it() -> None:
    values = np.ones(8 * MIB, np.float32)
    data = recast(TensorSnapshot.from_data("w", values), "BF16").data
    out = np.empty(data.nbytes, np.uint8)
    data.read_into(memoryview(out)[:10])
    tracemalloc.start()
    try:
        data.read_into(memoryview(out))
        assert tracemalloc.get_traced_memory()[1] < 2 * MIB
    finally:
        tracemalloc.stop()


def test_tensors_without_elements_and_without_axes_are_cast() -> None:
    assert recast(TensorSnapshot.from_data("w", np.zeros((0, 3), np.float32)), "F16").numpy().shape == (0, 3)
    assert recast(TensorSnapshot.from_data("w", np.float64(2.5)), "F32").numpy()[()] == 2.5


def test_a_tensor_without_values_says_why_when_they_are_wanted() -> None:
    given = PartsOnly(DTypeError("it is sparse", where="tensor 'w'"))
    with pytest.raises(DTypeError, match="it is sparse"):
        recast(TensorSnapshot("w", bs.DType.of("F32"), (2,), given), "F16").numpy()
