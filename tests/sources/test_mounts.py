"""Which file systems are reached over a network: the mount table says so."""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Iterator

import pytest

from burnstore.sources import mounts

TABLE = """\
21 28 0:19 / /proc rw,nosuid shared:12 - proc proc rw
29 28 0:25 / /run/user rw - tmpfs tmpfs rw
31 28 0:44 / /mnt/my\\040share rw,relatime shared:5 master:1 - nfs4 server:/export rw,vers=4.2
32 28 0:45 / /mnt/bucket rw - fuse.s3fs s3fs rw
33 28 0:46 / /mnt/ntfs rw - fuseblk /dev/sdb1 rw
34 28 0:47 / /mnt/fusectl rw - fusectl fusectl rw
35 28 0:48 / /mnt/c rw - 9p drvfs rw
36 28 0:440 / /mnt/other rw - ext4 /dev/sda1 rw
28 1 8:1 / / rw - ext4 /dev/sda1 rw
"""


@pytest.fixture(autouse=True)
def mount_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = builtins.open
    monkeypatch.setattr(mounts, "_known", {})
    monkeypatch.setattr(
        builtins, "open", lambda path, *a, **k: io.StringIO(TABLE) if path == "/proc/self/mountinfo" else real(path, *a, **k)
    )
    yield


@pytest.mark.parametrize(
    ("minor", "network"), [(19, False), (25, False), (44, True), (45, True), (47, False), (48, True), (440, False), (99, False)]
)
def test_the_mount_table_tells_network_file_systems(minor: int, network: bool) -> None:
    assert mounts.is_network(os.makedev(0, minor)) is network


def test_a_device_with_a_major_number_is_a_disk_and_the_table_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_in_mount_table", lambda _: pytest.fail("read"))
    assert not mounts.is_network(os.makedev(8, 1))


def test_the_table_is_read_once_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mounts.is_network(os.makedev(0, 44))
    monkeypatch.setattr(mounts, "_in_mount_table", lambda _: pytest.fail("read again"))
    assert mounts.is_network(os.makedev(0, 44))


def test_without_a_mount_table_nothing_is_remote(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(builtins, "open", missing)
    assert not mounts.is_network(os.makedev(0, 44))
