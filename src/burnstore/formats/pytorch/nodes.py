"""What a pickle's opcodes become: plain data. Nothing here was imported from, or called by, the file.

Texts, numbers, lists, tuples and dicts are Python's own. What a file makes by naming something is one of these:

    Global      a name of a module's function or class
    Items       a dict that is not quite one: OrderedDict, defaultdict, Counter
    Bag         a set; its elements are never hashed
    Made        anything else that was called or built: it remembers by what and with what
    Storage     what a persistent id stands for: the bytes of tensors
    Tensor      a geometry over a storage
    Composite   a tensor that has no plain values: sparse, quantised, nested, broken
"""

from __future__ import annotations

import math
from typing import Any

from burnstore.dtypes import DType, Shape

# NumPy's limit; it also bounds the work that one tensor of a file can ask for.
MAX_RANK = 64
# torch's own: sizes, strides and offsets are numbers of 64 bits.
_END = 2**63


class Global:
    """A name of something in a module, which is never looked up."""

    __slots__ = ("module", "name", "offset")

    def __init__(self, module: str, name: str, offset: int) -> None:
        self.module, self.name, self.offset = module, name, offset

    @property
    def text(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def shown(self) -> str:
        """The name for a message: short, and on one line."""
        return repr(self.text[:100])[1:-1]


class Items(dict[Any, Any]):
    """A dict of another class than dict."""

    __slots__ = ("kind", "states")

    def __init__(self, kind: Global) -> None:
        self.kind = kind
        self.states: list[object] = []

    __hash__ = object.__hash__  # type: ignore[assignment]


class OddKey:
    """A dict's key that is not a text, a number or None: hashing it could take for ever, so it stands for itself."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class Bag:
    """The elements of a set."""

    __slots__ = ("items",)

    def __init__(self, items: list[object]) -> None:
        self.items = items


class Made:
    """What calling or building something would have made."""

    __slots__ = ("appended", "args", "func", "items", "keywords", "offset", "states")

    def __init__(self, func: object, args: tuple[Any, ...], offset: int, keywords: object = None) -> None:
        self.func, self.args, self.offset, self.keywords = func, args, offset, keywords
        self.states: list[object] | None = None
        self.items: dict[Any, object] | None = None
        self.appended: list[object] | None = None

    def attributes(self) -> dict[Any, object] | None:
        """The attributes that its last state gives: a dict, or the pair of dicts that slots make; None for another state."""
        if not self.states:
            return None
        state = self.states[-1]
        if type(state) is tuple and len(state) == 2 and all(part is None or isinstance(part, dict) for part in state):
            return {**(state[0] or {}), **(state[1] or {})}
        return state if isinstance(state, dict) else None


class Storage:
    """Bytes that tensors share, by the key under which a container has them; `fault` says why it is none."""

    __slots__ = ("dtype", "fault", "key", "location", "numel", "view")

    def __init__(
        self,
        dtype: DType | None,
        key: Any,
        location: object,
        numel: Any,
        view: tuple[str, int, int] | None = None,
        fault: str | None = None,
    ) -> None:
        self.dtype, self.key, self.location, self.numel, self.view, self.fault = dtype, key, location, numel, view, fault

    @property
    def unit(self) -> int:
        """The bytes of what it counts: elements, or bytes where it is untyped."""
        return max(1, self.dtype.bits // 8) if self.dtype else 1

    @property
    def nbytes(self) -> int:
        """The bytes that it says it has."""
        return int(self.numel * self.unit)


class Geometry:
    """How a tensor lies in its storage. Tensors of one shape and dtype share one."""

    __slots__ = (
        "conj",
        "contiguous",
        "dtype",
        "fault",
        "itemsize",
        "nbytes",
        "neg",
        "offset",
        "reach",
        "shape",
        "storage_nbytes",
        "storage_unit",
        "strides",
        "view",
    )

    def __init__(
        self, dtype: DType, storage: Storage, offset: Any, shape: Any, strides: Any, conj: bool = False, neg: bool = False
    ) -> None:
        self.dtype, self.itemsize = dtype, max(1, dtype.bits // 8)
        self.offset: int = offset
        self.shape: Shape = shape
        self.strides: tuple[int, ...] = strides
        self.conj, self.neg, self.view = conj, neg, storage.view
        self.storage_nbytes, self.storage_unit = 0, storage.unit
        self.contiguous = False
        # The bytes of its values, and how many bytes of the storage they are spread over.
        self.nbytes = self.reach = 0
        self.fault = storage.fault or self._fault(storage)

    def _fault(self, storage: Storage) -> str | None:
        shape, strides, offset = self.shape, self.strides, self.offset
        for what, value in (("size", shape), ("stride", strides)):
            if type(value) is not tuple:
                return f"its {what} is {_kind(value)}, not a tuple"
            if len(value) > MAX_RANK:
                return f"it has {len(value)} dimensions, and {MAX_RANK} are possible"
            for item in value:
                if type(item) is not int or not 0 <= item < _END:
                    return f"a {what} of {_shown(item)} is not possible"
        if type(offset) is not int or not 0 <= offset < _END:
            return f"an offset of {_shown(offset)} is not possible"
        if len(shape) != len(strides):
            return f"it has {len(shape)} sizes and {len(strides)} strides"
        self.storage_nbytes = storage.nbytes
        have = self.storage_nbytes // self.itemsize
        if storage.view:
            if storage.view[1] + storage.view[2] > have:
                return (
                    f"its storage is a view that reaches to element {_shown(storage.view[1] + storage.view[2])} of {_shown(have)}"
                )
            have = storage.view[2]
        count, last = 1, offset
        expected, contiguous = 1, True
        for dim, stride in zip(reversed(shape), reversed(strides), strict=True):
            count *= dim
            last += (dim - 1) * stride
            if dim != 1 and stride != expected:
                contiguous = False
            expected *= dim
        if extent(shape) * self.itemsize >= _END:
            return "its size is more than memory can have"
        self.contiguous = contiguous or count == 0
        self.nbytes = count * self.itemsize
        self.reach = (last - offset + 1) * self.itemsize if count else 0
        if count and last >= have:
            return f"it reaches to element {_shown(last)} of a storage of {_shown(have)}"
        return None

    @property
    def begin(self) -> int:
        """The byte of the storage at which its first element lies."""
        return (self.offset + (self.view[1] if self.view else 0)) * self.itemsize


class Tensor:
    """A tensor whose bytes lie in a storage of its container."""

    __slots__ = ("geometry", "key")

    def __init__(self, geometry: Geometry, key: str) -> None:
        self.geometry, self.key = geometry, key


class Composite:
    """A tensor without plain values: what kind it is, why it has none, and the tensors that it is made of."""

    __slots__ = ("dtype", "parts", "reason", "shape")

    def __init__(
        self, reason: str, dtype: DType | None = None, shape: object = (), parts: dict[str, object] | None = None
    ) -> None:
        self.reason = reason
        self.dtype = dtype
        good = type(shape) is tuple and len(shape) <= MAX_RANK and all(type(dim) is int and 0 <= dim < 2**63 for dim in shape)
        self.shape: Shape = shape if good else ()  # type: ignore[assignment]
        self.parts = parts or {}


def extent(shape: Shape) -> int:
    """The product that NumPy bounds also for an empty array."""
    return math.prod(dim or 1 for dim in shape)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _shown(value: object) -> str:
    """A value for a message; one that may be huge is named by its kind."""
    if type(value) is int:
        return str(value) if value.bit_length() < 128 else f"about 2**{value.bit_length()}"
    return repr(value[:32]) if type(value) is str else _kind(value)


shown = _shown
