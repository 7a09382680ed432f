"""Tensors that do not lie in order, or have no plain values, against torch's own answers."""

from __future__ import annotations

import io
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import torch

import burnstore as bs
from burnstore.errors import DTypeError, LimitError, QuantizedError
from burnstore.limits import Limits


def _saved(value: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


def _large() -> dict[str, torch.Tensor]:
    base = torch.arange(3 * 700 * 1100, dtype=torch.float32)
    matrix = base[: 2100 * 1100].reshape(2100, 1100)
    return {
        "transposed": matrix.t(),
        "channels_last": base[: 2 * 64 * 90 * 90].reshape(2, 64, 90, 90).contiguous(memory_format=torch.channels_last),
        "columns": matrix[:, 3:1000:7],
        "expanded": torch.arange(1000.0).expand(900, 1000),
        "few_large_rows": base[: 2 * 1100 * 1050].reshape(1050, 1100, 2).permute(2, 1, 0),
        "half": matrix.to(torch.bfloat16).t(),
        "complex": torch.complex(matrix, -matrix).t().conj(),
        "negated": torch.complex(matrix, matrix).conj().imag,
    }


@pytest.mark.parametrize("name", list(_large()))
@pytest.mark.parametrize("io_mode", ["mmap", "pread"])
def test_a_large_strided_tensor_has_the_values_that_torch_shows(name: str, io_mode: Any, tmp_path: Any) -> None:
    tensor = _large()[name]
    path = tmp_path / "x.pt"
    torch.save({name: tensor}, path)
    snapshot = bs.open(path, io=io_mode)[name]
    want = tensor.resolve_conj().resolve_neg().contiguous()
    raw = want.view(torch.uint8).numpy() if want.dtype == torch.bfloat16 else want.numpy()
    assert snapshot.shape == tuple(tensor.shape)
    assert np.array_equal(snapshot.numpy().view(raw.dtype).reshape(raw.shape), raw)
    assert b"".join(bytes(block) for block in snapshot.data.blocks()) == raw.tobytes()
    middle = bytearray(100_001)
    snapshot.data.read_into(memoryview(middle), 54_321)
    assert bytes(middle) == raw.tobytes()[54_321:][:100_001]
    key = (slice(1, -1, 3), ..., 0)
    assert np.array_equal(snapshot[key].astype(np.complex128), snapshot.numpy()[key].astype(np.complex128))
    assert snapshot[0:0].size == 0


def test_blocks_of_a_strided_tensor_are_small() -> None:
    tensor = torch.zeros(4000, 3000).t()
    blocks = bs.open(_saved({"x": tensor}))["x"].data.blocks()
    assert max(memoryview(block).nbytes for block in blocks) <= 8 * 1024 * 1024


def test_an_expand_beyond_the_cap_is_refused_unless_the_cap_is_raised() -> None:
    data = _saved({"x": torch.ones(1).expand(30_000, 1000)})
    store = bs.open(data)
    assert store["x"].shape == (30_000, 1000)
    with pytest.raises(LimitError, match="pytorch_expanded_bytes"):
        store["x"].numpy()
    raised = bs.open(data, limits=Limits(pytorch_expanded_bytes=2**30))
    assert raised["x"].numpy()[29_999, 999] == 1


@pytest.mark.filterwarnings("ignore")
def test_parts_of_sparse_tensors_are_torchs() -> None:
    dense = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
    store = bs.open(_saved({"coo": dense.to_sparse(), "csr": dense.to_sparse_csr(), "w": dense}))
    coo, csr = dense.to_sparse().coalesce(), dense.to_sparse_csr()
    assert np.array_equal(store["coo"].parts["indices"], coo.indices().numpy())
    assert np.array_equal(store["coo"].parts["values"], coo.values().numpy())
    assert np.array_equal(store["csr"].parts["compressed_indices"], csr.crow_indices().numpy())
    assert np.array_equal(store["csr"].parts["plain_indices"], csr.col_indices().numpy())
    assert store["csr"].shape == (2, 3)
    with pytest.raises(DTypeError, match=r"'coo': it is sparse \(torch.sparse_coo\); take .parts: indices, values"):
        store["coo"].numpy()
    assert np.array_equal(store["w"].numpy(), dense.numpy())


@pytest.mark.filterwarnings("ignore")
def test_parts_of_quantised_tensors_are_torchs() -> None:
    tensor = torch.quantize_per_tensor(torch.tensor([[0.1, -0.4], [1.0, 0.3]]), 0.05, 7, torch.quint8)
    snapshot = bs.open(_saved({"q": tensor}))["q"]
    assert snapshot.shape == (2, 2)
    assert snapshot.dtype.torch_name == "quint8"
    assert np.array_equal(snapshot.parts["values"], tensor.int_repr().numpy())
    assert (snapshot.parts["scale"], snapshot.parts["zero_point"]) == (tensor.q_scale(), tensor.q_zero_point())
    with pytest.raises(QuantizedError):
        snapshot.numpy()
    with pytest.raises(QuantizedError):
        snapshot.dequantize()


def test_complex32_becomes_pairs_of_float16() -> None:
    pairs = torch.tensor([[1.5, -2.0], [0.25, 8.0]], dtype=torch.float16)
    snapshot = bs.open(_saved({"c": torch.view_as_complex(pairs)}))["c"]
    assert (snapshot.dtype, snapshot.shape) == ("C32", (2,))
    assert np.array_equal(snapshot.numpy(), pairs.numpy())


def test_float4_counts_values_where_torch_counts_pairs() -> None:
    codes = torch.arange(16, dtype=torch.uint8).reshape(2, 8).view(torch.float4_e2m1fn_x2)
    snapshot = bs.open(_saved({"f": codes}))["f"]
    assert (snapshot.dtype, snapshot.shape, snapshot.nbytes) == ("F4", (2, 16), 16)


def test_a_whole_model_has_the_names_of_its_state_dict() -> None:
    model = torch.nn.Sequential(
        OrderedDict(a=torch.nn.Linear(2, 3), b=torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Embedding(4, 2)))
    )
    model.register_buffer("kept", torch.ones(1))
    model.register_buffer("dropped", torch.ones(1), persistent=False)
    for old in (True, False):
        store = bs.open(_saved(model, _use_new_zipfile_serialization=old))
        assert list(store) == list(model.state_dict())
        for name, tensor in model.state_dict().items():
            assert np.array_equal(store[name].numpy(), tensor.numpy())


def test_data_in_big_endian_order_is_turned_around(tmp_path: Any) -> None:
    tensors = {
        "f": torch.randn(3, 4),
        "t": torch.randn(4, 3).t(),
        "i": torch.tensor([1, 2**40]),
        "b": torch.tensor([True, False]),
    }
    source = zipfile.ZipFile(io.BytesIO(_saved(tensors)))
    out = io.BytesIO()
    sizes = iter((4, 4, 8, 1))
    with zipfile.ZipFile(out, "w") as archive:
        for name in source.namelist():
            content = source.read(name)
            if "/data/" in name:
                content = np.frombuffer(content, f"u{next(sizes)}").byteswap().tobytes()
            archive.writestr(name, b"big" if name.endswith("byteorder") else content)
    store = bs.open(out.getvalue())
    for name, tensor in tensors.items():
        assert np.array_equal(store[name].numpy(), tensor.numpy())
    assert {name: array.tolist() for name, array in bs.read(out.getvalue()).items()} == {
        k: v.tolist() for k, v in tensors.items()
    }


@pytest.mark.parametrize("format", ["safetensors", "bpk", "pt"])
def test_a_tensor_without_plain_values_is_refused_before_anything_is_written(format: str, tmp_path: Any) -> None:
    data = _saved({"w": torch.ones(2), "s": torch.eye(2).to_sparse()})
    with pytest.raises(DTypeError, match="'s': it is sparse"):
        bs.convert(data, tmp_path / "x", format=format, dialect="keep")
    assert list(tmp_path.iterdir()) == []
