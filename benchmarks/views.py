"""How long does it take to have all tensors of a file as views of it?"""

from __future__ import annotations

from collections.abc import Iterator

import burnstore as bs
from benchmarks.measure import Row, compare
from benchmarks.models import Bench, warm

GOAL = 2.0
_TORCH = "safetensors (torch), views"
_NUMPY = "safetensors (numpy), owned"


def run(bench: Bench) -> Iterator[Row]:
    """safetensors' torch tensors are views as well; for NumPy it has none, and copying is all that its user can do."""
    import safetensors.numpy
    import safetensors.torch

    for model in bench.models():
        path = model.file(".safetensors")
        model.forget_arrays()
        warm(path)
        contenders = {
            "ours": lambda path=path: bs.read(path, copy=False),
            _TORCH: lambda path=path: safetensors.torch.load_file(path),
        }
        if model.label != "huge":  # two gigabytes are copied in a class of their own
            contenders[_NUMPY] = lambda path=path: safetensors.numpy.load_file(path)
        times = compare(contenders, bench.rounds, model.nbytes if _NUMPY in contenders else 1 << 20)
        for peer in list(contenders)[1:]:
            yield Row(f"all as views, {model.title}", times["ours"], peer, times[peer], GOAL)
