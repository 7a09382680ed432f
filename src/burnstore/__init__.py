"""Any weight file into any model, safely, at memory speed.

Names are loaded on first use: importing burnstore imports neither NumPy nor any framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burnstore import errors as errors
    from burnstore.api import apply as apply
    from burnstore.api import collect as collect
    from burnstore.api import load as load
    from burnstore.api import loaded as loaded
    from burnstore.api import merge as merge
    from burnstore.api import open as open
    from burnstore.api import plan as plan
    from burnstore.api import read as read
    from burnstore.api import verify as verify
    from burnstore.config import Config as Config
    from burnstore.config import read_config as read_config
    from burnstore.data import TensorData as TensorData
    from burnstore.dtypes import DType as DType
    from burnstore.exporting import convert as convert
    from burnstore.exporting import save as save
    from burnstore.limits import Limits as Limits
    from burnstore.named_stores import BurnpackStore as BurnpackStore
    from burnstore.named_stores import PytorchStore as PytorchStore
    from burnstore.named_stores import SafetensorsStore as SafetensorsStore
    from burnstore.outcome import ApplyError as ApplyError
    from burnstore.outcome import ApplyResult as ApplyResult
    from burnstore.pipeline.adapt import Adapter as Adapter
    from burnstore.pipeline.adapt import BurnToPyTorchAdapter as BurnToPyTorchAdapter
    from burnstore.pipeline.adapt import ChainAdapter as ChainAdapter
    from burnstore.pipeline.adapt import FloatCastAdapter as FloatCastAdapter
    from burnstore.pipeline.adapt import HalfPrecisionAdapter as HalfPrecisionAdapter
    from burnstore.pipeline.adapt import IdentityAdapter as IdentityAdapter
    from burnstore.pipeline.adapt import PyTorchToBurnAdapter as PyTorchToBurnAdapter
    from burnstore.pipeline.filter import PathFilter as PathFilter
    from burnstore.pipeline.indices import map_indices_contiguous as map_indices_contiguous
    from burnstore.pipeline.remap import KeyRemapper as KeyRemapper
    from burnstore.report import Verification as Verification
    from burnstore.snapshot import TensorSnapshot as TensorSnapshot
    from burnstore.store import Store as Store
    from burnstore.verbs.loading import Plan as Plan

__version__ = "0.1.0"

# The module that each public name comes from, sorted by name.
_HOME = {
    "Adapter": "pipeline.adapt",
    "ApplyError": "outcome",
    "ApplyResult": "outcome",
    "BurnToPyTorchAdapter": "pipeline.adapt",
    "BurnpackStore": "named_stores",
    "ChainAdapter": "pipeline.adapt",
    "Config": "config",
    "DType": "dtypes",
    "FloatCastAdapter": "pipeline.adapt",
    "HalfPrecisionAdapter": "pipeline.adapt",
    "IdentityAdapter": "pipeline.adapt",
    "KeyRemapper": "pipeline.remap",
    "Limits": "limits",
    "PathFilter": "pipeline.filter",
    "Plan": "verbs.loading",
    "PyTorchToBurnAdapter": "pipeline.adapt",
    "PytorchStore": "named_stores",
    "SafetensorsStore": "named_stores",
    "Store": "store",
    "TensorData": "data",
    "TensorSnapshot": "snapshot",
    "Verification": "report",
    "apply": "api",
    "collect": "api",
    "convert": "exporting",
    "errors": "errors",
    "load": "api",
    "loaded": "api",
    "map_indices_contiguous": "pipeline.indices",
    "merge": "api",
    "open": "api",
    "plan": "api",
    "read": "api",
    "read_config": "config",
    "save": "exporting",
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
