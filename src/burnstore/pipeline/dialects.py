"""Whose habits a file follows: how a layer's tensors are called there, and how their axes lie.

A format may say it itself (`.bpk` is Burn's). SafeTensors says it in its metadata: by our own key `dialect`, or by
`format: pt`. `producer: burn` alone means little, since Burn marks its exports for PyTorch in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from burnstore.pipeline.layers import BURN, PYTORCH

KEY = "dialect"
# A claim that says little, because Burn's exports for PyTorch make it as well.
PRODUCER = "its metadata 'producer'"

# Burn calls a norm's tensors gamma and beta, PyTorch calls them weight and bias.
_BURN_NAMES = (".gamma", ".beta")


def said(own: str | None, metadata: Mapping[str, str], names: Iterable[str]) -> tuple[str | None, bool, str]:
    """The dialect that a file claims, whether it says so in so many words, and where it says it.

    >>> said(None, {"dialect": "burn"}, [])
    ('burn', True, "its metadata 'dialect'")
    """
    word = metadata.get(KEY)
    if word:
        return word, True, f"its metadata {KEY!r}"
    if own is not None:
        return own, False, "its format"
    if metadata.get("format") == "pt":
        return PYTORCH, False, "its metadata 'format'"
    if metadata.get("producer") == BURN and any(name.endswith(_BURN_NAMES) for name in names):
        return BURN, False, PRODUCER
    return None, False, ""


def dialect_of(own: str | None, metadata: Mapping[str, str], names: Iterable[str]) -> str | None:
    """The dialect of a file, or None where nothing tells it.

    >>> dialect_of(None, {"format": "pt"}, [])
    'pytorch'
    >>> dialect_of(None, {"producer": "burn"}, ["norm.gamma", "norm.beta"])
    'burn'
    """
    return said(own, metadata, names)[0]


def layout_matters(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """The tensors whose name or axes may differ between dialects: those that may be a Linear's or a norm's.

    >>> layout_matters({"fc.weight": (4, 3), "conv.weight": (2, 2, 3, 3), "conv.bias": (2,), "norm.gamma": (4,)})
    ['fc.weight', 'norm.gamma']
    """
    return [name for name, shape in shapes.items() if len(shape) in (1, 2) and _is_weight(name.rpartition(".")[2])]


def _is_weight(word: str) -> bool:
    # in_proj_weight of attention, weight_ih_l0 of an LSTM; gamma, beta and alpha are Burn's words for a norm and a PReLU
    return word.endswith("weight") or word.startswith("weight_") or word in ("gamma", "beta", "alpha")
