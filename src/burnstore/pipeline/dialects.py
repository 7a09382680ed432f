"""Whose habits a file follows: how a layer's tensors are called there, and how their axes lie.

A format may say it itself (`.bpk` is Burn's). SafeTensors says it in its metadata: by our own key `dialect`, or by
`format: pt`. `producer: burn` alone means little, since Burn marks its exports for PyTorch in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

KEY = "dialect"
BURN, PYTORCH = "burn", "pytorch"

# Burn calls a norm's tensors gamma and beta, PyTorch calls them weight and bias.
_BURN_NAMES = (".gamma", ".beta")


def dialect_of(own: str | None, metadata: Mapping[str, str], names: Iterable[str]) -> str | None:
    """The dialect of a file, or None where nothing tells it.

    >>> dialect_of(None, {"format": "pt"}, [])
    'pytorch'
    >>> dialect_of(None, {"producer": "burn"}, ["norm.gamma", "norm.beta"])
    'burn'
    """
    said = metadata.get(KEY)
    if said:
        return said
    if own is not None:
        return own
    if metadata.get("format") == "pt":
        return PYTORCH
    if metadata.get("producer") == BURN and any(name.endswith(_BURN_NAMES) for name in names):
        return BURN
    return None


def layout_matters(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """The tensors whose name or axes may differ between dialects: weights that may be a Linear's or a norm's.

    >>> layout_matters({"fc.weight": (4, 3), "conv.weight": (2, 2, 3, 3), "conv.bias": (2,), "norm.weight": (4,)})
    ['fc.weight', 'norm.weight']
    """
    return [name for name, shape in shapes.items() if len(shape) in (1, 2) and _is_weight(name.rpartition(".")[2])]


def _is_weight(word: str) -> bool:
    return word.endswith("weight") or word.startswith("weight_")  # in_proj_weight of attention, weight_ih_l0 of an LSTM
