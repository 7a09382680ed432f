"""`snapshot[...]`, against NumPy's own indexing of the same array, over every kind of source."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

import burnstore as bs
from burnstore.sources.base import FileRange
from tests.sources.handmade import safetensors_bytes

OPENERS: dict[str, Callable[[Path], bs.Store]] = {
    "pread": lambda path: bs.open(path, io="pread"),
    "mmap": lambda path: bs.open(path, io="mmap"),
    "stream": lambda path: bs.open(io.BytesIO(path.read_bytes())),
    "bytes": lambda path: bs.open(path.read_bytes()),
}


class CountingSource:
    """Bytes that can only be read, and that remember how much was."""

    name = "<counted>"

    def __init__(self, data: bytes) -> None:
        self._data, self.size = data, len(data)
        self.calls: list[tuple[int, int]] = []

    def view(self, begin: int, end: int) -> None:
        return None

    def read_into(self, begin: int, out: memoryview) -> None:
        assert begin >= 0 and begin + len(out) <= self.size
        self.calls.append((begin, len(out)))
        out[:] = self._data[begin : begin + len(out)]

    def read(self, begin: int, end: int) -> bytes:
        return self._data[begin:end]

    def close(self) -> None: ...

    @property
    def nbytes(self) -> int:
        return sum(length for _, length in self.calls)


def counted(array: np.ndarray, before: int = 0) -> tuple[CountingSource, bs.TensorSnapshot]:
    source = CountingSource(bytes(before) + array.tobytes())
    dtype = bs.DType.of(array.dtype)
    return source, bs.TensorSnapshot("w", dtype, array.shape, FileRange(source, before, source.size))


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_every_basic_index_gives_what_numpy_gives(data: st.DataObject) -> None:
    shape = data.draw(array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=6))
    key = data.draw(basic_indices(shape, max_dims=7, allow_newaxis=True, allow_ellipsis=True))
    array = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    _, snapshot = counted(array, before=12)
    _same(snapshot[key], array[key])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_rows_larger_than_a_page_are_indexed_as_numpy_does(data: st.DataObject) -> None:
    """Where runs of bytes are read one by one rather than as one box."""
    shape = data.draw(st.sampled_from([(4, 3, 2000), (3, 4, 5, 1100), (2, 3000, 2), (5, 2, 4096)]))
    key = data.draw(basic_indices(shape, max_dims=6, allow_newaxis=True, allow_ellipsis=True))
    array = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    _, snapshot = counted(array)
    _same(snapshot[key], array[key])


def _same(got: Any, wanted: Any) -> None:
    assert type(got) is type(wanted) or np.ndim(wanted) == 0
    assert np.shape(got) == np.shape(wanted) and np.asarray(got).dtype == np.asarray(wanted).dtype
    np.testing.assert_array_equal(got, wanted)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slicing") / "w.safetensors"
    path.write_bytes(safetensors_bytes(ARRAYS))
    return path


ARRAYS = {
    "matrix": np.arange(60 * 2000, dtype=np.float32).reshape(60, 2000),
    "cube": np.arange(4 * 5 * 6, dtype=np.int64).reshape(4, 5, 6),
    "scalar": np.array(7.5, np.float64),
    "empty": np.zeros((3, 0, 2), np.int32),
    "flags": np.arange(24).reshape(2, 12) % 3 == 0,
}


@pytest.mark.parametrize("opener", OPENERS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_source_gives_what_numpy_gives(opener: str, path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(ARRAYS)))
    key = data.draw(basic_indices(ARRAYS[name].shape, max_dims=5, allow_newaxis=True, allow_ellipsis=True))
    _same(OPENERS[opener](path)[name][key], ARRAYS[name][key])


@pytest.mark.parametrize(
    ("key", "needed"),
    [
        (np.s_[10:20], 10 * 4000),
        (np.s_[17], 4000),
        (np.s_[-1], 4000),
        (np.s_[17, 3], 4),
        (np.s_[17, 100:200], 400),
        (np.s_[5:7, 900:1000], 2 * 400),
        (np.s_[..., 3:3], 0),
        (np.s_[20:10], 0),
        (np.s_[59:], 4000),
    ],
    ids=str,
)
def test_only_the_needed_bytes_are_read(key: Any, needed: int) -> None:
    """`needed` is what the elements have; what lies less than a page apart may come along."""
    array = ARRAYS["matrix"]
    source, snapshot = counted(array)
    np.testing.assert_array_equal(snapshot[key], array[key])
    runs = max(1, np.asarray(array[key]).size * 4 // 400)
    assert source.nbytes <= needed + min(runs, 60) * 4096


def test_rows_in_a_row_are_read_exactly_and_in_one_piece() -> None:
    source, snapshot = counted(np.zeros((1000, 256), np.float32), before=8)
    snapshot[10:20]
    assert source.calls == [(8 + 10 * 1024, 10 * 1024)]


@pytest.mark.parametrize("step", [10, 100, -100])
def test_rows_far_apart_are_read_without_those_between_them(step: int) -> None:
    """Rows of 8 KiB: each is two pages, so reading over one costs as much as reading one."""
    array = np.arange(1000 * 2048, dtype=np.float32).reshape(1000, 2048)
    source, snapshot = counted(array)
    np.testing.assert_array_equal(snapshot[::step], array[::step])
    assert source.nbytes <= 2 * len(range(0, 1000, abs(step))) * 8192


def test_a_column_of_wide_rows_is_read_in_small_pieces() -> None:
    array = np.arange(50 * 10_000, dtype=np.float32).reshape(50, 10_000)
    source, snapshot = counted(array)
    np.testing.assert_array_equal(snapshot[:, 7], array[:, 7])
    assert source.nbytes <= 50 * 4096


def test_a_column_of_narrow_rows_is_read_in_one_piece() -> None:
    array = np.arange(5000, dtype=np.float32).reshape(1000, 5)
    source, snapshot = counted(array)
    np.testing.assert_array_equal(snapshot[:, 2], array[:, 2])
    assert len(source.calls) == 1


def test_a_part_of_a_mapped_file_is_a_read_only_view(path: Path) -> None:
    part = bs.open(path, io="mmap")["matrix"][3:5]
    assert not part.flags.writeable and not part.flags.owndata


def test_a_part_of_a_tensor_keeps_no_more_of_it_in_memory() -> None:
    array = np.zeros((1000, 2048), np.float32)
    _, snapshot = counted(array)
    part = snapshot[5:6]
    while isinstance(part, np.ndarray) and part.base is not None:
        part = part.base
    assert memoryview(part).nbytes <= 2 * 8192


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize(
    "key",
    [[0, 1], np.array([0, 1]), np.array([True, False]), True, np.True_, 1.0, "name", (0, [1]), (slice(None), np.array([0]))],
    ids=str,
)
def test_an_index_that_is_not_basic_is_refused_by_every_source(path: Path, opener: str, key: object) -> None:
    with pytest.raises(bs.errors.UsageError, match=r"not a basic index.*snapshot\.numpy\(\)"):
        OPENERS[opener](path)["cube"][key]  # type: ignore[index]


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("key", [4, -5, (0, 5), (0, 0, 6), (..., 6), (0, 0, 0, 0), (..., 0, ...)], ids=str)
def test_an_index_that_is_out_of_range_is_refused_by_every_source(path: Path, opener: str, key: Any) -> None:
    with pytest.raises(IndexError, match="'cube'") as caught:
        OPENERS[opener](path)["cube"][key]
    assert isinstance(caught.value, bs.errors.BurnstoreError)


@pytest.mark.parametrize("opener", OPENERS)
def test_an_index_out_of_range_is_an_index_error_so_that_a_loop_ends(path: Path, opener: str) -> None:
    cube = OPENERS[opener](path)["cube"]
    with pytest.raises(IndexError):
        cube[4]
    assert [row.tolist() for row in cube] == ARRAYS["cube"].tolist()


@pytest.mark.parametrize("opener", OPENERS)
def test_a_slice_step_of_zero_is_an_error_of_ours(path: Path, opener: str) -> None:
    with pytest.raises(bs.errors.BurnstoreError, match="zero"):
        OPENERS[opener](path)["cube"][::0]


@pytest.mark.parametrize("opener", OPENERS)
def test_integers_of_numpy_are_integers(path: Path, opener: str) -> None:
    cube = OPENERS[opener](path)["cube"]
    assert cube[np.int64(1), np.uint8(2), np.array(3)] == ARRAYS["cube"][1, 2, 3]


def test_a_tensor_of_more_dimensions_than_an_index_may_have_is_refused_by_name() -> None:
    data = safetensors_bytes({"w": np.zeros(1, np.float32)}).replace(b"[1]", b"[" + b",".join([b"1"] * 65) + b"]", 1)
    length = int.from_bytes(data[:8], "little") + 128
    snapshot = bs.open(length.to_bytes(8, "little") + data[8:])["w"]
    for read in (snapshot.numpy, lambda: snapshot[0]):
        with pytest.raises(bs.errors.DTypeError, match="65 dimensions"):
            read()
    assert snapshot.tobytes() == bytes(4)
