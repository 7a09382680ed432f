"""SafeTensors.

    0      8                 8+n
    ├──────┼──────────────────┼──────────────────────────────┤
    │ n    │ JSON, n bytes    │ tensor data                  │
    │ u64  │ {"name": {"dtype", "shape", "data_offsets"}, …} │
    └──────┴──────────────────┴──────────────────────────────┘

Offsets count from 8+n. The ranges, in order, cover the data exactly: no hole, no overlap, nothing after the last one.
`"__metadata__"` may hold texts by text. Writers pad the JSON with spaces to a multiple of 8.
"""

from __future__ import annotations

from burnstore.formats.safetensors.reader import read
from burnstore.formats.safetensors.verify import verify
from burnstore.formats.safetensors.writer import write


class SafetensorsFormat:
    """The format as `burnstore.formats.base.Format` wants it."""

    name = "safetensors"
    suffixes = (".safetensors",)
    dialect = None

    def recognizes(self, head: bytes, size: int) -> bool:
        """A length that fits the file, then a brace, which the official readers let be preceded by white space."""
        return size > 8 and int.from_bytes(head[:8], "little") <= size - 8 and head[8:64].lstrip(b" \t\r\n")[:1] == b"{"

    read = staticmethod(read)
    write = staticmethod(write)
    verify = staticmethod(verify)


FORMAT = SafetensorsFormat()
