"""Binary file objects as sources: seekable or not, buffered or not, and whatever only has `read()`."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from tests.sources.handmade import safetensors_bytes

VALUES = np.arange(600, dtype=np.int32).reshape(20, 30)
DATA = safetensors_bytes({"w": VALUES, "b": np.array([1.5], np.float32)})


class ShortReads(io.RawIOBase):
    """A raw file that gives a few bytes at a time, as a socket does."""

    def __init__(self, data: bytes, most: int = 7) -> None:
        self._inner, self._most = io.BytesIO(data), most

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def readinto(self, out: object) -> int:
        view = memoryview(out)  # type: ignore[arg-type]
        return self._inner.readinto(view[: self._most])


class OnlyRead:
    """An object that has nothing but `read()`."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._inner.read(size)


class Seeker(OnlyRead):
    """What a library for remote files may give: it reads and seeks, and has neither `readinto` nor `closed`."""

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()


@pytest.mark.parametrize("make", [io.BytesIO, ShortReads, OnlyRead, Seeker, lambda data: io.BufferedReader(ShortReads(data))])
def test_every_binary_file_object_is_a_source(make: object) -> None:
    store = bs.open(make(DATA))  # type: ignore[operator]
    np.testing.assert_array_equal(store["w"].numpy(), VALUES)
    np.testing.assert_array_equal(store["w"][3, ::7], VALUES[3, ::7])
    assert store["b"].tobytes() == np.float32(1.5).tobytes()


@pytest.mark.parametrize("buffering", [-1, 0])
def test_an_open_file_is_a_source_that_stays_open_and_where_it_was(tmp_path: Path, buffering: int) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(DATA)
    with path.open("rb", buffering=buffering) as file:
        file.seek(5)
        store = bs.open(file)
        np.testing.assert_array_equal(store["w"].numpy(), VALUES)
        assert file.tell() == 5
        store.close()
        assert not file.closed


def test_reading_from_a_file_object_closes_nothing() -> None:
    file = io.BytesIO(DATA)
    arrays = bs.read(file)
    assert not file.closed and file.tell() == 0 and arrays["w"].flags.writeable


def test_a_pipe_is_read_to_its_end() -> None:
    get, put = os.pipe()
    with os.fdopen(put, "wb") as file:
        file.write(DATA)
    with os.fdopen(get, "rb") as file:
        np.testing.assert_array_equal(bs.open(file)["w"].numpy(), VALUES)


def test_a_raw_pipe_is_read_to_its_end() -> None:
    get, put = os.pipe()
    os.write(put, DATA)
    os.close(put)
    with os.fdopen(get, "rb", buffering=0) as file:
        np.testing.assert_array_equal(bs.open(file)["w"].numpy(), VALUES)


def test_a_member_of_a_zip_is_a_source() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("w.safetensors", DATA)
    with zipfile.ZipFile(archive) as file, file.open("w.safetensors") as member:
        np.testing.assert_array_equal(bs.open(member)["w"].numpy(), VALUES)


@pytest.mark.parametrize("text", [io.StringIO("{}"), io.TextIOWrapper(io.BytesIO(DATA))])
def test_a_file_in_text_mode_is_refused(text: io.TextIOBase) -> None:
    with pytest.raises(bs.errors.UsageError, match='"rb"'):
        bs.open(text)


def test_an_object_whose_read_gives_text_is_refused() -> None:
    class Text:
        def read(self, size: int = -1) -> str:
            return "text"

    with pytest.raises(bs.errors.UsageError, match='"rb"'):
        bs.open(Text())


def test_a_closed_file_object_is_refused() -> None:
    file = io.BytesIO(DATA)
    file.close()
    with pytest.raises(bs.errors.SourceClosedError, match="closed"):
        bs.open(file)


def test_a_file_object_that_was_closed_after_opening_gives_no_tensors() -> None:
    file = io.BytesIO(DATA)
    snapshot = bs.open(file)["w"]
    file.close()
    with pytest.raises(bs.errors.SourceClosedError, match="before closing"):
        snapshot.numpy()


def test_a_file_object_that_was_cut_is_an_error_and_never_zeros() -> None:
    file = io.BytesIO(DATA)
    snapshot = bs.open(file)["b"]
    file.truncate(len(DATA) - 2)
    with pytest.raises(bs.errors.TruncatedError, match="ends at"):
        snapshot.numpy()
    with pytest.raises(bs.errors.TruncatedError):
        snapshot.tobytes()


class Broken(io.BytesIO):
    """A file on a disk that fails while its data is read."""

    def readinto(self, out: object) -> int:
        if self.tell() > 8:
            raise OSError(5, "Input/output error")
        return super().readinto(out)  # type: ignore[arg-type]


def test_an_error_of_the_file_object_is_one_of_ours() -> None:
    data = safetensors_bytes({"w": np.zeros(100_000, np.float32)})
    with pytest.raises(bs.errors.SourceError, match="Input/output"):
        bs.open(Broken(data))["w"].numpy()


def test_an_error_while_a_pipe_is_read_is_one_of_ours() -> None:
    class Reset:
        def read(self, size: int = -1) -> bytes:
            raise ConnectionResetError(104, "Connection reset by peer")

    with pytest.raises(bs.errors.SourceError, match="Connection reset"):
        bs.open(Reset())


def test_a_gzip_that_was_cut_is_an_error_of_ours() -> None:
    whole = gzip.compress(np.random.default_rng(0).bytes(5000) + DATA)
    for kept in (12, 3000, len(whole) - 1):
        with pytest.raises(bs.errors.SourceError, match="EOFError"):
            bs.open(gzip.GzipFile(fileobj=io.BytesIO(whole[:kept])))


def test_a_file_object_is_named_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "odd.bpk"
    path.write_bytes(b"NRUB\1\0\xff\xff\xff\xff")
    with path.open("rb") as file, pytest.raises(bs.errors.TruncatedError, match=r"odd\.bpk"):
        bs.open(file)


def test_a_zip_member_that_was_damaged_is_an_error_of_ours() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("w.safetensors", DATA)
    damaged = archive.getvalue().replace(DATA[-4:], b"zzzz", 1)
    with (
        zipfile.ZipFile(io.BytesIO(damaged)) as file,
        file.open("w.safetensors") as member,
        pytest.raises(bs.errors.SourceError, match="BadZipFile"),
    ):
        bs.read(member)
