"""Plain values as types: what fits, what does not, and how the error says it."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict

import msgspec
import pytest

from burnstore.errors import ConfigError, UsageError
from burnstore.typed import convert, describe, type_name

UserId = NewType("UserId", int)


class Color(enum.Enum):
    """Members may be given by name or by value."""

    red = 1
    blue = "b"


class Point(NamedTuple):
    """A named tuple is made from a dict or a tuple."""

    x: int
    y: int = 0


class Options(TypedDict):
    """A typed dict stays a dict."""

    n: int
    name: NotRequired[str]


@dataclass
class Inner:
    """A dataclass inside another."""

    n_head: int
    rate: float = 0.5


@dataclass
class Outer:
    """With what surrounds it."""

    inner: Inner
    many: list[Inner] = field(default_factory=list)
    made: int = field(init=False, default=7)


class Struct(msgspec.Struct, rename={"lr": "learning-rate"}):
    """A msgspec struct whose key in the values is another one."""

    lr: float
    steps: list[int] = []


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        *((1, int, 1), (1, float, 1.0), (True, bool, True), ("a", str, "a"), (None, None, None), (1, Any, 1), ("x", object, "x")),
        *(([1], list[int], [1]), ((1,), list[int], [1]), ([1, "a"], tuple[int, str], (1, "a")), ([], tuple[int, ...], ())),
        *(([1], list, [1]), ({1}, set[int], {1}), ([1, 1], set[int], {1}), ([1], Sequence[float], [1.0]), ([1], tuple, (1,))),
        *(({"a": 1}, dict[str, float], {"a": 1.0}), ({"1": "x"}, dict[int, str], {1: "x"}), ({}, Mapping[str, int], {})),
        *((None, int | None, None), (1, int | None, 1), ("a", int | str, "a"), (1, int | str, 1), (1, float | str, 1.0)),
        *(("a", Literal["a", "b"], "a"), (1, Annotated[int, "doc"], 1), (1, UserId, 1), ("red", Color, Color.red)),
        *(("b", Color, Color.blue), (1, Color, Color.red), ("x/y", Path, Path("x/y")), (b"x", bytes, b"x")),
        *(((1, 2), Point, Point(1, 2)), ({"x": 1}, Point, Point(1)), ({"n": 1, "o": 2}, Options, {"n": 1})),
        ({"inner": {"n_head": 1}, "many": [{"n_head": 2, "rate": 1}]}, Outer, Outer(Inner(1), [Inner(2, 1.0)])),
        ({"learning-rate": 1, "other": 3}, Struct, Struct(1.0)),
        (datetime.date(2024, 1, 2), datetime.date, datetime.date(2024, 1, 2)),
        (Inner(1), Inner | None, Inner(1)),
    ],
)
def test_a_value_that_fits_is_converted(value: object, type: Any, expected: object) -> None:
    made = convert(value, type)
    assert made == expected
    assert made.__class__ is expected.__class__


@pytest.mark.parametrize(
    ("value", "type", "message"),
    [
        ("eight", int, "k: expected int, found str 'eight'."),
        (True, int, "k: expected int, found bool True."),
        (1.0, int, "k: expected int, found float 1.0."),
        (True, float, "k: expected float, found bool True."),
        (1, bool, "k: expected bool, found int 1."),
        (1, str, "k: expected str, found int 1."),
        (None, int, "k: expected int, found None."),
        (0, None, "k: expected None, found int 0."),
        ("abc", list[str], "k: expected list[str], found str 'abc'."),
        ([1, "x"], list[int], "k.1: expected int, found str 'x'."),
        ([1], tuple[int, int], "k: expected tuple[int, int], found a list of 1."),
        ([1], dict[str, int], "k: expected dict[str, int], found a list of 1."),
        ({"a": {"b": "x"}}, dict[str, dict[str, int]], "k.a.b: expected int, found str 'x'."),
        ({1: 1}, dict[str, int], "k.1: expected str, found int 1."),
        ("c", Literal["a", "b"], "k: expected 'a' | 'b', found str 'c'."),
        (1, Literal[True], "k: expected True, found int 1."),
        ([], int | str, "k: expected int | str, found an empty list."),
        ("x", int | None, "k: expected int | None, found str 'x'."),
        ({"n_head": "x"}, Inner | None, "k.n_head: expected int, found str 'x'."),
        ("green", Color, "k: expected Color (red, blue), found str 'green'."),
        ({"n": 1, "name": 2}, Options, "k.name: expected str, found int 2."),
        ({}, Options, "k.n: expected int, found nothing"),
        ({"inner": {"n_heads": 1}}, Outer, "k.inner.n_head: expected int, found nothing; did you mean 'n_heads'?"),
        ({"learning-rate": []}, Struct, "k.learning-rate: expected float, found an empty list."),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_with_its_path(value: object, type: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        convert(value, type, "k")
    assert str(caught.value).startswith(message)


def test_the_file_stands_before_the_path() -> None:
    with pytest.raises(ConfigError, match=r"^ckpt\.pt, hyper_parameters\.n_head: expected int, found str 'eight'\.$"):
        convert({"n_head": "eight"}, Inner, "hyper_parameters", source="ckpt.pt")


def test_what_the_class_itself_refuses_is_said_with_its_path() -> None:
    @dataclass
    class Even:
        n: int

        def __post_init__(self) -> None:
            if self.n % 2:
                raise ValueError("n is odd")

    assert convert({"n": 2}, Even).n == 2
    with pytest.raises(ConfigError, match="a: Even refused it: n is odd"):
        convert({"n": 1}, Even, "a")


def test_a_type_that_values_cannot_become_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="values cannot become a Thread"):
        import threading

        convert({}, threading.Thread)


def test_annotations_that_cannot_be_resolved_are_said() -> None:
    @dataclass
    class Broken:
        x: NotThere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(UsageError, match="NotThere"):
        convert({"x": 1}, Broken)


def test_long_values_are_cut_in_messages() -> None:
    assert len(describe("x" * 1000)) < 70
    assert type_name(dict[str, list[int]] | None) == "dict[str, list[int]] | None"
