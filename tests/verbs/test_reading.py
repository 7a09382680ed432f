"""`read` with more to say: casts, progress, frameworks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import burnstore as bs
from tests.sources.handmade import burnpack_bytes, safetensors_bytes

RANDOM = np.random.default_rng(4)
ARRAYS: dict[str, Any] = {
    "f64": RANDOM.normal(size=(30, 7)),
    "f32": RANDOM.normal(size=(400, 300)).astype(np.float32) * 1e3,
    "f16": RANDOM.normal(size=(50,)).astype(np.float16),
    "bf16": RANDOM.normal(size=(2, 3, 4)).astype(ml_dtypes.bfloat16),
    "f8": RANDOM.normal(size=(9,)).astype(ml_dtypes.float8_e4m3fn),
    "int": np.arange(-5, 5),
    "bool": np.array([True, False]),
    "scalar": np.array(1 / 3, np.float32),
    "empty": np.zeros((0, 3), np.float32),
}
FILE = bs.save(ARRAYS, bytes, format="safetensors")
NBYTES = sum(array.nbytes for array in ARRAYS.values())
FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("source", [FILE, ARRAYS], ids=["file", "arrays"])
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_dtype_casts_what_is_floats_and_leaves_the_rest(source: Any, name: str, copy: bool, threads: int | None) -> None:
    found = bs.read(source, dtype=name, copy=copy, threads=threads)
    assert list(found) == list(bs.open(source)) and set(found) == set(ARRAYS)
    for key, array in ARRAYS.items():
        wanted = array.astype(FLOATS[name]) if key not in ("int", "bool") else array
        assert found[key].dtype == wanted.dtype and found[key].shape == wanted.shape
        assert found[key].tobytes() == wanted.tobytes(), key


@pytest.mark.parametrize("name", ["f32", "float32", "F32"])
def test_a_dtype_has_the_names_of_every_library(name: str) -> None:
    assert bs.read({"a": [1.0]}, dtype=name)["a"].dtype == np.float32


@pytest.mark.parametrize("name", ["I32", "Bool", "nonsense", "model"])
def test_a_dtype_that_is_no_float_is_refused_before_anything_is_read(name: str) -> None:
    lazy = bs.TensorSnapshot.from_closure("a", "F64", (1,), lambda: pytest.fail("it was read"))
    with pytest.raises(bs.errors.DTypeError):
        bs.read([lazy], dtype=name)


def test_what_is_cast_belongs_to_the_caller() -> None:
    held = np.zeros(3, np.float32)
    for copy in (True, False):
        cast = bs.read({"a": held}, dtype="f64", copy=copy)["a"]
        cast[:] = 1
        assert held.tolist() == [0, 0, 0]


def test_dtype_goes_along_with_names_and_filters() -> None:
    found = bs.read(FILE, dtype="f32", only="^f", rename={"^f": "float"})
    assert list(found) == ["float64", "float32", "float16", "float8"]
    assert {array.dtype.name for array in found.values()} == {"float32"}


@pytest.mark.parametrize("dtype", [None, "f32", "bf16"])
@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("source", [FILE, ARRAYS, "path"], ids=["file", "arrays", "path"])
def test_progress_counts_every_byte_once_and_only_forward(source: Any, framework: Any, dtype: str | None, tmp_path: Path) -> None:
    if source == "path":
        source = tmp_path / "a.safetensors"
        source.write_bytes(FILE)
    calls: list[tuple[int, int]] = []
    bs.read(source, framework=framework, dtype=dtype, progress=lambda done, total: calls.append((done, total)))
    assert calls and calls == sorted(calls)
    assert len({total for _, total in calls}) == 1 and calls[-1][0] == calls[-1][1]
    assert calls[-1][1] > 0
    if dtype is None:
        assert calls[-1] == (NBYTES, NBYTES)


def test_a_progress_that_raises_stops_the_reading() -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bs.read(FILE, progress=stop)


# Frameworks


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("io_", ["mmap", "pread"])
def test_tensors_of_torch_are_what_torch_says(copy: bool, io_: Any, tmp_path: Path) -> None:
    state = {
        "bf16": torch.randn(3, 4).bfloat16(), "f16": torch.randn(5).half(), "f64": torch.randn(2, 2).double(),
        "f8": torch.randn(7).to(torch.float8_e4m3fn), "i": torch.arange(4), "b": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 2), "view": torch.arange(12.0).reshape(3, 4).t()[1:],
    }  # fmt: skip
    torch.save(state, tmp_path / "a.pt")
    found = bs.read(tmp_path / "a.pt", framework="torch", copy=copy, io=io_)
    assert list(found) == list(state)
    for name, tensor in state.items():
        assert found[name].dtype == tensor.dtype and found[name].shape == tensor.shape
        assert torch.equal(found[name].view(torch.uint8) if name == "f8" else found[name],
                           tensor.view(torch.uint8) if name == "f8" else tensor)  # fmt: skip


def test_tensors_of_torch_belong_to_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(FILE)
    for copy in (True, False):
        for name, tensor in bs.read(path, framework="torch", copy=copy, skip="f8").items():
            if tensor.numel():
                tensor.zero_()
                assert not tensor.float().any(), name
    assert path.read_bytes() == FILE
    held = np.ones(3, np.float32)
    bs.read({"a": held}, framework="torch")["a"].zero_()
    assert held.tolist() == [1, 1, 1]


def test_dtype_and_device_are_taken_for_torch() -> None:
    found = bs.read(FILE, framework="torch", dtype="bf16", device="cpu")
    assert found["f64"].dtype == torch.bfloat16 and found["int"].dtype == torch.int64 and found["f8"].dtype == torch.bfloat16
    assert torch.equal(found["f32"], torch.from_numpy(ARRAYS["f32"]).bfloat16())
    meta = bs.read(FILE, framework="torch", device="meta")
    assert {tensor.device.type for tensor in meta.values()} == {"meta"} and meta["f32"].shape == (400, 300)


def test_an_unknown_framework_or_a_device_for_numpy_is_refused() -> None:
    with pytest.raises(bs.errors.UsageError, match='known are "numpy" and "torch"'):
        bs.read(FILE, framework="jax")  # type: ignore[call-overload]
    with pytest.raises(bs.errors.UsageError, match="no device"):
        bs.read(FILE, device="cuda")


def test_quantized_tensors_are_not_cast(data: Path) -> None:
    path = data / "burn" / "v0.22.1" / "raw" / "quant_q8s_block4x8.bpk"
    names = [name for name, snapshot in bs.open(path).items() if snapshot.dtype.is_quantized]
    assert names
    with pytest.raises(bs.errors.QuantizedError, match="dequantize"):
        bs.read(path, dtype="f32")
    bs.read(path, dtype="bf16", skip=[f"^{name}$" for name in names])


def test_a_file_without_tensors_gives_none() -> None:
    for data in (safetensors_bytes({}), burnpack_bytes({})):
        for framework in ("numpy", "torch"):
            assert bs.read(data, framework=framework, dtype="f32", progress=lambda *_: None) == {}  # type: ignore[call-overload]


def test_reading_a_path_keeps_no_file_open_and_reading_a_store_leaves_it_open(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(FILE)
    store = bs.open(path, io="pread")
    bs.read(store, dtype="f32", only="f64")
    assert store["f64"].numpy().shape == (30, 7)
    assert bs.read(io.BytesIO(FILE), only="int")["int"].tolist() == list(range(-5, 5))
