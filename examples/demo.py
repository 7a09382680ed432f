"""A walk through burnstore with two shipped files: `make demo`, or `python examples/demo.py` from anywhere.

It opens a Burnpack file that Burn 0.22.1 wrote and a SafeTensors file, lists both, converts each into the other format,
checks the new files, and compares every value. Then it makes a checkpoint in PyTorch's format, loads it into a dict of arrays,
and shows what the report of a good and of a failed load says. It writes into a temporary folder and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import burnstore as bs

DATA = Path(__file__).parent / "data"


def heading(number: int, text: str) -> None:
    print(f"\n{number}. {text}\n")


def convert_and_compare(source: Path, dest: Path) -> int:
    """Convert one file into another, check what came out, and count the tensors that are equal."""
    bs.convert(source, dest)
    print(f"   {source.name} ({source.stat().st_size:,} bytes)  ->  {dest.name} ({dest.stat().st_size:,} bytes)")
    report = bs.verify(dest)
    print(f"   verify: {'ok' if report else 'broken'}, {report.tensors} tensors, {report.nbytes:,} bytes of values")
    for line in (*report.problems, *report.oddities):
        print(f"     {line}")

    before, after = bs.open(source), bs.open(dest)
    equal = [name for name in before if name in after and np.array_equal(before[name].numpy(), after[name].numpy())]
    print(f"   values: {len(equal)} of {len(before)} tensors are equal, {len(after)} are in the new file\n")
    if not report or not len(equal) == len(before) == len(after):
        raise SystemExit(f"demo: {dest.name} differs from {source.name}")
    return len(equal)


def empty_model() -> dict[str, dict[str, np.ndarray]]:
    """A model as a dict of arrays: two convolutions, the second without a bias."""
    return {
        "conv1": {"weight": np.zeros((2, 2, 2, 2), np.float32), "bias": np.zeros(2, np.float32)},
        "conv2": {"weight": np.zeros((2, 2, 2, 2), np.float32)},
    }


def load_checkpoint(checkpoint: Path) -> int:
    """Load a `.pt` into arrays, compare them with the file, and count the tensors that were loaded."""
    model = empty_model()
    result = bs.load(checkpoint, model)
    print(indented(str(result)))
    stored = bs.open(checkpoint, key="state_dict")
    same = [np.array_equal(model["conv1"][name], stored[f"conv1.{name}"].numpy()) for name in ("weight", "bias")]
    same.append(np.array_equal(model["conv2"]["weight"], stored["conv2.weight"].numpy()))
    if not all(same) or len(result.applied) != len(stored):
        raise SystemExit(f"demo: the arrays differ from {checkpoint.name}")
    print(f"\n   values: all {len(same)} arrays of the model are those of {checkpoint.name}")
    return len(result.applied)


def fail_to_load(checkpoint: Path) -> None:
    """Load the same file into a model that it does not fit, which stays as it was."""
    model = empty_model()
    model["conv1"]["bias"] = np.zeros(3, np.float32)
    model["conv2"]["wieght"] = model["conv2"].pop("weight")
    try:
        bs.load(checkpoint, model)
    except bs.errors.LoadError as error:
        print(f"   {type(error).__name__}: {str(error).replace(str(checkpoint), checkpoint.name)}\n")
        print(indented(str(error.report)))
    else:
        raise SystemExit("demo: a file that does not fit was loaded")
    if any(array.any() for layer in model.values() for array in layer.values()):
        raise SystemExit("demo: a load that failed changed the model")
    print("\n   values: the model is as it was, all zeros")


def main() -> None:
    burn_file, torch_file = DATA / "zoo.bpk", DATA / "conv2d.safetensors"
    print(f"burnstore {bs.__version__} reads and writes weight files. Nothing but NumPy is needed to look into one.")

    heading(1, "Open a Burnpack file. Names, dtypes and shapes are known at once; no values are read yet.")
    store = bs.open(burn_file)
    print(indented(repr(store)))

    heading(2, "Take one tensor as a NumPy array, and a part of another.")
    weight = store["linear.weight"]
    print(f"   {weight!r}")
    print(indented(str(weight.numpy())))
    print(f"   first two rows of embedding.weight: shape {store['embedding.weight'][:2].shape}")

    heading(3, "Open a SafeTensors file in the same way.")
    print(indented(repr(bs.open(torch_file))))

    heading(4, "Convert each into the other format, verify the new file, and compare the values.")
    with tempfile.TemporaryDirectory() as folder:
        equal = convert_and_compare(burn_file, Path(folder, "zoo.safetensors"))
        equal += convert_and_compare(torch_file, Path(folder, "conv2d.bpk"))

        heading(5, "A mistyped name is answered with the likely one.")
        try:
            store["linear.wieght"]
        except KeyError as error:
            print(f"   {type(error).__name__}: {str(error).replace(str(burn_file), burn_file.name)}")

        heading(6, "Load a checkpoint of PyTorch into a model, here a dict of arrays. PyTorch is not needed.")
        checkpoint = Path(folder, "checkpoint.pt")
        bs.save(bs.open(torch_file), checkpoint, extra={"epoch": 3})
        loaded = load_checkpoint(checkpoint)

        heading(7, "Load it into a model that it does not fit: nothing is written, and the report says why.")
        fail_to_load(checkpoint)

    print(f"\ndemo: ok, {equal} tensors converted, verified and equal, {loaded} loaded into a model")


def indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.replace(f"{DATA}/", "").splitlines())


if __name__ == "__main__":
    main()
