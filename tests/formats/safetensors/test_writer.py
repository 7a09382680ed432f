"""What burnstore writes is what the official package writes for the same input, byte for byte.

Theirs writes the memory of an array that does not lie in C order, not its values; there, the reference is theirs for a copy
in C order. The order of their metadata's keys is random; so there is one key, or the object is put in order.
"""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import burnstore as bs
from burnstore.dtypes import describe_dtypes
from burnstore.errors import DTypeError, LimitError, UsageError

NUMPY = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8")
TORCH = (
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
    *("bool", "complex64", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu"),
)


def _ours(tensors: Any, **options: Any) -> bytes:
    return bs.save(tensors, bytes, format="safetensors", **options)


def _theirs(tensors: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> bytes:
    ordered = {
        name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape) for name, array in tensors.items()
    }
    return safetensors.numpy.save(ordered, metadata)


names = st.text(st.characters(codec="utf-8"), max_size=12).filter(lambda name: name != "__metadata__")
arrays = st.sampled_from(NUMPY).flatmap(
    lambda word: hnp.arrays(word, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
)


@st.composite
def _views(draw: st.DrawFn) -> np.ndarray:
    """An array of any dtype and shape, and of any order of its memory."""
    array = draw(arrays)
    if draw(st.booleans()):
        array = array.astype(array.dtype.newbyteorder(">"))
    how = draw(st.sampled_from(("as it is", "fortran", "transposed", "backwards", "every second", "broadcast")))
    if how == "fortran":
        return np.asfortranarray(array)
    if how == "transposed":
        return array.T
    if how == "backwards" and array.ndim:
        return array[::-1, ..., ::-1] if array.ndim > 1 else array[::-1]
    if how == "every second" and array.ndim:
        return array[..., ::2]
    return np.broadcast_to(array, (3, *array.shape)) if how == "broadcast" else array


@settings(max_examples=150, deadline=None)
@given(tensors=st.dictionaries(names, _views(), max_size=5), metadata=st.none() | st.dictionaries(names, names, max_size=1))
def test_any_arrays_give_the_bytes_of_the_official_numpy_writer(tensors: Any, metadata: Any) -> None:
    if not tensors and metadata == {}:
        metadata = None  # theirs writes `{},"__metadata__":{}}`, which nobody can read
    written = _ours(tensors, metadata=metadata)
    assert written == _theirs(tensors, metadata)
    read = bs.read(written)
    for name, array in tensors.items():
        assert read[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes() and read[name].shape == array.shape


@pytest.mark.parametrize("word", NUMPY)
def test_every_numpy_dtype_in_every_order_of_memory(word: str) -> None:
    base = np.arange(24).astype(word).reshape(2, 3, 4)
    tensors = {
        "plain": base,
        "fortran": np.asfortranarray(base),
        "stride": base[:, ::2, 1::2],
        "negative": base[::-1, :, ::-1],
        "broadcast": np.broadcast_to(base[0, 0, 0], (2, 2)),
        "big": base.astype(base.dtype.newbyteorder(">")),
        "scalar": base[1, 2, 3, ...],
        "empty": base[:, :0],
        "read only": np.frombuffer(base.tobytes(), base.dtype),
    }
    written = _ours(tensors)
    assert written == _theirs(tensors)
    for name, array in safetensors.numpy.load(written).items():
        assert (array == tensors[name]).all() and array.shape == tensors[name].shape


@pytest.mark.parametrize("word", TORCH)
def test_every_torch_dtype_gives_the_bytes_of_the_official_torch_writer(word: str) -> None:
    dtype = getattr(torch, word)
    codes = torch.arange(dtype.itemsize * 24, dtype=torch.uint8) % (2 if word == "bool" else 251)
    base = codes.view(dtype).reshape(2, 3, 4)
    tensors = {"plain": base, "scalar": base[0, 0, 0].clone(), "empty": base[:, :0].clone(), "transposed": base.permute(2, 0, 1)}
    theirs = safetensors.torch.save({name: tensor.contiguous() for name, tensor in tensors.items()}, {"format": "pt"})
    assert _ours(tensors, metadata={"format": "pt"}) == theirs


def test_torch_values_of_four_bits_give_the_bytes_of_the_official_torch_writer() -> None:
    tensor = torch.arange(16, dtype=torch.uint8).reshape(2, 8).view(torch.float4_e2m1fn_x2)
    assert _ours({"f4": tensor}) == safetensors.torch.save({"f4": tensor})
    assert bs.open(_ours({"f4": tensor}))["f4"].shape == (2, 16)


def test_views_of_torch_are_written_as_their_values() -> None:
    base = torch.arange(12) * torch.tensor(1 + 2j)
    for view in (base.conj(), base.conj().imag, base.real, base[::3], base.expand(2, 12), base.requires_grad_()[2:]):
        plain = view.detach().resolve_conj().resolve_neg().contiguous().clone()
        assert _ours({"w": view}) == safetensors.torch.save({"w": plain})


@pytest.mark.parametrize("shape", [(), (3,), (300, 300)])
@pytest.mark.parametrize(
    "word", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m2fnuz", "float8_e4m3fnuz"]
)
def test_arrays_of_ml_dtypes_of_any_size_come_back(word: str, shape: tuple[int, ...]) -> None:
    array = np.full(shape, 2, getattr(ml_dtypes, word))
    read = bs.read(_ours({"w": array}))["w"]
    assert read.dtype == array.dtype and read.shape == shape and read.tobytes() == array.tobytes()


def test_dtypes_that_only_ml_dtypes_has_are_written_by_their_names() -> None:
    for word, name in (
        ("bfloat16", "BF16"),
        ("float8_e4m3fn", "F8_E4M3"),
        ("float8_e5m2", "F8_E5M2"),
        ("float8_e8m0fnu", "F8_E8M0"),
    ):
        array = np.arange(8).astype(getattr(ml_dtypes, word)).reshape(2, 4)
        ((key, view),) = safetensors.deserialize(_ours({"w": array}))
        assert (key, view["dtype"], view["shape"], bytes(view["data"])) == ("w", name, [2, 4], array.tobytes())


def test_every_dtype_of_the_format_is_ordered_as_the_official_writer_orders_it() -> None:
    """The largest first, so that all are aligned; the names are given against that order."""
    kinds = [dtype for dtype in describe_dtypes() if dtype.safetensors_name and "(" not in dtype.name and dtype.name != "Flex32"]
    tensors = [
        bs.TensorSnapshot.from_closure(f"{number:02}", dtype, (8,), lambda dtype=dtype: bytes(dtype.nbytes((8,))))
        for number, dtype in enumerate(kinds)
    ]
    written = _ours(tensors)
    found = [view["dtype"] for _, view in safetensors.deserialize(written)]
    assert sorted(found) == sorted(str(dtype.safetensors_name) for dtype in kinds)
    header = json.loads(written[8 : 8 + int.from_bytes(written[:8], "little")])
    order = [entry["dtype"] for entry in header.values()]
    assert order == [
        *("U64", "I64", "F64", "C64", "F32", "U32", "I32", "BF16", "F16", "U16", "I16", "F8_E5M2FNUZ", "F8_E4M3FNUZ", "F8_E8M0"),
        *("F8_E4M3", "F8_E5M2", "I8", "U8", "F6_E3M2", "F6_E2M3", "F4", "BOOL"),
    ]


def test_metadata_keys_are_sorted_and_otherwise_as_the_official_writer_has_them() -> None:
    metadata = {"z": "1", "a": 'q"uote', "é": "\n\x01\x7f\u2028🔥", "": "empty key"}
    tensors = {"w": np.ones(3, np.float32)}
    ours, theirs = _ours(tensors, metadata=metadata), _theirs(tensors, metadata)
    length = int.from_bytes(theirs[:8], "little")
    header = json.loads(theirs[8 : 8 + length])
    assert header["__metadata__"] == metadata and list(json.loads(ours[8 : 8 + length])["__metadata__"]) == sorted(metadata)
    assert sorted(ours) == sorted(theirs) and ours[8 + length :] == theirs[8 + length :]


def test_no_metadata_is_not_written_and_an_empty_one_is() -> None:
    assert b"__metadata__" not in _ours({"w": [1.0]})
    assert b'{"__metadata__":{},' in _ours({"w": [1.0]}, metadata={})
    assert _ours({"w": [1.0]}, metadata={}) == _theirs({"w": np.array([1.0])}, {})


def test_no_tensors_at_all() -> None:
    assert _ours({}) == _theirs({}) == b"\x08\0\0\0\0\0\0\0{}      "


def test_a_file_written_to_disk_is_the_one_the_official_writer_puts_there(tmp_path: Any) -> None:
    tensors = {"b": np.arange(6.0).reshape(2, 3), "a": np.arange(4, dtype=np.int32)}
    bs.save(tensors, tmp_path / "ours.safetensors", metadata={"k": "v"})
    safetensors.numpy.save_file(tensors, tmp_path / "theirs.safetensors", {"k": "v"})
    assert (tmp_path / "ours.safetensors").read_bytes() == (tmp_path / "theirs.safetensors").read_bytes()
    with safetensors.safe_open(tmp_path / "ours.safetensors", "np") as file:
        assert file.metadata() == {"k": "v"} and (file.get_tensor("b") == tensors["b"]).all()


def test_what_the_format_cannot_hold_is_refused_before_anything_is_written(tmp_path: Any) -> None:
    path = tmp_path / "m.safetensors"
    quantized = bs.TensorSnapshot.from_blocks("q", "F4", (2, 3), [b"123"])
    for tensors, error, words in (
        ({"__metadata__": np.ones(1)}, UsageError, "rename"),
        ({"c": np.ones(1, np.complex128)}, DTypeError, "cast"),
        ([quantized], DTypeError, "odd last dimension"),
    ):
        with pytest.raises(error, match=words):
            bs.save(tensors, path)
        assert not list(tmp_path.iterdir())


def test_a_header_that_readers_refuse_is_refused_unless_limits_say_otherwise() -> None:
    small = bs.Limits(safetensors_header_bytes=100)
    tensors = {f"a.rather.long.name.{i}": np.ones(1) for i in range(3)}
    with pytest.raises(LimitError, match="shard_size"):
        _ours(tensors, limits=small)
    assert len(_ours(tensors)) > 100


def test_all_torch_dtypes_in_one_file_lie_in_the_order_of_the_official_writer() -> None:
    tensors = {f"{99 - number}": torch.zeros(8, dtype=getattr(torch, word)) for number, word in enumerate(TORCH)}
    assert _ours(tensors) == safetensors.torch.save(tensors)
