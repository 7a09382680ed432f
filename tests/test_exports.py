"""What `import burnstore` gives, and what it costs."""

from __future__ import annotations

import inspect

import pytest

import burnstore
import burnstore as bs
from tests.sources.processes import run_python

PUBLIC = {name: getattr(bs, name) for name in bs.__all__}


def members() -> list[tuple[str, object]]:
    """Every public function, class and method, and every method that a public class shows."""
    found: list[tuple[str, object]] = []
    for name, value in PUBLIC.items():
        if inspect.ismodule(value):
            continue
        found.append((name, value))
        if inspect.isclass(value):
            for kind in value.__mro__:
                if not kind.__module__.startswith("burnstore"):
                    continue
                for attribute, member in vars(kind).items():
                    plain = getattr(member, "__func__", getattr(member, "fget", member))
                    if not attribute.startswith("_") and inspect.isfunction(plain):
                        found.append((f"{name}.{attribute}", getattr(value, attribute)))
    return found


def test_all_is_complete_and_sorted() -> None:
    assert bs.__all__ == sorted(bs.__all__) and len(set(bs.__all__)) == len(bs.__all__)
    assert set(dir(bs)) == {*bs.__all__, "__version__"}
    typed = inspect.getsource(burnstore).partition("if TYPE_CHECKING:\n    from")[2].partition("\n\n")[0]
    assert {line.rpartition(" as ")[2] for line in typed.splitlines()} == set(bs.__all__)


def test_every_error_is_reached_through_the_errors_module() -> None:
    assert bs.errors.BurnstoreError in bs.errors.FormatError.__mro__


@pytest.mark.parametrize("name", bs.__all__)
def test_every_public_name_is_there_and_says_where_it_is_from(name: str) -> None:
    value = getattr(bs, name)
    assert value is not None and (inspect.ismodule(value) or value.__module__.startswith("burnstore."))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        bs.opne  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "member"), members(), ids=[name for name, _ in members()])
def test_everything_public_has_a_docstring(name: str, member: object) -> None:
    assert inspect.getdoc(member)


# A property of one word, or a builder that the class's own example shows, needs none of its own.
@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if not inspect.ismodule(value)])
def test_every_public_function_and_class_has_an_example_that_runs(name: str) -> None:
    assert ">>> " in (inspect.getdoc(PUBLIC[name]) or "")


def test_the_version_is_that_of_the_project() -> None:
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert bs.__version__ == project["version"]


def test_importing_burnstore_imports_no_library() -> None:
    run_python(
        """
import sys
before = set(sys.modules)
import burnstore
new = {name.partition(".")[0] for name in set(sys.modules) - before}
heavy = {"numpy", "ml_dtypes", "msgspec", "cbor2", "torch", "dataclasses", "inspect", "asyncio", "mmap", "threading"}
assert not new & heavy, sorted(new & heavy)
assert "burnstore.api" not in sys.modules
"""
    )


@pytest.mark.parametrize("suffix", ["safetensors", "bpk"])
def test_opening_and_listing_a_file_imports_no_numpy(suffix: str, tmp_path: object) -> None:
    path = f"{tmp_path}/w.{suffix}"
    bs.save({"a": [1.0], "b": [True]}, path)
    run_python(
        """
import sys
import burnstore as bs
with bs.open(sys.argv[1]) as store:
    assert list(store) and store["a"].shape == (1,) and str(store["a"].dtype) == "F64" and repr(store)
    assert store["a"].tobytes() == bytes(6) + b"\\xf0?"
heavy = {"numpy", "ml_dtypes", "torch"} & set(sys.modules)
assert not heavy, heavy
""",
        path,
    )


@pytest.mark.parametrize("suffix", ["safetensors", "bpk"])
def test_converting_a_file_imports_no_numpy(suffix: str, tmp_path: object) -> None:
    path = f"{tmp_path}/w.{suffix}"
    bs.save({"a": [1.0], "b": [True]}, path)
    run_python(
        """
import sys
import burnstore as bs
bs.convert(sys.argv[1], sys.argv[1] + ".other.bpk")
bs.convert(sys.argv[1], sys.argv[1] + ".other.safetensors")
heavy = {"numpy", "ml_dtypes", "torch"} & set(sys.modules)
assert not heavy, heavy
""",
        path,
    )


def test_a_torch_that_is_installed_is_not_imported(tmp_path: object) -> None:
    run_python(
        """
import sys
import burnstore as bs
data = bs.save({"a": [1.0], "b": [[True]]}, bytes, format="safetensors")
bs.read(data), bs.verify(data), bs.convert(data, bytes, format="bpk")
assert not {"torch", "jax", "tensorflow", "mlx", "safetensors"} & set(sys.modules)
"""
    )
