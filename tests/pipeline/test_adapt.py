"""Adapters: the ready ones against the real Burn's files, and those that users write."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch

import burnstore as bs
from burnstore.pipeline.adapt import DialectAdapter
from tests.sources.handmade import burnpack_parts
from tests.torch_zoo import BURN_FORGETS, RAMP, collected, manifest

TO_BURN, TO_PYTORCH = bs.PyTorchToBurnAdapter, bs.BurnToPyTorchAdapter


def tensor(name: str, values: Any, *containers: str) -> bs.TensorSnapshot:
    return bs.TensorSnapshot.from_data(name, np.asarray(values), containers=[f"Struct:{container}" for container in containers])


def one(adapted: Any) -> bs.TensorSnapshot:
    assert isinstance(adapted, bs.TensorSnapshot)
    return adapted


# Against the real Burn


def test_burn_to_pytorch_gives_what_burn_writes_for_pytorch() -> None:
    wanted = safetensors.numpy.load_file(RAMP / "zoo.pytorch.safetensors")
    adapted = TO_PYTORCH().adapt_all(collected(RAMP / "zoo.bpk", RAMP / "zoo.manifest.json"))
    found = {item.name.replace(".BaseConv", "").replace(".Depthwise", ""): item for item in adapted}
    assert set(found) == {BURN_FORGETS.get(name, name) for name in wanted}
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[BURN_FORGETS.get(name, name)].numpy(), array)


def test_pytorch_to_burn_undoes_it() -> None:
    before = collected(RAMP / "zoo.bpk", RAMP / "zoo.manifest.json")
    again = TO_BURN().adapt_all(TO_PYTORCH().adapt_all(before))
    told = manifest(RAMP / "zoo.manifest.json")
    assert [item.name for item in again] == list(told)
    for item in again:
        row = told[item.name]
        assert hashlib.sha256(item.tobytes()).hexdigest() == row["sha256"] and [*item.shape] == row["shape"]


def same_as_burns(adapted: Sequence[bs.TensorSnapshot], file: Path) -> None:
    """Every tensor of a file of Burn's, read by plain bytes: name, dtype, shape, bytes."""
    header, data = burnpack_parts(file.read_bytes())
    entries: dict[str, Any] = header["tensors"]  # type: ignore[assignment]
    assert {item.name for item in adapted} == set(entries)
    for item in adapted:
        entry = entries[item.name]
        dtype = entry["dtype"] if isinstance(entry["dtype"], str) else "Bool"
        assert (item.dtype.name, [*item.shape]) == (dtype, entry["shape"]), item.name
        assert item.tobytes() == data[slice(*entry["data_offsets"])], item.name


def test_half_precision_gives_the_bytes_that_burn_writes(data: Path) -> None:
    adapted = bs.HalfPrecisionAdapter().adapt_all(collected(RAMP / "net.bpk", RAMP / "net.manifest.json"))
    same_as_burns(adapted, data / "burn" / "v0.22.1" / "adapters" / "net.half.bpk")


@pytest.mark.parametrize("model", ["net", "zoo", "seq"])
def test_half_precision_gives_the_bytes_that_burn_writes_for_every_model(shared: Path, model: str) -> None:
    burn = shared / "fixtures" / "burn" / "v0.22.1"
    before = collected(burn / "ramp" / f"{model}.bpk", burn / "ramp" / f"{model}.manifest.json")
    same_as_burns(bs.HalfPrecisionAdapter().adapt_all(before), burn / "adapters" / f"{model}.half.bpk")


@pytest.mark.parametrize("model", ["net", "zoo"])
def test_burn_to_pytorch_gives_the_bytes_that_burn_writes_for_every_model(shared: Path, model: str) -> None:
    burn = shared / "fixtures" / "burn" / "v0.22.1"
    before = collected(burn / "ramp" / f"{model}.bpk", burn / "ramp" / f"{model}.manifest.json")
    forgotten = {new: old for old, new in BURN_FORGETS.items()}
    adapted = [item.with_name(forgotten.get(item.name, item.name)) for item in TO_PYTORCH().adapt_all(before)]
    same_as_burns(adapted, burn / "adapters" / f"{model}.pytorch.bpk")


def test_a_layer_that_is_not_one_to_one_is_refused_rather_than_half_translated(shared: Path) -> None:
    """Burn turns the Linears inside an attention; what PyTorch has there is one fused tensor."""
    ramp = shared / "fixtures" / "burn" / "v0.22.1" / "ramp"
    before = collected(ramp / "seq.bpk", ramp / "seq.manifest.json")
    lstm = [item.changed(kind="Lstm") for item in before if item.containers[1:2] == ("Struct:Lstm",)]
    assert lstm
    with pytest.raises(bs.errors.DialectError, match="Lstm"):
        TO_PYTORCH().adapt_all(lstm)


# Dialects


def test_an_adapter_goes_by_the_kind_of_layer_and_never_by_the_shape() -> None:
    square = np.arange(9.0).reshape(3, 3)
    assert one(TO_BURN()(tensor("fc.weight", square, "Net", "Linear"))).numpy().tolist() == square.T.tolist()
    assert one(TO_BURN()(tensor("emb.weight", square, "Net", "Embedding"))).numpy().tolist() == square.tolist()
    assert one(TO_BURN()(tensor("fc.weight", square, "Net"))).numpy().tolist() == square.tolist()
    assert one(TO_BURN()(tensor("fc.weight", square))).numpy().tolist() == square.tolist()


@pytest.mark.parametrize(
    ("module", "leaf", "name"),
    [
        ("BatchNorm", "weight", "gamma"), ("BatchNorm", "bias", "beta"), ("BatchNorm", "running_mean", "running_mean"),
        ("LayerNorm", "weight", "gamma"), ("GroupNorm", "bias", "beta"), ("InstanceNorm", "weight", "gamma"),
        ("RmsNorm", "weight", "gamma"), ("PRelu", "weight", "alpha"), ("Linear", "bias", "bias"), ("Conv2d", "bias", "bias"),
        ("Net", "weight", "weight"),
    ],
)  # fmt: skip
def test_names_are_those_of_the_other_framework_and_back(module: str, leaf: str, name: str) -> None:
    before = tensor(f"a.b.{leaf}", [1.0], "Net", module)
    there = one(TO_BURN()(before))
    assert there.name == f"a.b.{name}"
    assert one(TO_PYTORCH()(there)).name == before.name


@pytest.mark.parametrize("cls", ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"])
def test_the_classes_of_torch_are_known_by_their_own_names(cls: str) -> None:
    assert one(TO_BURN()(tensor("bn.weight", [1.0], "Net", cls))).name == "bn.gamma"


def test_a_module_at_the_root_has_names_without_dots() -> None:
    assert one(TO_BURN()(tensor("weight", [1.0], "LayerNorm"))).name == "gamma"
    assert one(TO_BURN()(tensor("weight", [[1.0, 2.0]], "Linear"))).shape == (2, 1)


def test_a_tensor_without_axes_has_one_in_burn() -> None:
    adapted = one(TO_BURN()(tensor("bn.num_batches_tracked", np.array(7, np.int64), "BatchNorm")))
    assert adapted.shape == (1,) and adapted.numpy().tolist() == [7]
    assert one(TO_PYTORCH()(tensor("x", 1.0))).shape == ()


def test_a_weight_whose_rank_no_linear_has_is_left_alone() -> None:
    assert one(TO_BURN()(tensor("fc.weight", np.zeros((2, 3, 4)), "Linear"))).shape == (2, 3, 4)


def test_nothing_is_read_before_somebody_wants_the_values() -> None:
    asked: list[int] = []

    def values() -> np.ndarray:
        asked.append(1)
        return np.arange(6, dtype=np.float32).reshape(2, 3)

    lazy = bs.TensorSnapshot.from_closure("fc.weight", "F32", (2, 3), values, containers=["Struct:Linear"])
    adapter = TO_BURN().chain(bs.HalfPrecisionAdapter()).chain(bs.FloatCastAdapter("BF16"))
    (adapted,) = adapter.adapt_all([lazy])
    assert (adapted.shape, adapted.dtype.name, asked) == ((3, 2), "BF16", [])
    assert adapted.numpy().astype(np.float32).tolist() == [[0, 3], [1, 4], [2, 5]] and asked


def test_the_same_dialect_on_both_sides_changes_nothing() -> None:
    before = tensor("bn.weight", 1.0, "BatchNorm")
    assert DialectAdapter("burn", "burn")(before) is before


# Floats


@pytest.mark.parametrize("name", ["F16", "BF16", "F64", "bf16", "float16"])
def test_a_float_cast_rounds_as_the_library_does_and_leaves_what_is_no_float(name: str) -> None:
    values = np.array([1 / 3, -1e-6, 70000.0, np.inf, np.nan], np.float32)
    adapted = one(bs.FloatCastAdapter.to(name)(tensor("w", values)))
    wanted = {"F16": np.float16, "float16": np.float16, "F64": np.float64}.get(name, ml_dtypes.bfloat16)
    with np.errstate(over="ignore"):
        assert adapted.tobytes() == values.astype(wanted).tobytes()
    for other in (np.array([1, 2], np.int8), np.array([True])):
        before = tensor("n", other)
        assert bs.FloatCastAdapter("F16")(before) is before


@pytest.mark.parametrize("name", ["I32", "Bool", "U8", "nonsense"])
def test_a_float_cast_to_what_is_no_float_is_refused(name: str) -> None:
    with pytest.raises(bs.errors.DTypeError):
        bs.FloatCastAdapter(name)


def test_half_precision_goes_there_and_back_and_knows_its_modules() -> None:
    half = bs.HalfPrecisionAdapter()
    there = one(half(tensor("fc.weight", np.array([[0.5]], np.float32), "Net", "Linear")))
    assert there.dtype == "F16" and one(half(there)).dtype == "F32"
    assert one(half(tensor("bn.weight", np.float32([1.0]), "BatchNorm"))).dtype == "F32"
    assert one(half(tensor("fc.weight", np.float64([1.0]), "Linear"))).dtype == "F64"
    assert one(half(tensor("w", np.float32([1.0]), "Mine"))).dtype == "F32"
    for name in ("Mine", "Struct:Mine"):
        assert one(half.with_module(name)(tensor("w", np.float32([1.0]), "Mine"))).dtype == "F16"
    for name in ("Linear", "Struct:Linear"):
        assert one(half.without_module(name)(tensor("fc.weight", np.float32([1.0]), "Linear"))).dtype == "F32"
    assert one(half(tensor("fc.weight", np.float32([1.0]), "Linear"))).dtype == "F16"  # it is not changed itself
    with pytest.raises(bs.errors.UsageError, match="'BatchNorm' is not among its modules; they are Linear, "):
        half.without_module("BatchNorm")


# Chains


def test_a_chain_runs_in_order_and_is_flat() -> None:
    def tag(word: str) -> Any:
        class Tag(bs.Adapter):
            def adapt(self, tensor: bs.TensorSnapshot) -> bs.TensorSnapshot:
                return tensor.with_name(tensor.name + word)

        return Tag()

    chain = tag("1").chain(tag("2")).chain(bs.ChainAdapter(tag("3"), tag("4")))
    assert len(chain.adapters) == 4
    assert [item.name for item in chain.adapt_all([tensor("a", 1.0), tensor("b", 1.0)])] == ["a1234", "b1234"]
    assert [item.name for item in chain(tensor("c", 1.0))] == ["c1234"]
    assert bs.ChainAdapter().adapt_all([tensor("a", 1.0)])[0].name == "a"


def test_the_steps_of_a_chain_see_all_that_the_one_before_gave() -> None:
    class Split(bs.Adapter):
        def adapt(self, tensor: bs.TensorSnapshot) -> Iterable[bs.TensorSnapshot]:
            return (tensor.with_name(f"{tensor.name}.{at}") for at in range(2))

    class Count(bs.Adapter):
        def adapt_all(self, tensors: Sequence[bs.TensorSnapshot]) -> list[bs.TensorSnapshot]:
            return [item.with_name(f"{item.name} of {len(tensors)}") for item in tensors]

    names = [item.name for item in Split().chain(Count()).adapt_all([tensor("a", 1.0), tensor("b", 1.0)])]
    assert names == ["a.0 of 4", "a.1 of 4", "b.0 of 4", "b.1 of 4"]


def test_a_chain_looks_for_a_name_from_the_model_back_to_the_file() -> None:
    class Prefixed(bs.Adapter):
        def alternative_name(self, name: str, module_type: str) -> str | None:
            return f"old_{name}"

    assert TO_BURN().chain(bs.IdentityAdapter()).alternative_name("gamma", "LayerNorm") == "weight"
    assert Prefixed().chain(TO_BURN()).alternative_name("gamma", "LayerNorm") == "old_weight"
    assert TO_BURN().chain(bs.IdentityAdapter()).alternative_name("weight", "Linear") is None
