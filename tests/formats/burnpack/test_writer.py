"""Burnpack as burnstore writes it, against files put together by another CBOR encoder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import burnstore as bs
from burnstore.errors import DuplicateNameError, LimitError, UsageError

from .handmade import EIGHT, burnpack, entry

BOOL = {"0.20": "Bool", "0.22": {"Bool": "Native"}}


def _ours(tensors: Any, **options: Any) -> bytes:
    return bs.save(tensors, bytes, format="bpk", **options)


def _by_hand(tensors: dict[str, np.ndarray], metadata: dict[str, str], version: str) -> bytes:
    """The layout of the format, said once more in other words."""
    rows, data = {}, b""
    for name, array in tensors.items():
        data += bytes(-len(data) % 256)
        dtype = BOOL[version] if array.dtype == bool else f"{array.dtype.kind}{array.dtype.itemsize * 8}".upper()
        rows[name] = entry(len(data), len(data) + array.nbytes, dtype=dtype, shape=array.shape)
        data += array.tobytes()
    top: dict[str, Any] = {"tensors": {name: rows[name] for name in sorted(rows, key=str.encode)}}
    if metadata:
        top["metadata"] = {key: metadata[key] for key in sorted(metadata, key=str.encode)}
    return burnpack(top, data)


text = st.text(st.characters(codec="utf-8"), max_size=10)
arrays = st.builds(
    lambda word, shape: np.arange(int(np.prod(shape))).astype(word).reshape(shape),
    st.sampled_from(("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")),
    st.lists(st.integers(0, 20), max_size=3).map(tuple),
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(text, arrays, max_size=5), st.dictionaries(text, text, max_size=3), st.sampled_from(("0.20", "0.22")))
def test_any_arrays_are_laid_out_as_the_format_says(tensors: Any, metadata: Any, version: Any) -> None:
    written = _ours(tensors, metadata=metadata, for_burn=version)
    assert written == _by_hand(tensors, metadata, version)
    store = bs.open(written)
    assert dict(store.metadata) == metadata
    for name, array in bs.read(written).items():
        assert array.dtype == tensors[name].dtype and array.shape == tensors[name].shape and (array == tensors[name]).all()


def test_the_default_is_the_spelling_of_burn_022() -> None:
    assert _ours({"b": [True]}) == _ours({"b": [True]}, for_burn="0.22") == _by_hand({"b": np.array([True])}, {}, "0.22")
    assert _ours({"b": [True]}, for_burn="0.20") == _by_hand({"b": np.array([True])}, {}, "0.20")
    with pytest.raises(UsageError, match=r"0\.19"):
        _ours({"b": [True]}, for_burn="0.19")


def test_ids_are_written_where_there_are_some_and_left_out_where_there_are_none() -> None:
    with_id = bs.TensorSnapshot.from_data("a", np.array([1.5, -2.0], np.float32), param_id=2**64 - 1)
    zero = bs.TensorSnapshot.from_data("b", np.array([1.5, -2.0], np.float32), param_id=0)
    without = bs.TensorSnapshot.from_data("c", np.array([1.5, -2.0], np.float32))
    top = {"tensors": {"a": entry(param_id=2**64 - 1), "b": entry(256, 264, param_id=0), "c": entry(512, 520)}}
    assert _ours([with_id, zero, without]) == burnpack(top, EIGHT + bytes(248) + EIGHT + bytes(248) + EIGHT)


@pytest.mark.parametrize("number", [-1, 2**64, "5", 1.0])
def test_an_id_that_is_no_number_of_64_bits_is_refused(number: Any) -> None:
    with pytest.raises(UsageError, match="tensor 'a'"):
        _ours([bs.TensorSnapshot.from_data("a", [1.0], param_id=number)])


def test_scalars_are_kept_on_rewrite_in_the_shortest_spelling_of_each() -> None:
    scalars = {"a": {"Int": -5}, "b": {"UInt": 2**64 - 1}, "c": {"Float": 1.5}, "d": {"Bool": True}, "e": {"Float": 0.1}}
    file = burnpack({"tensors": {"x": entry()}, "metadata": {"k": "v"}, "scalars": scalars}, EIGHT)
    short = file.replace(b"\xfb" + np.array(1.5, ">f8").tobytes(), b"\xf9\x3e\x00")
    rewritten = bs.convert(file, bytes, format="bpk")
    assert dict(bs.open(rewritten).scalars) == scalars
    length = int.from_bytes(rewritten[6:10], "little")
    assert b"eFloat\xf9\x3e\x00" in rewritten[10 : 10 + length] and b"eFloat\xfb" in rewritten[10 : 10 + length]
    assert rewritten[10 : 10 + length] == short[10 : 10 + length]
    # saving the tensors by themselves is another file, which has none; and so is another format
    assert not bs.open(_ours(dict(bs.open(file)))).scalars
    assert not bs.open(bs.convert(file, bytes, format="safetensors")).scalars


def test_scalars_that_burn_wrote_come_through(shared: Path, oracle: Any, tmp_path: Path) -> None:
    scalars = {"beta": {"Float": 0.9}, "step": {"UInt": 7}}
    source = tmp_path / "optimizer.bpk"
    source.write_bytes(burnpack({"tensors": {"x": entry()}, "scalars": scalars}, EIGHT))
    bs.convert(source, tmp_path / "again.bpk", fsync=False)
    first, second = (oracle("0.22", "list", tmp_path / name, {})["metadata"] for name in ("optimizer.bpk", "again.bpk"))
    assert first == second and first["scalars"]


def test_no_tensors_are_a_file_of_256_bytes(data: Path) -> None:
    assert _ours({}) == burnpack({"tensors": {}})
    assert len(_ours({})) == 256
    golden = data / "burn/v0.22.1/raw/nothing.bpk"
    assert _ours({}, metadata=bs.open(golden).metadata) == golden.read_bytes()


def test_an_empty_tensor_at_the_end_leaves_its_padding_and_shares_its_place_otherwise() -> None:
    tensors = {"a": np.ones(1, np.uint8), "b": np.ones((0, 3), np.float32), "c": np.ones((), np.int8), "d": np.ones(0)}
    written = _ours(tensors)
    assert written == _by_hand(tensors, {}, "0.22") and len(written) % 256 == 0
    assert bs.open(written)["c"].shape == () and bs.open(written)["b"].shape == (0, 3)


def test_65000_tensors_go_out_and_come_back_in_their_order() -> None:
    tensors = {f"layer.{i}.w": np.full(i % 3, i, np.int32) for i in range(65_000)}
    written = _ours(tensors)
    read = bs.read(written)
    # an empty tensor may share its place with the one after it, and then comes first as it did
    assert list(read) == list(tensors)
    assert all(read[name].tolist() == array.tolist() for name, array in tensors.items())


def test_blocks_of_a_tensor_are_asked_for_one_after_the_other(tmp_path: Path) -> None:
    alive: list[int] = []

    def blocks() -> Iterator[bytes]:
        for number in range(8):
            alive.append(number)
            yield bytes([number]) * 100_000

    big = bs.TensorSnapshot.from_blocks("big", "U8", (800_000,), blocks)
    bs.save([big], tmp_path / "m.bpk", fsync=False)
    assert alive == list(range(8))
    assert bs.open(tmp_path / "m.bpk")["big"][::100_000].tolist() == alive


def test_limits_of_burn_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "m.bpk"
    tensors = {"a": np.ones(100, np.float32), "b": np.ones(100, np.float32)}
    for option, value in (
        ("burnpack_tensors", 1),
        ("burnpack_tensor_bytes", 399),
        ("burnpack_metadata_bytes", 50),
        ("burnpack_file_bytes", 900),
    ):
        with pytest.raises(LimitError, match=option):
            bs.save(tensors, path, limits=bs.Limits(**{option: value}))
        assert not list(tmp_path.iterdir())
    bs.save(tensors, path, limits=bs.Limits(burnpack_tensors=2, burnpack_tensor_bytes=400))
    assert len(bs.open(path)) == 2


def test_tensors_beyond_burns_own_limits_are_refused_unless_limits_say_otherwise(tmp_path: Path) -> None:
    many = [bs.TensorSnapshot.from_data(f"{i:06}", np.uint8(0)) for i in range(100_001)]
    with pytest.raises(LimitError, match="100001 tensors"):
        _ours(many)
    huge = bs.TensorSnapshot.from_blocks("huge", "U8", (10 * 2**30 + 1,), lambda: iter([]))
    with pytest.raises(LimitError, match=r"tensor 'huge'"):
        bs.save([huge], tmp_path / "m.bpk")
    assert not list(tmp_path.iterdir())


def test_one_name_for_two_tensors_is_refused() -> None:
    twice = [bs.TensorSnapshot.from_data("x", [1.0]), bs.TensorSnapshot.from_data("x", [2.0])]
    with pytest.raises(DuplicateNameError, match="'x'"):
        _ours(twice)


def test_what_is_no_text_is_no_metadata() -> None:
    for metadata in ({"k": 1}, {1: "v"}, {"k": None}, {"k": "\ud800"}):
        with pytest.raises(UsageError, match="metadata"):
            _ours({"x": [1.0]}, metadata=metadata)


def test_the_same_input_gives_the_same_bytes_whatever_the_order_of_metadata() -> None:
    tensors = {"x": np.arange(5), "y": np.arange(6)}
    assert _ours(tensors, metadata={"a": "1", "b": "2"}) == _ours(tensors, metadata={"b": "2", "a": "1"})
    assert _ours(tensors) != _ours(dict(reversed(tensors.items())))
