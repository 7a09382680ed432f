"""Adapters: what happens to tensors on their way between a file and a model.

An adapter of one's own is a subclass of `Adapter` with one method:

    class Halve(Adapter):
        def adapt(self, tensor):
            return recast(tensor, "F16")

`adapt` sees one tensor and gives one, none or several; `adapt_all` sees all of them at once, for layers whose tensors are
split or fused. Tensors stay lazy: what an adapter gives is read when somebody wants its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from burnstore.dtypes import DType
from burnstore.errors import BurnstoreError, DTypeError, UsageError
from burnstore.pipeline.cast import recast
from burnstore.pipeline.layers import BURN, KEEP, PYTORCH, is_optional, kind_of, refuse_woven, rules, rules_from
from burnstore.pipeline.reshape import permuted
from burnstore.snapshot import TensorSnapshot, check_name

Adapted = TensorSnapshot | Iterable[TensorSnapshot] | None


class Adapter:
    """The base class of adapters. As it stands it changes nothing.

    >>> from burnstore import TensorSnapshot
    >>> class Shout(Adapter):
    ...     def adapt(self, tensor):
    ...         return tensor.with_name(tensor.name.upper())
    >>> Shout()(TensorSnapshot.from_data("a", 1.0)).name
    'A'
    """

    def adapt(self, tensor: TensorSnapshot) -> Adapted:
        """The tensor, or tensors, that stand for this one; None to leave it out."""
        return tensor

    def adapt_all(self, tensors: Sequence[TensorSnapshot]) -> list[TensorSnapshot]:
        """What stands for all of these; override it where several tensors become one, or one becomes several."""
        adapted: list[TensorSnapshot] = []
        for tensor in tensors:
            made = self._adapted(tensor)
            adapted.extend([made] if isinstance(made, TensorSnapshot) else made or ())
        return adapted

    def alternative_name(self, name: str, module_type: str) -> str | None:
        """Under what other name the tensor `name` of a model's layer may lie in a file.

        >>> PyTorchToBurnAdapter().alternative_name("gamma", "LayerNorm")
        'weight'
        """
        return None

    def chain(self, other: Adapter) -> ChainAdapter:
        """This adapter, then another.

        >>> PyTorchToBurnAdapter().chain(HalfPrecisionAdapter())
        ChainAdapter(PyTorchToBurnAdapter(), HalfPrecisionAdapter())
        """
        return ChainAdapter(self, other)

    def __call__(self, tensor: TensorSnapshot) -> Adapted:
        return self._adapted(tensor)

    def _adapted(self, tensor: TensorSnapshot) -> Adapted:
        """`adapt`, and whatever goes wrong in it said plainly."""
        where = f"tensor {tensor.name!r}"
        try:
            made = self.adapt(tensor)
            if made is not None and not isinstance(made, TensorSnapshot):
                made = list(made) if isinstance(made, Iterable) else [made]
        except BurnstoreError:
            raise
        except Exception as error:
            raise UsageError(
                f"the adapter {self!r} failed: {type(error).__name__}: {error}", where=where, do="mend its adapt()"
            ) from error
        for item in [made] if isinstance(made, TensorSnapshot) else made or ():
            if not isinstance(item, TensorSnapshot):
                raise UsageError(
                    f"the adapter {self!r} gave an object of type {type(item).__name__}",
                    where=where,
                    do="give a TensorSnapshot, several, or None",
                )
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class IdentityAdapter(Adapter):
    """Takes every tensor as it lies.

    >>> IdentityAdapter()
    IdentityAdapter()
    """


class DialectAdapter(Adapter):
    """From one dialect's names and axes to another's, by the kind of layer that each tensor belongs to.

    >>> from burnstore import TensorSnapshot
    >>> weight = TensorSnapshot.from_data("fc.weight", [[1.0, 2.0]], containers=["Struct:Net", "Struct:Linear"])
    >>> DialectAdapter("pytorch", "burn")(weight)
    TensorSnapshot('fc.weight', F64, [2, 1])
    """

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target

    def adapt(self, tensor: TensorSnapshot) -> TensorSnapshot:
        if self.source == self.target:
            return tensor
        return self._translated(tensor).changed(dialect=self.target)

    def _translated(self, tensor: TensorSnapshot) -> TensorSnapshot:
        kind = kind_of(tensor.layer_kind() or KEEP)
        if self.target == BURN and not tensor.shape:  # Burn has no tensors without axes
            return tensor.changed(shape=(1,))
        if kind is None:
            return tensor
        if self.source == BURN and tensor.shape == (1,) and is_optional(kind, tensor.name.rpartition(".")[2]):
            return tensor.changed(shape=())  # a counter, which PyTorch has without axes
        refuse_woven(kind, tensor.name, self.source, self.target)
        parent, dot, name = tensor.name.rpartition(".")
        rule = rules_from(kind, self.source, self.target).get(name)
        if rule is None or not rule.fits(tensor.shape):
            return tensor
        if rule.axes is not None:
            tensor = permuted(tensor, rule.axes)
        return tensor if rule.target == name else tensor.with_name(f"{parent}{dot}{rule.target}")

    def alternative_name(self, name: str, module_type: str) -> str | None:
        rule = rules(kind_of(module_type) or KEEP, self.source, self.target).get(name)
        return rule.source if rule is not None and rule.source != name else None

    def __repr__(self) -> str:
        return f"DialectAdapter({self.source!r}, {self.target!r})"


class PyTorchToBurnAdapter(DialectAdapter):
    """From PyTorch's names and axes to Burn's: Linear weights are transposed, the tensors of norms renamed.

    >>> PyTorchToBurnAdapter()
    PyTorchToBurnAdapter()
    """

    def __init__(self) -> None:
        super().__init__(PYTORCH, BURN)

    __repr__ = Adapter.__repr__


class BurnToPyTorchAdapter(DialectAdapter):
    """From Burn's names and axes to PyTorch's.

    >>> BurnToPyTorchAdapter()
    BurnToPyTorchAdapter()
    """

    def __init__(self) -> None:
        super().__init__(BURN, PYTORCH)

    __repr__ = Adapter.__repr__


_HALVED = (
    "Linear", "Embedding", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "DeformConv2d",
    "LayerNorm", "GroupNorm", "InstanceNorm", "RmsNorm", "PRelu",
)  # fmt: skip


class HalfPrecisionAdapter(Adapter):
    """F32 to F16 on the way out, and F16 to F32 on the way in, in the layers that bear it (a BatchNorm does not).

    >>> from burnstore import TensorSnapshot
    >>> weight = TensorSnapshot.from_data("fc.weight", [[1.0]], containers=["Struct:Linear"])
    >>> HalfPrecisionAdapter()(FloatCastAdapter("F32")(weight)).dtype
    F16
    """

    def __init__(self, modules: Iterable[str] = _HALVED) -> None:
        self.modules = tuple(modules)

    def with_module(self, name: str) -> HalfPrecisionAdapter:
        """The same for one more type of module; `Linear` means `Struct:Linear`.

        >>> HalfPrecisionAdapter().with_module("MyLayer").modules[-1]
        'MyLayer'
        """
        return HalfPrecisionAdapter((*self.modules, name.removeprefix("Struct:")))

    def without_module(self, name: str) -> HalfPrecisionAdapter:
        """The same without one type of module.

        >>> "Linear" in HalfPrecisionAdapter().without_module("Linear").modules
        False
        """
        name = name.removeprefix("Struct:")
        if name not in self.modules:
            raise UsageError(f"{name!r} is not among its modules", do=f"they are {', '.join(self.modules)}")
        return HalfPrecisionAdapter(module for module in self.modules if module != name)

    def adapt(self, tensor: TensorSnapshot) -> TensorSnapshot:
        named = {tensor.module_type(), tensor.layer_kind()}
        if tensor.dtype.name not in ("F32", "F16") or not named & set(self.modules):
            return tensor
        return recast(tensor, DType.of("F16" if tensor.dtype == "F32" else "F32"))


class FloatCastAdapter(Adapter):
    """Every tensor of floats to one dtype.

    >>> from burnstore import TensorSnapshot
    >>> FloatCastAdapter.to("bf16")(TensorSnapshot.from_data("w", [1.0])).dtype
    BF16
    """

    def __init__(self, dtype: DType | str) -> None:
        self.dtype = DType.of(dtype)
        if self.dtype.kind != "float":
            raise DTypeError(f"{self.dtype} is no dtype of floats", do="use F32, BF16, F16 or another float")

    @classmethod
    def to(cls, dtype: DType | str) -> FloatCastAdapter:
        """Burn's way to make one.

        >>> FloatCastAdapter.to("F16")
        FloatCastAdapter(F16)
        """
        return cls(dtype)

    def adapt(self, tensor: TensorSnapshot) -> TensorSnapshot:
        return recast(tensor, self.dtype) if tensor.dtype.kind == "float" else tensor

    def __repr__(self) -> str:
        return f"FloatCastAdapter({self.dtype})"


class ChainAdapter(Adapter):
    """One adapter after another.

    >>> ChainAdapter(IdentityAdapter(), FloatCastAdapter("F16"))
    ChainAdapter(IdentityAdapter(), FloatCastAdapter(F16))
    """

    def __init__(self, *adapters: Adapter) -> None:
        self.adapters: tuple[Adapter, ...] = ()
        for adapter in map(checked_adapter, adapters):
            self.adapters += adapter.adapters if isinstance(adapter, ChainAdapter) else (adapter,)

    def adapt(self, tensor: TensorSnapshot) -> list[TensorSnapshot]:
        return self.adapt_all([tensor])

    def adapt_all(self, tensors: Sequence[TensorSnapshot]) -> list[TensorSnapshot]:
        adapted = list(tensors)
        for adapter in self.adapters:
            adapted = adapter.adapt_all(adapted)
        return adapted

    def alternative_name(self, name: str, module_type: str) -> str | None:
        found = name
        for adapter in reversed(self.adapters):  # from the model's name back to the file's
            found = adapter.alternative_name(found, module_type) or found
        return found if found != name else None

    def __repr__(self) -> str:
        return f"ChainAdapter({', '.join(map(repr, self.adapters))})"


def between(source: str, target: str) -> DialectAdapter:
    """The adapter from one dialect to another.

    >>> between("burn", "pytorch")
    BurnToPyTorchAdapter()
    """
    named = {(PYTORCH, BURN): PyTorchToBurnAdapter, (BURN, PYTORCH): BurnToPyTorchAdapter}.get((source, target))
    return DialectAdapter(source, target) if named is None else named()


def adapted(adapter: Adapter, tensors: Sequence[TensorSnapshot]) -> list[TensorSnapshot]:
    """What an adapter makes of all tensors; whatever goes wrong in it is said plainly.

    >>> adapted(IdentityAdapter(), [])
    []
    """
    try:
        made = list(adapter.adapt_all(tensors))
    except BurnstoreError:
        raise
    except Exception as error:
        raise UsageError(f"the adapter {adapter!r} failed: {type(error).__name__}: {error}", do="mend its adapt_all()") from error
    for item in made:
        if not isinstance(item, TensorSnapshot):
            raise UsageError(f"the adapter {adapter!r} gave an object of type {type(item).__name__}", do="give TensorSnapshots")
        check_name(item.name)
    return made


class _Function(Adapter):
    """A plain function as an adapter."""

    def __init__(self, function: Callable[[TensorSnapshot], Adapted]) -> None:
        self.function = function

    def adapt(self, tensor: TensorSnapshot) -> Adapted:
        return self.function(tensor)

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


def checked_adapter(adapter: object) -> Adapter:
    """What a caller gave as an adapter; a function of one tensor is one too."""
    if isinstance(adapter, Adapter):
        return adapter
    if isinstance(adapter, type) and issubclass(adapter, Adapter):
        return adapter()  # Burn's spelling: `.with_from_adapter(PyTorchToBurnAdapter)`
    if callable(adapter):
        return _Function(adapter)
    raise UsageError(
        f"an object of type {type(adapter).__name__} is no adapter", do="give an Adapter, or a function that takes a tensor"
    )
