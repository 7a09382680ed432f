"""All tensors at once: owned arrays that keep little alive, and views."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from burnstore.devices import fill
from burnstore.devices import threads as sharing
from tests.sources.handmade import burnpack_bytes, safetensors_bytes

MIB = 1024 * 1024


def base_of(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 MiB in 400 tensors of 256 KiB, and one of 40 MiB."""
    path = tmp_path_factory.mktemp("memory") / "large.safetensors"
    arrays = {f"t{number}": np.full(65_536, number, np.float32) for number in range(240)}
    arrays["one"] = np.full(10 * MIB, 7, np.float32)
    path.write_bytes(safetensors_bytes(arrays))
    return path


def test_an_array_that_is_kept_keeps_at_most_32_mib_alive_beside_itself(large: Path) -> None:
    arrays = bs.read(large)
    for array in arrays.values():
        assert base_of(array).nbytes <= array.nbytes + 32 * MIB + 64
    assert base_of(arrays["one"]).nbytes <= 40 * MIB + 64


def test_what_is_not_kept_is_given_back(large: Path) -> None:
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = bs.read(large)["t3"]
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before <= kept.nbytes + 33 * MIB
    finally:
        tracemalloc.stop()
    assert (kept == 3).all()


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_number_of_threads_gives_the_same_arrays(large: Path, threads: int) -> None:
    arrays = bs.read(large, threads=threads)
    assert all((arrays[f"t{number}"] == number).all() for number in range(240)) and (arrays["one"] == 7).all()
    assert threading.active_count() <= 2


def test_threads_are_used_only_where_they_pay(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    real = fill.in_threads
    monkeypatch.setattr(fill, "in_threads", lambda work, reads, n, *more: (started.append(n), real(work, reads, n, *more)))
    monkeypatch.setattr(sharing.os, "cpu_count", lambda: 4)
    bs.read({"a": [1.0]})
    bs.read(safetensors_bytes({"a": np.zeros(9, np.float32)}))
    assert set(started) <= {1}
    bs.read(large)
    assert started[-1] == 4


@pytest.mark.parametrize("most", [0, 1])
def test_large_files_are_read_where_no_threads_or_no_more_of_them_can_start(
    large: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    start, started = threading.Thread.start, []

    def refused(thread: threading.Thread) -> None:
        if len(started) >= most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr(sharing.os, "cpu_count", lambda: 4)
    arrays = bs.read(large)
    assert all((arrays[f"t{number}"] == number).all() for number in range(240)) and (arrays["one"] == 7).all()
    assert len(started) == most and not any(thread.is_alive() for thread in started)


def test_an_error_in_a_thread_is_the_callers(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = bs.open(large)
    real = store.contents.source.read_into  # type: ignore[union-attr]

    def broken(begin: int, out: memoryview) -> None:
        if begin > 60 * MIB:
            raise bs.errors.TruncatedError("it was cut")
        real(begin, out)

    monkeypatch.setattr(store.contents.source, "read_into", broken)
    for threads in (1, 2, 5):
        with pytest.raises(bs.errors.TruncatedError, match="it was cut"):
            bs.read(store, threads=threads)
    assert threading.active_count() <= 2


def test_arrays_are_aligned_wherever_they_lie_in_the_file() -> None:
    """A header of odd length puts every tensor at an odd place, as some writers do."""
    arrays = {
        "c": np.zeros(3, np.uint8),
        "d": np.arange(5.0),
        "f": np.arange(4, dtype=np.float32),
        "b": np.array([True]),
        "i": np.arange(3, dtype=np.int64),
    }
    data = safetensors_bytes(arrays)
    length = int.from_bytes(data[:8], "little")
    odd = (length + 3).to_bytes(8, "little") + data[8 : 8 + length] + b"   " + data[8 + length :]
    for given in (data, odd):
        for name, array in bs.read(given).items():
            assert array.flags.aligned and array.flags.writeable
            np.testing.assert_array_equal(array, arrays[name])
        for name, view in bs.read(given, copy=False).items():
            np.testing.assert_array_equal(view, arrays[name])


def test_two_names_of_one_tensor_are_two_arrays() -> None:
    data = burnpack_bytes({"a": ("F32", (2,), bytes(8)), "b": ("F32", (2,), bytes(8))})
    import cbor2

    block = cbor2.dumps({"tensors": {name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for name in "ab"}})
    head = b"NRUB\1\0" + len(block).to_bytes(4, "little") + block
    data = head + bytes(-len(head) % 256) + bytes(8)
    arrays = bs.read(data)
    arrays["a"][:] = 1
    assert arrays["b"].tolist() == [0, 0]


def test_gaps_between_tensors_are_not_kept_in_memory() -> None:
    """Tensors that lie megabytes apart, as in a file of which only some are wanted."""
    store = bs.open(
        safetensors_bytes({"a": np.zeros(4, np.uint8), "gap": np.zeros(8 * MIB, np.uint8), "b": np.ones(4, np.uint8)})
    )
    arrays = bs.read([store["a"], store["b"]])
    assert arrays["b"].tolist() == [1] * 4 and base_of(arrays["a"]).nbytes < MIB


def test_every_dtype_comes_out_as_its_own(tmp_path: Path) -> None:
    import ml_dtypes

    arrays = {
        "bf16": np.arange(4).astype(ml_dtypes.bfloat16),
        "fp8": np.arange(4).astype(ml_dtypes.float8_e4m3fn),
        "f4": np.arange(4).astype(ml_dtypes.float4_e2m1fn),
        "f6": np.arange(4).astype(ml_dtypes.float6_e2m3fn),
        "c64": np.arange(4).astype(np.complex64),
        "f16": np.arange(4).astype(np.float16),
    }
    bs.save(arrays, tmp_path / "w.safetensors")
    for copy in (True, False):
        for name, array in bs.read(tmp_path / "w.safetensors", copy=copy).items():
            assert array.dtype == arrays[name].dtype
            np.testing.assert_array_equal(array.astype(np.complex64), arrays[name].astype(np.complex64))
            assert not copy or array.flags.writeable


def test_booleans_of_four_bytes_are_numpys_booleans() -> None:
    data = burnpack_bytes({"flag": ({"Bool": "U32"}, (2,), b"\0\0\0\0\1\0\0\0")})
    for copy in (True, False):
        array = bs.read(data, copy=copy)["flag"]
        assert array.dtype == np.bool_ and array.tolist() == [False, True]


def test_tensors_of_many_dimensions_are_read() -> None:
    array = np.arange(2, dtype=np.float32).reshape((1,) * 40 + (2,))
    data = safetensors_bytes({"w": array, "v": np.zeros(1, np.float32)})
    for copy in (True, False):
        assert bs.read(data, copy=copy)["w"].shape == array.shape


def test_read_holds_the_file_once(large: Path) -> None:
    size = large.stat().st_size
    tracemalloc.start()
    try:
        arrays = bs.read(large, threads=1)
        assert tracemalloc.get_traced_memory()[1] <= size + 2 * MIB and len(arrays) == 241
    finally:
        tracemalloc.stop()
