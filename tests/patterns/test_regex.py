"""Patterns and replacements mean what they mean in Rust: what Rust says is in `regex_rust.json` and in the real Burn."""

from __future__ import annotations

import copy
import json
import pickle
import random
import re
from pathlib import Path
from typing import Any

import pytest

from burnstore.errors import UsageError
from burnstore.patterns.regex import Replacement, compile_rust
from tests.patterns import random_patterns

RUST = json.loads((Path(__file__).parent.parent / "data" / "burn" / "regex_rust.json").read_text("utf-8"))
# What we answer otherwise: set operations are refused, and \1 is a group.
OTHERWISE = {"[a-z&&[^b]]": None, "(.)": "ab"}


@pytest.mark.parametrize("case", RUST, ids=lambda case: f"{case['pattern']} {case['replacement']}")
def test_rusts_own_answers(case: dict[str, Any]) -> None:
    wanted = case["rust"]
    if case["replacement"] == "\\1" or "&&" in case["pattern"]:
        wanted = OTHERWISE[case["pattern"]]
    if wanted is None:
        with pytest.raises(UsageError):
            compile_rust(case["pattern"])
    else:
        assert compile_rust(case["pattern"]).replace_all(case["replacement"], case["text"]) == wanted


# The answers are the real Burn's (`remap`), written down here.
@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("$", "w\n", "w\n#"),
        (r"w\z", "w.w", "w.#"),
        ("(?m)^", "a\nb", "#a\n#b"),
        ("(?R).", "a\r", "#\r"),
        ("a(?i)b|c", "aBC", "##"),
        ("(a(?i)b)c", "aBCaBc", "aBC#"),
        ("(?x) a b # comment", "ab", "#"),
        ("(?x)[a b]", "a b", "# #"),
        ("(?U)a+", "aa", "##"),
        ("(?U)a+?", "aa", "#"),
        (r"\x{62}\u{63}\U00000064", "abcd", "a#"),
        ("[a[bc]]", "abcd", "###d"),
        ("[a[^b]]", "abc", "#b#"),
        ("[^a[^b]]", "abc", "a#c"),
        ("[]a]", "a]", "##"),
        ("[a-]", "a-", "##"),
        ("[a&b~]", "a&~", "###"),
        ("a*+", "aab", "#b#"),
        ("^*", "ab", "#a#b#"),
        ("a{ 2 }", "aaa", "#a"),
        (r"\<a", "a a", "# #"),
        (r"\b{start}", "ab", "#ab"),
        ("|a", "aa", "#a#a#"),
        (r"(?-u:\w)", "aé", "#é"),
        (r"\w", "\u0301²\u200d", "#²#"),
        (r"\s", "\x1f\x85", "\x1f#"),
        ("(?i)k", "\u212a", "#"),
        ("a}", "a}", "#"),
        ("(?u)a", "a", "#"),
        ("(?P<a.b[0]>x)", "x", "#"),
        (r"\B", "ab.", "a#b.#"),
    ],
)
def test_what_python_would_read_otherwise_is_read_as_rust_reads_it(pattern: str, text: str, wanted: str) -> None:
    assert compile_rust(pattern).replace_all("#", text) == wanted


@pytest.mark.parametrize(
    ("pattern", "spelling"),
    [
        ("[[:alpha:]]", "[A-Za-z]"),
        ("[[:^digit:]]", "[^0-9]"),
        ("[a-z&&[^b]]", "list the characters"),
        ("[a-z--b]", "\\-"),
        ("[a~~b]", "list the characters"),
        (r"\pN", r"\d"),
        (r"\p{Greek}", r"\w"),
        (r"[\P{L}]", r"\w"),
        (r"a\Z", r"\z"),
        ("{", r"\{"),
        ("*", r"\*"),
        ("a)", r"\)"),
        ("[a", r"\["),
        ("a\\", "\\\\"),
        ("(?P=n)", "(?<name>...)"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_right_spelling(pattern: str, spelling: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_rust(pattern)
    assert caught.value.do is not None and spelling in caught.value.do
    assert caught.value.where is not None and pattern in caught.value.where


REFUSED_BY_RUST = [
    r"(?=a)",
    r"(?!a)",
    r"(?<=a)",
    r"(?<!a)",
    r"(a)\1",
    r"(?>a)",
    r"(?#a)",
    r"(?)",
    r"(?-)",
    r"(?ii)",
    r"(?i-i)",
    r"(?z)",
    r"(?i",
    r"(a",
    r"a{",
    r"a{,2}",
    r"a{2,1}",
    r"a{99999999999}",
    r"|*",
    r"(?i)*",
    r"[]",
    r"[z-a]",
    r"[a-\d]",
    r"[\w-a]",
    r"[\b]",
    r"\e",
    r"\8",
    r"\0",
    r"\x4",
    r"\x{110000}",
    r"\x{d800}",
    r"\b{foo}",
    r"\b{start",
    r"(?<n>a)(?<n>b)",
    r"(?<1>x)",
    r"(?<>a)",
    r"(?<n-a>a)",
    r"(?P<n",
    r"(?-u:.)",
    r"(?-u:\W)",
    r"(?-u:[^a])",
    r"(?-u:\xff)",
    r"(a{1000}){1000}",
    r"\w{1000}",
]


@pytest.mark.parametrize("pattern", REFUSED_BY_RUST)
def test_what_rust_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        compile_rust(pattern)


def test_rust_refuses_each_of_these(oracle: Any) -> None:
    for pattern in REFUSED_BY_RUST:
        assert "error" in oracle("0.20", "remap", json.dumps([[pattern, "#"]]), stdin="a\n"), pattern


@pytest.mark.parametrize("pattern", [None, 3, b"a", ["a"]])
def test_a_regex_is_text(pattern: Any) -> None:
    with pytest.raises(UsageError, match="a regex is text"):
        compile_rust(pattern)


def test_a_compiled_regex_of_pythons_is_taken_with_its_flags() -> None:
    assert compile_rust(re.compile("a", re.IGNORECASE)).search("A")
    with pytest.raises(UsageError, match="flags"):
        compile_rust(re.compile("a", re.ASCII))
    with pytest.raises(UsageError, match="flags"):
        compile_rust(re.compile(b"a"))  # type: ignore[arg-type]


def test_nesting_that_python_could_not_hold_is_refused() -> None:
    for pattern in ("(" * 5000 + "a" + ")" * 5000, "[" * 5000 + "a" + "]" * 5000, "a" + "*" * 5000):
        with pytest.raises(UsageError, match="nested too deeply"):
            compile_rust(pattern)


@pytest.mark.parametrize(
    ("replacement", "wanted"),
    [
        ("$1-$n-${1}-${n}", "a-b-a-b"),
        ("\\1\\g<n>\\g<1>", "aba"),
        ("${01}${+1}", "aa"),
        ("$$1", "$1"),
        ("\\\\1", "\\1"),
        ("a\\.b\\", "a\\.b\\"),
        ("$", "$"),
        ("${1", "${1"),
        ("$.", "$."),
        ("$0", "ab"),
        ("\\n", "\\n"),
    ],
)
def test_references_to_groups(replacement: str, wanted: str) -> None:
    regex = compile_rust("(a)(?<n>b)")
    made = Replacement(replacement, regex)
    assert regex.replace_all(made, "ab") == wanted
    assert made.warnings == []


@pytest.mark.parametrize("text", ["ab", "a" * 3000 + "b"])
@pytest.mark.parametrize(
    ("replacement", "advice"),
    [("$1_x", "write ${1}_x"), ("$n2", "write ${n}2"), ("$m", "the pattern has $1, $2, ${n}"), ("\\9", "the pattern has $1")],
)
def test_an_unknown_group_is_empty_and_warned_of(replacement: str, advice: str, text: str) -> None:
    regex = compile_rust("(a+)+(?<n>b)")
    made = Replacement(replacement, regex)
    assert regex.replace_all(made, text) == ""
    assert len(made.warnings) == 1 and advice in made.warnings[0]


def test_a_group_that_took_no_part_is_empty() -> None:
    assert compile_rust("(a)|b").replace_all("[$1]", "ab") == "[a][]"
    assert compile_rust("(a)|b?").replace_all("[$1]", "ab") == "[a][]"


def test_a_replacement_is_text() -> None:
    with pytest.raises(UsageError, match="a replacement is text"):
        compile_rust("a").replace_all(None, "a")  # type: ignore[arg-type]


def test_the_number_of_matches_is_told() -> None:
    assert compile_rust("a").subn("b", "xyz") == ("xyz", 0)
    assert compile_rust("a*").subn("-", "aab") == ("-b-", 2)
    regex = compile_rust(r"\w+")
    assert regex.replace_in(Replacement("x", regex), ["a.b", "é.b", "."]) == (["x.x", "x.x", "."], True)
    assert regex.replace_in(Replacement("x", regex), ["."]) == (["."], False)


def test_a_pattern_can_be_copied_and_sent() -> None:
    regex = compile_rust("(a|b)*c")
    for other in (copy.deepcopy(regex), pickle.loads(pickle.dumps(regex))):
        assert other == regex and hash(other) == hash(regex) and other.search("abc")
    assert repr(regex) == "RustRegex('(a|b)*c')"
    assert regex != compile_rust("a") and regex != "a"


def test_random_patterns_rename_random_names_as_burn_does(oracle: Any) -> None:
    """Each rule on its own names, and some rules after each other."""
    draw = random.Random(20)
    cases = 0
    for _ in range(150):
        rules = [
            (random_patterns.pattern(draw, draw.randint(1, 4)), draw.choice(random_patterns.REPLACEMENTS))
            for _ in range(draw.choice([1, 1, 1, 2]))
        ]
        names = [random_patterns.name(draw) for _ in range(8)]
        answer = oracle("0.20", "remap", json.dumps(rules), stdin="".join(f"{name}\n" for name in names))
        wanted = [new for new, _ in answer["pairs"]]
        got = names
        for pattern, replacement in rules:
            got = [compile_rust(pattern).replace_all(replacement, name) for name in got]
        assert got == wanted, rules
        cases += len(names)
    assert cases >= 1000
