"""What happens to tensors between a source and a file: the stages of `save` and `convert`, in their order.

Nothing is read here. Where nothing is asked for, the contents go through as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from burnstore.dtypes import DType
from burnstore.errors import BurnstoreError
from burnstore.formats.base import Contents, Format
from burnstore.options import Options
from burnstore.pipeline.adapt import FloatCastAdapter
from burnstore.pipeline.dialects import INDICES, KEPT, KEY
from burnstore.pipeline.indices import aligned, is_shard, map_indices_contiguous
from burnstore.pipeline.layers import BURN, PYTORCH
from burnstore.render import names_text
from burnstore.snapshot import TensorSnapshot
from burnstore.verbs.listing import aliases_in, listed
from burnstore.verbs.translating import Origin, course_of, translated


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is to be written, and what should be said of it aloud."""

    contents: Contents
    metadata: dict[str, str]
    warning: str | None = None


def prepared(contents: Contents, format: Format, options: Options, origin: Origin, to: str | None, *, saving: bool) -> Prepared:
    """The tensors as the file will hold them, and the metadata that goes along: none of the source's own when saving."""
    stream = _Stream(contents, format, options, origin, to, saving)
    for stage in _SAVE if saving else _CONVERT:
        stage(stream)
    return stream.prepared()


class _Stream:
    """Tensors on their way to a file."""

    def __init__(
        self, contents: Contents, format: Format, options: Options, origin: Origin, to: str | None, saving: bool
    ) -> None:
        self.contents, self.format, self.options, self.origin, self.to, self.saving = (
            contents,
            format,
            options,
            origin,
            to,
            saving,
        )
        # The tensors themselves, once one of them is another than the source's.
        self.changed: list[TensorSnapshot] | None = None
        # Tied weights that are written under one name, by their other names.
        self.aliases: Mapping[str, str] = {}
        # All names, also those that a filter leaves out.
        self.whole = list(origin.paths)
        self.metadata: dict[str, str] = {}
        self.dialect: str | None = None
        self.warning: str | None = None

    def tensors(self) -> list[TensorSnapshot]:
        """All tensors, as they are now."""
        if self.changed is not None:
            return self.changed
        return [self.contents.snapshot(name) for name in self.contents.names()]

    def call(self, name: Callable[[str], str]) -> None:
        """Give every tensor another name, and what names tensors with it."""
        self.changed = [tensor.with_name(name(tensor.name)) for tensor in self.tensors()]
        self.aliases = {name(alias): name(kept) for alias, kept in self.aliases.items()}

    def prepared(self) -> Prepared:
        """What came out."""
        metadata = {**self.metadata, **self.aliases}
        if self.dialect != PYTORCH and metadata.get("format") == "pt":
            del metadata["format"]
        if self.dialect is not None and self.dialect != self.format.dialect:
            metadata[KEY] = self.dialect
            if self.dialect == PYTORCH and self.origin.is_model:
                metadata.setdefault("format", "pt")  # which the transformers of Hugging Face ask for
        if self.changed is None:
            return Prepared(self.contents, metadata, self.warning)
        from burnstore.held import Derived

        return Prepared(Derived(self.changed, self.contents), metadata, self.warning)


def _rename_and_choose(stream: _Stream) -> None:
    """Of a file: names, indices, filter. Of tensors in hand only the filter, which sees the names that they have."""
    contents, options, origin = stream.contents, stream.options, stream.origin
    said = replace(options, map_indices_contiguous=None, rename=None) if stream.saving else options
    stream.whole = stream.whole or list(listed(contents, replace(said, filter=None), origin.name).names())
    stream.contents = listed(contents, said, origin.name)
    stream.aliases = origin.tied if origin.is_model else aliases_in(stream.contents)
    if not stream.saving:
        stream.metadata = _carried(stream.contents, stream.format, stream.aliases)


def _fill_aliases(stream: _Stream) -> None:
    """Only SafeTensors keeps one of two names, and only of tensors that lie alike."""
    straight = course_of(stream.options, stream.origin, stream.to).is_straight
    if not stream.aliases or stream.origin.is_model or (stream.format.name == "safetensors" and straight):
        return
    contents = stream.contents
    ties = [contents.snapshot(kept).with_name(alias) for alias, kept in stream.aliases.items()]
    stream.changed, stream.aliases = [*stream.tensors(), *ties], {}


def _translate(stream: _Stream) -> None:
    course = course_of(stream.options, stream.origin, stream.to)
    stream.dialect, stream.warning = course.dialect, course.warning or stream.warning
    if course.is_straight:
        return
    made = translated(stream.tensors(), stream.contents, stream.options, stream.origin, course)
    if course.steps:
        stream.changed = made


def _cast(stream: _Stream) -> None:
    if stream.options.dtype is not None:
        stream.changed = FloatCastAdapter(DType.of(stream.options.dtype)).adapt_all(stream.tensors())


def _rename(stream: _Stream) -> None:
    rename = stream.options.rename
    if rename is None:
        return
    names = [tensor.name for tensor in stream.tensors()]
    try:
        found = rename.renamed([*names, *stream.aliases]).names
    except BurnstoreError as error:
        error.where = error.where or stream.origin.name
        raise
    stream.whole = [rename.rename(name) for name in stream.whole]
    stream.call(found.__getitem__)


def _count(stream: _Stream) -> None:
    """Count lists from 0 without gaps, where that is said, or where tensors come into Burn's layout."""
    wants = stream.options.map_indices_contiguous
    arrives = wants is not True and stream.dialect == BURN and stream.origin.dialect not in (None, BURN)
    if not arrives and not (wants and stream.saving):  # the names of a file were counted when it was listed
        return
    changes = map_indices_contiguous(stream.whole, keep=stream.options.map_indices_contiguous_except)
    if wants is not False:
        _move(stream, changes, "Burn counts lists without gaps")
    elif len(stream.tensors()) < len(stream.whole) and any(old != new for old, new in changes.items()):
        stream.metadata[INDICES] = KEPT  # a part of a list does not show whether it has gaps


def _count_as_the_model_does(stream: _Stream) -> None:
    """Burn's lists have no gaps; a model of PyTorch's may say which ones its own have, and what its layers are."""
    into = course_of(stream.options, stream.origin, stream.to).dialect
    if stream.options.map_indices_contiguous is None and stream.origin.dialect == BURN and into == PYTORCH:
        paths = _paths_of(stream.options.like)
        if paths:
            _move(stream, aligned(stream.whole, paths, counted=True), "lists are counted as the model counts them")


def _move(stream: _Stream, changes: Mapping[str, str], why: str) -> None:
    """Give lists other numbers, and say so unless it was asked for."""
    if all(old == new for old, new in changes.items()) or is_shard(os.path.basename(stream.origin.name)):
        return  # one shard of several does not have the other layers
    # a tensor may be called otherwise now, but it is in the same layer
    layers = {old.rpartition(".")[0]: new.rpartition(".")[0] for old, new in changes.items()}

    def counted(name: str) -> str:
        layer, dot, leaf = name.rpartition(".")
        return changes.get(name) or f"{layers.get(layer, layer)}{dot}{leaf}"

    moved = [f"{tensor.name} is now {counted(tensor.name)}" for tensor in stream.tensors() if tensor.name != counted(tensor.name)]
    stream.call(counted)
    if moved and stream.options.map_indices_contiguous is None:
        keep = "pass map_indices_contiguous=False to keep the numbers as they are"
        stream.warning = f"{stream.origin.name}: {why}: {names_text(moved, 3)}; {keep}"


def _paths_of(like: object) -> list[str]:
    """The paths of a live model of PyTorch's."""
    from burnstore.targets.table import find_module

    target = find_module(like) if like is not None else None
    return [slot.path for slot in target.slots] if target is not None and target.dialect == PYTORCH else []


def _carried(contents: Contents, format: Format, aliases: Mapping[str, str]) -> dict[str, str]:
    """The source's metadata as the file should say it."""
    metadata = {key: value for key, value in contents.metadata.items() if key != KEY and key not in aliases}
    if metadata.get("format") == contents.format != format.name:
        del metadata["format"]  # it named the container, which is another one now
    return metadata


_CONVERT = (_rename_and_choose, _fill_aliases, _count_as_the_model_does, _translate, _cast, _count)
_SAVE = (_rename_and_choose, _fill_aliases, _count_as_the_model_does, _translate, _cast, _rename, _count)
