"""Every option can be said by a keyword and by a builder method; a new one that lacks a door fails here."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import burnstore as bs
from burnstore.options import Options

VERBS = (bs.open, bs.read, bs.save, bs.convert, bs.verify)
# What a keyword is called where it is not called as the option is.
KEYWORDS = {"zero_copy": "copy"}
# What a builder method is called where Burn has another name for it.
BUILDERS = {"key": "with_top_level_key"}
# Where a door would make no sense: a named store has its format, and only its paths get an extension.
NO_BUILDER = {"format"}
NO_KEYWORD = {"auto_extension"}
FIELDS = [field.name for field in dataclasses.fields(Options)]


def keywords() -> set[str]:
    return {name for verb in VERBS for name in inspect.signature(verb).parameters}


@pytest.mark.parametrize("option", FIELDS)
def test_every_option_is_a_keyword_of_a_verb(option: str) -> None:
    assert option in NO_KEYWORD or KEYWORDS.get(option, option) in keywords()


@pytest.mark.parametrize("option", FIELDS)
def test_every_option_is_a_builder_method(option: str) -> None:
    assert option in NO_BUILDER or any(
        hasattr(store, BUILDERS.get(option, option)) for store in (bs.BurnpackStore, bs.SafetensorsStore, bs.PytorchStore)
    )


def test_the_exceptions_are_still_options() -> None:
    assert NO_BUILDER | NO_KEYWORD | set(KEYWORDS) <= set(FIELDS)


def test_save_and_convert_take_the_same_keywords() -> None:
    save, convert = (list(inspect.signature(verb).parameters)[2:] for verb in (bs.save, bs.convert))
    assert save == convert


def test_the_keywords_of_save_are_typed_once() -> None:
    from burnstore.api import SaveOptions

    assert set(SaveOptions.__annotations__) == set(list(inspect.signature(bs.save).parameters)[2:])


def test_all_keywords_are_keywords_only() -> None:
    for verb in VERBS:
        kinds = [parameter.kind for parameter in inspect.signature(verb).parameters.values()]
        plain = [kind for kind in kinds if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        assert len(plain) == (2 if verb in (bs.save, bs.convert) else 1)


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
