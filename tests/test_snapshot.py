"""A snapshot: known before it is read, never changed, made by hand, used from many threads."""

from __future__ import annotations

import copy
import gc
import io
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burnstore as bs
from tests.sources.handmade import burnpack_parts, safetensors_bytes

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)
Snapshot = bs.TensorSnapshot


@pytest.fixture
def snapshot() -> bs.TensorSnapshot:
    return bs.open(safetensors_bytes({"fc.weight": VALUES}))["fc.weight"]


def test_everything_but_the_values_is_known_before_reading() -> None:
    def never() -> object:
        raise AssertionError("read")

    snapshot = Snapshot.from_closure("a", "BF16", (2, 3), never, containers=["Struct:Net"], param_id=7)
    assert (snapshot.name, snapshot.dtype, snapshot.shape, snapshot.nbytes) == ("a", "BF16", (2, 3), 12)
    assert (snapshot.containers, snapshot.param_id) == (("Struct:Net",), 7)
    assert repr(snapshot) == "TensorSnapshot('a', BF16, [2, 3])" and snapshot.full_path() == "a"


@pytest.mark.parametrize("attribute", ["name", "dtype", "shape", "nbytes", "containers", "param_id", "_data", "data", "anything"])
def test_assigning_to_a_snapshot_fails(snapshot: bs.TensorSnapshot, attribute: str) -> None:
    with pytest.raises(AttributeError, match="cannot be changed") as caught:
        setattr(snapshot, attribute, "x")
    assert isinstance(caught.value, bs.errors.ImmutableError)
    with pytest.raises(bs.errors.ImmutableError):
        delattr(snapshot, attribute)
    assert snapshot.name == "fc.weight" and snapshot.shape == (2, 3)


def test_assigning_to_the_name_names_what_to_call(snapshot: bs.TensorSnapshot) -> None:
    with pytest.raises(bs.errors.ImmutableError, match=r"with_name\("):
        snapshot.name = "other"


def test_a_tensor_under_another_name_is_otherwise_the_same() -> None:
    first = Snapshot.from_data("a", VALUES, containers=["Struct:Net"], param_id=3)
    second = first.with_name("b")
    assert (first.name, second.name) == ("a", "b")
    assert (second.dtype, second.shape, second.containers, second.param_id) == ("F32", (2, 3), ("Struct:Net",), 3)
    assert second.tobytes() == VALUES.tobytes()


def test_to_data_gives_bytes_shape_and_dtype(snapshot: bs.TensorSnapshot) -> None:
    data = snapshot.to_data()
    assert (data.bytes, data.shape, data.dtype) == (VALUES.tobytes(), (2, 3), "F32")
    assert type(data.bytes) is bytes
    np.testing.assert_array_equal(data.numpy(), VALUES)
    assert repr(data) == "TensorData(F32, [2, 3], 24 bytes)"


def test_tobytes_is_bytes_wherever_they_come_from(tmp_path: Path) -> None:
    file = safetensors_bytes({"w": VALUES})
    path = tmp_path / "w.safetensors"
    path.write_bytes(file)
    stores = [
        bs.open(file),
        bs.open(io.BytesIO(file)),
        bs.open(path),
        bs.open(path, io="pread"),
        bs.open({"w": VALUES}),
        bs.open({"w": VALUES.T.copy().T}),
    ]
    for store in stores:
        assert type(store["w"].tobytes()) is bytes and store["w"].tobytes() == VALUES.tobytes()


@pytest.mark.parametrize(
    ("containers", "path", "module"),
    [
        (("Struct:Net", "Vec", "Struct:Linear"), "Net.Vec.Linear", "Linear"),
        (("Struct:Net", "Enum:Act"), "Net.Act", "Act"),
        (("Struct:Net", "Struct:Seq", "Vec"), "Net.Seq.Vec", "Seq"),
        (("Vec",), "Vec", None),
        ((), "", None),
    ],
)
def test_containers_are_seen_as_burns_predicates_see_them(containers: tuple[str, ...], path: str, module: str | None) -> None:
    snapshot = Snapshot.from_data("w", 1.0, containers=containers)
    assert (snapshot.container_path(), snapshot.module_type(), snapshot.containers) == (path, module, containers)


def test_a_copy_of_a_snapshot_is_the_snapshot(snapshot: bs.TensorSnapshot) -> None:
    assert copy.copy(snapshot) is snapshot and copy.deepcopy(snapshot) is snapshot
    assert copy.deepcopy({"a": [snapshot]})["a"][0] is snapshot


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_snapshot_refuses_to_be_pickled_with_a_reason(snapshot: bs.TensorSnapshot, protocol: int) -> None:
    with pytest.raises(bs.errors.PickleRefusedError, match=r"'fc\.weight'.*to_data"):
        pickle.dumps(snapshot, protocol)


def test_tensor_data_is_what_can_be_sent_to_another_process(snapshot: bs.TensorSnapshot) -> None:
    again = pickle.loads(pickle.dumps(snapshot.to_data()))
    assert (again.bytes, again.shape, again.dtype) == (VALUES.tobytes(), (2, 3), "F32")


def test_repr_shows_no_data_and_reads_none() -> None:
    source = bs.open(safetensors_bytes({"w\x1b[31m\n": VALUES}))
    source.close()
    shown = repr(next(iter(source.values())))
    assert shown == "TensorSnapshot('w\\x1b[31m\\n', F32, [2, 3])"


@pytest.mark.parametrize("make", ["mmap", "pread", "stream", "bytes"])
def test_eight_threads_read_one_store(tmp_path: Path, make: str) -> None:
    arrays = {f"t{number}": np.full((200, 50), number, np.int32) for number in range(40)}
    path = tmp_path / "w.safetensors"
    path.write_bytes(safetensors_bytes(arrays))
    given: Any = {"stream": lambda: io.BytesIO(path.read_bytes()), "bytes": path.read_bytes}.get(make, lambda: path)()
    store = bs.open(given, io=make if make in ("mmap", "pread") else "auto")  # type: ignore[arg-type]

    def work(seed: int) -> bool:
        order = np.random.default_rng(seed).permutation(40)
        return all(
            (store[f"t{n}"].numpy() == n).all()
            and (store[f"t{n}"][5:7, ::3] == n).all()
            and store[f"t{n}"].tobytes() == arrays[f"t{n}"].tobytes()
            for n in order
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


def test_numpy_gives_a_view_of_what_is_held_and_a_copy_on_demand() -> None:
    held = VALUES.copy()
    snapshot = Snapshot.from_data("w", held)
    view, owned = snapshot.numpy(), snapshot.numpy(copy=True)
    held[0, 0] = 99
    assert view[0, 0] == 99 and not view.flags.writeable
    assert owned[0, 0] == 0 and owned.flags.writeable and owned.flags.aligned


# From data


def test_from_data_takes_arrays_lists_scalars_and_tensor_data() -> None:
    assert Snapshot.from_data("w", [[1, 2]]).shape == (1, 2)
    assert Snapshot.from_data("w", 3.5).shape == ()
    data = bs.TensorData(b"\x80?\x00@", (2,), "BF16")
    assert Snapshot.from_data("w", data).numpy().tolist() == [1.0, 2.0]
    assert Snapshot.from_data("w", data, param_id=4).param_id == 4


@pytest.mark.parametrize("size", [0, 3, 5, 8])
def test_tensor_data_of_the_wrong_length_is_refused(size: int) -> None:
    with pytest.raises(bs.errors.TensorDataError, match=rf"needs 4 bytes, not {size}"):
        bs.TensorData(bytes(size), (1,), "F32")


def test_tensor_data_of_a_view_is_read_only() -> None:
    assert not bs.TensorData(bytes(4), (1,), "F32").numpy().flags.writeable


# From closures


@pytest.mark.parametrize(
    "made",
    [
        VALUES,
        VALUES.tobytes(),
        VALUES.tolist(),
        bytearray(VALUES.tobytes()),
        bs.TensorData(VALUES.tobytes(), (2, 3), "F32"),
        VALUES.astype(">f4"),
        np.asfortranarray(VALUES),
    ],
    ids=lambda made: type(made).__name__,
)
def test_a_closure_may_give_an_array_or_bytes(made: object) -> None:
    snapshot = Snapshot.from_closure("w", "F32", (2, 3), lambda: made)
    np.testing.assert_array_equal(snapshot.numpy(), VALUES)
    np.testing.assert_array_equal(snapshot[1, ::-1], VALUES[1, ::-1])
    assert snapshot.tobytes() == VALUES.tobytes()
    assert burnpack_parts(bs.save([snapshot], bytes, format="bpk"))[1] == VALUES.tobytes()


def test_a_closure_is_called_each_time() -> None:
    calls = iter(range(10))
    snapshot = Snapshot.from_closure("w", "I64", (), lambda: np.int64(next(calls)))
    assert [int(snapshot.numpy()) for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    "made",
    [
        np.zeros(3, np.float32),
        np.zeros((3, 2), np.float32),
        np.zeros((2, 3)),
        bytes(23),
        np.zeros((2, 3), np.int32),
        [[1.0]],
        bs.TensorData(VALUES.tobytes(), (3, 2), "F32"),
    ],
    ids=["short", "turned", "float64", "bytes", "int32", "list", "data of another shape"],
)
@pytest.mark.parametrize(
    "read",
    [Snapshot.numpy, Snapshot.tobytes, lambda s: s[0], lambda s: bs.save([s], bytes, format="bpk")],
    ids=["numpy", "tobytes", "slice", "save"],
)
def test_a_closure_that_gives_something_else_is_an_error_by_name(
    made: object, read: Callable[[bs.TensorSnapshot], object]
) -> None:
    snapshot = Snapshot.from_closure("layer.w", "F32", (2, 3), lambda: made)
    with pytest.raises(bs.errors.TensorDataError, match=r"'layer\.w'.*announced"):
        read(snapshot)


def test_a_closure_that_gives_none_or_text_is_an_error_by_name() -> None:
    for made in (None, "text"):
        with pytest.raises(bs.errors.BurnstoreError, match=r"'layer\.w'"):
            Snapshot.from_closure("layer.w", "F32", (2,), lambda made=made: made).numpy()


def test_a_torch_tensor_of_another_dtype_is_not_cast_silently() -> None:
    import torch

    for made in (torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.int64)):
        with pytest.raises(bs.errors.TensorDataError, match="'w'"):
            Snapshot.from_closure("w", "F32", (2,), lambda made=made: made).numpy()
    assert Snapshot.from_closure("w", "BF16", (2,), lambda: torch.ones(2, dtype=torch.bfloat16)).numpy().tolist() == [1, 1]


def test_the_error_of_a_closure_is_its_own() -> None:
    def broken() -> object:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Snapshot.from_closure("w", "F32", (2,), broken).numpy()


def test_a_closure_of_a_packed_dtype_gives_its_elements() -> None:
    import ml_dtypes

    array = np.array([1, 2, 3, 4], np.float32).astype(ml_dtypes.float4_e2m1fn)
    assert Snapshot.from_closure("w", "F4", (4,), lambda: array).tobytes() == b"\x42\x65"
    assert Snapshot.from_closure("w", "Bool(U32)", (2,), lambda: np.array([True, False])).tobytes() == b"\1\0\0\0\0\0\0\0"


# From blocks


def pieces(*sizes: int) -> Callable[[], Iterator[bytes]]:
    data, at = VALUES.tobytes(), 0
    cut = []
    for size in sizes:
        cut.append(data[at : at + size])
        at += size
    return lambda: iter(cut)


@pytest.mark.parametrize("sizes", [(24,), (1, 23), (0, 5, 0, 19, 0), (1,) * 24])
def test_blocks_may_be_cut_anywhere(sizes: tuple[int, ...]) -> None:
    snapshot = Snapshot.from_blocks("w", "F32", (2, 3), pieces(*sizes))
    np.testing.assert_array_equal(snapshot.numpy(), VALUES)
    np.testing.assert_array_equal(snapshot[1, 1:], VALUES[1, 1:])
    assert snapshot.tobytes() == VALUES.tobytes()
    assert burnpack_parts(bs.save([snapshot], bytes, format="bpk"))[1] == VALUES.tobytes()


@pytest.mark.parametrize("sizes", [(), (23,), (24, 1), (100,)])
@pytest.mark.parametrize(
    "read", [Snapshot.numpy, Snapshot.tobytes, lambda s: bs.save([s], bytes, format="bpk")], ids=["numpy", "tobytes", "save"]
)
def test_blocks_that_do_not_add_up_are_an_error_by_name(
    sizes: tuple[int, ...], read: Callable[[bs.TensorSnapshot], object]
) -> None:
    data = bytes(200)
    snapshot = Snapshot.from_blocks("layer.w", "F32", (2, 3), lambda: [data[:size] for size in sizes])
    with pytest.raises(bs.errors.TensorDataError, match=r"'layer\.w'.*24 bytes"):
        read(snapshot)


def test_an_iterator_of_blocks_can_be_read_once_and_says_so() -> None:
    snapshot = Snapshot.from_blocks("w", "F32", (2, 3), pieces(10, 14)())
    assert snapshot.tobytes() == VALUES.tobytes()
    with pytest.raises(bs.errors.TensorDataError, match="read once"):
        snapshot.tobytes()


@pytest.mark.parametrize(
    "blocks",
    [[VALUES], [VALUES[:1], VALUES[1:]], [memoryview(VALUES)], [bytearray(VALUES.tobytes())]],
    ids=["array", "arrays", "memoryview", "bytearray"],
)
def test_blocks_may_be_any_buffer(blocks: list[Any]) -> None:
    snapshot = Snapshot.from_blocks("w", "F32", (2, 3), blocks)
    assert snapshot.tobytes() == VALUES.tobytes() and snapshot.numpy().tolist() == VALUES.tolist()
    assert burnpack_parts(bs.save([snapshot], bytes, format="bpk"))[1] == VALUES.tobytes()


@pytest.mark.parametrize("value", [5, 0, 1 << 40])
def test_a_block_that_is_a_scalar_array_is_its_bytes(value: int) -> None:
    """`bytes(array(5))` would be five zeros."""
    snapshot = Snapshot.from_blocks("w", "I64", (), lambda: [np.array(value)])
    assert snapshot.tobytes() == value.to_bytes(8, "little")
    assert burnpack_parts(bs.save([snapshot], bytes, format="bpk"))[1] == value.to_bytes(8, "little")


def test_a_block_that_is_not_contiguous_is_its_values_or_an_error_of_ours() -> None:
    blocks = [np.arange(12, dtype=np.float32).reshape(3, 4).T[:2]]
    snapshot = Snapshot.from_blocks("w", "F32", (2, 3), blocks)
    for read in (
        snapshot.tobytes,
        lambda: snapshot.numpy().tobytes(),
        lambda: burnpack_parts(bs.save([snapshot], bytes, format="bpk"))[1],
    ):
        try:
            assert read() == blocks[0].tobytes()
        except bs.errors.BurnstoreError as error:
            assert "contiguous" in str(error)


def test_a_shape_or_dtype_that_cannot_be_is_refused() -> None:
    with pytest.raises(bs.errors.DTypeError):
        Snapshot.from_blocks("w", "F33", (2,), [])
    with pytest.raises(bs.errors.DTypeError):
        Snapshot.from_blocks("w", "F4", (3,), [])
    for shape in ((-1,), (2, -3)):
        with pytest.raises(bs.errors.BurnstoreError, match="-"):
            Snapshot.from_blocks("w", "F32", shape, [])
        with pytest.raises(bs.errors.BurnstoreError, match="-"):
            Snapshot.from_closure("w", "F32", shape, lambda: b"")
        with pytest.raises(bs.errors.BurnstoreError, match="-"):
            bs.TensorData(b"", shape, "F32")


def test_the_integers_of_a_shape_and_an_id_may_be_numpys() -> None:
    shape, number = tuple(np.array([2, 3])), np.uint64(5)
    for snapshot in (
        Snapshot.from_blocks("w", "F32", shape, [VALUES], param_id=number),  # type: ignore[arg-type]
        Snapshot.from_closure("w", "F32", shape, lambda: VALUES, param_id=number),  # type: ignore[arg-type]
        Snapshot.from_data("w", bs.TensorData(VALUES.tobytes(), shape, "F32"), param_id=number),  # type: ignore[arg-type]
    ):
        described = burnpack_parts(bs.save([snapshot], bytes, format="bpk"))[0]["tensors"]["w"]  # type: ignore[index]
        assert (described["shape"], described["param_id"]) == ([2, 3], 5)
        assert [type(dim) for dim in snapshot.shape] == [int, int]


@pytest.mark.parametrize("shape", [(2.0,), ("2",), (None,), 3])
def test_a_shape_of_anything_but_integers_is_refused(shape: Any) -> None:
    for make in (
        lambda: Snapshot.from_blocks("layer.w", "U8", shape, [b"ab"]),
        lambda: Snapshot.from_closure("layer.w", "U8", shape, lambda: b"ab"),
    ):
        with pytest.raises(bs.errors.BurnstoreError, match=r"'layer\.w'"):
            make()


def test_blocks_larger_than_memory_are_saved_one_at_a_time() -> None:
    """Ten blocks of 10 MB, of which never more than two are alive."""
    alive: list[object] = []
    most = 0

    class Block(bytearray):
        def __del__(self) -> None:
            alive.pop()

    def blocks() -> Iterator[bytearray]:
        nonlocal most
        for _ in range(10):
            alive.append(None)
            most = max(most, len(alive))
            yield Block(10_000_000)

    with open("/dev/null", "wb") as sink:
        bs.save([Snapshot.from_blocks("w", "U8", (100_000_000,), blocks)], sink, format="safetensors")
    gc.collect()
    assert most <= 2
