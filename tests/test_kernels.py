"""Copies between arrays of any strides: equal to NumPy's own, whatever the shape, the order of the axes and the element."""

from __future__ import annotations

from itertools import permutations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnstore import kernels
from burnstore.data import BlockBytes, HeldBytes
from burnstore.dtypes import DType
from burnstore.errors import TensorDataError
from burnstore.kernels import Pieces, array_over, copy_blocks, copy_into, copy_range

LARGE = [
    (257, 300),
    (1, 70_000),
    (70_000, 2),
    (2, 70_000),
    (640, 513),
    (129, 64, 33),
    (65, 3, 3, 130),
    (3, 3, 130, 65),
    (40, 6, 5, 4, 31),
]
KINDS = [np.uint8, np.float16, np.float32, np.float64, np.complex128, ml_dtypes.bfloat16, np.bool_]


def numbers(shape: tuple[int, ...], kind: object) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 120, shape).astype(kind)


@pytest.mark.parametrize("shape", LARGE)
def test_every_order_of_axes_is_copied_as_numpy_does(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_TILES_FROM", 0)
    monkeypatch.setattr(kernels, "_TILED_STEP", 2)
    monkeypatch.setattr(kernels, "_TILED_ROW", 2)
    source = numbers(shape, np.float32)
    for axes in permutations(range(len(shape))):
        turned = source.transpose(axes)
        out = np.empty(turned.shape, np.float32)
        copy_into(out, turned)
        assert np.array_equal(out, turned), axes


@pytest.mark.parametrize("kind", KINDS)
def test_elements_of_every_size_are_copied(kind: type) -> None:
    source = numbers((513, 300), kind)
    out = np.empty((300, 513), kind)
    copy_into(out, source.T)
    assert np.array_equal(out, source.T)


def test_large_matrices_are_copied_by_tiles_and_small_ones_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    tiled: list[tuple[int, ...]] = []
    real = kernels._copy_tiles
    monkeypatch.setattr(kernels, "_copy_tiles", lambda out, source: (tiled.append(out.shape), real(out, source)))
    for shape in ((10, 10), (100_000, 4), (512, 512)):
        copy_into(np.empty(shape[::-1], np.float32), np.ones(shape, np.float32).T)
    copy_into(np.empty((512, 512), np.float32), np.ones((512, 512), np.float32))
    assert tiled == [(512, 512)]


def test_strides_of_both_sides_may_be_anything() -> None:
    source = numbers((600, 1100), np.float32)
    for turned in (source[::-1, ::-1].T, source[:, ::2].T, source[::3].T, np.broadcast_to(source[:, :1], source.shape).T):
        for out in (
            np.zeros(turned.shape, np.float32),
            np.zeros((turned.shape[0], turned.shape[1] * 2), np.float32)[:, ::2],
            np.zeros(turned.shape, np.float32)[::-1, ::-1],
            np.zeros(turned.shape, np.float32, order="F"),
        ):
            copy_into(out, turned)
            assert np.array_equal(out, turned)


def test_only_the_destination_is_written() -> None:
    memory = np.full((400, 700), 9, np.int16)
    copy_into(memory[50:350, 100:600], numbers((500, 300), np.int16).T)
    memory[50:350, 100:600] = 9
    assert (memory == 9).all()


def test_addresses_that_are_not_multiples_of_the_element_are_copied() -> None:
    raw = np.zeros(4 * 300 * 300 + 1, np.uint8)
    odd = np.ndarray((300, 300), np.float32, raw, 1)
    odd[:] = numbers((300, 300), np.float32)
    out = np.empty((300, 300), np.float32)
    copy_into(out, odd.T)
    assert np.array_equal(out, odd.T)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_range_of_the_bytes_can_be_had(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 5), max_size=4)))
    axes = data.draw(st.permutations(range(len(shape))))
    array = numbers(shape, data.draw(st.sampled_from([np.uint8, np.float32]))).transpose(axes)
    whole = array.tobytes()
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, len(whole)))
    out = bytearray(end - begin)
    copy_range(array, memoryview(out), begin)
    assert bytes(out) == whole[begin:end]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("length", [1, 7, 4096, 10**9])
def test_pieces_of_any_length_fill_an_array_of_any_strides(
    order: tuple[int, ...], length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_GROUP_BYTES", 600)
    array = numbers((11, 13, 17), np.int32)
    whole = array.tobytes()
    out = np.zeros(tuple(array.shape[axis] for axis in order), np.int32).transpose(np.argsort(order))
    copy_blocks(out, (whole[at : at + length] for at in range(0, len(whole), length)))
    assert np.array_equal(out, array)


def test_an_array_without_axes_and_one_without_elements_are_filled() -> None:
    out = np.zeros(2, np.int16)
    copy_blocks(out[::2][0, ...], [b"\x05", b"\x00"])
    assert out.tolist() == [5, 0]
    copy_blocks(np.zeros((3, 0), np.int16), [])


def test_too_few_and_too_many_bytes_are_refused() -> None:
    with pytest.raises(TensorDataError, match="tensor 'w': its bytes end before"):
        copy_blocks(np.zeros(4, np.uint8), [b"abc"], "tensor 'w'")
    with pytest.raises(TensorDataError, match="more bytes than its shape"):
        copy_blocks(np.zeros(2, np.uint8), [b"ab", b"c"])
    with pytest.raises(TensorDataError, match="more bytes than its shape"):
        copy_blocks(np.zeros(2, np.uint8), BlockBytes("w", 2, [b"ab", b"c"]).blocks())


def test_pieces_come_from_arrays_and_empty_blocks_too() -> None:
    pieces = Pieces([b"", np.arange(3, dtype=np.uint16), np.empty(0), b"xy"])
    out = bytearray(8)
    pieces.read_into(memoryview(out)[:5])
    pieces.read_into(memoryview(out)[5:])
    pieces.end()
    assert bytes(out) == np.arange(3, dtype="<u2").tobytes() + b"xy"


def test_an_array_over_held_bytes_is_read_only_and_one_of_no_bytes_is_empty() -> None:
    found = array_over(HeldBytes(bytearray(4)), DType.of("F16"), (2,))
    assert found is not None and not found.flags.writeable
    empty = array_over(HeldBytes(b""), DType.of("F16"), (0, 3))
    assert empty is not None and empty.shape == (0, 3)
    assert array_over(BlockBytes("w", 2, [b"ab"]), DType.of("F16"), (1,)) is None
