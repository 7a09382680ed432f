"""Rules rename one after the other; what they do to each other's names is told or refused."""

from __future__ import annotations

import copy
import json
import pickle
import random
from typing import Any

import pytest

from burnstore.errors import DuplicateNameError, UsageError
from burnstore.pipeline.remap import KeyRemapper
from tests.patterns import random_patterns


def test_each_rule_sees_what_the_one_before_made() -> None:
    assert KeyRemapper().add_pattern("a", "b").add_pattern("b", "c").rename("a.bias") == "c.cics"
    assert KeyRemapper().add_pattern("b", "c").add_pattern("a", "b").rename("a.bias") == "b.cibs"


def test_all_matches_are_replaced() -> None:
    assert KeyRemapper().add_pattern(r"\.", "/").rename("a.b.c") == "a/b/c"


def test_a_remapper_returns_itself_when_it_gets_a_rule() -> None:
    remapper = KeyRemapper()
    assert remapper.is_empty
    assert remapper.add_pattern("a", "b") is remapper
    assert not remapper.is_empty and remapper.patterns == [("a", "b")]


def test_groups_in_all_spellings() -> None:
    for replacement in ("${1}_x", "\\1_x", "${n}_x", "\\g<n>_x", "\\g<1>_x"):
        assert KeyRemapper().add_pattern(r"(?P<n>\d+)\.w", replacement).rename("3.w") == "3_x"


def test_pairs_as_burn_gives_them() -> None:
    remapper = KeyRemapper.from_patterns([("^model\\.", "")])
    assert remapper.remap(iter(["model.a", "b", "a"])) == [("a", "model.a"), ("b", "b"), ("a", "a")]


@pytest.mark.parametrize("rules", [{"a": "b", "b": "c"}, [("a", "b"), ("b", "c")], iter([["a", "b"], ["b", "c"]])])
def test_rules_come_from_mappings_and_pairs(rules: Any) -> None:
    assert KeyRemapper.of(rules).patterns == [("a", "b"), ("b", "c")]


def test_a_remapper_is_copied_and_none_has_no_rules() -> None:
    remapper = KeyRemapper().add_pattern("a", "b")
    other = KeyRemapper.of(remapper)
    other.add_pattern("b", "c")
    assert remapper.rename("a") == "b" and other.rename("a") == "c"
    assert KeyRemapper.of(None).rename("a") == "a" and KeyRemapper.of(None).is_empty


@pytest.mark.parametrize("wrong", ["ab", b"ab", 3, ["ab"], [("a",)], [("a", "b", "c")], [3]])
def test_what_is_no_rule_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"give (a dict or )?pairs of a pattern and its replacement"):
        KeyRemapper.of(wrong)


@pytest.mark.parametrize("rule", [("[", "a"), ("a", None), (None, "a")])
def test_a_bad_rule_is_an_error_and_leaves_the_others(rule: Any) -> None:
    remapper = KeyRemapper().add_pattern("a", "b")
    with pytest.raises(UsageError):
        remapper.add_pattern(*rule)
    assert remapper.patterns == [("a", "b")]


def test_remappers_are_equal_by_their_rules_and_can_be_copied_and_sent() -> None:
    remapper = KeyRemapper.from_patterns({"^a": "b", r"(\d+)": r"\1"})
    for other in (copy.copy(remapper), copy.deepcopy(remapper), pickle.loads(pickle.dumps(remapper))):
        assert other == remapper and other is not remapper
    assert remapper != KeyRemapper() and remapper != "a"
    assert repr(remapper) == r"KeyRemapper([('^a', 'b'), ('(\\d+)', '\\1')])"


# --- what loading is told


def test_new_names_in_the_order_of_the_old_ones() -> None:
    result = KeyRemapper.of({"^model\\.": "", "b$": "c"}).renamed(["model.b", "x", "model.a"])
    assert list(result.names.items()) == [("model.b", "c"), ("x", "x"), ("model.a", "a")]
    assert result.unused == [] and result.warnings == []


def test_a_rule_that_changes_nothing_it_found_is_used() -> None:
    assert KeyRemapper.of({"a": "a", "x": "y"}).renamed(["a"]).unused == ["x"]
    assert KeyRemapper.of({"a": "b", "b": "c", "a.": "d"}).renamed(["a"]).unused == ["a."]


def test_a_group_that_is_not_there_is_warned_of() -> None:
    (warning,) = KeyRemapper.of({r"(\d+)": "$1_x."}).renamed(["3.w"]).warnings
    assert "${1}_x" in warning and r"(\d+)" in warning


def test_two_names_that_become_one_are_an_error_that_names_them() -> None:
    with pytest.raises(DuplicateNameError) as caught:
        KeyRemapper.of({r"^(a|b)\.": "c."}).renamed(["x", "a.w", "y", "b.w"])
    for name in ("'a.w'", "'b.w'", "'c.w'"):
        assert name in str(caught.value)


def test_a_name_that_another_one_already_has_is_an_error_too() -> None:
    with pytest.raises(DuplicateNameError, match=r"'m\.a' and 'a' both become 'a'"):
        KeyRemapper.of({r"^m\.": ""}).renamed(["m.a", "a"])


def test_names_may_change_places() -> None:
    rules = {"^a$": "tmp", "^b$": "a", "^tmp$": "b"}
    assert KeyRemapper.of(rules).renamed(["a", "b"]).names == {"a": "b", "b": "a"}


def test_a_name_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(UsageError, match="leave nothing of the name 'model'"):
        KeyRemapper.of({"^model": ""}).renamed(["model", "model.a"])
    with pytest.raises(UsageError, match=r"nothing of the name '1'.*write \$\{1\}_x"):
        KeyRemapper.of({r"(\d+)": "$1_x"}).renamed(["1"])
    assert KeyRemapper.of({"^x": ""}).renamed([""]).names == {"": ""}


def test_without_rules_names_stay() -> None:
    assert KeyRemapper().renamed(["a", "b"]).names == {"a": "a", "b": "b"}
    assert KeyRemapper.of({"a": "b"}).renamed([]).names == {}


# --- the real Burn


@pytest.mark.parametrize("version", ["0.20", "0.22"])
def test_random_rules_make_of_random_names_what_burn_makes(oracle: Any, version: str) -> None:
    draw = random.Random(int(version[2:]))
    for _ in range(50):
        rules = [(random_patterns.pattern(draw, 3), draw.choice(random_patterns.REPLACEMENTS)) for _ in range(draw.randint(0, 4))]
        names = [random_patterns.name(draw) for _ in range(12)]
        answer = oracle(version, "remap", json.dumps(rules), stdin="".join(f"{name}\n" for name in names))
        assert [list(pair) for pair in KeyRemapper.of(rules).remap(names)] == answer["pairs"], rules
