"""A walk through burnstore with two shipped files: `make demo`, or `python examples/demo.py` from anywhere.

It opens a Burnpack file that Burn 0.22.1 wrote and a SafeTensors file, lists both, converts each into the other format,
checks the new files, and compares every value. It writes into a temporary folder and leaves nothing behind.
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

    print(f"\ndemo: ok, {equal} tensors converted, verified and equal")


def indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.replace(f"{DATA}/", "").splitlines())


if __name__ == "__main__":
    main()
