"""Burn's builder methods for what becomes of tensors on their way: filters, names, adapters, and how strict a load is.

Each gives a new store with one option changed; the options are the same as those behind the keywords of the verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from burnstore.options import Options
    from burnstore.pipeline.adapt import Adapter
    from burnstore.pipeline.filter import PathFilter
    from burnstore.pipeline.remap import KeyRemapper


class PipelineBuilders:
    """The builder methods that all of Burn's stores have for what becomes of tensors."""

    _options: Options

    def _with(self, **changes: Any) -> Self:
        raise NotImplementedError

    def with_regex(self, pattern: str) -> Self:
        """Only tensors in whose path this is found; several criteria are joined by OR.

        On loading and saving a model the paths are the model's, otherwise the names after renaming.

        >>> from burnstore import BurnpackStore
        >>> BurnpackStore.from_file("model.bpk").with_regex(r"^encoder").with_regex(r"bias$").options.filter
        PathFilter[regex: [Regex("^encoder"), Regex("bias$")]]
        """
        return self.filter(self._filter().with_regex(pattern))

    def with_regexes(self, patterns: Iterable[str]) -> Self:
        """Only tensors in whose path one of these is found.

        >>> from burnstore import BurnpackStore
        >>> BurnpackStore.from_file("model.bpk").with_regexes(["a", "b"]).options.filter
        PathFilter[regex: [Regex("a"), Regex("b")]]
        """
        return self.filter(self._filter().with_regexes(patterns))

    def with_full_path(self, path: str) -> Self:
        """This tensor, beside what else passes.

        >>> from burnstore import BurnpackStore
        >>> BurnpackStore.from_file("model.bpk").with_full_path("fc.bias").options.filter
        PathFilter[paths: ["fc.bias"]]
        """
        return self.filter(self._filter().with_full_path(path))

    def with_full_paths(self, paths: Iterable[str]) -> Self:
        """These tensors, beside what else passes.

        >>> from burnstore import BurnpackStore
        >>> BurnpackStore.from_file("model.bpk").with_full_paths(["a", "b"]).options.filter
        PathFilter[paths: ["a", "b"]]
        """
        return self.filter(self._filter().with_full_paths(paths))

    def with_predicate(self, predicate: Callable[[str, str], object]) -> Self:
        """Tensors that a function of (path, container) says yes to; a container reads `Net.Vec.Linear`.

        >>> from burnstore import BurnpackStore
        >>> BurnpackStore.from_file("model.bpk").with_predicate(lambda path, container: "fc" in path).options.filter
        PathFilter[predicates: 1]
        """
        return self.filter(self._filter().with_predicate(predicate))

    def match_all(self) -> Self:
        """All tensors, whatever was said before.

        >>> from burnstore import BurnpackStore
        >>> BurnpackStore.from_file("model.bpk").with_regex("a").match_all().options.filter
        PathFilter::all()
        """
        return self.filter(self._filter().match_all())

    def filter(self, filter: PathFilter) -> Self:
        """Use this filter instead of what was said before.

        >>> from burnstore import BurnpackStore, PathFilter
        >>> BurnpackStore.from_file("model.bpk").filter(PathFilter().with_regex("a")).options.filter
        PathFilter[regex: [Regex("a")]]
        """
        return self._with(filter=filter)

    def _filter(self) -> PathFilter:
        from burnstore.pipeline.filter import PathFilter

        return self._options.filter or PathFilter()

    def with_key_remapping(self, pattern: str, replacement: str) -> Self:
        """Rename tensors: a rule after those that are there. On loading from the file's names, on saving to them.

        >>> from burnstore import SafetensorsStore
        >>> store = SafetensorsStore.from_file("model.safetensors").with_key_remapping(r"^model\\.", "")
        >>> store.options.rename.rename("model.fc.bias")
        'fc.bias'
        """
        from burnstore.pipeline.remap import KeyRemapper

        return self.remap(KeyRemapper.of(self._options.rename).add_pattern(pattern, replacement))

    def remap(self, remapper: KeyRemapper) -> Self:
        """Use these rules instead of those that are there.

        >>> from burnstore import SafetensorsStore, KeyRemapper
        >>> store = SafetensorsStore.from_file("m.safetensors").remap(KeyRemapper().add_pattern("a", "b"))
        >>> store.options.rename.rename("a")
        'b'
        """
        from burnstore.pipeline.remap import KeyRemapper

        return self._with(rename=KeyRemapper.of(remapper))

    def with_from_adapter(self, adapter: Adapter) -> Self:
        """What changes tensors when they are loaded, instead of the dialect that would be found.

        >>> from burnstore import SafetensorsStore, PyTorchToBurnAdapter
        >>> SafetensorsStore.from_file("m.safetensors").with_from_adapter(PyTorchToBurnAdapter()).options.from_adapter
        PyTorchToBurnAdapter()
        """
        from burnstore.pipeline.adapt import checked_adapter

        return self._with(from_adapter=checked_adapter(adapter))

    def with_to_adapter(self, adapter: Adapter) -> Self:
        """What changes tensors when they are saved.

        >>> from burnstore import SafetensorsStore, BurnToPyTorchAdapter
        >>> SafetensorsStore.from_file("m.safetensors").with_to_adapter(BurnToPyTorchAdapter()).options.to_adapter
        BurnToPyTorchAdapter()
        """
        from burnstore.pipeline.adapt import checked_adapter

        return self._with(to_adapter=checked_adapter(adapter))

    def with_dialect(self, dialect: str) -> Self:
        """Say whose names and axes the file has, "pytorch" or "burn", where it does not say so itself; "keep" for as they lie.

        >>> from burnstore import SafetensorsStore
        >>> SafetensorsStore.from_file("model.safetensors").with_dialect("pytorch").options.from_dialect
        'pytorch'
        """
        from burnstore.pipeline.layers import checked_dialect

        checked_dialect(dialect)
        return self._with(from_dialect=dialect, to_dialect=dialect)

    def kinds(self, kinds: Mapping[str, str]) -> Self:
        """Say of which kind layers are, by patterns of their paths, where no model says it.

        >>> from burnstore import SafetensorsStore
        >>> SafetensorsStore.from_file("model.safetensors").kinds({r"^fc": "Linear"}).options.kinds
        {'^fc': 'Linear'}
        """
        from burnstore.pipeline.layers import Kinds

        Kinds.of(kinds)
        return self._with(kinds=dict(kinds))

    def like(self, model: object) -> Self:
        """Take the kinds of layers from a model when tensors without one are saved.

        >>> from burnstore import SafetensorsStore
        >>> SafetensorsStore.from_file("model.safetensors").like({}).options.like
        {}
        """
        return self._with(like=model)

    def dtype(self, dtype: str) -> Self:
        """On loading "model" or "file": whose dtype wins. On saving: what floats become, such as "bf16".

        >>> from burnstore import SafetensorsStore
        >>> SafetensorsStore.from_file("model.safetensors").dtype("file").options.dtype
        'file'
        """
        return self._with(dtype=dtype)

    def allow_partial(self, allow: bool = True) -> Self:
        """Load what is there, although tensors of the model are missing in the file.

        >>> from burnstore import BurnpackStore
        >>> BurnpackStore.from_file("model.bpk").allow_partial(True).options.allow_partial
        True
        """
        return self._with(allow_partial=bool(allow))

    def validate(self, validate: bool = True) -> Self:
        """Whether a tensor that does not fit makes a load fail, as it does unless this is switched off.

        >>> from burnstore import BurnpackStore
        >>> BurnpackStore.from_file("model.bpk").validate(False).options.validate
        False
        """
        return self._with(validate=bool(validate))

    def skip_enum_variants(self, skip: bool = True) -> Self:
        """Leave the variants of enums out of the model's paths, as files of PyTorch do.

        >>> from burnstore import SafetensorsStore
        >>> SafetensorsStore.from_file("model.safetensors").skip_enum_variants(True).options.skip_enum_variants
        True
        """
        return self._with(skip_enum_variants=bool(skip))

    def map_indices_contiguous(self, enabled: bool = True) -> Self:
        """Count the items of each list from 0 without gaps: `fc.0, fc.2` become `fc.0, fc.1`.

        >>> from burnstore import SafetensorsStore
        >>> SafetensorsStore.from_file("model.safetensors").map_indices_contiguous().options.map_indices_contiguous
        True
        """
        return self._with(map_indices_contiguous=bool(enabled))

    def map_indices_contiguous_except(self, pattern: str) -> Self:
        """The same, but lists whose path the pattern matches keep their indices.

        >>> from burnstore import SafetensorsStore
        >>> store = SafetensorsStore.from_file("m.safetensors").map_indices_contiguous_except(r"^flows$")
        >>> store.options.map_indices_contiguous_except
        ('^flows$',)
        """
        kept = (*self._options.map_indices_contiguous_except, pattern)
        return self._with(map_indices_contiguous=True, map_indices_contiguous_except=kept)

    def zero_copy(self, enabled: bool = True) -> Self:
        """Give a model views of the file instead of copies when it is loaded.

        >>> from burnstore import BurnpackStore
        >>> BurnpackStore.from_file("model").zero_copy().options.zero_copy
        True
        """
        return self._with(zero_copy=enabled)
