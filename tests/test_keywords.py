"""Keywords: an unknown one is refused with what was meant, and None says nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burnstore as bs
from burnstore.keywords import ListOptions, LoadOptions, SaveOptions, check_keywords, with_keywords
from burnstore.options import Options

MODEL = {"a": np.zeros(1)}
VERBS: dict[str, tuple[Any, type]] = {
    "open": (lambda **more: bs.open({"a": [1.0]}, **more), ListOptions),
    "read": (lambda **more: bs.read({"a": [1.0]}, **more), ListOptions),
    "load": (lambda **more: bs.load({"a": [1.0]}, {"a": np.zeros(1)}, **more), LoadOptions),
    "plan": (lambda **more: bs.plan({"a": [1.0]}, MODEL, **more), LoadOptions),
    "loaded": (lambda **more: bs.loaded({"a": [1.0]}, MODEL, **more), LoadOptions),
    "save": (lambda **more: bs.save({"a": [1.0]}, bytes, **{"format": "safetensors", **more}), SaveOptions),
    "convert": (lambda **more: bs.convert({"a": [1.0]}, bytes, **{"format": "safetensors", **more}), SaveOptions),
}
every_verb = pytest.mark.parametrize("verb", VERBS)


@every_verb
@pytest.mark.parametrize(("wrong", "meant"), [("onyl", "only"), ("renames", "rename"), ("skp", "skip"), ("dialekt", "dialect")])
def test_a_misspelled_keyword_is_refused_with_the_one_that_was_meant(verb: str, wrong: str, meant: str) -> None:
    with pytest.raises(bs.errors.UsageError, match=f"no keyword '{wrong}'; did you mean '{meant}'\\?"):
        VERBS[verb][0](**{wrong: None})


@every_verb
def test_a_keyword_like_no_other_is_refused_with_all_that_there_are(verb: str) -> None:
    with pytest.raises(bs.errors.UsageError, match=r"no keyword 'zzz'; known are .*only.*rename"):
        VERBS[verb][0](zzz=1)


def test_the_words_of_another_verb_are_refused() -> None:
    with pytest.raises(bs.errors.UsageError, match="'partial'"):
        VERBS["save"][0](partial=True)
    with pytest.raises(bs.errors.UsageError, match="'overwrite'"):
        VERBS["load"][0](overwrite=True)
    with pytest.raises(TypeError):
        bs.collect(MODEL, onyl="a")  # type: ignore[call-arg]


@every_verb
def test_none_says_nothing_whatever_the_keyword(verb: str) -> None:
    call, record = VERBS[verb]
    nothing = {keyword: None for keyword in record.__annotations__ if verb not in ("save", "convert") or keyword != "format"}
    assert repr(call(**nothing)) == repr(call())


def test_none_leaves_every_option_as_it_was() -> None:
    said = with_keywords(Options(), {"only": "^a", "rename": {"a": "b"}, "partial": True, "dialect": "burn", "io": "pread"})
    for record in (ListOptions, LoadOptions, SaveOptions):
        assert with_keywords(said, dict.fromkeys(record.__annotations__)) == said
    assert with_keywords(Options(), {}) == Options()


@pytest.mark.parametrize(
    ("keyword", "value", "option", "wanted"),
    [
        ("partial", True, "allow_partial", True),
        ("assign", True, "zero_copy", True),
        ("dialect", "burn", "from_dialect", "burn"),
        ("from_dialect", "keep", "from_dialect", "keep"),
        ("to_dialect", "pytorch", "to_dialect", "pytorch"),
        ("map_indices_contiguous_except", "^a$", "map_indices_contiguous_except", ("^a$",)),
        ("map_indices_contiguous_except", ["^a$", "b"], "map_indices_contiguous_except", ("^a$", "b")),
        ("map_indices_contiguous_except", "^a$", "map_indices_contiguous", True),
        ("map_indices_contiguous_except", [], "map_indices_contiguous", None),
        ("validate", False, "validate", False),
        ("map_indices_contiguous", False, "map_indices_contiguous", False),
        ("skip_enum_variants", False, "skip_enum_variants", False),
        ("fsync", False, "fsync", False),
    ],
)
def test_a_keyword_says_its_option(keyword: str, value: Any, option: str, wanted: Any) -> None:
    assert getattr(with_keywords(Options(), {keyword: value}), option) == wanted


def test_an_adapter_is_that_of_the_direction() -> None:
    adapter = bs.HalfPrecisionAdapter()
    assert with_keywords(Options(), {"adapter": adapter}).from_adapter is adapter
    saving = with_keywords(Options(), {"adapter": adapter}, adapter="to_adapter")
    assert saving.to_adapter is adapter and saving.from_adapter is None


def test_only_and_skip_together_are_one_filter() -> None:
    filter = with_keywords(Options(), {"only": ["^a", "^b"], "skip": "bias$"}).filter
    assert filter is not None
    assert [path for path in ("a.w", "a.bias", "b.w", "c.w") if filter.matches(path)] == ["a.w", "b.w"]
    filter = with_keywords(Options(), {"skip": ["bias$", "^c"]}).filter
    assert filter is not None
    assert [path for path in ("a.w", "a.bias", "b.w", "c.w") if filter.matches(path)] == ["a.w", "b.w"]


@pytest.mark.parametrize("rename", [{"a": "b", "b": "c"}, [("a", "b"), ("b", "c")], iter([("a", "b"), ("b", "c")])])
def test_rules_are_a_mapping_or_pairs_in_order(rename: Any) -> None:
    remapper = with_keywords(Options(), {"rename": rename}).rename
    assert remapper is not None and remapper.rename("a") == "c"


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("rename", 3), ("rename", ["a"]), ("rename", "a"), ("rename", {"a": 3}), ("only", 3), ("skip", [3]), ("adapter", 3),
        ("dialect", "jax"), ("from_dialect", 3), ("io", "fast"), ("for_burn", "0.1"), ("dialect", ["burn"]),
    ],
)  # fmt: skip
def test_a_value_that_means_nothing_is_refused_in_our_words(keyword: str, value: Any) -> None:
    with pytest.raises(bs.errors.BurnstoreError):
        with_keywords(Options(), {keyword: value})


def test_an_open_store_has_its_format_and_its_key() -> None:
    store = bs.open({"a": [1.0]})
    for keywords in ({"format": "bpk"}, {"key": "model"}):
        with pytest.raises(bs.errors.UsageError, match="open already"):
            bs.open(store, **keywords)  # type: ignore[arg-type]
        with pytest.raises(bs.errors.UsageError, match="open already"):
            bs.load(store, MODEL, **keywords)  # type: ignore[arg-type]


def test_check_keywords_lets_pass_what_is_known() -> None:
    check_keywords(ListOptions.__annotations__, LoadOptions.__annotations__)
    with pytest.raises(bs.errors.UsageError):
        check_keywords(["adapter"], ListOptions.__annotations__)


def test_a_kind_that_nobody_knows_is_refused_at_once() -> None:
    with pytest.raises(bs.errors.UsageError, match="no such kind of layer"):
        bs.BurnpackStore.from_bytes(None).kinds({"^fc": "Dense"})
    with pytest.raises(bs.errors.UsageError, match="no such kind of layer"):
        bs.load({"fc.weight": np.zeros((2, 3))}, {"fc.weight": np.zeros((2, 3))}, kinds={"^fc": "Dense"})
