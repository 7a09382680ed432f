"""A store: a mapping of names to tensors, in the file's order, that prints without trusting the file."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from tests.sources.handmade import burnpack_bytes, safetensors_bytes

ARRAYS = {
    "z.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a.bias": np.zeros(3, np.float32),
    "m.steps": np.array(7, np.int64),
}
DATA = safetensors_bytes(ARRAYS, {"format": "pt", "note": "ünïcode ☕"})


@pytest.fixture
def store() -> bs.Store:
    return bs.open(DATA)


def test_a_store_is_a_mapping_in_the_order_of_the_file(store: bs.Store) -> None:
    assert isinstance(store, Mapping)
    assert list(store) == list(store.keys()) == ["z.weight", "a.bias", "m.steps"]
    assert [snapshot.name for snapshot in store.values()] == list(store)
    assert [(name, snapshot.shape) for name, snapshot in store.items()] == [
        ("z.weight", (2, 3)),
        ("a.bias", (3,)),
        ("m.steps", ()),
    ]
    assert len(store) == 3 and "a.bias" in store and "b" not in store and 3 not in store
    assert store.get("b") is None and store.get("a.bias") is not None
    assert {**store}.keys() == dict(ARRAYS).keys()


def test_a_burnpack_is_listed_in_the_order_of_its_data() -> None:
    data = burnpack_bytes({name: ("F32", (1,), bytes(4)) for name in ("z", "a", "m")})
    assert list(bs.open(data)) == ["z", "a", "m"]


def test_a_store_knows_its_format_name_and_size(store: bs.Store, tmp_path: Path) -> None:
    assert (store.format, store.nbytes, store.name) == ("safetensors", 24 + 12 + 8, f"<{len(DATA)} bytes>")
    (tmp_path / "w.safetensors").write_bytes(DATA)
    assert bs.open(tmp_path / "w.safetensors").name == str(tmp_path / "w.safetensors")
    assert bs.open(ARRAYS).nbytes == 44 and bs.open(ARRAYS).format == "memory"


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("z.wieght", "did you mean 'z.weight'?"), ("a.bias ", "did you mean 'a.bias'?"), ("qqqq", "list\\(store\\)")],
)
def test_an_absent_name_is_a_key_error_that_suggests_the_likely_one(store: bs.Store, asked: str, meant: str) -> None:
    with pytest.raises(KeyError, match=meant) as caught:
        store[asked]
    assert isinstance(caught.value, bs.errors.TensorNotFoundError)
    assert str(caught.value).startswith(f"<{len(DATA)} bytes>: there is no tensor {asked!r}") and '"' not in str(caught.value)[:1]


@pytest.mark.parametrize("key", [3, None, b"z.weight", ("z", "weight")])
def test_a_key_that_is_not_text_is_a_key_error(store: bs.Store, key: object) -> None:
    with pytest.raises(bs.errors.TensorNotFoundError, match="text"):
        store[key]  # type: ignore[index]


def test_asking_politely_for_an_absent_name_costs_no_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    """`get` is what a caller uses who expects absence; of 20,000 names the likely one takes most of a second to find."""
    from burnstore import suggest

    monkeypatch.setattr(suggest, "closest", lambda *_: pytest.fail("a suggestion was looked for"))
    store = bs.open(DATA)
    assert store.get("absent") is None and store.get("absent", 5) == 5
    assert bs.SafetensorsStore.from_bytes(DATA).get_snapshot("absent") is None


def test_metadata_is_a_mapping_that_cannot_be_set(store: bs.Store) -> None:
    assert dict(store.metadata) == {"format": "pt", "note": "ünïcode ☕"}
    assert store.metadata["note"] == "ünïcode ☕" and len(store.metadata) == 2 and "x" not in store.metadata
    assert repr(store.metadata) == repr(dict(store.metadata)) and store.metadata == {"format": "pt", "note": "ünïcode ☕"}
    with pytest.raises(TypeError):
        store.metadata["x"] = "y"  # type: ignore[index]
    with pytest.raises(KeyError, match="there is format, note"):
        store.metadata["x"]
    with pytest.raises(KeyError, match="none at all"):
        bs.open(ARRAYS).metadata["x"]


def test_setting_metadata_of_an_opened_store_says_what_to_do(store: bs.Store) -> None:
    with pytest.raises(bs.errors.UsageError, match=r"metadata=\{"):
        store.metadata("k", "v")


def test_saving_into_an_opened_store_says_what_to_do(store: bs.Store) -> None:
    with pytest.raises(bs.errors.UsageError, match="opened for reading"):
        bs.save(ARRAYS, store)


def test_a_store_prints_as_a_short_table(store: bs.Store) -> None:
    assert repr(store).splitlines() == [
        f"<{len(DATA)} bytes> · safetensors · 3 tensors · 44 B",
        "  z.weight  F32  [2, 3]  24 B",
        "  a.bias    F32  [3]     12 B",
        "  m.steps   I64  []       8 B",
    ]
    many = bs.open({f"t{number}": [1.0] for number in range(1234)})
    assert len(repr(many).splitlines()) == 12 and repr(many).endswith("… and 1,224 more")
    assert "0 tensors" in repr(bs.open({}))


EVIL = "<img src=x onerror=alert(1)>&\"'"
CONTROL = "a\x1b[2J\r\n\x00\u202e\x85b"


def test_a_notebook_shows_names_as_text_and_never_as_html() -> None:
    html = bs.open(safetensors_bytes({EVIL: np.zeros(1, np.float32), CONTROL: np.zeros(1, np.float32)}))._repr_html_()
    assert "<img" not in html and "&lt;img src=x onerror=alert(1)&gt;&amp;&quot;" in html
    assert not any(letter in html for letter in "\x1b\r\x00\u202e\x85")


def test_a_notebook_shows_the_path_as_text_too(tmp_path: Path) -> None:
    path = tmp_path / "<b>x.safetensors"
    path.write_bytes(DATA)
    assert "<b>" not in bs.open(path)._repr_html_()


def test_names_with_control_characters_are_shown_escaped() -> None:
    shown = repr(bs.open(safetensors_bytes({CONTROL: np.zeros(1, np.float32)})))
    assert all(letter == "\n" or letter.isprintable() for letter in shown) and len(shown.splitlines()) == 2
    assert "\\x1b[2J\\r\\n\\x00\\u202e\\x85b" in shown


def test_a_very_long_name_does_not_make_a_long_line() -> None:
    shown = repr(bs.open({"n" * 10_000: [1.0]})) + bs.open({"n" * 10_000: [1.0]})._repr_html_()
    assert len(shown) < 2000


def test_messages_about_evil_names_are_one_plain_line() -> None:
    store = bs.open(safetensors_bytes({CONTROL: np.zeros(1, np.float32)}, {CONTROL: "x"}))
    for ask in (
        lambda: store["absent"],
        lambda: store[CONTROL + "x"],
        lambda: store.metadata["absent"],
        lambda: store[CONTROL][5],
    ):
        with pytest.raises(bs.errors.BurnstoreError) as caught:
            ask()
        assert str(caught.value).isprintable(), str(caught.value)


def test_a_path_with_control_characters_is_shown_escaped_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\nb.safetensors"
    with pytest.raises(bs.errors.SourceNotFoundError) as caught:
        bs.open(path)
    assert str(caught.value).isprintable()
    path.write_bytes(DATA[:-1])
    with pytest.raises(bs.errors.TruncatedError) as truncated:
        bs.open(path)
    assert str(truncated.value).isprintable()


def test_a_store_is_equal_to_itself_only_and_can_be_a_key(store: bs.Store) -> None:
    assert store == store and store != bs.open(DATA) and len({store, store}) == 1


@pytest.mark.parametrize("use", [pickle.dumps, copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_store_refuses_to_be_pickled_with_a_reason(store: bs.Store, use: object) -> None:
    with pytest.raises(bs.errors.PickleRefusedError, match="send its path"):
        use(store)  # type: ignore[operator]


def test_opening_a_store_gives_the_store(store: bs.Store) -> None:
    assert bs.open(store) is store


def test_scalars_of_a_burnpack_are_typed_and_absent_elsewhere(store: bs.Store) -> None:
    import cbor2

    block = cbor2.dumps({"tensors": {}, "scalars": {"step": {"Int": 5}, "lr": {"Float": 0.5}}})
    data = b"NRUB\1\0" + len(block).to_bytes(4, "little") + block
    assert bs.open(data + bytes(-len(data) % 256)).scalars == {"step": {"Int": 5}, "lr": {"Float": 0.5}}
    assert store.scalars == {}
