"""`bs.save` of models and of nested arrays: read back by torch and by the official safetensors package."""

from __future__ import annotations

import io
from collections import OrderedDict
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from torch import nn

import burnstore as bs
from tests.sources.handmade import burnpack_parts


class Residual(nn.Module):
    """Shaped like a piece of a ResNet."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.downsample = nn.Sequential(nn.Conv2d(width, width, 1), nn.BatchNorm2d(width))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.layers = nn.ModuleList([Residual(), nn.ReLU(), Residual()])
        self.fc = nn.Linear(4, 4)
        self.small = nn.Parameter(torch.randn(3).bfloat16())
        self.frozen = nn.Parameter(torch.randn(2, 5).t(), requires_grad=False)  # not contiguous
        self.register_buffer("mask", torch.tensor([True, False]))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)


@pytest.fixture(scope="module")
def model() -> ResNet:
    torch.manual_seed(11)
    return ResNet()


def same(state: dict[str, torch.Tensor], model: nn.Module) -> None:
    wanted = model.state_dict()
    assert set(state) == set(wanted)
    for name, tensor in wanted.items():
        assert state[name].dtype == tensor.dtype and torch.equal(state[name], tensor), name


def test_torch_loads_a_pt_of_a_model_strictly(model: ResNet, tmp_path: Path) -> None:
    bs.save(model, tmp_path / "model.pt")
    state = torch.load(tmp_path / "model.pt", weights_only=True)
    assert list(state) == list(model.state_dict())
    same(state, model)
    other = ResNet()
    assert other.load_state_dict(state, strict=True).missing_keys == []


def test_torch_and_the_official_package_load_a_safetensors_of_a_model(model: ResNet, tmp_path: Path) -> None:
    bs.save(model, tmp_path / "model.safetensors", metadata={"epoch": "3"})
    same(safetensors.torch.load_file(tmp_path / "model.safetensors"), model)
    safetensors.torch.load_model(ResNet(), tmp_path / "model.safetensors", strict=True)
    with safetensors.safe_open(tmp_path / "model.safetensors", "pt") as file:
        assert file.metadata() == {"dialect": "pytorch", "epoch": "3", "format": "pt"}


def test_the_official_package_loads_a_model_with_tied_weights(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(3, 3)
            self.b = nn.Linear(3, 3)
            self.b.weight = self.a.weight

    before, after = Tied(), Tied()
    bs.save(before, tmp_path / "m.safetensors")
    safetensors.torch.load_model(after, tmp_path / "m.safetensors", strict=True)
    assert torch.equal(after.b.weight, before.a.weight)


@pytest.mark.parametrize("format", ["bpk", "safetensors", "pt"])
def test_every_format_brings_the_model_back(model: ResNet, format: str) -> None:
    other = ResNet()
    assert bs.load(bs.save(model, bytes, format=format, map_indices_contiguous=False), other).is_success()
    same(other.state_dict(), model)


def test_a_bpk_with_closed_lists_brings_the_model_back(model: ResNet) -> None:
    with pytest.warns(bs.errors.BurnstoreWarning, match=r"layers\.2"):
        data = bs.save(model, bytes, format="bpk")
    other = ResNet()
    assert bs.load(data, other).is_success()
    same(other.state_dict(), model)


@pytest.mark.parametrize("format", ["bpk", "safetensors", "pt"])
def test_a_model_that_is_saved_is_not_changed(model: ResNet, format: str) -> None:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first = bs.save(model, bytes, format=format, dtype="f16", map_indices_contiguous=False)
    same(before, model)
    assert bs.save(model, bytes, format=format, dtype="f16", map_indices_contiguous=False) == first


def test_the_keywords_choose_name_and_cast(model: ResNet, tmp_path: Path) -> None:
    bs.save(model, tmp_path / "m.pt", only=r"^layers\.0", skip="bn1", rename={r"^layers\.0": "block"}, dtype="f16")
    state = torch.load(tmp_path / "m.pt")
    wanted = {name.replace("layers.0", "block"): tensor for name, tensor in model.state_dict().items()}
    wanted = {name: tensor for name, tensor in wanted.items() if name.startswith("block") and "bn1" not in name}
    assert set(state) == set(wanted)
    for name, tensor in wanted.items():
        assert torch.equal(state[name], tensor.half() if tensor.is_floating_point() else tensor)


def test_a_filter_of_a_save_sees_the_models_paths_and_containers(model: ResNet) -> None:
    def norms(path: str, container: str) -> bool:
        return container.endswith("BatchNorm2d") and path.startswith("layers.2.bn1")

    found = bs.open(bs.save(model, bytes, format="pt", only=norms, rename={"^layers": "x"}))
    assert set(found) == {f"x.2.bn1.{leaf}" for leaf in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")}


def test_a_model_can_be_saved_into_every_kind_of_place(model: ResNet, tmp_path: Path) -> None:
    wanted = bs.save(model, bytes, format="safetensors")
    buffer, array = io.BytesIO(), bytearray(b"before")
    bs.save(model, buffer, format="safetensors")
    bs.save(model, array, format="safetensors")
    bs.save(model, tmp_path / "m.safetensors")
    assert buffer.getvalue() == bytes(array).removeprefix(b"before") == (tmp_path / "m.safetensors").read_bytes() == wanted
    with pytest.raises(FileExistsError):
        bs.save(model, tmp_path / "m.safetensors")
    bs.save(model, tmp_path / "m.safetensors", overwrite=True, only="fc")
    assert set(bs.open(tmp_path / "m.safetensors")) == {"fc.weight", "fc.bias"}


def test_a_model_in_shards(model: ResNet, tmp_path: Path) -> None:
    bs.save(model, tmp_path / "m.safetensors", shard_size=600)
    assert len(list(tmp_path.glob("m-*-of-*.safetensors"))) > 1
    state = {}
    for shard in tmp_path.glob("m-*.safetensors"):
        state.update(safetensors.torch.load_file(shard))
    same(state, model)
    other = ResNet()
    assert bs.load(tmp_path / "m.safetensors", other).is_success()
    same(other.state_dict(), model)


@pytest.mark.parametrize("kind", [bs.BurnpackStore, bs.SafetensorsStore, bs.PytorchStore])
def test_a_store_saves_a_model_as_its_builders_say(model: ResNet, kind: Any) -> None:
    store = kind.from_bytes(None).with_regex("^fc").with_key_remapping("^fc", "head").dtype("bf16")
    bs.save(model, store)
    found = bs.open(store.get_bytes())
    assert set(found) == {"head.weight", "head.bias"} and {str(tensor.dtype) for tensor in found.values()} == {"BF16"}
    weight = model.fc.weight.detach()
    burn = kind is bs.BurnpackStore
    assert torch.equal(found["head.weight"].torch(), (weight.t() if burn else weight).bfloat16())


def test_burns_default_of_loading_does_not_change_the_names_that_a_pytorch_store_saves(model: ResNet) -> None:
    store = bs.PytorchStore.from_bytes(None)
    bs.save(model, store)
    assert ResNet().load_state_dict(torch.load(io.BytesIO(store.get_bytes())), strict=True)


def test_extra_values_lie_beside_a_model(model: ResNet, tmp_path: Path) -> None:
    bs.save(model, tmp_path / "c.pt", extra={"epoch": 3})
    checkpoint = torch.load(tmp_path / "c.pt")
    assert checkpoint["epoch"] == 3
    same(checkpoint["state_dict"], model)
    other = ResNet()
    assert bs.load(tmp_path / "c.pt", other).is_success()
    same(other.state_dict(), model)


def test_compiled_and_parallel_models_are_saved_under_their_own_names() -> None:
    class OptimizedModule(nn.Module):  # what torch.compile gives, without a compiler
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self._orig_mod = inner

    inner = nn.Linear(2, 2)
    assert set(bs.open(bs.save(OptimizedModule(inner), bytes, format="pt"))) == {"weight", "bias"}
    assert set(bs.open(bs.save(nn.DataParallel(inner), bytes, format="pt"))) == {"module.weight", "module.bias"}


# Nested mappings and lists


class Pair(NamedTuple):
    w: Any
    b: Any


NESTED: list[tuple[Any, list[str]]] = [
    ({"enc": {"w": np.ones(2), "b": np.zeros(1)}, "head": np.ones(3)}, ["enc.w", "enc.b", "head"]),
    ({"l": [np.ones(1), {"w": np.ones(2)}, (np.ones(3), np.ones(4))]}, ["l.0", "l.1.w", "l.2.0", "l.2.1"]),
    (OrderedDict(a=MappingProxyType({"b": OrderedDict(c=np.ones(1))})), ["a.b.c"]),
    ({"layers": {0: {"w": np.ones(1)}, 1: {"w": np.ones(1)}}}, ["layers.0.w", "layers.1.w"]),
    ({"a": {"t": torch.ones(2), "s": bs.TensorSnapshot.from_data("other", [1.0])}}, ["a.t", "a.s"]),
    ({"a": {"numbers": [[1.0, 2.0], [3.0, 4.0]], "one": 1.5}}, ["a.numbers", "a.one"]),
    ({"a": {}, "b": {"c": {}}, "d": np.ones(1)}, ["d"]),
    ({"a": {"b": np.ones(1)}, "a.c": np.ones(1)}, ["a.b", "a.c"]),
    ({"pair": Pair(np.ones(1), np.ones(2))}, ["pair.0", "pair.1"]),
]  # fmt: skip


@pytest.mark.parametrize(("nested", "names"), NESTED)
@pytest.mark.parametrize("format", ["bpk", "safetensors", "pt"])
def test_nested_arrays_are_saved_under_dotted_names(nested: Any, names: list[str], format: str) -> None:
    found = bs.open(bs.save(nested, bytes, format=format))
    assert set(found) == set(names)
    if format == "pt":
        assert list(torch.load(io.BytesIO(bs.save(nested, bytes, format="pt")))) == names


def test_nested_arrays_keep_their_values_and_come_back_into_the_same_nest() -> None:
    nested = {"enc": {"w": np.arange(6.0).reshape(2, 3), "layers": [np.arange(3), np.arange(4, dtype=np.float32)]}}
    data = bs.save(nested, bytes, format="safetensors")
    found = safetensors.numpy.load(data)
    assert found["enc.w"].tolist() == nested["enc"]["w"].tolist() and found["enc.layers.1"].dtype == np.float32  # type: ignore[union-attr]
    empty = {"enc": {"w": np.zeros((2, 3)), "layers": [np.zeros(3, np.int64), np.zeros(4, np.float32)]}}
    assert bs.load(data, empty).is_success()
    assert empty["enc"]["w"].tolist() == nested["enc"]["w"].tolist()  # type: ignore[union-attr]


def test_a_nested_state_dict_of_torch_is_saved_with_its_prefixes(model: ResNet) -> None:
    state = torch.load(io.BytesIO(bs.save({"net": model.state_dict()}, bytes, format="pt")))
    same({name.removeprefix("net."): tensor for name, tensor in state.items()}, model)


def test_two_keys_that_give_one_name_are_refused() -> None:
    for nested in ({"a": {"b": np.ones(1)}, "a.b": np.ones(1)}, {"a": {0: {"w": np.ones(1)}, "0": {"w": np.ones(1)}}}):
        with pytest.raises(bs.errors.DuplicateNameError):
            bs.save(nested, bytes, format="pt")


def test_a_nest_that_contains_itself_is_refused() -> None:
    nested: dict[str, Any] = {"w": np.ones(1)}
    nested["again"] = nested
    with pytest.raises(bs.errors.UsageError, match="contains itself"):
        bs.save(nested, bytes, format="pt")
    deep: dict[str, Any] = {"w": np.ones(1)}
    for _ in range(5000):
        deep = {"d": deep}
    try:
        bs.save(deep, bytes, format="safetensors")
    except bs.errors.BurnstoreError:
        pass


@pytest.mark.parametrize("key", [1.5, None, True, b"a", ("a", "b")])
def test_a_key_that_is_no_name_is_refused(key: Any) -> None:
    for nested in ({"a": {key: np.ones(1)}}, {key: {"a": np.ones(1)}}):
        with pytest.raises(bs.errors.BurnstoreError, match=r"name|text"):
            bs.save(nested, bytes, format="pt")


@pytest.mark.parametrize("value", ["text", None, object(), {1, 2}, {"deeper": "text"}, [np.ones(1), "text"]])
def test_what_is_no_tensor_is_refused_with_its_whole_name(value: Any) -> None:
    with pytest.raises(bs.errors.BurnstoreError, match=r"a\.b"):
        bs.save({"a": {"b": value}}, bytes, format="pt")


def test_a_list_of_arrays_has_no_names_at_the_top() -> None:
    with pytest.raises(bs.errors.UsageError, match="no names"):
        bs.save([np.ones(1), np.ones(2)], bytes, format="pt")


# Shared storage


def test_what_shares_memory_shares_a_storage_in_a_pt() -> None:
    base = torch.arange(12.0).reshape(3, 4)
    tensors = {"whole": base, "row": base[1], "turned": base.t(), "same": base, "other": base.clone()}
    data = bs.save(tensors, bytes, format="pt")
    state = torch.load(io.BytesIO(data))
    for name, tensor in tensors.items():
        assert torch.equal(state[name], tensor)
    assert state["same"].untyped_storage().data_ptr() == state["whole"].untyped_storage().data_ptr()
    assert state["other"].untyped_storage().data_ptr() != state["whole"].untyped_storage().data_ptr()


def test_burn_ids_that_a_model_was_loaded_with_are_saved_again() -> None:
    data = bs.save([bs.TensorSnapshot.from_data("w", np.ones(2, np.float32), param_id=77)], bytes, format="bpk")
    model = nn.ParameterDict({"w": nn.Parameter(torch.zeros(2))})
    bs.load(data, model)
    header, _ = burnpack_parts(bs.save(model, bytes, format="bpk"))
    assert header["tensors"]["w"]["param_id"] == 77  # type: ignore[index]
    fresh, _ = burnpack_parts(bs.save(nn.Linear(1, 1), bytes, format="bpk"))
    assert all(entry.get("param_id") is None for entry in fresh["tensors"].values())  # type: ignore[attr-defined]


# Whatever can go wrong leaves no file


@pytest.mark.parametrize("suffix", ["bpk", "safetensors", "pt"])
def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m.{suffix}"
    path.write_bytes(b"before")

    def fails() -> np.ndarray:
        raise RuntimeError("no")

    broken = bs.TensorSnapshot.from_closure("w", "F32", (2,), fails)
    with pytest.raises((RuntimeError, bs.errors.BurnstoreError)):
        bs.save([broken], path, overwrite=True)
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]


def test_saving_over_the_file_that_the_tensors_come_from_is_safe(tmp_path: Path, model: ResNet) -> None:
    path = tmp_path / "m.safetensors"
    bs.save(model, path)
    bs.convert(path, path, overwrite=True, rename={"^": "net."}, dtype="f16")
    state = safetensors.torch.load_file(path)
    assert torch.equal(state["net.fc.weight"], model.fc.weight.half())


def test_convert_leaves_the_callers_store_open(tmp_path: Path) -> None:
    bs.save({"a": np.ones(2)}, tmp_path / "a.safetensors")
    for keywords in ({}, {"only": "a"}, {"limits": bs.Limits()}):
        store = bs.open(tmp_path / "a.safetensors", io="pread")
        bs.convert(store, bytes, format="bpk", **keywords)  # type: ignore[call-overload]
        assert store["a"].numpy().tolist() == [1, 1]


def test_a_store_of_a_stream_with_limits_of_its_own_is_converted() -> None:
    class Stream(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise io.UnsupportedOperation

    data = bs.save({"a": np.ones(2)}, bytes, format="safetensors")
    store = bs.open(Stream(data), limits=bs.Limits(burnpack_tensors=7))
    assert set(bs.open(bs.convert(store, bytes, format="bpk"))) == {"a"}


def test_what_a_store_says_of_its_dialect_a_save_says_too() -> None:
    arrays = {"fc.weight": np.ones((2, 3))}
    store = bs.SafetensorsStore.from_bytes(None).with_dialect("pytorch")
    bs.save(arrays, store)
    assert store.metadata["dialect"] == "pytorch"
    assert bs.open(bs.save(arrays, bytes, format="safetensors", dialect="pytorch")).metadata["dialect"] == "pytorch"


def test_an_adapter_that_cannot_know_the_layers_is_refused_rather_than_without_effect() -> None:
    arrays = {"fc.weight": np.ones((2, 3), np.float32)}
    for call in (bs.save, bs.convert):
        with pytest.raises(bs.errors.DialectError, match=r"fc\.weight.*kinds="):
            call(arrays, bytes, format="bpk", adapter=bs.PyTorchToBurnAdapter())
        made = call(arrays, bytes, format="bpk", adapter=bs.PyTorchToBurnAdapter(), kinds={"fc": "Linear"})
        assert bs.open(made)["fc.weight"].shape == (3, 2)


def test_a_store_that_keeps_the_files_dtypes_on_loading_can_be_saved_into() -> None:
    store = bs.SafetensorsStore.from_bytes(None).dtype("file")
    bs.save({"w": np.ones(1, np.float16)}, store)
    assert store["w"].dtype == "F16"


def test_a_dialect_that_the_caller_says_holds_beside_an_adapter(model: ResNet) -> None:
    adapter = bs.HalfPrecisionAdapter()
    data = bs.save(model, bytes, format="safetensors", adapter=adapter, dialect="burn", map_indices_contiguous=False)
    found = bs.open(data)
    assert torch.equal(found["fc.weight"].torch(), model.fc.weight.detach().half().t())
    assert "layers.0.bn1.gamma" in found and found.metadata["dialect"] == "burn"


def test_what_a_store_says_of_its_tensors_holds_when_it_is_converted() -> None:
    data = bs.save({"fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3)}, bytes, format="safetensors")
    store = bs.SafetensorsStore.from_bytes(data).with_from_adapter(bs.PyTorchToBurnAdapter()).kinds({"fc": "Linear"})
    assert bs.open(bs.convert(store, bytes, format="bpk"))["fc.weight"].numpy().tolist() == [[0, 3], [1, 4], [2, 5]]
