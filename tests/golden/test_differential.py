"""burnstore answers as the real Burn does, on random files with random options; `differential.py` says what it does otherwise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burnstore as bs
from burnstore.errors import LoadError
from tests.golden import differential
from tests.golden.burn_questions import DifferentAnswerError
from tests.golden.naive_lists import align
from tests.golden.random_cases import Case
from tests.golden.random_files import File, read_model

CASES = 2800


def test_random_cases_are_answered_as_burn_answers_them(
    oracle: Any, shared: Path, tmp_path: Path, announce: Callable[[str], None]
) -> None:
    counts = differential.run(oracle, shared, tmp_path, CASES, seed=1)
    for line in counts.table():
        announce(line)
    assert not counts.failures, f"{len(counts.failures)} differ, the first is\n" + "\n\n".join(counts.failures[:3])
    assert counts.cases.total() == CASES and counts.equal.total() >= 2000
    # a way to differ that no case meets any longer has no place in the list
    assert set(counts.differed) == set(differential.DIFFERENCES)


def test_the_comparison_notices_a_difference(oracle: Any, shared: Path, tmp_path: Path) -> None:
    """The comparison is not vacuous: another answer than Burn's is noticed, in each part of a report and in the values."""
    model = read_model(shared, "net", "0.22")
    path = shared / "fixtures" / "burn" / "v0.22.1" / "seed42" / "net.safetensors"
    case = Case(0, "load", "0.22", {"values": "ramp"}, model, File(path, "safetensors", "0.22", ""))
    burn = oracle("0.22", "load", "net", path, case.options)
    assert differential.compare_load(oracle, case, burn) == set()
    for key, wrong in {
        "applied": [],
        "skipped": ["a"],
        "unused": ["a"],
        "missing": [["a", ""]],
        "display": "",
        "is_success": False,
    }.items():
        other = {**burn, "result": {**burn["result"], key: wrong}}
        with pytest.raises(DifferentAnswerError):
            differential.compare_load(oracle, case, other)
    for key, wrong in {"sha256": "0", "dtype": "F64", "shape": [1]}.items():
        other = {**burn, "manifest": [{**burn["manifest"][0], key: wrong}, *burn["manifest"][1:]]}
        with pytest.raises(DifferentAnswerError):
            differential.compare_load(oracle, case, other)
    with pytest.raises(DifferentAnswerError):
        differential.compare_load(oracle, case, {"error": "Validation error: Missing tensors: []"})


@pytest.mark.parametrize("version", ["0.20", "0.22"])
def test_a_layer_in_columns_takes_its_own_file(oracle: Any, shared: Path, version: str) -> None:
    """Burn compares the shape of a used column-layout weight turned round, and refuses the file that it saved itself."""
    model = read_model(shared, "columns", version)
    path = shared / "fixtures" / "burn" / f"v{version}.1" / "seed42" / "columns.safetensors"
    refused = oracle(version, "load", "columns", path, {"values": "ramp"})["error"]
    assert "rect.weight" in refused and refused.count("ShapeMismatch") == 1
    arrays = model.fresh()
    assert bs.load(bs.SafetensorsStore.from_file(path), arrays, dtype="file").applied == list(model.arrays)
    assert all(arrays[name].tobytes() == other.tobytes() for name, other in model.others.items())


def test_a_failed_load_differs_from_burns_in_what_is_left(oracle: Any, shared: Path, tmp_path: Path) -> None:
    model = read_model(shared, "net", "0.22")
    path = tmp_path / "net.safetensors"
    bs.save({"conv1.bias": np.ones(2, np.float32)}, path)
    burn = oracle("0.22", "load", "net", path, {"values": "ramp"})
    assert "error" in burn
    assert {row["path"]: row["sha256"] for row in burn["manifest"]}["conv1.bias"] == _sha(np.ones(2, np.float32))
    arrays = model.fresh()
    with pytest.raises(LoadError):
        bs.load(bs.SafetensorsStore.from_file(path), arrays, dtype="file")
    assert all(arrays[name].tobytes() == model.arrays[name].tobytes() for name in arrays)


def _sha(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


@pytest.mark.parametrize(
    ("names", "wanted", "aligned"),
    [
        (["fc.0.w", "fc.2.w"], ["fc.0.w", "fc.1.w"], ["fc.0.w", "fc.1.w"]),
        (["fc.0.w", "fc.2.w"], ["fc.0.w", "fc.2.w", "fc.5.w"], ["fc.0.w", "fc.2.w"]),
        (["fc.1.w", "fc.4.w", "fc.9.w"], ["fc.0.w", "fc.1.w"], ["fc.0.w", "fc.1.w", "fc.2.w"]),
        (["a.3.b.5.w", "x.7.w"], ["a.0.b.1.w"], ["a.0.b.1.w", "x.7.w"]),
    ],
)
def test_the_comparisons_own_reading_of_lists(names: list[str], wanted: list[str], aligned: list[str]) -> None:
    assert align(names, wanted) == aligned
