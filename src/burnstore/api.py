"""The verbs that read: open, read, load, plan, loaded, collect, apply, merge, verify."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Unpack, overload

from burnstore.collection import CollectionPaused
from burnstore.keywords import ListOptions, LoadOptions, check_work, takes, with_keywords
from burnstore.limits import DEFAULT_LIMITS, Limits
from burnstore.options import Options
from burnstore.report import Verification
from burnstore.snapshot import TensorSnapshot
from burnstore.store import Store

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Buffer

    from burnstore.outcome import ApplyResult
    from burnstore.pipeline.adapt import Adapter
    from burnstore.pipeline.filter import PathFilter
    from burnstore.verbs.loading import Plan

    PathLike = str | os.PathLike[str]
    Tensors = Mapping[str, Any] | Iterable[TensorSnapshot]
    Source = PathLike | Buffer | BinaryIO | Tensors
    Progress = Callable[[int, int], object]


@takes(ListOptions)
def open(source: Source, **options: Unpack[ListOptions]) -> Store:
    """Open a weight file and list its tensors; none of them is read.

    `source` is a path (of a file, of a shards' index, or of the folder that holds one), bytes or any buffer, a binary file
    object, tensors in hand, or a model. The content says which format it is; `format=` forces one. `key` opens a part of a
    PyTorch file, such as the `state_dict` of a checkpoint; dots lead further down. `io` says how a local file is read: "mmap"
    gives views without a copy, "pread" reads each tensor when it is asked for, "auto" takes mmap except on network file systems.

    `rename={pattern: replacement}` gives tensors other names, `map_indices_contiguous=True` closes the gaps of lists
    (`map_indices_contiguous_except` names lists to leave), and `only=` and `skip=` choose among the names that come out of
    that: regular expressions, functions of (path, container), or a `PathFilter`. `dialect` says whose layout the file has.

    >>> import burnstore as bs
    >>> data = bs.save({"fc.weight": [[1.0]], "fc.bias": [0.5]}, bytes, format="safetensors")
    >>> bs.open(data)["fc.bias"]
    TensorSnapshot('fc.bias', F64, [1])
    >>> list(bs.open(data, only="bias$", rename={"^fc": "head"}))
    ['head.bias']
    """
    if isinstance(source, Store):
        _refuse_reading(source, options)
        said = {option: value for option, value in options.items() if value is not None}
        return source if not said else source.listed_again(lambda kept: with_keywords(kept, said))
    store = _store_of(source, with_keywords(Options(), options))
    store.open()
    return store


def _refuse_reading(store: Store, given: Mapping[str, Any]) -> None:
    """What decides how a file is read has to be said before it is."""
    said = [f"{option}=" for option in ("format", "key", "io", "limits") if given.get(option) is not None]
    if said:
        from burnstore.errors import UsageError

        raise UsageError("this is open already", where=store.name, do=f"give {' and '.join(said)} where it is opened")


def _store_of(source: Any, options: Options) -> Store:
    """The store of a source; of a model, that of the tensors that it holds."""
    from burnstore.targets.table import find_module

    target = find_module(source)
    if target is None:
        return Store(source, options)
    return Store([slot.snapshot() for slot in target.slots], options, label=target.name)


@overload
def read(
    source: Source,
    *,
    framework: Literal["numpy"] = "numpy",
    device: None = None,
    dtype: str | None = None,
    copy: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[ListOptions],
) -> dict[str, np.ndarray[Any, Any]]: ...
@overload
def read(
    source: Source,
    *,
    framework: Literal["torch"],
    device: Any = None,
    dtype: str | None = None,
    copy: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[ListOptions],
) -> dict[str, Any]: ...
@takes(ListOptions)
def read(
    source: Source,
    *,
    framework: Literal["numpy", "torch"] = "numpy",
    device: Any = None,
    dtype: str | None = None,
    copy: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[ListOptions],
) -> dict[str, Any]:
    """All tensors of a weight file as arrays of NumPy, or as tensors of torch, by name.

    They are the caller's own and the file is closed. With `copy=False` they are views of the file, which cost nothing until
    they are used and keep it mapped: NumPy's are read-only, torch's may be changed without changing the file. `dtype="bf16"`
    casts what is floats. `progress(done, total)` counts bytes. The other keywords are those of `open`.

    >>> import burnstore as bs
    >>> bs.read(bs.save({"fc.bias": [0.5, 1.5]}, bytes, format="bpk"), dtype="f32")
    {'fc.bias': array([0.5, 1.5], dtype=float32)}
    """
    from burnstore.verbs.reading import read_all

    check_work(threads, progress)
    store = open(source, **options)
    try:
        with CollectionPaused():
            return read_all(store.contents, framework, device, dtype, copy, threads, progress)
    finally:
        if store is not source and not isinstance(source, Store):
            store.close()


@takes(LoadOptions)
def load(source: Source, model: Any, **options: Unpack[LoadOptions]) -> ApplyResult:
    """Load a weight file, or anything that `open` takes, into a model, and report what became of each tensor.

    `model` is a `torch.nn.Module`, or dicts and lists of arrays. Its parameters are changed in place; `assign=True` gives it
    views of the file instead. Everything is checked before anything is written: if a tensor is missing or does not fit, a
    `LoadError` is raised that carries the report, and the model is as it was. `partial=True` accepts what is missing,
    `validate=False` leaves out what does not fit.

    `only=` and `skip=` choose by the paths of the model, `rename=` changes the names of the file before they are looked up.
    The layout of the file's framework is found out and translated; `dialect=` says it where nothing tells, an `adapter=`
    takes the place of all that. The model's dtypes win, casts are in the report; `dtype="file"` keeps the file's. A
    checkpoint whose one nested state dict fits is entered, otherwise `key=` says where to look.

    >>> import burnstore as bs, numpy as np
    >>> model = {"fc": {"weight": np.zeros((1, 2), np.float32), "bias": np.zeros(1, np.float32)}}
    >>> data = bs.save({"net.fc.weight": [[1.0, 2.0]], "net.fc.bias": [3.0]}, bytes, format="pt")
    >>> result = bs.load(data, model, rename={r"^net\\.": ""})
    >>> result.applied
    ['fc.weight', 'fc.bias']
    >>> model["fc"]["weight"]
    array([[1., 2.]], dtype=float32)
    """
    with CollectionPaused():
        return _plan(source, model, options, fresh=False).apply()


@takes(LoadOptions)
def plan(source: Source, model: Any, **options: Unpack[LoadOptions]) -> Plan:
    """What `load` would do with the same arguments: a report, and nothing written.

    >>> import burnstore as bs, numpy as np
    >>> bs.plan({"a": np.ones(2)}, {"b": np.ones(2)}).result.missing
    [('b', '')]
    """
    with CollectionPaused():
        return _plan(source, model, options, fresh=False)._remember()


@takes(LoadOptions)
def loaded(source: Source, model: Any, **options: Unpack[LoadOptions]) -> Any:
    """A new model with the tensors of a file; the given one stays as it is.

    This is the way for models that cannot be changed. What the file does not have (`partial=True`) is shared with the given
    model where it is arrays.

    >>> import burnstore as bs, numpy as np
    >>> model = {"w": np.zeros(2)}
    >>> bs.loaded({"w": np.ones(2)}, model), model
    ({'w': array([1., 1.])}, {'w': array([0., 0.])})
    """
    with CollectionPaused():
        made = _plan(source, model, options, fresh=True)
        made.apply()
    return made.model


def _plan(source: Source, model: Any, given: LoadOptions, fresh: bool) -> Plan:
    from burnstore.errors import UsageError
    from burnstore.named_stores import _NamedStore
    from burnstore.targets.table import target_for
    from burnstore.verbs.loading import Leniency, make_plan

    target = target_for(model)
    if fresh:
        target = target.fresh()
    if isinstance(source, Store):
        _refuse_reading(source, given)
        store, options = source, with_keywords(source.options, given)
    else:
        options = with_keywords(Options(), given)
        store = _store_of(source, options)
    check_work(given.get("threads"), given.get("progress"))
    if given.get("dtype") is None and options.dtype not in ("model", "file"):
        options = replace(options, dtype=None)  # a store's dtype was said of saving
    if options.dtype not in (None, "model", "file"):
        raise UsageError(f"dtype={options.dtype!r} is not known", do='whose dtype wins is "model" or "file"')
    leniency = Leniency(options.allow_partial, options.validate, asks=not isinstance(store, _NamedStore))
    return make_plan(store, target, options, leniency, given.get("threads"), given.get("progress"))


def collect(
    model: Any,
    filter: PathFilter | None = None,
    adapter: Adapter | None = None,
    skip_enum_variants: bool = False,
    *,
    only: Any = None,
    skip: Any = None,
) -> list[TensorSnapshot]:
    """The tensors of a model as snapshots, which read nothing until they are used.

    >>> import burnstore as bs, numpy as np
    >>> bs.collect({"encoder": {"w": np.ones(2)}, "head": {"w": np.ones(3)}}, only="^head")
    [TensorSnapshot('head.w', F64, [3])]
    """
    from burnstore.pipeline.filter import PathFilter
    from burnstore.targets.table import target_for
    from burnstore.verbs.collecting import collected

    options = with_keywords(Options(filter=None if filter is None else PathFilter.of(filter)), {"only": only, "skip": skip})
    snapshots = collected(target_for(model), options.filter, skip_enum_variants)
    if adapter is None:
        return snapshots
    from burnstore.pipeline.adapt import adapted, checked_adapter

    return adapted(checked_adapter(adapter), snapshots)


def apply(
    snapshots: Source,
    model: Any,
    filter: PathFilter | None = None,
    adapter: Adapter | None = None,
    skip_enum_variants: bool = False,
    *,
    only: Any = None,
    skip: Any = None,
) -> ApplyResult:
    """Write snapshots into a model: what fits is written, the rest is reported; of equal names the last one wins.

    >>> import burnstore as bs, numpy as np
    >>> one, two = {"w": np.ones(2)}, {"w": np.zeros(2), "b": np.zeros(1)}
    >>> bs.apply(bs.collect(one), two).missing
    [('b', '')]
    >>> two["w"]
    array([1., 1.])
    """
    from burnstore.pipeline.filter import PathFilter
    from burnstore.targets.table import target_for
    from burnstore.verbs.loading import Leniency, make_plan

    last: dict[str, TensorSnapshot] = {}
    again = []
    given = snapshots if isinstance(snapshots, (list, tuple, Iterator)) else open(snapshots).values()
    for snapshot in given:
        if not isinstance(snapshot, TensorSnapshot):
            last = dict(open(given).items())  # which says what is wrong with it
            break
        if snapshot.name in last:
            again.append(snapshot.name)
        last[snapshot.name] = snapshot
    options = with_keywords(Options(filter=PathFilter.of(filter)), {"adapter": adapter, "only": only, "skip": skip})
    options = replace(options, skip_enum_variants=skip_enum_variants)
    lenient = Leniency(partial=True, validate=False, nothing=True, asks=False)
    with CollectionPaused():
        made = make_plan(Store(last), target_for(model), options, lenient)
    made.result.warnings.extend(f"{name!r} is there more than once; the last one was taken" for name in dict.fromkeys(again))
    return made.apply()


def merge(*sources: Source, on_conflict: Literal["error", "first", "last"] = "error") -> list[TensorSnapshot]:
    """The tensors of several sources as one list: files, stores, models, or lists of snapshots.

    A name that two of them have is an error, unless `on_conflict` says which one is taken.

    >>> import burnstore as bs, numpy as np
    >>> base, special = {"a": np.zeros(1), "b": np.zeros(1)}, {"b": np.ones(1)}
    >>> [float(tensor.numpy()[0]) for tensor in bs.merge(base, special, on_conflict="last")]
    [0.0, 1.0]
    """
    from burnstore.verbs.collecting import merged

    return merged([open(source) for source in sources], on_conflict)


def verify(source: Source, *, format: str | None = None, limits: Limits = DEFAULT_LIMITS) -> Verification:
    """Check everything that a file says about itself, and list what readers tolerate although writers do not make it.

    >>> import burnstore as bs
    >>> print(bs.verify(bs.save({"fc.bias": [0.5]}, bytes, format="bpk")))
    <264 bytes>: ok (burnpack, 1 tensor, 8 bytes)
    """
    from burnstore.verbs.verifying import verify_contents, verify_source

    if isinstance(source, Store):
        return verify_contents(source.contents, source.name, limits)
    return verify_source(source, Store(source).name, Options(format=format, limits=limits))
