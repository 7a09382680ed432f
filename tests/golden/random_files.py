"""Models and weight files for the differential run: Burn's own files, and variations of them that burnstore, torch or the
official safetensors package wrote. What is in a file is known from whoever made it, never from our reader."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import safetensors

FOLDERS = {"0.20": "v0.20.1", "0.22": "v0.22.1"}
MODELS = ("net", "zoo", "seq", "nested", "columns")
# The file's dtypes that a PytorchStore of Burn turns round or renames on their way into a model: module adapters' matter.
ADAPTED = ("Struct:Linear",)

_PLAIN = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "BOOL": "?"}
_UNSIGNED = {"U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1"}
_NUMPY: dict[str, Any] = {
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    **{word: np.dtype(code) for word, code in (_PLAIN | _UNSIGNED).items()},
}
# What Burn refuses in a SafeTensors file, and the whole file with it.
REFUSED_BY_BURN = ("U16", "F8_E4M3")
# What both kinds of numbers may become in a model of Burn 0.20, whose backend has no other types.
_OF_020 = {"F32": ("F64",), "I64": ("I32", "I16", "I8")}
_OF_022 = ("F64", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U8", "BOOL")

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Model:
    """A module of the oracle, filled with the ramp, as its manifest and Burn's own file tell it."""

    name: str
    version: str
    rows: tuple[dict[str, Any], ...]
    arrays: Arrays
    # The values that files have: those of seed 42.
    others: Arrays

    @property
    def has_enums(self) -> bool:
        return any("Enum:" in container for row in self.rows for container in row["containers"])

    def fresh(self) -> Arrays:
        """The model as a plain dict of arrays of its own."""
        return {path: array.copy() for path, array in self.arrays.items()}


@dataclass(frozen=True)
class File:
    """A weight file, the version of Burn that can read it, and the dtypes of SafeTensors that are in it."""

    path: Path
    format: str
    version: str
    what: str
    dtypes: frozenset[str] = frozenset()
    keys: tuple[str, ...] = ()


def read_model(shared: Path, name: str, version: str) -> Model:
    """A model by its manifest; its values by the official safetensors package."""
    folder = shared / "fixtures" / "burn" / FOLDERS[version]
    rows = json.loads((folder / "ramp" / f"{name}.manifest.json").read_text())
    for row in rows:
        row["containers"] = row.get("containers") or json.loads(row["context"].partition("container_stack: ")[2].rstrip(" }"))
    sides = []
    for values in ("ramp", "seed42"):
        found = arrays_of((folder / values / f"{name}.safetensors").read_bytes())
        sides.append({row["path"]: found[row["path"]] for row in rows})
    return Model(name, version, tuple(rows), *sides)


def arrays_of(data: bytes) -> Arrays:
    """The tensors of a SafeTensors file by the official package."""
    return {
        name: np.frombuffer(bytes(view["data"]), _NUMPY[view["dtype"]]).reshape(view["shape"])
        for name, view in safetensors.deserialize(data)
    }


def dtype_word(array: np.ndarray) -> str:
    """What SafeTensors calls an array's dtype."""
    return next(word for word, dtype in _NUMPY.items() if np.dtype(dtype) == array.dtype)


# --- variations


def _renamed(draw: random.Random, arrays: Arrays) -> Arrays:
    """Some names are changed a little."""
    chosen = set(draw.sample(list(arrays), min(len(arrays), draw.randint(1, 3))))
    changes: tuple[Callable[[str], str], ...] = (
        lambda name: name + "x",
        lambda name: name.replace("e", "", 1),
        lambda name: name.replace(".", "_", 1),
        lambda name: f"{name}.data",
        lambda name: name.replace("weight", "w"),
    )
    return {(draw.choice(changes)(name) if name in chosen else name): array for name, array in arrays.items()}


def _prefixed(draw: random.Random, arrays: Arrays) -> Arrays:
    prefix = draw.choice(("model.", "module.", "net.encoder.", "0."))
    return {prefix + name: array for name, array in arrays.items()}


def _removed(draw: random.Random, arrays: Arrays) -> Arrays:
    gone = set(draw.sample(list(arrays), draw.randint(1, max(1, len(arrays) // draw.choice((2, 4, 20))))))
    return {name: array for name, array in arrays.items() if name not in gone}


def _added(draw: random.Random, arrays: Arrays) -> Arrays:
    names = ("extra.weight", "extra.3.bias", "extra.5.bias", "step", "fc.0.weight", "fc.2.weight", "zz.01.w", "é.w", "a b")
    more = {name: np.arange(draw.randint(0, 5), dtype=np.float32) for name in draw.sample(names, draw.randint(1, 5))}
    return {**arrays, **{name: array for name, array in more.items() if name not in arrays}}


def _reshaped(draw: random.Random, arrays: Arrays) -> Arrays:
    chosen = set(draw.sample(list(arrays), min(len(arrays), draw.randint(1, 2))))
    ways: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
        lambda array: array.reshape(-1),
        lambda array: array[None],
        lambda array: array.T,
        lambda array: array.reshape(()) if array.size == 1 else array[1:],
        lambda array: np.concatenate([array, array]),
    )
    return {name: (draw.choice(ways)(array) if name in chosen else array) for name, array in arrays.items()}


def _gapped(draw: random.Random, arrays: Arrays) -> Arrays:
    """The items of lists counted otherwise."""
    step, first = draw.choice(((2, 0), (1, 1), (3, 2)))
    return {
        ".".join(str(int(part) * step + first) if part.isdigit() else part for part in name.split(".")): array
        for name, array in arrays.items()
    }


def _recast(draw: random.Random, arrays: Arrays, version: str) -> Arrays:
    chosen = set(draw.sample(list(arrays), min(len(arrays), draw.randint(1, 4))))
    found = {}
    for name, array in arrays.items():
        choices = _OF_020.get(dtype_word(array), ()) if version == "0.20" else _OF_022
        wanted = _NUMPY[draw.choice(choices)] if name in chosen and choices else array.dtype
        with np.errstate(all="ignore"):
            found[name] = (np.abs(array) if array.dtype.kind == "f" else array).astype(wanted)
    return found


_CHANGES = (_renamed, _prefixed, _removed, _removed, _added, _reshaped, _gapped, None)


def varied(draw: random.Random, model: Model, version: str) -> tuple[Arrays, str]:
    """The tensors of a model with other values and some changes, and what was changed."""
    arrays, done = dict(model.others), []
    for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3))):
        change = draw.choice(_CHANGES)
        arrays = _recast(draw, arrays, version) if change is None else change(draw, arrays)
        done.append(change.__name__ if change else "_recast")
    if draw.random() < 0.3:
        items = list(arrays.items())
        draw.shuffle(items)
        arrays = dict(items)
    return arrays, "+".join(done)


# --- writing them


def write_safetensors(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    """Written by the official package."""
    from safetensors.torch import save_file

    save_file({name: _as_torch(array) for name, array in arrays.items()}, path)


def _as_torch(array: np.ndarray) -> Any:
    import torch

    odd = {"bfloat16": (np.uint16, torch.bfloat16), "float8_e4m3fn": (np.uint8, torch.float8_e4m3fn)}.get(array.dtype.name)
    plain = np.ascontiguousarray(array.view(odd[0]) if odd else array).reshape(array.shape).copy()
    return torch.from_numpy(plain).view(odd[1]) if odd else torch.from_numpy(plain)


def write_burnpack(arrays: Mapping[str, np.ndarray], path: Path, version: Any) -> None:
    """Written by burnstore; that Burn reads it right is what the comparison shows."""
    import burnstore as bs

    bs.save(arrays, path, for_burn=version, fsync=False)


def write_torch(draw: random.Random, arrays: Mapping[str, np.ndarray], path: Path) -> tuple[str, ...]:
    """Written by torch, sometimes under a key beside other values; the keys at the top are given back."""
    import torch

    tensors = {name: _as_torch(array) for name, array in arrays.items()}
    whole: dict[str, Any] = tensors
    if draw.random() < 0.5:
        whole = {"state_dict": tensors, "epoch": 3}
        if draw.random() < 0.4:
            whole["ema"] = {name: tensor.clone() for name, tensor in tensors.items()}
    torch.save(whole, path)
    return tuple(whole) if whole is not tensors else ()


def without_adapted(model: Model, arrays: Arrays) -> Arrays:
    """Without the weights that Burn's PytorchStore transposes, whatever they are called now."""
    suffixes = {path for row in model.rows for path in [row["path"]] if row["containers"][-1] in ADAPTED}
    values = {model.others[path].tobytes() for path in suffixes}
    return {name: array for name, array in arrays.items() if name not in suffixes and array.tobytes() not in values}


def written(
    draw: random.Random, models: Mapping[tuple[str, str], Model], folder: Path, count: int
) -> Iterator[tuple[Model, File]]:
    """Files of random variations, each with the model that it was made from."""
    for number in range(count):
        format = draw.choice(("bpk", "bpk", "safetensors", "safetensors", "pt"))
        version = draw.choice(("0.20", "0.22"))
        model = models[draw.choice(("net", "net", "zoo", "seq", "nested", "columns")), version]
        path = folder / f"{number}.{format}"
        if format == "pt":
            model = models[draw.choice(("net", "net", "zoo", "nested")), version]
            plain = Model(model.name, version, model.rows, model.arrays, without_adapted(model, dict(model.others)))
            arrays, what = varied(draw, plain, version)
            arrays = {
                name: array
                for name, array in arrays.items()
                if array.size and array.dtype.name not in ("uint16", "uint32", "uint64")
            }
            keys = write_torch(draw, arrays, path)
        else:
            arrays, what = varied(draw, model, version)
            if format == "safetensors" and draw.random() < 0.06 and arrays:
                arrays[draw.choice(list(arrays))] = np.ones(3, _NUMPY[draw.choice(REFUSED_BY_BURN)])
            keys = ()
            if format == "bpk":
                write_burnpack(arrays, path, version)
            else:
                write_safetensors(arrays, path)
        yield model, File(path, format, version, f"{model.name} {what}", frozenset(map(dtype_word, arrays.values())), keys)
