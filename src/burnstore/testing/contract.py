"""What `burnstore.formats.base` promises of every format, as tests that a subclass inherits."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from burnstore.dtypes import DType, describe_dtypes
from burnstore.errors import BurnstoreError, DTypeError
from burnstore.formats.base import Contents, Format, WriteOptions
from burnstore.formats.table import in_order
from burnstore.limits import DEFAULT_LIMITS
from burnstore.snapshot import TensorSnapshot
from burnstore.sources.base import HEAD_BYTES, Source
from burnstore.sources.local import LocalFile
from burnstore.sources.memory import MemorySource
from burnstore.sources.stream import open_stream
from burnstore.testing.samples import NAMES, NOT_WEIGHTS, CountingSource, listed, tensor, to_bytes, unreadable


class FormatContract:
    """The tests of one format; say which in a subclass whose name pytest collects.

    >>> from burnstore.formats.table import by_name
    >>> class TestBurnpack(FormatContract):
    ...     format = by_name("burnpack")
    ...     dtypes = ("F32", "I64", "Bool")
    ...     refused = ("F8_E4M3", "C64")
    >>> TestBurnpack().run() > 15
    True

    `dtypes` are those that come back as they went in. What else burnstore knows must be refused when it is written, unless
    `stored_as` says as what it comes back. `refused` shortens that list. A format without room for metadata says
    `has_metadata = False`, one that puts tensors into an order of its own `keeps_order = False`, one without Burn's parameter
    ids `has_param_ids = False`.
    """

    format: ClassVar[Format]
    dtypes: ClassVar[Sequence[str]]
    stored_as: ClassVar[Mapping[str, str]] = {}
    refused: ClassVar[Sequence[str] | None] = None
    has_metadata: ClassVar[bool] = True
    has_param_ids: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True

    # A subclass may look at these, and change them where its format needs more.

    def write(self, tensors: Sequence[TensorSnapshot], metadata: Mapping[str, str] | None = None) -> bytes:
        """The bytes of a file of these tensors."""
        return to_bytes(self.format.write(tensors, metadata, WriteOptions()))

    def read(self, file: bytes | Source) -> Contents:
        """The contents of a file."""
        return self.format.read(MemorySource(file) if isinstance(file, bytes) else file, DEFAULT_LIMITS)

    def sample(self) -> list[TensorSnapshot]:
        """A few tensors of different sizes, so that formats that align have something to align."""
        first = self.dtypes[0]
        shapes: tuple[tuple[int, ...], ...] = ((4,), (3, 8), (100, 8), (0,), (1, 8))
        return [tensor(f"t{at}.weight", first, shape, seed=at + 1) for at, shape in enumerate(shapes)]

    def run(self) -> int:
        """Run every test without pytest; the first that fails raises. Returns how many there were."""
        names = [name for name in dir(self) if name.startswith("test_")]
        for name in names:
            getattr(self, name)()
        return len(names)

    # What goes in comes out

    def test_every_dtype_comes_back_as_it_was(self) -> None:
        tensors = [tensor(f"as {dtype}", dtype, (2, 8), seed=at) for at, dtype in enumerate(self.dtypes)]
        self._round_trip(tensors)

    def test_a_dtype_that_is_stored_as_another_keeps_its_bytes(self) -> None:
        for dtype, stored in self.stored_as.items():
            given = tensor("t", dtype, (2, 8))
            back = listed(self.read(self.write([given])))["t"]
            _equal(back, (DType.of(stored).name, (2, 8), given.tobytes()), f"{dtype} stored as {stored}")

    def test_scalars_and_empty_tensors_come_back(self) -> None:
        whole = [dtype for dtype in self.dtypes if DType.of(dtype).bits % 8 == 0]
        tensors = [tensor(f"scalar {dtype}", dtype, (), seed=at) for at, dtype in enumerate(whole)]
        tensors += [tensor(f"empty {dtype} {shape}", dtype, shape) for dtype in self.dtypes for shape in ((0,), (2, 0, 8))]
        self._round_trip(tensors)

    def test_a_file_without_tensors_is_a_file(self) -> None:
        contents = self.read(self.write([]))
        _equal((len(contents), list(contents.names()), list(contents.rows())), (0, [], []), "a file without tensors")

    def test_a_thousand_tensors_come_back(self) -> None:
        self._round_trip([tensor(f"layers.{at}.weight", self.dtypes[0], (at % 5,), seed=at) for at in range(1000)])

    def test_names_are_any_text(self) -> None:
        self._round_trip([tensor(name, self.dtypes[0], (2,), seed=at) for at, name in enumerate(NAMES)])

    def test_metadata_comes_back(self) -> None:
        if not self.has_metadata:
            return
        for metadata in ({"version": "1.0"}, {name: name for name in NAMES}, {"empty": "", "long": "x" * 100_000}):
            contents = self.read(self.write(self.sample(), metadata))
            _equal(dict(contents.metadata), metadata, "metadata")
            _equal(len(contents), len(self.sample()), "tensors beside metadata")
        _equal(dict(self.read(self.write(self.sample(), None)).metadata), {}, "metadata that nobody gave")

    def test_param_ids_come_back_and_are_never_invented(self) -> None:
        ids = [None, 0, 23, 2**63, 2**64 - 1]
        tensors = [tensor(f"t{at}", self.dtypes[0], param_id=param_id) for at, param_id in enumerate(ids)]
        contents = self.read(self.write(tensors))
        want = ids if self.has_param_ids else [None] * len(ids)
        _equal([contents.snapshot(f"t{at}").param_id for at in range(len(ids))], want, "param_ids")

    # Order and determinism

    def test_tensors_are_listed_in_the_order_of_the_file(self) -> None:
        tensors = self.sample()[::-1]
        names = list(self.read(self.write(tensors)).names())
        _equal(sorted(names), sorted(given.name for given in tensors), "names")
        if self.keeps_order:
            _equal(names, [given.name for given in tensors], "the caller's order")

    def test_the_same_tensors_give_the_same_bytes(self) -> None:
        metadata = {"b": "2", "a": "1"} if self.has_metadata else None
        first = self.write(self.sample(), metadata)
        assert first == self.write(self.sample(), metadata), "two writes of the same tensors differ"
        if metadata:
            assert first == self.write(self.sample(), {"a": "1", "b": "2"}), "the order of metadata's keys changes the file"

    def test_what_was_read_is_written_as_the_same_bytes(self) -> None:
        metadata = {"k": "v"} if self.has_metadata else None
        file = self.write(self.sample(), metadata)
        contents = self.read(file)
        again = self.write([contents.snapshot(name) for name in contents.names()], contents.metadata or None)
        assert again == file, "reading a file and writing it again gives another file"

    # A list of tensors costs nothing

    def test_reading_touches_no_tensor_data(self) -> None:
        big = [tensor(f"t{at}", self.dtypes[0], (256, 64)) for at in range(4)]
        file = self.write(big * 1 + [tensor("last", self.dtypes[0], (1024, 64))])
        source = CountingSource(file)
        contents = self.read(source)
        data = sum(contents.snapshot(name).nbytes for name in contents.names())
        assert [*contents.rows()], "there are no rows"
        allowed = len(file) - data + min(HEAD_BYTES, data // 2)
        assert source.asked <= allowed, f"listing asked for {source.asked} of {len(file)} bytes, {data} of which are data"

    def test_writing_asks_for_no_data_before_the_layout_is_sent(self) -> None:
        layout = self.format.write([unreadable("t", self.dtypes[0])], None, WriteOptions())
        assert layout.size > DType.of(self.dtypes[0]).nbytes((1024, 1024)), "the layout has no room for the tensor"

    def test_a_layout_has_its_parts_in_order_and_apart(self) -> None:
        layout = self.format.write(self.sample(), None, WriteOptions())
        at = len(layout.header)
        for part in layout.parts:
            assert part.begin >= at, f"{part.name!r} begins at {part.begin}, before byte {at} where the one before it ends"
            at = part.begin + part.data.nbytes
        assert layout.size >= at, f"the file has {layout.size} bytes, and its last tensor ends at {at}"

    def test_rows_say_what_snapshots_say(self) -> None:
        contents = self.read(self.write(self.sample()))
        rows = list(contents.rows())
        _equal([row[0] for row in rows], list(contents.names()), "the names of rows()")
        for name, dtype, shape, source, begin, end in rows:
            snapshot = contents.snapshot(name)
            _equal((dtype, shape), (snapshot.dtype, snapshot.shape), f"the row of {name!r}")
            if source is not None:
                _equal((end - begin, bytes(source.read(begin, end))), (snapshot.nbytes, snapshot.tobytes()), f"range of {name!r}")

    def test_contents_know_their_names(self) -> None:
        contents = self.read(self.write(self.sample()))
        _equal((len(contents), contents.format), (len(self.sample()), self.format.name), "contents")
        assert self.sample()[0].name in contents and "no such tensor" not in contents and 5 not in contents
        try:
            contents.snapshot("no such tensor")
        except KeyError:
            return
        raise AssertionError("a name that is not there must be a KeyError")

    # The same from everywhere

    def test_bytes_files_and_streams_give_the_same(self) -> None:
        file = self.write(self.sample(), {"k": "v"} if self.has_metadata else None)
        want = listed(self.read(file))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model" + next(iter(self.format.suffixes), ".bin"))
            with open(path, "wb") as out:
                out.write(file)
            with open(path, "rb") as stream:
                sources: list[tuple[str, Source]] = [
                    ("a mapped file", LocalFile(path, "mmap")),
                    ("a file that is read", LocalFile(path, "pread")),
                    ("an open file", open_stream(stream)),
                    ("a stream that cannot seek", open_stream(_OneWay(file))),
                    ("a bytearray", MemorySource(bytearray(file))),
                ]
                for what, source in sources:
                    _equal(listed(self.read(source)), want, what)
                    source.close()

    def test_arrays_outlive_the_contents(self) -> None:
        plain = tensor("t", "F32" if "F32" in self.dtypes else self.dtypes[0], (2, 8))
        contents = self.read(self.write([plain]))
        array = contents.snapshot("t").numpy()
        want = plain.numpy().tobytes()
        contents.close()
        _equal(array.tobytes(), want, "an array whose file was closed")

    # Whose file is it

    def test_it_recognizes_its_own_files_and_no_others(self) -> None:
        own = [self.write([]), self.write(self.sample()), self.write(self.sample(), {"k": "v"} if self.has_metadata else None)]
        for file in own:
            assert self.format.recognizes(file[:HEAD_BYTES], len(file)), f"it does not know its own file {file[:20]!r}"
        for file in NOT_WEIGHTS:
            assert not self.format.recognizes(file[:HEAD_BYTES], len(file)), f"it claims {file[:20]!r}"
        for other in in_order():
            if other.name == self.format.name:
                continue
            theirs = to_bytes(other.write([tensor("t", "F32", (2,))], None, WriteOptions()))
            assert not self.format.recognizes(theirs[:HEAD_BYTES], len(theirs)), f"it claims a file of {other.name}"
            for file in own:
                assert not other.recognizes(file[:HEAD_BYTES], len(file)), f"{other.name} claims its file {file[:20]!r}"

    def test_suffixes_begin_with_a_dot_and_are_lower_case(self) -> None:
        assert self.format.name and self.format.name == self.format.name.lower(), "the name is not lower case"
        for suffix in self.format.suffixes:
            assert suffix.startswith(".") and suffix == suffix.lower(), f"{suffix!r} is no suffix"

    # What is wrong is refused

    def test_a_file_cut_at_any_byte_is_an_error(self) -> None:
        metadata = {"k": "v"} if self.has_metadata else None
        for tensors in (self.sample()[:3], [tensor("one", self.dtypes[0], (512,))], []):
            file = self.write(tensors, metadata)
            for length in range(len(file)):
                self._refuses(file[:length], f"the first {length} of {len(file)} bytes")

    def test_what_is_no_file_of_the_format_is_an_error(self) -> None:
        for file in NOT_WEIGHTS:
            self._refuses(file, f"{file[:20]!r}")

    def test_a_dtype_that_it_has_no_word_for_is_a_dtype_error(self) -> None:
        known = {DType.of(dtype).name for dtype in (*self.dtypes, *self.stored_as)}
        refused = self.refused
        if refused is None:
            refused = [dtype.name for dtype in describe_dtypes() if dtype.name not in known]
        for dtype in refused:
            try:
                self.format.write([tensor("t", dtype, (2, 8))], None, WriteOptions())
            except DTypeError as error:
                assert "'t'" in str(error), f"the error does not name the tensor: {error}"
            else:
                raise AssertionError(f"{dtype} was written, and is not among the dtypes")

    def test_its_own_files_have_nothing_odd(self) -> None:
        for tensors in ([], self.sample(), [tensor(name, self.dtypes[0], (2,), seed=at) for at, name in enumerate(NAMES)]):
            source = MemorySource(self.write(tensors, {"k": "v"} if self.has_metadata else None))
            _equal(list(self.format.verify(source, self.read(source), DEFAULT_LIMITS)), [], "the oddities of its own file")

    # How the tests look at things

    def _round_trip(self, tensors: Sequence[TensorSnapshot]) -> None:
        back = listed(self.read(self.write(tensors)))
        _equal(len(back), len(tensors), "the number of tensors")
        for given in tensors:
            want = (given.dtype.name, given.shape, given.tobytes())
            _equal(back.get(given.name), want, f"tensor {given.name[:50]!r}")

    def _refuses(self, file: bytes, what: str) -> None:
        try:
            listed(self.read(file))
        except BurnstoreError:
            return
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__} is not an error of burnstore ({error})") from error
        raise AssertionError(f"{what}: it was read without an error")


class _OneWay(io.RawIOBase):
    """A stream that cannot seek."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, out: Any) -> int:
        return self._data.readinto(out)


def _equal(got: object, want: object, what: str) -> None:
    if got != want:
        raise AssertionError(f"{what}: got {_short(got)}, want {_short(want)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:300]}…"
