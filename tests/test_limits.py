"""The caps, and that each of them is one that somebody asks."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import burnstore
import burnstore as bs


def test_the_caps_of_burnpack_are_burns_own() -> None:
    """100 MiB of metadata, 100,000 tensors, 10 GiB a tensor, 100 GiB a file, CBOR 128 deep."""
    limits = bs.Limits()
    assert limits.burnpack_metadata_bytes == 100 * 1024**2 and limits.burnpack_tensors == 100_000
    assert limits.burnpack_tensor_bytes == 10 * 1024**3 and limits.burnpack_file_bytes == 100 * 1024**3
    assert limits.burnpack_depth == 128 and limits.safetensors_header_bytes == 100_000_000


def test_limits_cannot_be_changed_and_take_no_unknown_cap() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        bs.Limits().burnpack_tensors = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        bs.Limits(burnpack_tensor=3)  # type: ignore[call-arg]
    assert dataclasses.replace(bs.Limits(), burnpack_tensors=3).burnpack_tensors == 3


@pytest.mark.parametrize("cap", [field.name for field in dataclasses.fields(bs.Limits)])
def test_every_cap_is_asked_by_a_reader_or_a_writer(cap: str) -> None:
    folder = Path(burnstore.__file__).parent
    assert any(re.search(rf"limits\.{cap}\b", path.read_text()) for path in folder.rglob("*.py") if path.name != "limits.py")


def test_a_cap_that_refuses_names_itself_and_can_be_raised() -> None:
    tensors = {f"t{number}": [1.0] for number in range(11)}
    with pytest.raises(bs.errors.LimitError, match=r"Limits\(burnpack_tensors="):
        bs.save(tensors, bytes, format="bpk", limits=bs.Limits(burnpack_tensors=10))
    data = bs.save(tensors, bytes, format="bpk")
    with pytest.raises(bs.errors.LimitError, match=r"Limits\(burnpack_tensors="):
        bs.open(data, limits=bs.Limits(burnpack_tensors=10))
    assert len(bs.open(data, limits=bs.Limits(burnpack_tensors=11))) == 11


@pytest.mark.parametrize(
    ("cap", "value"), [("burnpack_metadata_bytes", 50), ("burnpack_tensor_bytes", 7), ("burnpack_file_bytes", 300)]
)
def test_every_cap_of_burnpack_holds_in_both_directions(cap: str, value: int) -> None:
    limits = bs.Limits(**{cap: value})
    tensors = {"t": [1.0, 2.0], "u": [1.0]}
    with pytest.raises(bs.errors.LimitError, match=cap):
        bs.save(tensors, bytes, format="bpk", limits=limits)
    with pytest.raises(bs.errors.LimitError, match=cap):
        bs.open(bs.save(tensors, bytes, format="bpk"), limits=limits)


def test_verify_uses_the_limits_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file over a default cap that is verified with a larger one."""
    from burnstore.formats.burnpack import verify as burnpack
    from burnstore.formats.safetensors import verify as safetensors

    for format, module, small in (
        ("bpk", burnpack, bs.Limits(burnpack_metadata_bytes=3)),
        ("safetensors", safetensors, bs.Limits(safetensors_header_bytes=3)),
    ):
        monkeypatch.setattr(__import__("sys").modules[module.__module__], "DEFAULT_LIMITS", small, raising=False)
        assert bs.verify(bs.save({"t": [1.0]}, bytes, format=format), limits=bs.Limits()).ok
