"""Arrays that are given to be saved: every memory order, every library, and those that are refused by name."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import burnstore as bs
from tests.sources.handmade import burnpack_parts, safetensors_parts


def stored(value: object, format: str = "safetensors") -> tuple[str, list[int], bytes]:
    """Dtype, shape and bytes of a saved tensor, taken from the file without burnstore."""
    data = bs.save({"w": value}, bytes, format=format)
    header, raw = safetensors_parts(data) if format == "safetensors" else burnpack_parts(data)
    entry = (header if format == "safetensors" else header["tensors"])["w"]  # type: ignore[index]
    begin, end = entry["data_offsets"]
    return entry["dtype"], entry["shape"], raw[begin:end]


BASE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ORDERS = {
    "C": BASE,
    "Fortran": np.asfortranarray(BASE),
    "transposed": BASE.T,
    "reversed": BASE[::-1, :, ::-1],
    "strided": BASE[:, ::2, 1::2],
    "broadcast": np.broadcast_to(BASE[:1], (5, 3, 4)),
    "channels last": BASE.transpose(0, 2, 1).copy().transpose(0, 2, 1),
    "big-endian": BASE.astype(">f4"),
    "big-endian and strided": BASE.astype(">f4")[:, ::-1],
    "scalar": np.array(2.5, np.float32),
    "big-endian scalar": np.array(2.5, ">f4"),
    "NumPy scalar": np.float32(2.5),
    "empty": BASE[:0],
    "empty inside": BASE[:, :0, :],
    "read-only": np.frombuffer(BASE.tobytes(), np.float32),
    "field of a record": np.zeros(4, [("a", "<f4"), ("b", "<i8")])["a"],
    "unaligned": np.frombuffer(b"x" + BASE.tobytes(), np.float32, offset=1),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("format", ["safetensors", "burnpack"])
def test_an_array_of_any_memory_order_is_saved_as_its_values(order: str, format: str) -> None:
    array = ORDERS[order]
    wanted = b"".join(np.float32(value).tobytes() for value in np.asarray(array).flat)  # `flat` runs in C order
    assert stored(array, format) == ("F32", list(np.shape(array)), wanted)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_view_is_saved_as_its_values(data: st.DataObject) -> None:
    from hypothesis.extra.numpy import arrays, basic_indices

    kind = data.draw(st.sampled_from(["<i2", ">i2", "<f8", ">f8", "?", "<c8", ">c8", "<f2"]))
    array = data.draw(arrays(kind, data.draw(st.sampled_from([(3, 4), (2, 3, 4), (7,), ()]))))
    view = np.asarray(array[data.draw(basic_indices(array.shape))]).T
    snapshot = bs.TensorSnapshot.from_data("w", view)
    wanted = np.ascontiguousarray(view).astype(view.dtype.newbyteorder("<")).tobytes()
    assert snapshot.tobytes() == wanted and b"".join(bytes(memoryview(b)) for b in snapshot.data.blocks()) == wanted
    assert snapshot.numpy(copy=True).tobytes() == wanted and snapshot.numpy().tobytes() == wanted
    assert stored(view)[2] == wanted


def test_a_large_array_of_another_order_is_put_in_order_block_by_block() -> None:
    array = np.arange(5_000_000, dtype=np.float32).reshape(2500, 2000).T
    snapshot = bs.TensorSnapshot.from_data("w", array)
    blocks = [bytes(memoryview(block).cast("B")) for block in snapshot.data.blocks()]
    assert len(blocks) > 1 and max(map(len, blocks)) <= 9_000_000
    assert b"".join(blocks) == array.tobytes()


NUMPY = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64", "complex64": "C64",
}  # fmt: skip


@pytest.mark.parametrize(("numpy_name", "name"), list(NUMPY.items()))
def test_every_dtype_of_numpy_gets_its_name(numpy_name: str, name: str) -> None:
    array = np.array([0, 1, 3]).astype(numpy_name)
    assert stored(array) == (name, [3], array.tobytes())


ML = {
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}


@pytest.mark.parametrize("ml_name", ML)
def test_every_float_of_ml_dtypes_gets_its_name(ml_name: str) -> None:
    array = np.array([[1, 2, 4], [0.5, 1, 8]], np.float32).astype(getattr(ml_dtypes, ml_name)).T
    assert stored(array) == (ML[ml_name], [3, 2], np.ascontiguousarray(array).view(np.uint8).tobytes())
    snapshot = bs.TensorSnapshot.from_data("w", array)
    assert snapshot.numpy().dtype == array.dtype
    np.testing.assert_array_equal(snapshot.numpy(copy=True).astype(np.float32), array.astype(np.float32))


@pytest.mark.parametrize("ml_name", ML)
def test_large_and_strided_arrays_of_ml_dtypes_are_saved_to_every_place(ml_name: str, tmp_path: Path) -> None:
    array = np.tile(np.array([1, 2, 4, 0.5], np.float32), 25_000).astype(getattr(ml_dtypes, ml_name)).reshape(50_000, 2)
    for view in (array, array.T, array[:3]):
        wanted = np.ascontiguousarray(view).view(np.uint8).tobytes()
        assert stored(view)[2] == wanted
        bs.save({"w": view, "v": view}, tmp_path / "w.safetensors", fsync=False, overwrite=True)
        assert (tmp_path / "w.safetensors").read_bytes().endswith(wanted * 2)


TORCH = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32",
    torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.uint16: "U16", torch.uint32: "U32", torch.uint64: "U64",
    torch.bool: "BOOL", torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2", torch.float8_e4m3fnuz: "F8_E4M3FNUZ",
    torch.float8_e5m2fnuz: "F8_E5M2FNUZ", torch.float8_e8m0fnu: "F8_E8M0", torch.complex64: "C64",
}  # fmt: skip


def torch_bytes(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).tolist())


@pytest.mark.parametrize("dtype", TORCH, ids=str)
def test_a_torch_tensor_of_every_dtype_is_saved_as_its_bytes(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0.0, 1.0], [2.0, 0.5], [4.0, 1.0]]).to(dtype)
    assert stored(tensor) == (TORCH[dtype], [3, 2], torch_bytes(tensor))
    assert stored(tensor.t()) == (TORCH[dtype], [2, 3], torch_bytes(tensor.t()))
    assert stored(tensor[:0]) == (TORCH[dtype], [0, 2], b"")
    assert stored(tensor[0, 1]) == (TORCH[dtype], [], torch_bytes(tensor[0, 1]))


def test_a_torch_tensor_of_four_bit_floats_has_its_last_axis_doubled() -> None:
    tensor = torch.tensor([[0x21, 0x43]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    assert stored(tensor) == ("F4", [1, 4], b"\x21\x43")


def test_torch_views_are_saved_as_their_values() -> None:
    base = torch.arange(12.0).reshape(3, 4)
    for view in (
        base[1:, ::2],
        base.expand(2, 3, 4),
        base.t()[1:],
        base.flip(0),
        torch.nn.Parameter(base),
        base.clone().requires_grad_(),
    ):
        assert stored(view)[2] == torch_bytes(view)
    z = torch.complex(base, -base)
    for view in (z.conj(), z.conj().t(), z.conj().imag, z.real):
        assert stored(view)[2] == torch_bytes(view)


def test_a_torch_tensor_that_requires_grad_is_not_touched() -> None:
    tensor = torch.ones(2, requires_grad=True)
    (tensor * 2).sum().backward()
    assert stored(tensor * 3)[2] == torch_bytes(torch.full((2,), 3.0)) and tensor.requires_grad and tensor.grad is not None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.eye(3).to_sparse(), "to_dense"),
        (lambda: torch.empty(3, device="meta"), "meta"),
        (lambda: torch.zeros(2, dtype=torch.complex32), "C32"),
    ],
    ids=["sparse", "meta", "complex32"],
)
@pytest.mark.filterwarnings("ignore")
def test_a_torch_tensor_without_plain_values_is_refused_by_name(make: object, words: str) -> None:
    with pytest.raises(bs.errors.BurnstoreError, match=words) as caught:
        bs.save({"layer.w": make()}, bytes, format="bpk")  # type: ignore[operator]
    assert "'layer.w'" in str(caught.value)


@pytest.mark.filterwarnings("ignore")
def test_a_quantised_torch_tensor_is_refused_with_advice_that_works() -> None:
    tensor = torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)
    with pytest.raises(bs.errors.DTypeError, match="dequantize"):
        bs.save({"w": tensor}, bytes, format="bpk")


@pytest.mark.filterwarnings("ignore")
def test_a_nested_torch_tensor_is_refused_by_name() -> None:
    with pytest.raises(bs.errors.BurnstoreError, match="'w'"):
        bs.save({"w": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])}, bytes, format="bpk")


class Jaxlike:
    """An array of another library: it gives itself to NumPy when asked."""

    shape, dtype = (2,), "float32"

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.array([1.0, 2.0], np.float32)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Jaxlike(), "F32"),
        ([1.0, 2.0], "F64"),
        ((1, 2), "I64"),
        ([True, False], "BOOL"),
        (memoryview(b"ab"), "U8"),
        (5, "I64"),
        (1j, None),
    ],
)
def test_whatever_becomes_an_array_is_saved(value: object, kind: str | None) -> None:
    if kind is None:  # complex128, which SafeTensors lacks
        with pytest.raises(bs.errors.DTypeError, match="C128"):
            stored(value)
        return
    assert stored(value) == (kind, list(np.asarray(value).shape), np.asarray(value).tobytes())


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.ma.masked_array([1.0, 2.0], [True, False]), "mask"),
        (np.array([object()]), "object"),
        (np.array(["text"]), "no plain numbers"),
        (np.array([b"text"]), "no plain numbers"),
        (np.array(["2020-01-01"], "datetime64[D]"), "datetime64"),
        (np.array([1], "timedelta64[s]"), "timedelta64"),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), "dtype"),
        (np.zeros(2, ml_dtypes.int4), "int4"),
        (np.zeros(2, np.longdouble), "dtype"),
        (np.zeros(2, ml_dtypes.float8_e3m4), "float8_e3m4"),
        ("text", "str"),
        (b"bytes", "bytes"),
        (None, "None"),
        ([[1.0], [1.0, 2.0]], "array"),
        ([2**70], "object"),
        ({1, 2}, "object"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else type(value).__name__,
)
def test_what_has_no_plain_numbers_is_refused_by_name(value: object, words: str) -> None:
    with pytest.raises(bs.errors.BurnstoreError, match=words) as caught:
        bs.save({"layer.w": value}, bytes, format="safetensors")
    assert "'layer.w'" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["F4", "F6_E2M3"])
def test_an_array_that_is_not_whole_bytes_is_refused_by_name(name: str) -> None:
    array = np.zeros(3, bs.DType.of(name).numpy_dtype)
    with pytest.raises(bs.errors.DTypeError, match=r"'layer\.w'"):
        bs.save({"layer.w": array}, bytes, format="safetensors")


def test_burnpack_refuses_dtypes_that_burn_lacks_by_name() -> None:
    for array in (np.zeros(2, ml_dtypes.float8_e5m2), np.zeros(2, np.complex64)):
        with pytest.raises(bs.errors.DTypeError, match=r"'layer\.w'.*SafeTensors"):
            bs.save({"layer.w": array}, bytes, format="burnpack")
