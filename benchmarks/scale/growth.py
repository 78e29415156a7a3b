"""Seconds and memory of a classifier on Nystrom features against the number of rows.

python -m benchmarks.scale.growth [rows]     prints one line for each contestant

Largest size of the process is of all sizes so far: they grow.
"""

from __future__ import annotations

import resource
import sys
import time

from benchmarks.scale.svc_features import SCALE, covertype
from mercer import SVC
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian

FEATURES = 50


def main(largest: int) -> None:
    """Fit ever more rows."""
    rows = 10_000
    while rows <= largest:
        X, y, Z, z = covertype(rows)
        begun = time.process_time()
        machine = SVC(Nystrom(FEATURES, "uniform").of(Gaussian(SCALE), X)).fit(X, y)
        took = time.process_time() - begun
        top = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        error = 1.0 - machine.score(Z, z)
        print(
            f"n {rows} processor {took:.2f} s, {1e6 * took / rows:.2f} us a row, {top:.2f} GB, error {error:.4f}"
        )
        rows = round(rows * 10**0.5)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
