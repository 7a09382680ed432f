"""A file appears whole or not at all, and looks like the one that it replaces."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from burnstore.sources import atomic
from tests.sources.handmade import safetensors_bytes

SMALL = {"a": np.array([1.0, 2.0], np.float32)}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def value(path: Path) -> float:
    """The last four bytes as a float, read without burnstore."""
    return float(np.frombuffer(path.read_bytes()[-4:], np.float32)[0])


def test_nothing_appears_before_the_last_byte_is_written(tmp_path: Path) -> None:
    path = tmp_path / "w.bpk"
    seen = []

    def blocks() -> Iterator[bytes]:
        for _ in range(3):
            seen.append(path.exists())
            yield bytes(100_000)

    bs.save([bs.TensorSnapshot.from_blocks("x", "U8", (300_000,), blocks)], path)
    assert seen == [False] * 3 and path.stat().st_size > 300_000


def test_the_old_file_is_whole_until_the_new_one_is(tmp_path: Path) -> None:
    path = tmp_path / "w.bpk"
    path.write_bytes(b"old")
    seen = []

    def blocks() -> Iterator[bytes]:
        for _ in range(2):
            seen.append(path.read_bytes())
            yield bytes(100_000)

    bs.save([bs.TensorSnapshot.from_blocks("x", "U8", (200_000,), blocks)], path, overwrite=True)
    assert seen == [b"old"] * 2 and path.read_bytes()[:4] == b"NRUB"


def test_an_existing_file_is_kept_without_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "w.bpk"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="overwrite=True") as caught:
        bs.save(SMALL, path)
    assert isinstance(caught.value, bs.errors.TargetExistsError)
    assert path.read_bytes() == b"precious" and os.listdir(tmp_path) == ["w.bpk"]


def test_a_file_that_appears_meanwhile_is_kept_without_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "w.bpk"

    def blocks() -> Iterator[bytes]:
        path.write_bytes(b"precious")
        yield bytes(100_000)

    with pytest.raises(bs.errors.TargetExistsError):
        bs.save([bs.TensorSnapshot.from_blocks("x", "U8", (100_000,), blocks)], path)
    assert path.read_bytes() == b"precious" and os.listdir(tmp_path) == ["w.bpk"]


def test_without_hard_links_an_existing_file_is_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "w.bpk"
    bs.save(SMALL, path)
    assert path.read_bytes()[:4] == b"NRUB"

    def blocks() -> Iterator[bytes]:
        (tmp_path / "v.bpk").write_bytes(b"precious")
        yield bytes(100_000)

    with pytest.raises(bs.errors.TargetExistsError):
        bs.save([bs.TensorSnapshot.from_blocks("x", "U8", (100_000,), blocks)], tmp_path / "v.bpk")
    assert (tmp_path / "v.bpk").read_bytes() == b"precious" and sorted(os.listdir(tmp_path)) == ["v.bpk", "w.bpk"]


@pytest.mark.parametrize("permissions", [0o600, 0o644, 0o640, 0o664])
def test_the_permissions_of_a_replaced_file_are_kept(tmp_path: Path, permissions: int) -> None:
    path = tmp_path / "w.bpk"
    path.touch()
    path.chmod(permissions)
    bs.save(SMALL, path, overwrite=True)
    assert mode(path) == permissions


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_the_owner_of_a_replaced_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "w.bpk"
    path.touch()
    os.chown(path, 65534, 65534)
    bs.save(SMALL, path, overwrite=True)
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


@pytest.mark.parametrize(("umask", "permissions"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_new_file_honors_the_umask(tmp_path: Path, umask: int, permissions: int, overwrite: bool) -> None:
    before = os.umask(umask)
    try:
        bs.save(SMALL, tmp_path / "w.bpk", overwrite=overwrite)
    finally:
        os.umask(before)
    assert mode(tmp_path / "w.bpk") == permissions


def test_what_a_symlink_points_to_is_replaced_and_the_link_is_kept(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "w.bpk", tmp_path / "link.bpk"
    target.write_bytes(b"old")
    link.symlink_to(Path("far") / "w.bpk")
    with pytest.raises(bs.errors.TargetExistsError):
        bs.save(SMALL, link)
    bs.save(SMALL, link, overwrite=True)
    assert link.is_symlink() and not target.is_symlink() and value(target) == 2.0
    assert os.listdir(tmp_path / "far") == ["w.bpk"] and sorted(os.listdir(tmp_path)) == ["far", "link.bpk"]


def test_a_dangling_symlink_counts_as_a_file_that_exists(tmp_path: Path) -> None:
    link = tmp_path / "link.bpk"
    link.symlink_to("w.bpk")
    with pytest.raises(bs.errors.TargetExistsError):
        bs.save(SMALL, link)
    assert not (tmp_path / "w.bpk").exists()
    bs.save(SMALL, link, overwrite=True)
    assert link.is_symlink() and value(tmp_path / "w.bpk") == 2.0


def test_a_loop_of_symlinks_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "a.bpk").symlink_to("a.bpk")
    with pytest.raises(bs.errors.SourceError):
        bs.save(SMALL, tmp_path / "a.bpk", overwrite=True)


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_saving_over_the_file_that_the_tensors_come_from_is_safe(tmp_path: Path, io: str) -> None:
    path = tmp_path / "w.safetensors"
    arrays = {"a": np.arange(50_000, dtype=np.float32), "b": np.arange(7, dtype=np.int64)}
    path.write_bytes(safetensors_bytes(arrays))
    store = bs.open(path, io=io)  # type: ignore[arg-type]
    view, lazy = store["a"].numpy(), store["b"]
    bs.save({"b": store["b"], "a2": store["a"]}, path, overwrite=True)
    np.testing.assert_array_equal(view, arrays["a"])
    np.testing.assert_array_equal(lazy.numpy(), arrays["b"])
    again = bs.read(path)
    assert list(again) == ["b", "a2"]  # I64 before F32, as the official writer sorts
    np.testing.assert_array_equal(again["a2"], arrays["a"])


def test_saving_and_converting_a_file_over_itself_is_safe(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    arrays = {"a": np.arange(50_000, dtype=np.float32), "b": np.arange(7, dtype=np.int64)}
    path.write_bytes(safetensors_bytes(arrays, {"k": "v"}))
    view = bs.open(path)["a"].numpy()
    bs.save(bs.open(path), path, overwrite=True)
    bs.convert(path, path, overwrite=True)
    bs.save(bs.open(path), path, overwrite=True)
    np.testing.assert_array_equal(view, arrays["a"])
    for name, array in bs.read(path).items():
        np.testing.assert_array_equal(array, arrays[name])
    with pytest.raises(bs.errors.TargetExistsError):
        bs.convert(path, path)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced, in order, and when the rename comes."""
    done: list[str] = []
    fsync, replace, link = os.fsync, os.replace, os.link

    def note(fd: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "replace", lambda *a: (done.append("rename"), replace(*a)))
    monkeypatch.setattr(os, "link", lambda *a: (done.append("rename"), link(*a)))
    return done


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_file_is_synced_before_the_rename_and_the_folder_after_it(tmp_path: Path, synced: list[str], overwrite: bool) -> None:
    bs.save(SMALL, tmp_path / "w.bpk", overwrite=overwrite)
    assert synced == ["file", "rename", "folder"]


def test_nothing_is_synced_where_that_was_switched_off(tmp_path: Path, synced: list[str]) -> None:
    bs.save(SMALL, tmp_path / "w.bpk", fsync=False)
    bs.convert(tmp_path / "w.bpk", tmp_path / "w.safetensors", fsync=False)
    assert synced == ["rename", "rename"]


def test_a_folder_that_is_not_there_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no folder .*missing.*; create it first"):
        bs.save(SMALL, tmp_path / "missing" / "w.bpk")
    assert os.listdir(tmp_path) == []


def test_a_folder_is_no_target(tmp_path: Path) -> None:
    (tmp_path / "w.bpk").mkdir()
    for overwrite in (False, True):
        with pytest.raises(IsADirectoryError, match="folder"):
            bs.save(SMALL, tmp_path / "w.bpk", overwrite=overwrite)


def test_a_device_or_a_fifo_is_no_target_and_nothing_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.bpk")
    for path in (tmp_path / "w.bpk", Path("/dev/null")):
        with pytest.raises(bs.errors.SourceError, match=r'open\(path, "wb"\)'):
            bs.save(SMALL, path, format="bpk", overwrite=True)


def test_a_nul_in_a_path_is_refused() -> None:
    with pytest.raises(bs.errors.SourceError, match="null"):
        bs.save(SMALL, "a\0b.bpk")


def test_a_file_in_the_place_of_the_folder_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(bs.errors.SourceError):
        bs.save(SMALL, tmp_path / "file" / "w.bpk")


@pytest.mark.parametrize("name", ["x" * 251, "模" * 80, "é" * 120, "a b'\"", "-", ".hidden"], ids=lambda name: ascii(name[:8]))
def test_every_name_that_the_system_takes_can_be_saved_to(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.bpk"
    bs.save(SMALL, path)
    assert path.read_bytes()[:4] == b"NRUB" and os.listdir(tmp_path) == [path.name]


def test_a_name_that_is_too_long_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(bs.errors.SourceError, match="too long"):
        bs.save(SMALL, tmp_path / f"{'x' * 300}.bpk")
    assert os.listdir(tmp_path) == []


def test_a_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bs.save(SMALL, "w.bpk")
    assert value(tmp_path / "w.bpk") == 2.0


def test_a_descriptor_of_another_program_is_not_inherited(tmp_path: Path) -> None:
    with atomic.AtomicFile(tmp_path / "a", 1) as file:
        assert not os.get_inheritable(file.fd)
