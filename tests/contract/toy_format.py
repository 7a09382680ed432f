"""A format of somebody else's, as small as one can be.

TOY! · length of the JSON, u32 · JSON {"metadata": {…}, "tensors": [[name, dtype, shape, begin, end], …]} · tensor data
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from burnstore import DType, Limits, TensorSnapshot
from burnstore.errors import DTypeError, FormatError, TruncatedError
from burnstore.formats.base import Row, WriteOptions
from burnstore.sources.base import FileRange, Source
from burnstore.sources.write import Layout, Part

MAGIC = b"TOY!"
DTYPES = ("F32", "F16", "I64", "U8", "Bool")


class ToyContents:
    format = "toy"

    def __init__(self, source: Source, header: Any, start: int) -> None:
        self.source: Source | None = source
        self.metadata: Mapping[str, str] = header["metadata"]
        self.extras: Mapping[str, Any] = {}
        self._rows: dict[str, Row] = {
            name: (name, DType.of(dtype), tuple(shape), source, start + begin, start + end)
            for name, dtype, shape, begin, end in header["tensors"]
        }

    def names(self) -> Collection[str]:
        return self._rows.keys()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def snapshot(self, name: str) -> TensorSnapshot:
        _, dtype, shape, source, begin, end = self._rows[name]
        assert source is not None
        return TensorSnapshot(name, dtype, shape, FileRange(source, begin, end))

    def rows(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def close(self) -> None:
        if self.source is not None:
            self.source.close()


class ToyFormat:
    name = "toy"
    suffixes = (".toy",)
    dialect = None

    def recognizes(self, head: bytes, size: int) -> bool:
        return head[:4] == MAGIC

    def read(self, source: Source, limits: Limits) -> ToyContents:
        if source.size < 8 or bytes(source.read(0, 4)) != MAGIC:
            raise FormatError("it does not begin with TOY!", where=source.name)
        start = 8 + int.from_bytes(source.read(4, 8), "little")
        if start > source.size:
            raise TruncatedError("its header is cut", where=source.name)
        header = json.loads(bytes(source.read(8, start)))
        end = max((row[4] for row in header["tensors"]), default=0)
        if start + end != source.size:
            raise TruncatedError(f"it should have {start + end} bytes", where=source.name)
        return ToyContents(source, header, start)

    def write(self, tensors: Sequence[TensorSnapshot], metadata: Mapping[str, str] | None, options: WriteOptions) -> Layout:
        rows, at = [], 0
        for tensor in tensors:
            if tensor.dtype.name not in DTYPES:
                raise DTypeError(f"TOY has no {tensor.dtype}", where=f"tensor {tensor.name!r}")
            rows.append((tensor.name, tensor.dtype.name, tensor.shape, at, at + tensor.nbytes))
            at += tensor.nbytes
        text = json.dumps({"metadata": dict(sorted((metadata or {}).items())), "tensors": rows}).encode()
        start = 8 + len(text)
        parts = [Part(tensor.name, start + row[3], tensor.data) for tensor, row in zip(tensors, rows, strict=True)]
        return Layout(MAGIC + len(text).to_bytes(4, "little") + text, parts, start + at)

    def verify(self, source: Source, contents: object, limits: Limits) -> Iterator[str]:
        return iter(())


FORMAT = ToyFormat()
