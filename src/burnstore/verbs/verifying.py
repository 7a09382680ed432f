"""Checking a file: what reading checks, what a format's own verifier finds, and the data itself."""

from __future__ import annotations

from collections.abc import Iterator

from burnstore.errors import BurnstoreError, DTypeError, FormatError, LimitError
from burnstore.formats.base import Contents
from burnstore.formats.sharded import ShardedContents
from burnstore.formats.table import by_name
from burnstore.limits import Limits
from burnstore.options import Options
from burnstore.report import Problem, Verification
from burnstore.verbs.opening import open_contents


def verify_source(given: object, name: str, options: Options) -> Verification:
    """What is wrong with a source, and what is odd about it. A file that cannot be had at all is an error, not a finding."""
    try:
        contents = open_contents(given, options)
    except (FormatError, LimitError) as error:
        return Verification(name, None, 0, 0, (str(error),), ())
    try:
        return verify_contents(contents, contents.source.name if contents.source else name, options.limits)
    finally:
        contents.close()


def verify_contents(contents: Contents, name: str, limits: Limits) -> Verification:
    """What is wrong with tensors that are listed already, and what is odd about them."""
    findings = list(_format_oddities(contents, limits))
    problems: list[str] = [str(finding) for finding in findings if isinstance(finding, Problem)]
    oddities = [finding for finding in findings if not isinstance(finding, Problem)]
    nbytes = 0
    for tensor in contents.names():
        snapshot = contents.snapshot(tensor)
        nbytes += snapshot.nbytes
        try:
            strange = snapshot.dtype.kind == "bool" and _strange_booleans(snapshot.tobytes(), snapshot.dtype.bits // 8)
            for _ in () if strange else snapshot.data.blocks():
                pass
        except DTypeError as error:  # sound, but not a tensor of plain values
            oddities.append(str(error))
        except BurnstoreError as error:
            problems.append(str(error))
        else:
            if strange:
                oddities.append(f"tensor {tensor!r} is {snapshot.dtype} and holds values other than 0 and 1")
    return Verification(name, contents.format, len(contents), nbytes, tuple(problems), tuple(oddities))


def _format_oddities(contents: Contents, limits: Limits) -> Iterator[str]:
    if isinstance(contents, ShardedContents):
        yield from contents.oddities
        for shard, inner in contents.shards.items():
            for oddity in _format_oddities(inner, limits):
                yield Problem(f"{shard}: {oddity}") if isinstance(oddity, Problem) else f"{shard}: {oddity}"
    elif contents.source is not None:
        yield from by_name(contents.format).verify(contents.source, contents, limits)


def _strange_booleans(data: bytes, width: int) -> bool:
    import numpy as np

    return bool(data) and int(np.frombuffer(data, f"<u{width}").max()) > 1
