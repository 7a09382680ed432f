"""Tests for people who write a format: subclass `FormatContract`, and pytest runs them against yours.

    from burnstore.testing import FormatContract
    from my_package import MyFormat

    class TestMyFormat(FormatContract):
        format = MyFormat()
        dtypes = ("F32", "F16", "I64", "Bool")

pytest itself is not needed to import this, nor to run it: `TestMyFormat().run()` does the same without it.
"""

from __future__ import annotations

from burnstore.testing.contract import FormatContract as FormatContract

__all__ = ["FormatContract"]
