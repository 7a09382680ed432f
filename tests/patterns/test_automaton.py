"""Patterns that would keep `re` busy for ever give the right answer; a test here that never ends has failed."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnstore.errors import LimitError
from burnstore.patterns.ambiguity import longest_text
from burnstore.patterns.automaton import Automaton
from burnstore.patterns.regex import compile_rust
from burnstore.patterns.spelling import spell
from burnstore.patterns.syntax import parse
from tests.patterns import random_patterns


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*b",
        "(a|ab)*c",
        r"(\w+\s?)*x",
        "(.*)*",
        ".*.*.*.*=",
        "(x+x+)+y",
        "(a?){40}a{40}",
        "a?" * 40 + "a" * 40,
        "(a|aa)+$",
        "(?:a*)*b",
        "([a-z]+)*=",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        "(a|b|ab){20,}c",
        "(a{1,30}){1,30}c",
        "(?:(?:.{1,30}){2}){2}c",
        "(?:(?:(?:b)?)?xx)*?c",
        r"(?:\w(?:(?:\.)*?)?)*=",
    ],
)
def test_patterns_that_backtrack_for_ever_are_not_given_to_re(pattern: str) -> None:
    assert longest_text(parse(pattern).root) < 30
    regex = compile_rust(pattern)
    for text in ("a" * 3000 + "!", "x" * 3000, "ab" * 1500 + "\u00e9"):
        regex.search(text)
        regex.subn("<$0>", text)


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("(a+)+$", "b" + "a" * 5000, "b<" + "a" * 5000 + ">"),
        ("(a+)+$", "a" * 5000 + "!", None),
        ("(a|a)*b", "a" * 5000 + "bc", "<" + "a" * 5000 + "b>c"),
        (r"(\w+\s?)*x", "a b " * 1000 + "xy", "<" + "a b " * 1000 + "x>y"),
        ("(.*)*", "abc", "<abc>"),
        (".*.*.*.*=", "a.b" * 1000 + "=c", "<" + "a.b" * 1000 + "=>c"),
        ("(?:a*)*b|a", "a" * 3000, "<a>" * 3000),
        ("(?:a+?)+?", "aaa", "<a><a><a>"),
        ("(?:a|ab)(?:c|bcd)*?$", "abcd", "<abcd>"),
    ],
)
def test_the_answer_is_right(pattern: str, text: str, wanted: str | None) -> None:
    regex = compile_rust(pattern)
    assert regex.search(text) == (wanted is not None)
    assert regex.replace_all("<$0>", text) == (text if wanted is None else wanted)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(.*?)\.attn\.",
        r"^encoder\..*",
        r"(\d+)\.weight$",
        r"layers\.(\d+)\.(weight|bias)$",
        r"^(\w+\.)+weight$",
        r"encoder\.layer\.(\d+)\.attention\.(\w+)\.(.*)",
        r"(?:^|\.)fc\.",
        r"^(?:module\.)?(?:model\.)?(.+)$",
    ],
)
def test_honest_patterns_stay_with_re_for_names_of_any_usual_length(pattern: str) -> None:
    assert longest_text(parse(pattern).root) >= 1000


def test_a_very_long_name_is_not_given_to_re_even_for_an_honest_pattern() -> None:
    """`re` would look at half of 100,000 x 100,000 characters."""
    assert not compile_rust(r"(\d+)\.weight").search("1" * 100_000)
    assert compile_rust(r"(\d+)\.weight").replace_all("$1", "1" * 100_000 + ".weight") == "1" * 100_000


@settings(deadline=None, max_examples=300)
@given(st.randoms(use_true_random=False), st.lists(st.text(random_patterns.LETTERS + "\n", max_size=12), min_size=1, max_size=4))
def test_the_automaton_finds_what_re_finds(draw: random.Random, texts: list[str]) -> None:
    syntax = parse(random_patterns.pattern(draw, 3))
    if longest_text(syntax.root) < 0:
        return  # Python and Rust differ in what groups hold after a repeat over nothing
    wide, machine = re.compile(spell(syntax.root, wide=True)), Automaton(syntax.root, syntax.groups)
    for text in texts:
        match = wide.search(text)
        wanted = match and [end for group in range(syntax.groups + 1) for end in match.span(group)]
        assert machine.search(text).find(0) == wanted
        assert machine.matches(text) == (match is not None)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a*)+", "aa"),
        ("(a*)*", "b"),
        ("(|a)+", "aa"),
        ("(|a)*", "aa"),
        ("(a|b*)*", "abba"),
        ("(?:(a)|b)*", "ab"),
        ("(^|a)+", "aa"),
    ],
)
def test_groups_under_repeats_over_nothing_hold_what_they_hold_in_rust(pattern: str, text: str) -> None:
    """The answers are those of the real Burn (`remap`)."""
    wanted = {"(a*)+": "[aa]", "(a*)*": "[]b[]", "(|a)+": "[]a[]a[]", "(|a)*": "[]a[]a[]", "(a|b*)*": "[a]"}
    wanted |= {"(?:(a)|b)*": "[a]", "(^|a)+": "[]a[a]"}
    assert compile_rust(pattern).replace_all("[$1]", text) == wanted[pattern]


def test_a_table_that_grows_too_large_starts_anew() -> None:
    """The last letter but sixteen is a: a table of all cases has 65,536 rows."""
    regex = compile_rust("(?:a|a|b)*a[ab]{16}$")
    draw = random.Random(1)
    for _ in range(4):
        text = "".join(draw.choice("ab") for _ in range(10_000))
        assert regex.search(text) == (text[-17] == "a")


def test_a_text_too_long_for_a_large_pattern_is_an_error() -> None:
    with pytest.raises(LimitError, match="too long for a pattern"):
        compile_rust("(a{1,500}){1,500}b").search("a" * 5000)
