"""`bs.load`: whose layout a file has, what the report says, and tensors that move between models."""

from __future__ import annotations

import copy
import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

import burnstore as bs
from burnstore.errors import DialectError, LoadError

pytestmark = pytest.mark.filterwarnings("ignore:.*Burn counts lists without gaps")


class Block(nn.Module):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(out + self.downsample(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.layer1 = nn.Sequential(Block(4, 4), Block(4, 6))
        self.fc = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.layer1(torch.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


@cache
def trained() -> ResNet:
    torch.manual_seed(3)
    model = ResNet()
    model(torch.randn(4, 3, 6, 6))
    return model.eval()


def assert_same(model: nn.Module, wanted: nn.Module, but: tuple[str, ...] = ()) -> None:
    state, other = model.state_dict(), wanted.state_dict()
    assert list(state) == list(other)
    assert [name for name in state if not name.endswith(but or ("\0",)) and not torch.equal(state[name], other[name])] == []


@pytest.mark.parametrize("format", ["pt", "safetensors", "bpk"])
def test_a_residual_network_comes_back_with_the_same_state_and_the_same_answers(tmp_path: Path, format: str) -> None:
    model, other = trained(), ResNet()
    bs.save(model, tmp_path / f"model.{format}")
    result = bs.load(tmp_path / f"model.{format}", other)
    # torch's counters have no place in a file of Burn's unless they are kept as they are
    assert set(result.applied) >= {name for name in model.state_dict() if "num_batches" not in name}
    assert (result.missing, result.unused, result.errors) == ([], [], [])
    assert_same(other, model)
    x = torch.randn(1, 3, 6, 6)
    assert torch.equal(other.eval()(x), model(x))


def test_a_checkpoint_of_torchs_own_loads_as_torch_loads_it(tmp_path: Path) -> None:
    model, other = trained(), ResNet()
    torch.save(model.state_dict(), tmp_path / "a.pt")
    safetensors.torch.save_model(model, str(tmp_path / "a.safetensors"))
    for name in ("a.pt", "a.safetensors"):
        assert bs.load(tmp_path / name, other).applied == list(model.state_dict())
        assert_same(other, model)


# Whose layout


def _linear(*sides: int) -> tuple[nn.Sequential, bytes]:
    model = nn.Sequential(*(nn.Linear(a, b) for a, b in pairwise(sides)))
    return model, safetensors.torch.save(dict(model.state_dict()))


def test_square_matrices_without_a_word_ask_for_the_dialect() -> None:
    model, data = _linear(3, 3, 3)
    before = copy.deepcopy(model)
    with pytest.raises(DialectError, match=r'dialect="pytorch".* or dialect="burn"'):
        bs.load(data, model)
    assert_same(model, before)


@pytest.mark.parametrize("dialect", ["pytorch", "burn", "keep"])
def test_a_dialect_that_is_said_decides(dialect: str) -> None:
    (model, data), (other, _) = _linear(3, 3), _linear(3, 3)
    bs.load(data, other, dialect=dialect)
    assert torch.equal(other[0].weight, model[0].weight.t() if dialect == "burn" else model[0].weight)
    assert torch.equal(other[0].bias, model[0].bias)


@pytest.mark.parametrize(
    "metadata", [{"format": "pt"}, {"dialect": "pytorch"}, {"dialect": "burn"}, {"dialect": "burn", "format": "pt"}]
)
def test_metadata_decides(metadata: dict[str, str]) -> None:
    (model, _), (other, _) = _linear(3, 3), _linear(3, 3)
    bs.load(safetensors.torch.save(dict(model.state_dict()), metadata), other)
    assert torch.equal(other[0].weight, model[0].weight.t() if metadata.get("dialect") == "burn" else model[0].weight)


def test_one_matrix_that_is_not_square_decides_for_all() -> None:
    (model, data), (other, _) = _linear(3, 3, 2), _linear(3, 3, 2)
    assert bs.load(data, other).dialects is None
    assert_same(other, model)
    turned = {name: value.t().contiguous() if value.ndim == 2 else value for name, value in model.state_dict().items()}
    spoken = bs.load(safetensors.torch.save(turned), other).dialects
    assert spoken is not None and (spoken.source, spoken.model) == ("burn", "pytorch") and spoken.differ
    assert_same(other, model)


def test_the_names_of_a_norm_decide_for_a_square_matrix() -> None:
    model, other = (nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)) for _ in range(2))
    state = model.state_dict()
    bs.load(safetensors.torch.save(dict(state)), other)
    assert_same(other, model)
    burn = {
        "0.weight": state["0.weight"].t().contiguous(),
        "0.bias": state["0.bias"],
        "1.gamma": state["1.weight"],
        "1.beta": state["1.bias"],
    }
    result = bs.load(safetensors.torch.save(burn), other)
    assert_same(other, model)
    assert result.renames == [("1.gamma", "1.weight"), ("1.beta", "1.bias")]


def test_models_without_matrices_that_matter_are_not_asked_about() -> None:
    model = nn.Sequential(nn.Conv2d(2, 2, 2), nn.Embedding(2, 2))
    assert bs.load(safetensors.torch.save(dict(model.state_dict())), model).dialects is None


def test_a_model_as_a_source_says_its_dialect_itself() -> None:
    model, other = nn.Linear(3, 3), nn.Linear(3, 3)
    assert bs.load(model, other).warnings == []
    assert_same(other, model)
    other = nn.Linear(3, 3)
    assert bs.apply(bs.collect(model), other).warnings == []
    assert_same(other, model)


@pytest.mark.parametrize(
    ("adapter", "turned"),
    [(bs.BurnToPyTorchAdapter(), True), (bs.PyTorchToBurnAdapter(), False), (bs.IdentityAdapter(), False)],
)
def test_an_adapter_takes_the_place_of_the_dialect(adapter: Any, turned: bool) -> None:
    (model, data), (other, _) = _linear(3, 3), _linear(3, 3)
    bs.load(data, other, adapter=adapter)
    assert torch.equal(other[0].weight, model[0].weight.t() if turned else model[0].weight)
    burnpack = bs.save({"0.weight": model[0].weight, "0.bias": model[0].bias}, bytes, format="bpk", dialect="keep")
    bs.load(burnpack, other, adapter=adapter)  # and never on top of the format's own
    assert torch.equal(other[0].weight, model[0].weight.t() if turned else model[0].weight)


def test_an_adapter_of_ones_own_does_not_take_the_translations_place_in_silence() -> None:
    model, other = nn.Linear(3, 3), nn.Linear(3, 3)
    burnpack = bs.save(model, bytes, format="bpk")
    with pytest.raises(DialectError, match="keep"):
        bs.load(burnpack, other, adapter=lambda tensor: tensor)
    bs.load(burnpack, other, adapter=lambda tensor: tensor, dialect="keep")
    assert torch.equal(other.weight, model.weight.t())
    bs.load(burnpack, other, adapter=bs.BurnToPyTorchAdapter().chain(bs.FloatCastAdapter("F32")))
    assert_same(other, model)


def test_an_adapter_may_rename_and_cast() -> None:
    model, made = {"b": np.zeros(2, np.float32)}, nn.Linear(2, 3)
    assert bs.load({"a": np.ones(2, np.float32)}, model, adapter=lambda tensor: tensor.with_name("b")).applied == ["b"]
    assert model["b"].tolist() == [1, 1]
    inner = nn.Linear(2, 3)
    bs.load(nn.Sequential(inner), made, adapter=lambda tensor: tensor.with_name(tensor.name[2:]))
    assert_same(made, inner)


def test_rules_are_applied_once() -> None:
    for source in ({"a": np.ones(1)}, bs.open({"a": np.ones(1)}), bs.save({"a": np.ones(1)}, bytes, format="pt")):
        assert bs.load(source, {"n.a": np.zeros(1)}, rename={"^": "n."}).renames == [("a", "n.a")]
        assert bs.load(bs.open(source), {"n.n.a": np.zeros(1)}, rename=[("^", "n."), ("^", "n.")]).applied == ["n.n.a"]
    assert list(bs.loaded({"a": np.ones(1)}, {"n.a": np.zeros(1)}, rename={"^": "n."})) == ["n.a"]


# Files of the real Burn


def zoo(gaps: bool = True, scale: tuple[int, ...] = ()) -> nn.Module:
    """A model of torch's with the names and shapes of Burn's zoo."""
    model = nn.Module()
    model.linear, model.linear_no_bias, model.embedding = nn.Linear(5, 3), nn.Linear(3, 4, bias=False), nn.Embedding(7, 5)
    model.conv1d, model.conv2d, model.conv3d = nn.Conv1d(2, 3, 3), nn.Conv2d(2, 4, (3, 2)), nn.Conv3d(2, 2, (2, 3, 2))
    model.conv_t1d, model.conv_t2d = nn.ConvTranspose1d(2, 3, 3), nn.ConvTranspose2d(2, 3, (3, 2))
    model.conv_t3d = nn.ConvTranspose3d(2, 3, (2, 3, 2))
    model.batch_norm, model.layer_norm, model.group_norm = nn.BatchNorm1d(4), nn.LayerNorm(6), nn.GroupNorm(2, 4)
    model.instance_norm, model.rms_norm, model.prelu = nn.InstanceNorm1d(4, affine=True), nn.RMSNorm(6), nn.PReLU(4)
    linears = [nn.Linear(3, 3), nn.Linear(3, 2), nn.Linear(2, 4)]
    model.stack = nn.Sequential(linears[0], nn.ReLU(), linears[1], nn.ReLU(), linears[2]) if gaps else nn.Sequential(*linears)
    model.pair, model.maybe = nn.ModuleList([nn.Linear(4, 2), nn.LayerNorm(2)]), nn.Linear(3, 1)
    model.fixed = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 3)])
    model.base, model.depthwise = nn.Conv2d(1, 2, 3), nn.Module()
    model.depthwise.depth, model.depthwise.point = nn.Conv2d(2, 2, 3, groups=2), nn.Conv2d(2, 3, 1, bias=False)
    model.register_buffer("steps", torch.zeros(6, dtype=torch.int32))
    model.register_buffer("mask", torch.zeros(2, 3, dtype=torch.bool))
    model.scale, model.empty = nn.Parameter(torch.zeros(scale)), nn.Parameter(torch.zeros(0, 3))
    return model


# What Burn's own export for PyTorch leaves under Burn's names.
_LEFT = {"instance_norm.weight": "gamma", "instance_norm.bias": "beta", "prelu.weight": "alpha", "rms_norm.weight": "gamma"}
_STACK = {"stack.2": "stack.1", "stack.4": "stack.2"}


def assert_zoo(model: nn.Module, truth: Path) -> None:
    """Every value is what the real Burn wrote in PyTorch's layout."""
    wanted = safetensors.torch.load_file(truth)
    for name, value in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        if not isinstance(model.stack[1], nn.Linear):  # type: ignore[index]
            name = _STACK.get(name[:7], name[:7]) + name[7:]
        if name not in wanted:
            name = f"{name.rpartition('.')[0]}.{_LEFT[name]}"
        assert torch.equal(value.reshape(wanted[name].shape), wanted.pop(name)), name
    assert not wanted


FOLDERS = ["v0.20.1/seed42", "v0.22.1/ramp"]


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize(
    "name", ["zoo.bpk", "zoo.meta.bpk", "zoo.safetensors", "zoo.nometa.safetensors", "zoo.skipenum.safetensors"]
)
def test_files_of_burn_load_into_a_module_of_torch(data: Path, folder: str, name: str) -> None:
    model = zoo()
    result = bs.load(data / "burn" / folder / name, model)
    assert (result.missing, result.unused, result.errors, result.warnings) == ([], [], [], [])
    assert result.dialects is not None and (result.dialects.source, result.dialects.model) == ("burn", "pytorch")
    assert_zoo(model, data / "burn" / folder / "zoo.pytorch.safetensors")


@pytest.mark.parametrize("folder", FOLDERS)
def test_burns_export_for_pytorch_is_pytorchs_whatever_it_says(data: Path, folder: str) -> None:
    model, path = zoo(gaps=False, scale=(1,)), data / "burn" / folder / "zoo.pytorch.safetensors"
    result = bs.load(path, model)
    assert (result.missing, result.unused, result.errors) == ([], [], [])
    assert_zoo(model, path)


def _net(bias: bool = False) -> nn.Module:
    model = nn.Module()
    model.conv1, model.conv2 = nn.Conv2d(2, 2, 2), nn.Conv2d(2, 2, 2, bias=bias)
    return model


def test_what_burn_halved_is_cast_and_said(data: Path) -> None:
    folder, model = data / "burn" / "v0.22.1", _net()
    for name in ("net.half.bpk", "net.half.safetensors"):
        result = bs.load(folder / "adapters" / name, model)
        assert [(cast.path, str(cast.found), str(cast.dtype), cast.lossy) for cast in result.casts] == [
            (path, "F16", "F32", False) for path in ("conv1.weight", "conv1.bias", "conv2.weight")
        ]
        wanted = safetensors.torch.load_file(folder / "ramp" / "net.safetensors")  # the ramp is exact in F16
        assert all(torch.equal(value, wanted[path]) for path, value in model.state_dict().items())


LAYERS: dict[str, Any] = {
    "linear": lambda: nn.Linear(6, 4),
    "batch_norm": lambda: nn.BatchNorm2d(4),
    "layer_norm": lambda: nn.LayerNorm(6),
    "group_norm": lambda: nn.GroupNorm(2, 4),
    "instance_norm": lambda: nn.InstanceNorm2d(4, affine=True),
    "rms_norm": lambda: nn.RMSNorm(6, eps=1e-5),
    "prelu": lambda: nn.PReLU(4),
    "embedding": lambda: nn.Embedding(7, 3),
    "conv_transpose2d": lambda: nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2), groups=2),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_answers_as_it_does_in_burn(shared: Path, layer: str) -> None:
    case = json.loads((shared / "fixtures" / "burn" / "v0.22.1" / "layers.json").read_text())[layer]

    def array(said: Any) -> Any:
        return np.array(said["data"], np.int64 if layer == "embedding" and said is case["inputs"]["x"] else np.float32).reshape(
            said["shape"]
        )

    model = LAYERS[layer]().eval()
    bs.load({name: array(said) for name, said in case["weights"].items()}, model, dialect="burn")
    with torch.no_grad():
        found = model(torch.from_numpy(array(case["inputs"]["x"])))
    assert torch.allclose(found, torch.from_numpy(array(case["outputs"]["y"])), atol=1e-5)


# Parameter ids


def test_parameter_ids_go_through_a_model_of_torch(data: Path, tmp_path: Path) -> None:
    path = data / "burn" / "v0.22.1" / "ramp" / "zoo.bpk"
    wanted = {row["path"]: row["param_id"] for row in json.loads(path.with_name("zoo.manifest.json").read_text())}
    for options in ({}, {"assign": True}):
        model = zoo()
        bs.load(path, model, **options)
        bs.save(model, tmp_path / "again.bpk", overwrite=True)
        found = {name: tensor.param_id for name, tensor in bs.open(tmp_path / "again.bpk").items()}
        for name, param_id in wanted.items():
            name = name.replace("BaseConv.", "").replace("Depthwise.", "")
            assert found.pop(name) == param_id, name
        assert all("num_batches" in name for name in found)
    fresh = zoo()
    assert all(tensor.param_id is None for tensor in bs.open(bs.save(fresh, bytes, format="bpk")).values())


# Model surgery


class Two(nn.Module):
    def __init__(self, head: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
        self.head = nn.Linear(3, head)


def test_all_tensors_move_from_one_model_to_another() -> None:
    source, model = Two(), Two()
    result = bs.apply(bs.collect(source), model)
    assert (result.applied, result.missing, result.unused) == (list(model.state_dict()), [], [])
    assert_same(model, source)


def test_the_encoder_alone_moves() -> None:
    source, model = Two(2), Two(5)
    head = copy.deepcopy(model.head)
    result = bs.apply(bs.collect(source, only=r"^encoder\."), model)
    assert [path for path, _ in result.missing] == ["head.bias", "head.weight"] and result.is_success()
    assert_same(model.encoder, source.encoder)
    assert_same(model.head, head)
    other = Two(5)
    result = bs.load(source, other, only=r"^encoder\.")
    assert (result.skipped, result.unused) == (["head.bias", "head.weight"], [])
    assert_same(other.encoder, source.encoder)


def test_tensors_are_renamed_while_they_move() -> None:
    source, model = nn.ModuleDict({"backbone": nn.Linear(2, 3)}), nn.ModuleDict({"encoder": nn.Linear(2, 3)})
    bs.apply([tensor.with_name(tensor.name.replace("backbone", "encoder")) for tensor in bs.collect(source)], model)
    assert_same(model["encoder"], source["backbone"])


def test_two_layers_of_one_model_are_swapped() -> None:
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    before = copy.deepcopy(model)
    other = {"a": "b", "b": "a"}
    bs.apply([tensor.with_name(other[tensor.name[0]] + tensor.name[1:]) for tensor in bs.collect(model)], model)
    assert_same(model["a"], before["b"])
    assert_same(model["b"], before["a"])


def test_a_base_is_merged_with_a_special_encoder(tmp_path: Path) -> None:
    base, special, model = Two(), Two(), Two()
    bs.save(base, tmp_path / "base.safetensors")
    merged = bs.merge(tmp_path / "base.safetensors", bs.collect(special, only="^encoder"), on_conflict="last")
    bs.load(merged, model, dialect="pytorch")
    assert_same(model.encoder, special.encoder)
    assert_same(model.head, base.head)
    with pytest.raises(ValueError, match=r"encoder\.0\.weight"):
        bs.merge(base, special)
    again = bs.apply([*bs.collect(base), *bs.collect(special, only="^head")], model)
    assert_same(model.head, special.head)
    assert [warning for warning in again.warnings if "more than once" in warning] == [
        f"'head.{name}' is there more than once; the last one was taken" for name in ("weight", "bias")
    ]


def test_a_merge_that_nothing_loads_from_says_so() -> None:
    with pytest.raises(LoadError, match="missing"):
        bs.load(bs.merge({"a": np.ones(1)}, {"b": np.ones(1)}), {"c": np.zeros(1)})
