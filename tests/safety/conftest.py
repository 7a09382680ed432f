"""Hostile files are opened by a child; tests that fill its memory get one of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.safety.prison import end_child


@pytest.fixture
def fresh_child() -> Iterator[None]:
    """A child that nobody used before, and that nobody will use after."""
    end_child()
    yield
    end_child()
