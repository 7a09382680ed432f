"""Small files whose values are large when each is shown, copied or unpacked as often as it is used."""

from __future__ import annotations

import struct
import zlib

import pytest

import burnstore as bs
from burnstore.errors import FormatError, LimitError
from burnstore.limits import Limits
from tests.safety.pytorch.forge import PROTOCOL, archive, items, name, number, storage, tensor, text


def _doubled(times: int) -> bytes:
    """A list of one number, in a list that holds it twice, and so on."""
    return b"]K\1a" + b"".join(b"q%c0](h%ch%ce" % (i, i, i) for i in range(times))


def test_lists_that_hold_lists_twice_are_counted_as_often_as_they_are_shown() -> None:
    with pytest.raises(LimitError, match="config_values"):
        bs.read_config(archive(_doubled(40)))
    assert list(bs.open(archive(items(c=_doubled(40), a=tensor())))) == ["a"]


def test_the_limit_of_values_can_be_changed() -> None:
    file = archive(_doubled(3))
    with pytest.raises(LimitError, match="more than 15 "):
        bs.read_config(file, limits=Limits(config_values=15))
    assert bs.read_config(file, limits=Limits(config_values=30)) == [[[[1], [1]], [[1], [1]]]] * 2


_LONG = "c" * 50_000
_COPIED = {
    "bytearray": name("builtins", "bytearray") + b"q\0" + b"B" + struct.pack("<I", 50_000) + bytes(50_000) + b"\x85q\1",
    "device": name("torch", "device") + b"q\0" + text(_LONG) + b"K\0\x86q\1",
    "Fraction": name("fractions", "Fraction") + b"q\0" + number(10**4200) + b"q\2" + b"h\2\x86q\1",
}


@pytest.mark.parametrize("kind", list(_COPIED))
def test_what_a_call_copies_is_counted_for_each_call(kind: str) -> None:
    def made(times: int) -> bytes:
        return archive(b"]" + _COPIED[kind] + b"00(" + b"h\0h\1R" * times + b"e")

    limits = Limits(config_values=60_000)
    assert len(bs.read_config(made(1), limits=limits)) == 1
    with pytest.raises(LimitError, match="config_values"):
        bs.read_config(made(100), limits=limits)


def test_sizes_of_a_hundred_thousand_bytes_are_not_multiplied() -> None:
    size = number(1 << 800_000) + b"q\1" + b"0(" + b"h\1" * 64 + b"tq\2" + b"0"
    names = [f"a{i}" for i in range(30)]
    store = bs.open(archive(size + items(**{key: tensor(size=b"h\2", strides=b"h\2") for key in names})))
    assert list(store) == names
    for key in names:
        with pytest.raises(FormatError, match=r"a size of about 2\*\*80000\d is not possible"):
            store[key].numpy()


def test_arguments_of_arguments_are_counted_for_each_call() -> None:
    inner = b"}(" + b"".join(text(str(i)) + b"h\1" for i in range(2000)) + b"u"
    jagged = name("torch.nested._internal.nested_tensor", "_rebuild_njt") + name("torch", "Tensor") + inner + b"\x85N"
    pickle = tensor() + b"q\1" + b"0" + name("torch._tensor", "_rebuild_from_type_v2") + b"q\2" + b"(" + jagged + b"tq\3"
    assert len(bs.open(archive(pickle + b"00](" + b"h\2h\3R" + b"e"))) <= 1
    with pytest.raises(FormatError, match="copies the same values again and again"):
        bs.open(archive(pickle + b"00](" + b"h\2h\3R" * 300 + b"e"))


def _quoting(count: int, size: int) -> bytes:
    """Deflated entries, each of which stores the headers of those after it, and which end in the same bytes."""
    body = zlib.compress(bytes(size), 9, -15)
    pickle = PROTOCOL + items(a=tensor(storage(key="000"))) + b"."
    wrong = 12345  # whoever unpacks an entry finds that its checksum is another

    def local(entry: bytes, method: int, crc: int, packed: int, full: int, extra: int) -> bytes:
        return struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, method, 0, 0, crc, packed, full, len(entry), extra) + entry

    def listed(entry: bytes, method: int, crc: int, packed: int, full: int, at: int) -> bytes:
        head = struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, method, 0, 0, crc, packed, full, len(entry), 0, 0, 0, 0, 0, at)
        return head + entry

    first = (b"a/data.pkl", 0, zlib.crc32(pickle), len(pickle), len(pickle))
    out, directory = local(*first, 0) + pickle, listed(*first, 0)
    each = len(local(b"a/data/000", 8, 0, 0, 0, 0))
    for i in range(count):
        entry = (b"a/data/%03d" % i, 8, wrong, len(body), size)
        directory += listed(*entry, len(out))
        out += local(*entry, (count - 1 - i) * each)
    out += body
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count + 1, count + 1, len(directory), len(out), 0)
    return out + directory + end


def test_verify_names_entries_that_share_bytes_and_does_not_unpack_them() -> None:
    found = bs.verify(_quoting(100, 1 << 20))
    assert not found.ok
    assert [problem for problem in found.problems if "share their bytes" in problem]
    assert not [problem for problem in (*found.problems, *found.oddities) if "checksum" in problem]
