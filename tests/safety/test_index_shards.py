"""Indexes whose shards are elsewhere, are no shards, or lead in circles."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.safety.forge import st
from tests.safety.prison import assert_refused, attack

ENTRY = '{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "model"
    (inside / "sub").mkdir(parents=True)
    for path in ("model/one", "model/two", "model/sub/three", "out"):
        (tmp_path / (path + ".safetensors")).write_bytes(st('{"a":' + ENTRY + "}", b"x"))
    return inside


def _index(folder: Path, content: Any, name: str = "model") -> Path:
    path = folder / f"{name}.safetensors.index.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(
    "shard",
    [
        *("../out.safetensors", "sub/../../out.safetensors", "./../out.safetensors", "..", "../", ".", "", "sub", "sub/", "/"),
        *(
            "/etc/passwd",
            "//etc/passwd",
            "/dev/zero",
            "/dev/stdin",
            "/proc/self/mem",
            "..\\out.safetensors",
            "sub\\three.safetensors",
        ),
        *("C:\\out.safetensors", "\0", "one.safetensors\0", "one.safetensors\0.txt", "file:///etc/passwd", "~/out.safetensors"),
        *(
            "none.safetensors",
            "x" * 300,
            "x/" * 3000 + "x",
            "\u2025/out.safetensors",
            "one.safetensors/../two",
        ),
        *("ONE.SAFETENSORS", " one.safetensors", "one.safetensors "),
    ],
    ids=lambda shard: repr(shard)[:40],
)
def test_a_shard_that_is_no_file_in_the_folder_is_refused(folder: Path, shard: str) -> None:
    assert_refused({"index": _index(folder, {"weight_map": {"a": shard}})})


def test_a_shard_in_the_folder_or_below_is_read(folder: Path) -> None:
    for shard in ("one.safetensors", "./one.safetensors", "sub/three.safetensors", "sub/../one.safetensors"):
        outcome = attack({"index": _index(folder, {"weight_map": {"a": shard}})})["index"]
        assert list(outcome.tensors) == ["a"], (shard, outcome.text)


def test_a_symlink_in_the_folder_is_followed_and_its_target_must_be_a_shard(folder: Path) -> None:
    (folder / "link.safetensors").symlink_to("../out.safetensors")
    assert list(attack({"index": _index(folder, {"weight_map": {"a": "link.safetensors"}})})["index"].tensors) == ["a"]
    for name, target in (
        ("password", "/etc/passwd"),
        ("zero", "/dev/zero"),
        ("loop", "loop"),
        ("folder", "/etc"),
        ("gone", "gone-away"),
    ):
        (folder / name).symlink_to(target)
        assert_refused({name: _index(folder, {"weight_map": {"a": name}})})


def test_a_fifo_as_a_shard_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "fifo.safetensors")
    assert_refused({"fifo": _index(folder, {"weight_map": {"a": "fifo.safetensors"}})}, "FIFO")


def test_an_index_is_no_shard(folder: Path) -> None:
    _index(folder, {"weight_map": {"a": "one.safetensors"}}, "other")
    files = {
        "itself": _index(folder, {"weight_map": {"a": "model.safetensors.index.json"}}),
        "itself by another path": _index(folder, {"weight_map": {"a": "sub/../m2.safetensors.index.json"}}, "m2"),
        "another": _index(folder, {"weight_map": {"a": "other.safetensors.index.json"}}, "m3"),
        "another in capitals": _index(folder, {"weight_map": {"a": "link.INDEX.JSON"}}, "m4"),
    }
    (folder / "link.INDEX.JSON").symlink_to("other.safetensors.index.json")
    assert_refused(files)


def test_indexes_that_name_each_other_are_refused(folder: Path) -> None:
    first = _index(folder, {"weight_map": {"a": "m2.safetensors.index.json"}}, "m1")
    _index(folder, {"weight_map": {"a": "m1.safetensors.index.json"}}, "m2")
    assert_refused({"circle": first})


def test_indexes_that_multiply_are_refused_in_time(folder: Path) -> None:
    depth, width = 8, 10
    _index(folder, {"weight_map": {"a0": "one.safetensors"}}, f"m{depth}")
    for level in range(depth):
        spelled = {f"a{at}": "./" * at + f"m{level + 1}.safetensors.index.json" for at in range(width)}
        _index(folder, {"weight_map": spelled}, f"m{level}")
    assert_refused({"laughs": folder / "m0.safetensors.index.json"})


def test_a_tensor_that_its_shard_lacks_is_refused_by_name(folder: Path) -> None:
    assert_refused({"index": _index(folder, {"weight_map": {"b": "one.safetensors"}})}, "'b'", "one.safetensors")


def test_a_damaged_shard_is_refused_by_its_own_path(folder: Path) -> None:
    whole = (folder / "two.safetensors").read_bytes()
    (folder / "two.safetensors").write_bytes(whole[:-1])
    assert_refused({"index": _index(folder, {"weight_map": {"a": "two.safetensors"}})}, "two.safetensors")
    (folder / "two.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert_refused({"index": _index(folder, {"weight_map": {"a": "two.safetensors"}})}, "two.safetensors", "git lfs pull")


def test_a_thousand_spellings_of_one_shard_do_not_use_up_the_files(folder: Path) -> None:
    spelled = {f"t{at}": "./" * at + "one.safetensors" for at in range(3000)}
    assert_refused({"index": _index(folder, {"weight_map": spelled})})
