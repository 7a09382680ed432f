"""What `bs.load` writes into the memory of torch: any strides, any dtype, and nothing beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import burnstore as bs
from burnstore.errors import LoadError
from burnstore.targets.torch_slots import TorchSlot


def load(values: Any, model: Any, **options: Any) -> bs.ApplyResult:
    return bs.load(values, model, dialect="pytorch", **options)


def _strided() -> dict[str, Any]:
    wide = torch.zeros(4, 6)
    return {
        "transposed": wide.t(),
        "every other": wide[:, ::2],
        "channels last": torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last),
        "with an offset": wide[1:, 1:],
        "flat view": wide.view(-1)[3:9],
        "no axes": wide[2, 3],
        "empty": wide[:0],
    }


@pytest.mark.parametrize("layout", _strided())
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e5m2, torch.int16, torch.complex64], ids=str)
def test_memory_of_any_strides_is_filled_and_nothing_beside_it(layout: str, dtype: torch.dtype) -> None:
    model = nn.Module()
    view = _strided()[layout].to(dtype)
    whole = torch.full((view.untyped_storage().nbytes() + 64,), 0x5A, dtype=torch.uint8)
    tensor = torch.empty(0, dtype=dtype).set_(whole.untyped_storage(), 4, view.shape, view.stride())  # type: ignore[call-overload]
    model.register_buffer("w", tensor)
    value = (torch.arange(view.numel()) % 7).reshape(view.shape).to(dtype)
    expected = whole.clone()
    torch.empty(0, dtype=dtype).set_(expected.untyped_storage(), 4, view.shape, view.stride()).copy_(value)  # type: ignore[call-overload]
    load({"w": value}, model)
    assert torch.equal(whole, expected)
    assert model.w.stride() == view.stride()


@pytest.mark.parametrize(
    "expanded", [torch.zeros(1, 3).expand(2, 3), torch.zeros(10)[::5].expand(2, 2), torch.zeros(4).as_strided((3, 2), (1, 1))]
)
def test_a_tensor_whose_elements_are_one_place_in_memory_is_refused(expanded: torch.Tensor) -> None:
    model = nn.Module()
    model.w = nn.Parameter(expanded)
    with pytest.raises(LoadError) as caught:
        load({"w": torch.rand(expanded.shape)}, model)
    assert [error.path for error in caught.value.report.errors] == ["w"]  # type: ignore[union-attr]
    assert not model.w.any()
    load({"w": torch.ones(expanded.shape)}, model, assign=True)
    assert bool(model.w.eq(1).all())


DTYPES = [
    *("float32", "float64", "float16", "bfloat16", "complex64", "complex128", "bool", "uint8", "int8", "int16", "int32", "int64"),
    *("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("complex32", "float4_e2m1fn_x2"),
]


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("contiguous", [True, False])
def test_every_dtype_of_torch_is_loaded_bit_for_bit(name: str, contiguous: bool) -> None:
    dtype = getattr(torch, name)
    count = 24 * dtype.itemsize
    raw = torch.randint(
        0, 2 if dtype is torch.bool else 256, (count,), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)
    )
    zeros = torch.zeros(count, dtype=torch.uint8).view(dtype)
    model = nn.Module()
    model.register_buffer("w", zeros.view(4, 6) if contiguous else zeros.view(6, 4).t())
    for options in ({}, {"assign": True}):
        zeros.view(torch.uint8).zero_()
        result = load({"w": raw.view(dtype).view(4, 6)}, model, **options)
        assert (result.applied, result.casts) == (["w"], [])
        assert model.w.dtype == dtype
        found = model.w if contiguous or options else torch.empty(0, dtype=dtype).set_(zeros.untyped_storage()).view(6, 4)
        bits = found.view(torch.uint8).reshape(-1, dtype.itemsize)
        want = raw.view(4, 6, dtype.itemsize)
        if not contiguous and not options:
            want = want.transpose(0, 1)
        assert torch.equal(bits, want.reshape(-1, dtype.itemsize))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [("float32", "bfloat16"), ("float16", "float64"), ("int64", "uint8"), ("uint8", "bool"), ("complex64", "complex128")],
)
def test_the_model_keeps_its_dtype_and_the_values_are_torchs_own_cast(found: str, wanted: str) -> None:
    value = (torch.rand(3, 5) * 100).to(getattr(torch, found))
    model = nn.Module()
    model.register_buffer("w", torch.zeros(3, 5, dtype=getattr(torch, wanted)))
    load({"w": value}, model)
    assert model.w.dtype == getattr(torch, wanted)
    assert torch.equal(model.w, value.to(model.w.dtype))


@pytest.mark.parametrize("source", ["hand", "file", "cast", "turned"])
def test_a_tensor_elsewhere_than_in_the_cpus_memory_is_copied_to(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a GPU's tensors are like: there is no address, and no array over them."""
    monkeypatch.setattr(TorchSlot, "address", lambda slot: None)
    monkeypatch.setattr(TorchSlot, "array", lambda slot: None)
    model, other = (nn.Sequential(nn.Linear(5, 30), nn.BatchNorm1d(30)).bfloat16() for _ in range(2))
    if source == "hand":
        load(dict(model.state_dict()), other)
    else:
        path = tmp_path / ("model.bpk" if source == "turned" else "model.safetensors")
        bs.save(model.float() if source == "cast" else model, path)
        bs.load(path, other)
    state = model.bfloat16().state_dict()
    assert all(torch.equal(value, state[name]) for name, value in other.state_dict().items())
