"""Which tensor of a file goes into which slot: names alone, no file and no model."""

from __future__ import annotations

from typing import Any

import pytest

from burnstore.dtypes import DType
from burnstore.pipeline.filter import PathFilter
from burnstore.pipeline.layers import Kinds
from burnstore.targets.bind import Binding, bind, kinds_of, paths_of

TO_TORCH, TO_BURN = ("burn", "pytorch"), ("pytorch", "burn")


class Slot:
    dtype = DType.of("F32")
    param_id = None

    def __init__(
        self, path: str, shape: tuple[int, ...] = (2,), one: object = None, variants: tuple[int, ...] = (), containers: Any = ()
    ) -> None:
        self.path, self.shape, self.variants, self.containers = path, shape, variants, tuple(containers)
        self.identity = one or path

    def address(self) -> None:
        return None


def bound(
    slots: list[Slot],
    shapes: Any,
    dialects: tuple[str, str] | None = None,
    kinds: Any = None,
    filter: Any = None,
    skip: bool = False,
    **more: Any,
) -> Binding:
    paths = paths_of(slots, skip)  # type: ignore[arg-type]
    layers = Kinds.of(None, kinds)
    shapes = shapes if isinstance(shapes, dict) else dict.fromkeys(shapes, (2,))
    return bind(slots, paths, kinds_of(slots, paths, layers), shapes, dialects, filter, **more)  # type: ignore[arg-type]


def pairs(binding: Binding) -> list[tuple[str, str]]:
    return [(pair.path, pair.name) for pair in binding.pairs]


def test_every_slot_and_every_name_is_accounted_for_once() -> None:
    binding = bound(
        [Slot("b"), Slot("a"), Slot("gone"), Slot("out")], ["z", "a", "b", "out", "y"], filter=PathFilter.of(None, "out")
    )
    assert pairs(binding) == [("b", "b"), ("a", "a")]
    assert (binding.skipped, [slot.path for slot in binding.missing]) == (["out"], ["gone"])
    assert binding.unused == ["y", "z"]  # what was skipped was known


def test_a_slot_that_a_filter_leaves_out_is_skipped_whether_or_not_the_file_has_it() -> None:
    binding = bound([Slot("a"), Slot("b")], ["a"], filter=PathFilter.of("^c", None))
    assert (binding.skipped, binding.missing, binding.pairs) == (["a", "b"], [], [])


def test_a_filter_sees_the_models_path_and_container() -> None:
    seen = []

    def note(path: str, container: str) -> bool:
        seen.append((path, container))
        return True

    slot = Slot("norm.weight", containers=["Struct:Net", "Vec", "Struct:LayerNorm"])
    bound([slot], ["norm.gamma"], TO_TORCH, {"norm": "LayerNorm"}, PathFilter.of(note, None))
    assert seen == [("norm.weight", "Net.Vec.LayerNorm")]


@pytest.mark.parametrize(
    ("kind", "dialects", "path", "shape", "name", "axes"),
    [
        ("Linear", TO_TORCH, "l.weight", (2, 3), "l.weight", (1, 0)),
        ("Linear", TO_BURN, "l.weight", (2, 3), "l.weight", (1, 0)),
        ("Linear", TO_TORCH, "l.bias", (2,), "l.bias", None),
        ("Linear", TO_TORCH, "l.weight", (2, 3, 1, 1), "l.weight", None),  # a convolution under the name of a Linear
        ("Linear", None, "l.weight", (2, 3), "l.weight", None),
        ("keep", TO_TORCH, "l.weight", (2, 3), "l.weight", None),
        ("Conv2d", TO_TORCH, "l.weight", (2, 3, 1, 1), "l.weight", None),
        ("BatchNorm", TO_TORCH, "l.weight", (2,), "l.gamma", None),
        ("BatchNorm", TO_TORCH, "l.bias", (2,), "l.beta", None),
        ("BatchNorm", TO_TORCH, "l.running_mean", (2,), "l.running_mean", None),
        ("BatchNorm", TO_BURN, "l.gamma", (2,), "l.weight", None),
        ("GroupNorm", TO_TORCH, "l.weight", (2,), "l.gamma", None),
        ("InstanceNorm", TO_TORCH, "l.bias", (2,), "l.beta", None),
        ("RmsNorm", TO_TORCH, "l.weight", (2,), "l.gamma", None),
        ("LayerNorm", TO_BURN, "l.beta", (2, 3), "l.bias", None),
        ("PRelu", TO_TORCH, "l.weight", (1,), "l.alpha", None),
        ("Embedding", TO_TORCH, "l.weight", (2, 3), "l.weight", None),
    ],
)
def test_a_layer_finds_its_tensors_under_the_dialects_names(
    kind: str, dialects: Any, path: str, shape: Any, name: str, axes: Any
) -> None:
    (pair,) = bound([Slot(path, shape)], {name: shape}, dialects, {"l": kind}).pairs
    assert (pair.path, pair.name, pair.kind, pair.axes) == (path, name, kind, axes)


def test_a_layer_at_the_root_has_no_dots() -> None:
    assert pairs(bound([Slot("weight"), Slot("bias")], ["gamma", "beta"], TO_TORCH, {"": "LayerNorm"})) == [
        ("weight", "gamma"),
        ("bias", "beta"),
    ]


def test_the_models_own_name_comes_before_the_dialects() -> None:
    assert pairs(bound([Slot("n.weight")], ["n.weight", "n.gamma"], TO_TORCH, {"n": "LayerNorm"})) == [("n.weight", "n.weight")]


def test_one_tensor_that_two_slots_claim_is_told_with_both() -> None:
    slots = [Slot("n.weight"), Slot("n.gamma")]
    assert bound(slots, ["n.gamma"], TO_TORCH, {"n": "LayerNorm"}).claimed == [("n.gamma", "n.weight", "n.gamma")]
    tied = [Slot("n.weight", one=1), Slot("n.gamma", one=1)]
    assert not bound(tied, ["n.gamma"], TO_TORCH, {"n": "LayerNorm"}).claimed


def test_an_adapters_alternative_is_asked_with_the_leaf_and_the_kind_of_layer() -> None:
    asked = []

    def alternative(leaf: str, kind: str) -> str | None:
        asked.append((leaf, kind))
        return "kernel" if leaf == "weight" else None

    slots = [Slot("a.weight"), Slot("b.bias", containers=["Struct:Net", "Struct:Mine"])]
    assert pairs(bound(slots, ["a.kernel"], None, {"a": "Linear"}, alternative=alternative)) == [("a.weight", "a.kernel")]
    assert asked == [("weight", "Linear"), ("bias", "Mine")]


def test_a_variant_of_an_enum_in_the_file_is_found_by_a_model_that_has_none() -> None:
    assert pairs(bound([Slot("conv.weight")], ["conv.BaseConv.weight"], TO_TORCH)) == [("conv.weight", "conv.BaseConv.weight")]
    assert not pairs(bound([Slot("conv.weight")], ["conv.BaseConv.weight"]))
    both = bound([Slot("conv.weight")], ["conv.BaseConv.weight", "conv.Other.weight"], TO_TORCH)
    assert not both.pairs and len(both.unused) == 2  # which is meant is not known


def test_a_variant_in_the_model_is_left_out_where_the_file_has_none() -> None:
    slot = Slot("conv.BaseConv.weight", variants=(1,))
    assert paths_of([slot], False) == ["conv.BaseConv.weight"]  # type: ignore[list-item]
    assert pairs(bound([slot], ["conv.weight"], skip=True)) == [("conv.weight", "conv.weight")]
    assert kinds_of([slot], ["conv.weight"], Kinds({"conv.BaseConv": "Conv2d"})) == ["Conv2d"]  # type: ignore[list-item]


def test_slots_that_are_one_tensor_are_filled_once() -> None:
    slots = [Slot("a", one=1), Slot("b", one=1), Slot("c", one=1)]
    binding = bound(slots, ["b"])
    assert pairs(binding) == [("b", "b")]
    assert [(slot.path, path) for slot, path in binding.tied] == [("a", "b"), ("c", "b")]
    assert not binding.missing
    twice = bound(slots, ["a", "c"])
    assert pairs(twice) == [("a", "a")]
    assert [(one.path, two.path) for one, two in twice.rivals] == [("a", "c")]
    assert not bound(slots, []).tied and len(bound(slots, []).missing) == 3


def test_an_alias_is_not_filled_from_a_name_that_was_left_out() -> None:
    slots = [Slot("a", one=1), Slot("b", one=1)]
    binding = bound(slots, ["a"], filter=PathFilter.of(None, "a"))
    assert (binding.skipped, binding.pairs, [slot.path for slot in binding.missing]) == (["a"], [], ["b"])


@pytest.mark.parametrize(("kind", "optional"), [("BatchNorm", True), ("InstanceNorm", True), ("keep", False), ("Linear", False)])
def test_only_norms_can_do_without_a_counter(kind: str, optional: bool) -> None:
    binding = bound([Slot("n.num_batches_tracked", ())], [], None, {"n": kind})
    assert bool(binding.missing) is not optional


def test_names_that_are_implied_are_not_unused() -> None:
    assert bound([], ["kept", "alias"], implied=["alias"]).unused == ["kept"]
