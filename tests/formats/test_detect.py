"""The content of a file says what it is; the suffix breaks ties; what people take for weight files is called by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

import burnstore as bs
from burnstore.errors import FormatError, UnknownFormatError, UsageError
from burnstore.formats.table import by_name, by_suffix, known_names

TENSORS = {"w": [1.0, 2.0]}


def test_the_content_decides_whatever_the_suffix_says(tmp_path: Path) -> None:
    for format, suffix in (("burnpack", ".safetensors"), ("safetensors", ".bpk"), ("burnpack", ".bin"), ("safetensors", "")):
        path = tmp_path / f"model{suffix}"
        path.write_bytes(bs.save(TENSORS, bytes, format=format))
        assert bs.open(path).format == format


def test_format_forces_a_reader() -> None:
    with pytest.raises(FormatError, match="this is a safetensors file, not burnpack"):
        bs.open(bs.save(TENSORS, bytes, format="safetensors"), format="burnpack")
    with pytest.raises(FormatError):
        bs.open(bs.save(TENSORS, bytes, format="burnpack"), format="safetensors")
    with pytest.raises(UsageError, match="burnpack"):
        bs.open(b"", format="onnx")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "git lfs pull"),
        (b"<!DOCTYPE html><html></html>", "HTML page"),
        (b"\n\n<html>", "HTML page"),
        (b'<?xml version="1.0"?><Error/>', "XML page"),
        (b"\x1f\x8b\x08" + bytes(20), "gzip"),
        (b"GGUF\x03\0\0\0", "GGUF"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"\x93NUMPY\x01\0", "NumPy array"),
        (b"BURN\x01\0\x14\x01\0\0", "NRUB"),
        (b"", "empty file"),
        (bytes(5000), "unfinished download"),
        (b"hello, weights", "no format that is known"),
    ],
)
def test_what_is_no_weight_file_is_called_by_its_name(content: bytes, words: str) -> None:
    with pytest.raises(UnknownFormatError, match=words):
        bs.open(content)


def test_a_file_that_nobody_recognizes_is_explained_by_the_reader_of_its_suffix(tmp_path: Path) -> None:
    for name, words in (("m.bpk", "NRUB"), ("m.safetensors", "header is said to have")):
        (tmp_path / name).write_bytes(b"hello, weights")
        with pytest.raises(FormatError, match=words):
            bs.open(tmp_path / name)


def test_names_aliases_and_suffixes_find_the_same_format() -> None:
    assert by_name("bpk") is by_name("burnpack") is by_name(".bpk") is by_suffix("a/B.BPK")
    assert by_name("safetensors") is by_suffix("model-00001-of-00002.safetensors")
    assert by_suffix("model.onnx") is None
    assert {"burnpack", "safetensors"} <= set(known_names())
