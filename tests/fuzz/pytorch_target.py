"""PyTorch files that might be right, and what must be true of each that our reader takes.

There is no second reader that may be fed such files: Python's own runs what they say. But there are two ways through ours:
whole entries at once, and opcode by opcode. Both must end with the same tensors, or the same refusal.
"""

from __future__ import annotations

import io
import struct
import zipfile
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

import burnstore as bs
from burnstore.errors import BurnstoreError
from burnstore.formats.pytorch.entries import Entries
from burnstore.formats.pytorch.opcodes import HANDLERS
from burnstore.formats.pytorch.values import plain_values

_DATA = Path(__file__).parents[1] / "data" / "torch"
_ZIPS = (
    "torch/conv2d.pt",
    "torch/tied_weights.pt",
    "torch/nested.pt",
    "torch/sparse.pt",
    "torch/conv2d_model.pt",
    "torch/int_keys.pt",
)
_OTHERS = ("torch/legacy_tied.pth", "torch/legacy_storage_views.pth", "torch/ancient.tar.pt", "torch_zip/plain_pickle.pt")
_NUMBERS = (0, 1, 2, 4, 127, 128, 255, 256, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)


@cache
def _pickles() -> list[tuple[bytes, dict[str, bytes]]]:
    """The pickle of each good archive, and its other entries."""
    found = []
    for name in _ZIPS:
        with zipfile.ZipFile(_DATA / name) as archive:
            inner = {entry.partition("/")[2]: archive.read(entry) for entry in archive.namelist()}
        found.append((inner.pop("data.pkl"), inner))
    return found


@cache
def _whole_files() -> list[bytes]:
    return [(_DATA / name).read_bytes() for name in (*_ZIPS, *_OTHERS)]


_opcodes = st.sampled_from([code for code in range(256) if HANDLERS[code] is not HANDLERS[0xFE]] + [0x2E, 0xFE])
_names = st.sampled_from(
    [
        b"torch._utils\n_rebuild_tensor_v2\n",
        b"torch\nFloatStorage\n",
        b"collections\nOrderedDict\n",
        b"os\nsystem\n",
        b"torch\nSize\n",
    ]
)
_piece = st.one_of(
    _opcodes.map(lambda code: bytes([code])),
    _names.map(lambda name: b"c" + name),
    st.integers(0, 20).map(lambda index: b"h" + bytes([index])),
    st.integers(0, 20).map(lambda index: b"q" + bytes([index])),
    st.sampled_from(
        [
            b"X\x01\0\0\0w",
            b"X\x07\0\0\0storage",
            b"(X\x01\0\0\x000tQ",
            b"K\x02\x85",
            b"K\x02K\x03\x86",
            b")R",
            b"tR",
            b"}(",
            b"u.",
        ]
    ),
    st.sampled_from(_NUMBERS).map(lambda number: struct.pack("<Q", number)[:4]),
)


def _archive(pickle: bytes, others: dict[str, bytes], *, deflated: bool) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("x/data.pkl"), pickle)
        for name, content in others.items():
            archive.writestr(zipfile.ZipInfo(f"x/{name}"), content)
    return out.getvalue()


@st.composite
def _changed(draw: st.DrawFn, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, max(0, len(changed) - 1)))
        kind = draw(st.sampled_from(("byte", "piece", "insert", "delete", "number", "double", "cut")))
        if kind == "byte" and changed:
            changed[at] = draw(st.integers(0, 255))
        elif kind in ("piece", "insert"):
            piece = draw(_piece)
            changed[at : at + (len(piece) if kind == "piece" else 0)] = piece
        elif kind == "delete":
            del changed[at : at + draw(st.integers(1, 40))]
        elif kind == "number":
            size = draw(st.sampled_from((1, 2, 4, 8)))
            changed[at : at + size] = struct.pack("<Q", draw(st.sampled_from(_NUMBERS)))[:size]
        elif kind == "double":
            changed[at:at] = changed[at : at + draw(st.integers(1, 120))]
        elif not draw(st.integers(0, 4)):
            del changed[at:]
    return bytes(changed)


@st.composite
def _changed_pickle(draw: st.DrawFn) -> bytes:
    pickle, others = _pickles()[draw(st.integers(0, len(_ZIPS) - 1))]
    return _archive(draw(_changed(pickle)), others, deflated=draw(st.booleans()))


@st.composite
def _random_pickle(draw: st.DrawFn) -> bytes:
    _, others = _pickles()[0]
    return _archive(b"\x80\2" + b"".join(draw(st.lists(_piece, max_size=40))) + b".", others, deflated=False)


@st.composite
def _changed_file(draw: st.DrawFn) -> bytes:
    files = _whole_files()
    return draw(_changed(files[draw(st.integers(0, len(files) - 1))]))


def files() -> st.SearchStrategy[bytes]:
    """Everything that this target reads."""
    return st.one_of(_changed_pickle(), _random_pickle(), _changed_file())


def check(data: bytes) -> str:
    """The property; says what became of the file."""
    quick = _read(data)
    with patch.object(Entries, "saw", lambda self, name: None):
        slow = _read(data)
    assert quick == slow, "whole entries and single opcodes differ"
    return "refused" if isinstance(quick, str) else "read"


def _read(data: bytes) -> object:
    try:
        store = bs.open(data, format="pytorch")
    except BurnstoreError as error:
        _check_message(error)
        return "refused"
    found: dict[str, Any] = {}
    for name in store:
        snapshot = store[name]
        try:
            content = snapshot.tobytes()
            assert len(content) == snapshot.nbytes == snapshot.dtype.nbytes(snapshot.shape), "nbytes is wrong"
            array = snapshot.numpy(copy=True)
            assert array.shape[: len(snapshot.shape)] == snapshot.shape
            found[name] = snapshot.dtype.name, snapshot.shape, content
        except BurnstoreError as error:
            _check_message(error)
            found[name] = str(error)
    for use in (lambda: plain_values(store.contents), lambda: store.describe(), lambda: repr(store), lambda: bs.verify(data)):  # type: ignore[arg-type]
        try:
            use()
        except BurnstoreError as error:
            _check_message(error)
    return found


def _check_message(error: BurnstoreError) -> None:
    assert error.where, f"no place: {error}"
    assert len(str(error)) < 4000 and "\n" not in str(error), "the message is not one short line"
