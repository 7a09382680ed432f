"""SafeTensors files of the corpus, each as its manifest says: read exactly, or refused."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors

import burnstore as bs
from burnstore.errors import BurnstoreError, FormatError, LimitError, TruncatedError


@pytest.fixture(params=["data", pytest.param("shared", marks=pytest.mark.shared)])
def corpus(request: pytest.FixtureRequest, data: Path) -> Path:
    if request.param == "data":
        return data / "safetensors"
    folder: Path = request.getfixturevalue("shared")
    return folder / "fixtures" / "safetensors"


def _files(corpus: Path, *expect: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The files of the corpus for which one of these things is expected."""
    manifest, prefix = corpus / "manifest.json", ""
    if not manifest.exists():
        manifest, prefix = corpus.parent / "manifest.json", "safetensors/"
    for path, entry in json.loads(manifest.read_text())["files"].items():
        if path.startswith(prefix) and entry["expect"] in expect:
            yield corpus / path.removeprefix(prefix), entry


def _described(store: bs.Store) -> dict[str, tuple[Any, ...]]:
    return {
        name: (tensor.dtype.safetensors_name, list(tensor.shape), hashlib.sha256(tensor.tobytes()).hexdigest())
        for name, tensor in store.items()
    }


def _wanted(entry: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {name: (row["st"], row["shape"], row["sha256"]) for name, row in entry["tensors"].items()}


def test_the_corpus_is_whole(corpus: Path) -> None:
    everything = [path for path, _ in _files(corpus, "ok", "refuse", "ok_or_refuse", "refuse_or_rest")]
    assert len(everything) == (107 if (corpus / "manifest.json").exists() else 109)
    assert all(path.exists() for path in everything)


def test_legal_files_are_read_exactly(corpus: Path) -> None:
    done = 0
    for path, entry in _files(corpus, "ok"):
        store = bs.open(path)
        assert _described(store) == _wanted(entry), path.name
        if "metadata" in entry:
            assert dict(store.metadata) == entry["metadata"], path.name
            done += 1
    assert done >= 3


def test_illegal_files_are_refused_with_an_error_of_ours_that_names_the_file(corpus: Path) -> None:
    for path, entry in _files(corpus, "refuse"):
        with pytest.raises(BurnstoreError) as caught:
            print(path.name, dict(bs.open(path)), entry["error"])
        assert path.parent.name in str(caught.value) or path.name in str(caught.value), str(caught.value)
        assert "please report" not in str(caught.value)


def test_doubtful_files_are_refused_or_read_exactly(corpus: Path) -> None:
    for path, entry in _files(corpus, "ok_or_refuse", "refuse_or_rest"):
        try:
            store = bs.open(path)
        except BurnstoreError:
            continue
        assert _described(store) == (_wanted(entry) if entry["expect"] == "ok_or_refuse" else {}), path.name


def test_what_the_official_package_reads_reads_the_same(corpus: Path) -> None:
    compared = 0
    for path, _ in _files(corpus, "ok", "ok_or_refuse"):
        if path.suffix != ".safetensors":
            continue
        try:
            theirs = safetensors.deserialize(path.read_bytes())
            ours = _described(bs.open(path))
        except (safetensors.SafetensorError, BurnstoreError):
            continue
        assert ours == {n: (v["dtype"], v["shape"], hashlib.sha256(v["data"]).hexdigest()) for n, v in theirs}, path.name
        compared += 1
    assert compared >= 25


def test_names_come_in_the_order_of_the_header(data: Path) -> None:
    raw = (data / "safetensors/out_of_order.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert list(bs.open(raw)) == [name for name in header if name != "__metadata__"]
    assert list(header) != sorted(header, key=lambda name: header[name]["data_offsets"][0])


def _file(header: object, data: bytes = b"", *, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def _tensor(**changes: Any) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}


def test_hand_written_bytes_are_read() -> None:
    text = b'{"a":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}}  '
    store = bs.open(b"\x38\0\0\0\0\0\0\0" + text + b"\x01\x00\xff\xff")
    assert store["a"].numpy().tolist() == [1, -1]


def test_metadata_may_stand_first_last_or_between() -> None:
    metadata = {"format": "pt", 'br{ace"s': "}{", "colon": ":::"}
    for header in (
        {"__metadata__": metadata, "a": _tensor(), "b": _tensor(data_offsets=[8, 16])},
        {"a": _tensor(), "__metadata__": metadata, "b": _tensor(data_offsets=[8, 16])},
        {"a": _tensor(), "b": _tensor(data_offsets=[8, 16]), "__metadata__": metadata},
    ):
        store = bs.open(_file(header, bytes(16)))
        assert dict(store.metadata) == metadata and list(store) == ["a", "b"]


def test_a_tensor_whose_name_only_contains_the_word_metadata_is_a_tensor() -> None:
    store = bs.open(_file({'x"__metadata__"': _tensor(), "__metadata__x": _tensor(data_offsets=[8, 16])}, bytes(16)))
    assert list(store) == ['x"__metadata__"', "__metadata__x"]


@pytest.mark.parametrize(
    ("header", "place"),
    [
        ({"a": _tensor(shape=[3])}, "'a'"),
        ({"a": _tensor(dtype="F99")}, "'a'"),
        ({"a": _tensor(data_offsets=[8, 0])}, "'a'"),
        ({"a": _tensor(data_offsets=[-8, 0])}, "'a'"),
        ({"a": _tensor(), "b": _tensor()}, "'b'"),
        ({"a": _tensor(), "b": _tensor(data_offsets=[4, 12])}, "'b'"),
        ({"a": _tensor(shape=[2**62, 4], data_offsets=[0, 0])}, "'a'"),
        ({"a": _tensor(shape=[0, 2**64], data_offsets=[0, 0])}, "'a'"),
        ({"a": _tensor(extra=1)}, "header"),
        ({"__metadata__": {"a": 1}}, "header"),
        (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"shape":[2]}}', "header"),
        (b'{"__metadata__":{"k":"1","k":"2"}}', "'k'"),
        (b'{"a":1', "header"),
        (b"[" * 50_000, "header"),
    ],
)
def test_a_broken_header_is_refused_at_its_place(header: Any, place: str) -> None:
    with pytest.raises(FormatError, match=place):
        bs.open(_file(header, bytes(8)), format="safetensors")


def test_a_header_cut_anywhere_is_refused() -> None:
    whole = _file({"a": _tensor()}, bytes(8))
    assert list(bs.open(whole)) == ["a"]
    for length in range(len(whole)):
        with pytest.raises(FormatError):
            bs.open(whole[:length], format="safetensors")


def test_a_length_beyond_the_file_allocates_nothing() -> None:
    for length in (2**63, 2**64 - 1, 100_000_001, 1000):
        with pytest.raises(TruncatedError):
            bs.open(_file({}, length=length), format="safetensors")


def test_the_cap_on_the_header_can_be_raised() -> None:
    file = _file({"a": _tensor()}, bytes(8))
    with pytest.raises(LimitError, match=r"safetensors_header_bytes"):
        bs.open(file, limits=bs.Limits(safetensors_header_bytes=20))
    assert list(bs.open(file, limits=bs.Limits(safetensors_header_bytes=2000))) == ["a"]
