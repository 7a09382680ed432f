"""Random cases for the differential run: a file or a list of names, and the options of Burn's stores."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.golden.random_files import FOLDERS, MODELS, File, Model, arrays_of, dtype_word
from tests.patterns import random_patterns

_REGEXES = (
    *("^conv", "weight$", "bias$", r"\.0\.", "(weight|bias)$", r"^(stack|rows|linear)", r"^stack\.\d+\.", "nothing like it", "."),
    *(
        "^$",
        "^.*$",
        r"\bgamma\b",
        "(?i)CONV",
        r"^[a-c]",
        r"\.\d+\.",
        "norm",
        "gate",
        r"^model\.",
        r"transform\.weight$",
        r"\d",
        "^é",
    ),
)
BAD = ("[", "(", "a{2", "*", "(?P<n", "(?=a)", r"(a)\1")
_RULES = (
    *(
        (r"^model\.", ""),
        (r"^module\.", ""),
        (r"^net\.encoder\.", ""),
        (r"^0\.", ""),
        ("^", "model."),
        ("conv", "c"),
        ("c", "conv"),
    ),
    *((r"^(\w+)\.", "${1}_x."), (r"\.", "/"), (r"conv(\d)", "conv$0$1"), (r"(?P<a>stack|rows)\.(\d)", "${a}.1$2"), ("w", "$$")),
    *(
        (r"x$", ""),
        (r"\.data$", ""),
        (r"\.w$", ".weight"),
        (r"\.(\d+)\.", ".${1}0."),
        ("nothing like it", "b"),
        (r"(\d+)", "$1$1"),
    ),
    *(
        ("^(.)(.*)$", "$2$1"),
        ("weight$", "w"),
        ("$", "x"),
        (r"_", "."),
        (r"^(\w+)\.(\w+)$", "$2.$1"),
        ("norm", "N"),
        (r"^layers\.", ""),
    ),
)
# What makes names of several one, or leaves nothing of them.
_ROUGH = (
    *(("weight", "bias"), (r"\d", "0"), (r"conv\d", "conv"), ("e", ""), ("a", "b"), ("b", "a"), ("^.*$", ""), ("^conv1.*$", "")),
    *(
        (r"^conv1\.bias$", ""),
        (r"^\w+$", ""),
        ("[aeiou]", ""),
        ("gamma", "beta"),
        (r"^(\w+)\.", "$1_x."),
        (r"(\w+)\.(\w+)$", "$2.$1"),
        (r"\.\d+\.", "."),
    ),
)
_BACKSLASHES = ((r"(\w+)\.(\w+)$", "\\2.\\1"), (r"(\d)", "<\\1>"))
_REFUSED = ("[[:alpha:]]", "[a-z&&[^b]]", r"\pL", r"\p{Greek}", "[a-z--b]")
_SEGMENTS = ("a", "b", "fc", "layers", "0", "1", "2", "3", "5", "10", "12", "w", "bias")
_ODD = ("01", "+1", "-1", "1_0", "", "00", "18446744073709551615", "18446744073709551616", "２", " 1", "1a", "+")


@dataclass(frozen=True)
class Case:
    """What both are asked."""

    number: int
    op: str
    version: str
    options: dict[str, Any] = field(default_factory=dict)
    model: Model | None = None
    file: File | None = None
    names: tuple[str, ...] = ()
    exists: bool = False

    def __str__(self) -> str:
        what = self.file.path if self.file else self.names
        model = f" {self.model.name}" if self.model and self.op in ("load", "save") else ""
        return f"case {self.number}: {self.op}{model} of {self.version} {what} {self.options}" + (
            f" ({self.file.what})" if self.file else ""
        )


def _maybe(draw: random.Random, options: dict[str, Any], name: str, chance: float, *values: Any) -> None:
    if draw.random() < chance:
        options[name] = draw.choice(values)


def _filters(draw: random.Random, options: dict[str, Any], paths: Sequence[str], chance: float) -> None:
    if draw.random() >= chance:
        return
    kind = draw.random()
    if kind < 0.75:
        pool = [*_REGEXES, *(f"^{path.split('.')[0]}" for path in paths[:200])]
        options["regex"] = [draw.choice(pool) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    if kind > 0.6:
        known = list(paths) or ["a"]
        options["full_paths"] = [
            draw.choice((draw.choice(known), draw.choice(known), "no.such")) for _ in range(draw.randint(1, 3))
        ]
    _maybe(draw, options, "match_all", 0.07, True)


def _rules(draw: random.Random, options: dict[str, Any], chance: float, most: int = 4) -> None:
    if draw.random() < chance:
        options["remap"] = [
            list(draw.choice(_ROUGH if draw.random() < 0.12 else _RULES)) for _ in range(draw.choice((1, 1, 2, 3, most)))
        ]


def _spoil(draw: random.Random, options: dict[str, Any]) -> None:
    """Now and then an expression that nobody can read."""
    if draw.random() < 0.015:
        if draw.random() < 0.5:
            options["regex"] = [draw.choice(BAD)]
        else:
            options["remap"] = [[draw.choice(BAD), "x"]]


def _of_store(
    draw: random.Random, options: dict[str, Any], format: str, version: str, keys: Sequence[str], reading: bool
) -> None:
    if format != "bpk":
        _maybe(draw, options, "map_indices_contiguous", 0.35, True, True, False)
    if format == "bpk" and version == "0.20" and reading:
        _maybe(draw, options, "zero_copy", 0.3, True, False)
    if format != "pt" and reading:
        _maybe(draw, options, "from_bytes", 0.2, True)
    if format == "pt":
        _maybe(
            draw,
            options,
            "top_level_key",
            0.75 if keys else 0.04,
            *(keys or ("x",)),
            *([keys[0]] * 3 if keys else ()),
            *(["nope"] * bool(keys)),
        )


def goldens(shared: Path, models: Mapping[tuple[str, str], Model]) -> list[tuple[Model, File]]:
    """What Burn wrote itself: of each model, in both versions' values."""
    found = []
    for version, folder in FOLDERS.items():
        for path in sorted((shared / "fixtures" / "burn" / folder).rglob("*")):
            if path.suffix not in (".bpk", ".safetensors"):
                continue
            name = path.name.partition(".")[0]
            model = models[name if name in MODELS else "net", version]
            dtypes: frozenset[str] = frozenset()
            if path.suffix == ".safetensors":
                dtypes = frozenset(map(dtype_word, arrays_of(path.read_bytes()).values()))
            found.append((model, File(path, path.suffix[1:], version, "Burn's own", dtypes)))
    return found


def torch_files(shared: Path, ask: Callable[..., Any], model: Model) -> list[tuple[Model, File]]:
    """The files of torch that both versions of Burn read alike, and right as torch tells it."""
    folder = shared / "fixtures"
    told = json.loads((folder / "manifest.json").read_text())["files"]
    found = []
    for name in sorted(told):
        tensors, path = told[name].get("tensors"), folder / name
        if "optional" in told[name]:  # a bare storage beside tensors: Burn passes over it, here it is a tensor
            continue
        if not name.startswith("torch/") or path.suffix not in (".pt", ".pth") or not tensors or path.stat().st_size > 1 << 20:
            continue
        right = {key: (row["shape"], row["sha256"]) for key, row in tensors.items()}
        answers = [ask(version, "list", path, {"map_indices_contiguous": False}) for version in FOLDERS]
        rows = [{row["name"]: (row["shape"], row.get("sha256")) for row in answer.get("tensors", ())} for answer in answers]
        if rows[0] == rows[1] == right:
            keys = (
                *sorted({key.partition(".")[0] for key in right if "." in key}),
                *[key for key in right if "." not in key][:1],
            )
            found.append((model, File(path, "pt", "0.22", "torch's own", keys=keys)))
    return found


def loads(draw: random.Random, files: Sequence[tuple[Model, File]], models: Mapping[tuple[str, str], Model]) -> Iterator[Case]:
    """Without an end, loads of files into models that mostly fit."""
    number = 0
    while True:
        model, file = draw.choice(files)
        if draw.random() < 0.05 and file.format != "pt":
            model = models[draw.choice(MODELS), file.version]
        version = _version(draw, file)
        model = models[model.name, version]
        if model.name == "columns" or "/raw/quant" in file.path.as_posix():
            continue
        options: dict[str, Any] = {"values": "ramp"}
        paths = [row["path"] for row in model.rows]
        _filters(draw, options, paths, 0.4)
        _rules(draw, options, 0.35, 2)
        _of_store(draw, options, file.format, version, file.keys, True)
        _maybe(draw, options, "allow_partial", 0.5, True, True, True, False)
        _maybe(draw, options, "validate", 0.4, False, False, True)
        if file.format != "bpk" and not model.has_enums:
            _maybe(draw, options, "skip_enum_variants", 0.15, True, False)
        elif file.format == "pt":
            options["skip_enum_variants"] = False
        _spoil(draw, options)
        yield Case(number, "load", version, options, model, file)
        number += 1


def _version(draw: random.Random, file: File) -> str:
    """The version of Burn that is right about a file: Burnpack spells booleans by version, and only 0.22 has all dtypes."""
    if file.format == "bpk" or file.version == "0.22":
        return file.version
    return draw.choice(("0.20", "0.22"))


def lists(draw: random.Random, files: Sequence[tuple[Model, File]]) -> Iterator[Case]:
    """Without an end, listings of files."""
    number = 0
    while True:
        model, file = draw.choice(files)
        options: dict[str, Any] = {}
        _filters(draw, options, [row["path"] for row in model.rows], 0.35)
        _rules(draw, options, 0.5)
        version = _version(draw, file)
        _of_store(draw, options, file.format, version, file.keys, True)
        _spoil(draw, options)
        yield Case(number, "list", version, options, model, file)
        number += 1


def saves(draw: random.Random, models: Mapping[tuple[str, str], Model], folder: Path) -> Iterator[Case]:
    """Without an end, savings of models."""
    number = 0
    while True:
        model = draw.choice(list(models.values()))
        format = draw.choice(("bpk", "safetensors", "safetensors"))
        options: dict[str, Any] = {"values": "ramp"}
        _filters(draw, options, [row["path"] for row in model.rows], 0.45)
        _rules(draw, options, 0.5 if format == "safetensors" else 0.2)
        _of_store(draw, options, format, model.version, (), False)
        if draw.random() < 0.3:
            options["metadata"] = {
                draw.choice(("version", "note", "", "é", "format")): draw.choice(("1.0", "", "ü\n")) for _ in range(2)
            }
        _maybe(draw, options, "clear_metadata", 0.15, True)
        _maybe(draw, options, "overwrite", 0.3, True, True, False)
        if draw.random() < 0.02:  # nothing at all is saved
            options = {"values": "ramp", "regex": ["nothing like it"], "clear_metadata": True}
        _spoil(draw, options)
        exists = draw.random() < 0.15
        file = File(folder / f"saved{number}.{format}", format, model.version, "to be saved")
        yield Case(number, "save", model.version, options, model, file, exists=exists)
        number += 1


def _names(draw: random.Random, models: Sequence[Model]) -> tuple[str, ...]:
    kind = draw.random()
    if kind < 0.3:
        return tuple(draw.sample(list(draw.choice(models).arrays), draw.randint(1, 3)))
    names = {
        ".".join(draw.choice(_ODD if draw.random() < 0.06 else _SEGMENTS) for _ in range(draw.randint(1, 5)))
        for _ in range(draw.randint(1, 12))
    }
    if kind < 0.45:
        names |= {random_patterns.name(draw) for _ in range(4)}
    return tuple(sorted(name for name in names if name.strip() == name and name and "\x1f" not in name)) or ("a",)


def remaps(draw: random.Random, models: Sequence[Model]) -> Iterator[Case]:
    """Without an end, rules on names."""
    number = 0
    while True:
        names, options = _names(draw, models), dict[str, Any]()
        _rules(draw, options, 1)
        kind = draw.random()
        if kind < 0.5:
            rule = [random_patterns.pattern(draw, 3), draw.choice(random_patterns.REPLACEMENTS)]
            options["remap"] = [*options["remap"][:1], rule] if kind < 0.2 else [rule]
        elif kind < 0.55:
            options["remap"] = [list(draw.choice(_BACKSLASHES))]
        elif kind < 0.57:
            options["remap"].append([draw.choice(BAD), "x"])
        elif kind < 0.58:
            options["remap"].append([draw.choice(_REFUSED), "x"])
        yield Case(number, "remap", draw.choice(("0.20", "0.22")), options, names=names)
        number += 1


def counts(draw: random.Random, models: Sequence[Model]) -> Iterator[Case]:
    """Without an end, names whose lists are to be counted without gaps."""
    number = 0
    while True:
        names = _names(draw, models)
        # 0.20 kept a list of names that begin with a dot apart from the others
        version = "0.22" if any(name.startswith(".") for name in names) else draw.choice(("0.20", "0.22"))
        yield Case(number, "contiguous", version, names=names)
        number += 1


def filters(draw: random.Random, models: Sequence[Model]) -> Iterator[Case]:
    """Without an end, filters on names."""
    number = 0
    while True:
        names, options, version = _names(draw, models), dict[str, Any](), draw.choice(("0.20", "0.22"))
        _filters(draw, options, names, 1)
        kind = draw.random()
        if kind < 0.5:
            options["regex"] = [*options.get("regex", [])[:1], random_patterns.pattern(draw, 3)]
        elif kind < 0.53:
            options["regex"] = [draw.choice(BAD)]
        yield Case(number, "filter", version, options, names=names)
        number += 1
