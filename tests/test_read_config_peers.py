"""Values as classes of attrs and pydantic, which burnstore itself never imports."""

from __future__ import annotations

import attrs
import pydantic
import pytest

from burnstore.errors import ConfigError
from burnstore.typed import convert


@attrs.define
class Optimizer:
    """An attrs class with a private field, whose keyword has no underscore."""

    lr: float
    betas: tuple[float, float] = (0.9, 0.999)
    _hidden: int = attrs.field(default=1)


class Model(pydantic.BaseModel):
    """A pydantic model; its rules are its own."""

    n_head: int
    names: list[str] = []


def test_attrs_classes_are_filled() -> None:
    made = convert({"lr": 1, "betas": [0.5, 1], "_hidden": 3, "other": 0}, Optimizer)
    assert made == Optimizer(lr=1.0, betas=(0.5, 1.0), hidden=3)
    assert convert({"lr": 0.1}, Optimizer) == Optimizer(0.1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "opt.lr: expected float, found nothing"),
        ({"lr": "x"}, "opt.lr: expected float, found str 'x'."),
        ({"lr": 1.0, "betas": [1.0]}, "opt.betas: expected tuple[float, float], found a list of 1."),
    ],
)
def test_attrs_classes_refuse_with_a_path(value: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        convert(value, Optimizer, "opt")
    assert str(caught.value).startswith(message)


def test_pydantic_models_are_filled_and_their_complaint_has_a_path() -> None:
    assert convert({"n_head": 8, "names": ["a"]}, Model) == Model(n_head=8, names=["a"])
    assert convert([{"n_head": 8}], list[Model]) == [Model(n_head=8)]
    with pytest.raises(ConfigError, match=r"a\.b\.names\.0: .*, found int 1\."):
        convert({"b": {"n_head": 8, "names": [1]}}, dict[str, Model], "a")
