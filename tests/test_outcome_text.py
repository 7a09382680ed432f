"""How the result of a load looks."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from burnstore.dtypes import DType
from burnstore.outcome import ApplyError, ApplyResult, Cast, Dialects, ErrorKind
from burnstore.outcome_text import error_families, result_html, result_text, summary_text
from tests.conftest import Oracle

F32, F16, BF16, I64 = (DType.of(name) for name in ("F32", "F16", "BF16", "I64"))
FOLDER = Path(__file__).parent / "data" / "burn" / "apply_result"
CASES: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_text("utf-8"))
REPORTS = [case for case in CASES if "result" in case]

OF_SHAPE = re.compile(r"Shape \{ dims: (\[[0-9, ]*\]) \}")

# All lines of Burn's report that differ in ours: the code that it advises is Rust there and Python here.
IN_PYTHON = {
    '│         let mut store = PytorchStore::from_file("model.pth")\n│             .skip_enum_variants(true);  // ← Add this\n': (
        '│         store = PytorchStore.from_file("model.pth").skip_enum_variants(True)  # ← Add this\n'
    ),
    '│         let mut store = SafetensorsStore::from_file("model.safetensors")\n'
    '│             .with_key_remapping(r"field\\.(\\w+)", "field.BaseConv.$1");\n': (
        '│         store = SafetensorsStore.from_file("model.safetensors")'
        '.with_key_remapping(r"field\\.(\\w+)", "field.BaseConv.$1")\n'
    ),
}


def in_our_words(text: str, version: str) -> str:
    """Burn's text with Python's code, and shapes as Burn 0.20 writes them: 0.22 says `Shape { dims: [2] }` for `[2]`."""
    text = OF_SHAPE.sub(r"\1", text) if version == "0.22" else text
    for rust, python in IN_PYTHON.items():
        text = text.replace(rust, python)
    return text


def burns_words(case: str, version: str) -> str:
    """What Burn printed, in our words."""
    return in_our_words((FOLDER / f"apply_result_{case}.{version}.txt").read_text("utf-8"), version)


def error_of(debug: str) -> ApplyError:
    """The error that Burn's Debug text stands for."""
    debug = OF_SHAPE.sub(r"\1", debug)
    kind, path, rest = re.fullmatch(r'(\w+) \{ path: "([^"]+)", (.*) \}', debug).groups()  # type: ignore[union-attr]
    if kind == "LoadError":
        return ApplyError(kind, path, message=json.loads(rest.removeprefix("message: ")))
    expected, found = re.fullmatch(r"expected: (.*), found: (.*)", rest).groups()  # type: ignore[union-attr]
    if kind == "DTypeMismatch":
        return ApplyError(kind, path, expected=DType.of(expected), found=DType.of(found))
    return ApplyError("ShapeMismatch", path, expected=tuple(json.loads(expected)), found=tuple(json.loads(found)))


def result_of(case: dict[str, Any]) -> ApplyResult:
    said = case["result"]
    return ApplyResult(
        applied=said["applied"],
        skipped=said["skipped"],
        missing=[(path, container) for path, container in said["missing"]],
        unused=said["unused"],
        errors=[error_of(debug) for debug in said["errors_debug"]],
    )


def title(case: dict[str, Any]) -> str:
    return f"{case['case']}-{case['version']}"


# --- Burn's frame


@pytest.mark.parametrize("case", REPORTS, ids=title)
def test_a_report_is_burns_word_for_word(case: dict[str, Any]) -> None:
    result = result_of(case)
    expected = burns_words(case["case"], case["version"]).removesuffix("\n")
    assert str(result) == repr(result) == expected
    assert result.is_success() == case["result"]["is_success"]


@pytest.mark.parametrize(
    ("strict", "lenient"), [("missing_strict_safetensors", "missing_partial"), ("enum_missing_strict", "enum_missing")]
)
@pytest.mark.parametrize("version", ["0.20", "0.22"])
def test_the_report_within_burns_error_is_the_one_that_a_lenient_load_gives(strict: str, lenient: str, version: str) -> None:
    (case,) = (case for case in REPORTS if (case["case"], case["version"]) == (lenient, version))
    text = burns_words(strict, version)
    assert text[text.index("┌") : text.rindex("─") + 1] == str(result_of(case))


@pytest.mark.parametrize("case", [case for case in REPORTS if case["result"]["errors"]], ids=title)
def test_errors_print_as_burns(case: dict[str, Any]) -> None:
    said = [OF_SHAPE.sub(r"\1", text) for text in case["result"]["errors"]]
    debug = [OF_SHAPE.sub(r"\1", text) for text in case["result"]["errors_debug"]]
    errors = result_of(case).errors
    assert [str(error) for error in errors] == said
    assert [repr(error) for error in errors] == debug


def test_the_debug_text_of_errors_is_in_burns_strict_error() -> None:
    (case,) = (case for case in REPORTS if title(case) == "shape_mismatch_lenient-0.20")
    assert repr(result_of(case).errors) in burns_words("shape_mismatch_strict", "0.20")


def test_every_text_that_burn_printed_is_compared_or_holds_no_report() -> None:
    compared = {title(case) for case in REPORTS}
    compared |= {
        f"{case}-{version}" for case in ("missing_strict_safetensors", "enum_missing_strict") for version in ("0.20", "0.22")
    }
    for case in CASES:
        if title(case) not in compared:
            assert "┌" not in burns_words(case["case"], case["version"])


def test_ten_errors_are_shown_and_the_rest_counted() -> None:
    errors = [ApplyError("LoadError", f"a{n}", message=f"no {n}") for n in range(12)]
    lines = str(ApplyResult(errors=errors)).splitlines()
    assert sum("⚠️" in line for line in lines) == 10
    assert "│    ... and 2 more" in lines


# --- notes


def notes(result: ApplyResult) -> list[str]:
    """The lines of our block, between its title and the foot."""
    head, _, rest = str(result).partition("│\n├─ Notes\n│\n")
    assert head.endswith("\n") or not rest
    return rest.splitlines()[:-2]


def test_where_there_is_nothing_to_say_there_are_no_notes() -> None:
    quiet = ApplyResult(applied=["a"], renames=[("b", "a")], dialects=Dialects("burn", "burn", "it says so"), source="m.bpk")
    assert "Notes" not in str(quiet)


def test_notes_stand_before_the_foot_in_the_frame() -> None:
    lines = str(ApplyResult(errors=[ApplyError("LoadError", "a", message="no")], warnings=["careful"])).splitlines()
    assert lines[-6:-1] == ["│", "├─ Notes", "│", "│  ⚠️  careful", "│"] and lines[-1].startswith("└──")
    assert all(line[0] in "┌│├└" for line in lines)


def test_notes_say_warnings_hints_the_nest_and_the_dialect() -> None:
    result = ApplyResult(
        applied=["a"], warnings=["w"], hints=["h"], key="model", dialects=Dialects("pytorch", "burn", "the file says format: pt")
    )
    assert notes(result) == [
        "│  ⚠️  w",
        "│  • Taken from under the key 'model': nothing at the top of the file fits, and this alone does",
        "│  • Translated from the dialect pytorch into burn: the file says format: pt",
        "│  💡 h",
    ]


def test_casts_are_counted_and_those_that_lose_something_are_marked_and_come_first() -> None:
    casts = [Cast("a", BF16, F32, lossy=False), *(Cast(f"l.{n}", F32, F16, lossy=True) for n in range(5))]
    assert notes(ApplyResult(applied=["a"], casts=casts)) == [
        "│  ⚠️  Cast F32 to F16, which loses precision: 5 tensors (l.0, l.1, l.2 and 2 more)",
        "│  • Cast BF16 to F32: 1 tensor (a)",
    ]


def test_many_warnings_and_hints_are_cut_at_ten() -> None:
    lines = notes(ApplyResult(warnings=[f"w{n}" for n in range(30)], hints=[f"h{n}" for n in range(12)]))
    assert lines.count("│    ... and 20 more") == lines.count("│    ... and 2 more") == 1
    assert len(lines) == 22


# --- families of errors


def shape_error(path: str, expected: tuple[int, ...], found: tuple[int, ...], message: str = "") -> ApplyError:
    return ApplyError("ShapeMismatch", path, expected=expected, found=found, message=message)


def test_three_hundred_mismatches_are_folded_into_families() -> None:
    errors = [shape_error(f"layers.{n}.attn.weight", (8, 4), (4, 8)) for n in range(96)]
    errors += [ApplyError("DTypeMismatch", f"layers.{n}.steps", expected=F32, found=I64) for n in range(200)]
    errors += [shape_error("head.weight", (10, 4), (12, 4))]
    assert notes(ApplyResult(errors=errors)) == [
        "│  297 errors of 3 kinds:",
        "│    • 200 alike: layers.*.steps expected F32, found I64",
        "│    • 96 alike: layers.*.attn.weight expected [8, 4], found [4, 8] (transposed)",
        "│    • Shape mismatch for 'head.weight': expected [10, 4], found [12, 4]",
    ]


def test_shapes_that_differ_within_a_family_are_not_said_of_all() -> None:
    errors = [shape_error(f"layers.{n}.w", (n, 4), (4, n)) for n in range(5, 17)]
    assert error_families(errors) == [
        "12 alike: layers.*.w (transposed), with different shapes, the first is layers.5.w expected [5, 4], found [4, 5]"
    ]


@pytest.mark.parametrize(
    ("expected", "found", "relation"),
    [
        ((2, 3), (3, 2), "transposed"),
        ((2, 3, 4), (4, 3, 2), "axes reversed"),
        ((2, 3, 4), (3, 2, 4), "axes in another order"),
        ((2, 3), (2, 4), "other sizes"),
        ((4,), (4, 1), "1 and 2 axes"),
        ((), (1,), "0 and 1 axes"),
    ],
)
def test_a_family_says_how_its_shapes_relate(expected: tuple[int, ...], found: tuple[int, ...], relation: str) -> None:
    (text,) = error_families([shape_error(f"l.{n}", expected, found) for n in range(2)])
    assert text == f"2 alike: l.* expected {list(expected)}, found {list(found)} ({relation})"


def test_what_stands_in_another_relation_or_is_of_another_kind_is_another_family() -> None:
    errors = [shape_error("l.0.w", (2, 3), (3, 2)), shape_error("l.1.w", (2, 3), (2, 4))]
    errors += [ApplyError("DTypeMismatch", "l.2.w", expected=F32, found=I64), ApplyError("DTypeMismatch", "l.3.w", F16, I64)]
    assert error_families(errors) == [str(error) for error in errors]


def test_only_list_indices_are_folded_not_digits_within_a_name() -> None:
    errors = [shape_error(f"conv{n}.w", (2,), (3,)) for n in range(2)]
    assert error_families(errors) == [str(error) for error in errors]
    assert error_families([shape_error(f"{n}.w.{n}", (2,), (3,)) for n in range(2)])[0].startswith("2 alike: *.w.* ")


def test_a_message_is_said_of_a_family_only_if_all_have_it() -> None:
    same = [shape_error(f"l.{n}", (2,), (3,), "it is tied") for n in range(3)]
    assert error_families(same) == ["3 alike: l.* expected [2], found [3] (other sizes); it is tied"]
    assert error_families([*same, shape_error("l.3", (2,), (3,))]) == ["4 alike: l.* expected [2], found [3] (other sizes)"]
    cut = [ApplyError("LoadError", f"l.{n}", message=f"cut at {n}") for n in range(3)]
    assert error_families(cut) == ["3 alike: l.*: for different reasons, the first is Load error for 'l.0': cut at 0"]
    assert error_families([ApplyError("AdapterError", f"l.{n}", message="no") for n in range(3)]) == ["3 alike: l.*: no"]


@pytest.mark.parametrize("count", [1, 10])
def test_ten_errors_are_shown_as_they_are_without_families(count: int) -> None:
    assert notes(ApplyResult(errors=[shape_error(f"l.{n}", (2,), (3,)) for n in range(count)])) == []


def test_errors_of_which_no_two_are_alike_are_not_said_twice() -> None:
    assert notes(ApplyResult(errors=[shape_error(f"l{n}", (2,), (3,)) for n in range(20)])) == []


# --- names from files


EVIL = "a\x1b[31m\n│ ✓ b\u202e"


def test_names_and_messages_from_files_cannot_draw_in_the_report() -> None:
    result = ApplyResult(
        applied=[EVIL],
        skipped=[EVIL],
        missing=[(EVIL, "")],
        unused=[EVIL + "x"],
        errors=[ApplyError("LoadError", f"{EVIL}.{n}", message=EVIL) for n in range(12)],
        casts=[Cast(EVIL, F32, F16, lossy=True)],
        dialects=Dialects(EVIL, "burn", EVIL),
        warnings=[EVIL],
        hints=[EVIL],
        key=EVIL,
    )
    for text in (str(result), result_html(result), result.summary()):
        assert all(line.isprintable() for line in text.split("\n"))
        assert "\x1b" not in text
    assert len(str(result).split("\n")) == len(str(result).splitlines())
    assert not any(line.startswith("│ ✓ b") for line in str(result).split("\n"))
    assert "\n" not in result.summary()


def test_endless_names_are_cut() -> None:
    long = "x" * 1_000_000
    result = ApplyResult(
        missing=[(long, "")], unused=[long], warnings=[long], errors=[ApplyError("LoadError", long, message=long)]
    )
    assert len(str(result)) < 6000 and len(result_html(result)) < 8000 and len(result.summary()) < 1000


# --- one line


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ApplyResult(applied=["a"]), "1 of 1 tensor was applied"),
        (ApplyResult(applied=["a", "b"], skipped=["c", "d"]), "2 of 4 tensors were applied, 2 were skipped"),
        (ApplyResult(skipped=["a"]), "no tensor was applied, the only one was skipped"),
        (ApplyResult(skipped=["a", "b"]), "no tensor was applied, all 2 were skipped"),
        (ApplyResult(unused=["a"]), "the model has no tensors"),
        (ApplyResult(missing=[(f"a{n}", "") for n in range(5)]), "5 of 5 tensors are missing (a0, a1, a2 and 2 more)"),
    ],
)
def test_the_summary_is_one_line(result: ApplyResult, text: str) -> None:
    assert summary_text(result) == text


def test_the_summary_names_each_kind_of_trouble_once() -> None:
    kinds: list[ErrorKind] = ["ShapeMismatch", "DTypeMismatch", "AdapterError", "LoadError"]
    errors = [ApplyError(kind, kind[0].lower()) for kind in kinds] + [ApplyError("ShapeMismatch", "s2")]
    result = ApplyResult(applied=["a"], missing=[("m", "")], errors=errors)
    assert summary_text(result) == (
        "1 of 7 tensors is missing (m), 2 have another shape (s, s2), 1 has a dtype that does not fit (d), "
        "1 could not be adapted (a) and 1 could not be loaded (l)"
    )


# --- printing


def test_a_result_is_printed_where_one_says(capsys: pytest.CaptureFixture[str]) -> None:
    result, file = ApplyResult(applied=["a"]), io.StringIO()
    result.print(file)
    assert file.getvalue() == f"{result}\n" and capsys.readouterr().out == ""
    result.print()
    assert capsys.readouterr().out == file.getvalue()


def test_the_notebook_shows_the_same_facts_escaped() -> None:
    result = ApplyResult(
        applied=[f"ok{n}" for n in range(12)],
        missing=[("<img>.weight", "")],
        unused=["<img>.wieght"],
        errors=[ApplyError("LoadError", "<b>", message="&")],
        hints=["<i>"],
    )
    html = result._repr_html_()
    assert html == result_html(result)
    assert not re.search("<img|<b>|<i>", html)
    for shown in (
        "ok9",
        "… and 2 more",
        "&lt;img&gt;.weight (did you mean &lt;img&gt;.wieght?)",
        "&lt;b&gt;",
        "&amp;",
        "&lt;i&gt;",
    ):
        assert shown in html
    assert "ok10" not in html


def test_a_report_of_any_size_is_short() -> None:
    names = [f"layers.{n}.weight" for n in range(20_000)]
    result = ApplyResult(
        applied=names,
        missing=[(name, "") for name in names],
        unused=[f"x.{name}" for name in names],
        errors=[shape_error(name, (2, 3), (3, 2)) for name in names],
        casts=[Cast(name, F32, F16, lossy=True) for name in names],
    )
    assert len(result_text(result).splitlines()) < 80
    assert "20,000 alike: layers.*.weight expected [2, 3], found [3, 2] (transposed)" in result_text(result)


# --- against the real Burn


@pytest.mark.parametrize("version", ["0.20", "0.22"])
@pytest.mark.parametrize(
    ("model", "rules"),
    [
        ("net", [["weight", "wieght"]]),
        ("zoo", [[r"\.", "_"]]),
        ("zoo", [["BaseConv.", ""], ["conv", "c"]]),
        ("seq", [["^encoder", "enc"], ["norm_1", "n1"]]),
        ("nested", [["1", "x"], ["bias", "b"]]),
    ],
)
def test_burn_prints_the_same_report_for_renamed_files(
    oracle: Oracle, shared: Path, version: str, model: str, rules: list[list[str]]
) -> None:
    file = shared / "fixtures" / "burn" / "v0.20.1" / "seed42" / f"{model}.safetensors"
    said = oracle(version, "load", model, file, {"remap": rules, "allow_partial": True, "validate": False})
    assert str(result_of(said)) == in_our_words(said["result"]["display"], version)
