"""What holds for the project as a whole: its package, its documentation, its imports."""

from __future__ import annotations

import ast
import dataclasses
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import burnstore
from burnstore.dtypes import describe_dtypes

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def named(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.relative_to(ROOT).as_posix())


# --- the package


def test_the_version_is_that_of_the_project_file() -> None:
    assert burnstore.__version__ == PROJECT["version"]


def test_the_core_depends_on_four_packages_and_nothing_else() -> None:
    names = [re.split(r"[<>=]", requirement)[0] for requirement in PROJECT["dependencies"]]
    assert sorted(names) == ["cbor2", "ml_dtypes", "msgspec", "numpy"]


def test_the_wheel_holds_the_package_with_its_types_and_licenses_and_no_tests(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    modules = {path.relative_to(ROOT / "src").as_posix() for path in SOURCES}
    info = f"burnstore-{PROJECT['version']}.dist-info/"
    extra = {info + name for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE-MIT", "licenses/LICENSE-APACHE")}
    assert set(names) == modules | {"burnstore/py.typed"} | extra


# --- imports


def runtime_imports(tree: ast.Module) -> Iterator[str]:
    """The packages that a module imports when it is imported."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


# Whoever imports this one holds arrays, so NumPy is there already.
OF_ARRAYS = {"arrays.py", "kernels.py", "mappings.py"}
# Whoever imports the first two has a configuration to read or write; `dataclasses`, which the third needs, imports `inspect`.
OF_CONFIGURATIONS = {"config.py": {"inspect"}, "json_text.py": {"json"}, "keywords.py": {"inspect"}}


@named([path for path in SOURCES if "testing" not in path.parts])
def test_a_module_imports_at_its_top_only_what_every_use_of_it_needs(path: Path) -> None:
    imported = set(runtime_imports(ast.parse(path.read_text("utf-8"))))
    allowed = {*sys.stdlib_module_names, "burnstore", "cbor2", "msgspec"}
    assert imported <= (allowed | {"numpy"} if path.name in OF_ARRAYS else allowed)
    slow = {"json", "pickle", "zipfile", "concurrent", "argparse", "inspect", "tempfile"}
    assert not (imported - OF_CONFIGURATIONS.get(path.name, set())) & slow


def test_opening_a_file_imports_neither_numpy_nor_a_framework() -> None:
    program = "import sys, burnstore; burnstore.open(sys.argv[1]); print(*{name.partition('.')[0] for name in sys.modules})"
    command = [sys.executable, "-c", program, str(ROOT / "examples" / "data" / "net.bpk")]
    imported = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert "burnstore" in imported
    assert not {"numpy", "ml_dtypes", "torch", "jax", "safetensors"} & set(imported)


# --- the documentation


@named(PAGES)
def test_every_python_block_of_a_page_is_an_example_that_runs(path: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        assert block.startswith(">>> ")
        assert block.endswith("\n\n"), f"an empty line must end the last answer of: {block}"


@named(PAGES)
def test_every_link_within_the_project_leads_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", path.read_text("utf-8")):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings], link


def test_every_page_is_reached_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name != "index.md":
            assert f"](docs/{page.name})" in readme
            assert f"]({page.name})" in index


def test_every_public_name_is_documented() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    assert [name for name in burnstore.__all__ if not re.search(rf"\b{name}\b", text)] == []


def table(page: str, head: str) -> list[list[str]]:
    """The cells of the table that begins with `head`, without backquotes."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    lines = text[text.index(head) :].splitlines()
    rows = lines[2 : next(i for i, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in rows]


def test_the_table_of_dtypes_is_that_of_the_code() -> None:
    said = table("formats.md", "| dtype | bits |")
    rows = [(d.name, str(d.bits), d.burn_name, d.safetensors_name, d.torch_name, d.numpy_name) for d in describe_dtypes()]
    assert said == [[cell or "–" for cell in row] for row in rows]


def test_the_table_of_limits_has_every_limit_with_its_default() -> None:
    units = {"GiB": 2**30, "MiB": 2**20}
    said = {}
    for name, default, _ in table("safety.md", "| cap | default |"):
        number, _, unit = default.replace(",", "").partition(" ")
        said[name] = int(number) * units.get(unit, 1)
    assert said == dataclasses.asdict(burnstore.Limits())


@pytest.mark.parametrize(("column", "store"), [(1, burnstore.BurnpackStore), (2, burnstore.SafetensorsStore)])
def test_the_table_of_store_methods_says_yes_where_there_is_one(column: int, store: type) -> None:
    rows = table("from-burn.md", "| method | BurnpackStore |")
    assert rows
    for row in rows:
        assert hasattr(store, row[0].partition("(")[0]) == (row[column] == "yes"), row[0]


# --- words

# The project speaks of itself, not of how the work on it is organized. A class of one letter keeps a pattern from finding itself.
_FORBIDDEN = re.compile(
    r"\bissue ?#?[0-9]+\b|\bpart [0-9] of [0-9]\b|\b(this|next|last|previous|later|another) [s]ession\b|\bsub-?[a]gent"
    r"|\bother [h]elpers?\b|\b[c]laude\b|\bas an [A]I\b"
    r"|(?-i:\b(DESIGN|FORMATS|USERS|STYLE)(\.[m]d| [§]))|/[w]ork/|\b[T]ODO\b|\b[F]IXME\b",
    re.IGNORECASE,
)
_TEXT = {".py", ".md", ".toml", ".txt", ".sh", ".cfg", ".ini", ""}
_FOLDERS = ["src", "tests", "docs", "examples", "benchmarks", "requirements", ".ci"]


def texts() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in _TEXT and path.name != ".coverage")
    for folder in _FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in _TEXT and "__pycache__" not in path.parts and "data" not in path.parts:
                yield path


def test_no_file_speaks_of_how_the_work_is_organized() -> None:
    found = []
    for path in texts():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            match = _FORBIDDEN.search(line)
            if match:
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0]}")
    assert found == []


@named(PAGES)
def test_no_page_has_an_emoji(path: Path) -> None:
    assert re.findall("[\u2600-\u27bf\U0001f300-\U0001faff]", path.read_text("utf-8")) == []
