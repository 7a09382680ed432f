"""Every option can be said by a keyword and by a builder method; a new one that lacks a door fails here."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import burnstore as bs
from burnstore.keywords import ListOptions, LoadOptions, SaveOptions
from burnstore.options import Options

# The verbs with keywords, each with the record that lists most of them.
RECORDS: dict[Any, type | None] = {
    bs.open: ListOptions,
    bs.read: ListOptions,
    bs.load: LoadOptions,
    bs.plan: LoadOptions,
    bs.loaded: LoadOptions,
    bs.save: SaveOptions,
    bs.convert: SaveOptions,
    bs.collect: None,
    bs.verify: None,
}
# What a keyword is called where it is not called as the option is; an adapter is that of the direction.
KEYWORDS = {
    "zero_copy": ("assign",),
    "filter": ("only", "skip"),
    "from_adapter": ("adapter",),
    "to_adapter": ("adapter",),
    "allow_partial": ("partial",),
}
# What a builder method is called where Burn has another name for it.
BUILDERS = {
    "key": ("with_top_level_key",),
    "filter": ("filter", "with_regex", "with_regexes", "with_full_path", "with_full_paths", "with_predicate", "match_all"),
    "rename": ("remap", "with_key_remapping"),
    "from_dialect": ("with_dialect",),
    "to_dialect": ("with_dialect",),
    "from_adapter": ("with_from_adapter",),
    "to_adapter": ("with_to_adapter",),
}
# Where a door would make no sense: a named store has its format, and only its paths get an extension.
NO_BUILDER = {"format"}
NO_KEYWORD = {"auto_extension"}
# What is said of one call and kept by no store.
OF_A_CALL = {"threads", "progress"}
FIELDS = [field.name for field in dataclasses.fields(Options)]
STORES = (bs.BurnpackStore, bs.SafetensorsStore, bs.PytorchStore)


def keywords_of(verb: Any) -> set[str]:
    record = RECORDS[verb]
    named = {
        parameter.name
        for parameter in inspect.signature(verb).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    return named | set(record.__annotations__ if record else ())


def keywords() -> set[str]:
    return {name for verb in RECORDS for name in keywords_of(verb)}


@pytest.mark.parametrize("option", FIELDS)
def test_every_option_is_a_keyword_of_a_verb(option: str) -> None:
    assert option in NO_KEYWORD or set(KEYWORDS.get(option, (option,))) <= keywords()


@pytest.mark.parametrize("option", FIELDS)
def test_every_option_is_a_builder_method(option: str) -> None:
    for method in BUILDERS.get(option, (option,)):
        assert option in NO_BUILDER or any(hasattr(store, method) for store in STORES), method


# A value to say of each option that has both doors, and what the options then hold.
SAID: dict[str, Any] = {
    "key": "model",
    "io": "pread",
    "limits": bs.Limits(burnpack_tensors=7),
    "map_indices_contiguous": True,
    "map_indices_contiguous_except": "^flows$",
    "skip_enum_variants": True,
    "kinds": {"^fc": "Linear"},
    "like": {},
    "dtype": "file",
    "validate": False,
    "overwrite": True,
    "fsync": False,
    "for_burn": "0.20",
    "shard_size": "1MB",
    "extra": {"epoch": 3},
    "from_dialect": "burn",
    "to_dialect": "burn",
    "filter": bs.PathFilter().with_regex("^a"),
    "rename": bs.KeyRemapper().add_pattern("a", "b"),
    "from_adapter": bs.HalfPrecisionAdapter(),
    "to_adapter": bs.HalfPrecisionAdapter(),
    "zero_copy": True,
    "allow_partial": True,
}


def test_every_option_with_two_doors_has_a_value_to_say() -> None:
    assert set(SAID) == set(FIELDS) - NO_BUILDER - NO_KEYWORD - {"metadata"}  # of metadata, see test_named_stores


@pytest.mark.parametrize("option", SAID)
def test_both_doors_of_an_option_lead_to_it(option: str) -> None:
    from burnstore.keywords import with_keywords

    value = SAID[option]
    builder = BUILDERS.get(option, (option,))[0]
    store = next(store for store in STORES if hasattr(store, builder)).from_file("x.bin")
    built = getattr(getattr(store, builder)(value).options, option)
    keyword = {"filter": "only"}.get(option, KEYWORDS.get(option, (option,))[0])
    said = with_keywords(Options(), {keyword: value}, adapter=option if keyword == "adapter" else "from_adapter")
    assert repr(built) == repr(getattr(said, option)) != repr(getattr(Options(), option)) or option == "key"
    assert built == value or option in ("map_indices_contiguous_except", "rename", "filter")


def test_the_exceptions_are_still_options() -> None:
    assert NO_BUILDER | NO_KEYWORD | set(KEYWORDS) | set(BUILDERS) <= set(FIELDS)


def test_every_keyword_is_an_option_or_said_of_one_call() -> None:
    known = {*FIELDS, *OF_A_CALL, "dialect", *(name for names in KEYWORDS.values() for name in names)}
    assert {name for record in (ListOptions, LoadOptions, SaveOptions) for name in record.__annotations__} <= known


def test_the_verbs_of_one_direction_take_the_same_keywords() -> None:
    def signature(verb: Any) -> list[Any]:
        return list(inspect.signature(verb, eval_str=False).parameters.values())[2:]

    assert signature(bs.save) == signature(bs.convert)
    assert signature(bs.load) == signature(bs.plan) == signature(bs.loaded)


def test_what_lists_a_source_is_taken_by_whatever_loads_it() -> None:
    assert set(ListOptions.__annotations__) <= set(LoadOptions.__annotations__)


def test_all_keywords_are_keywords_only() -> None:
    for verb in (bs.open, bs.read, bs.save, bs.convert, bs.load, bs.plan, bs.loaded, bs.verify):
        kinds = [parameter.kind for parameter in inspect.signature(verb).parameters.values()]
        plain = [kind for kind in kinds if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        assert len(plain) == (1 if verb in (bs.open, bs.read, bs.verify) else 2)


def test_options_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options().overwrite = True  # type: ignore[misc]


@pytest.mark.parametrize("verb", [bs.open, bs.read])
def test_an_unknown_way_to_read_is_refused_by_every_door(verb: Any) -> None:
    doors = [lambda: verb({"a": [1.0]}, io="bogus"), lambda: Options(io="bogus")]  # type: ignore[arg-type]
    doors += [lambda kind=kind: kind.from_bytes(None).io("bogus") for kind in (bs.BurnpackStore, bs.SafetensorsStore)]  # type: ignore[misc]
    for door in doors:
        with pytest.raises(bs.errors.UsageError, match="io='bogus' is not known; known are auto, mmap, pread"):
            door()


def test_an_unknown_burn_is_refused_by_the_builder_as_by_the_keyword() -> None:
    with pytest.raises(bs.errors.UsageError, match=r"known are 0\.20, 0\.22"):
        bs.BurnpackStore.from_bytes(None).for_burn("0.18")  # type: ignore[arg-type]
