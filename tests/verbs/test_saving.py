"""What `bs.save` is given beside tensors: places to save to, and metadata."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from tests.sources.handmade import burnpack_parts, safetensors_parts


@pytest.mark.parametrize("format", ["bpk", "safetensors"])
def test_a_temporary_file_in_text_mode_is_refused(tmp_path: Path, format: str) -> None:
    """It is no text file by its class, and only its `write` says so."""
    with tempfile.NamedTemporaryFile("w", dir=tmp_path) as file, pytest.raises(bs.errors.UsageError, match="binary mode"):
        bs.save({"a": [1.0]}, file, format=format)  # type: ignore[arg-type]


def test_metadata_in_a_kind_of_text_is_written_as_text() -> None:
    """NumPy's text, as an array of labels gives it."""
    metadata = {np.str_("epoch"): np.str_("3")}
    wanted = {"epoch": "3"}
    assert burnpack_parts(bs.save({"a": [1.0]}, bytes, format="bpk", metadata=metadata))[0]["metadata"] == wanted
    assert safetensors_parts(bs.save({"a": [1.0]}, bytes, format="safetensors", metadata=metadata))[0]["__metadata__"] == wanted
    store = bs.BurnpackStore.from_bytes(None).clear_metadata().metadata(np.str_("epoch"), np.str_("3"))
    bs.save({"a": [1.0]}, store)
    assert burnpack_parts(store.get_bytes())[0]["metadata"] == wanted


def test_a_type_error_of_the_tensors_is_not_blamed_on_the_file_object(tmp_path: Path) -> None:
    snapshot = bs.TensorSnapshot.from_blocks("x", "U8", (70_000,), lambda: ["text"])  # type: ignore[list-item,return-value]
    with pytest.raises((TypeError, bs.errors.BurnstoreError)) as caught, (tmp_path / "w").open("wb") as file:
        bs.save([snapshot], file, format="bpk")
    assert "binary mode" not in str(caught.value)
