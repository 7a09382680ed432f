"""Modules of torch as targets, against torch's own `state_dict()` and `load_state_dict()`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import burnstore as bs
from burnstore.errors import BurnstoreError, LoadError, UsageError


def new_values(model: nn.Module) -> dict[str, torch.Tensor]:
    """Other values for everything that `state_dict()` names, of the same shapes and dtypes."""
    generator = torch.Generator().manual_seed(7)
    return {name: torch.rand(value.shape, generator=generator).to(value.dtype) for name, value in model.state_dict().items()}


def load(values: Any, model: Any, **options: Any) -> bs.ApplyResult:
    return bs.load(values, model, **{"dialect": "pytorch", **options})


def assert_same(model: nn.Module, values: dict[str, torch.Tensor]) -> None:
    state = model.state_dict()
    assert list(state) == list(values)
    for name, value in values.items():
        assert state[name].dtype == value.dtype and torch.equal(state[name], value), name


class Buffers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(2))
        self.register_buffer("passing", torch.full((2,), 5.0), persistent=False)
        self.register_buffer("nothing", None)
        self.register_parameter("absent", None)
        self.inner = nn.BatchNorm1d(3)


class Tied(nn.Module):
    """One `Parameter` under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Embedding(4, 3)
        self.decoder = nn.Linear(3, 4, bias=False)
        self.decoder.weight = self.encoder.weight


class SharedStorage(nn.Module):
    """Two `Parameter`s over one storage."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Embedding(4, 3)
        self.decoder = nn.Linear(3, 4, bias=False)
        self.decoder.weight = nn.Parameter(self.encoder.weight.data)


class SharedModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(3, 4)
        self.decoder = self.encoder


class Lists(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 3), nn.ModuleDict({"norm": nn.LayerNorm(3), "act": nn.PReLU()})])
        self.own = nn.ParameterList([nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(()))])
        self.named = nn.ParameterDict({"b": torch.zeros(1), "a": torch.zeros(0, 3)})


MODELS: dict[str, Callable[[], nn.Module]] = {
    "buffers": Buffers,
    "tied": Tied,
    "shared storage": SharedStorage,
    "shared module": SharedModule,
    "lists": Lists,
    "recurrent": lambda: nn.LSTM(2, 3, num_layers=2, bidirectional=True),
    "attention": lambda: nn.TransformerEncoderLayer(4, 2, 8),
    "parametrized": lambda: nn.Sequential(
        parametrizations.weight_norm(nn.Linear(2, 3)), parametrizations.orthogonal(nn.Linear(2, 2))
    ),
    "channels last": lambda: nn.Conv2d(3, 4, 2).to(memory_format=torch.channels_last),  # type: ignore[call-overload]
    "half": lambda: nn.Sequential(nn.Conv1d(2, 2, 2), nn.BatchNorm1d(2)).half(),
    "double": lambda: nn.Bilinear(2, 3, 4).double(),
    "data parallel": lambda: nn.DataParallel(nn.Linear(2, 3)),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_everything_in_the_state_dict_is_loaded_in_its_order(make: Callable[[], nn.Module]) -> None:
    model, peer = make(), make()
    values = new_values(model)
    if isinstance(model, (Tied, SharedStorage)):
        values["decoder.weight"] = values["encoder.weight"]
    if isinstance(model, SharedModule):
        values |= {name.replace("encoder", "decoder"): value for name, value in values.items() if name.startswith("encoder")}
    peer.load_state_dict(values)
    result = load(values, model)
    assert result.applied == list(model.state_dict())
    assert_same(model, dict(peer.state_dict()))


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_what_is_collected_is_the_state_dict(make: Callable[[], nn.Module]) -> None:
    model = make()
    collected = bs.collect(model)
    assert [tensor.name for tensor in collected] == list(model.state_dict())
    assert all(torch.equal(tensor.torch(), model.state_dict()[tensor.name]) for tensor in collected)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("format", ["safetensors", "pt"])
def test_a_saved_model_loads_into_another_of_its_kind(make: Callable[[], nn.Module], format: str) -> None:
    model, other = make(), make()
    result = bs.load(bs.save(model, bytes, format=format), other)
    assert result.applied == list(other.state_dict()) and not result.unused
    assert_same(other, dict(model.state_dict()))


def test_buffers_that_are_not_persistent_are_left_alone() -> None:
    model = Buffers()
    result = load(new_values(model) | {"passing": torch.zeros(2)}, model)
    assert result.unused == ["passing"]
    assert model.passing.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("make", [Tied, SharedStorage])
@pytest.mark.parametrize("given", ["encoder.weight", "decoder.weight"])
def test_weights_that_are_tied_are_filled_from_either_name(make: Callable[[], Any], given: str) -> None:
    model = make()
    value = torch.rand(4, 3)
    assert load({given: value}, model).applied == ["encoder.weight", "decoder.weight"]
    assert torch.equal(model.encoder.weight, value) and torch.equal(model.decoder.weight, value)
    assert model.encoder.weight.data_ptr() == model.decoder.weight.data_ptr()


def test_tied_weights_that_lie_in_the_file_twice_and_alike_are_loaded() -> None:
    model, value = Tied(), torch.rand(4, 3)
    assert load({"encoder.weight": value, "decoder.weight": value.clone()}, model).applied == list(model.state_dict())
    assert torch.equal(model.decoder.weight, value)


@pytest.mark.parametrize("make", [Tied, SharedStorage])
@pytest.mark.parametrize("options", [{}, {"assign": True}], ids=["in place", "assign"])
def test_a_tie_of_an_embedding_and_a_linear_goes_through_burns_layout(make: Callable[[], Any], options: dict[str, Any]) -> None:
    """There the Linear's weight lies the other way round and the Embedding's does not."""
    model, other = make(), make()
    data = bs.save(model, bytes, format="bpk")
    assert {name: tensor.shape for name, tensor in bs.open(data).items()} == {"encoder.weight": (4, 3), "decoder.weight": (3, 4)}
    assert bs.load(data, other, **options).applied == ["encoder.weight", "decoder.weight"]
    assert torch.equal(other.encoder.weight, model.encoder.weight)
    assert other.encoder.weight.data_ptr() == other.decoder.weight.data_ptr()
    wrong = {"encoder.weight": torch.ones(4, 3), "decoder.weight": torch.zeros(3, 4)}
    with pytest.raises(LoadError):
        bs.load(bs.save(wrong, bytes, format="bpk", dialect="keep"), other, dialect="burn", **options)
    assert torch.equal(other.encoder.weight, model.encoder.weight)


def test_weights_that_are_tied_transposed_are_loaded_where_the_values_agree() -> None:
    model = nn.ParameterDict({"encoder": nn.Parameter(torch.zeros(2, 3))})
    model["decoder"] = nn.Parameter(model["encoder"].data.t())
    value = torch.rand(2, 3)
    load({"encoder": value, "decoder": value.t().contiguous()}, model)
    assert torch.equal(model["encoder"], value) and torch.equal(model["decoder"], value.t())


def test_weights_that_are_tied_transposed_are_not_given_two_values() -> None:
    model = nn.ParameterDict({"encoder": nn.Parameter(torch.zeros(2, 3))})
    model["decoder"] = nn.Parameter(model["encoder"].data.t())
    with pytest.raises(LoadError):
        load({"encoder": torch.ones(2, 3), "decoder": torch.full((3, 2), 2.0)}, model)
    assert not model["encoder"].any()


@pytest.mark.parametrize("options", [{}, {"assign": True}, {"dtype": "file"}], ids=["in place", "assign", "file's dtype"])
def test_parameters_stay_the_same_objects_and_the_optimizer_goes_on(options: dict[str, Any]) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    model[0].bias.requires_grad_(False)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1.0)
    before = [(id(parameter), parameter.requires_grad) for parameter in model.parameters()]
    values = {name: value.double() if options.get("dtype") else value for name, value in new_values(model).items()}
    load(values, model, **options)
    assert [(id(parameter), parameter.requires_grad) for parameter in model.parameters()] == before
    assert_same(model, values)
    model(torch.ones(1, 2, dtype=values["0.weight"].dtype)).sum().backward()
    optimizer.step()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, values[name]) == (name == "0.bias"), name


def test_in_place_means_the_same_memory() -> None:
    model = nn.Linear(2, 3)
    before = model.weight.data_ptr(), model.bias.data_ptr()
    load(new_values(model), model)
    assert (model.weight.data_ptr(), model.bias.data_ptr()) == before


@pytest.mark.parametrize("options", [{}, {"assign": True}], ids=["in place", "assign"])
def test_a_backward_pass_over_old_values_is_refused_as_after_any_change_in_place(options: dict[str, Any]) -> None:
    model = nn.Linear(2, 3)
    out = model(torch.ones(1, 2, requires_grad=True)).sum()
    load(new_values(model), model, **options)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_a_backward_pass_over_half_new_values_is_refused_after_an_interruption() -> None:
    model = nn.Linear(2, 3)
    out = model(torch.ones(1, 2, requires_grad=True)).sum()

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(new_values(model), model, progress=interrupt)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


@pytest.mark.parametrize("make", [lambda: nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), Tied], ids=["plain", "tied"])
def test_the_meta_device_is_left_by_assigning(make: Callable[[], nn.Module]) -> None:
    values = new_values(make())
    if "decoder.weight" in values:
        values["decoder.weight"] = values["encoder.weight"]
    with torch.device("meta"):
        model = make()
    names = [name for name, _ in model.named_parameters()]
    with pytest.raises(LoadError) as caught:
        load(values, model)
    assert "assign=True" in str(caught.value) + str(caught.value.report)
    assert all(value.is_meta for value in model.state_dict().values())
    load(values, model, assign=True)
    assert_same(model, values)
    assert [name for name, _ in model.named_parameters()] == names
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in model.parameters())


def test_assigned_weights_may_be_trained_without_changing_the_file(tmp_path: Any) -> None:
    model, path = nn.Linear(2, 3), tmp_path / "model.safetensors"
    bs.save(nn.Linear(2, 3), path)
    before = path.read_bytes()
    bs.load(path, model, assign=True)
    with torch.no_grad():
        model.weight.add_(1.0)
    assert path.read_bytes() == before


def test_a_subclass_counts_as_its_ancestor_and_a_namesake_does_not() -> None:
    class Mine(nn.Linear):
        pass

    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.rand(2, 3))

    model = nn.ModuleDict({"mine": Mine(3, 4), "namesake": Linear(), "normal": parametrizations.weight_norm(nn.Linear(3, 2))})
    store = bs.open(bs.save(model, bytes, format="bpk"))
    assert torch.equal(store["mine.weight"].torch(), model["mine"].weight.t())
    assert torch.equal(store["namesake.weight"].torch(), model["namesake"].weight)  # type: ignore[arg-type]
    other = copy.deepcopy(model)
    load(new_values(other), other)
    bs.load(store, other)
    assert_same(other, dict(model.state_dict()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_module_has_the_names_of_the_module_itself() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    compiled = torch.compile(model)
    values = new_values(model)
    assert load(values, compiled).applied == list(values)
    assert_same(model, values)
    model[1] = torch.compile(model[1])
    assert [tensor.name for tensor in bs.collect(compiled)] == list(values)


def test_a_file_without_the_batch_counter_leaves_it_alone() -> None:
    model = nn.BatchNorm2d(2)
    assert model.num_batches_tracked is not None
    model.num_batches_tracked.fill_(9)
    values = new_values(model)
    del values["num_batches_tracked"]
    result = load(values, model)
    assert (result.missing, model.num_batches_tracked.item()) == ([], 9)
    own = nn.Module()
    own.register_buffer("num_batches_tracked", torch.tensor(1))
    own.w = nn.Parameter(torch.zeros(1))
    with pytest.raises(LoadError):
        load({"w": torch.ones(1)}, own)  # only norms can do without


def _quantized() -> nn.Module:
    inner = nn.Sequential(nn.Linear(3, 2))
    made = torch.ao.quantization.quantize_dynamic(inner, {nn.Linear}, dtype=torch.qint8)
    return nn.Sequential(nn.Linear(2, 3), made)


def _with(tensor: torch.Tensor) -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 3))
    model.register_buffer("odd", tensor)
    return model


UNSUPPORTED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "lazy": (lambda: nn.Sequential(nn.Linear(2, 3), nn.LazyLinear(2)), "no shape yet"),
    "sparse": (lambda: _with(torch.eye(3).to_sparse()), "sparse"),
    "sparse csr": (lambda: _with(torch.eye(3).to_sparse_csr()), "sparse"),
    "quantized": (lambda: _with(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)), "quantized"),
    "quantized layer": (_quantized, "quantiz"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", UNSUPPORTED)
def test_a_module_that_holds_more_than_plain_tensors_is_refused_by_name(kind: str) -> None:
    make, says = UNSUPPORTED[kind]
    model = make()
    before = model.state_dict()["0.weight"].clone()
    with pytest.raises(BurnstoreError, match=rf"(?i){says}"):
        load({"0.weight": torch.ones(3, 2), "0.bias": torch.ones(3)}, model, partial=True)
    assert torch.equal(model.state_dict()["0.weight"], before)


def test_a_module_inside_of_itself_is_refused() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].back = model
    with pytest.raises(UsageError, match=r"'0\.back' contains itself"):
        load({"0.weight": torch.ones(2, 2)}, model)


def test_a_new_model_is_made_and_the_old_one_stays() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    before = copy.deepcopy(model.state_dict())
    values = new_values(model)
    made = bs.loaded(values, model, dialect="pytorch")
    assert type(made) is nn.Sequential and made is not model
    assert_same(made, values)
    assert_same(model, dict(before))


def test_inference_tensors_and_frozen_models_are_loaded() -> None:
    with torch.inference_mode():
        model = nn.Linear(2, 3).eval().requires_grad_(False)
    values = new_values(model)
    load(values, model)
    assert_same(model, values)
