"""How facts look."""

from __future__ import annotations

import pytest

from burnstore.render import count_text, names_text, safe_text, size_text, verification_text
from burnstore.report import Verification


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_234_567, "1.2 MB"), (2_500_000_000, "2.5 GB"), (10**15, "1000.0 TB")],
)
def test_sizes_are_as_people_read_them(nbytes: int, text: str) -> None:
    assert size_text(nbytes) == text


@pytest.mark.parametrize("nbytes", [999_999, 999_950_000, 999_999_999_999])
def test_a_size_just_below_a_unit_is_not_a_thousand_of_the_smaller_one(nbytes: int) -> None:
    assert not size_text(nbytes).startswith("1000")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fc.weight", "fc.weight"),
        ("ünï.☕", "ünï.☕"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        ("a'b\"\\", "a'b\"\\"),
    ],
)
def test_a_name_is_one_line_without_control_characters(text: str, shown: str) -> None:
    assert safe_text(text) == shown


@pytest.mark.parametrize("text", ["x" * 1000, "\n" * 1000, "x" * 80, "x" * 81, "\x00" * 79])
def test_a_long_name_is_cut_to_the_limit(text: str) -> None:
    assert len(safe_text(text)) <= 80 and (len(text) <= 80 or safe_text(text).endswith("…"))


def test_counts_have_their_noun() -> None:
    assert [count_text(number, "tensor") for number in (0, 1, 2, 65_000)] == [
        "0 tensors",
        "1 tensor",
        "2 tensors",
        "65,000 tensors",
    ]


def test_many_names_are_cut_short() -> None:
    assert names_text(["a"]) == "a" and names_text([]) == ""
    assert names_text([f"n{number}" for number in range(8)]) == "n0, n1, n2, n3, n4 and 3 more"
    assert "\x1b" not in names_text(["a\x1b"])


def test_a_verification_is_a_line_a_fact() -> None:
    report = Verification("m\x1b.bpk", "burnpack", 2, 136, ("it is broken", "and more"), ("it is odd",))
    assert not report and not report.ok
    assert verification_text(report).splitlines() == [
        "m\\x1b.bpk: 2 problems (burnpack, 2 tensors, 136 bytes)",
        "  problem: it is broken",
        "  problem: and more",
        "  oddity: it is odd",
    ]
    assert str(Verification("m", None, 0, 0, (), ("odd",))).startswith("m: ok (unknown format, 0 tensors")
