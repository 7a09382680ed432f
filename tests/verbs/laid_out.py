"""A model of torch's, and what Burn would hold of it, told by torch alone; files by plain bytes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.sources.handmade import burnpack_parts, safetensors_parts


class Net(nn.Module):
    """A square Linear, which no shape gives away, and a list with gaps."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.fc = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.list = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
        self.act = nn.PReLU()


def random_net() -> Net:
    """The model with values of its own in every tensor."""
    torch.manual_seed(1)
    model = Net()
    with torch.no_grad():
        for number, tensor in enumerate(model.state_dict().values()):
            if tensor.is_floating_point():
                tensor.copy_(torch.randn(tensor.shape) + number)
    return model


def pickled(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def burns(model: nn.Module, gaps: dict[str, str] | None = None) -> dict[str, np.ndarray]:
    """What Burn's own module would hold, told by torch's modules one by one."""
    found = {}
    for path, module in model.named_modules():
        own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for name, tensor in own:
            array = tensor.detach().numpy()
            if isinstance(module, nn.Linear) and name == "weight":
                array = array.T
            if isinstance(module, (nn.LayerNorm, nn.BatchNorm1d)):
                name = {"weight": "gamma", "bias": "beta"}.get(name, name)
            if isinstance(module, nn.PReLU):
                name = "alpha"
            full = f"{path}.{name}"
            for old, new in (gaps or {}).items():
                full = full.replace(old, new)
            found[full] = array.reshape(1) if array.shape == () else array
    return found


NO_GAPS = {"list.2.": "list.1.", "list.4.": "list.2."}


def same(data: bytes, wanted: dict[str, np.ndarray]) -> None:
    """A `.bpk` by plain bytes."""
    header, block = burnpack_parts(data)
    entries: dict[str, Any] = header["tensors"]  # type: ignore[assignment]
    assert {name: tuple(entry["shape"]) for name, entry in entries.items()} == {name: a.shape for name, a in wanted.items()}
    for name, array in wanted.items():
        assert block[slice(*entries[name]["data_offsets"])] == np.ascontiguousarray(array).tobytes(), name


def metadata_of(data: bytes) -> dict[str, str]:
    if data[:4] == b"NRUB":
        return burnpack_parts(data)[0].get("metadata") or {}  # type: ignore[return-value]
    return safetensors_parts(data)[0].get("__metadata__") or {}  # type: ignore[return-value]


CONV = {"conv.weight": np.zeros((2, 2, 3, 3), np.float32)}
