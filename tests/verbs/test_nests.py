"""Checkpoints whose state dict lies deeper: `load` enters the one nest that fits, and asks where two do."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import burnstore as bs
from burnstore.errors import LoadError, UsageError


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def assert_same(model: nn.Module, wanted: nn.Module) -> None:
    assert all(torch.equal(value, wanted.state_dict()[name]) for name, value in model.state_dict().items())


def optimizer_of(model: nn.Module) -> dict[str, Any]:
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    return optimizer.state_dict()


MODEL = net()
STATE = MODEL.state_dict()

CHECKPOINTS: dict[str, tuple[Any, str]] = {
    "usual": ({"state_dict": STATE, "epoch": 3, "optimizer": optimizer_of(MODEL)}, "state_dict"),
    "lightning": (
        {"state_dict": STATE, "hyper_parameters": {"lr": 0.1}, "optimizer_states": [optimizer_of(MODEL)]},
        "state_dict",
    ),
    "beside others": ({"other": {"z": torch.zeros(1)}, "net": STATE}, "net"),
    "beside a few of its names": ({"extra": {"0.bias": torch.zeros(3)}, "net": STATE}, "net"),
    "beside the same names in other shapes": ({"wide": {name: torch.zeros(7, 7) for name in STATE}, "net": STATE}, "net"),
}
STATE = MODEL.state_dict()  # the optimizer has made a step meanwhile, in place


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_the_one_nest_that_fits_is_entered_and_named(kind: str) -> None:
    checkpoint, key = CHECKPOINTS[kind]
    model = net()
    result = bs.load(saved(checkpoint), model)
    assert (result.key, result.applied, result.unused) == (key, list(STATE), [])
    assert f"{key}" in str(result)
    assert_same(model, MODEL)
    assert bs.plan(saved(checkpoint), net()).result.key == key


def test_two_nests_that_fit_are_a_question_and_the_key_answers_it() -> None:
    ema = {name: torch.zeros_like(value) for name, value in STATE.items()}
    data, model = saved({"model": STATE, "ema": ema}), net()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(UsageError, match=r"model, ema; choose one: key='model'"):
        bs.load(data, model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert bs.load(data, model, key="ema").applied == list(STATE)
    assert not any(value.any() for value in model.state_dict().values())
    bs.load(data, model, key="model")
    assert_same(model, MODEL)


def test_names_at_the_top_come_before_nests() -> None:
    top = {name: torch.ones_like(value) for name, value in STATE.items()}
    model = net()
    result = bs.load(saved({**top, "ema": STATE}), model)
    assert result.key is None and result.unused == sorted(f"ema.{name}" for name in STATE)
    assert all(bool(value.eq(1).all()) for value in model.state_dict().values())


def test_a_nest_is_renamed_filtered_and_may_be_partial() -> None:
    lightning = {"state_dict": {f"net.{name}": value for name, value in STATE.items()}, "optimizer": optimizer_of(net())}
    model = net()
    result = bs.load(saved(lightning), model, rename={r"^net\.": ""}, only=r"^0\.")
    assert (result.key, result.applied) == ("state_dict", ["0.weight", "0.bias"])
    assert ("net.0.bias", "0.bias") in result.renames
    assert result.skipped == sorted(name for name in STATE if name.startswith("1."))
    few = {name: value for name, value in STATE.items() if name != "0.bias"}
    with pytest.raises(LoadError, match=r"0\.bias") as caught:
        bs.load(saved({"model": few}), net())
    assert caught.value.report is not None and caught.value.report.missing == [("0.bias", "Struct:Sequential.Struct:Linear")]
    assert bs.load(saved({"model": few}), net(), partial=True).key == "model"


def test_a_nest_that_does_not_fit_is_not_entered() -> None:
    with pytest.raises(LoadError, match="missing") as caught:
        bs.load(saved({"model": {"z": torch.zeros(1)}}), net())
    assert caught.value.report is not None
    assert (caught.value.report.key, caught.value.report.unused) == (None, ["model.z"])


def test_a_rule_that_makes_names_collide_in_another_nest_does_no_harm() -> None:
    checkpoint = {
        "model": {f"net.{name}": value for name, value in STATE.items()},
        "aux": {"net.q": torch.zeros(1), "q": torch.ones(1)},
    }
    model = net()
    assert bs.load(saved(checkpoint), model, rename={r"^net\.": ""}).key == "model"
    assert_same(model, MODEL)


def test_a_nest_goes_into_a_dict_of_arrays_too() -> None:
    model = {name: np.zeros(value.shape, value.numpy().dtype) for name, value in STATE.items()}
    assert bs.load(saved({"a": {"b": 1}, "weights": STATE}), model).key == "weights"
    assert all((model[name] == value.numpy()).all() for name, value in STATE.items())


def test_a_nest_deeper_down_is_said_by_its_key_or_by_a_rule() -> None:
    data, model = saved({"a": {"b": STATE}}), net()
    with pytest.raises(LoadError, match=r"a\.b\."):
        bs.load(data, model)
    assert bs.load(data, model, key="a.b").applied == list(STATE)
    assert bs.load(data, model, rename={r"^a\.b\.": ""}).applied == list(STATE)
    assert_same(model, MODEL)


def test_stores_and_opened_files_enter_nests_as_paths_do() -> None:
    data = saved({"state_dict": STATE, "epoch": 1})
    for source in (bs.open(data), bs.PytorchStore.from_bytes(data)):
        model = net()
        assert bs.load(source, model).key == "state_dict"
        assert_same(model, MODEL)
    assert list(bs.open(data)) == [f"state_dict.{name}" for name in STATE]  # opening alone never descends


def test_a_nest_that_makes_no_sense_under_the_rules_does_not_hide_what_is_missing() -> None:
    data = saved({"sd": {"conv1.weight": torch.zeros(2), "conv1.bias": torch.zeros(2)}, "epoch": 1})
    with pytest.raises(LoadError, match="missing"):
        bs.load(data, {"a": np.zeros(2, np.float32)}, rename={"^conv1.*$": "b"})


class Pipe(io.RawIOBase):
    """A stream that can be read once."""

    def __init__(self, data: bytes) -> None:
        self._left = memoryview(data)

    def readable(self) -> bool:
        return True

    def readinto(self, out: Any) -> int:
        piece = self._left[: len(out)]
        out[: len(piece)] = piece
        self._left = self._left[len(piece) :]
        return len(piece)


def test_a_nest_is_found_in_a_stream_that_can_be_read_once() -> None:
    first, second = net(), net()
    result = bs.load(io.BufferedReader(Pipe(saved({"model": first.state_dict(), "epoch": 1}))), second)
    assert result.key == "model" and torch.equal(first[0].weight, second[0].weight)


@pytest.mark.parametrize("options", [{"key": 5}, {"limits": 5}])
def test_a_keyword_of_the_wrong_type_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="cannot be meant"):
        bs.open(saved(net().state_dict()), **options)
