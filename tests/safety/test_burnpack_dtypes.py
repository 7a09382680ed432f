"""Words for dtypes that no release of Burn writes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.safety.forge import bpk, bpk_with, tensor
from tests.safety.prison import assert_refused, attack

Q = {"value": "Q8S", "store": "Native", "mode": "Symmetric", "tensor": "F32", "block": None}


def _block(**changed: Any) -> dict[str, Any]:
    return {"size": {"storage": [4, 1, 1, 1, 1], "len": 1, **changed}, "dtype": "F32"}


@pytest.mark.parametrize(
    "dtype",
    [
        *(
            "f32",
            "F33",
            "",
            " F32",
            "F32 ",
            "F32\0",
            "float32",
            "BOOL",
            "bool",
            "Native",
            "QFloat",
            "F8_E4M3",
            "C64",
            "F4",
            "I128",
        ),
        *(
            "Bool(U8)",
            "Bool(U32)",
            "QFloat(Q8S, Native, tensor F32)",
            "\uff2632",
            "\u2603",
            None,
            32,
            True,
            1.5,
            b"F32",
            [],
            ["F32"],
        ),
        *({}, {"F32": None}, {"Bool": "Native", "U8": 1}, {"Bool": "U16"}, {"Bool": None}, {"Bool": {}}, {"Bool": ["U8"]}),
        *(
            {"bool": "Native"},
            {"Bool": b"U8"},
            {"F32": "F32"},
            {"QFloat": None},
            {"QFloat": {}},
            {"QFloat": []},
            {"QFloat": "Q8S"},
        ),
        *({1: 2}, {"": {}}, {None: "Native"}),
    ],
    ids=lambda dtype: repr(dtype)[:40],
)
def test_a_dtype_that_is_none_is_refused(dtype: Any) -> None:
    assert_refused({"dtype": bpk_with(dtype=dtype)})


@pytest.mark.parametrize(
    "scheme",
    [
        *({key: value for key, value in Q.items() if key != "value"}, {**Q, "value": "Q9S"}, {**Q, "value": ["Q8S"]}),
        *({**Q, "value": None}, {**Q, "mode": "Asymmetric"}, {**Q, "mode": {}}, {**Q, "store": "Packed"}, {**Q, "store": {}}),
        *({**Q, "store": {"PackedU32": -1}}, {**Q, "store": {"PackedU32": "0"}}, {**Q, "store": {"PackedU32": 0, "x": 0}}),
        *({**Q, "store": ["Native"]}, {**Q, "store": 5}, {**Q, "tensor": "F64"}, {**Q, "tensor": ["F32"]}, {**Q, "tensor": 1}),
        *({**Q, "tensor": None, "block": {}}, {**Q, "tensor": None, "block": "B"}, {**Q, "tensor": None, "block": [1]}),
        *({**Q, "tensor": None, "block": {"size": 4, "dtype": "F32"}}, {**Q, "tensor": None, "block": _block(len=6)}),
        *({**Q, "tensor": None, "block": _block(len=-1)}, {**Q, "tensor": None, "block": _block(len=True)}),
        *({**Q, "tensor": None, "block": _block(len=0)}, {**Q, "tensor": None, "block": _block(storage=[0, 1, 1, 1, 1])}),
        *(
            {**Q, "tensor": None, "block": _block(storage=[256, 1, 1, 1, 1])},
            {**Q, "tensor": None, "block": _block(storage="44444")},
        ),
        *({**Q, "tensor": None, "block": _block(storage={"0": 4})}, {**Q, "tensor": None, "block": _block(storage=[4.0])}),
        *({**Q, "tensor": None, "block": _block(storage=[2, 2, 1, 1, 1], len=2)},),
        *({"value": "Q8S", "level": "Tensor"}, {"value": "Q8S", "level": "Row", "param": "F32"}, {"value": "Q8S", "level": {}}),
        *({"value": "Q8S", "level": {"Block": 4}, "param": "F32"}, {"value": "Q8S", "level": None, "param": "F32"}),
    ],
    ids=lambda scheme: repr(scheme)[:90],
)
def test_a_scheme_that_is_none_is_refused(scheme: Any) -> None:
    assert_refused({"scheme": bpk_with(bytes(12), dtype={"QFloat": scheme}, shape=[8], data_offsets=[0, 12])}, "'t'")


def test_a_quantised_tensor_of_a_wrong_size_is_refused() -> None:
    files = {str(n): bpk_with(bytes(64), dtype={"QFloat": Q}, shape=[8], data_offsets=[0, n]) for n in (0, 8, 11, 13, 16, 36)}
    assert_refused(files, "needs 12 bytes")


def test_a_packed_tensor_with_an_odd_last_axis_is_read() -> None:
    scheme = {**Q, "value": "Q4S", "store": {"PackedU32": 0}}
    file = bpk_with(bytes(12), dtype={"QFloat": scheme}, shape=[5, 3], data_offsets=[0, 12])  # 15 values in two words
    assert attack({"odd": file})["odd"].error is None


def test_the_name_that_we_print_for_a_map_is_no_dtype_of_a_file() -> None:
    tensors = {
        "a": tensor(dtype={"Bool": "U8"}, shape=[4], data_offsets=[0, 4]),
        "b": tensor(dtype="Bool(U8)", shape=[4], data_offsets=[4, 8]),
    }
    assert_refused({"bool": bpk({"tensors": tensors})}, "'b'")
    tensors["a"] = tensor(dtype={"QFloat": Q}, shape=[4], data_offsets=[0, 8])
    tensors["b"] = tensor(dtype="QFloat(Q8S, Native, tensor F32)", shape=[4], data_offsets=[8, 16])
    assert_refused({"quantised": bpk({"tensors": tensors}, bytes(16))}, "'b'")


def test_two_schemes_that_differ_are_never_taken_for_each_other() -> None:
    one = {**Q, "tensor": "F32"}
    other = {**Q, "tensor": None, "block": _block(len=0)}  # a scale for each value, if it means anything
    tensors = {
        "a": tensor(dtype={"QFloat": one}, shape=[4], data_offsets=[0, 8]),
        "b": tensor(dtype={"QFloat": other}, shape=[4], data_offsets=[256, 264]),
    }
    assert_refused({"schemes": bpk({"tensors": tensors}, bytes(264))}, "'b'")
