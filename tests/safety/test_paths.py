"""Paths at which there is no file to read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

import burnstore as bs
from burnstore import errors
from tests.safety.prison import assert_refused, attack


@pytest.mark.parametrize("suffix", [".bpk", ".safetensors", ".safetensors.index.json", ""])
def test_a_folder_a_fifo_a_socket_and_a_gap_are_refused(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"folder{suffix}").mkdir()
    os.mkfifo(tmp_path / f"fifo{suffix}")
    (tmp_path / f"loop{suffix}").symlink_to(f"loop{suffix}")
    (tmp_path / f"dangling{suffix}").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / f"socket{suffix}"))
        for kind in ("folder", "fifo", "socket", "loop", "dangling", "missing"):
            assert_refused({kind: tmp_path / f"{kind}{suffix}"}, f"{kind}{suffix}")


def test_devices_are_refused() -> None:
    assert_refused({name: f"/dev/{name}" for name in ("zero", "null", "random", "full", "tty")}, "/dev/")


def test_paths_that_no_system_has_are_refused(tmp_path: Path) -> None:
    assert_refused({"NUL": "model\0.bpk", "surrogate": "\ud800.bpk"})
    assert all(outcome.error for outcome in attack({"nothing": "", "long": "x" * 5000, "long parts": "x/" * 3000}).values())
    (tmp_path / "file").write_bytes(b"x")
    assert_refused({"below a file": tmp_path / "file" / "model.bpk"})


def test_the_errors_are_those_that_a_caller_expects(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        bs.open(tmp_path / "missing.bpk")
    with pytest.raises(IsADirectoryError) as folder:
        bs.open(tmp_path)
    assert isinstance(missing.value, errors.SourceNotFoundError) and isinstance(folder.value, errors.SourceIsDirectoryError)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.bpk"
    path.write_bytes(b"NRUB")
    path.chmod(0)
    assert_refused({"secret": path}, "secret.bpk", "permission")


def test_a_refusal_by_the_system_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without a user who may not: root reads everything, so the system's answer is put in its mouth."""

    def refuse(path: object, *arguments: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    path = tmp_path / "secret.bpk"
    path.write_bytes(b"NRUB")
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(errors.SourcePermissionError, match=r"secret\.bpk: permission denied"):
            bs.open(path)
