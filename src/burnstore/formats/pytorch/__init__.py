"""PyTorch files, read without PyTorch: nothing that a file names is imported or called.

    zip, since 1.6             ┌ <root>/data.pkl     the object: a pickle (see pickle_machine.py)
                               │ <root>/byteorder    little, unless it says big
                               │ <root>/data/0       the bytes of storage "0", at a multiple of 64
                               │ <root>/data/1       …
                               └ central directory
    legacy, 0.1.10 to 1.5      magic · version · system · object · keys (five pickles), then u64 count · bytes for each key
    tar, before 0.1.10         members sys_info, pickle, tensors, storages
    plain pickle               no container, no tensors of torch; arrays of NumPy perhaps

    pickle:  … _rebuild_tensor_v2((('storage', FloatStorage, '0', 'cpu', 12), 0, (3, 4), (4, 1), False, {})) …
                                    │                         │         │     │    │      └ strides, in elements
                                    └ persistent id           └ key     │     │    └ size
                                                              elements ─┘     └ offset, in elements

The way: a container (archive.py, legacy.py, tar.py) gives the pickle and the bytes of storages by key; the machine turns
the pickle into nodes (nodes.py, rebuild.py); names.py flattens them to dotted names; contents.py makes snapshots.
"""

from __future__ import annotations

from burnstore.formats.pytorch.reader import read, read_key, recognizes
from burnstore.formats.pytorch.verify import verify
from burnstore.formats.pytorch.writer import write


class PytorchFormat:
    """The format as `burnstore.formats.base.Format` wants it."""

    name = "pytorch"
    suffixes = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pth.tar", ".pt2")
    dialect = "pytorch"

    recognizes = staticmethod(recognizes)
    read = staticmethod(read)
    read_key = staticmethod(read_key)
    write = staticmethod(write)
    verify = staticmethod(verify)


FORMAT = PytorchFormat()
