"""Finding a value inside a file by its key: `state_dict`, `hyper_parameters.n_head`, `optimizer.param_groups.0`."""

from __future__ import annotations

from itertools import islice
from typing import Any

from burnstore.errors import TensorNotFoundError
from burnstore.formats.pytorch.names import key_text
from burnstore.formats.pytorch.nodes import Bag, Composite, Items, Made, Storage, Tensor
from burnstore.render import names_text
from burnstore.suggest import closest

# Where people keep the weights of a checkpoint: the first is what most have.
NESTS = (
    "state_dict",
    "model_state_dict",
    "model",
    "module",
    "net",
    "network",
    "weights",
    "ema",
    "ema_state_dict",
    "state_dict_ema",
    "model_ema",
    "params",
    "params_ema",
    "generator",
    "teacher",
    "student",
)
# More keys than a message can show need not be compared.
_MOST_KEYS = 1000


def value_at(root: object, key: str, where: str) -> object:
    """The value under a key: one that is exactly `key`, else the way that its dots name."""
    found = _children(root)
    if key in found:
        return found[key]
    value, path = root, ""
    rest = key
    while True:
        children = _children(value)
        step = next((first for first in _heads(rest) if first in children), None)
        if step is None:
            raise _missing(children, rest, path, where)
        value = children[step]
        path = f"{path}.{step}" if path else step
        if step == rest:
            return value
        rest = rest[len(step) + 1 :]


def _heads(key: str) -> list[str]:
    """What a dotted key may begin with, the longest first: keys may have dots of their own."""
    parts = key.split(".", 64)
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _children(value: Any) -> dict[str, Any]:
    """The values directly inside a value, by the text of their keys; of two equal texts, the text itself wins."""
    if isinstance(value, (list, tuple)):
        return {str(number): item for number, item in enumerate(value)}
    if type(value) is Made:
        value = {**(value.attributes() or {}), **(value.items or {})}
    if isinstance(value, (dict, Items)):
        others = {key_text(key): item for key, item in value.items() if type(key) is not str}
        return {**others, **{key: item for key, item in value.items() if type(key) is str}}
    return {}


def _missing(children: dict[str, Any], key: str, path: str, where: str) -> TensorNotFoundError:
    inside = f" in {path!r}" if path else ""
    meant = closest(key, list(children)[:_MOST_KEYS])
    if meant is not None:
        do = f"did you mean {meant!r}?"
    else:
        do = f"there is {names_text(list(children)[:_MOST_KEYS])}" if children else "there are no keys there"
    return TensorNotFoundError(f"there is no key {key[:200]!r}{inside}", where=where, do=do)


def nests_of(root: object) -> list[str]:
    """Which of the usual keys lead to something with tensors in it."""
    if not isinstance(root, dict):
        return []
    return [key for key in NESTS if key in root and _holds_tensors(root[key])]


def _holds_tensors(value: Any) -> bool:
    """Whether there are tensors not far down; a look, not a search."""
    layer = [value]
    for _ in range(4):
        below: list[Any] = []
        for node in layer:
            if isinstance(node, (Tensor, Composite, Storage)):
                return node is not value
            if type(node) is Made:
                below += [part for state in node.states or () for part in (state if type(state) is tuple else (state,))][:8]
            elif isinstance(node, dict):
                below += islice(node.values(), 64)
            elif isinstance(node, (list, tuple)):
                below += node[:8]
            elif type(node) is Bag:
                below += node.items[:8]
        layer = below[:512]
    return False
