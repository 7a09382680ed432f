"""`bs.verify`: what is wrong is a problem, what is odd an oddity, and what cannot be had an error."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from tests.sources.handmade import burnpack_bytes, safetensors_bytes

GOOD = safetensors_bytes({"a": np.zeros(3, np.float32), "b": np.array([True, False])})


def test_a_good_file_is_ok(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(GOOD)
    report = bs.verify(path)
    assert report.ok and report.problems == report.oddities == ()
    assert (report.name, report.format, report.tensors, report.nbytes) == (str(path), "safetensors", 2, 14)


@pytest.mark.parametrize(
    "data", [b"", b"junk", GOOD[:-1], GOOD + b"x", b"NRUB", b"<html>"], ids=["empty", "junk", "cut", "longer", "header", "html"]
)
def test_a_broken_file_is_a_report_with_its_problem(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(data)
    for given in (path, data, io.BytesIO(data)):
        report = bs.verify(given)
        assert not report and len(report.problems) == 1 and report.format is None and "problem: " in str(report)


def test_a_file_that_cannot_be_had_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        bs.verify(tmp_path / "missing.bpk")
    with pytest.raises(IsADirectoryError):
        bs.verify(tmp_path)
    with pytest.raises(bs.errors.UsageError):
        bs.verify(3)  # type: ignore[arg-type]


def test_booleans_that_are_neither_true_nor_false_are_odd() -> None:
    data = burnpack_bytes(
        {
            "flag": ({"Bool": "Native"}, (3,), b"\0\1\2"),
            "wide": ({"Bool": "U32"}, (1,), b"\0\1\0\0"),
            "ok": ({"Bool": "U8"}, (1,), b"\1"),
        }
    )
    report = bs.verify(data)
    assert report.ok and len(report.oddities) == 2
    assert any("'flag'" in oddity for oddity in report.oddities) and any("'wide'" in oddity for oddity in report.oddities)


def test_data_that_cannot_be_read_is_a_problem() -> None:
    class Cut(io.BytesIO):
        def readinto(self, out: object) -> int:
            return 0 if self.tell() > 64 else super().readinto(out)  # type: ignore[arg-type]

    report = bs.verify(Cut(safetensors_bytes({"a": np.zeros(100_000, np.float32)})))
    assert not report.ok and "ends at" in report.problems[0]


def test_verifying_snapshots_runs_what_makes_them() -> None:
    broken = bs.TensorSnapshot.from_blocks("x", "U8", (4,), lambda: [b"abc"])
    report = bs.verify([broken, bs.TensorSnapshot.from_data("y", 1.0)])
    assert not report.ok and report.tensors == 2 and "'x'" in report.problems[0] and report.format == "memory"


def test_verifying_a_store_leaves_it_open() -> None:
    store = bs.open(GOOD)
    assert bs.verify(store).ok and store["a"].numpy().shape == (3,)


def test_verifying_a_closed_store_is_a_problem_or_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(GOOD)
    store = bs.open(tmp_path / "w.safetensors")
    store.close()
    try:
        assert not bs.verify(store).ok
    except bs.errors.SourceClosedError:
        pass
