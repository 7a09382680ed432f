"""The floats that the real Burn makes of its quantised tensors, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burnstore as bs


def _bits(values: list[float]) -> bytes:
    return np.array(values, np.float32).tobytes()


def _dequantized(folder: Path, entry: dict[str, Any]) -> None:
    ((name, tensor),) = bs.open(folder / entry["file"]).items()
    assert name == "linear.weight"
    floats = tensor.dequantize()
    assert floats.dtype == np.float32 and list(floats.shape) == entry["shape"]
    assert floats.tobytes() == _bits(entry["dequantized"]), entry["file"]


def test_the_floats_of_every_quantised_golden_are_burns(burn: Path) -> None:
    entries = [(path, json.loads(path.read_text())) for path in sorted(burn.rglob("quant_*.manifest.json"))]
    assert len(entries) == {"data": 5, "fixtures": 24}[burn.parent.name]
    for path, entry in entries:
        _dequantized(path.parent, entry)


def test_all_dequantized_lists_of_the_collections_are_reproduced(shared: Path) -> None:
    done = 0
    for version in ("v0.20.1", "v0.22.1"):
        folder = shared / "fixtures" / "burn" / version / "raw"
        for entry in json.loads((folder / "quantized.json").read_text()):
            if "dequantized" in entry:
                _dequantized(folder, entry)
                done += 1
    assert done == 24


def test_a_quantised_tensor_has_no_plain_values_and_says_what_to_call(data: Path) -> None:
    tensor = bs.open(data / "burn/v0.20.1/raw/quant_q8s_tensor.bpk")["linear.weight"]
    with pytest.raises(bs.errors.QuantizedError, match=r"dequantize\(\)"):
        tensor.numpy()


def test_the_parts_of_a_quantised_tensor_are_its_bytes_in_order(burn: Path) -> None:
    for path in sorted(burn.rglob("quant*.bpk")):
        for tensor in bs.open(path).values():
            joined = b"".join(part.tobytes() for part in tensor.parts.values())
            assert joined == tensor.tobytes(), path
            assert next(iter(tensor.parts)) == "values"


def test_packed_words_of_hand_made_tensors_hold_the_values_they_were_made_of(burn: Path) -> None:
    """Their values are -7, -2, 3 over and over, their scale is 0.25; the scales of other dtypes were made up."""
    paths = [path for path in sorted(burn.rglob("quantraw_q[48]*_packedu32.bpk")) if "f32" in path.name or "bf16" in path.name]
    assert paths
    for path in paths:
        (tensor,) = bs.open(path).values()
        wanted = np.resize(np.array([-7, -2, 3], np.float32), tensor.shape)
        assert (tensor.dequantize() == wanted * np.float32(0.25)).all(), path


def test_the_floats_survive_a_change_of_spelling(data: Path) -> None:
    """What Burn 0.20 wrote is written for 0.22 and back: the same bytes, other words."""
    for name in ("quant_q8s_tensor", "quant_q8f_block4x8"):
        path = data / f"burn/v0.20.1/raw/{name}.bpk"
        newer = bs.convert(path, bytes, format="bpk", for_burn="0.22")
        assert b"level" not in newer and b"block" in newer
        assert bs.open(newer)["linear.weight"].dequantize().tobytes() == bs.open(path)["linear.weight"].dequantize().tobytes()
        assert bs.convert(newer, bytes, format="bpk", for_burn="0.20") == path.read_bytes()
