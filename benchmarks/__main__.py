"""`python -m benchmarks [QUESTION ...] [--model LABEL] [--quick] [--keep]`: one table."""

from __future__ import annotations

import argparse
import importlib

from benchmarks.measure import Row, line, say, table
from benchmarks.models import LABELS, bench

QUESTIONS = (
    "open_and_list",
    "one_tensor",
    "views",
    "owned",
    "save",
    "durable_save",
    "burnpack",
    "burn",
    "memory",
    "imports",
    "pytorch_open",
    "pytorch_values",
    "pytorch_save",
    "pytorch_convert",
    "pytorch_burn",
    "load_torch",
    "load_translated",
    "load_memory",
    "transpose",
    "bind",
)


def main(arguments: list[str] | None = None) -> None:
    """Measure what is asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast is burnstore, and beside whom?")
    parser.add_argument("question", nargs="*", metavar="QUESTION", help=f"of {', '.join(QUESTIONS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes: does it work?")
    parser.add_argument("--keep", action="store_true", help="keep the made models, which are 6 GB")
    parser.add_argument("--model", action="append", choices=LABELS, default=[], help="only this one of the models")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.question) - set(QUESTIONS))
    if unknown:
        parser.error(f"there is no question {', '.join(unknown)}; there are {', '.join(QUESTIONS)}")
    rows: list[Row] = []
    with bench(given.quick, given.keep, tuple(given.model)) as made:
        for question in given.question or QUESTIONS:
            module = importlib.import_module(f"benchmarks.{question}")
            say(f"{question}: {module.__doc__.splitlines()[0]}")
            for row in module.run(made):
                rows.append(row)
                say(f"    {line(row)}")
    print(table(rows))
    goals = [row.met for row in rows if row.met is not None]
    print(f"\n{sum(goals)} of {len(goals)} goals met{' (--quick: the figures mean nothing)' if given.quick else ''}")


if __name__ == "__main__":
    main()
