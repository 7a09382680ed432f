"""Tensors of torch from files, against `torch.load` and `safetensors.torch.load_file`."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

import burnstore as bs
from burnstore.errors import BurnstoreError, DTypeError, UsageError
from tests.sources.handmade import burnpack_bytes, safetensors_bytes

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support", "ignore:.*torch.jit", "ignore:.*TypedStorage")

DTYPES = [
    *("float32", "float64", "float16", "bfloat16", "complex64", "complex128", "bool", "uint8", "int8", "int16", "int32", "int64"),
    *("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("complex32", "float4_e2m1fn_x2"),
]
SHAPES = {"matrix": (4, 6), "scalar": (), "one": (1,), "empty": (0, 6), "row": (1, 6)}


def sample(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    dtype = getattr(torch, name)
    count = int(np.prod(shape)) * dtype.itemsize
    raw = torch.randint(
        0, 2 if dtype is torch.bool else 256, (count,), dtype=torch.uint8, generator=torch.Generator().manual_seed(3)
    )
    return raw.view(dtype).reshape(shape)


def bits(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist()) if tensor.numel() else b""


def assert_equal(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> None:
    assert sorted(found) == sorted(wanted)
    for name, tensor in wanted.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape), name
        assert bits(found[name]) == bits(tensor), name


def all_samples(names: list[str] = DTYPES) -> dict[str, torch.Tensor]:
    return {
        f"{name} {kind}": sample(name, shape) for name in names for kind, shape in SHAPES.items() if "_x2" not in name or shape
    }


@pytest.fixture
def pt(tmp_path: Path) -> Path:
    torch.save(all_samples(), tmp_path / "all.pt")
    return tmp_path / "all.pt"


@pytest.fixture
def st(tmp_path: Path) -> Path:
    """What this version of safetensors writes by itself, and a view of a wide matrix."""
    held = [
        name
        for name in DTYPES
        if name not in ("complex32", "complex128", "float4_e2m1fn_x2", "float8_e4m3fnuz", "float8_e5m2fnuz")
    ]
    safetensors.torch.save_file(all_samples(held), tmp_path / "all.safetensors")
    return tmp_path / "all.safetensors"


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_a_pickle_gives_what_torch_loads(pt: Path, copy: bool, io: Any) -> None:
    assert_equal(bs.read(pt, framework="torch", copy=copy, io=io), torch.load(pt))


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_safetensors_gives_what_its_own_package_loads(st: Path, copy: bool, io: Any) -> None:
    assert_equal(bs.read(st, framework="torch", copy=copy, io=io), safetensors.torch.load_file(st))


@pytest.mark.parametrize("copy", [True, False])
def test_bytes_in_memory_give_what_torch_loads(pt: Path, st: Path, copy: bool) -> None:
    assert_equal(bs.read(pt.read_bytes(), framework="torch", copy=copy), torch.load(pt))
    assert_equal(bs.read(st.read_bytes(), framework="torch", copy=copy), safetensors.torch.load_file(st))


def test_a_snapshot_gives_what_torch_loads(pt: Path) -> None:
    with bs.open(pt) as store:
        assert_equal({name: tensor.torch() for name, tensor in store.items()}, torch.load(pt))


@pytest.mark.parametrize("format", ["pt", "bpk", "safetensors"])
def test_views_of_torch_are_read_by_their_strides(tmp_path: Path, format: str) -> None:
    wide = torch.arange(24.0).reshape(4, 6)
    views = {"transposed": wide.t(), "every other": wide[1::2, ::3], "offset": wide[2:], "expanded": wide[0].expand(3, 6)}
    path = tmp_path / f"views.{format}"
    if format == "pt":
        torch.save(views, path)
    else:
        bs.save(views, path)
    for copy in (True, False):
        assert_equal(bs.read(path, framework="torch", copy=copy), views)


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_tensors_may_be_changed_without_changing_the_file_or_each_other(pt: Path, copy: bool, io: Any) -> None:
    before = pt.read_bytes()
    first = bs.read(pt, framework="torch", copy=copy, io=io)
    second = bs.read(pt, framework="torch", copy=copy, io=io)
    for tensor in first.values():
        if tensor.numel():
            (tensor.view(torch.uint8) if tensor.ndim else tensor).zero_()
    assert pt.read_bytes() == before
    assert_equal(second, torch.load(pt))


def test_views_stay_private_when_the_source_is_somebodys_buffer(st: Path) -> None:
    for buffer in (st.read_bytes(), bytearray(st.read_bytes())):
        before = bytes(buffer)
        for tensor in bs.read(buffer, framework="torch", copy=False).values():
            tensor.fill_(1)
        assert bytes(buffer) == before


@pytest.mark.parametrize("copy", [True, False])
def test_tensors_outlive_the_store_and_the_file(pt: Path, copy: bool) -> None:
    wanted = torch.load(pt)
    store = bs.open(pt)
    found = {name: tensor.torch(copy=copy) for name, tensor in store.items()}
    store.close()
    del store
    gc.collect()
    pt.unlink()
    assert_equal(found, wanted)
    for tensor in found.values():
        if tensor.numel():
            (tensor.view(torch.uint8) if tensor.ndim else tensor).zero_()


def test_a_view_costs_no_memory_of_its_own(tmp_path: Path) -> None:
    bs.save({"a": np.zeros(1_000_000, np.float32), "b": np.ones(4, np.float32)}, tmp_path / "m.safetensors")
    with bs.open(tmp_path / "m.safetensors") as store:
        view, copy = store["a"].torch(), store["a"].torch(copy=True)
    maps = Path("/proc/self/maps")
    if maps.exists():
        mapped = [line.split()[0].split("-") for line in maps.read_text().splitlines() if line.endswith("m.safetensors")]
        inside = [any(int(low, 16) <= tensor.data_ptr() < int(high, 16) for low, high in mapped) for tensor in (view, copy)]
        assert inside == [True, False]
    view[0] = 5
    assert copy[0] == 0


@pytest.mark.parametrize("copy", [True, False])
def test_burns_booleans_of_four_bytes_are_booleans(copy: bool) -> None:
    words = np.array([0, 1, 2, 1 << 24], "<u4")
    file = burnpack_bytes({"mask": ({"Bool": "U32"}, (2, 2), words.tobytes())})  # type: ignore[dict-item]
    (mask,) = bs.read(file, framework="torch", copy=copy).values()
    assert mask.dtype == torch.bool and mask.tolist() == [[False, True], [True, True]]


@pytest.mark.parametrize("copy", [True, False])
def test_four_bit_floats_are_packed_two_by_two_as_torch_has_them(copy: bool) -> None:
    packed = bytes(range(12))
    file = (
        safetensors_bytes({"w": np.frombuffer(packed, np.uint8).reshape(3, 4)})
        .replace(b'"U8"', b'"F4"')
        .replace(b"[3, 4]", b"[3, 8]")
    )
    tensor = bs.read(file, framework="torch", copy=copy)["w"]
    assert (tensor.dtype, tensor.shape, bits(tensor)) == (torch.float4_e2m1fn_x2, (3, 4), packed)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("copy", [True, False])
def test_floats_are_cast_as_torch_casts_them_and_nothing_else_is(name: str, copy: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    source = {
        **{
            kind: (torch.randn(40, generator=generator) * 10).to(getattr(torch, kind))
            for kind in ("float32", "float64", "bfloat16")
        },
        "int64": torch.arange(5),
        "bool": torch.tensor([True, False]),
        "complex64": torch.ones(2, dtype=torch.complex64),
        "empty": torch.zeros(0, 3),
    }
    dtype = getattr(torch, name)
    data = bs.save(source, bytes, format="pt")
    wanted = {kind: tensor.to(dtype) if tensor.is_floating_point() else tensor for kind, tensor in source.items()}
    assert_equal(bs.read(data, framework="torch", dtype=name, copy=copy), wanted)


def test_filters_names_and_devices_apply(pt: Path) -> None:
    found = bs.read(pt, framework="torch", only=r"^float32\.", rename={" ": "."}, device="cpu")
    assert sorted(found) == sorted(f"float32.{kind}" for kind in SHAPES)
    meta = bs.read(pt, framework="torch", device="meta", only="matrix")
    assert all(tensor.is_meta for tensor in meta.values()) and meta["int64 matrix"].shape == (4, 6)


def test_progress_counts_to_the_total_and_threads_change_nothing(tmp_path: Path) -> None:
    arrays = {f"t{at}": np.full((300, 1000), at, np.float32) for at in range(20)}
    bs.save(arrays, tmp_path / "m.safetensors")
    for threads in (1, 2):
        steps: list[tuple[int, int]] = []
        note = partial(lambda steps, *step: steps.append(step), steps)
        found = bs.read(tmp_path / "m.safetensors", framework="torch", threads=threads, progress=note)
        assert all(torch.equal(found[name], torch.from_numpy(array)) for name, array in arrays.items())
        assert steps[-1][0] == steps[-1][1] > 0 and steps == sorted(steps)


def test_what_torch_has_no_dtype_for_is_refused_by_name() -> None:
    snapshot = bs.TensorSnapshot("w", bs.DType.of("F8_E4M3"), (2,), bs.TensorSnapshot.from_data("w", np.zeros(2, np.uint8)).data)
    assert snapshot.torch().dtype == torch.float8_e4m3fn
    six = bs.TensorSnapshot("six", bs.DType.of("F6_E2M3"), (4,), bs.TensorSnapshot.from_data("w", np.zeros(3, np.uint8)).data)
    with pytest.raises(DTypeError, match=r"six.*F6_E2M3"):
        six.torch()


def test_quantised_and_sparse_tensors_are_refused_by_name(data: Path) -> None:
    for path in sorted((data / "burn" / "v0.22.1" / "raw").glob("quant_*.bpk"))[:2]:
        with bs.open(path) as store:
            name = next(name for name, tensor in store.items() if tensor.dtype.is_quantized)
            with pytest.raises(BurnstoreError, match=f"(?s){name}"):
                store[name].torch()
    sparse = bs.open(_saved({"s": torch.eye(3).to_sparse()}))
    with pytest.raises(BurnstoreError, match=r"(?i)sparse"):
        sparse["s"].torch()


def _saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(("framework", "device", "says"), [("jax", None, "'jax' is not known"), ("numpy", "cpu", "on no device")])
def test_a_framework_or_device_that_means_nothing_is_refused(framework: Any, device: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bs.read({"a": [1.0]}, framework=framework, device=device)


def test_tensors_in_hand_become_tensors_of_torch() -> None:
    arrays = {"big": np.arange(4, dtype=">f4"), "strided": np.arange(12.0).reshape(3, 4)[:, ::2], "zero": np.array(3, np.int16)}
    found = bs.read(arrays, framework="torch")
    assert {name: tensor.tolist() for name, tensor in found.items()} == {name: array.tolist() for name, array in arrays.items()}
    found["strided"].zero_()
    assert arrays["strided"].any()
    own = torch.ones(3)
    bs.read({"t": own}, framework="torch", copy=True)["t"].zero_()
    assert own.tolist() == [1, 1, 1]


def test_torch_is_imported_only_by_whoever_asks_for_it() -> None:
    steps = (
        "import sys, burnstore as bs",
        "data = bs.save({'a': [1.0]}, bytes, format='pt')",
        "bs.load(data, bs.read(data))",
        "print('torch' in sys.modules)",
    )
    done = subprocess.run([sys.executable, "-c", "; ".join(steps)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
