"""What passes a filter, what it says of itself, and what it says when it cannot be asked."""

from __future__ import annotations

import copy
import json
import pickle
import random
import re
from typing import Any

import pytest

from burnstore.errors import UsageError
from burnstore.pipeline.filter import PathFilter
from tests.patterns import random_patterns

NAMES = ["encoder.0.weight", "encoder.0.bias", "decoder.weight", "head.bias"]


def passing(chosen: PathFilter | None) -> list[str]:
    assert chosen is not None
    return [name for name in NAMES if chosen.matches(name)]


def is_bias(path: str, _container: str) -> bool:
    return path.endswith("bias")


# --- criteria


def test_an_empty_filter_matches_nothing() -> None:
    assert passing(PathFilter()) == [] and PathFilter().is_empty
    assert PathFilter() == PathFilter.none()


def test_criteria_are_alternatives() -> None:
    chosen = PathFilter().with_regex("^dec").with_full_path("head.bias").with_predicate(lambda path, _: path == "encoder.0.bias")
    assert passing(chosen) == ["encoder.0.bias", "decoder.weight", "head.bias"]
    assert chosen.criteria_count() == 3 and not chosen.is_empty


def test_a_regex_is_searched_for_anywhere() -> None:
    assert passing(PathFilter().with_regex("coder")) == NAMES[:3]
    assert passing(PathFilter().with_regex("^coder")) == []


def test_a_full_path_is_no_regex_and_no_prefix() -> None:
    assert passing(PathFilter().with_full_paths(["head.bias", "encoder", "decoder?weight"])) == ["head.bias"]


def test_match_all_wins() -> None:
    assert passing(PathFilter().with_regex("^x").match_all()) == NAMES
    assert passing(PathFilter.all()) == NAMES
    assert PathFilter().with_regexes(["a", "b"]).match_all().criteria_count() == 1


def test_filters_do_not_change() -> None:
    base = PathFilter().with_regex("^encoder")
    base.with_full_path("head.bias").with_predicate(is_bias).match_all()
    assert passing(base) == NAMES[:2]


def test_predicates_get_the_container() -> None:
    seen = []
    chosen = PathFilter().with_predicates([lambda path, container: seen.append((path, container))])
    assert not chosen.matches("fc.weight", "Net.Linear")
    assert not chosen.matches("fc.weight")
    assert seen == [("fc.weight", "Net.Linear"), ("fc.weight", "")]


# --- algebra


def test_filters_combine() -> None:
    encoder, bias = PathFilter().with_regex("^encoder"), PathFilter().with_predicate(is_bias)
    assert passing(encoder | bias) == passing(encoder.or_(bias)) == ["encoder.0.weight", "encoder.0.bias", "head.bias"]
    assert passing(encoder & bias) == ["encoder.0.bias"]
    assert passing(~encoder) == NAMES[2:]
    assert passing(~(encoder | bias)) == ["decoder.weight"]
    assert passing((encoder & ~bias) | PathFilter().with_full_path("head.bias")) == ["encoder.0.weight", "head.bias"]


def test_all_and_none_are_what_they_are_in_logic() -> None:
    some = PathFilter().with_regex("^encoder")
    assert ~PathFilter.all() == PathFilter.none() and ~PathFilter.none() == PathFilter.all()
    assert some & PathFilter.all() == PathFilter.all() & some == some == ~~some
    assert some & PathFilter.none() == PathFilter.none() & some == PathFilter.none()
    assert passing(some | PathFilter.all()) == NAMES


def test_only_filters_combine() -> None:
    with pytest.raises(TypeError):
        PathFilter() | "a"  # type: ignore[operator]
    with pytest.raises(TypeError):
        PathFilter() & "a"  # type: ignore[operator]
    with pytest.raises(UsageError, match="not a PathFilter"):
        PathFilter().or_("a")  # type: ignore[arg-type]


# --- values


def test_filters_are_equal_by_what_they_say() -> None:
    assert PathFilter().with_regex("a").with_full_path("b") == PathFilter().with_full_path("b").with_regex("a")
    assert PathFilter().with_regex("a") != PathFilter().with_full_path("a")
    assert PathFilter().with_predicate(is_bias) == PathFilter().with_predicate(is_bias)
    assert ~PathFilter().with_regex("a") == ~PathFilter().with_regex("a") != PathFilter().with_regex("a")


def test_filters_can_be_copied_and_sent() -> None:
    chosen = (PathFilter().with_regex("^encoder") & ~PathFilter().with_predicate(is_bias)) | PathFilter().with_full_path(
        "head.bias"
    )
    for other in (copy.copy(chosen), copy.deepcopy(chosen), pickle.loads(pickle.dumps(chosen))):
        assert other == chosen and passing(other) == passing(chosen)


def test_a_filter_is_shown_as_burn_shows_it() -> None:
    assert str(PathFilter.all()) == "PathFilter::all()"
    assert str(PathFilter.none()) == repr(PathFilter()) == "PathFilter::none()"
    shown = PathFilter().with_regex("a").with_full_path("b").with_predicate(is_bias)
    assert str(shown) == 'PathFilter[regex: [Regex("a")], paths: ["b"], predicates: 1]'
    assert str(PathFilter().with_regexes(['\\.a"', "b"])) == 'PathFilter[regex: [Regex("\\\\.a\\""), Regex("b")]]'


def test_what_burn_does_not_have_is_shown_too() -> None:
    a, b = PathFilter().with_regex("a"), PathFilter().with_full_path("b")
    assert str(~a) == '~PathFilter[regex: [Regex("a")]]'
    assert str(a & b) == '(PathFilter[regex: [Regex("a")]] & PathFilter[paths: ["b"]])'
    assert str(~a | b) == 'PathFilter[paths: ["b"], filters: [~PathFilter[regex: [Regex("a")]]]]'


# --- only and skip


@pytest.mark.parametrize(
    ("only", "skip", "wanted"),
    [
        ("^encoder", None, NAMES[:2]),
        (re.compile("^ENCODER", re.IGNORECASE), None, NAMES[:2]),
        (is_bias, None, ["encoder.0.bias", "head.bias"]),
        (PathFilter().with_full_path("head.bias"), None, ["head.bias"]),
        (["^encoder", is_bias], None, ["encoder.0.weight", "encoder.0.bias", "head.bias"]),
        ((name for name in ("^dec", "^head")), None, NAMES[2:]),
        (None, "weight$", ["encoder.0.bias", "head.bias"]),
        (None, ["weight$", "^head"], ["encoder.0.bias"]),
        ("^encoder", is_bias, ["encoder.0.weight"]),
        ("^encoder", [], NAMES[:2]),
        ("^encoder", "coder", []),
        (PathFilter(), None, []),
    ],
)
def test_only_and_skip(only: object, skip: object, wanted: list[str]) -> None:
    assert passing(PathFilter.of(only, skip)) == wanted


def test_nothing_said_is_no_filter() -> None:
    assert PathFilter.of() is None
    assert PathFilter.of(skip=[]) is None


def test_an_empty_list_of_what_is_wanted_is_a_mistake() -> None:
    for only in ([], (), iter([])):
        with pytest.raises(UsageError, match=r"only= names nothing.*take everything"):
            PathFilter.of(only=only)


@pytest.mark.parametrize("wrong", [3, b"a", {"a": 1}, [["a"]], [3]])
def test_only_and_skip_refuse_what_is_no_criterion(wrong: object) -> None:
    with pytest.raises(UsageError, match="only= cannot be"):
        PathFilter.of(only=wrong)
    with pytest.raises(UsageError, match="skip= cannot be"):
        PathFilter.of(skip=wrong)


# --- mistakes


@pytest.mark.parametrize("pattern", ["[", "(?=a)", "[[:alpha:]]"])
def test_a_bad_regex_is_an_error_at_once(pattern: str) -> None:
    for make in (lambda: PathFilter().with_regex(pattern), lambda: PathFilter.of(only=["a", pattern])):
        with pytest.raises(UsageError):
            make()


def test_a_text_where_several_are_wanted_is_an_error() -> None:
    for method in ("with_regexes", "with_full_paths"):
        with pytest.raises(UsageError, match=f"{method} takes several"):
            getattr(PathFilter(), method)("abc")
    with pytest.raises(UsageError, match="a path is text"):
        PathFilter().with_full_paths([3])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="cannot be called"):
        PathFilter().with_predicate("a")  # type: ignore[arg-type]


def test_a_predicate_that_fails_is_named_with_the_tensor() -> None:
    def broken(path: str, container: str) -> bool:
        raise KeyError(path)

    with pytest.raises(UsageError, match=r"broken failed for 'fc.weight' in 'Net.Linear': KeyError") as caught:
        PathFilter().with_predicate(broken).matches("fc.weight", "Net.Linear")
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_predicate_of_one_argument_is_told_of_both() -> None:
    with pytest.raises(UsageError, match=r"takes \(path, container\)"):
        (~PathFilter().with_predicate(lambda path: True)).matches("a")  # type: ignore[arg-type, misc]


def test_an_answer_that_is_neither_yes_nor_no_is_an_error() -> None:
    class Neither:
        def __bool__(self) -> bool:
            raise ValueError("ambiguous")

    with pytest.raises(UsageError, match="ambiguous"):
        PathFilter().with_predicate(lambda path, container: Neither()).matches("a")


# --- what matched nothing


def test_patterns_and_paths_that_matched_nothing_are_told() -> None:
    chosen = PathFilter().with_regexes(["^encoder", "^enc0der"]).with_full_paths(["head.bias", "head.bais"])
    assert chosen.unmatched(NAMES) == ["^enc0der", "head.bais"]
    assert chosen.unmatched(iter(NAMES)) == ["^enc0der", "head.bais"]


def test_those_within_other_filters_are_told_too() -> None:
    chosen = PathFilter.of(only=["^encoder", "^x"], skip=["bias$", "^y"])
    assert chosen is not None and chosen.unmatched(NAMES) == ["^x", "^y"]


# --- the real Burn


@pytest.mark.parametrize("version", ["0.20", "0.22"])
def test_random_filters_let_pass_what_burn_lets_pass(oracle: Any, version: str) -> None:
    draw = random.Random(int(version[2:]))
    for _ in range(60):
        names = [random_patterns.name(draw) for _ in range(12)]
        said: dict[str, Any] = {
            "regex": [random_patterns.pattern(draw, 3) for _ in range(draw.randint(0, 2))],
            "full_paths": draw.sample(names, draw.randint(0, 2)),
            "match_all": draw.random() < 0.1,
        }
        chosen = PathFilter().with_regexes(said["regex"]).with_full_paths(said["full_paths"])
        chosen = chosen.match_all() if said["match_all"] else chosen
        answer = oracle(version, "filter", json.dumps(said), stdin="".join(f"{name}\n" for name in names))
        assert [chosen.matches(name) for name in names] == answer["matches"], said
