"""What people have in their hands when they think that it is a weight file."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

import burnstore as bs
from tests.safety.forge import bpk, st, tensor
from tests.safety.prison import assert_refused


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", b"no pickle in here")
    return file.getvalue()


GOOD = bpk({"tensors": {"t": tensor()}})
LOOK_ALIKES = {
    "a Git LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123\n",
        "git lfs pull",
    ),
    "an HTML page": (b"<!DOCTYPE html>\n<html><head><title>Login</title></head></html>", "HTML"),
    "an HTML page in capitals": (b"\n\n<HTML><BODY>404</BODY></HTML>", "HTML"),
    "an HTML page with a byte order mark": (b"\xef\xbb\xbf<!doctype HTML><html></html>", "HTML"),
    "an XML error": (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "XML"),
    "a gzip": (gzip.compress(GOOD), "gunzip"),
    "a zip": (_zip(), "zip"),
    "a NumPy array": (b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'}", "numpy"),
    "an HDF5 file": (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
    "a GGUF file": (b"GGUF\x03\x00\x00\x00" + bytes(100), "GGUF"),
    "a reversed magic": (b"BURN" + GOOD[4:], "NRUB"),
    "an unfinished download": (bytes(100_000), "unfinished"),
    "an empty file": (b"", "empty"),
}


@pytest.mark.parametrize("name", ["model.bpk", "model.safetensors", "model.pt", "model"])
def test_a_look_alike_is_called_by_its_name(tmp_path: Path, name: str) -> None:
    for what, (content, word) in LOOK_ALIKES.items():
        path = tmp_path / name
        path.write_bytes(content)
        outcomes = assert_refused({what: path}, name)
        assert word.lower() in outcomes[what].text.lower(), (what, outcomes[what].text)


def test_a_look_alike_in_memory_is_called_by_its_name() -> None:
    for what, outcome in assert_refused({what: content for what, (content, _) in LOOK_ALIKES.items()}).items():
        assert LOOK_ALIKES[what][1].lower() in outcome.text.lower(), (what, outcome.text)


@pytest.mark.parametrize("format", ["burnpack", "safetensors"])
def test_a_look_alike_is_called_by_its_name_where_the_format_is_forced(format: str) -> None:
    # any zip may be PyTorch's until that reader looks into it, and nothing at all is only a short file
    files = {what: content for what, (content, _) in LOOK_ALIKES.items() if what not in ("a zip", "an empty file")}
    for what, outcome in assert_refused(files, format=format).items():
        assert LOOK_ALIKES[what][1].lower() in outcome.text.lower(), (what, outcome.text)


@pytest.mark.parametrize("kind", [bs.BurnpackStore, bs.SafetensorsStore])
@pytest.mark.parametrize("what", ["a Git LFS pointer", "an HTML page"])
def test_a_look_alike_is_called_by_its_name_in_burns_stores(tmp_path: Path, kind: type, what: str) -> None:
    content, word = LOOK_ALIKES[what]
    path = tmp_path / "model.bpk"
    path.write_bytes(content)
    for store in (kind.from_file(path), kind.from_bytes(content)):
        with pytest.raises(bs.errors.FormatError, match=word):
            store.keys()


def test_half_a_download_says_that_it_is_not_finished(tmp_path: Path) -> None:
    halves = {"half.bpk": bpk({"tensors": {"t": tensor(shape=[256], data_offsets=[0, 1024])}}, bytes(500))}
    halves["half.safetensors"] = st({"t": tensor(shape=[256], data_offsets=[0, 1024])}, bytes(500))
    halves["head.bpk"], halves["head.safetensors"] = halves["half.bpk"][:60], halves["half.safetensors"][:60]
    halves["few.bpk"], halves["few.safetensors"] = b"NRUB", b"\x40\0\0"
    for name, content in halves.items():
        (tmp_path / name).write_bytes(content)
        assert_refused({name: tmp_path / name}, name, "download")


def test_one_format_named_as_the_other_is_read_by_its_content(tmp_path: Path) -> None:
    from tests.safety.prison import attack

    (tmp_path / "model.safetensors").write_bytes(GOOD)
    (tmp_path / "model.bpk").write_bytes(st({"t": tensor()}))
    for label, outcome in attack({path.name: path for path in tmp_path.iterdir()}).items():
        assert list(outcome.tensors) == ["t"], (label, outcome.text)
    for format, name in (("burnpack", "model.bpk"), ("safetensors", "model.safetensors")):
        assert_refused({format: tmp_path / name}, name, format=format)
