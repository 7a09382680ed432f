"""The real Burn, both versions of it, loads models from files that burnstore wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burnstore as bs

MODELS = ("net", "zoo", "seq", "nested")
FOLDERS: dict[Any, str] = {"0.20": "v0.20.1", "0.22": "v0.22.1"}


def _seed42(shared: Path, version: str) -> Path:
    return shared / "fixtures" / "burn" / FOLDERS[version] / "seed42"


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """A plain dict, in alphabetical order: Burn does not care how the data lies."""
    return dict(sorted(bs.read(path).items()))


def _write(how: str, folder: Path, model: str, version: Any, dest: Path) -> None:
    burnpack, safetensors = folder / f"{model}.bpk", folder / f"{model}.safetensors"
    match how:
        case "converted from .bpk":
            bs.convert(burnpack, dest, for_burn=version, fsync=False)
        case "converted from .safetensors":
            bs.convert(safetensors, dest, for_burn=version, dialect="keep", fsync=False)
        case "saved from a dict":
            bs.save(_arrays(burnpack), dest, for_burn=version, fsync=False)
        case "saved from a dict of another format":
            bs.save(_arrays(safetensors), dest, for_burn=version, fsync=False)


HOWS = ("converted from .bpk", "converted from .safetensors", "saved from a dict", "saved from a dict of another format")


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("suffix", ["bpk", "safetensors"])
@pytest.mark.parametrize("version", ["0.20", "0.22"])
@pytest.mark.parametrize("model", MODELS)
def test_burn_loads_a_model_that_burnstore_wrote(
    oracle: Any, shared: Path, tmp_path: Path, model: str, version: str, suffix: str, how: str
) -> None:
    folder = _seed42(shared, version)
    file = tmp_path / f"{model}.{suffix}"
    _write(how, folder, model, version, file)
    # The module is filled with other values first, so that what is found in it afterwards came from the file.
    answer = oracle(version, "load", model, file, {"values": "ramp"})
    wanted = json.loads((folder / f"{model}.manifest.json").read_text())
    result = answer["result"]
    assert result["is_success"] and not result["errors"] and not result["missing"] and not result["unused"]
    assert sorted(result["applied"]) == sorted(row["path"] for row in wanted)
    for row, want in zip(answer["manifest"], wanted, strict=True):
        assert [row[key] for key in ("path", "dtype", "shape", "sha256")] == [
            want[key] for key in ("path", "dtype", "shape", "sha256")
        ]


@pytest.mark.parametrize("model", MODELS)
def test_param_ids_reach_burn_from_burnpack_files(oracle: Any, shared: Path, tmp_path: Path, model: str) -> None:
    """Burn 0.22 takes a parameter's id from the file. The ids of running statistics it draws anew."""
    file = tmp_path / "model.bpk"
    bs.convert(_seed42(shared, "0.22") / f"{model}.bpk", file, fsync=False)
    loaded = {row["path"]: row["param_id"] for row in oracle("0.22", "load", model, file, {"values": "ramp"})["manifest"]}
    listed = {row["path"]: row["param_id"] for row in oracle("0.22", "list", file, {})["tensors"]}
    wanted = json.loads((_seed42(shared, "0.22") / f"{model}.manifest.json").read_text())
    for row in wanted:
        assert listed[row["path"]] == row["param_id"]
        if not row["path"].endswith(("running_mean", "running_var")):
            assert loaded[row["path"]] == row["param_id"]


@pytest.mark.parametrize("version", ["0.20", "0.22"])
def test_a_model_without_ids_keeps_its_own(oracle: Any, shared: Path, tmp_path: Path, version: Any) -> None:
    file = tmp_path / "net.bpk"
    bs.save(_arrays(_seed42(shared, version) / "net.bpk"), file, for_burn=version, fsync=False)
    if version == "0.22":  # 0.20 lists an id that it draws
        assert [row["param_id"] for row in oracle(version, "list", file, {})["tensors"]] == [None] * 3
    loaded = oracle(version, "load", "net", file, {"values": "ramp"})
    assert [row["param_id"] for row in loaded["manifest"]] == [1000, 1001, 1002]


@pytest.mark.parametrize("version", ["0.20", "0.22"])
@pytest.mark.parametrize("model", MODELS)
def test_a_model_of_one_version_goes_into_the_other(oracle: Any, shared: Path, tmp_path: Path, model: str, version: Any) -> None:
    """What the other version wrote is converted to this one's spelling: names and values are the same."""
    other = _seed42(shared, "0.22" if version == "0.20" else "0.20")
    file = tmp_path / "model.bpk"
    bs.convert(other / f"{model}.bpk", file, for_burn=version, fsync=False)
    answer = oracle(version, "load", model, file, {"values": "ramp", "allow_partial": True})
    loaded = {row["path"]: row for row in answer["manifest"]}
    wanted = {row["path"]: row for row in json.loads((other / f"{model}.manifest.json").read_text())}
    assert not answer["result"]["missing"] and not answer["result"]["unused"], answer["result"]
    for path in answer["result"]["applied"]:
        if wanted[path]["dtype"].startswith(("F", "Bool")):
            assert loaded[path]["sha256"] == wanted[path]["sha256"], path


def test_the_wrong_spelling_of_booleans_is_what_for_burn_is_about(oracle: Any, shared: Path, tmp_path: Path) -> None:
    for version, other in (("0.20", "0.22"), ("0.22", "0.20")):
        file = tmp_path / f"zoo{version}.bpk"
        bs.convert(_seed42(shared, "0.22") / "zoo.bpk", file, for_burn=other, fsync=False)  # type: ignore[call-overload]
        assert "deserialization" in json.dumps(oracle(version, "load", "zoo", file, {"values": "ramp"}))
