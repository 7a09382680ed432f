"""Axes in another order: the values that NumPy's transpose gives, from every kind of source."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import burnstore as bs
from burnstore.data import HeldBytes, PartsOnly, PendingBytes
from burnstore.errors import DTypeError, TensorDataError, UsageError
from burnstore.pipeline.reshape import permuted
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.base import FileRange
from burnstore.sources.local import LocalFile

MIB = 1024 * 1024
SHAPES = [
    ((5, 7), (1, 0)),
    ((600, 301), (1, 0)),
    ((3, 4, 5), (2, 0, 1)),
    ((0, 3), (1, 0)),
    ((1, 9, 1), (2, 1, 0)),
    ((2, 3, 4, 5), (3, 1, 0, 2)),
]


def values(shape: tuple[int, ...], kind: object = np.float32) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 100, shape).astype(kind)


def in_file(path: Path, array: np.ndarray, io: str) -> TensorSnapshot:
    path.write_bytes(b"odd" + array.tobytes())
    return TensorSnapshot("w", bs.DType.of(array.dtype), array.shape, FileRange(LocalFile(path, io=io), 3, 3 + array.nbytes))


def blocks_of(array: np.ndarray, length: int) -> Callable[[], Iterator[bytes]]:
    whole = array.tobytes()
    return lambda: (whole[at : at + length] for at in range(0, len(whole), length))


SOURCES: dict[str, Callable[[Path, np.ndarray], TensorSnapshot]] = {
    "mapped": lambda folder, array: in_file(folder / "f", array, "mmap"),
    "read": lambda folder, array: in_file(folder / "f", array, "pread"),
    "array": lambda folder, array: TensorSnapshot.from_data("w", array),
    "strided array": lambda folder, array: TensorSnapshot.from_data("w", np.asfortranarray(array)),
    "big-endian array": lambda folder, array: TensorSnapshot.from_data("w", array.astype(array.dtype.newbyteorder(">"))),
    "closure": lambda folder, array: TensorSnapshot.from_closure("w", "F32", array.shape, lambda: array),
    "blocks": lambda folder, array: TensorSnapshot.from_blocks("w", "F32", array.shape, blocks_of(array, 1001)),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_values_are_those_of_numpy(tmp_path: Path, source: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    array = values(shape)
    snapshot = permuted(SOURCES[source](tmp_path, array), axes)
    turned = array.transpose(axes)
    assert snapshot.shape == turned.shape and snapshot.nbytes == array.nbytes and snapshot.data.view() is None
    assert np.array_equal(snapshot.numpy(), turned)
    assert snapshot.tobytes() == turned.tobytes()
    if turned.size:
        assert np.array_equal(snapshot[0], turned[0])


@pytest.mark.parametrize("source", ["mapped", "read", "blocks"])
def test_any_range_of_the_bytes_can_be_read(tmp_path: Path, source: str) -> None:
    array = values((70, 33))
    data, whole = permuted(SOURCES[source](tmp_path, array), (1, 0)).data, array.T.tobytes()
    for begin, end in ((0, 0), (0, 1), (279, 281), (5, len(whole)), (1000, 4001), (len(whole) - 1, len(whole))):
        out = bytearray(end - begin)
        data.read_into(memoryview(out), begin)
        assert bytes(out) == whole[begin:end]


def test_blocks_are_small_where_the_source_is_mapped(tmp_path: Path) -> None:
    array = values((3000, 1500))
    snapshot = permuted(in_file(tmp_path / "f", array, "mmap"), (1, 0))
    blocks = [bytes(block) for block in snapshot.data.blocks()]
    assert max(map(len, blocks)) <= 4 * MIB and b"".join(blocks) == array.T.tobytes()


def test_one_row_larger_than_a_block_is_given_in_pieces(tmp_path: Path) -> None:
    array = values((1500, 3, 1000))
    snapshot = permuted(in_file(tmp_path / "f", array, "mmap"), (1, 2, 0))
    blocks = [bytes(block) for block in snapshot.data.blocks()]
    assert max(map(len, blocks)) <= 4 * MIB and b"".join(blocks) == array.transpose(1, 2, 0).tobytes()


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_reading_into_memory_needs_little_beside_it(tmp_path: Path, io: str) -> None:
    array = values((3000, 2000))
    data = permuted(in_file(tmp_path / "f", array, io), (1, 0)).data
    out = np.ones(array.nbytes, np.uint8)
    data.read_into(memoryview(out))
    tracemalloc.start()
    try:
        data.read_into(memoryview(out))
        assert tracemalloc.get_traced_memory()[1] < 6 * MIB
    finally:
        tracemalloc.stop()
    assert out.tobytes() == array.T.tobytes()


def test_a_source_that_can_be_read_once_is_read_once() -> None:
    array = values((700, 900))
    snapshot = TensorSnapshot.from_blocks("w", "F32", array.shape, blocks_of(array, 5000)())
    assert np.array_equal(permuted(snapshot, (1, 0)).numpy(), array.T)


def test_name_containers_and_ids_are_kept() -> None:
    snapshot = TensorSnapshot.from_data("a.w", values((2, 3)), containers=["Struct:Linear"], param_id=7)
    turned = permuted(snapshot, (-1, 0))
    assert (turned.name, turned.containers, turned.param_id, turned.shape) == ("a.w", ("Struct:Linear",), 7, (3, 2))


def test_the_order_that_is_there_already_gives_the_snapshot_itself() -> None:
    snapshot = TensorSnapshot.from_data("w", values((2, 3)))
    assert permuted(snapshot, (0, 1)) is snapshot
    lone = TensorSnapshot.from_data("w", 1.0)
    assert permuted(lone, ()) is lone


def test_two_orders_after_one_another_are_one() -> None:
    array = values((2, 3, 4))
    snapshot = TensorSnapshot.from_data("w", array)
    twice = permuted(permuted(snapshot, (1, 2, 0)), (2, 1, 0))
    assert np.array_equal(twice.numpy(), array.transpose(1, 2, 0).transpose(2, 1, 0))
    assert permuted(permuted(snapshot, (1, 2, 0)), (2, 0, 1)).data is snapshot.data


def test_nothing_is_looked_for_before_the_bytes_are_wanted() -> None:
    def find() -> FileRange:
        raise AssertionError("it was read")

    snapshot = TensorSnapshot("w", bs.DType.of("F32"), (2, 3), PendingBytes(find))
    assert permuted(permuted(snapshot, (1, 0)), (1, 0)).shape == (2, 3)


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 2), (-3, 0)])
def test_what_is_no_order_is_refused(axes: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="name each of 0 to 1 once"):
        permuted(TensorSnapshot.from_data("w", values((2, 3))), axes)


def test_quantised_tensors_are_refused() -> None:
    with pytest.raises(DTypeError, match="QInt8 cannot be put in another order; take"):
        permuted(TensorSnapshot("w", bs.DType.of("QInt8"), (2, 3), HeldBytes(bytes(6))), (1, 0))


def test_a_tensor_without_values_says_why_when_they_are_wanted() -> None:
    given = PartsOnly(DTypeError("it is sparse", where="tensor 'w'"))
    turned = permuted(TensorSnapshot("w", bs.DType.of("F32"), (2, 3), given), (1, 0))
    with pytest.raises(DTypeError, match="it is sparse"):
        turned.numpy()


@pytest.mark.parametrize("kind", [ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn])
def test_elements_smaller_than_a_byte_are_unpacked_and_packed_again(kind: type) -> None:
    array = (np.arange(24, dtype=np.uint8) % 16).reshape(4, 6).view(kind)
    turned = permuted(TensorSnapshot.from_data("w", array), (1, 0))
    assert turned.numpy().view(np.uint8).tolist() == array.view(np.uint8).T.tolist()
    assert turned.nbytes == turned.dtype.bits * 24 // 8


@pytest.mark.parametrize(("name", "size"), [("Bool(U32)", 4), ("C32", 4), ("BF16", 2), ("F8_E4M3", 1), ("C128", 16)])
def test_whole_elements_are_moved_whatever_they_mean(name: str, size: int) -> None:
    raw = np.random.default_rng(0).integers(0, 256, (5, 3, size), np.uint8)
    snapshot = TensorSnapshot.from_data("w", bs.TensorData(raw.tobytes(), (5, 3), name))
    assert permuted(snapshot, (1, 0)).tobytes() == raw.transpose(1, 0, 2).tobytes()


def test_blocks_that_end_too_early_are_an_error() -> None:
    array = values((4, 4))
    short = TensorSnapshot.from_blocks("w", "F32", (4, 4), [array.tobytes()[:-4]])
    with pytest.raises(TensorDataError, match="its blocks gave 60"):
        permuted(short, (1, 0)).numpy()
