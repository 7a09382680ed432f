"""List indices: counted anew as Burn counts them, or moved to where a model has its own."""

from __future__ import annotations

import random
from typing import Any

import pytest

from burnstore.errors import DuplicateNameError, UsageError
from burnstore.pipeline.indices import aligned, index_of, is_shard, map_indices_contiguous


def renamed(names: str, **options: Any) -> str:
    return " ".join(map_indices_contiguous(names.split(), **options).values())


# --- all lists


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ("fc.0.w fc.2.w fc.4.w", "fc.0.w fc.1.w fc.2.w"),
        ("a.0.b.0.w a.0.b.2.w a.2.b.0.w a.2.b.2.w", "a.0.b.0.w a.0.b.1.w a.1.b.0.w a.1.b.1.w"),
        ("a.1.b.3.w a.2.b.5.w", "a.0.b.0.w a.1.b.0.w"),
        ("a.10.w a.2.w", "a.1.w a.0.w"),
        ("5.w 3.w", "1.w 0.w"),
        ("blk.7.attn.w", "blk.0.attn.w"),
        ("head.5", "head.0"),
        ("x.3.0.w x.3.w", "x.0.0.w x.0.w"),
        (".0.w 3.w 5.w", ".0.w 1.w 2.w"),
        (".3.5.w 3.4.w", ".0.0.w 0.0.w"),
        ("a.01.w a.2.w", "a.0.w a.1.w"),
        ("a.+1.w a.0.w", "a.1.w a.0.w"),
        ("a.-1.w a.1_0.w a.٣.w a.4.w", "a.-1.w a.1_0.w a.٣.w a.0.w"),
        ("a.18446744073709551616.3 a.18446744073709551615.3", "a.18446744073709551616.0 a.0.0"),
        ("a.5b.w a.b5.w", "a.5b.w a.b5.w"),
    ],
)
def test_indices_are_counted_as_burn_counts_them(names: str, wanted: str) -> None:
    assert renamed(names) == wanted


def test_two_spellings_of_one_index_are_an_error_that_names_both() -> None:
    with pytest.raises(DuplicateNameError, match=r"'a\.01\.w' and 'a\.1\.w' both become 'a\.0\.w'"):
        map_indices_contiguous(["a.01.w", "a.1.w"])


@pytest.mark.parametrize(
    ("keep", "wanted"),
    [
        (["^flows$"], "fc.0.w flows.2.w flows.4.sub.0.w"),
        (["flows"], "fc.0.w flows.2.w flows.4.sub.3.w"),
        ([r"^flows\.4\.sub$"], "fc.0.w flows.0.w flows.1.sub.3.w"),
        (["^fc$", "^flows$"], "fc.2.w flows.2.w flows.4.sub.0.w"),
        ("^flows$", "fc.0.w flows.2.w flows.4.sub.0.w"),
        ([r"\.$"], "fc.0.w flows.0.w flows.1.sub.0.w"),
    ],
)
def test_lists_whose_prefix_is_kept_keep_their_indices(keep: Any, wanted: str) -> None:
    assert renamed("fc.2.w flows.2.w flows.4.sub.3.w", keep=keep) == wanted


def test_a_bad_pattern_of_what_is_kept_is_an_error() -> None:
    with pytest.raises(UsageError):
        map_indices_contiguous(["a.1"], keep=["["])


@pytest.mark.parametrize("version", ["0.20", "0.22"])
def test_random_names_are_counted_as_burn_counts_them(oracle: Any, version: str) -> None:
    """Names that begin with a dot are 0.22's: 0.20 counts them apart from the others."""
    draw = random.Random(int(version[2:]))
    plain = ["0", "1", "2", "3", "7", "10", "a", "b", "w", "x1"]
    odd = ["-1", "1_0", "18446744073709551615", "18446744073709551616", "٣", "007", "+5", ""]
    compared = 0
    for _ in range(60):
        segments = plain + draw.sample(odd, 2)
        rows = {".".join(draw.choice(segments) for _ in range(draw.randint(1, 5))) for _ in range(20)}
        names = sorted(name for name in rows if name and (version == "0.22" or not name.startswith(".")))
        wanted = [new for new, _ in oracle(version, "contiguous", stdin="".join(f"{name}\n" for name in names))["pairs"]]
        if len(set(wanted)) < len(wanted):
            with pytest.raises(DuplicateNameError):
                map_indices_contiguous(names)
        else:
            assert list(map_indices_contiguous(names).values()) == wanted
            compared += len(names)
    assert compared > 500


# --- to fit a model


@pytest.mark.parametrize(
    ("names", "wanted", "moved"),
    [
        ("fc.0.w fc.2.w fc.4.w", "fc.0.w fc.1.w fc.2.w", "fc.0.w fc.1.w fc.2.w"),
        ("fc.0.w fc.1.w fc.2.w", "fc.0.w fc.2.w fc.4.w", "fc.0.w fc.2.w fc.4.w"),
        ("fl.0.w fl.2.w", "fl.0.w fl.1.b fl.2.w", "fl.0.w fl.2.w"),
        ("fl.0.w fl.2.w fc.0.w fc.2.w x", "fl.0.w fl.2.w fc.0.w fc.1.w", "fl.0.w fl.2.w fc.0.w fc.1.w x"),
        ("a.0.w a.10.w a.9.w", "a.0.w a.1.w a.2.w", "a.0.w a.2.w a.1.w"),
        ("a.0.w a.2.w a.4.w a.6.w", "a.0.w a.5.w", "a.0.w a.5.w a.6.w a.7.w"),
        ("a.0.b.0.w a.2.b.0.w a.2.b.3.w", "a.0.b.0.w a.1.b.0.w a.1.b.1.w", "a.0.b.0.w a.1.b.0.w a.1.b.1.w"),
        ("a.0.b.3.w a.2.b.3.w", "a.0.b.3.w a.1.b.0.w", "a.0.b.3.w a.1.b.0.w"),
        ("x.1.w y", "fc.0.w", "x.1.w y"),
        ("fc.3.w", "fc.w", "fc.3.w"),
        ("2.w 4.w", "0.w 1.w", "0.w 1.w"),
        ("0.w 2.0.w 2.3.w", "0.w 1.0.w 1.1.w", "0.w 1.0.w 1.1.w"),
        ("a.2 a.4", "a.0 a.1", "a.0 a.1"),
        ("a.01.w b.5", "a.1.w", "a.1.w b.5"),
        ("a.3.3.w", "a.0.0.w", "a.0.0.w"),
        (".3.w", ".0.w", ".0.w"),
    ],
)
def test_lists_are_moved_to_where_the_model_has_them(names: str, wanted: str, moved: str) -> None:
    assert aligned(names.split(), wanted.split()) == dict(zip(names.split(), moved.split(), strict=True))


def test_two_spellings_of_one_index_cannot_fit_one_place() -> None:
    with pytest.raises(DuplicateNameError, match=r"'a\.01\.w' and 'a\.1\.w' both become 'a\.1\.w'"):
        aligned(["a.01.w", "a.1.w"], ["a.1.w"])


def test_where_no_index_fits_aligning_with_compacted_names_is_compacting() -> None:
    draw = random.Random(5)
    for _ in range(50):
        names = list(
            {".".join(draw.choice(["100", "205", "309", "a", "b"]) for _ in range(draw.randint(1, 5))) for _ in range(12)}
        )
        compacted = map_indices_contiguous(names)
        assert aligned(names, compacted.values()) == compacted
        assert aligned(names, names) == {name: name for name in names}


# --- hostile names


def test_a_name_of_a_hundred_thousand_dots_is_renamed() -> None:
    deep = ".".join(["7"] * 100_000)
    assert map_indices_contiguous([deep]) == {deep: ".".join(["0"] * 100_000)}
    assert aligned([deep], [deep.replace("7", "5")]) == {deep: deep.replace("7", "5")}
    assert map_indices_contiguous(["." * 100_000]) == {"." * 100_000: "." * 100_000}


def test_a_number_of_a_million_digits_is_no_index_unless_it_is_small() -> None:
    assert index_of("9" * 1_000_000) is None
    assert index_of("0" * 1_000_000 + "5") == 5
    assert renamed(f"a.{'0' * 10_000}5.w") == "a.0.w"
    assert list(aligned([f"a.{'0' * 10_000}5.w"], ["a.5.w"]).values()) == ["a.5.w"]


# --- shards


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("model-00002-of-00005.safetensors", True),
        ("pytorch_model-00001-of-00002.bin", True),
        ("model_1-of-2.pt", True),
        ("/data/model-00002-of-00005.safetensors", True),
        ("00001-of-00010.bpk", True),
        ("model.safetensors", False),
        ("model-00001-of-00001.safetensors", False),
        ("best-of-2.pt", False),
        ("/data/model-00001-of-00002.parts/model.pt", False),
        ("", False),
    ],
)
def test_one_file_of_several_is_known_by_its_name(name: str, wanted: bool) -> None:
    assert is_shard(name) is wanted
