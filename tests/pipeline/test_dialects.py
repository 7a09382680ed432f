"""Whose habits a file follows, from what it says of itself."""

from __future__ import annotations

import pytest

from burnstore.pipeline.dialects import dialect_of, layout_matters


@pytest.mark.parametrize(
    ("own", "metadata", "names", "dialect"),
    [
        ("burn", {}, [], "burn"),
        ("burn", {"format": "pt"}, [], "burn"),
        ("burn", {"dialect": "pytorch"}, [], "pytorch"),
        (None, {"dialect": "keras", "format": "pt"}, [], "keras"),
        (None, {"format": "pt"}, [], "pytorch"),
        (None, {"format": "pt", "producer": "burn"}, ["norm.gamma"], "pytorch"),
        (None, {"producer": "burn"}, ["norm.gamma", "fc.weight"], "burn"),
        (None, {"producer": "burn"}, ["norm.weight"], None),
        (None, {}, ["norm.gamma", "norm.beta"], None),
        (None, {"format": "tf"}, [], None),
        (None, {}, [], None),
    ],
)
def test_the_dialect_is_what_the_file_says_most_plainly(
    own: str | None, metadata: dict[str, str], names: list[str], dialect: str | None
) -> None:
    assert dialect_of(own, metadata, names) == dialect


@pytest.mark.parametrize(
    ("name", "shape", "matters"),
    [
        ("fc.weight", (3, 4), True),
        ("weight", (3, 4), True),
        ("norm.weight", (3,), True),
        ("square.weight", (4, 4), True),
        ("fc.bias", (3,), False),
        ("conv.weight", (8, 3, 3, 3), False),
        ("conv1d.weight", (8, 3, 3), False),
        ("scalar.weight", (), False),
        ("weights", (3, 4), False),
        ("fc.weight.scale", (3, 4), False),
    ],
)
def test_the_layout_matters_for_what_may_be_a_linear_or_a_norm(name: str, shape: tuple[int, ...], matters: bool) -> None:
    assert layout_matters({name: shape}) == ([name] if matters else [])
