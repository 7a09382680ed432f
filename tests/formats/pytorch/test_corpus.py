"""Files that torch wrote, and files that were made to break readers, against what torch itself says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import burnstore as bs
from burnstore.errors import BurnstoreError
from burnstore.formats.pytorch.values import plain_values
from tests.conftest import DATA, shared_folder
from tests.formats.pytorch.manifests import differs, entries, named, value_at, value_is

_SMALL = DATA / "torch"
_SHARED = (shared_folder() or Path("/nowhere")) / "fixtures"
_KINDS = ("torch", "torch_zip", "hostile", "zoo")


def _files(folder: Path, *kinds: str) -> list[Any]:
    return [pytest.param(folder, path, entry, id=path) for path, entry in entries(folder, *kinds).items()]


_ALL = _files(_SMALL) + (
    [
        pytest.param(*param.values, id=f"shared-{param.id}", marks=pytest.mark.shared)
        for param in (_files(_SHARED, *_KINDS) if _SHARED.exists() else [])
    ]
)


@pytest.mark.parametrize(("folder", "path", "entry"), _ALL)
def test_a_file_gives_what_torch_reads_from_it_or_an_error(folder: Path, path: str, entry: dict[str, Any]) -> None:
    expect = entry["expect"]
    try:
        store = bs.open(folder / path)
    except BurnstoreError:
        assert expect != "ok"
        return
    wanted = named(store, entry)
    optional, arrays, unread = set(entry.get("optional", ())), entry.get("numpy_arrays", {}), entry.get("checker_skip_read", ())
    wrong, refused = [], []
    for name in store:
        snapshot = store[name]
        want = wanted.get(name) or arrays.get(name)
        try:
            if want:
                wrong += [f"{name}: {what}"] if (what := differs(snapshot, want)) else []
            elif name not in unread and name not in optional and "*" not in optional:
                snapshot.numpy()
                known = entry.get("extra", {}).get(name)
                wrong += [] if expect == "refuse_or_both" or known else [f"{name}: values for what has none"]
        except BurnstoreError:
            refused.append(name)
    assert not wrong
    if expect == "ok":
        assert set(wanted) <= set(store) - set(refused)
        assert not set(store) - set(wanted) - optional - set(arrays) - set(entry.get("bad", {})) or "*" in optional
    elif expect == "refuse":
        assert refused
    elif expect == "refuse_or_rest":
        assert set(wanted) <= set(store) - set(refused)
    if entry.get("order"):
        assert [name for name in store if name in entry["order"]] == entry["order"]


_WITH_VALUES = [param for param in _ALL if param.values[2].get("values") and param.values[2]["expect"] in ("ok", "ok_or_refuse")]


@pytest.mark.parametrize(("folder", "path", "entry"), _WITH_VALUES)
def test_values_that_are_no_tensors_come_out_as_plain_python(folder: Path, path: str, entry: dict[str, Any]) -> None:
    with bs.open(folder / path) as store:
        root = plain_values(store.contents)  # type: ignore[arg-type]
    for name, want in entry["values"].items():
        if want["type"] != "opaque":
            assert value_is(value_at(root, name), want), name


_WITH_ALIASES = [param for param in _ALL if param.values[2].get("aliases")]


@pytest.mark.parametrize(("folder", "path", "entry"), _WITH_ALIASES)
def test_tied_tensors_know_each_other(folder: Path, path: str, entry: dict[str, Any]) -> None:
    store = bs.open(folder / path)
    for group in entry["aliases"]:
        for name in group:
            assert set(store[name].shares_with) == set(group) - {name}


_DENSE = ("views", "channels_last", "conj_neg", "legacy_views", "dtypes_small", "shapes", "lists_tuples")


@pytest.mark.parametrize("stem", _DENSE)
@pytest.mark.parametrize("how", ["bytes", "file object", "pread"])
def test_bytes_file_objects_and_pread_give_the_values_of_the_mapped_file(stem: str, how: str) -> None:
    path = next(_SMALL.glob(f"torch/{stem}.pt*"))
    entry = entries(_SMALL)[str(path.relative_to(_SMALL))]
    with path.open("rb") as file:
        store = (
            bs.open(path, io="pread") if how == "pread" else bs.open(file) if how == "file object" else bs.open(path.read_bytes())
        )
        for name, want in named(store, entry).items():
            assert differs(store[name], want) is None


def test_the_small_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in _SMALL.rglob("*") if path.is_file()) < 1024 * 1024
