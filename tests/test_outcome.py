"""What a load did: the facts, and the names that were probably meant."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnstore import suggest
from burnstore.dtypes import DType
from burnstore.outcome import ApplyError, ApplyResult, Cast, Dialects
from burnstore.suggest import similarity, without_variant

F32, F16, I64 = DType.of("F32"), DType.of("F16"), DType.of("I64")


def lacking(missing: Sequence[str], unused: Sequence[str]) -> ApplyResult:
    return ApplyResult(missing=[(path, "") for path in missing], unused=list(unused))


# --- errors


@pytest.mark.parametrize(
    ("error", "text"),
    [  # the texts are those of burn-store
        (
            ApplyError("ShapeMismatch", "a.weight", expected=(2, 3), found=(3, 2)),
            "Shape mismatch for 'a.weight': expected [2, 3], found [3, 2]",
        ),
        (ApplyError("ShapeMismatch", "a", expected=(), found=(1,)), "Shape mismatch for 'a': expected [], found [1]"),
        (ApplyError("DTypeMismatch", "a", expected=F32, found=I64), "DType mismatch for 'a': expected F32, found I64"),
        (ApplyError("AdapterError", "a", message="no"), "Adapter error for 'a': no"),
        (ApplyError("LoadError", "a", message="the file ends"), "Load error for 'a': the file ends"),
    ],
)
def test_an_error_prints_as_burn_prints_it(error: ApplyError, text: str) -> None:
    assert str(error) == text


def test_what_we_add_to_a_mismatch_stands_behind_burns_words() -> None:
    error = ApplyError("ShapeMismatch", "a", expected=(2,), found=(3,), message="pass dialect=")
    assert str(error) == "Shape mismatch for 'a': expected [2], found [3]; pass dialect="
    assert repr(error) == 'ShapeMismatch { path: "a", expected: [2], found: [3], message: "pass dialect=" }'


def test_an_error_unpacks_to_its_path_and_text() -> None:
    result = ApplyResult(errors=[ApplyError("LoadError", "a", message="no")])
    assert [(path, text) for path, text in result.errors] == [("a", "Load error for 'a': no")]


def test_an_error_shows_no_control_characters_and_no_endless_text() -> None:
    error = ApplyError("LoadError", "a\x1b[31m\n", message="\u202e" + "x" * 100_000)
    for text in (str(error), repr(error)):
        assert text.isprintable() and len(text) < 1500 and "a\\x1b[31m\\n" in text


def test_facts_cannot_be_changed_and_have_no_other_attributes() -> None:
    for fact in (ApplyResult(), ApplyError("LoadError", "a"), Cast("a", F32, F16, True), Dialects(None, None, "")):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            fact.other = 1  # type: ignore[union-attr]
        with pytest.raises(FrozenInstanceError):
            setattr(fact, next(iter(fact.__slots__)), 1)


# --- the result


def test_only_errors_make_a_load_fail_as_in_burn() -> None:
    assert lacking(["a"], ["b"]).is_success()
    assert not ApplyResult(applied=["a"], errors=[ApplyError("LoadError", "b")]).is_success()


def test_lists_compare_as_lists() -> None:
    result = ApplyResult(applied=["a"], missing=[("b", "Struct:Net")])
    assert result.applied == ["a"] and result.missing == [("b", "Struct:Net")] and result.errors == []


def test_dialects_differ_only_where_both_are_known_and_not_the_same() -> None:
    assert Dialects("pytorch", "burn", "").differ
    assert not any(Dialects(source, model, "").differ for source, model in [("burn", "burn"), (None, "burn"), ("burn", None)])


def test_a_result_survives_pickling() -> None:
    result = ApplyResult(applied=["a"], casts=[Cast("a", F32, F16, True)], errors=[ApplyError("LoadError", "b")])
    assert pickle.loads(pickle.dumps(result)) == result


FULL = ApplyResult(
    applied=["a"],
    skipped=["s"],
    missing=[("conv.weight", "Struct:Net.Struct:Conv2d")],
    unused=["conv.wieght"],
    errors=[
        ApplyError("ShapeMismatch", "b", expected=(2, 3), found=(3, 2)),
        ApplyError("DTypeMismatch", "c", expected=F32, found=I64),
        ApplyError("LoadError", "d", message="cut"),
    ],
    casts=[Cast("a", F32, F16, lossy=True)],
    renames=[("m.a", "a")],
    dialects=Dialects("pytorch", "burn", "format: pt"),
    warnings=["w"],
    hints=["h"],
    source="model.pt",
    model="Net",
    key="state_dict",
)


def test_the_dict_of_a_result_holds_everything_as_json() -> None:
    assert json.loads(json.dumps(FULL.to_dict())) == {
        "source": "model.pt",
        "model": "Net",
        "key": "state_dict",
        "success": False,
        "summary": FULL.summary(),
        "applied": ["a"],
        "skipped": ["s"],
        "missing": [{"path": "conv.weight", "container": "Struct:Net.Struct:Conv2d"}],
        "unused": ["conv.wieght"],
        "suggestions": {"conv.weight": "conv.wieght"},
        "errors": [
            {"kind": "ShapeMismatch", "path": "b", "expected": [2, 3], "found": [3, 2], "message": ""},
            {"kind": "DTypeMismatch", "path": "c", "expected": "F32", "found": "I64", "message": ""},
            {"kind": "LoadError", "path": "d", "expected": None, "found": None, "message": "cut"},
        ],
        "casts": [{"path": "a", "found": "F32", "dtype": "F16", "lossy": True}],
        "renames": [{"name": "m.a", "path": "a"}],
        "dialects": {"source": "pytorch", "model": "burn", "why": "format: pt"},
        "warnings": ["w"],
        "hints": ["h"],
    }


def test_the_dict_of_an_empty_result_has_the_same_keys() -> None:
    assert ApplyResult().to_dict().keys() == FULL.to_dict().keys()
    assert ApplyResult().to_dict()["dialects"] is None


def test_the_dict_of_a_result_is_not_the_result() -> None:
    names = FULL.to_dict()["applied"]
    assert isinstance(names, list)
    names.append("other")
    assert FULL.applied == ["a"]


# --- suggestions


@pytest.mark.parametrize(
    ("path", "stripped"),
    [
        ("field.BaseConv.weight", "field.weight"),
        ("a.One.Two.w", "a.Two.w"),
        ("One.field.w", None),  # neither the first
        ("field.w.One", None),  # nor the last
        ("a.AB.w", None),  # no lower-case letter later
        ("a.X.w", None),
        ("a..w", None),
        ("a.Éa.w", "a.w"),
        ("weight", None),
    ],
)
def test_the_segment_that_looks_like_a_variant_is_found_as_in_burn(path: str, stripped: str | None) -> None:
    assert without_variant(path) == stripped


def test_the_name_without_the_variant_is_suggested_before_a_more_similar_one() -> None:
    result = lacking(["field.BaseConv.weight"], ["field.BaseConv.weights", "field.weight"])
    assert result.suggestions == {"field.BaseConv.weight": "field.weight"}


def test_what_burn_suggests_is_suggested(data: Path) -> None:
    """The reports that Burn printed say `Did you mean` for the first ten missing tensors."""
    folder = data / "burn" / "apply_result"
    compared = 0
    for entry in json.loads((folder / "index.json").read_text("utf-8")):
        text = (folder / f"apply_result_{entry['case']}.{entry['version']}.txt").read_text("utf-8")
        if "result" not in entry:
            continue
        said: dict[str, str] = {}
        for line in text.partition("├─ Missing")[2].partition("├─")[0].splitlines():
            if "• " in line:
                path = line.partition("• ")[2]
            elif "Did you mean" in line:
                said[path] = line.split("'")[1]
        result = lacking([path for path, _ in entry["result"]["missing"]], entry["result"]["unused"])
        assert result.first_suggestions(10) == said, entry["case"]
        assert said.items() <= result.suggestions.items()
        compared += len(said)
    assert compared == 40


def brute(path: str, names: Sequence[str]) -> str | None:
    """Burn's rule, said plainly: the most similar of all, from 0.7 on, of equals the first in the alphabet."""
    best = max(sorted(names), key=lambda name: similarity(path, name))
    return best if similarity(path, best) >= 0.7 else None


WORDS = st.lists(st.sampled_from(["conv1", "conv2", "fc", "weight", "bias", "0", "1", "norm"]), min_size=1, max_size=4).map(
    ".".join
)


@given(st.lists(WORDS, min_size=1, max_size=4, unique=True), st.lists(WORDS, min_size=1, max_size=30, unique=True))
def test_of_few_names_the_most_similar_of_all_is_suggested(missing: list[str], unused: list[str]) -> None:
    expected = {path: brute(path, unused) for path in missing}
    assert lacking(missing, unused).suggestions == {path: name for path, name in expected.items() if name is not None}


@pytest.mark.parametrize(
    "form", ["model.layers.{}.attn.{}.weight", "layers.{}.attn.{}.kernel", "model.layers.{}.attention.{}.weight"]
)
def test_in_a_large_file_the_most_similar_of_all_is_suggested(form: str) -> None:
    """Where the names differ at their beginning, at their end, or in two places."""
    parts = [f"{kind}_{part}" for kind in ("self", "cross") for part in ("query", "key", "value")]
    unused = [form.format(n, part) for n in range(100) for part in parts]
    paths = [f"layers.{n}.attn.{part}.weight" for n, part in zip(range(3, 100, 12), parts * 2, strict=False)]
    assert lacking(paths, unused).suggestions == {path: brute(path, unused) for path in paths}


def test_a_bounded_number_of_letters_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def count(a: str, b: str) -> float:
        compared.append(len(a) * len(b))
        return 0.0

    monkeypatch.setattr(suggest, "similarity", count)
    letters = "abcdefgh" * 12
    lacking([f"{letters}{n}" for n in range(3000)], [f"{letters}.{n}" for n in range(3000)]).suggestions
    assert 0 < sum(compared) < 30_000_000
    compared.clear()
    assert lacking(["x" * 100_000], ["x" * 100_001]).suggestions == {}
    assert compared == []


def test_a_report_of_many_missing_asks_only_for_those_that_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()

    def note(path: str, name: str) -> Any:
        asked.add(path)
        return similarity(path, name)

    monkeypatch.setattr(suggest, "similarity", note)
    result = lacking([f"a.{n:03}.weight" for n in range(300)], [f"b.{n:03}.weight" for n in range(300)])
    assert "Did you mean" in str(result)
    assert asked == {f"a.{n:03}.weight" for n in range(10)}


def test_nothing_missing_or_nothing_unused_suggests_nothing() -> None:
    assert lacking([], ["a"]).suggestions == lacking(["a"], []).suggestions == lacking([""], [""]).suggestions == {}
