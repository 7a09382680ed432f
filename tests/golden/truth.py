"""What the files that the real Burn wrote hold, told by anybody but burnstore.

For `.bpk` a manifest or listing beside it that the real Burn wrote with it, otherwise what the real Burn lists today; for
`.safetensors` the official package. Parameter ids of `.bpk` are compared with a plain CBOR decoder's as well.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cbor2
import safetensors

FOLDERS = ("v0.19.1", "v0.20.1", "v0.22.1", "records")

# Burn 0.20.1 lets two tensors have one name, and the file that it writes then is not the one that anybody meant.
CORRUPTED_BY_BURN = "v0.20.1/raw/duplicate.bpk"


@dataclass(frozen=True)
class Told:
    """One tensor as somebody else describes it."""

    dtype: str
    shape: tuple[int, ...]
    param_id: int | None
    sha256: str


def golden_files(root: Path) -> Iterator[Path]:
    """Every Burnpack and SafeTensors file that Burn wrote, in a folder such as `fixtures/burn`."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".bpk", ".safetensors"):
                yield path


def burn_version(path: Path) -> str:
    """The version whose spelling a file has."""
    return "0.20" if re.search(r"/v0\.(19|20)\b", path.as_posix()) else "0.22"


def is_of_019(path: Path) -> bool:
    return "/v0.19" in path.as_posix()


def told(path: Path, oracle: Any) -> dict[str, Told]:
    """The tensors of a golden file, in an order that means something where Burn's manifest gives one."""
    if path.suffix == ".safetensors":
        return {
            name: Told(view["dtype"], tuple(view["shape"]), None, hashlib.sha256(view["data"]).hexdigest())
            for name, view in safetensors.deserialize(path.read_bytes())
        }
    ids = plain_ids(path)
    return {
        row["path"]: Told(row["dtype"], tuple(row["shape"]), row.get("param_id", ids[row["path"]]), row["sha256"])
        for row in _rows(path, oracle)
        if row["path"] in ids  # the files of a filtered model share its manifest
    }


def plain_ids(path: Path) -> dict[str, int | None]:
    """The parameter ids of a `.bpk`, by a CBOR decoder and nothing of ours."""
    raw = path.read_bytes()
    block = raw[10 : 10 + int.from_bytes(raw[6:10], "little")]
    return {name: tensor.get("param_id") for name, tensor in cbor2.loads(block)["tensors"].items()}


def _rows(path: Path, oracle: Any) -> list[dict[str, Any]]:
    manifest = manifest_of(path)
    if manifest is not None:
        rows = json.loads(manifest.read_text())
        if isinstance(rows, dict):
            rows = rows.get("tensors") or rows.get("manifest") or []
        return [{**row, "path": row.get("path", row.get("name"))} for row in rows]
    return list(oracle(burn_version(path), "list", path, {})["tensors"])


def manifest_of(path: Path) -> Path | None:
    """The file beside it that says what is in it."""
    model = path.name.partition(".")[0]
    if path.name.endswith((".pytorch.bpk", ".pytorch.safetensors", ".skipenum.safetensors", ".remapped.safetensors")):
        return None
    if ".half." in path.name:
        return path.with_name(f"{model}.half.list.json")
    candidates = [path.with_name(f"{path.stem}.list.json")]
    if not path.as_posix().endswith(CORRUPTED_BY_BURN):
        candidates += [path.with_name(f"{path.stem}.manifest.json"), path.with_name(f"{model}.manifest.json")]
    if is_of_019(path):
        candidates.append(path.parents[2] / "v0.19.1" / f"{model}.manifest.json")
    return next((candidate for candidate in candidates if candidate.exists()), None)


def rust_text(dtype: Any, version: str) -> str:
    """A dtype of ours as Rust's Debug prints it, so that it can be compared with what the manifests say."""
    if not dtype.is_quantized:
        return {"Bool": "Bool(Native)"}.get(dtype.name, dtype.name) if version == "0.22" else str(dtype.name)
    scheme = dtype.scheme
    store = scheme.store if scheme.store == "Native" else f"{scheme.store}({scheme.packed_dim})"
    size = f"BlockSize({list(scheme.block)})" if scheme.block else ""
    if version == "0.20":
        level = f"Block({size})" if scheme.block else "Tensor"
        param = scheme.block_scale or scheme.tensor
        fields = f"value: {scheme.value}, param: {param}, store: {store}, level: {level}, mode: Symmetric"
    else:
        tensor = f"Some({scheme.tensor})" if scheme.tensor else "None"
        block = f"Some(BlockScale {{ size: {size}, dtype: {scheme.block_scale} }})" if scheme.block else "None"
        fields = f"value: {scheme.value}, store: {store}, mode: Symmetric, tensor: {tensor}, block: {block}"
    return f"QFloat(QuantScheme {{ {fields} }})"


def has_order(path: Path) -> bool:
    """Whether the truth lists the tensors in the order of the model, in which the data lies."""
    manifest = manifest_of(path)
    return path.suffix == ".bpk" and not is_of_019(path) and manifest is not None and manifest.name.endswith(".manifest.json")
