"""The likely name, by Burn's own measure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnstore import suggest
from burnstore.suggest import closest, similarity


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        ("norm.gamma", "norm.weight", 0.71515152),  # from Burn, by textdistance 1.1.1
        ("MARTHA", "MARHTA", 0.94444444),  # the examples of Jaro's own literature
        ("DIXON", "DICKSONX", 0.76666667),
        ("DWAYNE", "DUANE", 0.82222222),
        ("", "", 1.0),
        ("", "a", 0.0),
        ("a", "a", 1.0),
        ("a", "b", 0.0),
        ("abc", "xyz", 0.0),
    ],
)
def test_similarity_is_jaros(a: str, b: str, value: float) -> None:
    assert similarity(a, b) == pytest.approx(value, abs=1e-8)


@given(st.text("abc.", max_size=12), st.text("abc.", max_size=12))
def test_similarity_is_between_zero_and_one_and_one_for_equals(a: str, b: str) -> None:
    assert 0 <= similarity(a, b) <= 1 and similarity(a, a) == 1


def test_the_most_similar_name_is_suggested_and_of_equals_the_first_in_the_alphabet() -> None:
    assert closest("conv1.wieght", ["conv2.weight", "conv1.weight", "conv1.bias"]) == "conv1.weight"
    assert closest("conv3.weight", ["conv2.weight", "conv1.weight"]) == "conv1.weight"


def test_nothing_is_suggested_where_nothing_is_similar() -> None:
    assert closest("qqqq", ["conv1.weight"]) is None and closest("x", []) is None


def test_names_too_long_to_be_meant_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing costs the product of the lengths, and a file may have names of a million letters."""
    monkeypatch.setattr(suggest, "similarity", lambda *_: pytest.fail("compared"))
    assert suggest.closest("weight", ["w" * 1000, "weight" * 100]) is None
