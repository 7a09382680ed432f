"""When saving fails, nothing is left behind, and a full disk says how much was needed."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from tests.sources.processes import run_python

BIG = {"a": np.arange(60_000, dtype=np.float32), "b": np.ones(3, np.float32), "c": np.ones(50_000, np.float32)}


def lazy(blocks: Callable[[], Iterator[bytes]]) -> list[bs.TensorSnapshot]:
    return [
        bs.TensorSnapshot.from_data("first", np.ones(40_000, np.float32)),
        bs.TensorSnapshot.from_blocks("x", "U8", (200_000,), blocks),
    ]


@pytest.mark.parametrize("format", ["bpk", "safetensors"])
@pytest.mark.parametrize("error", [RuntimeError("it broke"), KeyboardInterrupt(), SystemExit(3), MemoryError()])
@pytest.mark.parametrize("before", [None, b"the old file"])
def test_a_failure_in_a_generator_leaves_no_trace(
    tmp_path: Path, format: str, error: BaseException, before: bytes | None
) -> None:
    path = tmp_path / f"w.{format}"
    if before is not None:
        path.write_bytes(before)

    def blocks() -> Iterator[bytes]:
        yield bytes(100_000)
        raise error

    with pytest.raises(type(error)):
        bs.save(lazy(blocks), path, overwrite=before is not None)
    assert os.listdir(tmp_path) == ([] if before is None else [path.name])
    assert before is None or path.read_bytes() == before


@pytest.mark.parametrize("sizes", [[100_000], [200_001], [200_000, 1], []])
def test_blocks_that_do_not_add_up_leave_no_trace(tmp_path: Path, sizes: list[int]) -> None:
    with pytest.raises(bs.errors.TensorDataError, match=r"'x'.*200000 bytes"):
        bs.save(lazy(lambda: (bytes(size) for size in sizes)), tmp_path / "w.bpk")
    assert os.listdir(tmp_path) == []


def test_a_small_tensor_whose_blocks_do_not_add_up_leaves_no_trace(tmp_path: Path) -> None:
    for size in (3, 5):
        snapshot = bs.TensorSnapshot.from_blocks("x", "U8", (4,), lambda size=size: [bytes(size)])
        with pytest.raises(bs.errors.TensorDataError, match="'x'"):
            bs.save([snapshot], tmp_path / "w.bpk")
    assert os.listdir(tmp_path) == []


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["posix_fallocate", "write", "writev"])
def test_a_full_disk_says_how_much_was_needed_and_leaves_no_trace(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(bs.save(BIG, bytes, format="bpk"))
    path = tmp_path / "w.bpk"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, call, full)
    if call == "write":  # which continues what `writev` did not take
        writev = os.writev
        monkeypatch.setattr(os, "writev", lambda fd, some: writev(fd, [bytes(some[0])[:100]]))
    with pytest.raises(bs.errors.NoSpaceError, match=f"{size:,} bytes are needed") as caught:
        bs.save(BIG, path, overwrite=True)
    monkeypatch.undo()
    assert caught.value.errno == errno.ENOSPC and "nothing was changed" in str(caught.value)
    assert os.listdir(tmp_path) == ["w.bpk"] and path.read_bytes() == b"old"


@pytest.mark.parametrize("call", ["fsync", "fchmod", "replace"])
def test_a_failure_at_the_very_end_leaves_the_old_file(tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.bpk"
    path.write_bytes(b"old")

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, call, broken)
    with pytest.raises(bs.errors.SourceError, match="Input/output"):
        bs.save(BIG, path, overwrite=True)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["w.bpk"] and path.read_bytes() == b"old"


def test_a_file_system_that_cannot_reserve_space_is_written_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", unsupported)
    bs.save(BIG, tmp_path / "w.bpk")
    assert (tmp_path / "w.bpk").read_bytes() == bs.save(BIG, bytes, format="bpk")


def test_space_is_reserved_before_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, int]] = []
    fallocate, writev = os.posix_fallocate, os.writev
    monkeypatch.setattr(os, "posix_fallocate", lambda fd, at, size: (done.append(("reserve", size)), fallocate(fd, at, size))[1])
    monkeypatch.setattr(os, "writev", lambda fd, some: (done.append(("write", 0)), writev(fd, some))[1])
    bs.save({"a": [1.0], "b": [2.0]}, tmp_path / "w.bpk")
    assert done[0] == ("reserve", (tmp_path / "w.bpk").stat().st_size) and ("write", 0) in done


def test_a_limit_of_the_file_size_leaves_no_trace(tmp_path: Path) -> None:
    run_python(
        """
import os, resource, signal, sys, numpy as np
import burnstore as bs
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for reserve in (True, False):
    if not reserve:
        del os.posix_fallocate
    for tensors in ({"a": np.ones(90_000)}, {str(i): np.ones(1000) for i in range(90)}):
        try:
            bs.save(tensors, sys.argv[1] + "/w.bpk")
        except bs.errors.SourceError as error:
            assert "w.bpk" in str(error) and "too large" in str(error), error
        else:
            raise SystemExit("it was saved")
        assert os.listdir(sys.argv[1]) == []
bs.save({"a": np.ones(90)}, sys.argv[1] + "/w.bpk")
""",
        tmp_path,
    )


def test_a_disk_that_is_really_full_leaves_no_trace() -> None:
    """Shared memory is a disk of known size: what is larger than all of it cannot be reserved."""
    free = shutil.disk_usage("/dev/shm").total
    folder = Path("/dev/shm") / f"burnstore-{os.getpid()}"
    folder.mkdir()
    try:
        huge = bs.TensorSnapshot.from_blocks("x", "U8", (free + 2**20,), lambda: iter(()))
        with pytest.raises(bs.errors.NoSpaceError, match="bytes are needed"):
            bs.save([huge], folder / "w.safetensors")
        assert os.listdir(folder) == []
    finally:
        shutil.rmtree(folder)


def test_a_failure_leaks_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with pytest.raises(bs.errors.TensorDataError):
            bs.save(lazy(lambda: iter(())), tmp_path / "w.bpk")
    bs.save(BIG, tmp_path / "w.bpk")
    bs.save(BIG, tmp_path / "w.bpk", overwrite=True)
    assert len(os.listdir("/proc/self/fd")) == before


def test_ctrl_c_leaves_no_trace(tmp_path: Path) -> None:
    """A real signal, while the system writes."""
    run_python(
        """
import os, signal, sys
import burnstore as bs
def blocks():
    for number in range(100):
        if number == 50:
            os.kill(os.getpid(), signal.SIGINT)
        yield bytes(100_000)
try:
    bs.save([bs.TensorSnapshot.from_blocks("x", "U8", (10_000_000,), blocks)], sys.argv[1] + "/w.bpk")
except KeyboardInterrupt:
    assert os.listdir(sys.argv[1]) == []
else:
    raise SystemExit("it went on")
""",
        tmp_path,
    )


def test_a_folder_without_permission_is_an_error_of_both_trees(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    run_python(
        """
import os, sys
import burnstore as bs
bs.save({"a": [1.0]}, sys.argv[1] + "/first.bpk")  # imports what is needed while it may
os.chdir(sys.argv[1])
os.chmod(".", 0o555)
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    bs.save({"a": [1.0]}, "w.bpk")
except PermissionError as error:
    assert isinstance(error, bs.errors.SourcePermissionError) and "permission denied" in str(error), error
else:
    raise SystemExit("it was saved")
""",
        tmp_path,
    )
    tmp_path.chmod(0o755)
    assert os.listdir(tmp_path) == ["first.bpk"]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_in_any_shard_leaves_no_shard_and_no_index(tmp_path: Path, failing: int) -> None:
    def broken() -> Iterator[bytes]:
        yield bytes(10)
        raise RuntimeError("it broke")

    shards = [
        bs.TensorSnapshot.from_blocks(f"t{number}", "U8", (100_000,), broken)
        if number == failing
        else bs.TensorSnapshot.from_data(f"t{number}", np.zeros(100_000, np.uint8))
        for number in range(3)
    ]
    with pytest.raises(RuntimeError):
        bs.save(shards, tmp_path / "model.safetensors", shard_size=100_000)
    assert os.listdir(tmp_path) == []
