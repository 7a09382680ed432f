"""SafeTensors keeps what every format promises."""

from __future__ import annotations

from burnstore.formats.table import by_name
from burnstore.testing import FormatContract


class TestSafetensors(FormatContract):
    format = by_name("safetensors")
    dtypes = (
        *("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "Bool", "C64"),
        *("F8_E5M2", "F8_E4M3", "F8_E5M2FNUZ", "F8_E4M3FNUZ", "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4"),
    )
    stored_as = {"Flex32": "F32", "Bool(U8)": "U8", "Bool(U32)": "U32"}  # noqa: RUF012
    has_param_ids = False
    keeps_order = False
