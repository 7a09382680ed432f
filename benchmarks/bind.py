"""How long does it take to bind a file to a model of as many tensors, with five rules that rename all of them?

Nothing is read but the header. Twice as many tensors are to take twice as long. Burn, a program in the folder that
BURNSTORE_SHARED names, opens the same file and lists it: without rules, and without a model to bind it to.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import burnstore as bs
from benchmarks.measure import Contender, Row, compare, say
from benchmarks.models import Bench, Model, warm
from benchmarks.modules import check, module, names

# Twice as long, and what differs from one sample to the next.
LINEAR = 1.15
AGAINST_BURN = 1.0
_RULES = {
    r"^module\.": "",
    r"^encoder\.": "layers.",
    r"\.block(\d+)\.": ".$1.",
    r"\.fc(\d+)\.": ".$1.",
    r"\.w$": ".weight",
}
_PEER = "torch.load(mmap), re.sub, load_state_dict(assign)"
_BURN = "Burn 0.22, open without rules"


def _file_name(name: str) -> str:
    """What the file calls a tensor of the model: all five rules are needed."""
    _, layer, block, linear, _ = name.split(".")
    return f"module.encoder.{layer}.block{block}.fc{linear}.w"


def _saved(model: Model) -> Path:
    import torch

    path = model.folder / f"bind-{model.count}.pt"
    tensors = model.tensors().values()
    torch.save({_file_name(name): tensor for name, tensor in zip(names(model.count), tensors, strict=True)}, path)
    return path


def _through_torch(path: Path, target: Any) -> object:
    """What torch's users write; the tensors of the file take the place of the model's, so that nothing is copied."""
    import torch

    state = torch.load(path, weights_only=True, mmap=True)
    for pattern, replacement in _RULES.items():
        python = re.sub(r"\$(\d)", r"\\\1", replacement)
        state = {re.sub(pattern, python, name): tensor for name, tensor in state.items()}
    return target.load_state_dict(state, assign=True)


def _burn(program: Path, path: Path) -> float:
    """What Burn needs to open a file and list its tensors; what it would need to look at the values is not counted."""
    done = subprocess.run([program, "bench", "load", path, "1"], capture_output=True, text=True, timeout=300, check=True)
    return float(json.loads(done.stdout)["seconds"][0])


def _peers(path: Path, model: Model) -> dict[str, Any]:
    other = module(model)
    check(other, model.tensors().values(), [lambda: _through_torch(path, other)])
    ways: dict[str, Any] = {_PEER: lambda: _through_torch(path, other)}
    shared = os.environ.get("BURNSTORE_SHARED")
    if shared:
        program = Path(shared, "oracle", "burn-oracle-0.22")
        ways[_BURN] = Contender(lambda: _burn(program, path), own_clock=True)
    else:
        say("bind: BURNSTORE_SHARED is not set, so there is no Burn to compare with")
    return ways


def run(bench: Bench) -> Iterator[Row]:
    """Warm `.pt` files of small tensors; both of ours and the peers take turns. Burn refuses a file of 40,000 tensors."""
    if "small" not in bench.labels:
        return
    few = bench.model("small").count
    ways: dict[str, Any] = {}
    for count in (few, 2 * few):
        model = bench.model("small", count)
        path, target = _saved(model), module(model)
        plan = lambda path=path, target=target: bs.plan(path, target, rename=_RULES)  # noqa: E731
        check(target, model.tensors().values(), [lambda plan=plan: plan().apply()])
        ways[f"ours, {count}"] = plan
        if count == few:
            ways |= _peers(path, model)
        model.forget_arrays()
        warm(path)
    times = compare(ways, bench.rounds, 64 << 20)
    question, ours = f"open .pt and bind, 5 rules, {bench.model('small').title}", times[f"ours, {few}"]
    yield Row(question, ours, _PEER, times[_PEER], None)
    if _BURN in times:
        yield Row(question, ours, _BURN, times[_BURN], AGAINST_BURN)
    growth = times[f"ours, {2 * few}"] / ours
    yield Row(f"open .pt and bind, growth from {few:,} to {2 * few:,}", growth, "twice", 2.0, LINEAR, True, "times")
