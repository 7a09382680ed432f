"""Tensors that torch would rebuild otherwise than they look: what a pickle does to them, and what its memo holds."""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
import zipfile
from typing import Any

import numpy as np
import pytest
import torch

import burnstore as bs
from burnstore.errors import DTypeError, FormatError
from tests.safety.pytorch.forge import PROTOCOL, archive, items, number, numbers, storage, tensor, text


def _torch(file: bytes) -> Any:
    return torch.load(io.BytesIO(file), weights_only=True)


def test_a_state_that_gives_a_tensor_other_values_is_refused_with_its_offset() -> None:
    other = b"(" + storage(key="1") + number(0) + numbers(4) + numbers(1) + b"t"
    before = b"}" + text("a") + tensor() + other
    file = archive(before + b"bs", {"0": struct.pack("<4f", 1, 2, 3, 4), "1": struct.pack("<4f", 5, 6, 7, 8)})
    assert _torch(file)["a"].tolist() == [5, 6, 7, 8]
    with pytest.raises(FormatError, match=f"offset {len(PROTOCOL + before)}, BUILD: it gives a tensor other values"):
        bs.open(file)


def test_a_dict_of_attributes_changes_no_values_of_a_tensor() -> None:
    file = archive(b"}" + text("a") + tensor() + b"}" + text("note") + number(1) + b"sbs")
    assert bs.open(file)["a"].numpy().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("said", [number(1), text("yes"), b"G" + struct.pack(">d", 1), b"]", b"N", number(0)])
def test_conj_that_is_neither_yes_nor_no_gives_no_values(said: bytes) -> None:
    stored = storage("ComplexFloatStorage", count=2)
    conjugated = tensor(stored, numbers(2), numbers(1), b"}" + text("conj") + said + b"s")
    data = struct.pack("<4f", 1, 2, 3, 4)
    file = archive(items(a=conjugated, good=tensor(storage(key="1"))), {"0": data, "1": data})
    if said == number(1):
        assert _torch(file)["a"].tolist() == [1 - 2j, 3 - 4j]
    store = bs.open(file)
    with pytest.raises(DTypeError, match="neither yes nor no"):
        store["a"].numpy()
    with pytest.raises(DTypeError, match="neither yes nor no"):
        store["a"][0:1]
    with pytest.raises(DTypeError):
        bs.save(store, bytes, format="safetensors")
    assert store["good"].numpy().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("dtype", ["float4_e2m1fn_x2", "float8_e8m0fnu", "float8_e4m3fn", "bool", "uint16"])
def test_neg_of_what_has_no_negative_is_refused(dtype: str) -> None:
    stored = storage("UntypedStorage", count=16)
    store = bs.open(archive(items(a=tensor(stored, bits=b"}" + text("neg") + b"\x88s", dtype=dtype))))
    for look in (lambda: store["a"].numpy(), lambda: store["a"][1:2], lambda: store["a"].tobytes()):
        with pytest.raises(DTypeError, match="its metadata asks for what"):
            look()


def test_neg_of_a_float_negates() -> None:
    file = archive(items(a=tensor(bits=b"}" + text("neg") + b"\x88s")))
    assert np.array_equal(bs.open(file)["a"].numpy(), _torch(file)["a"].resolve_neg().numpy())


class _Python(pickle.Unpickler):
    """Python's own pickle, where what torch makes is nothing but a tuple."""

    def find_class(self, module: str, name: str) -> Any:
        return dict if name == "OrderedDict" else lambda *args: args

    def persistent_load(self, pid: Any) -> Any:
        return pid


@pytest.mark.parametrize("first", ["get", "put", "get twice", "get, put"])
def test_memoize_numbers_as_python_does_beside_tensors_that_torch_wrote(first: str) -> None:
    saved = io.BytesIO()
    torch.save({"a": torch.ones(2), "b": torch.ones(3), "c": torch.ones(4)}, saved)
    with zipfile.ZipFile(saved) as file:
        records = {entry: file.read(entry) for entry in file.namelist()}
    (key,) = (entry for entry in records if entry.endswith("data.pkl"))
    codes = [(code.name, given, at) for code, given, at in pickletools.genops(records[key])]
    last = max(given for code, given, _ in codes if code == "BINPUT")
    (end,) = (at for code, _, at in codes if code == "SETITEMS")
    get, put = b"h" + bytes([last - 3]), b"q" + bytes([last - 3])
    steps = {"get": get + b"0", "put": b"K\1" + put + b"0", "get twice": get + get + b"00", "get, put": get + put + b"0"}
    added = steps[first] + text("p") + b"(K\7\x94K\x08\x94K\x09\x94000" + b"h" + bytes([last + 2]) + b"l"
    records[key] = records[key][:end] + added + records[key][end:]
    want = _Python(io.BytesIO(records[key])).load()["p"]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for entry, data in records.items():
            file.writestr(entry, data)
    assert want == [8]
    assert bs.read_config(out.getvalue()) == {"p": want}
