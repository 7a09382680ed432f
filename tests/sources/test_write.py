"""Moving the bytes of a layout: in order, whole, whatever the system or the file object takes at a time."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from tests.sources.handmade import safetensors_parts

RNG = np.random.default_rng(7)
# Sizes around the bounds between gathered and single writes, several of each in a row.
ARRAYS = {
    f"t{number:02d}": RNG.integers(0, 255, size, dtype=np.uint8)
    for number, size in enumerate([1, 0, 65536, 65537, 200_000, 3, 70_000, 70_001, 70_002, 5, 0, 8])
}


def saved(path: Path) -> bytes:
    bs.save(ARRAYS, path, fsync=False)
    return path.read_bytes()


def same_tensors(data: bytes) -> bool:
    header, stored = safetensors_parts(data)
    return all(
        stored[slice(*header[name]["data_offsets"])] == array.tobytes()  # type: ignore[index]
        for name, array in ARRAYS.items()
    ) and len(stored) == sum(array.nbytes for array in ARRAYS.values())


def test_a_path_gets_every_byte(tmp_path: Path) -> None:
    assert same_tensors(saved(tmp_path / "a.safetensors"))


def test_all_destinations_get_the_same_bytes(tmp_path: Path) -> None:
    wanted = saved(tmp_path / "a.safetensors")
    assert bs.save(ARRAYS, bytes, format="safetensors") == wanted
    array = bytearray(b"before")
    bs.save(ARRAYS, array, format="safetensors")
    assert array == b"before" + wanted
    memory = io.BytesIO()
    bs.save(ARRAYS, memory, format="safetensors")
    assert memory.getvalue() == wanted
    with (tmp_path / "b").open("wb") as file:
        bs.save(ARRAYS, file, format="safetensors")
    assert (tmp_path / "b").read_bytes() == wanted


@pytest.mark.parametrize("most", [1, 7, 1000, 70_001])
def test_short_writes_of_the_system_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    write, writev = os.write, os.writev
    small = {"a": ARRAYS["t00"], "b": ARRAYS["t05"], "c": ARRAYS["t03"][: 70 * most], "d": np.arange(5.0)}
    wanted = bs.save(small, bytes, format="safetensors")
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, memoryview(data)[:most]))
    monkeypatch.setattr(os, "writev", lambda fd, buffers: writev(fd, [b"".join(buffers)[:most]]))
    bs.save(small, tmp_path / "a.safetensors", fsync=False)
    monkeypatch.undo()
    assert (tmp_path / "a.safetensors").read_bytes() == wanted


def test_nothing_is_never_written_which_some_systems_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POSIX lets `writev` of no buffers fail, and macOS does."""
    writev = os.writev

    def strict(fd: int, buffers: list[bytes]) -> int:
        if not buffers:
            raise OSError(22, "Invalid argument")
        return writev(fd, buffers)

    monkeypatch.setattr(os, "writev", strict)
    assert same_tensors(saved(tmp_path / "a.safetensors"))


def test_a_system_without_writev_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = saved(tmp_path / "a.safetensors")
    monkeypatch.delattr(os, "writev")
    monkeypatch.delattr(os, "posix_fallocate")
    assert saved(tmp_path / "b.safetensors") == wanted


def test_more_small_tensors_than_one_writev_takes(tmp_path: Path) -> None:
    many = {f"t{number:05d}": np.array([number], np.int64) for number in range(3500)}
    bs.save(many, tmp_path / "many.safetensors", fsync=False)
    bs.save(many, tmp_path / "many.bpk", fsync=False)
    header, stored = safetensors_parts((tmp_path / "many.safetensors").read_bytes())
    assert np.frombuffer(stored, np.int64).tolist() == list(range(3500)) and len(header) == 3500
    assert bs.read(tmp_path / "many.bpk")["t03499"] == 3499


class ShortWrites(io.RawIOBase):
    """A raw file that takes a few bytes at a time, and cannot seek."""

    def __init__(self, most: int) -> None:
        self.taken, self._most = bytearray(), most

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)[: self._most]  # type: ignore[call-overload]
        self.taken += piece
        return len(piece)


def test_short_writes_of_a_file_object_are_continued() -> None:
    small = {"a": ARRAYS["t05"], "b": ARRAYS["t03"], "c": ARRAYS["t06"]}
    file = ShortWrites(5000)
    bs.save(small, file, format="safetensors")
    assert bytes(file.taken) == bs.save(small, bytes, format="safetensors")


def test_a_pipe_takes_a_file(tmp_path: Path) -> None:
    get, put = os.pipe()
    small = {"a": ARRAYS["t05"], "b": ARRAYS["t00"]}
    with os.fdopen(put, "wb") as file:
        bs.save(small, file, format="burnpack")
    with os.fdopen(get, "rb") as file:
        assert file.read() == bs.save(small, bytes, format="burnpack")


class OnlyWrite:
    """An object that has nothing but `write()`, which says nothing."""

    def __init__(self) -> None:
        self.taken = bytearray()

    def write(self, data: bytes) -> None:
        self.taken += data


def test_an_object_with_nothing_but_write_takes_a_file() -> None:
    file = OnlyWrite()
    bs.save(ARRAYS, file, format="safetensors")  # type: ignore[call-overload]
    assert same_tensors(bytes(file.taken))


def test_a_file_object_that_takes_nothing_is_an_error() -> None:
    with pytest.raises(bs.errors.SourceError, match="it took 0 of"):
        bs.save({"a": [1.0]}, ShortWrites(0), format="bpk")  # type: ignore[call-overload]


def test_a_full_device_behind_a_file_object_is_an_error_of_ours() -> None:
    with open("/dev/full", "wb", buffering=0) as file, pytest.raises(bs.errors.SourceError, match="No space left"):
        bs.save(ARRAYS, file, format="safetensors")


def test_a_closed_file_object_is_an_error_of_ours() -> None:
    file = io.BytesIO()
    file.close()
    with pytest.raises(bs.errors.BurnstoreError, match="closed"):
        bs.save({"a": [1.0]}, file, format="bpk")


@pytest.mark.parametrize("text", [io.StringIO(), io.TextIOWrapper(io.BytesIO())])
def test_a_file_object_in_text_mode_is_refused(text: io.TextIOBase) -> None:
    with pytest.raises(bs.errors.UsageError, match='"wb"'):
        bs.save({"a": [1.0]}, text, format="bpk")  # type: ignore[call-overload]


def test_a_bytearray_is_left_alone_when_saving_fails() -> None:
    def broken() -> object:
        yield bytes(70_000)
        raise RuntimeError("the generator broke")

    kept = bytearray(b"before")
    with pytest.raises(RuntimeError, match="broke"):
        bs.save([bs.TensorSnapshot.from_blocks("x", "U8", (140_000,), broken)], kept, format="bpk")  # type: ignore[arg-type]
    assert kept == b"before"


@pytest.mark.parametrize("dest", [None, 3, b"bytes", object()])
def test_what_is_no_destination_is_refused(dest: object) -> None:
    with pytest.raises(bs.errors.UsageError, match="no place to save"):
        bs.save({"a": [1.0]}, dest, format="bpk")  # type: ignore[call-overload]
