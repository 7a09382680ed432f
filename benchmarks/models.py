"""The made models that everything is measured on, and their files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import burnstore as bs

Arrays = dict[str, "np.ndarray[Any, Any]"]

# label → (tensors, their shapes in turn, dtype)
_KINDS = {
    "large": (150, ((1024, 1024), (1024, 768), (640, 1024)), "F32"),
    "small": (20_000, ((16, 16),), "F32"),
    "huge": (146, ((2048, 4096), (2048, 3072), (2816, 2048)), "BF16"),
}
LABELS = tuple(_KINDS)
_QUICKER = 10


@dataclass
class Model:
    """Tensors made from nothing, and the files that hold them."""

    label: str
    folder: Path
    count: int
    shapes: tuple[tuple[int, ...], ...]
    dtype: bs.DType
    _files: dict[str, Path] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What the table calls it: `150 x F32, 0.50 GB`."""
        return f"{self.count:,} x {self.dtype}, {self.nbytes / 1e9:.2f} GB"

    @cached_property
    def nbytes(self) -> int:
        """The bytes of all tensors."""
        return sum(self.dtype.nbytes(self.shapes[i % len(self.shapes)]) for i in range(self.count))

    @cached_property
    def arrays(self) -> Arrays:
        """The tensors as NumPy arrays, each with memory of its own, as a program that trained them has them."""
        random = np.random.default_rng(0)
        made: Arrays = {}
        for i, name in enumerate(self.names()):
            shape = self.shapes[i % len(self.shapes)]
            if self.dtype == "F32":
                made[name] = random.random(shape, np.float32)
            else:
                made[name] = random.integers(0, 0x7F00, shape, np.uint16).view(self.dtype.numpy_dtype)
        return made

    def names(self) -> list[str]:
        """Names as transformers have them."""
        return [f"model.layers.{i // 10:04}.block.{i % 10}.weight" for i in range(self.count)]

    def tensors(self) -> dict[str, Any]:
        """The same memory as torch tensors."""
        import torch

        if self.dtype == "F32":
            return {name: torch.from_numpy(array) for name, array in self.arrays.items()}
        return {name: torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) for name, array in self.arrays.items()}

    def file(self, suffix: str) -> Path:
        """A file of it, which is made when it is first asked for."""
        if suffix not in self._files:
            path = self.folder / f"{self.label}-{self.count}{suffix}"
            bs.save(self.arrays, path, overwrite=True)
            self._files[suffix] = path
        return self._files[suffix]

    def forget_arrays(self) -> None:
        """Give the memory back."""
        self.__dict__.pop("arrays", None)


@dataclass
class Bench:
    """Where the files are, which sizes the models have, and how often each contender runs."""

    folder: Path
    quick: bool = False
    labels: tuple[str, ...] = LABELS

    @property
    def rounds(self) -> int:
        """The least number of samples of each contender."""
        return 1 if self.quick else 7

    def model(self, label: str, count: int | None = None) -> Model:
        """One of the made models; `count` changes how many tensors it has."""
        if count is None and label in self._made:
            return self._made[label]
        usual, shapes, dtype = _KINDS[label]
        if self.quick and label == "small":
            usual //= _QUICKER
        elif self.quick:
            shapes = tuple((rows // _QUICKER, columns) for rows, columns in shapes)
        made = Model(label, self.folder, count or usual, shapes, bs.DType.of(dtype))
        if count is None:
            self._made[label] = made
        return made

    def models(self, *labels: str) -> Iterator[Model]:
        """Some of them one after another, or all; only one at a time keeps its arrays in memory."""
        for label in labels or _KINDS:
            if label not in self.labels:
                continue
            model = self.model(label)
            yield model
            model.forget_arrays()

    @cached_property
    def _made(self) -> dict[str, Model]:
        return {}


@contextmanager
def bench(quick: bool, keep: bool, labels: tuple[str, ...] = ()) -> Iterator[Bench]:
    """A place for the files: BURNSTORE_BENCH_DIR, or `data` beside this file; they are deleted afterwards unless kept."""
    base = Path(os.environ.get("BURNSTORE_BENCH_DIR") or Path(__file__).parent / "data")
    base.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=base))
    try:
        yield Bench(folder, quick, labels or LABELS)
    finally:
        if not keep:
            shutil.rmtree(folder)


def warm(*paths: Path) -> None:
    """Bring files into the page cache in one way: dropped, then read from beginning to end in pieces of 1 MiB."""
    block = memoryview(bytearray(1 << 20))
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            while os.readv(fd, [block]):
                pass
        finally:
            os.close(fd)


def remove(path: Path) -> None:
    """Remove a file that a contender is about to write, and its pages with it, so that nobody pays for what another left."""
    path.unlink(missing_ok=True)
    fd = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
