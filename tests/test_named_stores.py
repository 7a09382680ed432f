"""Burn's stores: builders that give new stores, Burn's defaults, and memory that derived stores share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from tests.sources.handmade import burnpack_bytes, burnpack_parts, safetensors_bytes, safetensors_parts

BOTH = [bs.BurnpackStore, bs.SafetensorsStore]
ARRAYS = {
    "z": np.array([1.0, 2.0], np.float32),
    "a": np.array([True]),
    "é": np.zeros((0,), np.float32),
    "Z": np.zeros(1, np.float32),
}
FILES = {
    bs.BurnpackStore: burnpack_bytes({"z": ("F32", (1,), bytes(4)), "a": ("F32", (1,), bytes(4))}, {"k": "v"}),
    bs.SafetensorsStore: safetensors_bytes({"z": np.zeros(1, np.float32), "a": np.zeros(1, np.float32)}, {"k": "v"}),
}
SUFFIX = {bs.BurnpackStore: ".bpk", bs.SafetensorsStore: ".safetensors"}


def metadata_of(data: bytes) -> object:
    if data[:4] == b"NRUB":
        return burnpack_parts(data)[0].get("metadata")
    return safetensors_parts(data)[0].get("__metadata__")


@pytest.mark.parametrize("kind", BOTH)
def test_every_builder_gives_a_new_store_and_leaves_the_old_one(kind: type) -> None:
    store = kind.from_bytes(None)
    before = store.options
    derived = [store.metadata("k", "v"), store.clear_metadata(), store.overwrite(), store.for_burn("0.20")]
    if kind is bs.BurnpackStore:
        derived += [store.zero_copy(), store.auto_extension(False)]
    for other in derived:
        assert other is not store and type(other) is kind and other.options != before
    assert store.options == before


@pytest.mark.parametrize("kind", BOTH)
def test_builders_set_what_they_say(kind: type) -> None:
    store = kind.from_file("x")
    assert (
        not store.options.overwrite
        and store.overwrite().options.overwrite
        and not store.overwrite().overwrite(False).options.overwrite
    )
    assert store.options.for_burn == "0.22" and store.for_burn("0.20").options.for_burn == "0.20"
    assert store.clear_metadata().options.metadata == {} and store.options.format in ("burnpack", "safetensors")


def test_the_defaults_are_burns() -> None:
    """No overwriting; Burnpack adds its extension and copies; SafeTensors adds none."""
    burnpack, safetensors = bs.BurnpackStore.from_file("x").options, bs.SafetensorsStore.from_file("x").options
    assert (burnpack.auto_extension, burnpack.zero_copy, burnpack.overwrite) == (True, False, False)
    assert (safetensors.auto_extension, safetensors.zero_copy, safetensors.overwrite) == (False, False, False)
    static = bs.BurnpackStore.from_static(FILES[bs.BurnpackStore]).options
    assert (static.auto_extension, static.zero_copy) == (False, True)


@pytest.mark.parametrize(
    ("kind", "closes_gaps", "skips_variants"),
    [(bs.BurnpackStore, None, None), (bs.SafetensorsStore, None, None), (bs.PytorchStore, True, True)],
)
def test_the_defaults_of_loading_are_burns(kind: type, closes_gaps: bool | None, skips_variants: bool | None) -> None:
    """Only its PyTorch store counts lists anew and leaves enum variants out; none loads in part or without checks."""
    options = kind.from_file("x").options
    assert (options.map_indices_contiguous, options.skip_enum_variants) == (closes_gaps, skips_variants)
    assert (options.validate, options.allow_partial, options.filter, options.rename) == (True, False, None, None)
    assert (options.from_adapter, options.to_adapter, options.from_dialect, options.to_dialect) == (None, None, None, None)


ALL = [bs.BurnpackStore, bs.SafetensorsStore, bs.PytorchStore]
PIPELINE = {
    "with_regex": ("^a",), "with_regexes": (["^a", "b"],), "with_full_path": ("a.b",), "with_full_paths": (["a.b", "c"],),
    "with_predicate": (lambda path, container: True,), "match_all": (), "filter": (bs.PathFilter().with_regex("a"),),
    "with_key_remapping": ("a", "b"), "remap": (bs.KeyRemapper().add_pattern("a", "b"),),
    "with_from_adapter": (bs.IdentityAdapter(),), "with_to_adapter": (bs.IdentityAdapter(),), "with_dialect": ("burn",),
    "kinds": ({"^fc": "Linear"},), "like": ({},), "dtype": ("file",), "allow_partial": (True,), "validate": (False,),
    "skip_enum_variants": (), "map_indices_contiguous": (), "map_indices_contiguous_except": ("^a$",), "zero_copy": (True,),
}  # fmt: skip


@pytest.mark.parametrize("kind", ALL)
def test_every_store_has_every_builder_of_the_pipeline_and_gives_a_new_store(kind: type) -> None:
    from burnstore.builders import PipelineBuilders

    assert {name for name in vars(PipelineBuilders) if not name.startswith("_")} == set(PIPELINE)
    store = kind.from_bytes(None)
    before = store.options
    for name, arguments in PIPELINE.items():
        other = getattr(store, name)(*arguments)
        assert other is not store and type(other) is kind and store.options == before
        already_so = kind is bs.PytorchStore and name in ("skip_enum_variants", "map_indices_contiguous")
        assert (other.options == before) == already_so, name


@pytest.mark.parametrize("kind", ALL)
def test_criteria_are_joined_by_or_and_filter_and_remap_replace_what_was_there(kind: type) -> None:
    store = kind.from_bytes(None).with_regex("^a").with_full_path("b.w").with_predicate(lambda path, _: path == "c")
    filter = store.options.filter
    assert [path for path in ("a.x", "b.w", "c", "d") if filter.matches(path)] == ["a.x", "b.w", "c"]
    assert store.match_all().options.filter.matches("d")
    replaced = store.filter(bs.PathFilter().with_regex("^d")).options.filter
    assert [path for path in ("a.x", "b.w", "c", "d") if replaced.matches(path)] == ["d"]

    rules = kind.from_bytes(None).with_key_remapping("a", "b").with_key_remapping("b", "c")
    assert rules.options.rename.rename("a") == "c"
    assert rules.remap(bs.KeyRemapper().add_pattern("x", "y")).options.rename.rename("a") == "a"


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("builder", "arguments"),
    [
        ("with_regex", ("(",)), ("with_regexes", (["a", "("],)), ("with_key_remapping", ("(", "")), ("remap", (3,)),
        ("with_from_adapter", (3,)), ("with_dialect", ("jax",)), ("map_indices_contiguous_except", ("(",)),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_by_the_builder_or_by_the_first_use(
    kind: type, builder: str, arguments: tuple[object, ...]
) -> None:
    data = {"a.0.weight": np.zeros((2, 3), np.float32)}
    with pytest.raises(bs.errors.BurnstoreError):
        store = getattr(kind.from_bytes(None), builder)(*arguments)
        bs.save(data, store)
        store.keys()


def test_a_store_that_loads_and_saves_is_configured_once() -> None:
    """Renamed on the way in by the rule, and adapted on each side by that side's adapter."""
    store = bs.SafetensorsStore.from_bytes(None).with_to_adapter(bs.FloatCastAdapter("F16"))
    store = store.with_from_adapter(bs.FloatCastAdapter("F32"))
    bs.save({"w": np.full(2, 1 / 3, np.float32)}, store)
    assert store["w"].dtype == "F16"
    model = {"w": np.zeros(2, np.float32)}
    assert bs.load(store, model).casts == [] and model["w"].tolist() == [float(np.float16(1 / 3))] * 2


@pytest.mark.parametrize(("kind", "format"), [(bs.BurnpackStore, "burnpack"), (bs.SafetensorsStore, "safetensors")])
@pytest.mark.parametrize(("burn", "version"), [(None, "0.22.1"), ("0.22", "0.22.1"), ("0.20", "0.20.1")])
def test_burns_three_keys_are_written_with_the_version_that_is_imitated(
    kind: type, format: str, burn: str | None, version: str
) -> None:
    store = kind.from_bytes(None) if burn is None else kind.from_bytes(None).for_burn(burn)
    wanted = {"format": format, "producer": "burn", "version": version}
    assert dict(store.metadata) == wanted  # what it will say
    bs.save(ARRAYS, store)
    assert metadata_of(store.get_bytes()) == wanted
    assert dict(store.metadata) == wanted  # what it says
    other = kind.from_bytes(None)
    bs.save(ARRAYS, other, for_burn=burn)
    assert metadata_of(other.get_bytes()) == wanted


@pytest.mark.parametrize("kind", BOTH)
def test_metadata_adds_to_burns_keys_and_overrides_them(kind: type) -> None:
    store = kind.from_bytes(None).metadata("version", "1.0").metadata("description", "café ☕")
    assert store.metadata["version"] == "1.0"
    bs.save(ARRAYS, store, metadata={"more": "x"})
    written = metadata_of(store.get_bytes())
    assert written == {
        "format": kind.from_bytes(None).metadata["format"],
        "producer": "burn",
        "version": "1.0",
        "description": "café ☕",
        "more": "x",
    }


@pytest.mark.parametrize("kind", BOTH)
def test_metadata_can_be_set_for_a_file_that_is_broken_and_will_be_replaced(kind: type, tmp_path: Path) -> None:
    path = tmp_path / f"w{SUFFIX[kind]}"
    path.write_bytes(b"broken")
    store = kind.from_file(path).overwrite().metadata("k", "v")
    bs.save({"x": [1.0]}, store)
    assert metadata_of(path.read_bytes())["k"] == "v"  # type: ignore[index]


def test_cleared_metadata_is_none_in_burnpack_and_an_empty_map_in_safetensors() -> None:
    for kind, wanted in ((bs.BurnpackStore, None), (bs.SafetensorsStore, {})):
        store = kind.from_bytes(None).metadata("k", "v").clear_metadata()
        bs.save(ARRAYS, store)
        assert metadata_of(store.get_bytes()) == wanted
        assert dict(store.metadata) == {}
    store = bs.BurnpackStore.from_bytes(None).clear_metadata().metadata("only", "this")
    bs.save(ARRAYS, store)
    assert metadata_of(store.get_bytes()) == {"only": "this"}


@pytest.mark.parametrize("kind", BOTH)
def test_keys_are_sorted_print_as_a_list_and_can_be_indexed(kind: type) -> None:
    store = kind.from_bytes(None)
    bs.save(ARRAYS, store)
    keys = store.keys()
    assert keys == ["Z", "a", "z", "é"] and repr(keys) == str(keys) == "['Z', 'a', 'z', 'é']"
    assert (keys[0], keys[-1], keys[1:3], len(keys)) == ("Z", "é", ["a", "z"], 4)
    assert "a" in keys and "b" not in keys and keys & {"a", "q"} == {"a"} and list(keys) == list(store) == sorted(ARRAYS)
    assert keys != ["a"] and keys == set(ARRAYS)
    with pytest.raises(IndexError):
        keys[4]


@pytest.mark.parametrize("kind", BOTH)
def test_snapshots_are_given_by_name_or_not_at_all(kind: type) -> None:
    store = kind.from_bytes(FILES[kind])
    assert store.get_snapshot("a").name == "a" and store.get_snapshot("b") is None
    everything = store.get_all_snapshots()
    assert type(everything) is dict and list(everything) == ["a", "z"] and everything["a"].shape == (1,)
    assert [name for name, _ in store.items()] == ["a", "z"] and store.metadata["k"] == "v"
    with pytest.raises(KeyError, match="did you mean"):
        kind.from_bytes(
            safetensors_bytes({"weight": np.zeros(1, np.float32)})
            if kind is bs.SafetensorsStore
            else burnpack_bytes({"weight": ("U8", (1,), b"1")})
        )["wieght"]


@pytest.mark.parametrize("kind", BOTH)
def test_derived_stores_share_their_memory(kind: type) -> None:
    store = kind.from_bytes(None)
    derived = store.metadata("k", "v")
    bs.save({"x": [1.0]}, derived)
    assert store.keys() == derived.keys() == ["x"] and store.get_bytes() == derived.get_bytes() and store.metadata["k"] == "v"


@pytest.mark.parametrize("kind", BOTH)
def test_a_store_sees_what_a_derived_one_saved_after_it_was_read(kind: type) -> None:
    store = kind.from_bytes(None)
    bs.save({"x": [1.0]}, store)
    assert store.keys() == ["x"]
    derived = store.metadata("k", "v")
    bs.save({"y": [1.0]}, derived)
    assert store.keys() == ["y"] and derived.keys() == ["y"] and store.get_snapshot("x") is None
    bs.save({"w": [1.0]}, store)
    assert derived.keys() == ["w"]


@pytest.mark.parametrize("kind", BOTH)
def test_a_derived_store_of_a_file_sees_what_it_saved_itself(kind: type, tmp_path: Path) -> None:
    store = kind.from_file(tmp_path / f"w{SUFFIX[kind]}")
    bs.save({"x": [1.0]}, store)
    assert store.keys() == ["x"]
    derived = store.overwrite()
    bs.save({"y": [1.0]}, derived)
    assert derived.keys() == ["y"] and kind.from_file(tmp_path / f"w{SUFFIX[kind]}").keys() == ["y"]


@pytest.mark.parametrize("kind", BOTH)
def test_snapshots_taken_before_saving_into_their_own_store_stay_right(kind: type) -> None:
    store = kind.from_bytes(None)
    bs.save({"x": np.arange(50_000.0)}, store)
    old = store["x"]
    bs.save({"y": store["x"]}, store)
    np.testing.assert_array_equal(old.numpy(), np.arange(50_000.0))
    np.testing.assert_array_equal(store["y"].numpy(), np.arange(50_000.0))


@pytest.mark.parametrize("kind", BOTH)
def test_an_empty_memory_store_says_what_to_do(kind: type) -> None:
    store = kind.from_bytes(None)
    for ask in (store.keys, store.get_bytes, lambda: store["x"], lambda: len(store), lambda: bs.read(store)):
        with pytest.raises(bs.errors.SourceError, match="save into it first"):
            ask()
    assert "nothing saved yet" in repr(store)
    assert isinstance(store._repr_html_(), str)  # a notebook calls it by itself


@pytest.mark.parametrize("kind", BOTH)
def test_get_bytes_gives_the_bytes_it_was_made_from(kind: type) -> None:
    data = FILES[kind]
    for given in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        assert kind.from_bytes(given).get_bytes() == data and type(kind.from_bytes(given).get_bytes()) is bytes


@pytest.mark.parametrize("kind", BOTH)
def test_get_bytes_of_a_file_store_says_what_to_do(kind: type, tmp_path: Path) -> None:
    with pytest.raises(bs.errors.UsageError, match="from_bytes"):
        kind.from_file(tmp_path / "x").get_bytes()


def test_from_static_gives_views_of_the_programs_bytes() -> None:
    store = bs.BurnpackStore.from_static(FILES[bs.BurnpackStore])
    assert store.keys() == ["a", "z"] and not store["a"].numpy().flags.writeable


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("model", "model.bpk"),
        ("model.v1", "model.v1"),
        ("v0.1", "v0.1"),
        ("m.", "m."),
        (".hidden", ".hidden.bpk"),
        ("a.b/c", "a.b/c.bpk"),
        ("model.bpk", "model.bpk"),
        ("model.BPK", "model.BPK"),
        (".a.b", ".a.b"),
        ("x.safetensors", "x.safetensors"),
    ],
)
def test_the_extension_is_added_by_rusts_rule(tmp_path: Path, name: str, written: str) -> None:
    """An extension is what follows the last dot, unless that is the first letter."""
    (tmp_path / "a.b").mkdir()
    store = bs.BurnpackStore.from_file(tmp_path / name)
    bs.save(ARRAYS, store)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()] == [written]
    assert (tmp_path / written).read_bytes()[:4] == b"NRUB"
    assert bs.BurnpackStore.from_file(str(tmp_path / name)).keys() == sorted(ARRAYS)


def test_no_extension_is_added_where_that_is_switched_off_or_never_done(tmp_path: Path) -> None:
    bs.save(ARRAYS, bs.BurnpackStore.from_file(tmp_path / "plain").auto_extension(False))
    bs.save(ARRAYS, bs.SafetensorsStore.from_file(tmp_path / "tensors"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain", "tensors"]
    assert bs.open(tmp_path / "plain").format == "burnpack" and bs.open(tmp_path / "tensors").format == "safetensors"


def test_switching_the_extension_off_names_another_file_also_after_reading(tmp_path: Path) -> None:
    bs.save({"suffixed": [1.0]}, tmp_path / "m.bpk")
    bs.save({"plain": [1.0]}, tmp_path / "m", format="bpk")
    store = bs.BurnpackStore.from_file(tmp_path / "m")
    assert store.keys() == ["suffixed"]
    assert store.auto_extension(False).keys() == ["plain"]


@pytest.mark.parametrize("kind", BOTH)
def test_an_existing_file_is_replaced_only_after_overwrite(kind: type, tmp_path: Path) -> None:
    store = kind.from_file(tmp_path / f"w{SUFFIX[kind]}")
    bs.save(ARRAYS, store)
    with pytest.raises(bs.errors.TargetExistsError):
        bs.save(ARRAYS, store)
    bs.save({"new": [1.0]}, store.overwrite())
    bs.save({"newer": [1.0]}, store, overwrite=True)
    assert bs.open(tmp_path / f"w{SUFFIX[kind]}").keys() == {"newer"}


@pytest.mark.parametrize("kind", BOTH)
def test_a_store_of_the_wrong_format_says_so(kind: type) -> None:
    other = FILES[BOTH[1 - BOTH.index(kind)]]
    with pytest.raises(bs.errors.FormatError):
        kind.from_bytes(other).keys()


@pytest.mark.parametrize("kind", BOTH)
def test_a_missing_file_is_an_error_only_when_it_is_read(kind: type, tmp_path: Path) -> None:
    store = kind.from_file(tmp_path / f"x{SUFFIX[kind]}")
    assert "nothing saved yet" in repr(store) and store.metadata["producer"] == "burn"
    with pytest.raises(FileNotFoundError):
        store.keys()
    with pytest.raises(FileNotFoundError):
        bs.verify(store)


@pytest.mark.parametrize("kind", BOTH)
def test_named_stores_are_sources_of_every_verb(kind: type, tmp_path: Path) -> None:
    store = kind.from_bytes(FILES[kind])
    assert bs.open(store) is store and set(bs.read(store)) == {"a", "z"} and bs.verify(store).ok
    assert safetensors_parts(bs.save(store, bytes, format="safetensors"))[0].keys() >= {"a", "z"}
    assert burnpack_parts(bs.convert(store, bytes, format="bpk"))[0]["metadata"] == {"k": "v"}
    assert store.keys() == ["a", "z"]  # still open


def test_converting_into_a_named_store_writes_burns_keys_and_the_sources() -> None:
    store = bs.BurnpackStore.from_bytes(None)
    bs.convert(FILES[bs.SafetensorsStore], store)
    assert metadata_of(store.get_bytes()) == {"format": "burnpack", "producer": "burn", "version": "0.22.1", "k": "v"}


def test_booleans_are_spelled_for_the_burn_that_was_named() -> None:
    for burn, spelled in (("0.20", "Bool"), ("0.22", {"Bool": "Native"})):
        store = bs.BurnpackStore.from_bytes(None).for_burn(burn)  # type: ignore[arg-type]
        bs.save({"flag": [True]}, store)
        assert burnpack_parts(store.get_bytes())[0]["tensors"]["flag"]["dtype"] == spelled  # type: ignore[index]


@pytest.mark.parametrize("kind", BOTH)
def test_a_format_for_a_named_store_is_refused(kind: type) -> None:
    with pytest.raises(bs.errors.UsageError, match="has a format"):
        bs.save(ARRAYS, kind.from_bytes(None), format="bpk")


@pytest.mark.parametrize("kind", BOTH)
def test_a_failed_save_leaves_the_memory_as_it_was(kind: type) -> None:
    store = kind.from_bytes(FILES[kind])
    broken = bs.TensorSnapshot.from_blocks("x", "U8", (10,), lambda: [b"short"])
    with pytest.raises(bs.errors.TensorDataError):
        bs.save([broken], store)
    assert store.get_bytes() == FILES[kind] and store.keys() == ["a", "z"]
