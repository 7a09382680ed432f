"""One tensor, known by name, dtype and shape before a byte of it is read.

A snapshot is immutable and can be shared by threads. It reads when it is asked: `numpy()` gives a view of the file where
that can be, `numpy(copy=True)` an array of the caller's own, `snapshot[...]` only the part that is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import index
from types import EllipsisType
from typing import TYPE_CHECKING, Any, SupportsIndex

from burnstore.containers import container_path, module_type
from burnstore.data import BlockBytes, ComputedBytes, HeldBytes, PartsOnly, PendingBytes, TensorData
from burnstore.dtypes import DType, Shape, checked_shape
from burnstore.errors import DTypeError, ImmutableError, PickleRefusedError, QuantizedError, TensorDataError, UsageError
from burnstore.sources.base import TensorBytes, flat

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Buffer

    Index = SupportsIndex | slice | EllipsisType | None
    Array = np.ndarray[Any, Any]

# NumPy's NPY_MAXDIMS since 2.0.
_MAX_DIMS = 64


class TensorSnapshot:
    """A tensor that has not been read yet.

    >>> import numpy as np
    >>> snap = TensorSnapshot.from_data("fc.bias", np.array([1.0, 2.0], np.float32))
    >>> snap
    TensorSnapshot('fc.bias', F32, [2])
    >>> snap.numpy()
    array([1., 2.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_given", "containers", "dialect", "dtype", "kind", "name", "param_id", "shape", "shares_with")

    name: str
    dtype: DType
    shape: Shape
    containers: tuple[str, ...]
    param_id: int | None
    # The other names of this same tensor in its file: weights that are tied.
    shares_with: tuple[str, ...]
    # The kind of layer that it belongs to, where its model said it: `Linear` also for a subclass of another name.
    kind: str | None
    # Whose names and axes it has, where its model said it.
    dialect: str | None
    _given: TensorBytes | PendingBytes

    def __init__(
        self,
        name: str,
        dtype: DType,
        shape: Shape,
        data: TensorBytes | PendingBytes,
        containers: tuple[str, ...] = (),
        param_id: int | None = None,
        shares_with: tuple[str, ...] = (),
        kind: str | None = None,
        dialect: str | None = None,
    ) -> None:
        if not isinstance(dtype, DType):
            raise UsageError(
                f"a dtype of {dtype!r} is only a name", where=f"tensor {name!r}", do="use from_data, from_closure or from_blocks"
            )
        _set_name(self, name)
        _set_dtype(self, dtype)
        _set_shape(self, shape)
        _set_given(self, data)
        _set_containers(self, containers)
        _set_param_id(self, param_id)
        _set_shares_with(self, shares_with)
        _set_kind(self, kind)
        _set_dialect(self, dialect)

    # Made by hand

    @classmethod
    def from_data(cls, name: str, data: object, *, containers: Iterable[str] = (), param_id: int | None = None) -> TensorSnapshot:
        """A snapshot of an array, or of a `TensorData`, that is in memory.

        >>> TensorSnapshot.from_data("steps", [1, 2, 3]).dtype
        I64
        """
        if isinstance(data, TensorData):
            dtype, shape, held_data = data.dtype, data.shape, HeldBytes(data.bytes)
            return cls(name, dtype, shape, held_data, tuple(containers), _plain_id(param_id, name))
        from burnstore.arrays import held

        return cls(name, *held(data, name), tuple(containers), _plain_id(param_id, name))

    @classmethod
    def from_closure(
        cls,
        name: str,
        dtype: DType | str,
        shape: Iterable[int],
        closure: Callable[[], object],
        *,
        containers: Iterable[str] = (),
        param_id: int | None = None,
    ) -> TensorSnapshot:
        """A snapshot whose array, or bytes, are made when somebody asks for them, each time anew.

        >>> snap = TensorSnapshot.from_closure("ones", "F32", (2,), lambda: [1.0, 1.0])
        >>> snap.numpy()
        array([1., 1.], dtype=float32)
        """
        kind, dims = DType.of(dtype), checked_shape(shape, name)
        return cls(name, kind, dims, ComputedBytes(name, kind, dims, closure), tuple(containers), _plain_id(param_id, name))

    @classmethod
    def from_blocks(
        cls,
        name: str,
        dtype: DType | str,
        shape: Iterable[int],
        blocks: Callable[[], Iterable[Buffer]] | Iterable[Buffer],
        *,
        containers: Iterable[str] = (),
        param_id: int | None = None,
    ) -> TensorSnapshot:
        """A snapshot whose bytes come in pieces, so that a tensor larger than memory can be saved.

        A function is called each time that the tensor is read; an iterator can be read once.

        >>> TensorSnapshot.from_blocks("zeros", "U8", (4,), lambda: (bytes(2) for _ in range(2))).tobytes()
        b'\\x00\\x00\\x00\\x00'
        """
        kind, dims = DType.of(dtype), checked_shape(shape, name)
        return cls(name, kind, dims, BlockBytes(name, kind.nbytes(dims), blocks), tuple(containers), _plain_id(param_id, name))

    # What is known

    @property
    def nbytes(self) -> int:
        """How many bytes it takes in a file; 0 for one without plain values."""
        data = self.data
        return 0 if isinstance(data, PartsOnly) else data.nbytes

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def data(self) -> TensorBytes:
        """Where its bytes come from; formats and converters move them from here without making arrays."""
        given = self._given
        if isinstance(given, PendingBytes):
            given = given.find()
            _set_given(self, given)
        return given

    @property
    def parts(self) -> Mapping[str, Array]:
        """What a tensor without plain values is made of; empty for plain tensors.

        A quantised one has `values`, `scales` and the like, a sparse one `indices` and `values`.
        """
        if isinstance(self.data, PartsOnly):
            return self.data.parts()
        if not self.dtype.is_quantized:
            return {}
        from burnstore.quantized import parts

        return parts(self)

    def full_path(self) -> str:
        """Burn's word for `name`."""
        return self.name

    def container_path(self) -> str:
        """The types of the modules around it, as predicates see them: `Net.Vec.Linear`.

        >>> TensorSnapshot.from_data("w", 1.0, containers=["Struct:Net", "Vec", "Struct:Linear"]).container_path()
        'Net.Vec.Linear'
        """
        return container_path(self.containers)

    def module_type(self) -> str | None:
        """The type of the module that it belongs to, without `Struct:`; None where nothing is known.

        >>> TensorSnapshot.from_data("w", 1.0, containers=["Struct:Net", "Vec"]).module_type()
        'Net'
        """
        return module_type(self.containers)

    def layer_kind(self) -> str | None:
        """The kind of layer that it belongs to: what its model said, or else the type of its module.

        >>> TensorSnapshot.from_data("w", 1.0, containers=["Struct:Net", "Struct:Linear"]).layer_kind()
        'Linear'
        """
        return self.kind or self.module_type()

    # Its values

    def numpy(self, *, copy: bool = False) -> Array:
        """The values: a read-only view of the file where that can be, otherwise, and with `copy=True`, an array of your own.

        >>> TensorSnapshot.from_data("w", [[1, 2], [3, 4]]).numpy().flags.writeable
        False
        """
        if self.dtype.is_quantized and not isinstance(self.data, PartsOnly):
            raise QuantizedError(
                f"its values are quantised ({self.dtype})",
                where=f"tensor {self.name!r}",
                do="call .dequantize(), or take .parts",
            )
        _check_shape(self.name, self.shape)
        if isinstance(self.data, PartsOnly):
            self.data.view()  # says why there are no values
        import numpy as np

        if not self.dtype.is_plain:
            from burnstore.packing import unpack

            return unpack(np.frombuffer(self.tobytes(), np.uint8), self.dtype, self.shape)
        view = None if copy else self.data.view()
        if view is None:
            array = np.empty(self.shape, self.dtype.numpy_dtype)
            self.data.read_into(memoryview(array.reshape(-1).view(np.uint8)))
            return array
        raw = flat(view)
        if not raw.nbytes:
            return np.empty(self.shape, self.dtype.numpy_dtype)
        # frombuffer holds on to the buffer, so that its owner cannot close or resize it; ndarray alone would not
        return np.ndarray(self.shape, self.dtype.numpy_dtype, np.frombuffer(raw.toreadonly(), np.uint8))

    def torch(self, *, device: Any = None, copy: bool = False) -> Any:
        """The values as a tensor of torch, which must be installed.

        It lies over the file where that can be: writing to it then changes this process's pages, never the file. With
        `copy=True`, and of what is not mapped, the memory is your own.

        >>> TensorSnapshot.from_data("w", [1.0, 2.0]).torch()
        tensor([1., 2.], dtype=torch.float64)
        """
        from burnstore.torch_tensors import from_snapshot

        return from_snapshot(self, device=device, copy=copy)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        plain = self.dtype.is_plain and (dtype is None or self.dtype.numpy_dtype == dtype)
        if copy is False and not (plain and self.data.view() is not None):
            raise TensorDataError("it cannot be had without a copy", where=f"tensor {self.name!r}", do="leave copy=False out")
        array = self.numpy(copy=bool(copy))
        return array if dtype is None else array.astype(dtype, copy=False)

    def dequantize(self) -> Array:
        """The floats that a quantised tensor stands for, exactly those that Burn computes; other dtypes are refused."""
        if not self.dtype.is_quantized:
            raise DTypeError(f"it is {self.dtype}, not quantised", where=f"tensor {self.name!r}", do="call .numpy()")
        if isinstance(self.data, PartsOnly):
            self.data.view()  # says why there are no values
        from burnstore.quantized import dequantize

        return dequantize(self)

    def __getitem__(self, key: Index | tuple[Index, ...]) -> Any:
        """A part of it by basic indexing; of a file that is not mapped, only the bytes of that part are read.

        >>> TensorSnapshot.from_data("w", [[1, 2], [3, 4]])[1, :]
        array([3, 4])
        """
        from burnstore.slicing import take

        return take(self, key)

    def tobytes(self) -> bytes:
        """The bytes as a file holds them: little-endian, C order, packed where the dtype is smaller than a byte."""
        view = self.data.view()
        if view is not None:
            return flat(view).tobytes()
        return b"".join(flat(block).tobytes() for block in self.data.blocks())

    def to_data(self) -> TensorData:
        """Its bytes, shape and dtype together, as Burn's `TensorData`.

        >>> TensorSnapshot.from_data("w", [True]).to_data()
        TensorData(Bool, [1], 1 byte)
        """
        return TensorData(self.tobytes(), self.shape, self.dtype)

    # A changed one

    def with_name(self, name: str) -> TensorSnapshot:
        """The same tensor under another name.

        >>> TensorSnapshot.from_data("a", 1).with_name("b").name
        'b'
        """
        return self.changed(name=name)

    def changed(
        self,
        *,
        name: str | None = None,
        containers: tuple[str, ...] | None = None,
        kind: str | None = None,
        dialect: str | None = None,
        dtype: DType | None = None,
        shape: Shape | None = None,
        data: TensorBytes | PendingBytes | None = None,
    ) -> TensorSnapshot:
        """The same tensor with something changed; its bytes must still be as many as its shape and dtype need."""
        if data is None and (shape is not None or dtype is not None) and not isinstance(self.data, PartsOnly):
            new_dtype, new_shape = dtype or self.dtype, self.shape if shape is None else shape
            if new_dtype.nbytes(new_shape) != self.data.nbytes:
                raise TensorDataError(
                    f"{new_dtype} {list(new_shape)} does not take {self.data.nbytes} bytes",
                    where=f"tensor {self.name!r}",
                    do="give a shape and dtype of as many bytes, or make another snapshot",
                )
        return TensorSnapshot(
            self.name if name is None else name,
            self.dtype if dtype is None else dtype,
            self.shape if shape is None else shape,
            self._given if data is None else data,
            self.containers if containers is None else containers,
            self.param_id,
            self.shares_with,
            self.kind if kind is None else kind,
            self.dialect if dialect is None else dialect,
        )

    def __setattr__(self, attribute: str, value: object) -> None:
        do = "make a changed one: snapshot.with_name(...)" if attribute in ("name", "full_path") else "make another snapshot"
        raise ImmutableError(f"a snapshot cannot be changed ({attribute})", where=f"tensor {self.name!r}", do=do)

    def __delattr__(self, attribute: str) -> None:
        self.__setattr__(attribute, None)

    def __repr__(self) -> str:
        return f"TensorSnapshot({self.name!r}, {self.dtype}, {list(self.shape)})"

    def __copy__(self) -> TensorSnapshot:
        return self

    def __deepcopy__(self, memo: object) -> TensorSnapshot:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise PickleRefusedError(
            "a snapshot stands for bytes of an open file and cannot be pickled",
            where=f"tensor {self.name!r}",
            do="send the file's path and the tensor's name, or .to_data()",
        )


# A slot's own setter: the class's refuses.
_set_name, _set_dtype, _set_shape, _set_given, _set_containers, _set_param_id, _set_shares_with, _set_kind, _set_dialect = (
    vars(TensorSnapshot)[slot].__set__
    for slot in ("name", "dtype", "shape", "_given", "containers", "param_id", "shares_with", "kind", "dialect")
)


def check_name(name: object) -> None:
    """Refuse a name that no file can hold."""
    if not isinstance(name, str):
        raise UsageError(f"the name {name!r} is not text", do="names are text: use str(name)")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise TensorDataError("its name is not valid Unicode", where=f"tensor {name!r}", do="rename it") from None


def _plain_id(param_id: int | None, name: str) -> int | None:
    """A parameter id given by hand as a plain integer of 64 bits."""
    if param_id is None:
        return None
    number = index(param_id) if hasattr(param_id, "__index__") else -1
    if not 0 <= number < 2**64:
        raise UsageError(
            f"a param_id of {param_id!r} is not a number of 64 bits",
            where=f"tensor {name!r}",
            do="give an integer from 0 to 2**64 - 1, or None",
        )
    return number


def _check_shape(name: str, shape: Shape) -> None:
    if len(shape) > _MAX_DIMS:
        raise DTypeError(
            f"it has {len(shape)} dimensions, and NumPy arrays have at most {_MAX_DIMS}",
            where=f"tensor {name!r}",
            do="take .tobytes()",
        )
