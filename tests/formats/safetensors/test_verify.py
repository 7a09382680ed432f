"""What readers of SafeTensors let pass although no writer makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

import burnstore as bs


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("leading_space", "white space"),
        ("unpadded", "multiple of 8"),
        ("out_of_order", "another order"),
        ("bool_bytes", "other than 0 and 1"),
    ],
)
def test_an_oddity_is_listed_and_the_file_is_read(data: Path, name: str, words: str) -> None:
    report = bs.verify(data / "safetensors" / f"{name}.safetensors")
    assert report.ok and any(words in oddity for oddity in report.oddities), report


def test_a_broken_file_is_a_problem_and_not_an_exception(data: Path) -> None:
    report = bs.verify(data / "safetensors" / "hole.safetensors")
    assert not report.ok and "hole" in report.problems[0]


def test_what_burnstore_and_the_official_package_write_has_no_oddity(data: Path) -> None:
    assert not bs.verify(data / "safetensors" / "numpy_dtypes.safetensors").oddities
    assert not bs.verify(bs.save({"a": [1.0], "b": [True]}, bytes, format="safetensors")).oddities
