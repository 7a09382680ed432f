"""A short run of the target: an error of our tree, or the same tensors by whole entries and by single opcodes."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.fuzz.pytorch import target


@settings(max_examples=400, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(target.files())
def test_a_file_is_refused_or_reads_the_same_by_entries_and_by_opcodes(file: bytes) -> None:
    target.check(file)
