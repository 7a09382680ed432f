"""How long does it take to turn the weights of many Linear layers into the other framework's order of axes?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import burnstore as bs
from benchmarks.measure import Row, compare
from benchmarks.models import Bench, Model
from burnstore.devices.fill import Job, fill
from burnstore.pipeline.reshape import permuted

GOAL = 1.5
# The second is a fifth of the huge model: each matrix is needed twice, and by torch a third time.
_MODELS = (("large", None), ("huge", 30))
_PEER = "torch .t().contiguous()"
_READY = "torch copy_, ready memory"
_NUMPY = "np.ascontiguousarray"


def _contenders(model: Model) -> dict[str, Callable[[], object]]:
    """The same matrices for everybody: into memory that exists, as a model's parameters do, and into new memory."""
    tensors = model.tensors().values()
    snapshots = [permuted(bs.TensorSnapshot.from_data(name, array), (1, 0)) for name, array in model.arrays.items()]
    ready = [np.ones(snapshot.shape, snapshot.dtype.numpy_dtype) for snapshot in snapshots]
    theirs = [tensor.t().contiguous() for tensor in tensors]

    def into(threads: int) -> None:
        fill([Job(snapshot, out) for snapshot, out in zip(snapshots, ready, strict=True)], threads)

    def copied() -> None:
        for tensor, out in zip(tensors, theirs, strict=True):
            out.copy_(tensor.t())

    return {
        "ours": lambda: into(2),
        "ours, one thread": lambda: into(1),
        "ours, new memory": lambda: [snapshot.numpy() for snapshot in snapshots],
        _PEER: lambda: [tensor.t().contiguous() for tensor in tensors],
        _READY: copied,
        _NUMPY: lambda: [np.ascontiguousarray(array.T) for array in model.arrays.values()],
    }


def run(bench: Bench) -> Iterator[Row]:
    """Two threads of ours, as a load has them, beside torch with as many as it likes."""
    for label, count in _MODELS:
        if label not in bench.labels:
            continue
        model = bench.model(label, count)
        times = compare(_contenders(model), bench.rounds, model.nbytes)
        title = f"transpose, {model.title}"
        yield Row(f"{title}, two threads", times["ours"], _PEER, times[_PEER], GOAL)
        yield Row(f"{title}, two threads", times["ours"], _READY, times[_READY], None)
        yield Row(f"{title}, one thread", times["ours, one thread"], _PEER, times[_PEER], None)
        yield Row(f"{title}, new memory", times["ours, new memory"], _PEER, times[_PEER], None)
        yield Row(f"{title}, new memory", times["ours, new memory"], _NUMPY, times[_NUMPY], None)
        model.forget_arrays()
