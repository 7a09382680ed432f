"""From file to file, and from a model to a file: whose layout the tensors have."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from torch import nn

import burnstore as bs
from tests.sources.handmade import burnpack_parts, safetensors_bytes
from tests.torch_zoo import RAMP, Zoo, ramp_zoo
from tests.verbs.laid_out import NO_GAPS, Net, burns, pickled, random_net, same


@pytest.fixture(scope="module")
def net() -> Net:
    return random_net()


# .pt to .bpk


def state_dict_like_the_model(net: Net, **keywords: Any) -> bytes:
    return bs.convert(pickled(net.state_dict()), bytes, format="bpk", like=net, **keywords)


def kinds_said(net: Net, **keywords: Any) -> bytes:
    kinds = {"^embed": "Embedding", "^norm": "LayerNorm", r"^list\.2": "BatchNorm", "^act": "PReLU", "fc|list": "Linear"}
    return bs.convert(pickled(net.state_dict()), bytes, format="bpk", kinds=kinds, **keywords)


def whole_model(net: Net, **keywords: Any) -> bytes:
    return bs.convert(pickled(net), bytes, format="bpk", **keywords)


def model_itself(net: Net, **keywords: Any) -> bytes:
    return bs.save(net, bytes, format="bpk", **keywords)


def snapshots_of_it(net: Net, **keywords: Any) -> bytes:
    return bs.save(bs.collect(net), bytes, format="bpk", dialect="pytorch", **keywords)


def like_whole_model(net: Net, **keywords: Any) -> bytes:
    return bs.convert(pickled(net.state_dict()), bytes, format="bpk", like=pickled(net), **keywords)


WAYS = [state_dict_like_the_model, kinds_said, whole_model, model_itself, snapshots_of_it, like_whole_model]
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


@every_way
def test_a_model_of_torchs_lies_in_a_bpk_as_burn_wants_it(way: Any, net: Net) -> None:
    with pytest.warns(bs.errors.BurnstoreWarning, match=r"list\.2\.(weight|gamma) is now list\.1\.gamma"):
        data = way(net)
    same(data, burns(net, NO_GAPS))
    assert "dialect" not in (burnpack_parts(data)[0].get("metadata") or {})  # type: ignore[operator]


@every_way
def test_the_numbers_of_lists_stay_where_that_is_said(way: Any, net: Net) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(way(net, map_indices_contiguous=False), burns(net))


@pytest.mark.parametrize("way", [whole_model, model_itself, snapshots_of_it], ids=lambda way: way.__name__)
def test_a_prefix_that_is_added_does_not_hide_the_kinds(way: Any, net: Net) -> None:
    data = way(net, map_indices_contiguous=False, rename={"^": "model."})
    same(data, {f"model.{name}": array for name, array in burns(net).items()})


def test_kinds_and_a_model_that_is_like_it_speak_of_the_names_after_renaming(net: Net) -> None:
    wrapped = pickled({f"module.{name}": tensor for name, tensor in net.state_dict().items()})
    keywords: dict[str, Any] = {"format": "bpk", "map_indices_contiguous": False}
    same(bs.convert(wrapped, bytes, like=net, rename={r"^module\.": ""}, **keywords), burns(net))
    for like in (net, pickled(net)):
        with pytest.raises(bs.errors.DialectError, match=r"module\.fc\.weight"):
            bs.convert(wrapped, bytes, like=like, **keywords)


def test_names_that_are_swapped_take_their_kinds_along() -> None:
    """Of a pickle of the whole model the classes are known by the names in the file."""
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Embedding(3, 3))
    swapped = bs.convert(pickled(model), bytes, format="bpk", rename=[("^0", "x"), ("^1", "0"), ("^x", "1")])
    arrays = {"1.weight": model[0].weight.detach().numpy().T, "0.weight": model[1].weight.detach().numpy()}
    same(swapped, arrays)
    same(bs.save(model, bytes, format="bpk", rename=[("^0", "x"), ("^1", "0"), ("^x", "1")]), arrays)


@every_way
def test_a_filter_leaves_out_what_it_does_not_match(way: Any, net: Net) -> None:
    wanted = {name: array for name, array in burns(net).items() if name.startswith(("fc", "norm"))}
    same(way(net, only=["^fc", "^norm"], map_indices_contiguous=False), wanted)
    same(way(net, skip="^(embed|list|act)", map_indices_contiguous=False), wanted)


def test_floats_are_cast_and_nothing_else(net: Net) -> None:
    header = burnpack_parts(model_itself(net, dtype="bf16", map_indices_contiguous=False))[0]
    dtypes = {name: entry["dtype"] for name, entry in header["tensors"].items()}  # type: ignore[attr-defined]
    assert dtypes.pop("list.2.num_batches_tracked") == "I64" and set(dtypes.values()) == {"BF16"}


# There and back


@pytest.mark.parametrize("format", ["pt", "safetensors"])
def test_there_and_back_is_what_torch_had(net: Net, format: str) -> None:
    there = model_itself(net, map_indices_contiguous=False)
    back = bs.convert(there, bytes, format=format, like=net, to_dialect="pytorch")
    state = torch.load(io.BytesIO(back)) if format == "pt" else safetensors.torch.load(back)
    wanted = net.state_dict()
    assert set(state) == set(wanted)
    for name, tensor in wanted.items():
        assert torch.equal(state[name].reshape(tensor.shape), tensor) and state[name].dtype == tensor.dtype
    if format == "safetensors":
        assert bs.open(back).metadata["dialect"] == "pytorch"


def test_there_and_back_gives_the_same_bytes() -> None:
    """Of a file of torch's that has no numbers without axes, and of Burn's own."""
    model = nn.ModuleDict({"fc": nn.Linear(3, 3), "norm": nn.LayerNorm(3), "rms": nn.RMSNorm(3)})
    data = bs.save(model, bytes, format="pt")
    there = bs.convert(data, bytes, format="bpk", like=model)
    assert bs.convert(there, bytes, format="pt", like=model) == data
    burn = (RAMP / "zoo.bpk").read_bytes()
    metadata = {"format": "burnpack", "producer": "burn", "version": "0.22.1"}
    for format in ("pt", "safetensors"):
        for_pytorch = bs.convert(burn, bytes, format=format, like=Zoo(), to_dialect="pytorch")
        again = bs.convert(for_pytorch, bytes, format="bpk", like=Zoo(), metadata=metadata)
        same(again, {name: snapshot.numpy() for name, snapshot in bs.open(burn).items()})
    within = bs.convert(bs.convert(burn, bytes, format="safetensors"), bytes, format="bpk", metadata=metadata)
    same(within, {name: snapshot.numpy() for name, snapshot in bs.open(burn).items()})


def test_a_bpk_of_burns_becomes_what_torch_loads_strictly() -> None:
    data = bs.convert(RAMP / "zoo.bpk", bytes, format="pt", like=Zoo())
    state = torch.load(io.BytesIO(data))
    wanted = ramp_zoo().state_dict()
    wanted.pop("batch_norm.num_batches_tracked")  # Burn does not count batches
    assert set(state) == set(wanted) and all(torch.equal(state[name], tensor) for name, tensor in wanted.items())


# What nobody said


PT = {"fc.weight": np.zeros((3, 4), np.float32), "fc.bias": np.zeros(3, np.float32), "conv.weight": np.zeros((2, 2, 3, 3))}


def test_a_layout_that_nobody_said_is_refused_with_the_tensors_it_matters_for() -> None:
    data = bs.save(PT, bytes, format="pt")
    with pytest.raises(bs.errors.DialectError, match=r"pytorch.*burn.*fc\.weight.*like=.*kinds=.*\"keep\"") as caught:
        bs.convert(data, bytes, format="bpk")
    assert "conv" not in str(caught.value) and "bias" not in str(caught.value)
    with pytest.raises(bs.errors.DialectError, match=r"fc\.weight"):
        bs.convert(data, bytes, format="bpk", kinds={"^conv": "Conv2d"})
    with pytest.raises(bs.errors.DialectError, match=r"fc\.weight"):
        bs.convert(data, bytes, format="bpk", like=nn.ModuleDict({"conv": nn.Conv2d(2, 2, 3)}))


def test_a_norm_of_burns_is_never_written_under_burns_names_for_pytorch() -> None:
    names = {"norm.gamma": np.ones(3, np.float32), "norm.beta": np.zeros(3, np.float32), "act.alpha": np.ones(1, np.float32)}
    data = bs.save(names, bytes, format="bpk")
    try:
        made = bs.convert(data, bytes, format="pt")
    except bs.errors.DialectError as error:
        assert "norm.gamma" in str(error)
    else:
        assert set(bs.open(made)) == {"norm.weight", "norm.bias", "act.weight"}
    made = bs.convert(data, bytes, format="pt", kinds={"norm": "LayerNorm", "act": "PReLU"})
    assert set(torch.load(io.BytesIO(made))) == {"norm.weight", "norm.bias", "act.weight"}


def test_a_source_that_does_not_say_whose_it_is_is_refused_until_somebody_does() -> None:
    data = safetensors_bytes(PT)
    with pytest.raises(bs.errors.DialectError, match=r"nothing says whose layout.*from_dialect="):
        bs.convert(data, bytes, format="bpk", kinds={"fc": "Linear"})
    for said, shape in (("pytorch", [4, 3]), ("burn", [3, 4])):
        made = bs.convert(data, bytes, format="bpk", from_dialect=said, kinds={"fc": "Linear"})
        assert burnpack_parts(made)[0]["tensors"]["fc.weight"]["shape"] == shape  # type: ignore[index]


def test_nothing_needs_to_be_known_where_no_layout_depends_on_it() -> None:
    data = bs.save({"conv.weight": PT["conv.weight"], "fc.bias": PT["fc.bias"]}, bytes, format="pt")
    same(bs.convert(data, bytes, format="bpk"), {"conv.weight": PT["conv.weight"], "fc.bias": PT["fc.bias"]})


@pytest.mark.parametrize("keyword", ["dialect", "from_dialect", "to_dialect"])
def test_keep_copies_the_tensors_as_they_lie(keyword: str) -> None:
    same(bs.convert(bs.save(PT, bytes, format="pt"), bytes, format="bpk", **{keyword: "keep"}), PT)


def test_a_layer_that_is_not_one_to_one_is_refused_and_can_be_left_out() -> None:
    model = nn.ModuleDict({"rnn": nn.LSTM(3, 3), "fc": nn.Linear(3, 2)})
    for convert in (
        lambda **more: bs.save(model, bytes, format="bpk", **more),
        lambda **more: bs.convert(pickled(model), bytes, format="bpk", **more),
        lambda **more: bs.convert(pickled(model.state_dict()), bytes, format="bpk", like=model, **more),
    ):
        with pytest.raises(bs.errors.DialectError, match=r"rnn\.weight_ih_l0.*LSTM"):
            convert()
        assert set(bs.open(convert(skip="^rnn"))) == {"fc.weight", "fc.bias"}


def test_kinds_win_over_what_the_model_says(net: Net) -> None:
    made = bs.convert(pickled(net), bytes, format="bpk", kinds={"^fc": "keep"}, map_indices_contiguous=False)
    assert np.array_equal(bs.open(made)["fc.weight"].numpy(), net.fc.weight.detach().numpy())


def test_a_file_in_the_other_dialect_than_its_format_says_so_and_is_read_so(net: Net) -> None:
    for_pytorch = bs.save(net, bytes, format="bpk", dialect="pytorch")
    assert burnpack_parts(for_pytorch)[0]["metadata"]["dialect"] == "pytorch"  # type: ignore[index]
    other = Net()
    assert bs.load(for_pytorch, other).is_success() and torch.equal(other.fc.weight, net.fc.weight)
    same(bs.convert(for_pytorch, bytes, format="bpk", to_dialect="burn", like=net, map_indices_contiguous=False), burns(net))
    for_burn = bs.save(net, bytes, format="pt", dialect="burn", map_indices_contiguous=False)
    assert bs.open(for_burn).metadata["dialect"] == "burn"
    other = Net()
    assert bs.load(for_burn, other).is_success() and torch.equal(other.fc.weight, net.fc.weight)
