"""A file that appears whole or not at all.

    scratch file beside the target  →  space reserved  →  written  →  fsync  →  renamed over the target  →  fsync of the folder

Until the rename the target is untouched, and a failure or Ctrl-C removes the scratch file. Because the old file is
replaced and never written into, tensors that are mapped from it stay valid while they are saved over it.
"""

from __future__ import annotations

import errno
import os
import stat

from burnstore.errors import (
    NoSpaceError,
    SourceError,
    SourceIsDirectoryError,
    SourceNotFoundError,
    TargetExistsError,
    from_os_error,
)


class AtomicFile:
    """The scratch file of one target; `commit()` makes it the target, leaving the `with` block without it discards it.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.bin")
    >>> with AtomicFile(path, size=2) as file:
    ...     _ = os.write(file.fd, b"hi")
    ...     os.path.exists(path)
    ...     file.commit()
    ...     os.path.exists(path)
    False
    True
    """

    def __init__(self, path: str | os.PathLike[str], size: int, *, overwrite: bool = False, fsync: bool = True) -> None:
        self.name = os.fspath(path)
        try:
            self._target = os.path.realpath(self.name)  # a symlink stays, what it points to is replaced
        except (OSError, ValueError) as error:
            raise from_os_error(error if isinstance(error, OSError) else OSError(str(error)), self.name) from None
        if self.name.endswith(os.sep):
            raise SourceIsDirectoryError("this is the path of a folder", where=self.name, do="give the path of a file in it")
        self._overwrite = overwrite
        self._fsync = fsync
        self._committed = False
        self._replaced = self._check_target()
        self._scratch, self.fd = self._create()
        try:
            self._reserve(size)
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def finish(self) -> None:
        """Bring all of it to the disk and close it; `commit()` does so if nobody did."""
        if self.fd < 0:
            return
        try:
            if self._replaced is not None:
                self._keep_permissions(self._replaced)
            if self._fsync:
                os.fsync(self.fd)
        except OSError as error:
            raise self.explain(error) from None
        os.close(self.fd)
        self.fd = -1

    def commit(self) -> None:
        """Make the scratch file the target."""
        self.finish()
        try:
            self._rename()
        except OSError as error:
            raise error if isinstance(error, SourceError) else self.explain(error) from None
        self._committed = True
        if self._fsync:
            _fsync_folder(os.path.dirname(self._target))

    def retract(self) -> None:
        """Remove the target again, if `commit()` made it."""
        if self._committed:
            os.unlink(self._target)

    def discard(self) -> None:
        """Remove the scratch file; nothing happens after `commit()`."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        if self._scratch:
            try:
                os.unlink(self._scratch)
            except OSError:
                pass
            self._scratch = ""

    def explain(self, error: OSError, needed: int | None = None) -> SourceError:
        """The error of our tree for one that came while writing."""
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return from_os_error(error, self.name)
        if needed is None:
            needed = os.fstat(self.fd).st_size if self.fd >= 0 else 0
        try:
            disk = os.statvfs(os.path.dirname(self._target))
            free = f"{disk.f_bavail * disk.f_frsize:,}"
        except (OSError, AttributeError):
            free = "fewer"
        made = NoSpaceError(
            f"the disk is full: {needed:,} bytes are needed and {free} are free",
            where=self.name,
            do="free some space or save elsewhere; nothing was changed",
        )
        made.errno = error.errno
        return made

    def _check_target(self) -> os.stat_result | None:
        try:
            status = os.stat(self._target)
        except FileNotFoundError:
            if os.path.islink(self.name) and not self._overwrite:
                raise self._exists() from None
            folder = os.path.dirname(self._target)
            if not os.path.isdir(folder):
                raise SourceNotFoundError(f"there is no folder {folder}", where=self.name, do="create it first") from None
            return None
        except (OSError, ValueError) as error:
            raise from_os_error(error if isinstance(error, OSError) else OSError(str(error)), self.name) from None
        if stat.S_ISDIR(status.st_mode):
            raise SourceIsDirectoryError("this is a folder", where=self.name, do="give the path of a file in it")
        if not stat.S_ISREG(status.st_mode):
            raise SourceError("this is not a regular file", where=self.name, do='pass a file object: open(path, "wb")')
        if not self._overwrite:
            raise self._exists()
        return status

    def _exists(self) -> TargetExistsError:
        return TargetExistsError("the file exists", where=self.name, do="pass overwrite=True to replace it")

    def _create(self) -> tuple[str, int]:
        folder = os.path.dirname(self._target)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        while True:
            scratch = os.path.join(folder, f".burnstore-{os.getpid()}-{os.urandom(6).hex()}.tmp")
            try:
                return scratch, os.open(scratch, flags, 0o666)
            except FileExistsError:
                continue
            except OSError as error:
                raise from_os_error(error, self.name) from None

    def _reserve(self, size: int) -> None:
        """Ask for all the space now: a full disk is known before the first byte, and the file lies in one piece."""
        if not size or not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self.fd, 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise self.explain(error, size) from None

    def _keep_permissions(self, old: os.stat_result) -> None:
        try:
            os.fchown(self.fd, old.st_uid, old.st_gid)
        except (OSError, AttributeError):  # not ours to give away, or a system without owners
            pass
        if hasattr(os, "fchmod"):
            os.fchmod(self.fd, stat.S_IMODE(old.st_mode))

    def _rename(self) -> None:
        if self._overwrite or not hasattr(os, "link"):
            os.replace(self._scratch, self._target)
            self._scratch = ""
            return
        try:
            os.link(self._scratch, self._target)  # unlike a rename, this fails if the target appeared meanwhile
        except FileExistsError:
            raise self._exists() from None
        except OSError:  # a file system without hard links
            if os.path.lexists(self._target):
                raise self._exists() from None
            os.replace(self._scratch, self._target)
            self._scratch = ""
        else:
            self.discard()


def _fsync_folder(folder: str) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY)
    except OSError:  # a system where folders cannot be opened
        return
    try:
        os.fsync(fd)
    except OSError:
        pass
    finally:
        os.close(fd)
