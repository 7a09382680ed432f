"""Any weight file into any model, safely, at memory speed.

Names are loaded on first use: importing burnstore imports neither NumPy nor any framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burnstore import errors as errors
    from burnstore.api import convert as convert
    from burnstore.api import open as open
    from burnstore.api import read as read
    from burnstore.api import save as save
    from burnstore.api import verify as verify
    from burnstore.config import Config as Config
    from burnstore.config import read_config as read_config
    from burnstore.data import TensorData as TensorData
    from burnstore.dtypes import DType as DType
    from burnstore.limits import Limits as Limits
    from burnstore.named_stores import BurnpackStore as BurnpackStore
    from burnstore.named_stores import PytorchStore as PytorchStore
    from burnstore.named_stores import SafetensorsStore as SafetensorsStore
    from burnstore.report import Verification as Verification
    from burnstore.snapshot import TensorSnapshot as TensorSnapshot
    from burnstore.store import Store as Store

__version__ = "0.1.0"

# The module that each public name comes from, sorted by name.
_HOME = {
    "BurnpackStore": "named_stores",
    "Config": "config",
    "DType": "dtypes",
    "Limits": "limits",
    "PytorchStore": "named_stores",
    "SafetensorsStore": "named_stores",
    "Store": "store",
    "TensorData": "data",
    "TensorSnapshot": "snapshot",
    "Verification": "report",
    "convert": "api",
    "errors": "errors",
    "open": "api",
    "read": "api",
    "read_config": "config",
    "save": "api",
    "verify": "api",
}

__all__ = list(_HOME)


if not TYPE_CHECKING:  # or a type checker would let every name pass

    def __getattr__(name: str) -> object:
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"module 'burnstore' has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"burnstore.{home}")
        value = module if home == name else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
