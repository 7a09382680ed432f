"""Asking the real Burn, and asking burnstore the same."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import burnstore as bs
from burnstore.errors import BurnstoreError, DuplicateNameError, UsageError
from tests.golden.random_cases import BAD, Case
from tests.golden.random_files import Model

Ask = Callable[..., Any]


class DifferentAnswerError(AssertionError):
    """burnstore answered otherwise than Burn, and not in a way that is meant."""


def must(equal: object, case: Case, what: str, *sides: object) -> None:
    if not equal:
        raise DifferentAnswerError(
            f"{case}\n  {what}"
            + "".join(f"\n  {word}: {side!s:.3000}" for word, side in zip(("ours", "Burn's"), sides, strict=False))
        )


def asker(shared: Path) -> Ask:
    """The real Burn as a function; the test suite's fixture `oracle` is another."""

    def ask(version: str, *arguments: object, stdin: str | None = None) -> Any:
        program = shared / "oracle" / f"burn-oracle-{version}"
        words = [json.dumps(word) if isinstance(word, (dict, list)) else str(word) for word in arguments]
        done = subprocess.run([program, *words], input=stdin, capture_output=True, text=True, timeout=120)
        if not done.stdout:
            raise RuntimeError(f"{program.name} {' '.join(words)[:300]} ended with {done.returncode}: {done.stderr[-500:]}")
        return json.loads(done.stdout)

    return ask


def first_question(ask: Ask, case: Case) -> Any:
    lines = "".join(f"{name}\n" for name in case.names)
    match case.op:
        case "load":
            return ask(case.version, "load", model_of(case).name, path_of(case), case.options)
        case "list":
            return ask(case.version, "list", path_of(case), case.options)
        case "save":
            path = path_of(case).with_name(f"burn.{path_of(case).name}")
            if case.exists:
                path.write_bytes(b"old")
            return ask(case.version, "save", model_of(case).name, path, case.options)
        case "remap":
            return ask(case.version, "remap", json.dumps(case.options["remap"]), stdin=lines)
        case "contiguous":
            return ask(case.version, "contiguous", stdin=lines)
        case _:
            return ask(case.version, "filter", case.options, stdin=lines)


def model_of(case: Case) -> Model:
    assert case.model is not None
    return case.model


def path_of(case: Case) -> Path:
    assert case.file is not None
    return case.file.path


def store_of(case: Case) -> Any:
    """The store of Burn's that the oracle makes, by the same builder calls."""
    assert case.file is not None
    options = case.options
    kind: Any = {"bpk": bs.BurnpackStore, "safetensors": bs.SafetensorsStore, "pt": bs.PytorchStore}[case.file.format]
    store = kind.from_bytes(case.file.path.read_bytes()) if options.get("from_bytes") else kind.from_file(case.file.path)
    for pattern in options.get("regex", ()):
        store = store.with_regex(pattern)
    if "full_paths" in options:
        store = store.with_full_paths(options["full_paths"])
    if options.get("match_all"):
        store = store.match_all()
    for rule in options.get("remap", ()):
        store = store.with_remap_pattern(*rule) if case.file.format == "bpk" else store.with_key_remapping(*rule)
    for flag in ("map_indices_contiguous", "skip_enum_variants", "allow_partial", "validate", "zero_copy", "overwrite"):
        if flag in options:
            store = getattr(store, flag)(options[flag])
    if "top_level_key" in options:
        store = store.with_top_level_key(options["top_level_key"])
    if options.get("clear_metadata"):
        store = store.clear_metadata()
    for key, value in options.get("metadata", {}).items():
        store = store.metadata(key, value)
    return store.for_burn(case.version).fsync(False)


def passes(ask: Ask, case: Case, names: Sequence[str]) -> list[str]:
    """Which names the filter of a case lets pass, as Burn answers it."""
    chosen = {key: case.options[key] for key in ("regex", "full_paths", "match_all") if key in case.options}
    if not chosen or not names:
        return list(names)
    told = ask("0.22", "filter", chosen, stdin="".join(f"{name}\n" for name in names))
    return [name for name, yes in zip(names, told["matches"], strict=True) if yes]


def renamed(ask: Ask, case: Case, names: Sequence[str], contiguous: bool) -> list[str]:
    """The names after the rules of a case, as Burn answers it; collisions are left in."""
    found = list(names)
    if case.options.get("remap") and found:
        told = ask("0.22", "remap", json.dumps(case.options["remap"]), stdin="".join(f"{name}\n" for name in found))
        found = [new for new, _ in told["pairs"]]
    if contiguous and found:
        told = ask("0.22", "contiguous", stdin="".join(f"{name}\n" for name in found))
        found = [new for new, _ in told["pairs"]]
    return found


def _plain_options(case: Case) -> dict[str, Any]:
    return {key: case.options[key] for key in ("top_level_key", "from_bytes") if key in case.options}


def original_names(ask: Ask, case: Case) -> list[str]:
    """The names that a file has, as Burn lists them without any options."""
    assert case.file is not None
    told = ask(case.version, "list", case.file.path, {**_plain_options(case), "map_indices_contiguous": False})
    return list(told["keys"])


def refusal(ask: Ask, case: Case, error: BurnstoreError, contiguous: bool) -> str | None:
    """Which deliberate difference an error of ours is, if it is one that has to do with names."""
    if not isinstance(error, (DuplicateNameError, UsageError)):
        return None
    if "regex" in case.options and case.version == "0.20" and set(case.options["regex"]) & set(BAD):
        return "bad expression" if "panic" in ask("0.22", "filter", case.options, stdin="a\n") else None
    assert case.file is not None
    new = renamed(ask, case, original_names(ask, case), contiguous)
    if isinstance(error, DuplicateNameError):
        return "collision" if len(set(new)) < len(new) else None
    return "empty name" if "" in new and "leave nothing of the name" in str(error) else None


def counts_anew(case: Case) -> bool:
    assert case.file is not None
    return bool(case.options.get("map_indices_contiguous", case.file.format == "pt"))
