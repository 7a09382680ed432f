"""The dtype table, against what NumPy, ml_dtypes, torch and the SafeTensors library say themselves."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

import burnstore as bs
from burnstore.dtypes import SAFETENSORS_DTYPES, describe_dtypes

TABLE = describe_dtypes()
IN_SAFETENSORS = (
    "BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E5M2FNUZ F8_E4M3FNUZ F8_E8M0 F4 F6_E2M3 F6_E3M2 I16 U16 F16 BF16 I32 U32 F32 C64 F64 I64 U64"
)
IN_BURN = "F64 F32 Flex32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 Bool"


@pytest.mark.parametrize("name", IN_SAFETENSORS.split())
def test_every_dtype_of_safetensors_is_there(name: str) -> None:
    assert SAFETENSORS_DTYPES[name].safetensors_name == name


def test_safetensors_has_no_other_dtypes() -> None:
    assert set(SAFETENSORS_DTYPES) == set(IN_SAFETENSORS.split())


@pytest.mark.parametrize("name", IN_BURN.split())
def test_every_dtype_of_burn_is_there_and_prints_as_burn_writes_it(name: str) -> None:
    dtype = bs.DType.of(name)
    assert (str(dtype), repr(dtype), dtype.burn_name) == (name, name, name)


@pytest.mark.parametrize("dtype", TABLE, ids=str)
def test_numpy_knows_the_numpy_name_and_agrees_about_the_size(dtype: bs.DType) -> None:
    theirs = np.dtype(getattr(ml_dtypes, dtype.numpy_name, None) or dtype.numpy_name)
    assert dtype.numpy_dtype == theirs
    assert not dtype.is_plain or theirs.itemsize * 8 == dtype.bits


@pytest.mark.parametrize("dtype", [dtype for dtype in TABLE if dtype.torch_name], ids=str)
def test_torch_knows_the_torch_name_and_agrees_about_the_size(dtype: bs.DType) -> None:
    theirs = getattr(torch, dtype.torch_name or "")
    # torch packs several in an item, and has no booleans of four bytes
    if dtype.name not in ("F4", "Bool(U32)", "QUInt4x2", "QUInt2x4"):
        assert theirs.itemsize * 8 == dtype.bits
    assert bs.DType.of(theirs) == bs.DType.of(dtype.torch_name)


@pytest.mark.parametrize(
    ("kind", "check"),
    [("float", "f"), ("int", "i"), ("uint", "u"), ("bool", "b"), ("complex", "c")],
)
def test_the_kind_is_that_of_numpy(kind: str, check: str) -> None:
    for dtype in TABLE:
        if dtype.kind == kind and dtype.name != "C32":  # NumPy has no complex of four bytes
            assert dtype.numpy_dtype.kind in (check, "V" if kind == "float" else check), dtype


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("float32", "F32"),
        ("torch.bfloat16", "BF16"),
        (torch.float8_e4m3fn, "F8_E4M3"),
        (torch.bool, "Bool"),
        (np.dtype("int16"), "I16"),
        (np.dtype(">i2"), "I16"),
        (np.float64, None),
        (np.dtype(ml_dtypes.float4_e2m1fn), "F4"),
        ("BOOL", "Bool"),
        ("float8_e8m0fnu", "F8_E8M0"),
        ("F32", "F32"),
    ],
    ids=str,
)
def test_a_dtype_is_found_by_every_name_it_has(name: object, wanted: str | None) -> None:
    if wanted is None:
        wanted, name = "F64", np.dtype(name)  # type: ignore[call-overload]
    assert str(bs.DType.of(name)) == wanted


@pytest.mark.parametrize("name", ["F33", "", None, 3, "string", "torch.bits8", ml_dtypes.int4])
def test_a_name_that_nobody_knows_is_refused(name: object) -> None:
    with pytest.raises(bs.errors.DTypeError, match="no dtype"):
        bs.DType.of(name)


def test_a_scalar_type_of_numpy_is_a_dtype_too() -> None:
    assert bs.DType.of(np.float32) == "F32" and bs.DType.of(ml_dtypes.bfloat16) == "BF16"


def test_a_dtype_equals_itself_and_its_text_and_nothing_else() -> None:
    f32 = bs.DType.of("F32")
    assert f32 == "F32" and f32 == bs.DType.of("float32") and f32 != "float32" and f32 != bs.DType.of("F64") and f32 != 32
    assert len({f32, bs.DType.of("float32"), "F32"}) == 1
    assert bs.DType.of("Bool") != bs.DType.of("Bool(U8)")


def test_a_dtype_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        bs.DType.of("F32").bits = 8  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "shape", "wanted"),
    [
        ("F32", (2, 3), 24),
        ("F32", (), 4),
        ("F4", (2, 8), 8),
        ("F6_E2M3", (4,), 3),
        ("U8", (0, 5), 0),
        ("Bool(U32)", (3,), 12),
        ("C64", (2,), 16),
    ],
)
def test_a_shape_takes_as_many_bytes_as_its_bits(name: str, shape: tuple[int, ...], wanted: int) -> None:
    assert bs.DType.of(name).nbytes(shape) == wanted


@pytest.mark.parametrize(("name", "shape"), [("F4", (3,)), ("F6_E3M2", (2,)), ("F6_E2M3", (3, 3))])
def test_a_shape_that_is_not_whole_bytes_is_refused(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(bs.errors.DTypeError, match="whole bytes"):
        bs.DType.of(name).nbytes(shape)
