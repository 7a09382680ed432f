"""Which target a model is, and targets that installed packages announce."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import burnstore as bs
from burnstore.errors import UsageError
from burnstore.targets.mappings import Arrays, ArraySlot
from burnstore.targets.table import find_module, find_target, target_for


@dataclass
class ToyModel:
    """A model of a framework that nobody has heard of; its arrays are immutable, as JAX's are."""

    weights: dict[str, Any] = field(
        default_factory=lambda: {"weight": np.zeros((2, 3), np.float32), "bias": np.zeros(3, np.float32)}
    )
    written: list[str] = field(default_factory=list)


class IterableModel(ToyModel):
    def __iter__(self) -> Iterator[str]:
        return iter(self.weights)


class DictModel(dict[str, Any]):
    """A module that is a dict as well, as MLX's are."""

    def __init__(self) -> None:
        super().__init__(settings={"width": 3})
        self.weights, self.written = ToyModel().weights, list[str]()


class ToySlot(ArraySlot):
    """A slot of the toy framework: a layer that Burn would call Linear."""

    containers = ("Struct:Toy", "Struct:Linear")

    def snapshot(self) -> bs.TensorSnapshot:
        return bs.TensorSnapshot.from_data(self.path, self.value, containers=self.containers)


class ToyTarget:
    dialect = "burn"
    replaces = False
    warnings: Sequence[str] = ()

    def __init__(self, model: Any) -> None:
        self.model = model
        self.name = type(model).__name__
        self.kinds: Mapping[str, str] = {"": "Linear"}
        self.slots: Sequence[Any] = [
            ToySlot(name, value, lambda new, name=name: model.weights.__setitem__(name, new))
            for name, value in model.weights.items()
        ]

    def again(self) -> ToyTarget:
        return ToyTarget(self.model)

    def fresh(self) -> ToyTarget:
        copy = type(self.model)()
        copy.weights = {name: value.copy() for name, value in self.model.weights.items()}
        return ToyTarget(copy)

    def written(self, slots: Sequence[Any]) -> None:
        self.model.written += [slot.path for slot in slots]


def target_of(model: object) -> ToyTarget | None:
    return ToyTarget(model) if isinstance(model, (ToyModel, DictModel)) else None


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder on the path in which a package called toy-target seems to be installed."""
    info = tmp_path / "site" / "toy_target-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-target\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[burnstore.targets]\ntoy = tests.targets.test_table:target_of\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)
BIAS = np.ones(3, np.float32)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("make", [ToyModel, IterableModel, DictModel])
def test_an_announced_target_takes_every_verb(make: Any) -> None:
    model = make()
    pytorch = bs.save({"weight": WEIGHT.T.copy(), "bias": BIAS}, bytes, format="pt")
    result = bs.load(pytorch, model)
    assert (result.applied, result.model, model.written) == (["weight", "bias"], make.__name__, ["weight", "bias"])
    assert model.weights["weight"].tolist() == WEIGHT.tolist()
    other = make()
    made = bs.loaded({"weight": WEIGHT, "bias": BIAS}, other, dialect="burn")
    assert made.weights["weight"].tolist() == WEIGHT.tolist() and not other.weights["weight"].any()
    plan = bs.plan({"weight": WEIGHT, "bias": BIAS}, other, dialect="burn")
    other.weights["weight"] = np.zeros((2, 3), np.float32)
    with pytest.raises(UsageError, match="changed"):
        plan.apply()
    assert [tensor.container_path() for tensor in bs.collect(made)] == ["Toy.Linear"] * 2


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("make", [ToyModel, IterableModel, DictModel])
def test_an_announced_model_is_saved_and_is_a_source(make: Any) -> None:
    model = make()
    model.weights = {"weight": WEIGHT, "bias": BIAS}
    store = bs.open(bs.save(model, bytes, format="bpk"))
    assert {name: tensor.numpy().tolist() for name, tensor in store.items()} == {"bias": BIAS.tolist(), "weight": WEIGHT.tolist()}
    assert sorted(bs.read(model)) == ["bias", "weight"]


def test_without_the_package_the_model_is_unknown() -> None:
    with pytest.raises(UsageError, match=r"type ToyModel is no model.*torch\.nn\.Module"):
        bs.load({"w": WEIGHT}, ToyModel())


@pytest.mark.parametrize("model", [{}, OrderedDict(), [], ()])
def test_containers_are_arrays_and_no_module(model: Any) -> None:
    assert isinstance(find_target(model), Arrays)
    assert find_module(model) is None


@pytest.mark.parametrize("model", ["model.bpk", b"", Path("m.pt"), iter([]), 3, None, torch.nn.Linear])
def test_what_is_no_model_has_no_target(model: Any) -> None:
    assert find_module(model) is None and find_target(model) is None
    with pytest.raises(UsageError, match=r"is no model that burnstore knows|is a class, not a model"):
        target_for(model)
