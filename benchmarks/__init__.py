"""How fast burnstore is, and how much memory it takes, beside what a user would pick instead.

    python -m benchmarks                   every question, one table
    python -m benchmarks save owned        some of them
    python -m benchmarks --quick           a tenth of the sizes: a check that the benchmarks work, not a measurement

Each module answers one question. Everything in a row of the table was measured in one run, the contenders taking turns.
"""
