"""Files with nothing usual in them, written by burnstore and listed by both versions of the real Burn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors

import burnstore as bs

Tensors = dict[str, Any]


def _unicode_names() -> Tensors:
    names = ["größe", "重み.0.バイアス", "layer.🔥.weight", "e\u0301 is not \u00e9", "é", "\u202eright to left", "ß" * 40]
    return {name: np.full(i + 1, i, np.float32) for i, name in enumerate(names)}


def _odd_names() -> Tensors:
    names = [
        "",
        " ",
        ".",
        "..a..",
        "a b",
        'quote"d',
        "back\\slash",
        "new\nline",
        "tab\t",
        "\x01",
        "__metadata_",
        "tensors",
        "/etc/passwd",
    ]
    return {name: np.full((2, i), i, np.int32) for i, name in enumerate(names)}


def _long_names() -> Tensors:
    return {"n" * length: np.array([length], np.uint32) for length in (22, 23, 24, 255, 256, 257, 65535, 65536)}


def _scalars() -> Tensors:
    return {f"scalar.{dtype}": np.array(7, dtype) for dtype in ("f4", "f8", "f2", "i8", "i4", "i2", "i1", "u1", "u4", "u8", "?")}


def _empties() -> Tensors:
    shapes = [(0,), (0, 3), (3, 0), (2, 0, 4), (0, 0)]
    tensors: Tensors = {f"empty.{i}": np.empty(shape, np.float32) for i, shape in enumerate(shapes)}
    return {"first": np.ones(3, np.float32), **tensors, "last": np.ones(65, np.float32), "trailing": np.empty((0, 9), np.int64)}


def _dtypes() -> Tensors:
    words = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u1", "?")
    tensors: Tensors = {f"dtype.{np.dtype(word).name}": np.arange(-3, 9).astype(word).reshape(3, 4) for word in words}
    tensors["dtype.bfloat16"] = np.arange(-3, 9).astype(ml_dtypes.bfloat16).reshape(3, 4)
    return tensors


def _floats() -> Tensors:
    odd = [np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308]
    with np.errstate(over="ignore"):
        return {
            "f64": np.array(odd),
            "f32": np.array(odd, np.float32),
            "bits": np.array([0x7FA00001], np.uint32).view(np.float32),
        }


def _strides() -> Tensors:
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    return {
        "fortran": np.asfortranarray(base),
        "transposed": base.transpose(2, 0, 1),
        "reversed": base[::-1, :, ::-2],
        "every.second": base[:, ::2],
        "broadcast": np.broadcast_to(base[:, :1], (2, 5, 4)),
        "big.endian": base.astype(">f4"),
    }


def _many_dimensions() -> Tensors:
    return {
        f"rank.{rank}": np.arange(2 ** min(rank, 4)).reshape((1,) * max(rank - 4, 0) + (2,) * min(rank, 4)) for rank in range(9)
    }


def _metadata_alone() -> Tensors:
    return {}


def _many() -> Tensors:
    return {f"layer.{i}.w": np.full((i % 3,), i, np.float32) for i in range(65_000)}


# A name, its tensors and its metadata.
ODD: dict[str, tuple[Callable[[], Tensors], dict[str, str]]] = {
    "unicode names": (_unicode_names, {}),
    "odd names": (_odd_names, {}),
    "long names": (_long_names, {}),
    "scalars": (_scalars, {}),
    "empties": (_empties, {}),
    "every dtype": (_dtypes, {}),
    "odd floats": (_floats, {}),
    "strides": (_strides, {}),
    "many dimensions": (_many_dimensions, {}),
    "no tensors, much metadata": (
        _metadata_alone,
        {"": "", "é": "café ☕", "long": "x" * 70_000, **{f"k{i}": str(i) for i in range(300)}},
    ),
    "65,000 tensors": (_many, {"epoch": "3"}),
}


def _told(name: str, array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
    dtype = {"bfloat16": "BF16", "bool": "Bool"}.get(array.dtype.name) or f"{array.dtype.kind}{array.dtype.itemsize * 8}".upper()
    return name, dtype, list(array.shape), hashlib.sha256(little.tobytes()).hexdigest()


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("version", ["0.20", "0.22"])
def test_burn_lists_an_odd_burnpack_file_as_it_was_given(oracle: Any, tmp_path: Path, version: Any, odd: str) -> None:
    make, metadata = ODD[odd]
    tensors, file = make(), tmp_path / "odd.bpk"
    bs.save(tensors, file, metadata=metadata, for_burn=version, fsync=False)
    answer = oracle(version, "list", file, {})
    listed = sorted((row["name"], row["dtype"].replace("(Native)", ""), row["shape"], row["sha256"]) for row in answer["tensors"])
    assert listed == sorted(_told(name, array) for name, array in tensors.items())
    if version == "0.22":
        assert answer["metadata"]["metadata"] == metadata


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd != "65,000 tensors"])
@pytest.mark.parametrize("version", ["0.20", "0.22"])
def test_burn_lists_an_odd_safetensors_file_as_it_was_given(oracle: Any, tmp_path: Path, version: str, odd: str) -> None:
    """But for 65,000 tensors, for which Burn takes minutes."""
    make, metadata = ODD[odd]
    tensors, file = make(), tmp_path / "odd.safetensors"
    bs.save(tensors, file, metadata=metadata, fsync=False)
    answer = oracle(version, "list", file, {})
    listed = sorted((row["name"], row["dtype"].replace("(Native)", ""), row["shape"], row["sha256"]) for row in answer["tensors"])
    assert listed == sorted(_told(name, array) for name, array in tensors.items())


@pytest.mark.parametrize("odd", ODD)
def test_the_official_package_reads_an_odd_safetensors_file_as_it_was_given(odd: str) -> None:
    make, metadata = ODD[odd]
    tensors = make()
    read = safetensors.deserialize(bs.save(tensors, bytes, format="safetensors", metadata=metadata))
    found = sorted(
        (name, view["dtype"].replace("BOOL", "Bool"), view["shape"], hashlib.sha256(view["data"]).hexdigest())
        for name, view in read
    )
    assert found == sorted(_told(name, array) for name, array in tensors.items())
