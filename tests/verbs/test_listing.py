"""A store that renames and chooses: what it lists, and that every verb sees the same of it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

import burnstore as bs
from burnstore.verbs.listing import Named
from tests.sources.handmade import burnpack_bytes, safetensors_bytes

ARRAYS = {
    "net.encoder.0.weight": np.full((2, 3), 1, np.float32),
    "net.encoder.2.weight": np.full((2, 3), 2, np.float32),
    "net.encoder.2.bias": np.full(2, 3, np.float32),
    "net.head.bias": np.full(2, 4, np.float32),
    "step": np.array(7),
}
FILES = {
    "safetensors": safetensors_bytes(ARRAYS, {"k": "v"}),
    "bpk": burnpack_bytes({n: ("I64" if n == "step" else "F32", a.shape, a.tobytes()) for n, a in ARRAYS.items()}, {"k": "v"}),
    "pt": (lambda file: (torch.save({n: torch.tensor(a) for n, a in ARRAYS.items()}, file), file.getvalue())[1])(io.BytesIO()),
    "arrays": ARRAYS,
}
every = pytest.mark.parametrize("source", FILES)
NAMES = list(ARRAYS)


CHOICES: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({}, {name: name for name in NAMES}),
    ({"only": "bias$"}, {name: name for name in NAMES if name.endswith("bias")}),
    ({"only": ["bias$", "^step$"]}, {name: name for name in NAMES if name.endswith("bias") or name == "step"}),
    ({"skip": "encoder"}, {"net.head.bias": "net.head.bias", "step": "step"}),
    ({"only": "^net", "skip": ["weight$", "head"]}, {"net.encoder.2.bias": "net.encoder.2.bias"}),
    ({"only": lambda path, _: path == "step"}, {"step": "step"}),
    ({"only": bs.PathFilter().with_full_path("step")}, {"step": "step"}),
    ({"only": ~bs.PathFilter().with_regex("net")}, {"step": "step"}),
    ({"only": "nothing"}, {}),
    ({"rename": {r"^net\.": ""}}, {name.removeprefix("net."): name for name in NAMES}),
    # the filter sees the new names
    ({"rename": {r"^net\.": ""}, "only": "^net"}, {}),
    ({"rename": {r"^net\.": ""}, "only": "^head"}, {"head.bias": "net.head.bias"}),
    # each rule sees what the one before made of it
    ({"rename": [("^net", "a"), ("^a", "b")], "only": "head"}, {"b.head.bias": "net.head.bias"}),
    ({"rename": bs.KeyRemapper().add_pattern(r"^net\.(\w+)", "$1"), "only": "head"}, {"head.bias": "net.head.bias"}),
    (
        {"map_indices_contiguous": True},
        {name.replace("encoder.2", "encoder.1"): name for name in NAMES},
    ),
    ({"map_indices_contiguous": True, "only": r"\.1\."}, {n.replace("2", "1"): n for n in NAMES if ".2." in n}),
    ({"map_indices_contiguous_except": "encoder$"}, {name: name for name in NAMES}),
    ({"rename": {"encoder": "layers"}, "map_indices_contiguous_except": "encoder$", "only": r"\.1\.b"},
     {"net.layers.1.bias": "net.encoder.2.bias"}),
]  # fmt: skip


@every
@pytest.mark.parametrize(("keywords", "wanted"), CHOICES)
def test_a_store_lists_what_passes_under_its_new_names_in_the_files_order(
    source: str, keywords: dict[str, Any], wanted: dict[str, str]
) -> None:
    store = bs.open(FILES[source], **keywords)
    assert list(store) == list(wanted) == list(store.keys()) and len(store) == len(wanted)
    assert store.nbytes == sum(ARRAYS[origin].nbytes for origin in wanted.values())
    for name, origin in wanted.items():
        assert name in store and store[name].name == name
        np.testing.assert_array_equal(store[name].numpy(), ARRAYS[origin])
        assert store[name].shape == ARRAYS[origin].shape
    for gone in set(NAMES) - set(wanted):
        assert gone not in store and store.get(gone) is None
        with pytest.raises(bs.errors.TensorNotFoundError):
            store[gone]


@every
@pytest.mark.parametrize(("keywords", "wanted"), CHOICES)
def test_every_verb_sees_what_a_store_lists(source: str, keywords: dict[str, Any], wanted: dict[str, str]) -> None:
    made: list[dict[str, np.ndarray]] = [
        bs.read(FILES[source], **keywords),
        bs.read(bs.open(FILES[source], **keywords)),
        bs.read(bs.open(FILES[source], **keywords), copy=False),
        safetensors.numpy.load(bs.save(bs.open(FILES[source], **keywords), bytes, format="safetensors")),
        safetensors.numpy.load(bs.convert(bs.open(FILES[source], **keywords), bytes, format="safetensors")),
        {snapshot.name: snapshot.numpy() for snapshot in bs.merge(bs.open(FILES[source], **keywords))},
    ]
    for found in made:
        assert set(found) == set(wanted)
        for name, origin in wanted.items():
            np.testing.assert_array_equal(found[name], ARRAYS[origin])


@every
def test_convert_takes_the_same_keywords(source: str) -> None:
    for keywords, wanted in CHOICES:
        found = safetensors.numpy.load(bs.convert(FILES[source], bytes, format="safetensors", **keywords))
        assert set(found) == set(wanted)


@every
def test_what_a_file_says_of_itself_is_still_said(source: str) -> None:
    store = bs.open(FILES[source], only="bias$", rename={"net": "x"})
    assert store.format == bs.open(FILES[source]).format
    assert dict(store.metadata) == dict(bs.open(FILES[source]).metadata)
    assert "x.head.bias" in repr(store) and "x.head.bias" in store._repr_html_()


@pytest.mark.parametrize("kind", [bs.BurnpackStore, bs.SafetensorsStore, bs.PytorchStore])
def test_burns_stores_list_sorted_what_their_builders_say(kind: Any) -> None:
    source = {bs.BurnpackStore: "bpk", bs.SafetensorsStore: "safetensors", bs.PytorchStore: "pt"}[kind]
    store = kind.from_bytes(FILES[source]).map_indices_contiguous(False)
    assert store.keys() == sorted(NAMES)
    chosen = store.with_key_remapping("^net", "a").with_regex("bias$").with_full_path("step")
    assert chosen.keys() == ["a.encoder.2.bias", "a.head.bias", "step"]
    assert list(chosen.get_all_snapshots()) == chosen.keys()
    assert chosen.map_indices_contiguous().keys() == ["a.encoder.1.bias", "a.head.bias", "step"]
    assert chosen.match_all().keys() == sorted(name.replace("net", "a") for name in NAMES)
    assert store.keys() == sorted(NAMES)


def test_a_pytorch_store_closes_gaps_as_burns_does() -> None:
    assert "net.encoder.1.bias" in bs.PytorchStore.from_bytes(FILES["pt"])
    assert "net.encoder.2.bias" in bs.open(FILES["pt"])


def test_a_store_is_opened_again_with_more_to_say() -> None:
    """What it lists is what there is: more words narrow it, or rename what has been renamed."""
    store = bs.open(ARRAYS, only="encoder", rename={"^net": "a"})
    assert list(bs.open(store, skip="weight")) == ["a.encoder.2.bias"]
    assert list(bs.read(store, skip="weight")) == ["a.encoder.2.bias"]
    assert list(bs.open(store, rename={"^a": "b"}, skip="weight")) == ["b.encoder.2.bias"]
    assert list(store) == [name.replace("net", "a") for name in NAMES if "encoder" in name]


def test_opening_a_store_again_reads_the_file_once(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(FILES["safetensors"])
    store = bs.open(path)
    path.unlink()
    assert list(bs.open(store, only="step")) == ["step"] and bs.open(store) is store


def test_two_names_that_become_one_are_an_error_that_names_both() -> None:
    for keywords in ({"rename": {"weight|bias": "x"}}, {"rename": {r"\.[02]\.": ".0."}}):
        with pytest.raises(bs.errors.DuplicateNameError, match=r"net\.encoder\..*net\.encoder\.2\.(bias|weight).*both become"):
            bs.open(ARRAYS, **keywords)


@pytest.mark.parametrize(
    "keywords", [{"only": "("}, {"skip": "("}, {"rename": {"(": ""}}, {"map_indices_contiguous_except": "("}, {"only": 3}]
)
def test_what_cannot_be_understood_is_refused_when_the_file_is_opened(keywords: dict[str, Any]) -> None:
    with pytest.raises(bs.errors.BurnstoreError):
        bs.open(ARRAYS, **keywords)


def test_a_predicate_that_raises_is_an_error_that_says_so() -> None:
    with pytest.raises(bs.errors.BurnstoreError, match="ZeroDivisionError"):
        bs.open(ARRAYS, only=lambda path, container: 1 / 0)


def test_a_predicate_is_told_the_containers_of_a_model_and_none_of_a_file() -> None:
    seen: list[tuple[str, str]] = []
    model = torch.nn.ModuleDict({"fc": torch.nn.Linear(1, 1)})
    bs.open(model, only=lambda path, container: seen.append((path, container)))
    assert seen == [("fc.weight", "ModuleDict.Linear"), ("fc.bias", "ModuleDict.Linear")]
    seen.clear()
    bs.open(FILES["bpk"], only=lambda path, container: seen.append((path, container)))
    assert [container for _, container in seen] == [""] * 5


def test_nothing_is_read_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = bs.TensorSnapshot.from_closure("a.w", "F32", (1,), lambda: pytest.fail("it was read"))
    assert list(bs.open([lazy], rename={"a": "b"}, only="b")) == ["b.w"]


def test_names_that_swap_are_no_collision() -> None:
    named = Named({"a": "a", "b": "b"}, []).through({"a": "b", "b": "a"})
    assert named.origins == {"b": "a", "a": "b"}
