"""Burnpack, Burn's own format.

    0      4         6               10           10+m            s = 10+m rounded up to 256
    ├──────┼─────────┼───────────────┼─────────────┼───────┼──────────────────────────────────┤
    │ NRUB │ version │ m             │ CBOR        │ zeros │ tensor data                      │
    │      │ u16 = 1 │ u32           │ m bytes     │       │ each begins at s + k * 256       │
    └──────┴─────────┴───────────────┴─────────────┴───────┴──────────────────────────────────┘

    CBOR:  {"tensors": {name: {"dtype", "shape", "data_offsets": [begin, end], "param_id"?}},
            "metadata"?: {text: text}, "scalars"?: {text: {"Int" | "UInt" | "Float" | "Bool": value}}}

Offsets count from s. Names are sorted in the CBOR, the data lies in the order of the model. Files of Burn 0.19 say
version 1 too, but have no zeros: their offsets count from 10+m, and nothing is aligned.
"""

from __future__ import annotations

from burnstore.formats.burnpack.header import MAGIC
from burnstore.formats.burnpack.reader import read
from burnstore.formats.burnpack.verify import verify
from burnstore.formats.burnpack.writer import write


class BurnpackFormat:
    """The format as `burnstore.formats.base.Format` wants it."""

    name = "burnpack"
    suffixes = (".bpk",)
    dialect = "burn"

    def recognizes(self, head: bytes, size: int) -> bool:
        """Its first four bytes."""
        return head[:4] == MAGIC

    read = staticmethod(read)
    write = staticmethod(write)
    verify = staticmethod(verify)


FORMAT = BurnpackFormat()
