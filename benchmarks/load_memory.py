"""How much memory of its own does a process need to load a file into a torch model, beside the model?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Row
from benchmarks.memory import GOAL_BYTES, peak_private_bytes
from benchmarks.models import Bench, Model, warm
from benchmarks.modules import saved

_ROOT = Path(__file__).parent.parent
_MODULE = """
import sys; sys.path.insert(0, sys.argv[1])
import torch, burnstore as bs
from pathlib import Path
from benchmarks.models import Bench
from benchmarks.modules import module
target = module(Bench(Path(), sys.argv[2] == "quick").model(sys.argv[3]))
path = sys.argv[4]
bs.load(bs.save({"weight": torch.ones(2)}, bytes, format="pt"), torch.nn.ParameterDict({"weight": torch.zeros(2)}))
"""
_LOAD = "bs.load(path, target)"
_PEER = "torch.load, load_state_dict"
_THEIRS = "target.load_state_dict(torch.load(path, weights_only=True))"
_CHANGED = "assert target.get_parameter('layers.0.0.0.weight').any()"


def _beside(model: Model, bench: Bench, path: Path, load: str) -> float:
    """What a load needs at most beyond the process that has the model and the imports."""
    arguments = str(_ROOT), "quick" if bench.quick else "", model.label, str(path)
    without, with_load = _MODULE, f"{_MODULE}\n{load}\n{_CHANGED}\n"
    return max(peak_private_bytes(with_load, *arguments) - peak_private_bytes(without, *arguments), 1)


def run(bench: Bench) -> Iterator[Row]:
    """No second copy of the weights, of whatever layout; torch's plain load has one."""
    for model in bench.models("large"):
        for suffix in (".safetensors", ".pt", ".bpk"):
            path = saved(model, suffix)
            model.forget_arrays()
            warm(path)
            question = f"load {suffix} into torch, memory beside the model, {model.title}"
            ours = _beside(model, bench, path, _LOAD)
            yield Row(question, ours, "64 MB and one block", GOAL_BYTES, 1.0, True, "bytes")
            if suffix == ".pt":
                yield Row(question, ours, _PEER, _beside(model, bench, path, _THEIRS), None, True, "bytes")
