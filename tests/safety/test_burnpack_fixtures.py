"""The damaged files whose fate in the real Burn is known."""

from __future__ import annotations

from pathlib import Path

from tests.safety.prison import assert_refused, attack

# What both releases of Burn read without doubt about a value, and what 0.20 or 0.22 alone spell otherwise.
TOLERATED = {
    *("cbor_trailing", "dtype_bool_native", "dtype_bool_plain", "indefinite_map", "no_param_id", "offsets_unaligned", "ok"),
    *("param_id_null", "trailing_bytes", "unaligned_v019", "unknown_key", "unknown_tensor_key", "unsorted_names", "version0"),
    "offsets_overlap",  # exactly one range for two tensors: one tensor twice
}


def _files(data: Path) -> dict[str, Path]:
    files = {path.stem: path for path in sorted((data / "burn" / "errors").glob("*.bpk"))}
    assert len(files) > 35
    return files


def test_what_is_to_be_refused_is_refused_with_the_name_of_the_file(data: Path) -> None:
    assert_refused({name: path for name, path in _files(data).items() if name not in TOLERATED}, ".bpk")


def test_what_burn_tolerates_is_read(data: Path) -> None:
    outcomes = attack({name: path for name, path in _files(data).items() if name in TOLERATED})
    assert {name for name, outcome in outcomes.items() if outcome.error} == set()
    assert len(outcomes) == len(TOLERATED)
