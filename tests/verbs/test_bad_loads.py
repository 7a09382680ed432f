"""Loads that cannot be right: a clear error, and the model bit for bit as it was."""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import burnstore as bs
from burnstore.errors import BurnstoreError, DuplicateNameError, LoadError, UsageError

F32 = np.float32


class Net(nn.Module):
    """A little of everything: strides, a buffer, integers, tied weights."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv = nn.Conv2d(2, 3, 2).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.norm = nn.BatchNorm2d(3)
        self.fc = nn.Linear(3, 4)
        self.tied = nn.Linear(3, 4)
        self.tied.weight = self.fc.weight
        self.register_buffer("steps", torch.arange(3, dtype=torch.int8))


def fingerprint(model: Any) -> list[Any]:
    """Everything that one could see of a model: objects, places, bits and flags."""
    if isinstance(model, nn.Module):
        tensors: Any = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
        return [
            (
                name,
                id(t),
                t.data_ptr(),
                t.dtype,
                t.shape,
                t.stride(),
                t.requires_grad,
                t._version,
                t.detach().clone().numpy().tobytes(),
            )
            for name, t in tensors
        ]
    return [(name, id(array), array.dtype, array.shape, array.strides, array.tobytes()) for name, array in model.items()]


def good() -> dict[str, Any]:
    """Other values for all of it, in PyTorch's layout; norms and sides tell the dialect."""
    generator = torch.Generator().manual_seed(5)
    state = {name: torch.rand(value.shape, generator=generator).to(value.dtype) for name, value in Net().state_dict().items()}
    state["tied.weight"] = state["fc.weight"].clone()
    return state


def saved(state: Any) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(state, buffer)
    return buffer.getvalue()


def _without(name: str) -> dict[str, Any]:
    return {key: value for key, value in good().items() if key != name}


def _quantized() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8)


def _raise(*_: Any) -> Any:
    raise ZeroDivisionError("inside")


def _adapter(change: Callable[[bs.TensorSnapshot], Any]) -> dict[str, Any]:
    return {"adapter": lambda tensor: change(tensor) if tensor.name == "fc.bias" else tensor, "dialect": "keep"}


def _shaped(*shape: int) -> dict[str, Any]:
    return _adapter(lambda tensor: tensor.changed(shape=shape))


# what is wrong: (the file, the options, what the error says)
CASES: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "shape": (lambda: good() | {"fc.bias": torch.ones(5)}, {}, r"another shape \(fc\.bias\)"),
    "rank": (lambda: good() | {"fc.bias": torch.ones(4, 1)}, {}, r"another shape \(fc\.bias\)"),
    "same size, other shape": (lambda: good() | {"fc.weight": torch.ones(2, 6)}, {}, r"another shape \(fc\.weight"),
    "float into int": (lambda: good() | {"steps": torch.ones(3)}, {}, r"dtype that does not fit \(steps\)"),
    "int into float": (lambda: good() | {"fc.bias": torch.ones(4, dtype=torch.int32)}, {}, r"does not fit \(fc\.bias\)"),
    "float into int, the file's way": (lambda: good() | {"steps": torch.ones(3)}, {"dtype": "file"}, r"does not fit \(steps\)"),
    "an integer that does not fit": (lambda: good() | {"steps": torch.tensor([1, 2, 300])}, {}, r"\(steps\)"),
    "complex into float": (lambda: good() | {"fc.bias": torch.ones(4, dtype=torch.complex64)}, {}, r"fc\.bias"),
    "missing": (lambda: _without("conv.bias"), {}, r"missing \(conv\.bias\)"),
    "nothing fits": (lambda: {"z": torch.ones(1)}, {"partial": True}, "nothing was loaded"),
    "empty": (dict, {}, "missing"),
    "everything skipped": (good, {"skip": "."}, "nothing was loaded"),
    "names that collide": (good, {"rename": {r"^(fc|tied)\.": "fc."}}, r"fc\.(weight|bias).*tied\.(weight|bias)"),
    "invalid regex": (good, {"rename": {"(": ""}}, "not closed"),
    "invalid filter": (good, {"only": "[z-a]"}, r"\[z-a\]"),
    "unsupported regex": (good, {"only": r"[[:alpha:]]"}, "alpha"),
    "predicate that raises": (good, {"only": _raise}, "ZeroDivisionError: inside"),
    "adapter that raises": (good, _adapter(_raise), "ZeroDivisionError: inside"),
    "adapter that gives a number": (good, _adapter(lambda tensor: 3), "adapter"),
    "adapter that gives a list of text": (good, _adapter(lambda tensor: ["fc.bias"]), "gave an object of type str"),
    "adapter that drops a tensor": (good, _adapter(lambda tensor: None), r"missing \(fc\.bias\)"),
    "adapter that makes another shape": (good, _shaped(2, 2), r"another shape \(fc\.bias\)"),
    "adapter that makes two of one name": (good, _adapter(lambda t: [t, t.with_name("conv.bias")]), r"conv\.bias"),
    "adapter that announces less": (lambda: good() | {"fc.bias": torch.ones(64)}, _shaped(4), r"fc\.bias"),
    "adapter that announces more": (lambda: good() | {"fc.bias": torch.ones(1)}, _shaped(4), r"fc\.bias"),
    "no adapter": (good, {"adapter": 3}, "is no adapter"),
    "tied weights of two values": (lambda: good() | {"tied.weight": torch.ones(4, 3)}, {}, "different values for the two"),
    "sparse": (lambda: good() | {"fc.bias": torch.ones(4).to_sparse()}, {}, "sparse|could not be"),
    "quantised": (lambda: good() | {"fc.bias": _quantized()}, {}, r"fc\.bias"),
    "unknown dialect": (good, {"dialect": "tensorflow"}, "tensorflow"),
}  # fmt: skip


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("made_by", ["hand", "file"])
@pytest.mark.parametrize("what", CASES)
def test_a_load_that_is_refused_leaves_the_module_as_it_was(what: str, made_by: str, assign: bool) -> None:
    make, options, says = CASES[what]
    if made_by == "hand" and what in ("sparse", "quantised"):
        made_by = "file"
    state, model = make(), Net()
    before = fingerprint(model)
    options = {"dialect": "pytorch", "assign": assign, **options}
    with pytest.raises(BurnstoreError, match=f"(?s){says}") as caught:
        bs.load(saved(state) if made_by == "file" else state, model, **options)
    assert fingerprint(model) == before
    assert "\n" not in str(caught.value)
    if isinstance(caught.value, LoadError):
        assert caught.value.report is not None
        assert caught.value.report.summary() in str(caught.value) or "nothing was loaded" in str(caught.value)


def test_the_good_file_that_all_of_these_differ_from_is_loaded() -> None:
    for source in (good(), saved(good())):
        model = Net()
        assert bs.load(source, model).applied == list(model.state_dict())
        assert all(torch.equal(value, good()[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    "what", ["shape", "missing", "an integer that does not fit", "names that collide", "tied weights of two values"]
)
def test_a_dict_of_arrays_is_left_as_it_was_too(what: str) -> None:
    make, options, says = CASES[what]
    model = {name: value.numpy().copy() for name, value in Net().state_dict().items()}
    model["tied.weight"] = model["fc.weight"]
    before = fingerprint(model)
    with pytest.raises(BurnstoreError, match=says):
        bs.load(saved(make()), model, **options)
    assert fingerprint(model) == before


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "(a*)*b"])
@pytest.mark.parametrize("option", ["only", "skip", "rename"])
def test_a_regex_that_would_backtrack_for_ever_answers_at_once(pattern: str, option: str) -> None:
    name = "a" * 60 + "!"
    value: Any = {pattern: "z"} if option == "rename" else pattern
    started = time.monotonic()
    try:
        bs.load({name: np.ones(2, F32)}, {name: np.zeros(2, F32)}, **{option: value})
    except BurnstoreError:
        pass
    assert time.monotonic() - started < 5  # and not until the end of the world


def test_what_the_errors_of_a_report_say() -> None:
    model = {"i": np.zeros(2, np.int8), "s": np.zeros(2, F32), "d": np.zeros(2, F32)}
    with pytest.raises(LoadError) as caught:
        bs.load({"i": np.array([1, 300]), "s": np.ones(3, F32), "d": np.ones(2, np.int64)}, model)
    assert caught.value.report is not None
    errors = {error.path: error for error in caught.value.report.errors}
    assert list(errors) == ["i", "s", "d"]
    assert errors["i"].kind == "LoadError" and "300 at [1] does not fit into I8" in errors["i"].message
    assert (errors["s"].kind, errors["s"].expected, errors["s"].found) == ("ShapeMismatch", (2,), (3,))
    assert (errors["d"].kind, str(errors["d"].expected), str(errors["d"].found)) == ("DTypeMismatch", "F32", "I64")


def test_integers_that_fit_are_cast_and_the_last_that_does_not_is_found() -> None:
    model = {"i": np.zeros(300_000, np.int8)}
    values = np.full(300_000, 127, np.int64)
    bs.load({"i": values}, model)
    assert (model["i"] == 127).all()
    values[-1] = 128
    with pytest.raises(LoadError) as caught:
        bs.load(bs.save({"i": values}, bytes, format="safetensors"), model)
    assert "128 at [299999]" in str(caught.value.report) and (model["i"] == 127).all()


@pytest.mark.parametrize("wrong", [lambda: np.ones(5, F32), _raise, lambda: b"123", lambda: "text"])
def test_a_function_that_fails_while_it_is_read_says_that_some_tensors_are_new(wrong: Any) -> None:
    """What nobody can know before: each tensor then has its old values or its new ones."""
    model = {"a": np.zeros(3, F32), "b": np.zeros(3, F32)}
    source = [bs.TensorSnapshot.from_data("a", np.ones(3, F32)), bs.TensorSnapshot.from_closure("b", "F32", (3,), wrong)]
    with pytest.raises((BurnstoreError, ZeroDivisionError)):
        bs.load(source, model)
    assert model["a"].tolist() in ([0, 0, 0], [1, 1, 1]) and model["b"].tolist() == [0, 0, 0]


def test_a_file_that_is_cut_after_it_was_opened_is_found_out_before_anything_is_written(tmp_path: Any) -> None:
    path = tmp_path / "m.safetensors"
    bs.save({"a": np.ones(4096, F32), "b": np.ones(4096, F32)}, path)
    for verb in ("load", "plan"):
        model = {"a": np.zeros(4096, F32), "b": np.zeros(4096, F32)}
        whole = path.read_bytes()
        store = bs.open(path, io="pread")
        plan = bs.plan(store, model)
        path.write_bytes(whole[:-5000])
        with pytest.raises(BurnstoreError):
            bs.load(store, model) if verb == "load" else plan.apply()
        assert not model["a"].any() and not model["b"].any()
        path.write_bytes(whole)


@pytest.mark.parametrize("threads", [1, 2])
def test_after_an_interruption_each_tensor_is_old_or_new_and_loading_again_mends_it(threads: int) -> None:
    source = {f"t{at}": np.full((600, 1000), at + 1, F32) for at in range(16)}
    data = bs.save(source, bytes, format="safetensors")
    model = {name: np.zeros((600, 1000), F32) for name in source}

    def interrupt(done: int, total: int) -> None:
        if done > total // 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bs.load(data, model, threads=threads, progress=interrupt)
    settled = {name: array.copy() for name, array in model.items()}
    # large tensors are read in pieces, so that at most those in flight are half new
    half = [name for name, array in model.items() if not (array == array[0, 0]).all()]
    assert len(half) <= threads and any(array.any() for array in model.values())
    time.sleep(0.02)
    assert all((array == settled[name]).all() for name, array in model.items())  # nothing goes on behind one's back
    bs.load(data, model, threads=threads)
    assert all((model[name] == array).all() for name, array in source.items())


def test_an_interruption_while_values_are_made_leaves_a_model_that_is_given_new_arrays() -> None:
    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    model = {"a": np.zeros(3, F32)}
    for verb in (
        lambda: bs.loaded({"a": np.ones(3, F32)}, model, progress=interrupt),
        lambda: bs.load({"a": np.ones(3)}, model, dtype="file", progress=interrupt),
    ):
        with pytest.raises(KeyboardInterrupt):
            verb()
        assert model["a"].dtype == F32 and not model["a"].any()


def test_one_module_under_two_names_is_one_module() -> None:
    layer = nn.Linear(2, 3)
    model = nn.Sequential(layer, layer)
    values = {f"{at}.{name}": torch.rand(value.shape) for at in (0, 1) for name, value in layer.state_dict().items()}
    before = fingerprint(model)
    with pytest.raises(LoadError, match=r"0\.weight"):
        bs.load(values, model)
    assert fingerprint(model) == before
    bs.load({name: value for name, value in values.items() if name[0] == "1"}, model)
    assert torch.equal(layer.weight, values["1.weight"])


def test_one_tensor_that_two_slots_claim_is_nobodys() -> None:
    class Either(bs.Adapter):
        def alternative_name(self, name: str, module_type: str) -> str:
            return "w"

    model = {"a": np.zeros(2, F32), "b": np.zeros(2, F32)}
    with pytest.raises(LoadError) as caught:
        bs.load({"w": np.ones(2, F32)}, model, adapter=Either())
    assert "'w' would also go into 'b'" in str(caught.value.report)
    assert not model["a"].any() and not model["b"].any()


def test_names_that_are_twice_in_a_list_are_refused_and_apply_takes_the_last() -> None:
    twice = [bs.TensorSnapshot.from_data("a", np.full(2, at, F32)) for at in (1, 2)]
    model = {"a": np.zeros(2, F32)}
    with pytest.raises(DuplicateNameError, match="'a'"):
        bs.load(twice, model)
    assert not model["a"].any()
    assert bs.apply(twice, model).warnings and model["a"].tolist() == [2, 2]


def test_apply_writes_what_fits_and_reports_the_rest() -> None:
    model = {"a": np.zeros(2, F32), "b": np.zeros(2, F32), "c": np.zeros(1, F32)}
    result = bs.apply(bs.collect({"a": np.ones(3, F32), "b": np.ones(2, F32), "z": np.ones(1)}), model)
    assert (result.applied, [e.path for e in result.errors], result.missing, result.unused) == (["b"], ["a"], [("c", "")], ["z"])
    assert model["b"].all() and not model["a"].any()
    assert not bs.apply([], model).applied  # nothing to do is no error here


def test_a_store_that_is_open_has_its_format_already() -> None:
    store = bs.open(bs.save({"a": np.ones(2, F32)}, bytes, format="bpk"))
    for options in ({"format": "pt"}, {"key": "x"}):
        with pytest.raises(UsageError, match="open already"):
            bs.load(store, {"a": np.zeros(2, F32)}, **options)  # type: ignore[arg-type]
