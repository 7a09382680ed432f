"""The damaged SafeTensors files, and what the official package says to each."""

from __future__ import annotations

from pathlib import Path

import safetensors

from tests.safety.prison import assert_refused, attack

# Refused by us although the official package 0.8 reads them.
STRICTER = {
    "duplicate_same": "a name twice, even with one entry",
    "duplicate_metadata_key": "a metadata key twice: one of the two texts would be lost",
    "extra_info_field": "a field that the format does not have: nobody knows what it changes",
    "entry_is_list": "an entry as a list: a quirk of the Rust parser, against the format",
    "f4_odd_last_dim": "two F4 values share a byte across rows: no library agrees how",
    "zero_times_huge": "a dimension that no array can have, although a zero beside it leaves no bytes",
    "metadata_null": "metadata of null is no map of texts",
}
# Read by us although the official package 0.8 refuses them.
LOOSER = {"torch_zip_inside": "its content says that it is a PyTorch file"}
TO_BE_REFUSED = {
    *(
        "bool_dim",
        "eight_bytes",
        "empty_file",
        "entry_null",
        "f4_odd",
        "float_dim",
        "header_big_int",
        "header_bom",
    ),
    *("header_invalid_utf8", "header_is_list", "header_len_100mb", "header_len_max", "header_len_past_end", "header_len_short"),
    *("header_len_zero", "header_lone_surrogate", "header_nan", "header_trailing_comma", "header_two_objects", "hole"),
    *("hole_at_start", "html_page", "int_exponent", "lfs_pointer", "lower_dtype", "metadata_list", "metadata_nested"),
    *("metadata_nullvalue", "metadata_number", "missing_dtype", "missing_offsets", "missing_shape", "negative_dim", "no_data"),
    *("nul_padded", "offsets_float", "offsets_huge", "offsets_negative", "offsets_one", "offsets_past_end", "offsets_reversed"),
    *("offsets_three", "overflow_times_zero", "overlap", "same_range", "seven_bytes", "shape_2_64", "shape_mismatch"),
    *(
        "shape_overflow",
        "string_dim",
        "trailing_bytes",
        "truncated_data",
        "truncated_header",
        "unknown_dtype",
    ),
    *("duplicate_field", "duplicate_key", "duplicate_metadata", "duplicate_same"),
}


def _files(data: Path) -> dict[str, Path]:
    files = {path.stem: path for path in sorted((data / "safetensors").glob("*.safetensors"))}
    assert len(files) > 80
    return files


def _official(path: Path) -> bool:
    try:
        safetensors.deserialize(path.read_bytes())
    except safetensors.SafetensorError:
        return False
    return True


def test_what_is_to_be_refused_is_refused_with_the_name_of_the_file(data: Path) -> None:
    files = _files(data)
    assert files.keys() >= TO_BE_REFUSED
    assert_refused({name: files[name] for name in sorted(TO_BE_REFUSED)}, ".safetensors")


def test_burns_damaged_files_are_refused(data: Path) -> None:
    files = {path.stem: path for path in (data / "burn" / "errors").glob("*.safetensors")}
    for read in ("ok", "dtype_f8", "dtype_u16"):
        files.pop(read, None)
    assert_refused(files, ".safetensors")


def test_each_disagreement_with_the_official_package_has_a_reason(data: Path) -> None:
    files = _files(data)
    read = {name for name, outcome in attack(files).items() if outcome.error is None}
    official = {name for name, path in files.items() if _official(path)}
    assert official - read == STRICTER.keys()
    assert read - official == LOOSER.keys()
