"""The byte path needs neither mmap, pread, threads nor a file system."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from tests.sources.bare_system import MissingError, bare_system  # noqa: F401  # a fixture
from tests.sources.handmade import burnpack_bytes, burnpack_parts, safetensors_bytes, safetensors_parts
from tests.sources.processes import run_python

DATA = Path(__file__).parents[1] / "data"
ARRAYS = {
    "a": np.arange(30_000, dtype=np.float32).reshape(100, 300),
    "b": np.array([True, False]),
    "c": np.zeros((0, 3), np.int64),
}
SAFETENSORS = safetensors_bytes(ARRAYS, {"k": "v"})
BURNPACK = burnpack_bytes(
    {
        "a": ("F32", (100, 300), ARRAYS["a"].tobytes()),
        "b": ({"Bool": "Native"}, (2,), b"\1\0"),
        "c": ("I64", (0, 3), b""),
    },
    {"k": "v"},
)


def test_the_fixture_takes_files_threads_and_mmap_away(tmp_path: Path, bare_system: None) -> None:  # noqa: F811
    path = tmp_path / "w.safetensors"
    path.write_bytes(SAFETENSORS)
    with pytest.raises(MissingError):
        bs.open(path)
    with pytest.raises(MissingError):
        bs.save(ARRAYS, tmp_path / "new.bpk")
    with pytest.raises(ImportError):
        bs.open(io.BytesIO(SAFETENSORS))  # a file object that seeks is guarded by a lock
    assert path.read_bytes() == SAFETENSORS


@pytest.mark.usefixtures("bare_system")
@pytest.mark.parametrize("data", [SAFETENSORS, BURNPACK], ids=["safetensors", "burnpack"])
def test_bytes_are_read_on_a_bare_system(data: bytes) -> None:
    store = bs.open(data)
    assert set(store) == {"a", "b", "c"} and store.metadata["k"] == "v"
    np.testing.assert_array_equal(store["a"][10:12], ARRAYS["a"][10:12])
    for arrays in (bs.read(data), bs.read(bytearray(data), copy=False)):
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)
    assert bs.verify(data).ok


def outcome(given: object) -> object:
    """Everything that reading gives, or that it was refused; the words may differ, as only a path has a suffix."""
    try:
        store = bs.open(given)  # type: ignore[arg-type]
        tensors = {name: (str(snapshot.dtype), snapshot.shape, snapshot.tobytes()) for name, snapshot in store.items()}
        return tensors, dict(store.metadata), bs.convert(store, bytes, format=store.format)
    except bs.errors.BurnstoreError:
        return "refused"


FILES = sorted(path for path in DATA.rglob("*") if path.suffix in (".bpk", ".safetensors"))


def test_every_small_file_gives_the_same_from_bytes_on_a_bare_system(request: pytest.FixtureRequest) -> None:
    """The files of the other tests, those that are refused included."""
    contents = {path: path.read_bytes() for path in FILES}
    wanted = {path: outcome(path) for path in FILES}
    request.getfixturevalue("bare_system")
    assert len(FILES) > 20 and "refused" in wanted.values()
    for path, content in contents.items():
        assert outcome(content) == wanted[path], path


@pytest.mark.usefixtures("bare_system")
def test_bytes_are_saved_on_a_bare_system() -> None:
    header, data = safetensors_parts(bs.save(ARRAYS, bytes, format="safetensors"))
    begin, end = header["a"]["data_offsets"]  # type: ignore[index]
    assert data[begin:end] == ARRAYS["a"].tobytes()
    header, data = burnpack_parts(bs.save(ARRAYS, bytes, format="burnpack"))
    begin, end = header["tensors"]["a"]["data_offsets"]  # type: ignore[index]
    assert data[begin:end] == ARRAYS["a"].tobytes()


@pytest.mark.usefixtures("bare_system")
@pytest.mark.parametrize(("data", "format"), [(SAFETENSORS, "burnpack"), (BURNPACK, "safetensors")])
def test_bytes_are_converted_on_a_bare_system(data: bytes, format: str) -> None:
    made = bytearray()
    bs.convert(data, made, format=format)
    parts = burnpack_parts if format == "burnpack" else safetensors_parts
    header, stored = parts(bytes(made))
    begin, end = (header["tensors"] if format == "burnpack" else header)["a"]["data_offsets"]  # type: ignore[index]
    assert stored[begin:end] == ARRAYS["a"].tobytes()


@pytest.mark.usefixtures("bare_system")
def test_a_store_in_memory_works_on_a_bare_system() -> None:
    store = bs.BurnpackStore.from_bytes(None)
    bs.save({"b": [1.0], "a": [2.0]}, store)
    assert store.keys() == ["a", "b"] and bs.BurnpackStore.from_static(store.get_bytes()).keys() == ["a", "b"]


def test_burnstore_is_imported_and_used_where_the_system_was_bare_from_the_start() -> None:
    """The modules themselves must not want at import what is missing; an imported one may have kept a function."""
    run_python(
        """
import sys, numpy, ml_dtypes, cbor2, msgspec, html, importlib.metadata, pytest
from tests.sources.bare_system import remove
from tests.sources.handmade import safetensors_bytes
import os
assert not [name for name in sys.modules if name.startswith("burnstore")]
remove()
for gone in ("pread", "preadv", "writev", "posix_fallocate"):
    if hasattr(os, gone):
        delattr(os, gone)
import burnstore as bs
data = safetensors_bytes({"w": numpy.ones((3, 4), numpy.float32)})
for format in ("burnpack", "safetensors"):
    made = bs.convert(data, bytes, format=format)
    assert bs.open(made)["w"].shape == (3, 4)
    assert bs.read(made)["w"].sum() == 12
    assert bs.read(bs.save({"x": [1, 2]}, bytes, format=format))["x"].tolist() == [1, 2]
    assert "w" in repr(bs.open(made)) and bs.verify(made).ok
    both = bs.save({"x": numpy.ones(50000), "y": numpy.ones(50000)}, bytes, format=format)
    assert bs.read(both)["y"].sum() == 50000
assert "mmap" not in {name for name, module in sys.modules.items() if module is not None}
os._exit(0)  # what is left at exit would want its locks
"""
    )


def test_files_and_threads_come_back_after_a_bare_test() -> None:
    import mmap
    import threading

    assert sys.modules["mmap"] is mmap and threading.Thread.__name__ == "Thread"
