r"""Whole tensors at once: the opcodes of one entry of a state dict always have the same shape.

    X name q     h q  ((  h h  X key q  h  K numel  t q  Q   K offset   K 3 K 4 \x86 q   K 4 K 1 \x86 q   \x89  h)R q  t q  R q
    └ its name ┘ └ rebuild, 'storage', class, key, 'cpu' ┘   └ offset, size, strides ─────────────────┘   └ hooks, the call ┘

One bytes pattern takes such an entry, some sixty opcodes, in one step. It stands for exactly what the opcodes would do:
every reference to the memo (h, j) must lead to the right node, and every q and r must number its value one higher than the
one before, above all that was remembered so far. What does not match is left to the single opcodes.

The values that an entry puts into the memo are rarely asked for again, so they are made only then, from the entry.
"""

from __future__ import annotations

import re
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any

from burnstore.formats.pytorch.nodes import Geometry, Global, Items, Storage, Tensor
from burnstore.formats.pytorch.storages import storage_of_fields

if TYPE_CHECKING:
    from burnstore.formats.pytorch.pickle_machine import Machine

_u32 = Struct("<I").unpack_from
_REF = rb"(?:h.|j....)"
_NUMBER = rb"(?:K.|M..|J....)"
_DIMS = rb"\)|" + _NUMBER + rb"{1,3}+[\x85-\x87]|\(" + _NUMBER + rb"{4,64}+t"
_PIECES = ("head", "tail", "offset", "size", "strides", "hooks")
_PUTS = ("p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")
_RISING = bytes(range(256))


def _pattern(first: bytes, later: bytes) -> re.Pattern[bytes]:
    """An entry from the put of its name on; `first` and `later` match the first number given and those after it."""
    puts = iter([first, *(later.replace(b"pN", put.encode()) for put in _PUTS[1:])])

    def dims(group: bytes) -> bytes:
        return rb"(?P<" + group + rb">" + _DIMS + rb")(?:(?<!\))" + next(puts) + rb"|(?<=\)))"

    return re.compile(
        next(puts)
        + rb"(?P<head>" + _REF + rb"\(\(" + _REF + _REF + rb")"
        + rb"(?:X(?P<length>.)\0\0\0(?P<key>[0-9]+)" + next(puts) + rb"|(?P<keyref>" + _REF + rb"))"
        + rb"(?P<tail>" + _REF + _NUMBER + rb"N?+)t" + next(puts) + rb"Q"
        + rb"(?P<offset>" + _NUMBER + rb")"
        + dims(b"size") + dims(b"strides")
        + rb"(?P<hooks>[\x88\x89]" + _REF + rb"\)R)" + next(puts)
        + rb"t" + next(puts) + rb"R" + next(puts),
        re.DOTALL,
    )  # fmt: skip


# Four bytes of number, the upper three the same throughout: all but one in thirty entries of a large file.
_LONG = _pattern(rb"r(?P<p0>.)(?P<high>...)", rb"r(?P<pN>.)(?P=high)")
_ANY = _pattern(rb"(?P<p0>q.|r....)?+", rb"(?P<pN>q.|r....)")


def _getter(pattern: re.Pattern[bytes], names: tuple[str, ...]) -> Any:
    return itemgetter(*(pattern.groupindex[name] - 1 for name in names))


_long_puts, _long_pieces = _getter(_LONG, _PUTS), _getter(_LONG, _PIECES)
_long_rest = _getter(_LONG, ("key", "length", "keyref", "high"))
_any_puts, _any_pieces = _getter(_ANY, _PUTS), _getter(_ANY, _PIECES)
_any_rest = _getter(_ANY, ("key", "length", "keyref"))


class Template:
    """What entries with the same pieces share."""

    __slots__ = ("flag", "function", "geometry", "kind", "location", "numel", "ordered")

    def __init__(self, geometry: Geometry, function: Global, storage: tuple[Any, ...], flag: bool, ordered: Global) -> None:
        self.geometry, self.function, self.flag, self.ordered = geometry, function, flag, ordered
        self.kind, self.location, self.numel = storage


class Entries:
    """The fast path of one machine."""

    __slots__ = ("active", "function", "machine", "templates")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.function: Global | None = None
        # Nothing is looked for before the pickle names the function that rebuilds tensors.
        self.active = False
        self.templates: dict[tuple[bytes, ...], Template | None] = {}

    def saw(self, name: Global) -> None:
        """Begin to look for entries once there is something that they can refer to."""
        if name.name == "_rebuild_tensor_v2" and name.module == "torch._utils":
            self.function, self.active = name, True

    def forget(self) -> None:
        """A number of the memo was given again: what was found out about references may be wrong now."""
        self.templates.clear()

    def take(self, at: int) -> int:
        """Push the names and tensors of the entries that begin at `at`; where the next opcode is, or 0 for no entry."""
        m = self.machine
        data, stack, templates = m.data, m.stack, self.templates
        begin, size = at, len(m.data)
        while at + 5 <= size and data[at] == 0x58:
            name_end = at + 5 + _u32(data, at + 1)[0]
            match = _LONG.match(data, name_end)
            if match is not None:
                groups = match.groups(b"")
                lows = b"".join(_long_puts(groups))
                key, length, reference, high = _long_rest(groups)
                base, count = lows[0] | int.from_bytes(high, "little") << 8, len(lows)
                if _RISING[lows[0] : lows[0] + count] != lows:
                    break
                pieces = _long_pieces(groups)
            else:
                match = _ANY.match(data, name_end)
                if match is None or match["p0"] is None:
                    break
                groups = match.groups(b"")
                base, count = _numbered(_any_puts(groups))
                key, length, reference = _any_rest(groups)
                pieces = _any_pieces(groups)
            if base < m.memo_end:
                break
            template = templates.get(pieces)
            if template is None:
                template = self._template(pieces)
                if template is None:
                    break
            if key:
                if len(key) != length[0]:
                    break
                text = key.decode()
            else:
                text = self._key(reference)
                if text is None:
                    break
            m.op_at = at
            name = str(data[at + 5 : name_end], "utf-8", "surrogatepass")
            tensor = Tensor(template.geometry, text)
            stack.append(name)
            stack.append(tensor)
            m.run_bases.append(base)
            m.runs.append((name, bool(key), template, tensor))
            m.run_count += count
            m.memo_end = base + count
            at = match.end()
        return at if at != begin else 0

    def take_value(self, at: int) -> int:
        """The same for one tensor whose name came otherwise."""
        m = self.machine
        match = _ANY.match(m.data, at)
        if match is None or match["p0"] is not None:
            return 0
        groups = match.groups(b"")
        base, count = _numbered(_any_puts(groups))
        key, length, reference = _any_rest(groups)
        template = self.templates.get(_any_pieces(groups)) or self._template(_any_pieces(groups))
        if base < m.memo_end or template is None or (key and len(key) != length[0]):
            return 0
        text = key.decode() if key else self._key(reference)
        if text is None:
            return 0
        tensor = Tensor(template.geometry, text)
        m.stack.append(tensor)
        m.run_bases.append(base)
        m.runs.append((None, bool(key), template, tensor))
        m.run_count += count
        m.memo_end = base + count
        return match.end()

    def _key(self, reference: bytes) -> str | None:
        found = self._referred(reference)
        return found if type(found) is str else None

    def _referred(self, reference: bytes) -> Any:
        index = int.from_bytes(reference[1:], "little")
        m = self.machine
        if index in m.memo or m.run_bases:
            from burnstore.formats.pytorch.pickle_machine import PickleFaultError

            try:
                return m.get(index)
            except PickleFaultError:
                return None
        return None

    def _template(self, pieces: tuple[bytes, ...]) -> Template | None:
        """What the pieces say, if every reference leads where it must."""
        head, tail, offset, size, strides, hooks = pieces
        function, rest = self._split(head, 2)
        word, kind = self._split(rest)[0], self._referred(self._after(rest))
        location, rest = self._split(tail)
        ordered = self._referred(hooks[1:-2])
        if (
            self.function is None
            or function is not self.function
            or word != "storage"
            or type(kind) is not Global
            or type(location) is not str
            or type(ordered) is not Global
            or (ordered.module, ordered.name) != ("collections", "OrderedDict")
            or (size == b")") != (strides == b")")
        ):
            return None
        shape, steps = _dims(size), _dims(strides)
        if shape is None or steps is None:
            return None
        numel = _numbers(rest.removesuffix(b"N"))[0]
        storage = storage_of_fields(kind, "", location, numel)
        if storage.fault:
            return None
        from burnstore.formats.pytorch.rebuild import geometry_of

        geometry = geometry_of(storage, _numbers(offset)[0], shape, steps)
        template = Template(geometry, self.function, (kind, location, numel), hooks[0] == 0x88, ordered)
        self.templates[pieces] = template
        return template

    def _split(self, piece: bytes, skip: int = 0) -> tuple[Any, bytes]:
        """The node that a piece's first reference leads to, and what follows it."""
        size = 2 if piece[:1] == b"h" else 5
        return self._referred(piece[:size]), piece[size + skip :]

    def _after(self, piece: bytes) -> bytes:
        return piece[2 if piece[:1] == b"h" else 5 :]

    def remembered(self, run: tuple[str | None, bool, Template, Tensor], index: int) -> tuple[Any] | None:
        """The value that an entry put into the memo as its `index`-th."""
        name, has_key, template, tensor = run
        geometry = template.geometry
        storage = Storage(geometry.dtype, tensor.key, template.location, template.numel)
        fields = ("storage", template.kind, tensor.key, template.location, template.numel)
        hooks = Items(template.ordered)
        values: list[Any] = [] if name is None else [name]
        values += [tensor.key, fields] if has_key else [fields]
        values += [geometry.shape, geometry.strides] if geometry.shape else []
        values += [hooks, (storage, geometry.offset, geometry.shape, geometry.strides, template.flag, hooks), tensor]
        return (values[index],) if index < len(values) else None


def _numbered(puts: tuple[bytes, ...]) -> tuple[int, int]:
    """The first number and how many there are, or -1 if they do not rise by one."""
    numbers = [int.from_bytes(put[1:], "little") for put in puts if put]
    first = numbers[0]
    return (first, len(numbers)) if numbers == list(range(first, first + len(numbers))) else (-1, 0)


def _numbers(piece: bytes) -> tuple[int, ...]:
    """The numbers that K, M and J push."""
    found, at = [], 0
    while at < len(piece):
        size = {0x4B: 1, 0x4D: 2, 0x4A: 4}[piece[at]]
        found.append(int.from_bytes(piece[at + 1 : at + 1 + size], "little", signed=size == 4))
        at += 1 + size
    return tuple(found)


def _dims(piece: bytes) -> tuple[int, ...] | None:
    """A tuple of numbers, if the opcode that closes it takes just these."""
    if piece == b")":
        return ()
    if piece[:1] == b"(":
        return _numbers(piece[1:-1])
    numbers = _numbers(piece[:-1])
    return numbers if len(numbers) == piece[-1] - 0x84 else None
