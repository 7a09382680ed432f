"""What the contract feeds to a format: tensors of every kind, a source that counts, and files that are not the format's."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from burnstore.data import TensorData
from burnstore.dtypes import DType, Shape
from burnstore.errors import TensorDataError
from burnstore.formats.base import Contents
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.memory import MemorySource
from burnstore.sources.write import Layout, to_file_object, write_layout

if TYPE_CHECKING:
    from typing_extensions import Buffer

# What people take for weight files; no format may claim them.
NOT_WEIGHTS = (
    b"",
    b"\0" * 4096,
    b"\xff" * 4096,
    b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    b"<!DOCTYPE html><html><body>404</body></html>",
    b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>",
    b"\x1f\x8b\x08\x00" + bytes(60),
    b"hello, world\n" * 20,
)

# Names that have been seen in files; none of them may mean anything to a format.
NAMES = (
    "a",
    "A",
    "layer.0.weight",
    "",
    " ",
    "é ☕ 重み \U0001f525",
    "e\u0301",
    '"quoted": {}',
    "back\\slash",
    "line\nbreak\ttab\0nul",
    "../../etc/passwd",
    "<img onerror=x>",
    "x" * 1000,
)


def tensor(name: str, dtype: str = "U8", shape: Shape = (3,), *, seed: int = 0, param_id: int | None = None) -> TensorSnapshot:
    """A tensor whose bytes follow from its seed; those of a boolean are 0 and 1.

    >>> tensor("a", seed=1).tobytes()
    b'\\x01\\x08\\x0f'
    """
    kind = DType.of(dtype)
    step = 4 if kind.name == "Bool(U32)" else 1
    top = 2 if kind.kind == "bool" else 251
    data = bytes((seed + i * 7) % top if i % step == 0 else 0 for i in range(kind.nbytes(shape)))
    return TensorSnapshot.from_data(name, TensorData(data, shape, kind), param_id=param_id)


def unreadable(name: str, dtype: str = "F32", shape: Shape = (1024, 1024)) -> TensorSnapshot:
    """A tensor that fails when somebody asks for its bytes."""

    def fail() -> Iterator[bytes]:
        raise TensorDataError("its bytes were asked for", where=f"tensor {name!r}")
        yield b""

    return TensorSnapshot.from_blocks(name, dtype, shape, fail)


def to_bytes(layout: Layout) -> bytes:
    """The file that a layout describes."""
    file = io.BytesIO()
    write_layout(layout, to_file_object(file))
    return file.getvalue()


def listed(contents: Contents) -> dict[str, tuple[str, Shape, bytes]]:
    """All that a file says of its tensors, in its order."""
    snapshots = {name: contents.snapshot(name) for name in contents.names()}
    return {name: (snapshot.dtype.name, snapshot.shape, snapshot.tobytes()) for name, snapshot in snapshots.items()}


class CountingSource(MemorySource):
    """A source that remembers how many of its bytes were asked for.

    >>> source = CountingSource(b"NRUB")
    >>> source.read(0, 2).tobytes(), source.asked
    (b'NR', 2)
    """

    def __init__(self, data: Buffer) -> None:
        super().__init__(data)
        self.asked = 0

    def view(self, begin: int, end: int) -> memoryview:
        self.asked += end - begin
        return super().view(begin, end)

    read = view

    def read_into(self, begin: int, out: memoryview) -> None:
        out[:] = self.view(begin, begin + len(out))
