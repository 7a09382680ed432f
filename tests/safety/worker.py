"""The child in which hostile files are opened: little memory, little time, and nothing to lose.

It reads pickled lists of cases (label, source, keywords) from its input and answers each case by one line of JSON.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import resource
import signal
import sys
from typing import Any

import burnstore as bs
from burnstore.errors import BurnstoreError

MEMORY = 512 << 20
SECONDS = 10


def warm_up() -> None:
    """Import what opening imports, so that only what a file costs is counted."""
    for format in ("burnpack", "safetensors"):
        data = bs.save({"a": [1.0]}, bytes, format=format)
        bs.read(data)
        bs.verify(data)


def limit_memory() -> None:
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))


def outcome(source: Any, keywords: dict[str, Any]) -> dict[str, Any]:
    """What `open`, `verify` and `read` make of a source."""
    found: dict[str, Any] = {}
    signal.alarm(SECONDS)  # kills: a handler would never run inside a parser that does not come back
    try:
        store = bs.open(source, **keywords)
        found["tensors"] = {
            name: [str(snapshot.dtype), list(snapshot.shape), hashlib.sha256(snapshot.tobytes()).hexdigest()]
            for name, snapshot in store.items()
        }
        found["metadata"] = dict(store.metadata)
    except BurnstoreError as error:
        found["error"] = [type(error).__name__, str(error), error.where]
    except BaseException as error:
        found["raw"] = f"open: {type(error).__name__}: {str(error)[:300]}"
    for verb in (bs.verify, bs.read):
        allowed = {key: value for key, value in keywords.items() if verb is bs.read or key != "io"}
        signal.alarm(SECONDS)
        try:
            verb(source, **allowed)  # type: ignore[operator]
        except BurnstoreError:
            pass
        except BaseException as error:
            found.setdefault("raw", f"{verb.__name__}: {type(error).__name__}: {str(error)[:300]}")
    signal.alarm(0)
    return found


def main() -> None:
    warm_up()
    limit_memory()
    while True:
        try:
            cases = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        for label, source, keywords in cases:
            found = outcome(source, keywords)
            print(json.dumps({"label": label, **found}), flush=True)


if __name__ == "__main__":
    main()
