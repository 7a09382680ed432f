"""Indexes that are no indexes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.safety.forge import st
from tests.safety.prison import assert_refused, attack

ENTRY = '{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'


@pytest.fixture
def index(tmp_path: Path) -> Path:
    for name, value in (("one", b"1"), ("two", b"2")):
        (tmp_path / f"{name}.safetensors").write_bytes(st('{"a":' + ENTRY + "}", value))
    return tmp_path / "model.safetensors.index.json"


@pytest.mark.parametrize(
    "content",
    [
        *(
            "",
            " ",
            "{",
            "null",
            "5",
            '"x"',
            "[]",
            "{}",
            '{"weight_map":null}',
            '{"weight_map":[]}',
            '{"weight_map":5}',
            "\0" * 100,
        ),
        *('{"weight_map":{"a":5}}', '{"weight_map":{"a":null}}', '{"weight_map":{"a":["one.safetensors"]}}', '{"Weight_map":{}}'),
        *(
            '{"weight_map":{"a":{}}}',
            '{"weight_map":{"a":"one.safetensors"}',
            '{"weight_map":{"a":"one.safetensors"}}}',
            "<html>",
        ),
        *("{'weight_map':{}}", '{"weight_map":{"a":"one.safetensors",}}', '{"weight_map":{"\\ud800":"one.safetensors"}}'),
        *("version https://git-lfs.github.com/spec/v1\n", '{"weight_map":{"a":"\\ud800"}}'),
    ],
    ids=lambda content: repr(content)[:50],
)
def test_what_is_no_index_is_refused(index: Path, content: str) -> None:
    index.write_text(content)
    assert_refused({"index": index}, "model.safetensors.index.json")


def test_a_name_twice_is_refused(index: Path) -> None:
    one, two = '"one.safetensors"', '"two.safetensors"'
    for content in (
        f'{{"weight_map":{{"a":{one},"a":{two}}}}}',
        f'{{"weight_map":{{"a":{one},"\\u0061":{two}}}}}',
        f'{{"weight_map":{{"a":{one}}},"weight_map":{{"a":{two}}}}}',
        f'{{"other":{{"x":1}},"other":{{"x":1}},"weight_map":{{"a":{one}}}}}',
    ):
        index.write_text(content)
        assert_refused({content: index}, "twice")


def test_what_an_index_says_of_itself_is_not_believed(index: Path) -> None:
    for total in ("-1", "1e400", '"1"', "null", "[1]", "9" * 4000, "{}", "true"):
        index.write_text('{"metadata":{"total_size":' + total + '},"weight_map":{"a":"one.safetensors"}}')
        outcome = attack({total: index})[total]
        assert outcome.error == "FormatError" or list(outcome.tensors) == ["a"], (total, outcome)


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"weight_map":', '{"metadata":['])
def test_deep_nesting_is_refused(index: Path, opening: str) -> None:
    index.write_text(opening * 200_000)
    assert_refused({"deep": index})
    index.write_text('{"weight_map":' + opening * 200_000)
    assert_refused({"deep": index})


@pytest.mark.usefixtures("fresh_child")
@pytest.mark.parametrize("piece", ["[],", "{},", "1.5,"])
def test_megabytes_of_small_items_do_not_end_the_process(index: Path, piece: str) -> None:
    index.write_text('{"more":[' + piece * (40_000_000 // len(piece)) + '0],"weight_map":{"a":"one.safetensors"}}')
    attack({"bomb": index})
    index.unlink()


def test_an_index_over_the_cap_is_refused_before_it_is_read(index: Path) -> None:
    with index.open("wb") as file:
        file.truncate(2**30)
    assert_refused({"huge": index}, str(2**30))


@pytest.mark.usefixtures("fresh_child")
def test_many_names_and_many_shards_are_refused_in_time(index: Path) -> None:
    entries = ",".join(f'"t{at}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for at in range(1000))
    (index.parent / "big.safetensors").write_bytes(st("{" + entries + "}", b""))
    index.write_text(
        json.dumps({"weight_map": {f"t{at}": "none.safetensors" if at else "big.safetensors" for at in range(200_000)}})
    )
    assert_refused({"one is missing": index}, "none.safetensors")
    index.write_text(json.dumps({"weight_map": {f"t{at}": f"{at}.safetensors" for at in range(200_000)}}))
    assert_refused({"all are missing": index}, "0.safetensors")


def test_bytes_that_are_no_text_are_refused_also_where_nobody_looks(index: Path) -> None:
    index.write_bytes(b'{"metadata":{"total\xffsize":2},"weight_map":{}}')
    assert_refused({"index": index}, "JSON")
