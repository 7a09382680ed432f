"""What the real torch said of its files: the manifests of the corpora, and how an answer of ours is compared with them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

import burnstore as bs
from burnstore.snapshot import TensorSnapshot

_MISSING = object()


def entries(folder: Path, *kinds: str) -> dict[str, Any]:
    """The files of a manifest, those of some folders if any are named."""
    files = json.loads((folder / "manifest.json").read_text())["files"]
    return {path: entry for path, entry in files.items() if not kinds or path.split("/")[0] in kinds}


def named(store: Any, entry: dict[str, Any]) -> dict[str, Any]:
    """The expected tensors under our names: a bare tensor is called `tensor`."""
    wanted = {name: want for name, want in entry.get("tensors", {}).items() if want}
    return {"tensor": wanted[""]} if list(wanted) == [""] and list(store) == ["tensor"] else wanted


def differs(snapshot: TensorSnapshot, want: dict[str, Any]) -> str | None:
    """What is different from what torch read, or None."""
    shape = list(want["shape"])
    dtype = snapshot.dtype.torch_name
    if dtype != want["dtype"]:
        return f"dtype {dtype}, not {want['dtype']}"
    if dtype == "float4_e2m1fn_x2" and shape:
        shape[-1] *= 2
    if list(snapshot.shape) != shape:
        return f"shape {snapshot.shape}, not {shape}"
    if hashlib.sha256(snapshot.tobytes()).hexdigest() != want["sha256"]:
        return "other bytes"
    array = snapshot.numpy()
    if list(array.shape) != (shape if dtype != "complex32" else [*shape, 2]):
        return f"an array of shape {array.shape}"
    if dtype != "float4_e2m1fn_x2" and hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() != want["sha256"]:
        return "other values in the array"
    return None


def value_at(root: Any, name: str) -> Any:
    """The value under a dotted name, where keys are compared by their text."""
    parts = name.split(".") if name else []
    return _walk(root, parts)


def _walk(value: Any, parts: list[str]) -> Any:
    if not parts:
        return value
    if isinstance(value, dict):
        for count in range(len(parts), 0, -1):
            for key, inner in value.items():
                if str(key) == ".".join(parts[:count]):
                    found = _walk(inner, parts[count:])
                    if found is not _MISSING:
                        return found
    elif isinstance(value, (list, tuple)) and parts[0].isdigit() and int(parts[0]) < len(value):
        return _walk(value[int(parts[0])], parts[1:])
    return _MISSING


def value_is(got: Any, want: dict[str, Any]) -> bool:
    """Whether a value is what the manifest spells."""
    kind = want["type"]
    empty = {"empty tuple": (), "empty list": [], "empty dict": {}}
    if kind in empty:
        return type(got) is type(empty[kind]) and got == empty[kind]
    if type(got).__name__ != kind:
        return False
    if kind == "int":
        return got == int(want["value"])
    if kind == "float":
        return str(got) == str(want["value"])
    if kind in ("bytes", "bytearray"):
        return got.hex() == want["hex"]
    if kind == "complex":
        return got == complex(*want["value"])
    return "surrogate" in want or got == want["value"]


def read_all(path: Path) -> tuple[list[str], dict[str, str]]:
    """The names that a file lists, and for each tensor that cannot be read why."""
    store = bs.open(path)
    errors = {}
    for name in store:
        try:
            store[name].numpy()
        except bs.errors.BurnstoreError as error:
            errors[name] = str(error)
    return list(store), errors
