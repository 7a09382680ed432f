"""`bs.plan`: the report of a load and nothing written; and the fields of that report."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import burnstore as bs
from burnstore.errors import LoadError, UsageError


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def report(source: Any, model: Any, **options: Any) -> bs.ApplyResult:
    """The report of a load, which is the same before, after, and in the error but for one line."""
    planned = bs.plan(source, model, **options).result
    try:
        done, note = bs.load(source, model, **options), []
    except LoadError as error:
        assert error.report is not None and "\n" not in str(error)
        done, note = error.report, ["nothing was written: the model is as it was"]
    assert done.to_dict() == {**planned.to_dict(), "warnings": planned.warnings + note}
    json.dumps(done.to_dict())
    return planned


def test_a_plan_writes_nothing_until_it_is_applied() -> None:
    model = nn.Linear(2, 3)
    before = [parameter.clone() for parameter in model.parameters()]
    plan = bs.plan({"weight": torch.ones(3, 2), "bias": torch.ones(3)}, model)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))
    assert plan.fault() is None and plan.model is model
    assert plan.apply() is plan.result
    assert all(bool(parameter.eq(1).all()) for parameter in model.parameters())


def test_a_plan_that_would_fail_says_why_and_fails_only_when_applied() -> None:
    model = {"a": zeros(2), "b": zeros(2)}
    plan = bs.plan({"a": np.ones(2, np.float32)}, model)
    fault = plan.fault()
    assert isinstance(fault, LoadError) and fault.report is not None
    assert (fault.report.applied, fault.report.missing) == (plan.result.applied, [("b", "")])
    with pytest.raises(LoadError, match="1 of 2 tensors is missing"):
        plan.apply()
    assert not model["a"].any()


def _replace(model: Any) -> None:
    model.weight = nn.Parameter(torch.zeros(3, 2))


def _resize(model: Any) -> None:
    model.weight.data = torch.zeros(4, 2)


def _cast(model: Any) -> None:
    model.half()


def _add(model: Any) -> None:
    model.register_buffer("more", torch.zeros(1))


def _remove(model: Any) -> None:
    del model.bias


def _expand(model: Any) -> None:
    model.weight.data = torch.zeros(1, 2).expand(3, 2)


def _reorder(model: Any) -> None:
    model.bias, model.weight = model.weight, model.bias


@pytest.mark.parametrize("change", [_replace, _resize, _cast, _add, _remove, _expand, _reorder])
def test_a_module_that_changed_after_planning_is_refused_and_stays(change: Any) -> None:
    model = nn.Linear(2, 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    plan = bs.plan({"weight": torch.ones(3, 2), "bias": torch.ones(3)}, model)
    change(model)
    with pytest.raises((UsageError, LoadError)):
        plan.apply()
    assert not any(bool(tensor.any()) for tensor in model.state_dict().values())


def test_an_array_that_changed_after_planning_is_refused_and_stays() -> None:
    def other(model: Any) -> None:
        model["w"] = zeros(4)

    def freeze(model: Any) -> None:
        model["w"].flags.writeable = False

    def reshape(model: Any) -> None:
        model["w"].shape = (2, 2)

    def drop(model: Any) -> None:
        del model["w"]

    for change in (other, freeze, drop) if np.lib.NumpyVersion(np.__version__) >= "2.5.0" else (other, freeze, reshape, drop):
        model = {"w": zeros(4), "v": zeros(1)}
        plan = bs.plan({"w": np.ones(4, np.float32), "v": np.ones(1, np.float32)}, model)
        change(model)
        with pytest.raises((UsageError, LoadError)):
            plan.apply()
        assert not any(array.any() for array in model.values())


# The report


def test_every_field_says_what_became_of_each_tensor() -> None:
    model = {
        "z": zeros(2),
        "half": zeros(2, dtype=np.float16),
        "wide": zeros(2, dtype=np.float64),
        "out": zeros(1),
        "gone": zeros(1),
    }
    model |= {"bad": zeros(3), "also": zeros(1)}
    source = {
        **{f"net.{name}": np.ones(2, np.float32) for name in ("half", "z", "wide", "bad")},
        "net.out": np.ones(1, np.float32),
        "y": np.ones(1),
        "x": np.ones(1),
    }
    result = report(source, model, rename={r"^net\.": "", "^nothing": "a"}, skip=["^out$", "^also$", "^never$"])
    assert result.applied == ["z", "half", "wide"]  # the model's order
    assert result.skipped == ["also", "out"]  # also what the file does not have
    assert result.missing == [("gone", "")]
    assert result.unused == ["x", "y"]
    assert [(error.kind, error.path, error.expected, error.found) for error in result.errors] == [
        ("ShapeMismatch", "bad", (3,), (2,))
    ]
    assert [(cast.path, str(cast.found), str(cast.dtype), cast.lossy) for cast in result.casts] == [
        ("half", "F32", "F16", True),
        ("wide", "F32", "F64", False),
    ]
    assert result.renames == [("net.z", "z"), ("net.half", "half"), ("net.wide", "wide")]
    assert (result.source, result.model, result.key, result.dialects) == ("<dict>", "<dict>", None, None)
    assert [warning for warning in result.warnings if "^nothing" in warning and "matched no name" in warning]
    assert [warning for warning in result.warnings if "^never$" in warning and "matched no tensor" in warning]
    assert len(result.warnings) == 2 and not result.is_success()
    assert not any(array.any() for array in model.values())


def test_dialects_say_whose_layout_the_file_has_and_how_that_is_known() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    spoken = report(bs.save(model, bytes, format="bpk"), model).dialects
    assert spoken is not None and (spoken.source, spoken.model, spoken.why) == ("burn", "pytorch", "its format")
    spoken = report(bs.save(model, bytes, format="bpk"), model, dialect="burn").dialects
    assert spoken is not None and spoken.why == "dialect="
    assert report(bs.save(model, bytes, format="pt"), model).dialects is None


@pytest.mark.parametrize(
    ("found", "wanted", "lossy"),
    [
        *(
            ("float32", "float16", True),
            ("float16", "float32", False),
            ("bfloat16", "float16", True),
            ("float64", "float32", True),
        ),
        *(
            ("int64", "int8", False),
            ("uint8", "bool", False),
            ("complex128", "complex64", True),
            ("float8_e5m2", "float16", False),
        ),
    ],
)
def test_a_cast_is_lossy_where_values_can_change(found: str, wanted: str, lossy: bool) -> None:
    model = {"w": torch.zeros(3, dtype=getattr(torch, wanted))}
    (cast,) = report({"w": torch.ones(3).to(getattr(torch, found))}, model).casts
    assert (cast.path, cast.lossy) == ("w", lossy)


def test_every_slot_is_in_exactly_one_list() -> None:
    weight = nn.Parameter(torch.zeros(2))
    model = nn.ParameterDict(
        {"a": weight, "b": weight, "c": weight, "d": torch.zeros(1), "e": torch.zeros(1), "f": torch.zeros(1)}
    )
    sources: list[dict[str, Any]] = [
        {"a": torch.ones(3), "d": torch.ones(1)},
        {"a": torch.ones(2), "b": torch.ones(2), "c": torch.zeros(2), "d": torch.ones(1)},
        {"c": torch.ones(2, dtype=torch.int32), "e": torch.ones(2)},
        {"b": torch.ones(2), "f": torch.ones(1)},
        {},
    ]
    for source in sources:
        result = report(source, model, skip="^f$", partial=True, validate=False)
        listed = [*result.applied, *result.skipped, *(path for path, _ in result.missing), *(path for path, _ in result.errors)]
        assert sorted(listed) == list("abcdef"), source


def test_what_was_not_stored_is_not_unused() -> None:
    tied = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(2, 3)})
    tied["b"].weight = tied["a"].weight
    data = bs.save(tied, bytes, format="safetensors")  # holds a.weight, and says that b.weight is the same
    stored = ["a.bias", "a.weight", "b.bias"]
    assert report(data, {"x": zeros(1)}).unused == stored
    assert report(data, {"x": zeros(1)}, rename={"^": "net."}).unused == [f"net.{name}" for name in stored]
    untied = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(2, 3)})
    assert report(data, untied).unused == []
    assert torch.equal(untied["b"].weight, tied["a"].weight)


# Options


def test_partial_accepts_what_is_missing_and_nothing_else() -> None:
    model = {"a": zeros(2), "b": zeros(2), "c": zeros(2)}
    assert bs.load({"a": np.ones(2, np.float32)}, model, partial=True).missing == [("b", ""), ("c", "")]
    assert model["a"].all()
    with pytest.raises(LoadError):
        bs.load({"a": np.ones(3, np.float32), "b": np.ones(2, np.float32)}, model, partial=True)
    assert not model["b"].any()


def test_without_validation_what_does_not_fit_keeps_its_values() -> None:
    model = {"a": zeros(2), "b": zeros(2)}
    result = bs.load({"a": np.ones(3, np.float32), "b": np.ones(2, np.float32)}, model, validate=False)
    assert ([error.path for error in result.errors], result.applied) == (["a"], ["b"])
    assert (model["a"].tolist(), model["b"].tolist()) == ([0, 0], [1, 1])
    with pytest.raises(LoadError, match="missing"):
        bs.load({"b": np.ones(2, np.float32)}, model, validate=False)


def test_a_load_that_applies_nothing_fails_whatever_is_allowed() -> None:
    for source, options in (({"z": zeros(1)}, {}), ({"a": zeros(9)}, {"validate": False}), ({"a": zeros(2)}, {"skip": "a"})):
        with pytest.raises(LoadError):
            bs.load(source, {"a": zeros(2)}, partial=True, **options)  # type: ignore[call-overload]
    with pytest.raises(LoadError, match="no tensors"):
        bs.load({"a": zeros(1)}, nn.ReLU())


def test_lists_with_gaps_are_counted_by_the_model_they_go_into() -> None:
    file = {name: np.full(1, at, np.float32) for at, name in enumerate(["fc.0.w", "fc.2.w", "fc.4.w", "keep.1.w"])}
    model = {"fc": [{"w": zeros(1)} for _ in range(3)], "keep": {"1": {"w": zeros(1)}}}
    result = bs.load(file, model, map_indices_contiguous=True)
    assert result.renames == [("fc.2.w", "fc.1.w"), ("fc.4.w", "fc.2.w")]
    assert [item["w"].tolist() for item in model["fc"]] == [[0], [1], [2]] and model["keep"]["1"]["w"].tolist() == [3]


def test_threads_and_progress_change_nothing_and_count_to_the_total() -> None:
    generator = np.random.default_rng(1)
    source = {f"t{at}": generator.standard_normal((500, 700)).astype(np.float32) for at in range(12)}
    data = bs.save(source, bytes, format="safetensors")
    for threads in (1, 2):
        steps: list[tuple[int, int]] = []
        model = {name: zeros(500, 700, dtype=np.float16 if name == "t3" else np.float32) for name in source}
        bs.load(data, model, threads=threads, progress=partial(lambda steps, *step: steps.append(step), steps))
        assert all((model[name] == array.astype(model[name].dtype)).all() for name, array in source.items())
        assert steps[-1][0] == steps[-1][1] == sum(array.nbytes for array in model.values()) and steps == sorted(steps)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"partal": True}, "did you mean 'partial'"),
        ({"dtype": "bf16"}, "whose dtype wins"),
        ({"dialect": "tensorflow"}, "dialect"),
        ({"progress": 3}, "progress"),
        ({"threads": "two"}, "threads"),
    ],
)
def test_an_option_that_means_nothing_is_refused_before_anything_is_written(option: Any, says: str) -> None:
    model = {"a": zeros(2)}
    with pytest.raises(UsageError, match=says):
        bs.load({"a": np.ones(2, np.float32)}, model, **option)
    assert not model["a"].any()
