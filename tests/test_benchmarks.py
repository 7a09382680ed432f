"""The benchmarks still run: each question, at a tenth of the sizes, gives rows with figures in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import burnstore

ROOT = Path(__file__).parent.parent


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    source = Path(burnstore.__file__).parent.parent
    environment = {**os.environ, "BURNSTORE_BENCH_DIR": str(folder), "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    environment.pop("BURNSTORE_SHARED", None)
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_quick_benchmarks_print_a_row_for_each_comparison_and_leave_no_files(tmp_path: Path) -> None:
    done = _run(tmp_path, "--quick", "--model", "small")
    assert done.returncode == 0, done.stderr
    for question in (
        "open and list",
        "one tensor, view",
        "all as views",
        "all owned",
        "save arrays, no fsync",
        "save arrays, durable",
        "open and list .bpk",
        "all owned .bpk, peak",
    ):
        assert f"{question}, 2,000 x F32" in done.stdout
    assert "import and first open" in done.stdout
    assert "goals met" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_question_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path) -> None:
    done = _run(tmp_path, "no_such_question")
    assert done.returncode == 2
    assert "there is no question no_such_question; there are open_and_list" in done.stderr


def test_a_ratio_counts_theirs_by_ours_and_the_reverse_for_an_upper_bound() -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.measure import Row
    finally:
        sys.path.remove(str(ROOT))
    assert Row("faster", 1.0, "peer", 3.0, 2.0).met
    assert not Row("slower", 3.0, "peer", 1.0, 2.0).met
    assert Row("within", 1.1, "limit", 1.0, 1.2, at_most=True).met
    assert Row("for information", 1.0, "peer", 3.0, None).met is None


@pytest.mark.parametrize("rounds", [1, 3])
def test_contenders_are_prepared_before_each_sample(rounds: int) -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.measure import Contender, compare
    finally:
        sys.path.remove(str(ROOT))
    done: list[str] = []
    compare({"one": Contender(lambda: done.append("run"), lambda: done.append("prepare"))}, rounds, 1)
    assert done == ["prepare", "run"] * (rounds + 1)
