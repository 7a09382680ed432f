"""The opcodes of pickle protocols 0 to 5, each as a function that takes the machine and the offset after its byte."""

from __future__ import annotations

from typing import Any

from burnstore.formats.pytorch import value_opcodes as values
from burnstore.formats.pytorch.machine_texts import integer_text, line
from burnstore.formats.pytorch.nodes import Bag, Composite, Global, Items, Made, OddKey, Storage, Tensor
from burnstore.formats.pytorch.pickle_machine import Machine, PickleFaultError
from burnstore.formats.pytorch.rebuild import call
from burnstore.formats.pytorch.value_opcodes import Handler, number, take

STOP = 0x2E
# Longer integers are no keys: hashing one is not free, and it could be done again and again.
_KEY_BITS = 4096
_KEYS = frozenset({str, bool, type(None), float, bytes})


def _key(key: Any) -> Any:
    kind = type(key)
    if kind in _KEYS or (kind is int and key.bit_length() <= _KEY_BITS):
        return key
    if kind in (list, dict, Items, Bag, bytearray):
        raise PickleFaultError(f"a {kind.__name__} cannot be a key")
    return OddKey(key)


def _marked(m: Machine) -> list[Any]:
    if not m.below:
        raise PickleFaultError("there is no MARK")
    items = m.stack
    m.stack = m.below.pop()
    return items


# The stack and the memo


def _mark(m: Machine, at: int) -> int:
    m.below.append(m.stack)
    m.stack = []
    return at


def _pop(m: Machine, at: int) -> int:
    if m.stack:
        m.stack.pop()
    else:
        _marked(m)
    return at


def _pop_mark(m: Machine, at: int) -> int:
    _marked(m)
    return at


def _dup(m: Machine, at: int) -> int:
    m.stack.append(m.stack[-1])
    return at


def _get(m: Machine, at: int) -> int:
    text, at = line(m, at)
    m.stack.append(m.get(integer_text(text)))
    return at


def _binget(m: Machine, at: int) -> int:
    value = m.get(number(m, at, 1))
    if m.entries.active and value is m.entries.function:
        after = m.entries.take_value(at - 1)
        if after:
            return after
    m.stack.append(value)
    return at + 1


def _long_binget(m: Machine, at: int) -> int:
    m.stack.append(m.get(number(m, at, 4)))
    return at + 4


def _put(m: Machine, at: int) -> int:
    text, at = line(m, at)
    m.put(integer_text(text))
    return at


def _binput(m: Machine, at: int) -> int:
    m.put(number(m, at, 1))
    return at + 1


def _long_binput(m: Machine, at: int) -> int:
    m.put(number(m, at, 4))
    return at + 4


def _memoize(m: Machine, at: int) -> int:
    m.put(len(m.memo) + m.run_count)
    return at


# Containers


def _tuple(size: int) -> Handler:
    def handler(m: Machine, at: int) -> int:
        stack = m.stack
        if len(stack) < size:
            raise PickleFaultError("it takes a value from an empty stack")
        stack[-size:] = [tuple(stack[-size:])]
        return at

    return handler


def _tuple_marked(m: Machine, at: int) -> int:
    items = tuple(_marked(m))
    m.stack.append(items)
    return at


def _list_marked(m: Machine, at: int) -> int:
    items = _marked(m)
    m.stack.append(items)
    return at


def _dict_marked(m: Machine, at: int) -> int:
    items = _marked(m)
    m.stack.append(filled({}, items))
    return at


def _frozenset(m: Machine, at: int) -> int:
    items = _marked(m)
    m.stack.append(Bag(items))
    return at


def filled(target: Any, items: list[Any]) -> Any:
    if len(items) % 2:
        raise PickleFaultError("a key has no value")
    for key, value in zip(items[::2], items[1::2], strict=True):
        target[key if type(key) is str else _key(key)] = value
    return target


def _items_of(target: Any) -> dict[Any, Any]:
    if isinstance(target, (dict, Items)):
        return target
    if type(target) is Made:
        if target.items is None:
            target.items = {}
        return target.items
    raise PickleFaultError(f"it sets an item of {_what(target)}")


def _setitem(m: Machine, at: int) -> int:
    stack = m.stack
    value, key, target = stack.pop(), stack.pop(), stack[-1]
    _items_of(target)[_key(key)] = value
    return at


def _setitems(m: Machine, at: int) -> int:
    items = _marked(m)
    filled(_items_of(m.stack[-1]), items)
    return at


def _list_of(target: Any) -> list[Any]:
    if type(target) is list:
        return target
    if type(target) is Made:
        if target.appended is None:
            target.appended = []
        return target.appended
    raise PickleFaultError(f"it appends to {_what(target)}")


def _append(m: Machine, at: int) -> int:
    value = m.stack.pop()
    _list_of(m.stack[-1]).append(value)
    return at


def _appends(m: Machine, at: int) -> int:
    items = _marked(m)
    _list_of(m.stack[-1]).extend(items)
    return at


def _additems(m: Machine, at: int) -> int:
    items = _marked(m)
    target = m.stack[-1]
    if type(target) is not Bag:
        raise PickleFaultError(f"it adds elements to {_what(target)}")
    target.items.extend(items)
    return at


# Names, calls and objects


def _global(m: Machine, at: int) -> int:
    module, at = line(m, at)
    name, at = line(m, at)
    m.stack.append(_entered(m, str(module, "utf-8"), str(name, "utf-8")))
    return at


def _stack_global(m: Machine, at: int) -> int:
    name, module = m.stack.pop(), m.stack.pop()
    if type(name) is not str or type(module) is not str:
        raise PickleFaultError("a name is not a text")
    m.stack.append(_entered(m, module, name))
    return at


def _entered(m: Machine, module: str, name: str) -> Global:
    found = m.global_named(module, name)
    m.entries.saw(found)
    return found


def _reduce(m: Machine, at: int) -> int:
    args, func = m.stack.pop(), m.stack.pop()
    if type(args) is not tuple:
        raise PickleFaultError("the arguments of a call are not a tuple")
    m.stack.append(call(func, args, m.op_at, m.spend))
    return at


def _newobj_ex(m: Machine, at: int) -> int:
    keywords, args, func = m.stack.pop(), m.stack.pop(), m.stack.pop()
    if type(args) is not tuple:
        raise PickleFaultError("the arguments of a call are not a tuple")
    m.stack.append(Made(func, args, m.op_at, keywords or None))
    return at


def _obj(m: Machine, at: int) -> int:
    items = _marked(m)
    if not items:
        raise PickleFaultError("there is no class to make an object of")
    m.stack.append(Made(items[0], tuple(items[1:]), m.op_at))
    return at


def _inst(m: Machine, at: int) -> int:
    module, at = line(m, at)
    name, at = line(m, at)
    items = _marked(m)
    m.stack.append(Made(_entered(m, str(module, "utf-8"), str(name, "utf-8")), tuple(items), m.op_at))
    return at


def _build(m: Machine, at: int) -> int:
    state, target = m.stack.pop(), m.stack[-1]
    kind = type(target)
    if kind is Made:
        if target.states is None:
            target.states = []
        target.states.append(state)
    elif kind is Items:
        target.states.append(state)
    elif kind is Tensor and type(state) is tuple:
        raise PickleFaultError("it gives a tensor other values")
    elif kind not in (Tensor, Composite):  # attributes of a tensor change none of its values
        raise PickleFaultError(f"it sets attributes of {_what(target)}")
    return at


def _persid(m: Machine, at: int) -> int:
    text, at = line(m, at)
    m.stack.append(m.persistent(str(text, "utf-8"), m.op_at))
    return at


def _binpersid(m: Machine, at: int) -> int:
    m.stack.append(m.persistent(m.stack.pop(), m.op_at))
    return at


def _what(value: object) -> str:
    if isinstance(value, (Global, Storage)):
        return "a class or function" if isinstance(value, Global) else "a storage"
    return "None" if value is None else f"a {type(value).__name__}"


# Framing, and what is refused


def _proto(m: Machine, at: int) -> int:
    version = number(m, at, 1)
    if version > 5:
        raise PickleFaultError(f"pickle protocol {version} is not known")
    return at + 1


def _frame(m: Machine, at: int) -> int:
    take(m, at, 8)  # frames only help streams; what they say does not change what follows
    return at + 8


def _refused(what: str) -> Handler:
    def handler(m: Machine, at: int) -> int:
        raise PickleFaultError(what)

    return handler


_EXT = "codes of copyreg's registry mean nothing outside the program that wrote them"
_BUFFER = "its data is out of band, and not in this file"
_TABLE: dict[str, tuple[int, Handler]] = {
    "PROTO": (0x80, _proto),
    "FRAME": (0x95, _frame),
    "MARK": (0x28, _mark),
    "POP": (0x30, _pop),
    "POP_MARK": (0x31, _pop_mark),
    "DUP": (0x32, _dup),
    "NONE": (0x4E, values.push(None)),
    "NEWTRUE": (0x88, values.push(True)),
    "NEWFALSE": (0x89, values.push(False)),
    "INT": (0x49, values.int_text),
    "BININT": (0x4A, values.binint),
    "BININT1": (0x4B, values.binint1),
    "BININT2": (0x4D, values.binint2),
    "LONG": (0x4C, values.long_text),
    "LONG1": (0x8A, values.long(1)),
    "LONG4": (0x8B, values.long(4)),
    "FLOAT": (0x46, values.float_text),
    "BINFLOAT": (0x47, values.binfloat),
    "STRING": (0x53, values.string),
    "BINSTRING": (0x54, values.binstring(4)),
    "SHORT_BINSTRING": (0x55, values.binstring(1)),
    "BINBYTES": (0x42, values.binbytes(4)),
    "SHORT_BINBYTES": (0x43, values.binbytes(1)),
    "BINBYTES8": (0x8E, values.binbytes(8)),
    "BYTEARRAY8": (0x96, values.bytearray8),
    "UNICODE": (0x56, values.unicode),
    "BINUNICODE": (0x58, values.binunicode),
    "SHORT_BINUNICODE": (0x8C, values.text(1)),
    "BINUNICODE8": (0x8D, values.text(8)),
    "EMPTY_LIST": (0x5D, values.push_new(list)),
    "EMPTY_DICT": (0x7D, values.push_new(dict)),
    "EMPTY_TUPLE": (0x29, values.push(())),
    "EMPTY_SET": (0x8F, values.push_new(lambda: Bag([]))),
    "LIST": (0x6C, _list_marked),
    "DICT": (0x64, _dict_marked),
    "TUPLE": (0x74, _tuple_marked),
    "FROZENSET": (0x91, _frozenset),
    "TUPLE1": (0x85, _tuple(1)),
    "TUPLE2": (0x86, _tuple(2)),
    "TUPLE3": (0x87, _tuple(3)),
    "APPEND": (0x61, _append),
    "APPENDS": (0x65, _appends),
    "SETITEM": (0x73, _setitem),
    "SETITEMS": (0x75, _setitems),
    "ADDITEMS": (0x90, _additems),
    "GET": (0x67, _get),
    "BINGET": (0x68, _binget),
    "LONG_BINGET": (0x6A, _long_binget),
    "PUT": (0x70, _put),
    "BINPUT": (0x71, _binput),
    "LONG_BINPUT": (0x72, _long_binput),
    "MEMOIZE": (0x94, _memoize),
    "GLOBAL": (0x63, _global),
    "STACK_GLOBAL": (0x93, _stack_global),
    "REDUCE": (0x52, _reduce),
    "BUILD": (0x62, _build),
    "INST": (0x69, _inst),
    "OBJ": (0x6F, _obj),
    "NEWOBJ": (0x81, _reduce),
    "NEWOBJ_EX": (0x92, _newobj_ex),
    "PERSID": (0x50, _persid),
    "BINPERSID": (0x51, _binpersid),
    "EXT1": (0x82, _refused(_EXT)),
    "EXT2": (0x83, _refused(_EXT)),
    "EXT4": (0x84, _refused(_EXT)),
    "NEXT_BUFFER": (0x97, _refused(_BUFFER)),
    "READONLY_BUFFER": (0x98, _refused(_BUFFER)),
}
HANDLERS: list[Handler] = [_refused("there is no such opcode")] * 256
for _code, _handler in _TABLE.values():
    HANDLERS[_code] = _handler
_NAMES = {code: name for name, (code, _) in _TABLE.items()} | {STOP: "STOP"}


def opcode_name(op: int) -> str:
    """What messages call an opcode.

    >>> opcode_name(0x52), opcode_name(0xFE)
    ('REDUCE', 'opcode 0xfe')
    """
    return _NAMES.get(op, f"opcode 0x{op:02x}")
