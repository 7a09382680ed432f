"""The error tree: each error is also the builtin that a caller would expect, prints as one line, and can be sent on."""

from __future__ import annotations

import builtins
import copy
import errno
import inspect
import pickle
import re

import numpy as np
import pytest

import burnstore as bs
from burnstore import errors

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.BurnstoreError)]

BUILTINS = {
    "BurnstoreError": Exception, "FormatError": ValueError, "TruncatedError": ValueError, "UnknownFormatError": ValueError,
    "LimitError": ValueError, "DTypeError": TypeError, "QuantizedError": TypeError, "DialectError": ValueError,
    "ConfigError": ValueError, "LoadError": ValueError,
    "MetadataNotFoundError": KeyError,
    "TensorNotFoundError": KeyError, "DuplicateNameError": ValueError, "TensorDataError": ValueError, "UsageError": TypeError,
    "TensorIndexError": IndexError, "ImmutableError": AttributeError, "PickleRefusedError": TypeError, "SourceError": OSError,
    "SourceNotFoundError": FileNotFoundError, "SourcePermissionError": PermissionError,
    "SourceIsDirectoryError": IsADirectoryError,
    "SourceClosedError": ValueError, "TargetExistsError": FileExistsError, "NoSpaceError": OSError,
}  # fmt: skip


def make(kind: type[errors.BurnstoreError]) -> errors.BurnstoreError:
    return kind("what is wrong", where="model.bpk, byte 4", do="get it again")


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_its_builtin_too(kind: type) -> None:
    assert issubclass(kind, BUILTINS[kind.__name__]), f"{kind.__name__} is new: say in this table which builtin it is"


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_prints_as_one_plain_line_with_its_three_parts(kind: type) -> None:
    assert str(make(kind)) == "model.bpk, byte 4: what is wrong; get it again."
    assert str(kind("what is wrong")) == "what is wrong."
    assert str(kind("what is wrong", do="is it you?")) == "what is wrong; is it you?"
    assert str(kind("")) is not None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"]
)
def test_every_error_survives_the_way_to_another_process(kind: type, again: object) -> None:
    error = again(make(kind))  # type: ignore[operator]
    assert type(error) is kind and str(error) == str(make(kind))
    assert (error.what, error.where, error.do) == ("what is wrong", "model.bpk, byte 4", "get it again")


def test_the_error_of_a_load_carries_its_report_to_another_process() -> None:
    with pytest.raises(errors.LoadError) as caught:
        bs.load({"a": [1.0]}, {"b": np.zeros(1)})
    for again in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value), copy.deepcopy(caught.value)):
        assert again.report.missing == [("b", "")] and again.report.unused == ["a"] and str(again) == str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_documented_and_drawn_in_the_tree(kind: type) -> None:
    assert kind.__doc__ and kind.__doc__ is not kind.__mro__[1].__doc__
    tree = (errors.__doc__ or "").split("\n\n")[1]
    line = next(line for line in tree.splitlines() if re.search(rf"\b{kind.__name__}\b", line))
    drawn = re.search(r"\((\w+)\)", line)
    if drawn:
        assert issubclass(kind, getattr(builtins, drawn[1]))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), errors.SourceNotFoundError),
        (PermissionError(errno.EACCES, "Permission denied"), errors.SourcePermissionError),
        (IsADirectoryError(errno.EISDIR, "Is a directory"), errors.SourceIsDirectoryError),
        (OSError(errno.EIO, "Input/output error"), errors.SourceError),
        (OSError("only words"), errors.SourceError),
        (OSError(), errors.SourceError),
    ],
)
def test_the_systems_errors_become_ours_and_keep_their_number(given: OSError, kind: type) -> None:
    error = errors.from_os_error(given, "model.bpk")
    assert type(error) is kind and error.errno == given.errno and str(error).startswith("model.bpk: ")
    assert str(error) != "model.bpk: ."
    assert pickle.loads(pickle.dumps(error)).errno == given.errno


def test_a_message_is_one_printable_line_whatever_a_file_or_a_path_says() -> None:
    error = errors.FormatError("a\nb\x1b[31m", where="p\r\nq", do="x\x00y")
    assert str(error).isprintable()


def test_a_message_is_short_however_long_a_name_in_a_file_is() -> None:
    name = "n" * 1_000_000
    with pytest.raises(errors.TensorIndexError) as caught:
        bs.open({name: [1.0]})[name][5]
    assert len(str(caught.value)) < 2000 and "index 5 is out of range" in str(caught.value)
    assert len(str(errors.FormatError(name, where=name, do="get it again"))) < 2000
