"""A Burnpack file that ends too early is an error, wherever it ends: never the values of some other layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.safety.forge import bpk, tensor
from tests.safety.prison import assert_refused


def _cut(file: bytes, lengths: list[int]) -> dict[str, bytes]:
    return {f"{length} of {len(file)} bytes": file[:length] for length in lengths if length < len(file)}


@pytest.mark.parametrize("version", ["v0.19.1", "v0.20.1/seed42", "v0.22.1/ramp"])
def test_a_small_file_cut_at_every_byte(data: Path, version: str) -> None:
    file = (data / "burn" / version / "net.bpk").read_bytes()
    assert_refused(_cut(file, list(range(len(file)))))


def test_a_larger_file_cut_in_its_header_and_at_every_boundary(data: Path) -> None:
    file = (data / "burn" / "v0.22.1" / "ramp" / "zoo.bpk").read_bytes()
    end = 10 + int.from_bytes(file[6:10], "little")
    edges = [edge + more for edge in range(0, len(file), 256) for more in (-1, 0, 1) if edge + more > end]
    edges += [end + more for more in range(-5, 6)] + [len(file) - (-end % 256), len(file) - 1]
    assert_refused(_cut(file, list(range(0, end, 7)) + edges))


def test_a_file_without_gaps_that_lost_as_much_as_its_padding() -> None:
    block = {"tensors": {"a": tensor(shape=[64], data_offsets=[0, 256]), "b": tensor(data_offsets=[256, 264])}}
    file = bpk(block, bytes(range(1, 256)) + bytes(range(9)))
    padding = 256 - 10 - int.from_bytes(file[6:10], "little")
    assert 0 < padding < 256
    assert_refused({"it is as long as a file of Burn 0.19 would be": file[:-padding]})


def test_a_file_whose_version_text_is_not_of_burn_019_is_not_read_as_one() -> None:
    block = {"tensors": {"a": tensor(shape=[64], data_offsets=[0, 256])}, "metadata": {"producer": "burn", "version": "0.20.1"}}
    file = bpk(block, bytes(range(1, 256)) + b"\1")
    padding = 256 - 10 - int.from_bytes(file[6:10], "little")
    assert_refused({"cut by its padding": file[:-padding]})
