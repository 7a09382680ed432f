"""Memory that exists already is filled: every tensor arrives whole, at its own place, and nothing is written afterwards."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

import burnstore as bs
from burnstore.devices import fill as filling
from burnstore.devices import threads as sharing
from burnstore.devices.fill import Job, fill
from burnstore.errors import SourceClosedError, TruncatedError, UsageError
from burnstore.pipeline.cast import recast
from burnstore.pipeline.reshape import permuted
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.base import FileRange
from burnstore.sources.local import LocalFile
from burnstore.sources.memory import MemorySource

MIB = 1024 * 1024
# Small and large, odd and empty, neighbours and with gaps, in no order.
LENGTHS = [0, 1, 3, 1000, 1000, 70_001, 255 * 1024, 256 * 1024, 300_001, 1, MIB, 9 * MIB + 5, 7, 0, 20 * MIB, 2]


def laid_out(path: Path, lengths: list[int], gap: int = 5) -> tuple[list[FileRange], list[bytes]]:
    """A file with stretches of these lengths, and what is in each."""
    raw = np.random.default_rng(0).integers(0, 256, sum(lengths) + gap * len(lengths) + 3, np.uint8).tobytes()
    path.write_bytes(raw)
    source, at, ranges, contents = LocalFile(path), 3, [], []
    for length in lengths:
        ranges.append(FileRange(source, at, at + length))
        contents.append(raw[at : at + length])
        at += length + gap
    return ranges, contents


@pytest.mark.parametrize("gap", [0, 5, 50_000])
@pytest.mark.parametrize("threads", [None, 1, 2, 5])
def test_stretches_of_a_file_arrive_at_their_addresses(tmp_path: Path, threads: int | None, gap: int) -> None:
    ranges, contents = laid_out(tmp_path / "f", LENGTHS, gap)
    # a byte on each side tells whether too much was written
    memory = [np.full(len(content) + 2, 77, np.uint8) for content in contents]
    jobs = [Job(data, array.ctypes.data + 1) for data, array in zip(ranges, memory, strict=True)]
    fill(reversed(jobs), threads=threads)
    for array, content in zip(memory, contents, strict=True):
        assert array[1:-1].tobytes() == content and array[0] == array[-1] == 77


@pytest.mark.parametrize("threads", [1, 2])
def test_stretches_of_a_file_arrive_in_arrays(tmp_path: Path, threads: int) -> None:
    ranges, contents = laid_out(tmp_path / "f", LENGTHS)
    arrays = [np.zeros(len(content), np.uint8) for content in contents]
    fill([Job(data, array) for data, array in zip(ranges, arrays, strict=True)], threads=threads)
    assert [array.tobytes() for array in arrays] == contents


def test_addresses_and_arrays_may_be_mixed_and_one_stretch_wanted_twice(tmp_path: Path) -> None:
    ranges, contents = laid_out(tmp_path / "f", [100, 200, 300])
    once, again = [np.zeros(n, np.uint8) for n in (100, 200, 300)], np.zeros(100, np.uint8)
    fill(
        [Job(ranges[0], once[0]), Job(ranges[1], once[1].ctypes.data), Job(ranges[2], once[2]), Job(ranges[0], again.ctypes.data)]
    )
    assert [array.tobytes() for array in once] == contents and again.tobytes() == contents[0]


@pytest.mark.parametrize("seed", range(20))
def test_stretches_may_overlap_and_lie_within_one_another(tmp_path: Path, seed: int) -> None:
    """Views of one storage do."""
    random = np.random.default_rng(seed)
    (whole,), (raw,) = laid_out(tmp_path / "f", [3 * MIB])
    begins = random.integers(0, 3 * MIB, 60)
    ends = np.minimum(begins + random.choice([0, 1, 5000, 200_000, 262_144, 2 * MIB], 60), 3 * MIB)
    pairs = [
        *zip(begins.tolist(), ends.tolist(), strict=True),
        (0, 3 * MIB),
        (0, 0),
        (MIB, 3 * MIB),
        (MIB, MIB),
        (3 * MIB, 3 * MIB),
    ]
    arrays = [np.zeros(end - begin, np.uint8) for begin, end in pairs]
    ranges = [FileRange(whole.source, 3 + begin, 3 + end) for begin, end in pairs]
    fill([Job(data, array.ctypes.data) for data, array in zip(ranges, arrays, strict=True)])
    assert [array.tobytes() for array in arrays] == [raw[begin:end] for begin, end in pairs]


def test_many_small_tensors_take_few_reads_and_no_mapping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranges, contents = laid_out(tmp_path / "f", [1024] * 4000, 0)
    source, read = ranges[0].source, []
    real = source.read_into
    monkeypatch.setattr(source, "read_into", lambda begin, out: (read.append(len(out)), real(begin, out)))
    monkeypatch.setattr(source, "view", None)
    memory = np.zeros((4000, 1024), np.uint8)
    fill([Job(data, memory[row].ctypes.data) for row, data in enumerate(ranges)])
    assert len(read) == 4 and max(read) <= MIB
    assert memory.tobytes() == b"".join(contents)


def test_large_tensors_are_read_straight_to_their_place_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranges, contents = laid_out(tmp_path / "f", [20 * MIB])
    source, read = ranges[0].source, []
    real = source.read_into
    monkeypatch.setattr(source, "read_into", lambda begin, out: (read.append((begin, len(out))), real(begin, out)))
    monkeypatch.setattr(source, "view", None)
    memory = np.zeros(20 * MIB, np.uint8)
    fill([Job(ranges[0], memory.ctypes.data)])
    assert read == [(3, 8 * MIB), (3 + 8 * MIB, 8 * MIB), (3 + 16 * MIB, 4 * MIB)]
    assert memory.tobytes() == contents[0]


def test_tensors_of_several_sources_arrive(tmp_path: Path) -> None:
    first, one = laid_out(tmp_path / "a", [50, 60])
    second, two = laid_out(tmp_path / "b", [50, 60])
    held = FileRange(MemorySource(b"0123456789"), 2, 7)
    arrays = [np.zeros(data.nbytes, np.uint8) for data in (first[0], second[1], held, first[1], second[0])]
    fill([Job(data, array) for data, array in zip((first[0], second[1], held, first[1], second[0]), arrays, strict=True)])
    assert [array.tobytes() for array in arrays] == [one[0], two[1], b"23456", one[1], two[0]]


KINDS = [np.float32, np.float16, np.int64, np.bool_, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (300, 400)])
def test_values_arrive_in_arrays_of_any_strides(tmp_path: Path, kind: type, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 2, shape).astype(kind)
    path = tmp_path / "f"
    path.write_bytes(b"x" + array.tobytes())
    in_file = TensorSnapshot("w", bs.DType.of(array.dtype), shape, FileRange(LocalFile(path), 1, 1 + array.nbytes))
    closure = TensorSnapshot.from_closure("w", in_file.dtype, shape, lambda: array)
    turned = TensorSnapshot.from_data("w", array.copy(order="F"))
    big = array.astype(array.dtype.newbyteorder(">"))
    for snapshot in (in_file, TensorSnapshot.from_data("w", array), turned, closure, TensorSnapshot.from_data("w", big)):
        for out in (
            np.zeros(shape, kind),
            np.zeros(shape, kind, order="F"),
            np.zeros((*shape, 2), kind)[..., 0],
            np.zeros(shape, np.dtype(kind).newbyteorder(">")),
        ):
            fill([Job(snapshot, out)])
            assert np.array_equal(out, array)


def test_a_parameter_of_torch_that_lies_transposed_is_filled_through_its_array() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    parameter = torch.zeros(3, 2).t()
    fill([Job(TensorSnapshot.from_data("w", array), parameter.numpy())])
    assert parameter.tolist() == array.tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_bytes_that_are_made_while_they_are_read_arrive(tmp_path: Path, threads: int) -> None:
    array = np.random.default_rng(0).standard_normal((3000, 1700)).astype(np.float32)
    path = tmp_path / "f"
    path.write_bytes(array.tobytes())
    in_file = TensorSnapshot("w", bs.DType.of("F32"), array.shape, FileRange(LocalFile(path), 0, array.nbytes))
    jobs, wanted = [], []
    for snapshot in (
        in_file,
        TensorSnapshot.from_data("w", array),
        TensorSnapshot.from_closure("w", "F32", array.shape, lambda: array),
    ):
        for changed, values in (
            (permuted(snapshot, (1, 0)), array.T),
            (recast(snapshot, "BF16"), array.astype(ml_dtypes.bfloat16)),
            (recast(permuted(snapshot, (1, 0)), "F16"), array.T.astype(np.float16)),
        ):
            jobs.append(Job(changed, np.zeros(values.shape, values.dtype)))
            wanted.append(values)
    fill(jobs, threads=threads)
    assert all(np.array_equal(job.out, values) for job, values in zip(jobs, wanted, strict=True))


def test_a_large_tensor_that_is_transposed_is_shared_by_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[int] = []
    snapshot = permuted(TensorSnapshot.from_data("w", np.ones((4096, 2048), np.float32)), (1, 0))
    real = type(snapshot.data).read_into
    monkeypatch.setattr(
        type(snapshot.data), "read_into", lambda self, out, begin=0: (parts.append(len(out)), real(self, out, begin))
    )
    out = np.zeros((2048, 4096), np.float32)
    fill([Job(snapshot, out)], threads=2)
    assert parts == [8 * MIB] * 4 and (out == 1).all()


def test_packed_elements_arrive_unpacked_in_arrays_and_packed_at_addresses() -> None:
    codes = (np.arange(12, dtype=np.uint8) % 16).reshape(2, 6).view(ml_dtypes.float4_e2m1fn)
    snapshot = TensorSnapshot.from_data("w", codes)
    out, packed = np.zeros((6, 2), codes.dtype), np.zeros(6, np.uint8)
    fill([Job(snapshot, out.T), Job(snapshot, packed.ctypes.data)])
    assert np.array_equal(out.T.view(np.uint8), codes.view(np.uint8))
    assert packed.tobytes() == snapshot.tobytes()
    flags = np.zeros(2, np.bool_)
    fill([Job(TensorSnapshot.from_data("b", bs.TensorData(bytes([1, 0, 0, 0, 0, 0, 0, 0]), (2,), "Bool(U32)")), flags)])
    assert flags.tolist() == [True, False]


@pytest.mark.parametrize(
    "out", [np.zeros((3, 2), np.float32), np.zeros((2, 3), np.int32), np.zeros((2, 3), np.float64), np.zeros(6, np.float32)]
)
def test_an_array_of_another_shape_or_dtype_is_refused_before_anything_is_written(out: np.ndarray) -> None:
    first = np.zeros(2, np.float32)
    good = Job(TensorSnapshot.from_data("a", np.ones(2, np.float32)), first)
    with pytest.raises(UsageError, match="tensor 'w': its values do not fit into an array of"):
        fill([good, Job(TensorSnapshot.from_data("w", np.ones((2, 3), np.float32)), out)])
    assert (first == 0).all()


def test_an_array_that_cannot_be_written_to_is_refused() -> None:
    out = np.zeros(2, np.float32)
    out.flags.writeable = False
    with pytest.raises(UsageError, match="give a writable one"):
        fill([Job(TensorSnapshot.from_data("w", np.ones(2, np.float32)), out)])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("lengths", [[500] * 40, [300_000] * 40])
def test_a_file_that_was_cut_is_an_error_not_a_crash(tmp_path: Path, lengths: list[int], threads: int) -> None:
    ranges, _ = laid_out(tmp_path / "f", lengths)
    memory = [np.zeros(length, np.uint8) for length in lengths]
    with (tmp_path / "f").open("r+b") as file:
        file.truncate(sum(lengths) // 2)
    with pytest.raises(TruncatedError):
        fill([Job(data, array.ctypes.data) for data, array in zip(ranges, memory, strict=True)], threads=threads)


def test_a_closed_source_is_an_error(tmp_path: Path) -> None:
    ranges, _ = laid_out(tmp_path / "f", [10, 10])
    ranges[0].source.close()
    with pytest.raises(SourceClosedError):
        fill([Job(data, np.zeros(10, np.uint8)) for data in ranges])


class Slow:
    """Bytes that take a while, and say what happens to them."""

    nbytes = 4

    def __init__(self, log: list[str], seconds: float = 0.0, error: BaseException | None = None) -> None:
        self.log, self.seconds, self.error = log, seconds, error

    def view(self) -> None:
        return None

    def read_into(self, out: memoryview, begin: int = 0) -> None:
        self.log.append("begun")
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        out[:] = b"full"
        self.log.append("done")

    def blocks(self) -> Iterator[bytes]:
        yield b"full"


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_the_first_error_stops_all_threads_and_is_raised(threads: int, error: BaseException) -> None:
    log: list[str] = []
    outs = np.zeros((100, 4), np.uint8)
    jobs = [Job(Slow(log, 0.01, error if n == 4 else None), outs[n]) for n in range(100)]
    with pytest.raises(type(error)):
        fill(jobs, threads=threads)
    held = outs.copy()
    begun = log.count("begun")
    assert begun < 20 and threading.active_count() == 1
    time.sleep(0.03)
    assert np.array_equal(outs, held) and log.count("begun") == begun


def test_ctrl_c_while_waiting_for_a_thread_waits_for_it_all_the_same() -> None:
    log: list[str] = []
    outs = np.zeros((2, 4), np.uint8)
    main = threading.main_thread()

    begun = threading.Event()

    class Interrupting(Slow):
        def read_into(self, out: memoryview, begin: int = 0) -> None:
            if threading.current_thread() is main:
                begun.wait(5)  # and then it has nothing left to do but wait for the other
                return
            begun.set()
            for _ in range(3):
                time.sleep(0.03)
                _thread.interrupt_main()
            time.sleep(0.03)
            super().read_into(out, begin)

    with pytest.raises(KeyboardInterrupt):
        fill([Job(Interrupting(log), out) for out in outs], threads=2)
    assert log == ["begun", "done"] and b"full" in outs.tobytes()
    assert threading.active_count() == 1


@pytest.mark.parametrize("most", [0, 1])
def test_where_no_more_threads_can_start_the_callers_own_does_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    start, started = threading.Thread.start, []

    def refused(thread: threading.Thread) -> None:
        if len(started) >= most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    ranges, contents = laid_out(tmp_path / "f", LENGTHS)
    arrays = [np.zeros(len(content), np.uint8) for content in contents]
    fill([Job(data, array) for data, array in zip(ranges, arrays, strict=True)], threads=4)
    assert [array.tobytes() for array in arrays] == contents


def test_threads_are_chosen_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing.os, "cpu_count", lambda: 4)
    asked: list[int] = []
    monkeypatch.setattr(filling, "in_threads", lambda work, items, threads, between=None: asked.append(threads))

    class Sized(Slow):
        def __init__(self, nbytes: int) -> None:
            self.nbytes = nbytes

    for nbytes in (63 * MIB, 64 * MIB):
        fill([Job(Sized(nbytes), 4096)])  # nothing is written: nobody does the work
    assert asked == [1, 4]


@pytest.mark.parametrize("threads", [1, 3])
def test_progress_grows_to_all_bytes_on_the_callers_thread(tmp_path: Path, threads: int) -> None:
    ranges, contents = laid_out(tmp_path / "f", LENGTHS)
    total, seen = sum(LENGTHS), []

    def note(done: int, of: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        seen.append((done, of))

    arrays = [np.zeros(len(content), np.uint8) for content in contents]
    fill([Job(data, array) for data, array in zip(ranges, arrays, strict=True)], threads, note)
    assert seen == sorted(seen) and seen[-1] == (total, total) and {of for _, of in seen} == {total}


def test_progress_of_nothing_is_told_once() -> None:
    seen: list[tuple[int, int]] = []
    fill([], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 0)]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_progress_stops_the_load(threads: int) -> None:
    log: list[str] = []

    def stop(done: int, total: int) -> None:
        raise RuntimeError("enough")

    outs = np.zeros((50, 4), np.uint8)
    with pytest.raises(RuntimeError, match="enough"):
        fill([Job(Slow(log, 0.005), out) for out in outs], threads, stop)
    assert log.count("begun") <= 4 and threading.active_count() == 1


def test_a_tensor_without_values_says_why_before_anything_is_written() -> None:
    from burnstore.data import PartsOnly
    from burnstore.errors import DTypeError

    out = np.zeros(2, np.float32)
    sparse = TensorSnapshot("s", bs.DType.of("F32"), (2,), PartsOnly(DTypeError("it is sparse", where="tensor 's'")))
    with pytest.raises(DTypeError, match="it is sparse"):
        fill([Job(TensorSnapshot.from_data("a", np.ones(2, np.float32)), out), Job(sparse, 4096)])
    assert (out == 0).all()
