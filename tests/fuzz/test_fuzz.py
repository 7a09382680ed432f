"""A short run of each fuzz target: an error of our tree, or what a naive reader finds (for PyTorch, our own slow one)."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.fuzz import burnpack_target, index_target, pytorch_target, safetensors_target

_short = settings(max_examples=400, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@_short
@given(burnpack_target.files())
def test_a_burnpack_reader_refuses_or_reads_what_a_naive_reader_reads(file: bytes) -> None:
    burnpack_target.check(file)


@_short
@given(safetensors_target.files())
def test_a_safetensors_reader_refuses_or_reads_what_a_naive_and_the_official_reader_read(file: bytes) -> None:
    safetensors_target.check(file)


@_short
@given(index_target.files())
def test_an_index_reader_refuses_or_reads_what_a_naive_reader_reads(file: bytes) -> None:
    index_target.check(file)


@_short
@given(pytorch_target.files())
def test_a_pytorch_reader_refuses_or_reads_the_same_by_whole_entries_and_by_single_opcodes(file: bytes) -> None:
    pytorch_target.check(file)
