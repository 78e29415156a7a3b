"""Random machines on hostile data, watched by invariants and by independent solvers.

A case is a list of Python lines, drawn from a seed and then run: what is printed for a finding is
what ran, and runs without this package. `python -m fuzz --minutes 30 --seed 1` from `tests/`.
"""
