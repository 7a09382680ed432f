"""The examples run as a user runs them: as programs, from any folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(program: Path, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-W", "error", program], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize("program", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_runs_from_another_folder_and_leaves_nothing_behind(program: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in EXAMPLES.rglob("*") if path.suffix in (".bpk", ".safetensors")}
    assert run(program, tmp_path).strip()
    assert list(tmp_path.iterdir()) == []
    assert before == {path: path.stat().st_mtime_ns for path in EXAMPLES.rglob("*") if path.suffix in (".bpk", ".safetensors")}


def test_the_demo_converts_both_ways_and_says_that_all_tensors_are_equal(tmp_path: Path) -> None:
    text = run(EXAMPLES / "demo.py", tmp_path)
    assert "values: 53 of 53 tensors are equal, 53 are in the new file" in text
    assert "values: 3 of 3 tensors are equal, 3 are in the new file" in text
    assert "did you mean 'linear.weight'?" in text
    assert text.splitlines()[-1] == "demo: ok, 56 tensors converted, verified and equal, 3 loaded into a model"


def test_the_demo_loads_a_checkpoint_and_prints_the_report_of_a_good_and_of_a_failed_load(tmp_path: Path) -> None:
    _, _, text = run(EXAMPLES / "demo.py", tmp_path).partition("\n6. ")
    good, _, failed = text.partition("\n7. ")
    assert "Successfully applied: 3 tensors" in good
    assert "under the key 'state_dict'" in good
    assert "Missing Tensors" not in good
    assert "LoadError: checkpoint.pt into <dict>: " in failed
    assert "Missing in source:    1 tensors" in failed
    assert "Did you mean: 'conv2.weight'?" in failed
    assert "Shape mismatch for 'conv1.bias': expected [3], found [2]" in failed
    assert "the model is as it was" in failed


def test_the_demo_needs_no_framework(tmp_path: Path) -> None:
    program = (
        "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__'); "
        "print(sorted({'torch', 'safetensors', 'jax'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, EXAMPLES / "demo.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
