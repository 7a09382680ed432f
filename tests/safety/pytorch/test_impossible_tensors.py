"""Tensors, names and nests that nothing can hold: an error of ours, and the tensors beside them open."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

import burnstore as bs
from burnstore.errors import BurnstoreError, ConfigError, TensorDataError
from tests.safety.pytorch.forge import archive, items, name, numbers, storage, tensor, text

_HUGE = 1 << 800_000
_TENSORS = {
    "nothing times too much": tensor(size=numbers(0, 2**62, 2**62), strides=numbers(1, 1, 1)),
    "a size beyond 64 bits": tensor(size=numbers(0, 2**70), strides=numbers(1, 1)),
    "a stride beyond 64 bits": tensor(size=numbers(0, 2), strides=numbers(2**70, 2**70)),
    "a storage beyond 64 bits": tensor(storage(count=_HUGE)),
}


@pytest.mark.parametrize("kind", list(_TENSORS))
@pytest.mark.parametrize("format", ["safetensors", "pytorch", "burnpack"])
def test_a_tensor_that_nothing_can_hold_is_refused_and_the_one_beside_it_opens(kind: str, format: str) -> None:
    file = archive(items(bad=_TENSORS[kind], good=tensor()))
    store = bs.open(file)
    assert store["good"].numpy().tolist() == [1, 2, 3, 4]
    bad = store["bad"]
    for look in (bad.numpy, bad.tobytes, lambda: bad[...], lambda: bad[0:0], lambda: bs.save(store, bytes, format=format)):
        with pytest.raises(BurnstoreError, match="bad"):
            look()
    assert repr(store) and repr(bad) and store.describe()
    assert [problem for problem in bs.verify(file).problems if "'bad'" in problem]


def _numpy_array(shape: bytes) -> bytes:
    """A pickled array of `shape`, without a byte of values."""
    made = name("numpy._core.multiarray", "_reconstruct") + name("numpy", "ndarray") + b"K\0\x85C\1b\x87R"
    dtype = name("numpy", "dtype") + text("f4") + b"\x89\x88\x87R(K\3" + text("<") + b"NNNtb"
    return made + b"(K\1" + shape + dtype + b"\x89C\0tb"


@pytest.mark.parametrize("shape", [(0, 2**62), (*[2**62] * 60, 0)])
def test_a_pickled_array_that_nothing_can_hold_leaves_the_tensor_beside_it(shape: tuple[int, ...]) -> None:
    file = archive(items(bad=_numpy_array(numbers(*shape)), good=tensor()))
    store = bs.open(file)
    assert store["good"].numpy().tolist() == [1, 2, 3, 4]
    assert list(bs.open(bs.save(store, bytes, format="pytorch"))) == ["good"]
    bs.read_config(file)
    assert not bs.verify(file).problems


def test_an_empty_pickled_array_of_a_possible_shape_is_a_tensor() -> None:
    assert bs.open(archive(items(a=_numpy_array(numbers(0, 2**40)))))["a"].shape == (0, 2**40)


@pytest.mark.parametrize("format", ["safetensors", "pytorch", "burnpack"])
def test_a_name_that_is_not_unicode_is_refused_when_it_is_saved(format: str) -> None:
    store = bs.open(archive(b"}" + text("\ud800") + tensor() + b"s"))
    assert store["\ud800"].numpy().tolist() == [1, 2, 3, 4]
    with pytest.raises(TensorDataError, match="not valid Unicode"):
        bs.save(store, bytes, format=format)


@dataclass
class Tree:
    """A type that holds itself."""

    children: list[Tree] = field(default_factory=list)


def _tree(depth: int) -> bytes:
    return (b"}" + text("children") + b"]") * depth + b"s" + b"as" * (depth - 1)


def test_a_type_that_holds_itself_is_filled_and_nests_too_deep_are_refused() -> None:
    assert bs.read_config(archive(_tree(3)), Tree) == Tree([Tree([Tree()])])
    with pytest.raises(ConfigError, match="nested too deep"):
        bs.read_config(archive(_tree(249)), Tree)
