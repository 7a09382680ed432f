"""Which names in a pickle are understood: they make tensors, dicts or plain values, or say a dtype or a storage."""

from __future__ import annotations

from burnstore.formats.pytorch.nodes import Global
from burnstore.formats.pytorch.rebuild import KNOWN_CALLS
from burnstore.formats.pytorch.storages import storage_dtype, torch_dtype

_OTHERS: dict[str, frozenset[str]] = {
    "torch": frozenset(
        {
            "Tensor",
            "Size",
            "device",
            "per_tensor_affine",
            "per_channel_affine",
            "per_tensor_symmetric",
            "per_channel_symmetric",
            "per_channel_affine_float_qparams",
        }
    ),
    "torch.nn.parameter": frozenset({"Parameter", "Buffer"}),
    "torch.serialization": frozenset({"_get_layout"}),
    "_codecs": frozenset({"encode"}),
    "builtins": frozenset({"set", "frozenset", "list", "dict", "int", "complex", "bytearray", "bytes", "range", "slice"}),
    "__builtin__": frozenset({"set", "frozenset", "list", "dict", "int", "complex", "bytearray", "bytes", "xrange", "slice"}),
    "argparse": frozenset({"Namespace"}),
    "types": frozenset({"SimpleNamespace"}),
    "copyreg": frozenset({"_reconstructor"}),
    "copy_reg": frozenset({"_reconstructor"}),
    "pathlib": frozenset({"Path", "PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath"}),
    "pathlib._local": frozenset({"PosixPath", "WindowsPath"}),
    "datetime": frozenset({"datetime", "date", "time", "timedelta", "timezone"}),
    "decimal": frozenset({"Decimal"}),
    "fractions": frozenset({"Fraction"}),
    "uuid": frozenset({"UUID"}),
    "numpy": frozenset({"dtype", "ndarray"}),
    "numpy.core.multiarray": frozenset({"_reconstruct", "scalar"}),
    "numpy._core.multiarray": frozenset({"_reconstruct", "scalar"}),
    "numpy.core.numeric": frozenset({"_frombuffer"}),
    "numpy._core.numeric": frozenset({"_frombuffer"}),
}


def is_known(name: Global) -> bool:
    """Whether the name of a pickle is one that burnstore understands, rather than keeps as an opaque object.

    >>> is_known(Global("torch", "FloatStorage", 0)), is_known(Global("os", "system", 0))
    (True, False)
    """
    return (
        (name.module, name.name) in KNOWN_CALLS
        or name.name in _OTHERS.get(name.module, ())
        or storage_dtype(name)[1] is None
        or torch_dtype(name) is not None
    )
