"""A load by burnstore against the same load by the real Burn: the report, the failure, the values."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import burnstore as bs
from burnstore.errors import BurnstoreError, LoadError
from tests.golden.burn_questions import (
    Ask,
    counts_anew,
    first_question,
    model_of,
    must,
    original_names,
    passes,
    path_of,
    refusal,
    renamed,
    store_of,
)
from tests.golden.naive_lists import align
from tests.golden.random_cases import Case
from tests.golden.random_files import REFUSED_BY_BURN

_ENUM_WORDS = re.compile(r"│  ⚠️  \d+ paths contain enum variants.*?│\n(?=│  First 10 missing)", re.DOTALL)
_NOTES = re.compile(r"│\n├─ Notes\n.*(?=│\n└)", re.DOTALL)


def compare_load(ask: Ask, case: Case, burn: Any) -> set[str]:
    model, found = model_of(case), set[str]()
    arrays = model.fresh()
    report, error = None, None
    try:
        report = bs.load(store_of(case), arrays, dtype="file")
    except BurnstoreError as caught:
        error = caught
        report = caught.report if isinstance(caught, LoadError) else None
    if report is None:
        must(_same(arrays, model.arrays), case, "a load that cannot be tried changed the model")
        if _fails_at_once(burn):
            return found
        asked, burn, found = _other_question(ask, case, burn)
        if error is not None and "the model fits what is under" in str(error):
            return _check_nests(ask, case, burn, str(error))
        case = asked
        why = refusal(ask, case, error, counts_anew(case)) if error is not None else None
        must(why, case, "only burnstore fails", error, burn)
        return {why or ""}
    if "Unsupported dtype" in str(burn.get("error")):
        assert case.file is not None
        must(case.file.dtypes & set(REFUSED_BY_BURN), case, "only Burn fails", report, burn)
        return {"dtype"}
    asked, burn, found = _other_question(ask, case, burn)
    must(not _fails_at_once(burn), case, "only Burn fails", report, burn)
    if report.key is not None:
        must("applied: 0 tensors" in str(burn), case, "a nest was taken although something fits", report.key, burn)
        nested = replace(case, options={**case.options, "top_level_key": report.key})
        asked, burn, found = _other_question(ask, nested, first_question(ask, nested))
        found.add("nest")
    case = asked
    return found | _compare_report(ask, case, burn, report, error, arrays)


def _check_nests(ask: Ask, case: Case, burn: Any, error: str) -> set[str]:
    """Nothing fits at the top of a .pt, and what is under several of its keys does."""
    assert case.file is not None
    must("applied: 0 tensors" in str(burn), case, "a nest was looked for although something fits", error, burn)
    for key in case.file.keys:
        options = {**case.options, "top_level_key": key, "allow_partial": True, "validate": False}
        told = ask(case.version, "load", model_of(case).name, path_of(case), options)
        fits = bool("result" in told and told["result"]["applied"])
        must(
            fits == bool(re.search(rf"\b{re.escape(key)}\b", error.partition("choose")[0])),
            case,
            f"the nest {key!r}",
            error,
            told,
        )
    return {"nest"}


def _fails_at_once(burn: Any) -> bool:
    """Whether Burn failed before it applied anything, so that there is no report."""
    return "panic" in burn or not _is_verdict(burn)


def _is_verdict(burn: Any) -> bool:
    return "error" not in burn or bool(re.search(r"Missing tensors|Import errors|Tensor Loading Summary", burn["error"]))


def _other_question(ask: Ask, case: Case, burn: Any) -> tuple[Case, Any, set[str]]:
    """Where lists are not counted as Burn does, the question whose answer should be ours: a rule for each name."""
    if not counts_anew(case) or _fails_at_once(burn):
        return case, burn, set()
    plain = replace(case, options={**case.options, "map_indices_contiguous": False})
    names = original_names(ask, case)
    given = renamed(ask, plain, names, contiguous=False)
    counted = renamed(ask, plain, names, contiguous=True)
    wanted = align(given, list(model_of(case).arrays))
    if wanted == counted:
        return case, burn, set()
    rules = [[f"^{re.escape(old)}$", f"@{at}@"] for at, old in enumerate(names)]
    rules += [[f"^@{at}@$", new.replace("$", "$$")] for at, new in enumerate(wanted)]
    asked = replace(case, options={**plain.options, "remap": rules})
    return asked, ask(case.version, "load", model_of(case).name, path_of(case), asked.options), {"lists"}


def _compare_report(ask: Ask, case: Case, burn: Any, ours: Any, error: BurnstoreError | None, arrays: Any) -> set[str]:
    """The report, the failure and the values, given Burn's answer to the same question."""
    found, options, model = set[str](), case.options, model_of(case)
    strict_failure = "error" in burn
    if strict_failure:
        lenient = {**options, "allow_partial": True, "validate": False}
        told = ask(case.version, "load", model.name, path_of(case), lenient)
    else:
        told = burn
    must("result" in told, case, "Burn has no report", ours, told)
    result = told["result"]
    missing = [path for path, _ in result["missing"]]
    kept = set(passes(ask, case, missing))
    skipped = sorted([*result["skipped"], *(path for path in missing if path not in kept)])
    if len(kept) < len(missing):
        found.add("skipped")
    must(ours.applied == result["applied"], case, "applied", ours.applied, result["applied"])
    must(ours.skipped == skipped, case, "skipped", ours.skipped, skipped)
    must([path for path, _ in ours.missing] == [path for path in missing if path in kept], case, "missing", ours.missing, missing)
    must(ours.unused == result["unused"], case, "unused", ours.unused, result["unused"])
    must(list(map(str, ours.errors)) == list(map(_shapes, result["errors"])), case, "errors", ours.errors, result["errors"])
    must(
        list(map(repr, ours.errors)) == list(map(_shapes, result["errors_debug"])),
        case,
        "errors",
        ours.errors,
        result["errors_debug"],
    )
    must(ours.is_success() == result["is_success"], case, "is_success()")
    as_burn = replace(ours, missing=[(path, "") for path in missing], skipped=result["skipped"], casts=[], warnings=[], hints=[])
    text = _NOTES.sub("", str(replace(as_burn, key=None, dialects=None)))
    must(text == _shapes(_ENUM_WORDS.sub("", result["display"])), case, "the text", text, result["display"])
    return found | _compare_outcome(case, told, strict_failure, missing, ours, error, arrays)


def _compare_outcome(
    case: Case, told: Any, burn_failed: bool, missing: Sequence[str], ours: Any, error: Any, arrays: Any
) -> set[str]:
    found, options, model, result = set[str](), case.options, model_of(case), told["result"]
    wrong = bool(result["errors"]) and options.get("validate", True)
    must(
        burn_failed == bool(wrong or (missing and not options.get("allow_partial"))), case, "Burn's own rule of failure", "", told
    )
    fails = bool(wrong or (ours.missing and not options.get("allow_partial")))
    if not fails and not result["applied"]:
        fails = True
        found.add("nothing")
    must((error is not None) == fails, case, "failure", error, f"it should{'' if fails else ' not'} fail")
    if error is not None:
        must(_same(arrays, model.arrays), case, "a failed load changed the model")
        changed = any(_sha(model.arrays[row["path"]]) != row["sha256"] for row in told["manifest"])
        return found | ({"untouched"} if changed else set())
    must(list(arrays) == [row["path"] for row in told["manifest"]], case, "the keys of the dict", list(arrays))
    for row in told["manifest"]:
        array = arrays[row["path"]]
        mine = [bs.DType.of(str(array.dtype)).name, list(array.shape), _sha(array)]
        must(mine == [_shapes(row["dtype"]), row["shape"], row["sha256"]], case, f"the values of {row['path']!r}", mine, row)
    return found


def _sha(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _same(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    return list(one) == list(other) and all(
        one[path].dtype == other[path].dtype
        and one[path].shape == other[path].shape
        and one[path].tobytes() == other[path].tobytes()
        for path in one
    )


def _shapes(text: str) -> str:
    """Burn 0.22's words for shapes and booleans as 0.20 writes them."""
    return re.sub(r"Shape \{ dims: (\[[^]]*\]) \}", r"\1", text).replace("Bool(Native)", "Bool")
