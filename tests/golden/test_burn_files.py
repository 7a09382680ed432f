"""Files that the real Burn wrote: read with nothing wrong, and written again byte for byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import burnstore as bs
from burnstore.data import TensorData

from .truth import CORRUPTED_BY_BURN, Told, burn_version, golden_files, has_order, is_of_019, plain_ids, rust_text, told

Announce = Callable[[str], None]

# How many there are, by the folder above: so that a folder that lost its files cannot pass.
BURNPACKS = {"data": 39, "fixtures": 117}
SAFETENSORS = {"data": 26, "fixtures": 71}


def _described(store: bs.Store, path: Path) -> dict[str, Told]:
    """What burnstore reads, in the words of the truth."""
    found = {}
    for name, snapshot in store.items():
        digest = hashlib.sha256(snapshot.tobytes()).hexdigest()
        if not snapshot.dtype.is_quantized:
            assert hashlib.sha256(snapshot.numpy().tobytes()).hexdigest() == digest
        dtype = rust_text(snapshot.dtype, burn_version(path)) if path.suffix == ".bpk" else str(snapshot.dtype.safetensors_name)
        if is_of_019(path):
            dtype = dtype.replace("Bool", "BOOL")  # its manifests were made from its SafeTensors files
        found[name] = Told(dtype, snapshot.shape, snapshot.param_id, digest)
    return found


def test_every_tensor_of_every_golden_file_is_read_right(burn: Path, oracle_if_any: Any, announce: Announce) -> None:
    read = {".bpk": 0, ".safetensors": 0}
    tensors, wrong = 0, {}
    for path in golden_files(burn):
        want, got = told(path, oracle_if_any), _described(bs.open(path), path)
        if got == want and (not has_order(path) or list(got) == list(want)):
            read[path.suffix] += 1
            tensors += len(got)
        else:
            wrong[str(path)] = {
                name: (got.get(name), want.get(name)) for name in {*got, *want} if got.get(name) != want.get(name)
            }
    announce(
        f"{burn}: {read['.bpk']} .bpk and {read['.safetensors']} .safetensors files were read with every tensor's name, dtype,"
        f" shape, param id and sha256 right ({tensors:,} tensors); {len(wrong)} wrongly"
    )
    assert not wrong
    assert read == {".bpk": BURNPACKS[burn.parent.name], ".safetensors": SAFETENSORS[burn.parent.name]}


def test_param_ids_are_those_of_a_plain_cbor_decoder(burn: Path) -> None:
    for path in golden_files(burn):
        if path.suffix == ".bpk":
            assert {name: snapshot.param_id for name, snapshot in bs.open(path).items()} == plain_ids(path), path


def test_every_golden_file_is_written_as_burn_wrote_it(burn: Path, announce: Announce) -> None:
    equal = {".bpk": 0, ".safetensors": 0}
    exempt, different = [], []
    for path in golden_files(burn):
        raw, store = path.read_bytes(), bs.open(path)
        if path.suffix == ".bpk" and is_of_019(path):
            exempt.append(f"{path.name} of 0.19 has no alignment, which every later version needs")
            continue
        if path.as_posix().endswith(CORRUPTED_BY_BURN):
            exempt.append(f"{path.name} has bytes of a tensor that it does not list: Burn 0.20.1 mixed two of one name up")
            continue
        snapshots = list(store.values())
        written = bs.save(snapshots, bytes, format=store.format, metadata=store.metadata, for_burn=burn_version(path))
        if written == _with_sorted_metadata(raw) if path.suffix == ".safetensors" else written == raw:
            equal[path.suffix] += 1
        else:
            different.append(str(path))
    announce(
        f"{burn}: {equal['.bpk']} .bpk and {equal['.safetensors']} .safetensors files were written equal to Burn's byte for byte;"
        f" {len(different)} differ, {len(exempt)} cannot be equal"
    )
    assert not different
    assert len(exempt) in (3, 5)
    assert equal[".bpk"] == BURNPACKS[burn.parent.name] - len(exempt)
    assert equal[".safetensors"] == SAFETENSORS[burn.parent.name]


def _with_sorted_metadata(raw: bytes) -> bytes:
    """The order of the keys of `__metadata__` is random in Burn; nothing else is."""
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    if "__metadata__" in header:
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    assert len(text) == length
    return raw[:8] + text + raw[8 + length :]


def test_files_of_burn_019_become_files_that_later_versions_read(burn: Path) -> None:
    for path in golden_files(burn):
        if path.suffix == ".bpk" and is_of_019(path):
            aligned = bs.open(bs.convert(path, bytes, format="bpk"))
            assert not bs.verify(aligned).oddities
            assert "0.19" in bs.verify(path).oddities[0]
            assert {n: s.tobytes() for n, s in aligned.items()} == {n: s.tobytes() for n, s in bs.open(path).items()}


def test_converting_a_burnpack_file_to_burnpack_changes_no_byte(burn: Path) -> None:
    for path in golden_files(burn):
        if path.suffix == ".bpk" and not is_of_019(path) and not path.as_posix().endswith(CORRUPTED_BY_BURN):
            assert bs.convert(path, bytes, format="bpk", for_burn=burn_version(path)) == path.read_bytes(), path


def test_arrays_with_burns_ids_are_written_as_burn_wrote_them(burn: Path) -> None:
    """The same without a tensor that comes from a file: owned arrays, in the manifest's order."""
    done = 0
    for path in golden_files(burn):
        if not has_order(path):
            continue
        store, snapshots = bs.open(path), []
        for name, row in told(path, None).items():
            dtype, array = store[name].dtype, None if store[name].dtype.is_quantized else store[name].numpy(copy=True)
            plain = array is not None and bs.DType.of(array.dtype) == dtype
            held = array if plain else TensorData(store[name].tobytes(), row.shape, dtype)
            snapshots.append(bs.TensorSnapshot.from_data(name, held, param_id=row.param_id))
        written = bs.save(snapshots, bytes, format="bpk", metadata=store.metadata, for_burn=burn_version(path))
        assert written == path.read_bytes(), path
        done += 1
    assert done >= 30


@pytest.mark.parametrize("version", ["0.20", "0.22"])
@pytest.mark.parametrize("suffix", ["bpk", "safetensors"])
def test_burn_named_stores_write_burns_metadata_without_being_told(data: Path, version: Any, suffix: str) -> None:
    folder = data / "burn" / {"0.20": "v0.20.1/seed42", "0.22": "v0.22.1/ramp"}[version]
    kind: Any = bs.BurnpackStore if suffix == "bpk" else bs.SafetensorsStore
    plain = kind.from_bytes(None).for_burn(version)
    described = plain.metadata("version", "1.0").metadata("description", "café ☕")
    if suffix == "bpk":
        described = described.metadata("", "")
    for store, name in ((plain, "zoo"), (described, "zoo.meta"), (plain.clear_metadata(), "zoo.nometa")):
        golden = folder / f"{name}.{suffix}"
        wanted = bs.open(golden)
        if suffix == "bpk" and name == "zoo.meta":
            store = store.metadata("", wanted.metadata[""])
        bs.save(list(wanted.values()), store)
        raw = golden.read_bytes()
        assert store.get_bytes() == (raw if suffix == "bpk" else _with_sorted_metadata(raw)), name
