"""How long things live: views outlast their store, files are given back, and a file that is cut ends no process."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path

import numpy as np
import pytest

import burnstore as bs
from tests.sources.handmade import safetensors_bytes
from tests.sources.processes import run_python

VALUES = np.arange(100_000, dtype=np.float32)
DATA = safetensors_bytes({"first": VALUES[:10], "w": VALUES})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "w.safetensors"
    path.write_bytes(DATA)
    return path


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_arrays_stay_valid_after_their_store_is_closed_and_gone(path: Path, io: str) -> None:
    store = bs.open(path, io=io)  # type: ignore[arg-type]
    array, part = store["w"].numpy(), store["w"][5:8]
    store.close()
    source = weakref.ref(store.contents.source)  # type: ignore[arg-type]
    del store
    gc.collect()
    assert source() is None
    path.unlink()
    np.testing.assert_array_equal(array, VALUES)
    np.testing.assert_array_equal(part, VALUES[5:8])


def test_a_snapshot_keeps_its_file_open_after_the_store_is_gone(path: Path) -> None:
    snapshot = bs.open(path)["w"]
    gc.collect()
    np.testing.assert_array_equal(snapshot.numpy(), VALUES)


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_a_snapshot_says_that_its_store_was_closed(path: Path, io: str) -> None:
    store = bs.open(path, io=io)  # type: ignore[arg-type]
    snapshot = store["w"]
    snapshot.numpy()
    with store as same:
        assert same is store
    for read in (snapshot.numpy, snapshot.tobytes, snapshot.to_data, lambda: snapshot[0], lambda: snapshot.numpy(copy=True)):
        with pytest.raises(bs.errors.SourceClosedError, match="open it again") as caught:
            read()
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, OSError)
    assert (snapshot.name, snapshot.shape, snapshot.nbytes) == ("w", (100_000,), 400_000)


def test_a_store_can_be_closed_twice(path: Path) -> None:
    store = bs.open(path)
    store.close()
    store.close()


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_closing_gives_the_file_back(path: Path, io: str) -> None:
    before = open_files()
    with bs.open(path, io=io) as store:  # type: ignore[arg-type]
        copy = store["w"].numpy(copy=True)
        assert open_files() > before
    assert open_files() == before and copy.size


def test_two_thousand_opened_files_leak_nothing(path: Path) -> None:
    bs.open(path)["w"].numpy()
    gc.collect()
    before = open_files()
    for _ in range(1000):
        bs.open(path)["first"].numpy()
    for _ in range(500):
        with bs.open(path, io="pread") as store:
            store["first"].numpy()
    for _ in range(500):
        bs.read(path, io="pread").clear()
    assert open_files() == before


def test_a_file_that_is_refused_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(DATA[:-1])
    before = open_files()
    for _ in range(20):
        with pytest.raises(bs.errors.TruncatedError):
            bs.open(path)
    assert open_files() == before


def test_views_keep_the_mapping_and_not_the_file_descriptor(path: Path) -> None:
    before = open_files()
    views = [bs.read(path, copy=False)["w"] for _ in range(50)]
    assert open_files() <= before + len(views)  # Python's mmap holds one of its own
    del views
    gc.collect()
    assert open_files() == before


def test_no_resource_warning_is_given_when_nothing_is_closed(path: Path) -> None:
    done = run_python(
        """
import gc, sys, warnings
warnings.simplefilter("always")
import burnstore as bs
store = bs.open(sys.argv[1]); view = store["w"].numpy(); del store, view
bs.open(sys.argv[1], io="pread")["w"].numpy()
bs.read(sys.argv[1]); bs.read(sys.argv[1], copy=False); bs.verify(sys.argv[1])
bs.convert(sys.argv[1], sys.argv[1] + ".bpk", format="burnpack", overwrite=True)
gc.collect()
kept = bs.open(sys.argv[1] + ".bpk"); kept["w"].numpy()  # still open when the process ends
""",
        path,
    )
    assert done.stderr == ""


def test_a_file_cut_under_a_live_mapping_is_an_error_and_ends_no_process(path: Path) -> None:
    done = run_python(
        """
import os, sys, numpy as np
import burnstore as bs
path = sys.argv[1]
size = os.path.getsize(path)
stores = {io: bs.open(path, io=io) for io in ("mmap", "pread")}
first = stores["mmap"]["first"].numpy()  # mapped before the cut, and its page is still there after it
os.truncate(path, 8192)
for io, store in stores.items():
    snapshot = store["w"]
    copies = lambda: snapshot.numpy(copy=True), lambda: snapshot[-5:], lambda: list(snapshot.data.blocks())
    for what in (snapshot.numpy, snapshot.tobytes, *copies):
        try:
            what()
        except bs.errors.TruncatedError as error:
            assert "open it again" in str(error), error
        else:
            raise SystemExit(f"{io}: nothing was said")
    assert store["first"].numpy().tolist() == list(range(10))
try:
    bs.convert(stores["mmap"], path + ".bpk", format="bpk")
except bs.errors.TruncatedError:
    pass
assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
assert first.tolist() == list(range(10))
print("alive")
""",
        path,
    )
    assert done.stdout == "alive\n"


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_the_message_about_a_cut_file_says_where_it_ends_now(path: Path, io: str) -> None:
    store = bs.open(path, io=io)  # type: ignore[arg-type]
    os.truncate(path, 8192)
    with pytest.raises(bs.errors.TruncatedError, match="ends at 8192 "):
        store["w"][-5:]


def test_all_at_once_of_a_cut_file_is_an_error_too(path: Path) -> None:
    for io in ("mmap", "pread"):
        store = bs.open(path, io=io)  # type: ignore[arg-type]
        os.truncate(path, 8192)
        for copy in (True, False):
            with pytest.raises(bs.errors.TruncatedError):
                bs.read(store, copy=copy)
        path.write_bytes(DATA)


def test_a_file_that_grew_is_read_as_it_was(path: Path) -> None:
    store = bs.open(path)
    with path.open("ab") as file:
        file.write(b"more")
    np.testing.assert_array_equal(store["w"].numpy(), VALUES)


def test_a_file_that_was_replaced_is_still_the_one_that_was_opened(path: Path, tmp_path: Path) -> None:
    for io in ("mmap", "pread"):
        store = bs.open(path, io=io)  # type: ignore[arg-type]
        other = tmp_path / "other"
        other.write_bytes(safetensors_bytes({"w": -VALUES}))
        other.replace(path)
        np.testing.assert_array_equal(store["w"].numpy(), VALUES)
        path.write_bytes(DATA)
