"""burnstore against the real Burn, on random files with random options: every answer is equal, or differs as `DIFFERENCES` says.

`python -m tests.golden.differential --cases 2500 --seed 1` prints how many cases were equal and how many differed in which way.
What differs on purpose is not left out: the comparison works out what burnstore should say instead, with Burn's help where
Burn has a way to say it, and asks for exactly that.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import cbor2
import safetensors

import burnstore as bs
from burnstore.errors import BurnstoreError, DuplicateNameError, UsageError
from tests.golden import random_cases
from tests.golden.burn_questions import (
    Ask,
    DifferentAnswerError,
    asker,
    counts_anew,
    first_question,
    model_of,
    must,
    passes,
    path_of,
    refusal,
    renamed,
    store_of,
)
from tests.golden.differential_load import compare_load
from tests.golden.random_cases import Case
from tests.golden.random_files import MODELS, REFUSED_BY_BURN, read_model, written
from tests.golden.truth import rust_text

DIFFERENCES = {
    "skipped": "what a filter leaves out and the file lacks is skipped, not missing",
    "keys": "a store lists what its filter lets pass",
    "collision": "two names that become one are an error",
    "empty name": "a name of which the rules leave nothing is an error",
    "remap on save": "BurnpackStore renames when it saves, too",
    "nothing": "a load that applies nothing fails",
    "untouched": "a load that fails leaves the model as it was",
    "lists": "a list whose items the model has, or that the model does not have, is not counted anew",
    "nest": "the one nested state dict of a .pt that fits is taken",
    "one tensor": "what lies under a top-level key may be a single tensor",
    "dtype": "dtypes that Burn does not know in SafeTensors are read",
    "backslash": "\\1 in a replacement is a group",
    "bad expression": "an expression that is not sound is an error; in a filter 0.20 takes no notice of it",
    "empty file": "a SafeTensors file without tensors and metadata can be read: Burn writes one that it refuses itself",
    "refused": "an expression that Python cannot be told is refused",
}
# What Rust has and Python cannot be told.
_REFUSED_SYNTAX = re.compile(r"\[\[:|&&|--|~~|\\[pP]")
# --- list


def compare_list(ask: Ask, case: Case, burn: Any) -> set[str]:
    try:
        store = store_of(case)
        names, snapshots = store.keys(), store.get_all_snapshots()
    except BurnstoreError as error:
        if "error" in burn or "panic" in burn:
            return set()
        contiguous = counts_anew(case)
        why = refusal(ask, case, error, contiguous)
        must(why, case, "only burnstore fails", error, burn)
        return {why or ""}
    if "does not hold a dictionary, found torch.Tensor" in str(burn) or "is not a dictionary" in str(burn):
        return _list_one(ask, case, snapshots, burn)
    if "error" in burn or "panic" in burn:
        assert case.file is not None
        must(case.file.dtypes & set(REFUSED_BY_BURN) and "Unsupported dtype" in str(burn), case, "only Burn fails", names, burn)
        return {"dtype"} | _list_official(ask, case, snapshots)
    rows = {row["name"]: row for row in burn["tensors"]}
    must(sorted(rows, key=str.encode) == burn["keys"], case, "Burn lists other tensors than keys", rows, burn["keys"])
    wanted = passes(ask, case, burn["keys"])
    must(names == wanted and list(snapshots) == wanted, case, "keys()", names, wanted)
    for name in wanted:
        row, snapshot = rows[name], snapshots[name]
        ours = [rust_text(snapshot.dtype, case.version), list(snapshot.shape), hashlib.sha256(snapshot.tobytes()).hexdigest()]
        must(ours == [row["dtype"], row["shape"], row["sha256"]], case, f"tensor {name!r}", ours, row)
        if (
            path_of(case).suffix == ".bpk" and case.version == "0.22"
        ):  # 0.20 does not tell ids that are drawn from those of the file
            must(snapshot.param_id == row["param_id"], case, f"the id of {name!r}", snapshot.param_id, row)
    if burn["metadata"] is not None and "scalars" in burn["metadata"]:
        must(dict(store.metadata) == burn["metadata"]["metadata"], case, "metadata", store.metadata, burn["metadata"])
        must(sorted(store.scalars) == sorted(burn["metadata"]["scalars"]), case, "scalars", store.scalars, burn["metadata"])
    return {"keys"} if len(wanted) < len(rows) else set()


def _list_one(ask: Ask, case: Case, snapshots: Mapping[str, Any], burn: Any) -> set[str]:
    """A single tensor under a key is called `tensor`; without the key Burn lists it under the key's name."""
    key = case.options["top_level_key"]
    row = next(
        (row for row in ask("0.22", "list", path_of(case), {"map_indices_contiguous": False})["tensors"] if row["name"] == key),
        None,
    )
    must(row is not None, case, "only Burn fails", snapshots, burn)
    wanted = passes(ask, case, renamed(ask, case, ["tensor"], contiguous=False))
    must(list(snapshots) == wanted, case, "the name of a single tensor", list(snapshots), wanted)
    must(
        all(hashlib.sha256(one.tobytes()).hexdigest() == row["sha256"] for one in snapshots.values()), case, "its values", "", row
    )
    return {"one tensor"}


def _list_official(ask: Ask, case: Case, snapshots: Mapping[str, Any]) -> set[str]:
    """A file that Burn refuses: the official package says what is in it."""
    rows = dict(safetensors.deserialize(path_of(case).read_bytes()))
    new = renamed(ask, case, list(rows), counts_anew(case))
    by_name = dict(zip(new, rows.values(), strict=True))
    wanted = passes(ask, case, sorted(by_name))
    must(list(snapshots) == wanted, case, "names", list(snapshots), wanted)
    for name in wanted:
        must(snapshots[name].tobytes() == by_name[name]["data"], case, f"tensor {name!r}")
    return {"keys"} if len(wanted) < len(rows) else set()


# --- save


def compare_save(ask: Ask, case: Case, burn: Any) -> set[str]:
    ours, theirs = path_of(case), path_of(case).with_name(f"burn.{path_of(case).name}")
    if case.exists:
        ours.write_bytes(b"old")
    error = None
    try:
        bs.save(model_of(case).fresh(), store_of(case))
    except BurnstoreError as caught:
        error = caught
    if "error" in burn or "panic" in burn:
        must(error is not None, case, "only Burn fails", "", burn)
        must(ours.exists() == case.exists and (not case.exists or ours.read_bytes() == b"old"), case, "a failed save left a file")
        return set()
    if theirs.read_bytes().partition(b"{")[2] == b'},"__metadata__":{}}   ':
        must(path_of(case).suffix == ".safetensors" and error is None and not _tensors(ours), case, "what was saved", error, burn)
        must("trailing characters" in str(ask(case.version, "list", theirs, {})), case, "Burn reads its own file now")
        return {"empty file"}
    wanted = _tensors(theirs)
    new = list(wanted)
    if path_of(case).suffix == ".bpk":
        new = renamed(ask, case, list(wanted), contiguous=False)
    if error is not None:
        if case.version == "0.20" and set(case.options.get("regex", ())) & set(random_cases.BAD):
            return {refusal(ask, case, error, False) or ""}
        names = passes(ask, case, list(model_of(case).arrays))
        after = renamed(ask, case, names, contiguous=False)
        must(len(set(after)) < len(after) or "" in after, case, "only burnstore fails", error, burn)
        must(isinstance(error, DuplicateNameError) or "leave nothing" in str(error), case, "another error", error)
        return {"collision" if len(set(after)) < len(after) else "empty name"}
    found = {"remap on save"} if new != list(wanted) else set()
    got = _tensors(ours)
    must(_by_place(got) == _by_place(dict(zip(new, wanted.values(), strict=True))), case, "what was saved", list(got), new)
    must(_metadata(ours) == _metadata(theirs), case, "metadata", _metadata(ours), _metadata(theirs))
    return found


def _by_place(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(tensors.items()))


def _tensors(path: Path) -> dict[str, Any]:
    """(dtype, shape, bytes) of each tensor of a saved file, by the official package or by a plain CBOR decoder."""
    raw = path.read_bytes()
    if path.suffix == ".safetensors":
        return {name: (view["dtype"], view["shape"], bytes(view["data"])) for name, view in safetensors.deserialize(raw)}
    size = int.from_bytes(raw[6:10], "little")
    start = -(-(10 + size) // 256) * 256
    found = {}
    for name, row in cbor2.loads(raw[10 : 10 + size])["tensors"].items():
        begin, end = row["data_offsets"]
        found[name] = (row["dtype"], row["shape"], begin, raw[start + begin : start + end])
    return found


def _metadata(path: Path) -> Any:
    raw = path.read_bytes()
    if path.suffix == ".safetensors":
        return json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")]).get("__metadata__")
    return cbor2.loads(raw[10 : 10 + int.from_bytes(raw[6:10], "little")]).get("metadata")


# --- names


def compare_remap(ask: Ask, case: Case, burn: Any) -> set[str]:
    rules = case.options["remap"]
    try:
        pairs = [list(pair) for pair in bs.KeyRemapper.from_patterns(map(tuple, rules)).remap(case.names)]
    except UsageError as error:
        return _refused(ask, case, burn, [pattern for pattern, _ in rules], error)
    must("pairs" in burn, case, "only Burn refuses", pairs, burn)
    found = set()
    if any("\\" in replacement for _, replacement in rules):
        meant = [[pattern, re.sub(r"\\(\d)", r"${\1}", replacement)] for pattern, replacement in rules]
        burn = ask(case.version, "remap", json.dumps(meant), stdin="".join(f"{name}\n" for name in case.names))
        found.add("backslash")
    must(pairs == burn["pairs"], case, "names", pairs, burn["pairs"])
    return found


def _refused(ask: Ask, case: Case, burn: Any, patterns: Sequence[str], error: BurnstoreError) -> set[str]:
    if "error" in burn or "panic" in burn:
        return set()
    if case.op == "filter" and refusal(ask, case, error, False) is not None:
        return {"bad expression"}
    must(any(_REFUSED_SYNTAX.search(pattern) for pattern in patterns), case, "only burnstore refuses", error, burn)
    return {"refused"}


def compare_contiguous(ask: Ask, case: Case, burn: Any) -> set[str]:
    try:
        ours = bs.map_indices_contiguous(case.names)
    except DuplicateNameError as error:
        must(len(set(burn["names"])) < len(case.names), case, "only burnstore fails", error, burn)
        return {"collision"}
    must([[new, old] for old, new in ours.items()] == burn["pairs"], case, "names", ours, burn["pairs"])
    return set()


def compare_filter(ask: Ask, case: Case, burn: Any) -> set[str]:
    options = case.options
    try:
        chosen = bs.PathFilter().with_regexes(options.get("regex", ())).with_full_paths(options.get("full_paths", ()))
    except UsageError as error:
        return _refused(ask, case, burn, options.get("regex", ()), error)
    must("matches" in burn, case, "only Burn refuses", chosen, burn)
    chosen = chosen.match_all() if options.get("match_all") else chosen
    ours = [chosen.matches(name) for name in case.names]
    must(ours == burn["matches"], case, "matches", ours, burn["matches"])
    return set()


# --- the run

SHARES = {"load": 0.36, "list": 0.16, "save": 0.12, "remap": 0.16, "contiguous": 0.08, "filter": 0.12}
_COMPARE: dict[str, Callable[[Ask, Case, Any], set[str]]] = {
    "load": compare_load,
    "list": compare_list,
    "save": compare_save,
    "remap": compare_remap,
    "contiguous": compare_contiguous,
    "filter": compare_filter,
}


def make_cases(ask: Ask, shared: Path, folder: Path, cases: int, seed: int) -> dict[str, list[Case]]:
    """The same cases for the same seed; their files lie in `folder`."""
    models = {(name, version): read_model(shared, name, version) for name in MODELS for version in ("0.20", "0.22")}
    files = list(written(random.Random(seed), models, folder, max(20, cases // 10)))
    goldens = random_cases.goldens(shared, models)
    of_models = [(model, file) for model, file in goldens if file.path.name.partition(".")[0] in MODELS]
    of_torch = random_cases.torch_files(shared, ask, models["net", "0.22"])
    several = list(models.values())
    streams: dict[str, Iterator[Case]] = {
        "load": random_cases.loads(random.Random(seed + 1), files * 2 + of_models, models),
        "list": random_cases.lists(random.Random(seed + 2), files + goldens + of_torch),
        "save": random_cases.saves(random.Random(seed + 3), models, folder),
        "remap": random_cases.remaps(random.Random(seed + 4), several),
        "contiguous": random_cases.counts(random.Random(seed + 5), several),
        "filter": random_cases.filters(random.Random(seed + 6), several),
    }
    return {op: list(islice(stream, round(cases * SHARES[op]))) for op, stream in streams.items()}


class Counts:
    """How many cases there were of each kind, how many were equal, and how the others differed."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()
        self.equal: Counter[str] = Counter()
        self.differed: Counter[str] = Counter()
        self.failures: list[str] = []

    def table(self) -> list[str]:
        """The counts as lines of text."""
        lines = [f"{self.cases[op]:5} {op}, {self.equal[op]} of them equal" for op in self.cases]
        lines.append(
            f"{self.cases.total():5} cases, {self.equal.total()} equal; the others differ as they should (some in two ways):"
        )
        lines += [f"{count:5} {DIFFERENCES[name]}" for name, count in self.differed.most_common()]
        return lines + ([f"{len(self.failures):5} DIFFER OTHERWISE"] if self.failures else [])


def run(ask: Ask, shared: Path, folder: Path, cases: int, seed: int) -> Counts:
    """All cases, with two processes of Burn at work beside our own."""
    counts = Counts()
    with ThreadPoolExecutor(2) as pool:
        for op, asked in make_cases(ask, shared, folder, cases, seed).items():
            for case, burn in zip(asked, pool.map(lambda case: first_question(ask, case), asked), strict=True):
                counts.cases[op] += 1
                try:
                    found = _COMPARE[op](ask, case, burn)
                except DifferentAnswerError as difference:
                    counts.failures.append(str(difference))
                    continue
                except Exception as error:
                    counts.failures.append(f"{case}\n  {type(error).__name__}: {error}\n  {traceback.format_exc()[-1500:]}")
                    continue
                counts.equal[op] += not found
                counts.differed.update(found)
    return counts


def main() -> int:
    """The run as a program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20, help="how many failures to print")
    parser.add_argument("--shared", type=Path, default=os.environ.get("BURNSTORE_SHARED"))
    given = parser.parse_args()
    if given.shared is None:
        parser.error("give --shared, or set BURNSTORE_SHARED")
    shared = Path(given.shared)
    with tempfile.TemporaryDirectory() as folder:
        counts = run(asker(shared), shared, Path(folder), given.cases, given.seed)
    for failure in counts.failures[: given.show]:
        print(failure, end="\n\n")
    print("\n".join(counts.table()))
    return bool(counts.failures)


if __name__ == "__main__":
    raise SystemExit(main())
