"""Whose habits a file follows: how a layer's tensors are called there, and how their axes lie.

A format may say it itself (`.bpk` is Burn's). SafeTensors says it in its metadata: by our own key `dialect`, or by
`format: pt`. `producer: burn` alone means little, since Burn marks its exports for PyTorch in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from burnstore.pipeline.layers import BURN, PYTORCH

KEY = "dialect"
# Said in the metadata of a part of a model in Burn's layout whose lists have gaps all the same: its writer kept their numbers.
INDICES, KEPT = "indices", "kept"

# Burn calls a norm's tensors gamma and beta, PyTorch calls them weight and bias.
_BURN_NAMES = (".gamma", ".beta")


class Claim(NamedTuple):
    """What somebody says of the dialect of tensors: which, whether in so many words, and who."""

    dialect: str | None = None
    plainly: bool = False
    why: str = ""
    # Burn's exports for PyTorch say the same, so that a model can tell better.
    is_weak: bool = False


def said(own: str | None, metadata: Mapping[str, str], names: Iterable[str]) -> Claim:
    """What a file claims.

    >>> said(None, {"dialect": "burn"}, [])
    Claim(dialect='burn', plainly=True, why="its metadata 'dialect'", is_weak=False)
    """
    word = metadata.get(KEY)
    if word:
        return Claim(word, True, f"its metadata {KEY!r}")
    if own is not None:
        return Claim(own, False, "its format")
    if metadata.get("format") == "pt":
        return Claim(PYTORCH, False, "its metadata 'format'")
    if metadata.get("producer") == BURN and any(name.endswith(_BURN_NAMES) for name in names):
        return Claim(BURN, False, "its metadata 'producer'", is_weak=True)
    return Claim()


def dialect_of(own: str | None, metadata: Mapping[str, str], names: Iterable[str]) -> str | None:
    """The dialect of a file, or None where nothing tells it.

    >>> dialect_of(None, {"format": "pt"}, [])
    'pytorch'
    >>> dialect_of(None, {"producer": "burn"}, ["norm.gamma", "norm.beta"])
    'burn'
    """
    return said(own, metadata, names).dialect


def layout_matters(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """The tensors whose name or axes may differ between dialects: those that may be a Linear's or a norm's.

    >>> layout_matters({"fc.weight": (4, 3), "conv.weight": (2, 2, 3, 3), "conv.bias": (2,), "norm.gamma": (4,)})
    ['fc.weight', 'norm.gamma']
    """
    return [name for name, shape in shapes.items() if len(shape) in (1, 2) and _is_weight(name.rpartition(".")[2])]


def _is_weight(word: str) -> bool:
    # in_proj_weight of attention, weight_ih_l0 of an LSTM; gamma, beta and alpha are Burn's words for a norm and a PReLU
    return word.endswith("weight") or word.startswith("weight_") or word in ("gamma", "beta", "alpha")
