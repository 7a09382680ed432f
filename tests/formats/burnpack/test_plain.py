"""The fast way through the metadata says what the general decoder says, or nothing."""

from __future__ import annotations

from typing import Any

import cbor2
import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from burnstore.errors import BurnstoreError
from burnstore.formats.burnpack.cbor import decode
from burnstore.formats.burnpack.plain import read_plain
from burnstore.formats.burnpack.reader import Metadata, Rest
from burnstore.formats.burnpack.spelling import PLAIN, enter_dtype
from burnstore.limits import DEFAULT_LIMITS

from .handmade import block, entry, scheme_020, scheme_022

# Names that hold the words by which the block is cut.
tricky = st.sampled_from(
    ["dtype", "edtype", "ldata_offsets", "data_offsets", "hparam_id", "tensors", "x" * 23, "x" * 24, "é" * 200, "x" * 70000]
)
names = st.text(st.characters(codec="utf-8"), max_size=20) | tricky
dtypes = st.sampled_from([*PLAIN, {"Bool": "Native"}, {"Bool": "U32"}, {"QFloat": scheme_020()}, {"QFloat": scheme_022()}])
numbers = st.integers(0, 300) | st.integers(0, 2**64 - 1)
entries = st.builds(
    lambda dtype, shape, begin, end, more: entry(begin, end, dtype=dtype, shape=shape, **more),
    dtypes,
    st.lists(numbers, max_size=4),
    numbers,
    numbers,
    st.just({}) | st.fixed_dictionaries({"param_id": numbers}),
)
texts = st.dictionaries(names, names, max_size=3)
tops = st.fixed_dictionaries(
    {"tensors": st.dictionaries(names, entries, max_size=6)},
    optional={"metadata": texts, "scalars": st.dictionaries(names, st.just({"Int": -5}), max_size=2)},
)


def _general(raw: bytes) -> Any:
    """What the general decoder says, or the word for a refusal."""
    try:
        metadata = msgspec.convert(decode(raw, DEFAULT_LIMITS, ""), Metadata)
        rows = {
            name: (enter_dtype(t.dtype, dict(PLAIN), ""), t.shape, t.data_offsets.begin, t.data_offsets.end, t.param_id)
            for name, t in metadata.tensors.items()
        }
    except (BurnstoreError, msgspec.ValidationError):
        return "refused"
    return rows, metadata.metadata, metadata.scalars


def _plain(raw: bytes) -> Any:
    try:
        found = read_plain(raw, dict(PLAIN), DEFAULT_LIMITS)
        if found is None:
            return None
        rest = msgspec.convert(found.rest, Rest)
    except (BurnstoreError, msgspec.ValidationError):
        return "refused"
    rows = {
        name: (e.dtype, e.shape, e.data_offsets.begin, e.data_offsets.end, found.ids.get(name))
        for name, e in found.entries.items()
    }
    return rows, rest.metadata, rest.scalars


@settings(max_examples=150, deadline=None)
@given(tops)
def test_any_metadata_that_burn_could_write_means_the_same(top: Any) -> None:
    raw = cbor2.dumps(top)
    fast = _plain(raw)
    assert fast is None or fast == _general(raw)


def test_the_metadata_of_an_ordinary_model_goes_the_fast_way() -> None:
    tensors = {f"layer.{i}.weight": entry(i * 256, i * 256 + 8, param_id=2**63 + i) for i in range(300)}
    raw = cbor2.dumps({"tensors": tensors, "metadata": {"k": "v"}})
    assert _plain(raw) is not None
    assert _plain(raw) == _general(raw)


@settings(max_examples=400, deadline=None)
@given(top=tops, at=st.integers(0, 2**16), byte=st.integers(0, 255), how=st.sampled_from(("change", "insert", "remove", "cut")))
@example({"tensors": {"a": entry(), "b": entry()}}, 9, 0xA2, "change")
@example({"tensors": {"a": entry(dtype={"QFloat": scheme_022(block={"size": block(4), "dtype": "F32"})})}}, 60, 0x82, "change")
def test_metadata_with_a_wrong_byte_is_never_read_otherwise_than_by_the_general_decoder(
    top: Any, at: int, byte: int, how: str
) -> None:
    raw = bytearray(cbor2.dumps(top))
    at %= len(raw)
    if how == "change":
        raw[at] = byte
    elif how == "insert":
        raw.insert(at, byte)
    elif how == "remove":
        del raw[at]
    else:
        del raw[at:]
    fast = _plain(bytes(raw))
    assert fast is None or fast == _general(bytes(raw))
