"""What to do next when a file does not fit a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pytest

from burnstore.hints import find_hints
from burnstore.outcome import ApplyError

Shapes = Mapping[str, tuple[int, ...]]

NET = {"conv1.weight": (8, 3, 3, 3), "conv1.bias": (8,), "norm.weight": (8,), "norm.bias": (8,), "fc.weight": (10, 8)}


def hints_of(wanted: Shapes, found: Shapes, errors: Iterable[ApplyError] = ()) -> list[str]:
    """The hints for a plain match by name."""
    missing = [path for path in wanted if path not in found]
    unused = [name for name in found if name not in wanted]
    return find_hints(missing, unused, wanted, found, list(errors))


def renamed(shapes: Shapes, pattern: str, replacement: str) -> dict[str, tuple[int, ...]]:
    return {re.sub(pattern, replacement, name): shape for name, shape in shapes.items()}


def rules_in(hint: str) -> dict[str, str]:
    """The value of `rename=` as somebody would copy it from a hint."""
    (text,) = re.findall(r"rename=(\{[^}]*\})", hint)
    rules = eval(text)
    assert isinstance(rules, dict)
    return rules


def followed(found: Shapes, hint: str) -> dict[str, tuple[int, ...]]:
    """The file's names after what the hint says."""
    for pattern, replacement in rules_in(hint).items():
        found = renamed(found, pattern, replacement)
    return dict(found)


# --- prefixes


@pytest.mark.parametrize("prefix", ["module.", "model.", "_orig_mod.", "a.b-c.0.", "state_dict.", "state_dict.model."])
def test_a_prefix_of_every_name_is_to_be_stripped_and_that_helps(prefix: str) -> None:
    found = renamed(NET, "^", prefix)
    (hint,) = hints_of(NET, found)
    assert hint.startswith(f"every name in the file begins with '{prefix}': ")
    whole = hint.rpartition("or strip it with ")[2]
    assert followed(found, whole) == NET


def test_a_prefix_is_said_as_one_would_type_it() -> None:
    (hint,) = hints_of(NET, renamed(NET, "^", "module."))
    assert hint == 'every name in the file begins with \'module.\': strip it with rename={r"^module\\.": ""}'


def test_names_under_a_state_dict_are_reached_by_key() -> None:
    (hint,) = hints_of(NET, renamed(NET, "^", "state_dict."))
    assert 'pass key="state_dict" if it is a .pt file, or strip it with rename={r"^state_dict\\.": ""}' in hint
    (hint,) = hints_of(NET, renamed(NET, "^", "model_state_dict.module."))
    assert 'pass key="model_state_dict" and rename={r"^module\\.": ""} if it is a .pt file' in hint


def test_names_beside_the_prefix_do_not_hide_it() -> None:
    found = {**renamed(NET, "^", "module."), "epoch": (), "optimizer.lr": ()}
    (hint,) = hints_of(NET, found)
    assert hint.startswith("5 of 7 names in the file begin with 'module.': strip it")


def test_a_prefix_that_only_some_of_its_names_need_to_lose_is_not_mentioned() -> None:
    found = {"module.fc.weight": (10, 8), **{f"module.other{n}.weight": (1,) for n in range(5)}, "conv1.bias": (8,)}
    assert hints_of(NET, found) == []


def test_a_prefix_whose_names_would_have_other_shapes_is_not_mentioned() -> None:
    found = {f"module.{name}": (*shape, 7) for name, shape in NET.items()}
    assert not any("module" in hint and "rename" in hint for hint in hints_of(NET, found))


def test_a_prefix_that_names_which_fit_already_have_is_not_stripped() -> None:
    wanted = {"a.x": (1,), "y": (1,), "z": (1,)}
    assert hints_of(wanted, {"a.x": (1,), "a.y": (1,), "a.z": (1,)}) == []


def test_a_prefix_ends_at_a_dot() -> None:
    found = {f"my_{name}": shape for name, shape in NET.items()}
    assert not any("strip" in hint for hint in hints_of(NET, found))


def test_of_two_prefixes_that_fit_alike_one_is_to_be_chosen() -> None:
    found = {**renamed(NET, "^", "student."), **renamed(NET, "^", "teacher.")}
    (hint,) = hints_of(NET, found)
    assert "5 of 10 names in the file begin with 'student.' (those with 'teacher.' would fit as well: choose)" in hint


def test_prefixes_of_different_names_are_no_choice() -> None:
    (hint,) = hints_of({"x": (1,), "y": (1,)}, {"a.x": (1,), "b.y": (1,)})
    assert "choose" not in hint


def test_a_prefix_that_the_model_has_is_to_be_added_and_that_helps() -> None:
    wanted = renamed(NET, "^", "encoder.backbone.")
    (hint,) = hints_of({**wanted, "head.weight": (2, 10)}, NET)
    assert hint.startswith("the model has under 'encoder.backbone.' what the file has at its top: add it with rename=")
    assert followed(NET, hint) == wanted


def test_a_prefix_is_not_added_where_names_fit_without_it() -> None:
    wanted = {**renamed(NET, "^", "encoder."), "head.bias": (2,)}
    assert not any("add it" in hint for hint in hints_of(wanted, {**NET, "head.bias": (2,)}))


# --- dialects


def burn_names(shapes: Shapes) -> dict[str, tuple[int, ...]]:
    return renamed(renamed(shapes, r"^(.*norm)\.weight$", r"\1.gamma"), r"^(.*norm)\.bias$", r"\1.beta")


def test_norms_of_a_burn_model_in_a_pytorch_file_ask_for_the_dialect() -> None:
    (hint,) = hints_of(burn_names(NET), NET)
    assert hint.startswith("the model says gamma and beta where the file says weight and bias (2 tensors, such as norm.gamma)")
    assert 'pass dialect="pytorch"' in hint


def test_norms_of_a_burn_file_in_a_pytorch_model_ask_for_the_dialect_or_a_rule_that_helps() -> None:
    found = burn_names(NET)
    (hint,) = hints_of(NET, found)
    assert hint.startswith("the file says gamma and beta where the model says weight and bias") and 'dialect="burn"' in hint
    assert followed(found, hint) == NET


def test_gamma_without_its_counterpart_is_not_mentioned() -> None:
    assert hints_of({"a.gamma": (1,), "b.weight": (1,)}, {"c.weight": (1,), "b.weight": (1,)}) == []


def test_a_prefix_does_not_hide_the_dialect() -> None:
    strip, dialect = hints_of(burn_names(NET), renamed(NET, "^", "module."))
    assert "module" in strip and 'dialect="pytorch"' in dialect


def mismatch(path: str, expected: tuple[int, ...], found: tuple[int, ...]) -> ApplyError:
    return ApplyError("ShapeMismatch", path, expected=expected, found=found)


def test_transposed_matrices_ask_for_the_dialect() -> None:
    (hint,) = hints_of(NET, NET, [mismatch(f"fc{n}.weight", (10, 8), (8, 10)) for n in range(3)])
    assert (
        hint.startswith("every shape that differs is the transpose of what the model wants (fc0.weight)") and "dialect=" in hint
    )
    errors = [mismatch("a", (10, 8), (8, 10)), mismatch("b", (1, 2), (2, 1)), mismatch("c", (1,), (2,))]
    (hint,) = hints_of(NET, NET, errors)
    assert hint.startswith("2 of 3 shapes that differ are the transpose")


@pytest.mark.parametrize(
    "errors",
    [
        [mismatch("a", (10, 8), (8, 10)), mismatch("b", (1, 2), (2, 2))],  # not most of them
        [mismatch("a", (10, 8), (10, 9))],
        [mismatch("a", (2, 3, 4), (4, 3, 2))],  # no matrix
        [ApplyError("LoadError", "a")],
    ],
)
def test_other_shapes_do_not_ask_for_a_dialect(errors: list[ApplyError]) -> None:
    assert hints_of(NET, NET, errors) == []


# --- lists


def layers(*indices: int, head: str = "fc") -> dict[str, tuple[int, ...]]:
    return {f"{head}.{index}.weight": (4, 4) for index in indices}


def test_lists_with_gaps_ask_for_contiguous_indices() -> None:
    (hint,) = hints_of(layers(0, 1, 2), layers(0, 2, 4))
    assert hint == "the file counts with gaps (fc.0, fc.2, fc.4), the model without: pass map_indices_contiguous=True"


def test_a_prefix_does_not_hide_the_gaps() -> None:
    strip, gaps = hints_of(layers(0, 1, 2, 3), renamed(layers(0, 1, 3, 5), "^", "module."))
    assert "module" in strip and "map_indices_contiguous" in gaps


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (layers(0, 1, 2, 3), layers(2, 3)),  # one shard of several
        (layers(0, 1), layers(10, 11)),  # a list that starts later has no gap
        (layers(0, 2, 4, 6), layers(0, 2, 4)),  # the model has the same gaps
        (layers(0, 1, 2), layers(0, 2, 4, head="other")),
        (layers(0, 1, 2), dict.fromkeys(layers(0, 2, 4), (5, 5))),  # other shapes
    ],
    ids=["a shard", "a later start", "the same gaps", "another list", "other shapes"],
)
def test_lists_that_renumbering_would_not_mend_are_not_mentioned(wanted: Shapes, found: Shapes) -> None:
    assert not any("map_indices_contiguous" in hint for hint in hints_of(wanted, found))


# --- nothing in common


def test_a_file_of_another_model_is_described() -> None:
    found = {f"x{n}.y": (1,) for n in range(12)}
    assert hints_of(NET, found) == [
        "none of the file's 12 names is a name of the model: the file has x0.y, x1.y, x2.y, …; "
        "the model wants conv1.weight, conv1.bias, norm.weight, …"
    ]
    assert hints_of({"a": (1,)}, {"b": (1,)}) == [
        "the file's only name is not a name of the model: the file has b; the model wants a"
    ]


def test_an_empty_side_is_said() -> None:
    assert hints_of(NET, {}) == ["the file has no tensors"] and hints_of({}, NET) == ["the model has no tensors"]
    assert hints_of({}, {}) == []


def test_where_names_fit_there_is_nothing_to_say() -> None:
    assert hints_of(NET, NET) == []
    assert hints_of(NET, {**NET, "extra": (1,)}) == []
    assert hints_of({**NET, "other": (3,)}, NET) == []


# --- names from files


@pytest.mark.parametrize("prefix", ['a"}.', "a\x1b[31m.", "a$1.", "a\\1.", "(a+)+.", "a\n.", "b c.", "\u202e.", "x" * 5000 + "."])
def test_a_prefix_that_is_no_plain_word_is_shown_on_one_line_and_not_as_code(prefix: str) -> None:
    for hint in hints_of(NET, {prefix + name: shape for name, shape in NET.items()}) + hints_of(
        {prefix + name: shape for name, shape in NET.items()}, NET
    ):
        assert hint.isprintable() and len(hint) < 700
        assert hint.endswith("rename=")


def test_names_of_any_number_of_dots_are_looked_at_in_bounded_steps() -> None:
    odd = {"." * 200_000: (1,), "0." * 200_000: (1,), "9" * 200_000: (1,), f"a.{'9' * 10_000}.b": (1,)}
    assert len(hints_of(NET, odd)) == len(hints_of(odd, NET)) == 1


def test_twenty_thousand_names_are_looked_at_once_each() -> None:
    """Were each compared with each, this would take minutes."""
    wanted = {f"layers.{n}.{part}.weight": (4, 4) for n in range(2500) for part in "abcdefgh"}
    (hint,) = hints_of(wanted, renamed(wanted, "^", "model.decoder."))
    assert hint.startswith("every name in the file begins with 'model.decoder.'")
