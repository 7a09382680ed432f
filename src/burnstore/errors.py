"""Every error that burnstore raises on purpose.

    BurnstoreError
    ├─ FormatError (ValueError)            a file's content breaks the rules of its format
    │  ├─ TruncatedError                   the file ends before its header says it should
    │  └─ UnknownFormatError               nothing that burnstore reads
    ├─ LimitError (ValueError)             a number in a file, or a file to be written, is over a cap of `Limits`
    ├─ DTypeError (TypeError)              a dtype that a format, or NumPy, cannot hold
    │  └─ QuantizedError                   plain values asked of a quantised tensor
    ├─ ConfigError (ValueError)            a value is not what a field of a configuration wants
    ├─ DialectError (ValueError)           the layout of a tensor depends on something that nobody said
    ├─ LoadError (ValueError)              a model was not loaded, and is as it was; `.report` says what did not fit
    ├─ TensorNotFoundError (KeyError)      no tensor of that name
    ├─ MetadataNotFoundError (KeyError)    no metadata of that key
    ├─ DuplicateNameError (ValueError)     one name for two tensors
    ├─ TensorDataError (ValueError)        the bytes given for a tensor are not what its shape and dtype need
    ├─ TensorIndexError (IndexError)       an index that a tensor does not have
    ├─ UsageError (TypeError)              a call that cannot mean anything
    ├─ ImmutableError (AttributeError)     a snapshot cannot be changed
    ├─ PickleRefusedError (TypeError)      a snapshot or a store cannot be sent to another process
    └─ SourceError (OSError)               the bytes cannot be had
       ├─ SourceNotFoundError (FileNotFoundError)
       ├─ SourcePermissionError (PermissionError)
       ├─ SourceIsDirectoryError (IsADirectoryError)
       ├─ SourceClosedError (ValueError)   the store was closed before its tensor was read
       ├─ TargetExistsError (FileExistsError)
       └─ NoSpaceError                     the disk cannot hold what is to be written

Each says what happened, where, and what to do next; `str()` of any of them is one plain line.

    >>> try:
    ...     raise FormatError("the header is not JSON", where="model.safetensors, byte 8", do="download it again")
    ... except ValueError as error:
    ...     print(error)
    model.safetensors, byte 8: the header is not JSON; download it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burnstore.outcome import ApplyResult

# A file can put anything into a message: names and shapes of any length.
_LONGEST = 600


class BurnstoreError(Exception):
    """The root of the tree: catch this to catch everything that burnstore refuses.

    >>> isinstance(FormatError("no"), BurnstoreError)
    True
    """

    def __init__(self, what: str, *, where: str | None = None, do: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.do = do

    def __str__(self) -> str:
        what = _cut(self.what)
        text = f"{_cut(self.where)}: {what}" if self.where else what
        if self.do:
            text = f"{text}; {_cut(self.do)}"
        text = one_line(text)
        return text if text.endswith((".", "?", "!")) else f"{text}."

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.do, getattr(self, "errno", None)))


def _rebuild(kind: type[BurnstoreError], what: str, where: str | None, do: str | None, errno: int | None) -> BurnstoreError:
    error = kind(what, where=where, do=do)
    if isinstance(error, OSError):
        error.errno = errno
    return error


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def one_line(text: str) -> str:
    """A text of unknown origin as one line that a terminal can show: what is not printable is escaped.

    >>> print(one_line("a\\x1b[31m\\n"))
    a\\x1b[31m\\n
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class BurnstoreWarning(UserWarning):
    """Something was done that one may want to know of, such as numbers in names that changed."""


class FormatError(BurnstoreError, ValueError):
    """A file's content breaks the rules of its format."""


class TruncatedError(FormatError):
    """The file ends before its header says it should."""


class UnknownFormatError(FormatError):
    """Nothing that burnstore reads; the message says what it looks like instead."""


class LimitError(BurnstoreError, ValueError):
    """A size is over one of the caps of `Limits`."""


class DTypeError(BurnstoreError, TypeError):
    """A dtype that the format, or NumPy, cannot hold."""


class QuantizedError(DTypeError):
    """Plain values were asked of a quantised tensor."""


class ConfigError(BurnstoreError, ValueError):
    """A value is not what a field of a configuration wants; `where` is its path, in dots."""


class DialectError(BurnstoreError, ValueError):
    """The layout of a tensor depends on something that nobody said."""


class LoadError(BurnstoreError, ValueError):
    """A model was not loaded and is as it was; `report` is the whole `ApplyResult` of what would have been done."""

    def __init__(self, what: str, *, where: str | None = None, do: str | None = None, report: ApplyResult | None = None) -> None:
        super().__init__(what, where=where, do=do)
        self.report = report

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_load, (self.what, self.where, self.do, self.report))


def _rebuild_load(what: str, where: str | None, do: str | None, report: ApplyResult | None) -> LoadError:
    return LoadError(what, where=where, do=do, report=report)


class TensorNotFoundError(BurnstoreError, KeyError):
    """No tensor has that name; the message suggests the likely one."""


class MetadataNotFoundError(BurnstoreError, KeyError):
    """No metadata has that key; the message lists those that are there."""


class DuplicateNameError(BurnstoreError, ValueError):
    """One name is given to two tensors."""


class TensorDataError(BurnstoreError, ValueError):
    """The bytes given for a tensor are not what its shape and dtype need."""


class TensorIndexError(BurnstoreError, IndexError):
    """An index that a tensor does not have."""


class UsageError(BurnstoreError, TypeError):
    """A call that cannot mean anything; the message says what would."""


class ImmutableError(BurnstoreError, AttributeError):
    """A snapshot cannot be changed; the message names the method that makes a changed one."""


class PickleRefusedError(BurnstoreError, TypeError):
    """Snapshots and stores stand for an open file and cannot be sent to another process."""


class SourceError(BurnstoreError, OSError):
    """The bytes cannot be had, or cannot be written."""


class SourceNotFoundError(SourceError, FileNotFoundError):
    """There is no such file."""


class SourcePermissionError(SourceError, PermissionError):
    """The file may not be read or written."""


class SourceIsDirectoryError(SourceError, IsADirectoryError):
    """A folder was given where a file was wanted."""


class SourceClosedError(SourceError, ValueError):
    """The store was closed before its tensor was read."""


class TargetExistsError(SourceError, FileExistsError):
    """The file to be written exists, and `overwrite=True` was not said."""


class NoSpaceError(SourceError):
    """The disk cannot hold what is to be written."""


def from_os_error(error: OSError, where: str) -> SourceError:
    """The error of our tree for one of the operating system's.

    >>> from_os_error(FileNotFoundError(2, "No such file or directory"), "model.bpk")
    SourceNotFoundError('there is no such file')
    """
    made: SourceError
    if isinstance(error, FileNotFoundError):
        made = SourceNotFoundError("there is no such file", where=where, do="check the path")
    elif isinstance(error, PermissionError):
        made = SourcePermissionError("permission denied", where=where, do="check the owner and mode of it and its folder")
    elif isinstance(error, IsADirectoryError):
        made = SourceIsDirectoryError("this is a folder", where=where, do="give the path of a file")
    else:
        what = error.strerror or str(error) or type(error).__name__
        made = SourceError(what, where=where, do="try again, or copy the file elsewhere")
    made.errno = error.errno
    return made
