"""The layers that a pickle of a whole model names: the path of each module of torch's own, and its class.

Only the names of classes are read; nothing is imported. A class of the model's author says nothing about its tensors.
"""

from __future__ import annotations

from typing import Any

from burnstore.formats.pytorch.names import key_text
from burnstore.formats.pytorch.nodes import Global, Made

# One module may stand under many names, and a file can make them endless.
_MOST_STEPS = 200_000


def layers_of(root: object) -> dict[str, str]:
    """The class of each layer by its path, as far as the classes are torch's."""
    found: dict[str, str] = {}
    stack: list[tuple[str, Any, frozenset[int]]] = [("", root, frozenset())]
    for _ in range(_MOST_STEPS):
        if not stack:
            break
        path, node, around = stack.pop()
        if id(node) in around:
            continue
        children = _children(node)
        if children is None:
            continue
        if type(node) is Made and type(node.func) is Global and node.func.module.startswith("torch."):
            found[path] = node.func.name
        inside = around | {id(node)}
        prefix = f"{path}." if path else ""
        stack.extend((f"{prefix}{key_text(key)}", child, inside) for key, child in children.items())
    return found


def _children(node: Any) -> dict[Any, Any] | None:
    """What a module, or a dict around one, holds by name; None for anything else."""
    if isinstance(node, dict):
        return node
    if type(node) is not Made:
        return None
    modules = (node.attributes() or {}).get("_modules")
    return modules if isinstance(modules, dict) else None
