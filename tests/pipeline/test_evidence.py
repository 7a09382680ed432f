"""Whose dialect a file has: files that were laid out by hand, compared with a model."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from burnstore.pipeline.dialects import Claim
from burnstore.pipeline.evidence import Evidence, Tally, decide, weigh

NOTHING = Claim()
ALIKE = ("Linear", "Embedding", "Conv2d")  # their tensors have the same names everywhere
BURNS_NAMES = {"weight": "gamma", "bias": "beta"}


def laid_out(tensors: list[tuple[str, str, tuple[int, ...]]], dialect: str) -> list[tuple[str, str, tuple[int, ...]]]:
    """Tensors of PyTorch's in a dialect: Burn turns a Linear's weight round and calls a norm's tensors gamma and beta."""
    found = []
    for path, kind, shape in tensors:
        parent, _, leaf = path.rpartition(".")
        if dialect == "burn" and kind == "Linear" and leaf == "weight":
            shape = shape[::-1]
        if dialect == "burn" and kind.endswith("Norm"):
            leaf = BURNS_NAMES.get(leaf, leaf)
        if dialect == "burn" and kind == "PRelu":
            leaf = "alpha"
        found.append((f"{parent}.{leaf}", kind, shape))
    return found


def layer(kind: str, path: str, random: Random) -> list[tuple[str, str, tuple[int, ...]]]:
    a, b = random.randint(1, 4), random.randint(1, 4)
    if kind == "Linear":
        return [(f"{path}.weight", kind, (a, b)), (f"{path}.bias", kind, (a,))]
    if kind == "Embedding":
        return [(f"{path}.weight", kind, (a, b))]
    if kind == "PRelu":
        return [(f"{path}.weight", kind, (a,))]
    if kind == "Conv2d":
        return [(f"{path}.weight", kind, (a, b, 3, 3)), (f"{path}.bias", kind, (a,))]
    return [(f"{path}.weight", kind, (a,)), (f"{path}.bias", kind, (a,))]


@pytest.mark.parametrize("own", ["pytorch", "burn"])
@pytest.mark.parametrize("dialect", ["pytorch", "burn"])
def test_a_file_of_either_dialect_is_known_by_its_norms_and_by_linears_that_are_not_square(own: str, dialect: str) -> None:
    random = Random(7)
    told = silent = 0
    for _ in range(300):
        kinds = random.choices([*ALIKE, "Linear", "BatchNorm", "LayerNorm", "PRelu"], k=random.randint(0, 4))
        if random.random() < 0.5:
            kinds = [kind for kind in kinds if kind in ALIKE]
        model = [tensor for at, kind in enumerate(kinds) for tensor in layer(kind, f"l{at}", random)]
        file = {path: shape for path, _, shape in laid_out(model, dialect)}
        evidence = weigh(laid_out(model, own), file, own)
        differs = [
            path
            for path, kind, shape in model
            if (kind == "Linear" and path.endswith("weight") and shape[0] != shape[1])
            or kind in ("BatchNorm", "LayerNorm")
            or (kind == "PRelu" and dialect == "pytorch")  # Burn's exports for PyTorch still call it alpha
        ]
        square = [path for path, kind, shape in model if kind == "Linear" and len(shape) == 2 and shape[0] == shape[1]]
        assert evidence.only() == (dialect if differs else None)
        assert evidence.silent == square
        told += bool(differs)
        silent += bool(square and not differs)
        verdict = decide(NOTHING, evidence, own)
        if differs:
            assert verdict.dialect == dialect and verdict.warning is None
        elif square:
            assert verdict.dialect is None and verdict.why == "nothing tells it" and list(verdict.silent) == square
        else:
            assert verdict.dialect == own  # it makes no difference
    assert told > 50 and silent > 5


def test_layers_that_the_file_does_not_have_tell_nothing() -> None:
    evidence = weigh([("a.weight", "Linear", (2, 3)), ("n.weight", "LayerNorm", (2,))], {"other": (2, 3)}, "pytorch")
    assert evidence == Evidence() and evidence.only() is None


def test_a_shape_that_fits_no_dialect_speaks_against_both() -> None:
    evidence = weigh([("a.weight", "Linear", (2, 3))], {"a.weight": (5, 7)}, "pytorch")
    assert evidence.shapes.contradicts == {"pytorch": 1, "burn": 1} and evidence.only() is None


def test_one_tensor_against_a_dialect_is_enough_to_doubt_it() -> None:
    model = [("a.weight", "Linear", (2, 3)), ("b.weight", "Linear", (2, 3))]
    evidence = weigh(model, {"a.weight": (2, 3), "b.weight": (3, 2)}, "pytorch")
    assert evidence.only() is None and evidence.shapes.supports == {"pytorch": 1, "burn": 1}


@pytest.mark.parametrize("export", [True, False], ids=["an export for pytorch", "burn's own"])
def test_a_file_of_burns_with_nothing_but_square_linears_and_what_burn_forgets_to_rename_is_asked_about(export: bool) -> None:
    """Burn marks its exports like its own files and leaves InstanceNorm and PRelu as they are: both files look the same."""
    import safetensors.numpy
    import torch

    import burnstore as bs

    model = torch.nn.ModuleDict({"fc": torch.nn.Linear(3, 3), "norm": torch.nn.InstanceNorm1d(3, affine=True)})
    weight = np.arange(9, dtype=np.float32).reshape(3, 3)
    arrays = {"fc.weight": weight if export else weight.T.copy(), "fc.bias": np.zeros(3, np.float32)}
    arrays |= {"norm.gamma": np.ones(3, np.float32), "norm.beta": np.zeros(3, np.float32)}
    data = safetensors.numpy.save(arrays, {"format": "safetensors", "producer": "burn", "version": "0.22.1"})
    with pytest.raises(bs.errors.DialectError, match=r"nothing tells .*dialect=\"pytorch\" or dialect=\"burn\""):
        bs.load(data, model)
    if not export:
        assert bs.load(data, model, dialect="burn").is_success()
        assert np.array_equal(model["fc"].weight.detach().numpy(), weight)


@pytest.mark.parametrize("metadata", [None, {"format": "safetensors", "producer": "burn", "version": "0.22.1"}])
def test_what_burn_forgets_to_rename_is_found_under_burns_name_whatever_the_dialect(metadata: dict[str, str] | None) -> None:
    import safetensors.numpy
    import torch

    import burnstore as bs

    model = torch.nn.ModuleDict({"act": torch.nn.PReLU(2), "norm": torch.nn.InstanceNorm1d(2, affine=True)})
    arrays = {
        "act.alpha": np.full(2, 3, np.float32),
        "norm.gamma": np.full(2, 4, np.float32),
        "norm.beta": np.full(2, 5, np.float32),
    }
    assert bs.load(safetensors.numpy.save(arrays, metadata), model).is_success()
    assert [tensor.tolist() for tensor in model.state_dict().values()] == [[3, 3], [4, 4], [5, 5]]


def test_shapes_outvote_names() -> None:
    """Somebody may have renamed the norms, but nobody turns a matrix round by accident."""
    model = [("fc.weight", "Linear", (2, 3)), ("norm.weight", "BatchNorm", (2,)), ("norm.bias", "BatchNorm", (2,))]
    evidence = weigh(model, {"fc.weight": (2, 3), "norm.gamma": (2,), "norm.beta": (2,)}, "pytorch")
    assert evidence.only() == "pytorch" and evidence.names.only() == "burn"
    assert decide(Claim("burn", False, "its metadata"), evidence, "pytorch").dialect == "pytorch"


def test_a_kind_of_no_dialect_tells_nothing() -> None:
    assert weigh([("a.weight", "keep", (2, 3)), ("b", "Linear", (2, 3))], {"a.weight": (3, 2), "b": (3, 2)}, "burn") == Evidence()


ONLY_BURN: Any = {"shapes": Tally({"pytorch": 0, "burn": 3}, {"pytorch": 3, "burn": 0})}
MIXED: Any = {"names": Tally({"pytorch": 1, "burn": 3}, {"pytorch": 3, "burn": 1})}


@pytest.mark.parametrize(
    ("said", "evidence", "dialect", "warning"),
    [
        (Claim("pytorch", False, "its format"), Evidence(), "pytorch", None),
        (Claim("burn", False, "its format"), Evidence(**ONLY_BURN), "burn", None),
        (Claim("pytorch", False, "its format"), Evidence(**ONLY_BURN), "burn", "its format says pytorch, but .* fit burn only$"),
        (Claim("pytorch", True, "dialect="), Evidence(**ONLY_BURN), "pytorch", "but .* fit burn only; it was taken as pytorch"),
        (Claim("pytorch", False, "its format"), Evidence(**MIXED), "pytorch", None),
        (NOTHING, Evidence(**ONLY_BURN), "burn", None),
        (NOTHING, Evidence(**MIXED), "burn", None),
        (NOTHING, Evidence(silent=["fc.weight"]), None, None),
        (NOTHING, Evidence(), "pytorch", None),
    ],
    ids=["said", "said and fits", "in passing", "plainly", "said and mixed", "fits", "mixed", "silent", "no difference"],
)  # fmt: skip
def test_what_is_said_is_believed_unless_the_tensors_fit_another_dialect_only(
    said: Any, evidence: Evidence, dialect: str | None, warning: str | None
) -> None:
    verdict = decide(said, evidence, "pytorch")
    assert verdict.dialect == dialect
    if warning is None:
        assert verdict.warning is None
    else:
        import re

        assert verdict.warning and re.search(warning, verdict.warning)
