"""Burnpack keeps what every format promises."""

from __future__ import annotations

from burnstore.formats.table import by_name
from burnstore.testing import FormatContract


class TestBurnpack(FormatContract):
    format = by_name("burnpack")
    dtypes = (
        *("F64", "F32", "Flex32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8"),
        *("Bool", "Bool(U8)", "Bool(U32)"),
    )
