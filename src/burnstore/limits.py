"""Every safety cap in one place.

Sizes that a file claims are checked against the file's real size first; these caps come on top. Those of Burnpack are
Burn's own: a file beyond them is refused by Burn, so burnstore neither reads nor writes it unless it is told to.
"""

from __future__ import annotations

from dataclasses import dataclass

MiB, GiB = 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The caps on what is read and written; pass a changed one as `limits=`.

    >>> Limits().burnpack_tensors
    100000
    >>> Limits(burnpack_tensors=1_000_000).burnpack_tensors
    1000000
    """

    # Burn's own, in burn-store/src/burnpack/base.rs.
    burnpack_metadata_bytes: int = 100 * MiB
    burnpack_tensors: int = 100_000
    burnpack_tensor_bytes: int = 10 * GiB
    burnpack_file_bytes: int = 100 * GiB
    burnpack_depth: int = 128
    # Metadata as Burn writes it is read without making an object of each item; other metadata can cost 64 times its size.
    burnpack_decoded_bytes: int = 8 * MiB
    # The official SafeTensors crate's.
    safetensors_header_bytes: int = 100_000_000
    # `model.safetensors.index.json` of a model with a million tensors is about 100 MB.
    index_bytes: int = 100 * MiB
    # PyTorch files are bounded by their size; these bound what is larger than the file because it repeats itself.
    # A deflated pickle; one that unpacks to less than 32 times its size is always read.
    pytorch_inflated_pickle_bytes: int = 4 * MiB
    # A tensor whose strides show the same elements again and again; 64 times its storage is always allowed.
    pytorch_expanded_bytes: int = 64 * MiB
    # The text of all names, where one dict stands under many keys; 16 times the size of the pickle is always allowed.
    pytorch_names_bytes: int = 16 * MiB
    # The values that `read_config` gives, each counted as often as it is shown.
    config_values: int = 10_000_000


DEFAULT_LIMITS = Limits()
