"""The dialect table against what the real Burn and torch call their tensors."""

from __future__ import annotations

import inspect

import pytest
import safetensors
import torch

import burnstore as bs
from burnstore.pipeline import layers
from burnstore.pipeline.layers import BURN, DIALECTS, KEEP, PYTORCH, Kinds, kind_of, rules, rules_from
from burnstore.targets.torch_modules import TorchModule
from tests.torch_zoo import BURN_FORGETS, RAMP, Zoo, manifest


def shapes_for_pytorch() -> dict[str, tuple[int, ...]]:
    """What Burn itself writes for PyTorch, where it forgets two layers; the variants of enums are left out there."""
    with safetensors.safe_open(RAMP / "zoo.pytorch.safetensors", "np") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return {BURN_FORGETS.get(name, name): shape for name, shape in shapes.items()}


def test_the_table_gives_the_names_and_shapes_that_burn_writes_for_pytorch() -> None:
    wanted = shapes_for_pytorch()
    found = {}
    for path, row in manifest(RAMP / "zoo.manifest.json").items():
        parent, dot, leaf = path.rpartition(".")
        kind = kind_of(row["containers"][-1].removeprefix("Struct:"))
        rule = rules_from(kind, BURN, PYTORCH).get(leaf) if kind else None
        shape = tuple(row["shape"])
        if rule is not None:
            assert rule.fits(shape)
            leaf, shape = rule.target, shape if rule.axes is None else tuple(shape[axis] for axis in rule.axes)
        found[f"{parent}{dot}{leaf}".replace(".BaseConv", "").replace(".Depthwise", "")] = shape
    assert found == wanted


def test_the_table_gives_the_names_and_shapes_that_burns_modules_have() -> None:
    """From torch's own model to what Burn's manifest says."""
    target = TorchModule(Zoo())
    found = {}
    for slot in target.slots:
        parent, dot, leaf = slot.path.rpartition(".")
        rule = rules_from(target.kinds[parent], PYTORCH, BURN).get(leaf)
        shape = slot.shape
        if rule is not None:
            leaf, shape = rule.target, shape if rule.axes is None else tuple(shape[axis] for axis in rule.axes)
        found[f"{parent}{dot}{leaf}"] = shape
    assert found.pop("batch_norm.num_batches_tracked") == ()
    assert found == {path: tuple(row["shape"]) for path, row in manifest(RAMP / "zoo.manifest.json").items()}


@pytest.mark.parametrize("kind", layers._TABLE)
@pytest.mark.parametrize("there", DIALECTS)
def test_the_way_back_undoes_the_way_there(kind: str, there: str) -> None:
    (back,) = set(DIALECTS) - {there}
    for rule in rules(kind, there, back).values():
        again = rules_from(kind, back, there)[rule.target]
        assert again.target == rule.source and again.rank == rule.rank
        if rule.axes is not None:
            assert again.axes is not None
            assert [rule.axes[axis] for axis in again.axes] == list(range(len(rule.axes)))


@pytest.mark.parametrize("kind", [*layers._TABLE, "Lstm", KEEP, "Net"])
def test_within_one_dialect_nothing_changes(kind: str) -> None:
    assert all(not rules(kind, dialect, dialect) and not rules_from(kind, dialect, dialect) for dialect in DIALECTS)


def _names_in_init(cls: type) -> tuple[str, ...]:
    code = getattr(vars(cls).get("__init__"), "__code__", None)
    return code.co_names if code else ()


def layers_of_torch() -> list[type]:
    """Every class of `torch.nn` that makes parameters of its own."""
    classes = [cls for cls in vars(torch.nn).values() if inspect.isclass(cls) and issubclass(cls, torch.nn.Module)]
    return [
        cls
        for cls in classes
        if "Lazy" not in cls.__name__  # it becomes another class when it is first used
        and any("Parameter" in _names_in_init(kind) for kind in cls.__mro__ if kind is not torch.nn.Module)
    ]


def test_the_list_of_torchs_layers_is_not_empty() -> None:
    assert {"Linear", "BatchNorm2d", "LSTM", "Bilinear", "RMSNorm"} <= {cls.__name__ for cls in layers_of_torch()}


@pytest.mark.parametrize("cls", layers_of_torch(), ids=lambda cls: cls.__name__)
def test_every_layer_of_torch_with_parameters_of_its_own_is_in_the_table_or_refused(cls: type) -> None:
    assert kind_of(cls.__name__) is not None or cls.__name__ in ("RNNBase", "RNNCellBase")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Linear", "Linear"), ("BatchNorm1d", "BatchNorm"), ("BatchNorm2d", "BatchNorm"), ("BatchNorm3d", "BatchNorm"),
        ("SyncBatchNorm", "BatchNorm"), ("InstanceNorm2d", "InstanceNorm"), ("RMSNorm", "RmsNorm"), ("RmsNorm", "RmsNorm"),
        ("PReLU", "PRelu"), ("PRelu", "PRelu"), ("EmbeddingBag", "Embedding"), ("ConvTranspose3d", "ConvTranspose3d"),
        ("DeformConv2d", "Conv2d"), ("NonDynamicallyQuantizableLinear", "Linear"), ("LSTM", "LSTM"), ("BiLstm", "BiLstm"),
        ("Sequential", None), ("Net", None), ("", None),
    ],
)  # fmt: skip
def test_both_frameworks_words_for_a_kind_are_known(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "MultiheadAttention", "Bilinear", "Lstm", "BiGru", "MultiHeadAttention"])
def test_a_layer_that_is_not_one_to_one_is_refused_and_says_what_to_do(kind: str) -> None:
    with pytest.raises(bs.errors.DialectError, match=rf"tensor 'rnn\.w'.*{kind}.*skip=.*\"keep\""):
        layers.refuse_woven(kind, "rnn.w", PYTORCH, BURN)


def test_a_layer_that_is_one_to_one_is_not_refused() -> None:
    for kind in (*layers._TABLE, KEEP, "Net"):
        layers.refuse_woven(kind, "w", PYTORCH, BURN)


@pytest.mark.parametrize(
    ("kind", "shape", "fits"),
    [
        ("Linear", (3, 4), True),
        ("Linear", (2, 2, 3, 3), False),
        ("BatchNorm", (4,), True),
        ("BatchNorm", (4, 2, 3, 3), False),
        ("LayerNorm", (4, 5), True),
    ],
)
def test_the_rank_of_a_tensor_can_rule_a_kind_out(kind: str, shape: tuple[int, ...], fits: bool) -> None:
    assert rules_from(kind, PYTORCH, BURN)["weight"].fits(shape) is fits


def test_only_the_counter_of_norms_is_something_a_model_can_do_without() -> None:
    assert layers.is_optional("BatchNorm", "num_batches_tracked")
    assert not layers.is_optional("Linear", "num_batches_tracked") and not layers.is_optional(None, "num_batches_tracked")
    assert not layers.is_optional("BatchNorm", "running_mean")


@pytest.mark.parametrize("name", ["keras", "", "PyTorch", "torch"])
def test_an_unknown_dialect_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(bs.errors.UsageError, match=r"to_dialect='.*' is not known; known are pytorch, burn, keep"):
        layers.checked_dialect(name, "to_dialect")


# Kinds


def test_patterns_are_asked_in_order_and_before_what_a_model_says() -> None:
    kinds = Kinds.of({r"^head\.": "Embedding", r"^h": "Linear"}, {"head": "LayerNorm", "body": "LayerNorm", "": "Linear"})
    assert [kinds.of_tensor(name) for name in ("head.weight", "hips.weight", "body.weight", "body.0.weight", "weight")] == [
        "Embedding", "Linear", "LayerNorm", None, "Linear",
    ]  # fmt: skip


def test_a_kind_may_be_said_in_the_words_of_either_framework() -> None:
    kinds = Kinds.of({"^a": "BatchNorm2d", "^b": "RMSNorm", "^c": "RmsNorm", "^d": "keep", "^e": "LSTM"})
    assert [kinds.of_tensor(f"{name}.weight") for name in "abcdef"] == [
        "BatchNorm", "RmsNorm", "RmsNorm", KEEP, "LSTM", None,
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["linear", "Dense", "", None, 3])
def test_a_kind_that_nobody_knows_is_refused_with_those_that_are(kind: object) -> None:
    with pytest.raises(bs.errors.UsageError, match="no such kind of layer; known are Linear, "):
        Kinds.of({"^fc": kind})  # type: ignore[dict-item]


def test_the_patterns_of_kinds_are_rusts() -> None:
    assert Kinds.of({r"(?<layer>fc)\z": "Linear"}).of_tensor("x.fc") == "Linear"
    with pytest.raises(bs.errors.BurnstoreError, match=r"\("):
        Kinds.of({"(": "Linear"})


def test_kinds_that_say_nothing_are_false() -> None:
    assert not Kinds.of(None) and not Kinds.of({}, {}) and Kinds.of({"a": "Linear"}) and Kinds.of(None, {"a": "Linear"})
