"""Files of this machine: which paths are taken, how they are read, and what is said of those that cannot be."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from burnstore.sources import local, mounts
from tests.sources.handmade import safetensors_bytes
from tests.sources.processes import run_python

VALUES = np.arange(50_000, dtype=np.float32).reshape(100, 500)
DATA = safetensors_bytes({"w": VALUES, "e": np.zeros((0, 4), np.int64)})
IO = ["auto", "mmap", "pread"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "w.safetensors"
    path.write_bytes(DATA)
    return path


class PathLike:
    def __init__(self, path: object) -> None:
        self._path = path

    def __fspath__(self) -> object:
        return self._path


@pytest.mark.parametrize("spelled", [str, Path, os.fsencode, PathLike, lambda path: PathLike(os.fsencode(path))])
def test_a_path_may_be_text_or_a_path_object(path: Path, spelled: object) -> None:
    given = spelled(path if spelled in (Path, os.fsencode) else str(path))  # type: ignore[operator]
    if isinstance(given, bytes):
        given = os.fsdecode(given)
    np.testing.assert_array_equal(bs.open(given)["w"].numpy(), VALUES)


def test_bytes_are_content_and_never_a_path(path: Path) -> None:
    with pytest.raises(bs.errors.UnknownFormatError):
        bs.open(os.fsencode(path))


@pytest.mark.parametrize("io", IO)
def test_every_way_of_reading_gives_the_same_values(path: Path, io: str) -> None:
    store = bs.open(path, io=io)  # type: ignore[arg-type]
    np.testing.assert_array_equal(store["w"].numpy(), VALUES)
    np.testing.assert_array_equal(store["w"].numpy(copy=True), VALUES)
    np.testing.assert_array_equal(store["w"][7:9, ::-3], VALUES[7:9, ::-3])
    assert store["w"].tobytes() == VALUES.tobytes()
    assert b"".join(bytes(block) for block in store["w"].data.blocks()) == VALUES.tobytes()
    assert store["e"].numpy().shape == (0, 4) and store["e"].tobytes() == b""


@pytest.mark.parametrize(("io", "is_view"), [("auto", True), ("mmap", True), ("pread", False)])
def test_a_mapped_file_gives_read_only_views_and_pread_owned_arrays(path: Path, io: str, is_view: bool) -> None:
    array = bs.open(path, io=io)["w"].numpy()  # type: ignore[arg-type]
    assert array.flags.writeable is not is_view
    with path.open("r+b") as file:
        file.seek(-4, 2)
        file.write(np.float32(-1).tobytes())
    assert array[-1, -1] == (-1 if is_view else VALUES[-1, -1])


@pytest.mark.parametrize("io", IO)
def test_a_copy_is_owned_writable_and_aligned(path: Path, io: str) -> None:
    array = bs.open(path, io=io)["w"].numpy(copy=True)  # type: ignore[arg-type]
    assert array.flags.writeable and array.flags.aligned
    array[0] = 9
    assert path.read_bytes() == DATA


def test_a_file_of_a_network_file_system_is_not_mapped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "is_network", lambda device: device == path.stat().st_dev)
    monkeypatch.setitem(__import__("sys").modules, "mmap", None)
    store = bs.open(path)
    np.testing.assert_array_equal(store["w"].numpy(), VALUES)
    assert store["w"].numpy().flags.writeable


def test_the_device_of_the_file_is_looked_up_in_the_mount_table(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(local, "is_network", lambda device: asked.append(device) or False)
    bs.open(path)["w"].numpy()
    assert asked == [path.stat().st_dev] and local.is_network is not mounts.is_network


def test_io_mmap_maps_on_a_network_file_system_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "is_network", lambda _: True)
    assert not bs.open(path, io="mmap")["w"].numpy().flags.writeable


def test_pread_gives_no_view_and_maps_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mmap", None)
    store = bs.open(path, io="pread")
    np.testing.assert_array_equal(store["w"].numpy(), VALUES)
    assert store["w"].data.view() is None


def test_an_unknown_way_of_reading_is_refused(path: Path) -> None:
    with pytest.raises(bs.errors.UsageError, match="mmap"):
        bs.open(path, io="fast")  # type: ignore[arg-type]


def test_short_reads_of_the_system_are_continued(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, real_v = os.pread, os.preadv
    monkeypatch.setattr(local, "_pread", lambda fd, length, begin: real(fd, min(length, 1000), begin))
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, begin: real_v(fd, [memoryview(buffers[0])[:4097]], begin))
    np.testing.assert_array_equal(bs.open(path, io="pread")["w"].numpy(), VALUES)


def test_a_header_larger_than_the_first_read_is_read_whole(tmp_path: Path) -> None:
    many = {f"tensor.{number:05d}": np.array([number], np.int32) for number in range(3000)}
    path = tmp_path / "many.safetensors"
    path.write_bytes(safetensors_bytes(many))
    for io in IO:
        store = bs.open(path, io=io)  # type: ignore[arg-type]
        assert list(store) == list(many) and store["tensor.02999"].numpy() == 2999


@pytest.mark.parametrize("path", ["missing.bpk", "~/missing.bpk", "missing/folder/w.bpk", ""])
def test_a_missing_file_is_an_error_of_both_trees(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="check the path") as caught:
        bs.open(path)
    assert isinstance(caught.value, bs.errors.SourceNotFoundError) and caught.value.errno == 2


def test_a_tilde_in_a_path_is_a_letter_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for Python's own `open`: only a shell gives it a meaning."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~").mkdir()
    (tmp_path / "~" / "w.safetensors").write_bytes(DATA)
    assert bs.open("~/w.safetensors")["w"].shape == (100, 500)


def test_a_nul_in_a_path_is_refused() -> None:
    with pytest.raises(bs.errors.SourceError, match="null") as caught:
        bs.open("a\0b.bpk")
    assert "\0" not in str(caught.value)


def test_a_file_in_the_place_of_a_folder_is_an_error_of_ours(path: Path) -> None:
    with pytest.raises(bs.errors.SourceError, match=r"[Nn]ot a directory"):
        bs.open(path / "w.safetensors")


def test_a_path_that_is_too_long_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(bs.errors.SourceError, match="too long"):
        bs.open(tmp_path / ("x" * 300))


def test_a_loop_of_symlinks_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "a.bpk").symlink_to("b.bpk")
    (tmp_path / "b.bpk").symlink_to("a.bpk")
    with pytest.raises(bs.errors.SourceError, match="symbolic links"):
        bs.open(tmp_path / "a.bpk")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="folder"):
        bs.open(tmp_path)


def test_a_fifo_is_refused_at_once_with_the_advice_to_pass_a_file_object(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.safetensors"
    os.mkfifo(fifo)
    run_python(
        """
import signal, sys
signal.alarm(10)  # a hang ends the process
import burnstore as bs
try:
    bs.open(sys.argv[1])
except bs.errors.SourceError as error:
    assert "FIFO" in str(error) and 'open(path, "rb")' in str(error), error
else:
    raise SystemExit("a FIFO was opened")
""",
        fifo,
    )


def test_a_device_and_a_socket_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(bs.errors.SourceError, match=r'device.*open\(path, "rb"\)'):
        bs.open("/dev/null")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        with pytest.raises(bs.errors.SourceError):
            bs.open("s")


def test_an_empty_file_is_diagnosed(tmp_path: Path) -> None:
    path = tmp_path / "empty.safetensors"
    path.touch()
    with pytest.raises(bs.errors.UnknownFormatError, match="empty"):
        bs.open(path)


def test_a_file_without_permission_is_an_error_of_both_trees(path: Path) -> None:
    path.chmod(0)
    path.parent.chmod(0o755)
    run_python(
        """
import os, sys
import burnstore as bs
bs.open({"a": [1.0]})["a"].numpy()  # imports what is needed while it may
try:
    bs.open(sys.argv[1] + ".missing")
except bs.errors.SourceNotFoundError:
    pass
if os.getuid() == 0:  # root may read everything
    where = os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY)
    os.fchdir(where)
    os.close(where)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    name = os.path.basename(sys.argv[1])
else:
    name = sys.argv[1]
try:
    bs.open(name)
except PermissionError as error:
    assert isinstance(error, bs.errors.SourcePermissionError) and error.errno == 13, error
    assert "permission denied" in str(error) and "owner and mode" in str(error), error
else:
    raise SystemExit("it was opened")
""",
        path,
    )
