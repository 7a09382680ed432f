"""Headers of SafeTensors that are no headers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.safety.forge import st, st_with, tensor
from tests.safety.prison import assert_refused, attack

ENTRY = '{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
GOOD = st('{"t":' + ENTRY + "}")


def test_each_length_but_the_right_one_is_refused() -> None:
    right = len(GOOD) - 16
    lengths = [
        *range(right),
        *range(right + 1, right + 20),
        10**8,
        10**8 + 1,
        2**31,
        2**32 - 1,
        2**32,
        2**63,
        2**64 - 8,
        2**64 - 1,
    ]
    assert_refused({str(length): st('{"t":' + ENTRY + "}", length=length) for length in lengths}, format="safetensors")


def test_a_file_cut_at_every_byte_is_refused() -> None:
    assert_refused({str(length): GOOD[:length] for length in range(len(GOOD))})
    assert_refused({str(length): GOOD[:length] for length in range(len(GOOD))}, format="safetensors")


@pytest.mark.parametrize("value", [0, -1, 1.5, None, True, "0", [], {}], ids=repr)
def test_a_number_in_place_of_which_something_else_stands_is_refused(value: Any) -> None:
    files = {
        "offsets": st_with(data_offsets=value),
        "begin": st_with(data_offsets=[value, 8]) if value != 0 or value is False else st_with(data_offsets=[0, 7]),
        "end": st_with(data_offsets=[0, value]),
        "dimension": st_with(shape=[value]),
        "dtype": st_with(dtype=value),
        "entry": st({"t": value}),
    }
    assert_refused(files)


@pytest.mark.parametrize(
    "number", ["-0", "-1", "2.0", "2e0", "02", "+2", "0x2", "2_0", "\uff12", "1e999", "NaN", "Infinity", "9" * 5000]
)
def test_a_number_that_json_or_the_format_does_not_have_is_refused(number: str) -> None:
    files = {
        "dimension": st('{"t":{"dtype":"F32","shape":[' + number + '],"data_offsets":[0,8]}}'),
        "begin": st('{"t":{"dtype":"F32","shape":[2],"data_offsets":[' + number + ",8]}}"),
        "end": st('{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,' + number + "]}}"),
    }
    assert_refused(files)


@pytest.mark.parametrize(
    "offsets",
    [
        *(
            [0, 4],
            [0, 12],
            [4, 12],
            [8, 0],
            [8, 16],
            [0, 2**63],
            [2**64 - 8, 2**64],
            [2**64, 2**64 + 8],
            [-8, 0],
            [0],
            [0, 8, 8],
            [],
        ),
        *([2**63, 2**63 + 8], [0, 2**64 + 8], [-(2**64), -(2**64) + 8]),
    ],
    ids=str,
)
def test_a_range_that_is_none_is_refused(offsets: Any) -> None:
    assert_refused({"offsets": st_with(data_offsets=offsets)})


@pytest.mark.parametrize(
    "shape",
    [[2**62, 4], [2**64 - 1], [2**64], [2**32] * 2, [2**31] * 3, [2**63, 0], [-2], [-1, -2], [3], [[2]], "2", [2**64 + 2]],
    ids=str,
)
def test_a_shape_that_is_none_is_refused(shape: Any) -> None:
    assert_refused({"shape": st_with(shape=shape)})


@pytest.mark.parametrize(
    "dtype", ["f32", "F33", "", "float32", "Bool", "Flex32", "C128", "F32 ", "F32\0", "\uff26\uff13\uff12"], ids=repr
)
def test_a_dtype_that_is_none_is_refused(dtype: str) -> None:
    assert_refused({"dtype": st_with(dtype=dtype)})


@pytest.mark.parametrize(
    "spans", [([0, 4], [5, 8]), ([0, 4], [3, 8]), ([1, 4], [4, 8]), ([0, 8], [0, 8]), ([0, 8], [2, 4])], ids=str
)
def test_holes_and_overlaps_are_refused(spans: tuple[list[int], ...]) -> None:
    header = {f"t{at}": tensor(dtype="U8", shape=[span[1] - span[0]], data_offsets=span) for at, span in enumerate(spans)}
    assert_refused({"spans": st(header)})
    assert_refused({"the other way round": st(dict(reversed(header.items())))})


def test_space_that_json_does_not_have_is_refused() -> None:
    files = {}
    for space in ("\x0b", "\x0c", "\0", "\u00a0", "\u2028", "\ufeff", "\x1c", "\x85"):
        whole = '{"__metadata__":{"k":"v"},"t":' + ENTRY + "}"
        for at in (0, 1, 15, 16, 17, 20, 21, 24, 25, 26, 29, 30, len(whole) - 1, len(whole)):
            if whole[at - 1 : at + 1].strip('{}":,') == whole[at - 1 : at + 1]:
                continue  # inside a word: there it is text
            files[f"{space!r} at {at}"] = st(whole[:at] + space + whole[at:])
    assert_refused(files, format="safetensors")


def test_broken_json_is_refused() -> None:
    whole = '{"__metadata__":{"k":"v"},"t":' + ENTRY + "}"
    texts = [
        whole + whole,
        whole + "x",
        whole[:-1],
        whole + "}",
        "[" + whole + "]",
        whole[:-1] + ",}",
        whole.replace(":", "=", 1),
    ]
    texts += [
        whole.replace('"t"', "t"),
        whole.replace('"t"', "'t'"),
        "//c\n" + whole,
        whole.replace("}}", "}/**/}"),
        "null",
        '"x"',
        "5",
    ]
    texts += [
        whole.replace('"v"}', '"v",}'),
        whole.replace('"v"}', '"v"}}'),
        whole.replace('"v"}', '"v"'),
        whole.replace("{", "{,", 1),
    ]
    assert_refused({text: st(text) for text in texts}, format="safetensors")


def test_texts_that_are_none_are_refused() -> None:
    words = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\\ud800", b"\\udc00\\ud800", b"\\x41", b"\\u12", b"\n", b"\0", b"\t", b"\\")
    entry = ENTRY.encode()
    files = {f"{word!r} as a name": st(b'{"' + word + b'":' + entry + b"}") for word in words}
    files |= {f"{word!r} in metadata": st(b'{"__metadata__":{"k":"' + word + b'"},"t":' + entry + b"}") for word in words}
    files |= {f"{word!r} in later metadata": st(b'{"t":' + entry + b',"__metadata__":{"k":"' + word + b'"}}') for word in words}
    assert_refused(files)


@pytest.mark.parametrize(
    "metadata", ["null", "[]", '"x"', "5", '{"k":5}', '{"k":null}', '{"k":{}}', '{"k":["v"]}', '{"k":true}', ENTRY]
)
def test_metadata_that_is_not_text_by_text_is_refused(metadata: str) -> None:
    files = {
        "first": st('{"__metadata__":' + metadata + ',"t":' + ENTRY + "}"),
        "last": st('{"t":' + ENTRY + ',"__metadata__":' + metadata + "}"),
        "alone": st('{"__metadata__":' + metadata + "}", b""),
        "spelled with escapes": st('{"\\u005f_metadata__":' + metadata + ',"t":' + ENTRY + "}"),
    }
    assert_refused(files)


def test_metadata_may_look_like_anything() -> None:
    texts = [
        "}",
        "{",
        '"',
        "\\",
        '\\"',
        '"}',
        "},",
        ":",
        "::",
        '{"__metadata__":{}}',
        "__metadata__",
        "\\u007d",
        "é",
        '":"',
        "}\\",
        "\\\\",
    ]
    files, want = {}, {}
    for first in (True, False):
        for text in texts:
            metadata = {"__metadata__": {text: text, "x": text[::-1]}}
            header = {**metadata, "t": tensor()} if first else {"t": tensor(), **metadata}
            files[f"{text} {first}"] = st(header)
            want[f"{text} {first}"] = metadata["__metadata__"]
    for label, outcome in attack(files).items():
        assert outcome.error is None and outcome.metadata == want[label] and list(outcome.tensors) == ["t"], label


def test_an_error_shows_no_control_characters_of_the_file() -> None:
    nasty = "\\u001b[31m\\nroot# \\u202e"
    files = {
        "field": st('{"t":{"' + nasty + '":1,"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'),
        "name": st('{"' + nasty + '":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}'),
        "dtype": st('{"t":{"dtype":"' + nasty + '","shape":[2],"data_offsets":[0,8]}}'),
        "metadata": st('{"__metadata__":{"' + nasty + '":5},"t":' + ENTRY + "}"),
        "twice": st('{"' + nasty + '":' + ENTRY + ',"' + nasty + '":' + ENTRY + "}"),
    }
    assert_refused(files)
