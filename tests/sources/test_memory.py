"""Bytes in memory as a source: whatever has the buffer protocol, never copied, never changed."""

from __future__ import annotations

import array
import mmap
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from burnstore.sources.memory import MemorySource
from tests.sources.handmade import safetensors_bytes

VALUES = np.arange(6, dtype=np.float32)
DATA = safetensors_bytes({"w": VALUES})


@pytest.mark.parametrize(
    "buffer",
    [
        DATA,
        bytearray(DATA),
        memoryview(DATA),
        memoryview(bytearray(b"xx" + DATA))[2:],
        np.frombuffer(DATA, np.uint8),
        np.frombuffer(DATA, np.int8),
        np.frombuffer(DATA, np.uint8).reshape(-1, 8),
        array.array("B", DATA),
        array.array("q", DATA),
    ],
    ids=["bytes", "bytearray", "memoryview", "a slice", "numpy", "numpy int8", "numpy 2-d", "array", "array of int64"],
)
def test_every_buffer_is_a_source(buffer: object) -> None:
    np.testing.assert_array_equal(bs.open(buffer)["w"].numpy(), VALUES)


def test_a_mapping_of_a_file_is_a_source_wherever_its_position_is(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(DATA)
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    mapping.seek(11)
    array = bs.open(mapping)["w"].numpy()
    np.testing.assert_array_equal(array, VALUES)
    with pytest.raises(BufferError):  # the array is a view of the mapping, not a copy of it
        mapping.close()


@pytest.mark.parametrize(
    "buffer",
    [memoryview(bytes(2 * len(DATA)))[::2], np.zeros((16, 16), np.uint8)[:, ::2], np.zeros((16, 16), np.uint8).T[1:]],
    ids=["memoryview", "numpy columns", "numpy transposed"],
)
def test_a_buffer_that_is_not_contiguous_is_refused(buffer: object) -> None:
    with pytest.raises(bs.errors.UsageError, match="contiguous"):
        bs.open(buffer)


def test_the_array_of_a_buffer_is_a_read_only_view_of_it() -> None:
    held = bytearray(DATA)
    view = bs.open(held)["w"].numpy()
    assert not view.flags.writeable
    held[-4:] = np.float32(7).tobytes()
    assert view[-1] == 7
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_an_owned_array_of_a_buffer_is_independent_of_it() -> None:
    held = bytearray(DATA)
    owned = bs.open(held)["w"].numpy(copy=True)
    owned[0] = 5
    held[-4:] = np.float32(7).tobytes()
    assert owned[-1] == VALUES[-1] and held == bytearray(DATA[:-4] + np.float32(7).tobytes())


@pytest.mark.parametrize("empty", [b"", bytearray(), memoryview(b""), np.zeros(0, np.uint8)])
def test_an_empty_buffer_is_diagnosed(empty: object) -> None:
    with pytest.raises(bs.errors.UnknownFormatError, match="empty"):
        bs.open(empty)


def test_reading_past_the_end_is_an_error_and_never_zeros() -> None:
    source = MemorySource(b"abc")
    with pytest.raises(bs.errors.TruncatedError):
        source.view(1, 4)
    with pytest.raises(bs.errors.TruncatedError):
        source.read_into(2, memoryview(bytearray(2)))


def test_a_closed_buffer_gives_no_more_tensors_but_its_arrays_stay() -> None:
    store = bs.open(DATA)
    view, lazy = store["w"].numpy(), store["w"]
    store.close()
    with pytest.raises(bs.errors.SourceClosedError, match="closed"):
        lazy.numpy()
    np.testing.assert_array_equal(view, VALUES)
