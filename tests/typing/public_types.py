"""What a type checker says of burnstore's public face; `test_typing.py` runs mypy over this file, nothing calls the function."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import numpy as np

import burnstore as bs

path = Path("model.bpk")


def use_everything() -> None:
    store = bs.open(path)
    assert_type(store, bs.Store)
    assert_type(store["w"], bs.TensorSnapshot)
    assert_type(store.get("w"), bs.TensorSnapshot | None)
    assert_type(list(store), list[str])
    assert_type(store.metadata["k"], str)
    assert_type(store.scalars, Mapping[str, Any])
    with bs.open(b"", io="pread", format="bpk", limits=bs.Limits(burnpack_tensors=3)) as opened:
        assert_type(opened, bs.Store)

    snapshot = store["w"]
    assert_type(snapshot.name, str)
    assert_type(snapshot.dtype, bs.DType)
    assert_type(snapshot.shape, tuple[int, ...])
    assert_type(snapshot.nbytes, int)
    assert_type(snapshot.param_id, int | None)
    assert_type(snapshot.containers, tuple[str, ...])
    assert_type(snapshot.numpy(), np.ndarray[Any, Any])
    assert_type(snapshot.tobytes(), bytes)
    assert_type(snapshot.to_data(), bs.TensorData)
    assert_type(snapshot.with_name("b"), bs.TensorSnapshot)
    assert_type(snapshot.module_type(), str | None)
    assert_type(bs.TensorSnapshot.from_data("w", [1.0], param_id=3), bs.TensorSnapshot)
    assert_type(bs.TensorSnapshot.from_closure("w", "F32", (2,), lambda: [1.0, 2.0]), bs.TensorSnapshot)
    assert_type(bs.TensorSnapshot.from_blocks("w", bs.DType.of("U8"), [2], [b"ab"]), bs.TensorSnapshot)

    assert_type(bs.read(path), dict[str, np.ndarray[Any, Any]])
    assert_type(bs.read(io.BytesIO(), copy=False, threads=2), dict[str, np.ndarray[Any, Any]])

    arrays = {"w": np.zeros(2)}
    assert_type(bs.save(arrays, bytes, format="bpk"), bytes)
    bs.save(arrays, path, metadata={"k": "v"}, overwrite=True, fsync=False, for_burn="0.20", dialect="keep")
    bs.save(store, io.BytesIO(), format="safetensors")
    bs.save([snapshot], bytearray(), format="safetensors", shard_size=None)
    bs.save(arrays, "model.safetensors", shard_size="5GB", limits=bs.Limits())
    assert_type(bs.convert(path, bytes, format="safetensors"), bytes)
    bs.convert(path, "model.safetensors")
    bs.convert(bytearray(), bs.BurnpackStore.from_bytes(None))
    with open("file", "rb") as reading, open("other", "wb") as writing:
        bs.convert(reading, writing, format="bpk")

    model = {"fc": {"weight": np.zeros((2, 3), np.float32)}}
    result = bs.load(path, model, only=r"^fc", skip=["bias$"], rename={"^net": ""}, partial=True, dtype="file", threads=2)
    assert_type(result, bs.ApplyResult)
    assert_type(result.applied, list[str])
    assert_type(result.missing, list[tuple[str, str]])
    assert_type(result.errors, list[bs.ApplyError])
    assert_type(result.is_success(), bool)
    plan = bs.plan(store, model, adapter=bs.PyTorchToBurnAdapter(), kinds={"fc": "Linear"}, assign=True)
    assert_type(plan, bs.Plan)
    assert_type(plan.result, bs.ApplyResult)
    assert_type(plan.apply(), bs.ApplyResult)
    bs.loaded(path, model, dialect="burn", validate=False, progress=lambda done, total: None)
    assert_type(bs.collect(model, only=lambda path, container: True), list[bs.TensorSnapshot])
    assert_type(bs.apply(bs.collect(model), model), bs.ApplyResult)
    assert_type(bs.merge(path, model, bs.collect(model), on_conflict="last"), list[bs.TensorSnapshot])
    bs.save(model, path, only=["a", bs.PathFilter().with_regex("b")], rename=[("a", "b")], dtype="bf16", like=model)
    bs.convert(path, "m.bpk", like=model, kinds={"fc": "Linear"}, from_dialect="pytorch", to_dialect="burn")
    bs.open(path, only="a", rename=bs.KeyRemapper().add_pattern("a", "b"), map_indices_contiguous_except="^a$")
    assert_type(bs.read(path, dtype="f32", only="a", progress=lambda done, total: print(done)), dict[str, np.ndarray[Any, Any]])
    assert_type(bs.read(path, framework="torch", device="cpu"), dict[str, Any])
    assert_type(bs.PyTorchToBurnAdapter().chain(bs.HalfPrecisionAdapter()), bs.ChainAdapter)
    assert_type(bs.PathFilter().with_regex("a") | bs.PathFilter().with_full_path("b"), bs.PathFilter)
    assert_type(bs.map_indices_contiguous(["a.0", "a.2"]), dict[str, str])

    report = bs.verify(path)
    assert_type(report, bs.Verification)
    assert_type(report.ok, bool)
    assert_type(report.problems, tuple[str, ...])

    named = bs.BurnpackStore.from_file(path).overwrite().zero_copy().auto_extension(False).for_burn("0.22").clear_metadata()
    assert_type(named, bs.BurnpackStore)
    assert_type(named.get_snapshot("w"), bs.TensorSnapshot | None)
    assert_type(named.get_all_snapshots(), dict[str, bs.TensorSnapshot])
    assert_type(named.get_bytes(), bytes)
    assert_type(bs.BurnpackStore.from_static(b""), bs.BurnpackStore)
    assert_type(bs.SafetensorsStore.from_bytes(None).overwrite(), bs.SafetensorsStore)

    chosen = named.with_regex("a").with_key_remapping("a", "b").with_from_adapter(bs.PyTorchToBurnAdapter()).allow_partial()
    assert_type(chosen, bs.BurnpackStore)
    assert_type(bs.PytorchStore.from_file(path).with_top_level_key("model").validate(False).with_dialect("burn"), bs.PytorchStore)

    # What must be refused: an ignore that is not needed is an error of its own.
    bs.open(path, io="fast")  # type: ignore[arg-type]
    bs.open(3)  # type: ignore[arg-type]
    bs.open(path, "bpk")  # type: ignore[call-arg]
    bs.save(arrays, path, for_burn="0.18")  # type: ignore[call-overload]
    bs.save(arrays, path, compress=True)  # type: ignore[call-overload]
    bs.save(arrays)  # type: ignore[call-overload]
    bs.load(path, model, overwrite=True)  # type: ignore[call-arg]
    bs.load(path, model, dtype="f32")  # type: ignore[arg-type]
    bs.load(path)  # type: ignore[call-arg]
    bs.merge(path, on_conflict="newest")  # type: ignore[arg-type]
    snapshot.nbytes = 3  # type: ignore[misc]
    bs.Limits(3)  # type: ignore[call-arg]
    bs.opne  # type: ignore[attr-defined]
