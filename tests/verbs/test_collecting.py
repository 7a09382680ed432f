"""`collect` and `merge`: models and files as lists of snapshots, and model surgery with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import burnstore as bs
from tests.sources.handmade import burnpack_bytes, safetensors_bytes


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.norm = nn.LayerNorm(2)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(2, 1)
        self.register_buffer("steps", torch.tensor(3))
        self.register_buffer("scratch", torch.zeros(9), persistent=False)


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net()


def test_a_model_is_collected_as_its_state_dict_without_being_read(net: Net) -> None:
    found = bs.collect(net)
    state = net.state_dict()
    assert {snapshot.name for snapshot in found} == set(state)
    for snapshot in found:
        assert np.array_equal(snapshot.numpy(), state[snapshot.name].numpy())
        assert snapshot.shape == tuple(state[snapshot.name].shape)
    lazy = {snapshot.name: snapshot for snapshot in bs.collect(net)}
    with torch.no_grad():
        net.head.bias.fill_(5)
    assert lazy["head.bias"].numpy().tolist() == [5]


def test_a_snapshot_knows_from_which_modules_it_comes(net: Net) -> None:
    found = {snapshot.name: snapshot for snapshot in bs.collect(net)}
    weight = found["encoder.1.fc.weight"]
    assert weight.containers == ("Struct:Net", "Struct:ModuleList", "Struct:Block", "Struct:Linear")
    assert weight.container_path() == "Net.ModuleList.Block.Linear" and weight.module_type() == "Linear"
    assert found["steps"].module_type() == "Net"


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"only": "^head"}, {"head.weight", "head.bias"}),
    ({"skip": "encoder"}, {"head.weight", "head.bias", "steps"}),
    ({"only": lambda path, container: container.endswith("LayerNorm"), "skip": r"\.0\."},
     {"encoder.1.norm.weight", "encoder.1.norm.bias"}),
    ({"only": lambda path, container: container == "Net"}, {"steps"}),
    ({"filter": bs.PathFilter().with_full_path("steps").with_regex("^head.b")}, {"steps", "head.bias"}),
    ({"filter": bs.PathFilter().with_predicate(lambda path, container: "Block" in container and path.endswith("0.fc.bias"))},
     {"encoder.0.fc.bias"}),
    ({"filter": bs.PathFilter().with_regex("^head"), "skip": "bias$"}, {"head.weight"}),
    ({"filter": bs.PathFilter().with_regex("^head"), "only": "bias$"}, {"head.bias"}),

]  # fmt: skip


@pytest.mark.parametrize(("keywords", "wanted"), FILTERS)
def test_a_filter_sees_paths_and_containers(net: Net, keywords: dict[str, Any], wanted: set[str]) -> None:
    assert {snapshot.name for snapshot in bs.collect(net, **keywords)} == wanted


def test_the_order_is_the_models(net: Net) -> None:
    assert [snapshot.name for snapshot in bs.collect(net)] == list(net.state_dict())


def test_an_adapter_sees_what_the_filter_lets_pass(net: Net) -> None:
    seen: list[str] = []

    def look(tensor: bs.TensorSnapshot) -> bs.TensorSnapshot:
        seen.append(tensor.name)
        return tensor.with_name(f"x.{tensor.name}")

    assert [tensor.name for tensor in bs.collect(net, adapter=look, only="^head")] == ["x.head.weight", "x.head.bias"]
    assert seen == ["head.weight", "head.bias"]
    (weight, _) = bs.collect(net, adapter=bs.PyTorchToBurnAdapter(), only="^head")
    assert weight.shape == (2, 1)


@pytest.mark.parametrize(
    "model",
    [
        {"a": {"w": np.ones(2)}, "b": [np.zeros(1), {"c": np.ones(3)}]},
        {"a.w": np.ones(2), "b.0": np.zeros(1), "b.1.c": np.ones(3)},
    ],
)
def test_dicts_and_lists_of_arrays_are_models_too(model: Any) -> None:
    assert [(snapshot.name, snapshot.shape) for snapshot in bs.collect(model)] == [("a.w", (2,)), ("b.0", (1,)), ("b.1.c", (3,))]


@pytest.mark.parametrize("model", [3, None, "model.bpk", object()])
def test_what_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(bs.errors.UsageError, match="no model that burnstore knows"):
        bs.collect(model)


def test_what_was_collected_and_applied_is_the_same_model(net: Net) -> None:
    other = Net()
    assert bs.apply(bs.collect(net), other).is_success()
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), other.state_dict().values(), strict=True))


# merge


def test_sources_of_every_kind_become_one_list(net: Net, tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(safetensors_bytes({"a": np.zeros(1, np.float32)}))
    bpk = burnpack_bytes({"b": ("F32", (1,), np.ones(1, np.float32).tobytes())})
    merged = bs.merge(
        tmp_path / "a.safetensors",
        bpk,
        {"c": np.full(1, 2.0)},
        bs.open({"x": np.full(1, 3.0)}, rename={"x": "d"}),
        (snapshot for snapshot in bs.collect({"e": np.full(1, 4.0)})),
    )
    assert [snapshot.name for snapshot in merged] == ["a", "b", "c", "d", "e"]
    assert [snapshot.numpy()[0] for snapshot in merged] == [0, 1, 2, 3, 4]
    assert {snapshot.name for snapshot in bs.merge(net)} == set(net.state_dict())
    assert bs.merge() == []


@pytest.mark.parametrize(("on_conflict", "value"), [("first", 1), ("last", 3)])
def test_a_name_that_several_have_goes_as_is_said(on_conflict: Any, value: int) -> None:
    sources = [{"w": np.full(1, 1.0), "a": np.zeros(1)}, {"w": np.full(1, 2.0)}, {"w": np.full(1, 3.0), "b": np.zeros(1)}]
    merged = {snapshot.name: snapshot for snapshot in bs.merge(*sources, on_conflict=on_conflict)}
    assert list(merged) == ["w", "a", "b"] and merged["w"].numpy().tolist() == [value]


def test_a_name_that_two_have_is_an_error_that_names_both(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.safetensors").write_bytes(safetensors_bytes({"w": np.zeros(1, np.float32)}))
    words = r"'w': it is in .*one\.safetensors and in .*two\.safetensors.*on_conflict"
    with pytest.raises(bs.errors.DuplicateNameError, match=words):
        bs.merge(tmp_path / "one.safetensors", tmp_path / "two.safetensors")


@pytest.mark.parametrize("word", ["newest", "", None])
def test_an_unknown_word_for_conflicts_is_refused(word: Any) -> None:
    with pytest.raises(bs.errors.UsageError, match='known are "error", "first" and "last"'):
        bs.merge({"a": [1.0]}, on_conflict=word)


def test_a_base_and_a_specialized_encoder_become_one_model(net: Net, tmp_path: Path) -> None:
    special = Net()
    bs.save(net, tmp_path / "base.safetensors")
    merged = bs.merge(tmp_path / "base.safetensors", bs.collect(special, only="^encoder"), on_conflict="last")
    bs.save(merged, tmp_path / "both.safetensors", dialect="pytorch")
    loaded = Net()
    assert bs.load(tmp_path / "both.safetensors", loaded).is_success()
    assert torch.equal(loaded.head.weight, net.head.weight)
    assert torch.equal(loaded.encoder[1].fc.weight, special.encoder[1].fc.weight)


def test_parameter_ids_survive_a_merge() -> None:
    with_id = bs.TensorSnapshot.from_data("w", [1.0], param_id=42)
    (merged,) = bs.merge([with_id])
    assert bs.open(bs.save([merged], bytes, format="bpk"))["w"].param_id == 42


def test_tensors_of_two_dialects_are_not_mixed_in_silence(net: Net) -> None:
    """A file has one dialect, and nothing in it would say which of its tensors are whose."""
    burn = burnpack_bytes({"tail.weight": ("F32", (4, 2), bytes(32)), "tail.gamma": ("F32", (2,), bytes(8))})
    for sources in ((net, burn), (bs.save(net, bytes, format="pt"), burn)):
        with pytest.raises(bs.errors.DialectError):
            bs.save(bs.merge(*sources), bytes, format="bpk")


def test_a_file_is_no_tensors_in_hand_and_is_not_written_as_it_lies_by_save() -> None:
    data = bs.save({"fc.weight": np.zeros((2, 2), np.float32)}, bytes, format="pt")
    for source in (data, bs.open(data)):
        with pytest.raises(bs.errors.DialectError, match=r"fc\.weight"):
            bs.save(source, bytes, format="bpk")
        assert bs.open(bs.save(source, bytes, format="bpk", dialect="keep")).metadata["dialect"] == "pytorch"


@pytest.mark.parametrize(
    "tensors",
    [lambda data: dict(bs.open(data)), lambda data: list(bs.open(data).values()), bs.merge],
    ids=["dict", "list", "merge"],
)
def test_the_tensors_of_a_pt_in_a_bpk_are_still_said_to_be_pytorchs(tensors: Any) -> None:
    """Or a square Linear would be read the other way round."""
    data = bs.save({"fc.weight": np.arange(4, dtype=np.float32).reshape(2, 2)}, bytes, format="pt")
    made = bs.open(bs.save(tensors(data), bytes, format="bpk"))
    assert made.metadata["dialect"] == "pytorch"
