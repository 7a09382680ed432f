"""The pickle of a state dict, opcode for opcode what Python's own pickler gives torch (protocol 2, every object memoized).

    80 02  ccollections\\nOrderedDict\\n ) R  (  name tensor  name tensor …  u  .
    tensor  = c_rebuild_tensor_v2  ( storage  offset  size  stride  requires_grad  hooks  t  R
    storage = ( 'storage'  ctorch FloatStorage  '0'  'cpu'  numel  t  Q

No object is pickled: tensors are written from their descriptions, values beside them only if they are plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct, pack
from typing import Any, NamedTuple

from burnstore.dtypes import Shape
from burnstore.errors import UsageError

# Python's pickler closes a list or a dict after so many items and goes on with the next batch.
_BATCH = 1000
_MAX_DEPTH = 100
_TUPLES = {1: b"\x85", 2: b"\x86", 3: b"\x87"}
_REBUILD = {False: b"ctorch._utils\n_rebuild_tensor_v2\n", True: b"ctorch._utils\n_rebuild_tensor_v3\n"}
_ORDERED_DICT = b"ccollections\nOrderedDict\n"
_EIGHT = Struct("4s" * 8)


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """How torch spells a dtype: by a storage class of its own, or, for the younger ones, as untyped bytes and a dtype."""

    storage: bytes
    itemsize: int
    dtype: bytes | None = None


class Described(NamedTuple):
    """One tensor: its name, kind and shape, and the number of its storage."""

    name: str
    kind: Kind
    shape: Shape
    key: int
    nbytes: int


def state_dict_pickle(tensors: Iterable[Described], key: str | None = None, extra: Mapping[str, Any] | None = None) -> bytes:
    """The pickle of `tensors`, or, with a key, of `{key: tensors, **extra}`."""
    out = _Pickler()
    if key is None:
        out.tensors(tensors)
    else:
        out.tensors_beside(key, tensors, extra or {})
    return out.finish()


class _Pickler:
    """Opcodes so far, and what can be referred to again."""

    __slots__ = ("_entries", "_keys", "_memo", "_next", "_numbers", "_out", "_shapes")

    def __init__(self) -> None:
        self._out: list[bytes] = [b"\x80\x02"]
        self._memo: dict[bytes, bytes] = {}
        self._next = 0
        self._keys: dict[int, bytes] = {}
        self._shapes: dict[Shape, tuple[int, bytes, bytes]] = {}
        self._entries: dict[tuple[Kind, Shape, int], bytes] = {}
        self._numbers = b""

    def finish(self) -> bytes:
        return b"".join([*self._out, b"."])

    def tensors(self, tensors: Iterable[Described]) -> None:
        self._out += (self._once(_ORDERED_DICT), b")R", self._put())
        self._batches(((tensor.name, tensor) for tensor in tensors), self._tensor_item, b"s", b"u")

    def tensors_beside(self, key: str, tensors: Iterable[Described], extra: Mapping[str, Any]) -> None:
        def item(entry: tuple[str, Any]) -> None:
            name, value = entry
            self._text(name)
            if name == key:
                self.tensors(value)
            else:
                self._value(value, f"extra[{name!r}]", 1)

        self._out += (b"}", self._put())
        self._batches([(key, tensors), *extra.items()], item, b"s", b"u")

    def _tensor_item(self, item: tuple[str, Described]) -> None:
        name, tensor = item
        at = self._next
        if at > 255 and tensor.key not in self._keys:
            like = (tensor.kind, tensor.shape, tensor.nbytes)
            template = self._entries.get(like)
            if template is None and tensor.shape and tensor.kind.storage in self._memo:
                template = self._entries[like] = self._template(tensor)
            if template is not None:
                self._next = at + 8
                self._keys[tensor.key] = b"j" + pack("<I", at + 1)
                if len(self._numbers) < 4 * at + 32:
                    self._count_on(at)
                text, key = name.encode("utf-8", "surrogatepass"), b"%d" % tensor.key
                a, b, c, d, e, f, g, h = _EIGHT.unpack_from(self._numbers, 4 * at)
                self._out.append(template % (pack("<I", len(text)), text, a, len(key), key, b, c, d, e, f, g, h))
                return
        self._text(name)
        self._tensor(tensor)

    def _tensor(self, tensor: Described) -> None:
        out, once, put, kind = self._out, self._once, self._put, tensor.kind
        rank, size, stride = self._size_and_stride(tensor.shape)
        out += (once(_REBUILD[kind.dtype is not None]), b"((", once(b"X\x07\0\0\0storage"), once(kind.storage))
        out += (self._key(tensor.key), once(b"X\x03\0\0\0cpu"), _int(tensor.nbytes // kind.itemsize), b"t", put(), b"QK\0")
        out += (size, put(), stride, put()) if rank else (b"))",)
        out += (b"\x89", once(_ORDERED_DICT), b")R", put())
        if kind.dtype is not None:
            out.append(once(kind.dtype))
        out += (b"t", put(), b"R", put())

    def _template(self, tensor: Described) -> bytes:
        """An entry of this dtype and shape, all of whose words have been written before: only names and numbers change."""
        kind, once = tensor.kind, self._once
        _, size, stride = self._size_and_stride(tensor.shape)
        start = once(_REBUILD[kind.dtype is not None]) + b"((" + once(b"X\x07\0\0\0storage") + once(kind.storage)
        numel = _int(tensor.nbytes // kind.itemsize)
        end = b"" if kind.dtype is None else once(kind.dtype)
        fixed = (start, once(b"X\x03\0\0\0cpu") + numel, size, stride, b"\x89" + once(_ORDERED_DICT), end)
        a, b, c, d, e, f = (piece.replace(b"%", b"%%") for piece in fixed)
        parts = (b"X%b%br%b", a, b"X%c\0\0\0%br%b", b, b"tr%bQK\0", c, b"r%b", d, b"r%b", e, b")Rr%b", f, b"tr%bRr%b")
        return b"".join(parts)

    def _count_on(self, at: int) -> None:
        """Have the next memo numbers ready as bytes."""
        until = max(2 * at, 64 * 1024)
        self._numbers = pack(f"<{until}I", *range(until))

    def _size_and_stride(self, shape: Shape) -> tuple[int, bytes, bytes]:
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = _size_and_stride(shape)
        return known

    def _key(self, key: int) -> bytes:
        known = self._keys.get(key)
        if known is not None:
            return known
        text = str(key).encode()
        self._keys[key] = _get(self._next)
        return b"X%c\0\0\0%b%b" % (len(text), text, self._put())

    def _once(self, opcodes: bytes) -> bytes:
        """The opcodes, and from the second time on a reference to what they made."""
        known = self._memo.get(opcodes)
        if known is not None:
            return known
        self._memo[opcodes] = _get(self._next)
        return opcodes + self._put()

    def _put(self) -> bytes:
        index = self._next
        self._next = index + 1
        return b"q%c" % index if index < 256 else b"r" + pack("<I", index)

    def _text(self, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        self._out += (b"X" + pack("<I", len(data)), data, self._put())

    # Values beside the tensors

    def _value(self, value: object, where: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise UsageError("it is nested too deep, or contains itself", where=where, do="give a plain tree of values")
        value = _plain(value)
        kind = type(value)
        if value is None or kind is bool:
            self._out.append(b"N" if value is None else b"\x88" if value else b"\x89")
        elif kind is int:
            self._out.append(_int(value, where))  # type: ignore[arg-type]
        elif kind is float:
            self._out.append(pack(">cd", b"G", value))
        elif kind is str:
            self._text(value)  # type: ignore[arg-type]
        elif kind is bytes:
            self._bytes(value)  # type: ignore[arg-type]
        elif kind is list:
            self._out += (b"]", self._put())
            items = [(index, item) for index, item in enumerate(value)]  # type: ignore[arg-type, var-annotated]
            self._batches(items, lambda item: self._value(item[1], f"{where}[{item[0]}]", depth + 1), b"a", b"e")
        elif kind is tuple:
            self._tuple(value, where, depth)  # type: ignore[arg-type]
        elif kind is dict:
            self._out += (b"}", self._put())
            self._batches(value.items(), lambda item: self._dict_item(item, where, depth + 1), b"s", b"u")  # type: ignore[attr-defined]
        else:
            raise UsageError(
                f"a {kind.__name__} is no plain value",
                where=where,
                do="give None, bool, int, float, str, bytes, list, tuple or dict",
            )

    def _dict_item(self, item: tuple[object, object], where: str, depth: int) -> None:
        key, value = item
        if not isinstance(key, (str, int, float, bytes, tuple, type(None))):
            raise UsageError(f"a {type(key).__name__} cannot be a key", where=where, do="use text or numbers as keys")
        self._value(key, where, depth)
        self._value(value, f"{where}[{key!r}]", depth)

    def _tuple(self, value: tuple[object, ...], where: str, depth: int) -> None:
        if not value:
            self._out.append(b")")
            return
        close = _TUPLES.get(len(value))
        if close is None:
            self._out.append(b"(")
        for index, item in enumerate(value):
            self._value(item, f"{where}[{index}]", depth + 1)
        self._out += (close or b"t", self._put())

    def _bytes(self, value: bytes) -> None:
        """Protocol 2 has no bytes: they are text in Latin-1, and the call that turns it back, which `weights_only` allows."""
        self._out.append(self._once(b"c_codecs\nencode\n"))
        self._text(value.decode("latin-1"))
        self._out += (self._once(b"X\x06\0\0\0latin1"), b"\x86", self._put(), b"R", self._put())

    def _batches(self, items: Iterable[Any], write: Callable[[Any], None], one: bytes, many: bytes) -> None:
        for batch in _batched(items):
            if len(batch) == 1:
                write(batch[0])
                self._out.append(one)
                continue
            self._out.append(b"(")
            for item in batch:
                write(item)
            self._out.append(many)


def _batched(items: Iterable[Any]) -> Iterator[Sequence[Any]]:
    whole = list(items)
    for start in range(0, len(whole), _BATCH):
        yield whole[start : start + _BATCH]


def _get(index: int) -> bytes:
    return b"h%c" % index if index < 256 else b"j" + pack("<I", index)


def _int(value: int, where: str | None = None) -> bytes:
    if 0 <= value < 256:
        return b"K%c" % value
    if 0 <= value < 65536:
        return pack("<cH", b"M", value)
    if -(2**31) <= value < 2**31:
        return pack("<ci", b"J", value)
    length = (value.bit_length() >> 3) + 1
    if length > 255:
        raise UsageError(f"an integer of {value.bit_length()} bits is too long", where=where, do="give it as text")
    data = value.to_bytes(length, "little", signed=True)
    if value < 0 and data[-1] == 0xFF and data[-2] & 0x80:
        data = data[:-1]  # as Python does: no more bytes than the sign needs
    return b"\x8a%c%b" % (len(data), data)


def _size_and_stride(shape: Shape) -> tuple[int, bytes, bytes]:
    strides, step = [], 1
    for dim in reversed(shape):
        strides.append(step)
        step *= max(dim, 1)
    rank = len(shape)
    start, close = (b"", _TUPLES[rank]) if rank in _TUPLES else (b"(", b"t")
    size, stride = (start + b"".join(map(_int, dims)) + close for dims in (shape, reversed(strides)))
    return rank, size, stride


def _plain(value: object) -> object:
    """NumPy's scalars and the children of plain classes as what they stand for."""
    if value is None or type(value) in (bool, int, float, str, bytes, list, tuple, dict):
        return value
    item = getattr(value, "item", None)
    if item is not None and type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return item()
    kind: Any = next((kind for kind in (int, float, str, bytes, list, tuple, dict) if isinstance(value, kind)), None)
    return value if kind is None else kind(value)
