"""The verbs that write: save and convert."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack, overload

from burnstore.api import open
from burnstore.collection import CollectionPaused
from burnstore.errors import BurnstoreWarning, UsageError
from burnstore.formats.base import Contents, Format
from burnstore.keywords import SaveOptions, takes, with_keywords
from burnstore.options import Options
from burnstore.pipeline.adapt import DialectAdapter, IdentityAdapter
from burnstore.pipeline.dialects import Claim, layout_matters
from burnstore.pipeline.layers import BURN, KEEP, rules_from
from burnstore.render import names_text
from burnstore.store import Store
from burnstore.targets.table import find_module
from burnstore.verbs.listing import dialect_said
from burnstore.verbs.preparing import Prepared, prepared
from burnstore.verbs.translating import Origin

if TYPE_CHECKING:
    from burnstore.api import PathLike, Source
    from burnstore.targets.base import Target

    Destination = PathLike | BinaryIO | bytearray | Store


@overload
def save(tensors: Any, dest: type[bytes], **options: Unpack[SaveOptions]) -> bytes: ...
@overload
def save(tensors: Any, dest: Destination, **options: Unpack[SaveOptions]) -> None: ...
@takes(SaveOptions)
def save(tensors: Any, dest: Destination | type[bytes], **options: Unpack[SaveOptions]) -> bytes | None:
    """Save a model, or tensors in hand, to a file, whole or not at all.

    `tensors` is a `torch.nn.Module`, a mapping of names to arrays or snapshots (nested, if you like), or an iterable of
    snapshots. (To write a file into another, use `convert`: it carries over what the file says of itself.) `dest` is a path
    whose suffix says the format, a binary file object, a `bytearray` to append to, a Burn-named store, or `bytes` to get the
    bytes. A file that exists is replaced only with `overwrite=True`. With `fsync=False` the file may be lost if the machine
    stops within seconds. `shard_size="5GB"` writes SafeTensors shards and their index. `for_burn` says which version of Burn
    is to read booleans and quantised tensors of a `.bpk`. `extra={"epoch": 3}` puts plain values beside the tensors of a
    `.pt`, which then lie under "state_dict".

    `only=` and `skip=` choose by path, `rename=` changes the names that the file gets, `dtype="bf16"` casts what is floats,
    `adapter=` is an adapter of your own. A model is written in the dialect of the format (a `.bpk` is Burn's, a `.pt`
    PyTorch's, SafeTensors takes the model's own), or in `dialect=`. Tensors in hand lie in the file as given; with
    `dialect="pytorch"` they are said to be PyTorch's and translated where the format is another's. What kind of layer each
    belongs to is then told by `like=` (a model) or `kinds={r"^fc": "Linear"}`.

    >>> import burnstore as bs, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "model.bpk")
    >>> bs.save({"fc.weight": [[1.0, 2.0]]}, path, metadata={"version": "1.0"})
    >>> bs.open(path).metadata["version"]
    '1.0'
    """
    if find_module(dest) is not None:
        raise UsageError("the place to save to is a model", do="the model comes first and the place second: save(model, path)")
    target = find_module(tensors)
    given = _write_options(dest, options, from_model=target is not None and target.dialect is not None)
    from burnstore.verbs.saving import format_for

    format = format_for(_path_of(dest), given)
    with CollectionPaused():
        if target is not None:
            for warning in target.warnings:
                warnings.warn(warning, BurnstoreWarning, stacklevel=3)
            made = _of_model(target, format, given)
        else:
            made = _of_tensors(tensors, format, given)
    _warn(made)
    return _write(made.contents, dest, replace(given, metadata=_together(made.metadata, given.metadata)))


@overload
def convert(source: Source, dest: type[bytes], **options: Unpack[SaveOptions]) -> bytes: ...
@overload
def convert(source: Source, dest: Destination, **options: Unpack[SaveOptions]) -> None: ...
@takes(SaveOptions)
def convert(source: Source, dest: Destination | type[bytes], **options: Unpack[SaveOptions]) -> bytes | None:
    """Write the tensors of one file into another, of the same format or not, without holding more than a block of them.

    What the file says of itself goes along: its metadata, parameter ids, scalars. The keywords are those of `save`; a filter
    sees the names after renaming.

    PyTorch and Burn lay some tensors out differently. Which those are is told by a pickle of a whole model (it names its
    classes), by `like=` (a live model, or a file of one), or by `kinds={r"^fc": "Linear"}`; where it would matter and nobody
    says it, `convert` refuses and lists the tensors, and `dialect="keep"` copies them as they lie. `from_dialect` and
    `to_dialect` say whose layouts they are where the files do not.

    >>> import burnstore as bs
    >>> data = bs.save({"fc.weight": [[1.0, 2.0]]}, bytes, format="pt", metadata={"epoch": "3"})
    >>> store = bs.open(bs.convert(data, bytes, format="bpk", kinds={"^fc": "Linear"}))
    >>> store["fc.weight"].shape, store.metadata["epoch"]
    ((2, 1), '3')
    """
    from burnstore.verbs.saving import format_for

    given = _write_options(dest, options, from_model=False, rewrites=True)
    store = source if isinstance(source, Store) else open(source, limits=given.limits)
    try:
        format = format_for(_path_of(dest), given)
        raw = store.unlisted
        said = given.from_dialect or store.options.from_dialect or _adapter_source(store.options)
        kept = KEEP in (said, given.to_dialect)
        claim = Claim(said, True, "from_dialect=") if said not in (None, KEEP) else dialect_said(raw)
        dialect = claim.dialect
        if raw.format == "memory" and dialect is None and given.to_adapter is None:
            dialect = format.dialect  # tensors in hand lie as given
        like = store.options.like if given.like is None else given.like
        given = replace(given, kinds=given.kinds or store.options.kinds, like=like)
        origin = Origin(dialect, claim.why, store.name)
        to = KEEP if kept else given.to_dialect or format.dialect
        made = prepared(store.contents, format, given, origin, to, saving=False)
        _warn(made)
        given = replace(given, metadata=_together(made.metadata, given.metadata))
        return _write(made.contents, dest, given, rewrite=True)
    finally:
        if store is not source:
            store.close()


def _of_model(target: Target, format: Format, options: Options) -> Prepared:
    """The tensors of a model as its file will hold them."""
    from burnstore.held import hold
    from burnstore.verbs.collecting import aliases, collected

    to = options.to_dialect or format.dialect or target.dialect
    skips = options.skip_enum_variants
    snapshots = collected(target, options.filter, skips if skips is not None else to not in (target.dialect, "burn"))
    # an adapter may do anything to one of two names, so both are written
    plain = options.to_adapter is None or isinstance(options.to_adapter, (DialectAdapter, IdentityAdapter))
    tied = aliases(target) if format.name == "safetensors" and plain else {}
    names = {snapshot.name for snapshot in snapshots}
    kinds = {slot.path: target.kinds.get(slot.path.rpartition(".")[0], KEEP) for slot in target.slots} if tied else {}

    def translated(path: str) -> tuple[str, object]:
        """What a tensor is called in the file, and how it lies there."""
        parent, dot, leaf = path.rpartition(".")
        rule = None if to in (None, KEEP) else rules_from(kinds[path], target.dialect or KEEP, to or KEEP).get(leaf)
        return (path, None) if rule is None else (f"{parent}{dot}{rule.target}", rule.axes)

    tied = {
        alias: kept
        for alias, kept in tied.items()
        if alias in names and kept in names and translated(alias)[1] == translated(kept)[1]
    }
    contents = hold([snapshot for snapshot in snapshots if snapshot.name not in tied])
    tied = {translated(alias)[0]: translated(kept)[0] for alias, kept in tied.items()}
    paths = [slot.path for slot in target.slots]
    origin = Origin(target.dialect, "the model", target.name, paths, tied, is_model=True)
    return prepared(contents, format, replace(options, filter=None, like=None), origin, to, saving=True)


def _holds_torch(tensors: object) -> bool:
    """Whether somebody's mapping holds tensors of torch, such as a state dict."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor") or not isinstance(tensors, Mapping) or isinstance(tensors, Store):
        return False
    return any(issubclass(kind, torch.Tensor) for kind in set(map(type, tensors.values())))


def _warn_of_torch(contents: Contents) -> None:
    depends = layout_matters({row[0]: row[2] for row in contents.rows()})
    if depends:
        warnings.warn(
            f"tensors of torch are written as they lie, and Burn takes them for its own: {names_text(depends)}; save the model "
            'itself, or pass dialect="pytorch" and like=model; dialect="keep" says that it is meant',
            BurnstoreWarning,
            stacklevel=5,
        )


def _check_said(given: Options, dialect: str | None) -> None:
    """Kinds of layers mean nothing for tensors that are written as they lie."""
    said = [option for option, value in (("kinds=", given.kinds), ("like=", given.like)) if value is not None]
    if said and given.from_dialect is None and given.to_dialect is None and given.to_adapter is None:
        raise UsageError(
            f"{' and '.join(said)} without dialect= has no effect: tensors in hand are written as they lie",
            do=f"say whose layout they have: dialect={dialect or 'pytorch'!r}",
        )


def _adapter_source(options: Options) -> str | None:
    """Whose layout a store was told that its file has, by an adapter for loading."""
    return getattr(options.from_adapter, "source", None)


def _warn(made: Prepared) -> None:
    if made.warning is not None:
        warnings.warn(made.warning, BurnstoreWarning, stacklevel=4)


def _of_tensors(tensors: Any, format: Format, given: Options) -> Prepared:
    """Tensors in hand as their file will hold them: as they lie, unless it is said whose they are. A file says it itself."""
    store = open(tensors)
    kept, dialect = given.from_dialect == KEEP, given.from_dialect
    if dialect is None or kept:
        claim = dialect_said(store.unlisted)
        dialect = None if claim.is_weak else claim.dialect  # Burn's own files tell it by their names, and need no word
    known = given.from_dialect is not None or (dialect is not None and store.unlisted.format != "memory")
    to = KEEP if kept else given.to_dialect or (format.dialect if known else None)
    _check_said(given, dialect)
    if format.dialect == BURN and dialect is None and to is None and _holds_torch(tensors):
        _warn_of_torch(store.contents)
    return prepared(store.contents, format, given, Origin(dialect, "dialect=", store.name), to, saving=True)


def _together(carried: Mapping[str, str], said: Mapping[str, str] | None) -> dict[str, str] | None:
    """The metadata of the file: what goes along, and what the caller says."""
    for key in (said or {}).keys() & carried.keys():
        if "." in key:
            raise UsageError(f"metadata {key!r} is the name of a tied weight here", do="use another key")
    return {**carried, **(said or {})} or (None if said is None else {})


def _write_options(dest: object, given: SaveOptions, *, from_model: bool, rewrites: bool = False) -> Options:
    """The options of a call, on top of those of a Burn-named store."""
    from burnstore.named_stores import _NamedStore

    if isinstance(dest, Store) and not isinstance(dest, _NamedStore):
        raise UsageError("this store was opened for reading", where=dest.name, do="give a path, or a Burn-named store")
    said: dict[str, Any] = dict(given)
    dialect = said.pop("dialect", None)
    if dialect is not None:  # of a model it is the file's, of tensors in hand their own
        said.setdefault("to_dialect" if from_model else "from_dialect", dialect)
    if isinstance(dest, _NamedStore):
        if said.get("format") is not None:
            raise UsageError(f"a {type(dest).__name__} has a format already", do="leave format= out")
        if said.get("for_burn") is not None:
            dest = dest.for_burn(said["for_burn"])
        # What a store says of reading does not hold for writing: Burn closes the gaps of lists when it loads, only then.
        base = replace(dest._write_options(), from_adapter=None, map_indices_contiguous=None)
        if rewrites or from_model:  # what it says of a dialect is said of the file
            base = replace(base, from_dialect=None)
        said["fsync"] = said.get("fsync", True) and base.fsync
        said["overwrite"] = said.get("overwrite", False) or base.overwrite
        if base.dtype in ("model", "file"):  # said of loading
            base = replace(base, dtype=None)
    else:
        base = Options()
    metadata = said.pop("metadata", None)
    options = with_keywords(base, said, adapter="to_adapter")
    if metadata is None:
        return options
    from burnstore.verbs.saving import checked_metadata

    return replace(options, metadata={**(base.metadata or {}), **checked_metadata(metadata)})


def _write(contents: Contents, dest: object, options: Options, *, rewrite: bool = False) -> bytes | None:
    from burnstore.named_stores import MemorySink, _NamedStore
    from burnstore.verbs.saving import save_contents

    if not isinstance(dest, _NamedStore):
        return save_contents(contents, dest, options, rewrite=rewrite)
    place = dest._destination()
    if isinstance(place, MemorySink):
        place.data = save_contents(contents, bytes, options, rewrite=rewrite)
    else:
        save_contents(contents, place, options, rewrite=rewrite)
    dest._saved()
    return None


def _path_of(dest: object) -> object:
    return dest if isinstance(dest, (str, os.PathLike)) else None
