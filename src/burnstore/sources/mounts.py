"""Whether a file lies on a network file system.

A page fault on a mapped network file is one small request that stops the thread that touched the memory, and a server
that goes away turns it into a fatal signal. So such files are read by `pread` in large pieces instead of being mapped.
"""

from __future__ import annotations

import os

_NETWORK = frozenset(
    [
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "fuseblk",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "pvfs2",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
    ]
)
_known: dict[int, bool] = {}


def is_network(device: int) -> bool:
    """Whether the file system with this `st_dev` is reached over a network.

    Disks have a device number of their own (major is not 0), so only what has none is looked up in the mount table.
    """
    if not hasattr(os, "major") or os.major(device) != 0:
        return False
    known = _known.get(device)
    if known is None:
        known = _known[device] = _in_mount_table(f"{os.major(device)}:{os.minor(device)}")
    return known


def _in_mount_table(device: str) -> bool:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as table:
            for line in table:
                mount, _, filesystem = line.partition(" - ")
                if mount.split(" ", 3)[2] == device:
                    kind = filesystem.split(" ", 1)[0]
                    return kind in _NETWORK or kind == "fuse" or kind.startswith("fuse.")
    except OSError:  # no such table on this system: nothing is known to be remote
        pass
    return False
