"""A format that an installed package announces is as good as a built-in one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from burnstore.errors import UnknownFormatError, UsageError
from burnstore.testing import FormatContract
from tests.contract.toy_format import DTYPES, FORMAT

ARRAYS = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.array([True, False]), "s": np.array(5)}


class TestToyFormat(FormatContract):
    format = FORMAT
    dtypes = DTYPES
    has_param_ids = False


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder on the path in which a package called toy-format seems to be installed."""
    site = tmp_path / "site"
    info = site / "toy_format-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-format\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[burnstore.formats]\ntoy = tests.contract.toy_format:FORMAT\n")
    monkeypatch.syspath_prepend(str(site))


def _same(store: bs.Store) -> None:
    assert {name: snapshot.numpy().tolist() for name, snapshot in store.items()} == {n: a.tolist() for n, a in ARRAYS.items()}


@pytest.mark.usefixtures("installed")
def test_it_is_saved_by_suffix_and_opened_by_content(tmp_path: Path) -> None:
    bs.save(ARRAYS, tmp_path / "model.toy", metadata={"k": "v"})
    assert (tmp_path / "model.toy").read_bytes()[:4] == b"TOY!"
    (tmp_path / "model.toy").rename(tmp_path / "model.bin")
    store = bs.open(tmp_path / "model.bin")
    assert (store.format, dict(store.metadata), list(store)) == ("toy", {"k": "v"}, list(ARRAYS))
    _same(store)
    assert bs.read(tmp_path / "model.bin")["b"].flags.writeable


@pytest.mark.usefixtures("installed")
def test_it_is_named_by_format_and_by_suffix(tmp_path: Path) -> None:
    data = bs.save(ARRAYS, bytes, format="toy")
    assert data == bs.save(ARRAYS, bytes, format=".toy")
    for format in ("toy", ".toy", None):
        _same(bs.open(data, format=format))
    assert bs.verify(data).ok and bs.verify(data).format == "toy"


@pytest.mark.usefixtures("installed")
def test_its_reader_explains_a_damaged_file_that_has_its_suffix(tmp_path: Path) -> None:
    path = tmp_path / "model.toy"
    path.write_bytes(b"TOZ!" + bytes(10))
    with pytest.raises(bs.errors.FormatError, match="does not begin with TOY!"):
        bs.open(path)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("other", ["bpk", "safetensors"])
def test_it_is_converted_both_ways(tmp_path: Path, other: str) -> None:
    toy, built_in, back = tmp_path / "model.toy", tmp_path / f"model.{other}", tmp_path / "back.toy"
    bs.save(ARRAYS, toy, metadata={"k": "v"})
    bs.convert(toy, built_in, dialect="keep")
    _same(bs.open(built_in))
    assert bs.open(built_in).metadata["k"] == "v"
    bs.convert(built_in, back, dialect="keep")
    _same(bs.open(back))
    assert bs.open(back).metadata["k"] == "v"


def test_without_the_package_it_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no format 'toy'"):
        bs.save(ARRAYS, bytes, format="toy")
    with pytest.raises(UnknownFormatError):
        bs.open(b"TOY!" + bytes(20))
    with pytest.raises(UsageError, match="names no format"):
        bs.save(ARRAYS, tmp_path / "model.toy")
