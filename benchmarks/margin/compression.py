"""Fewer vectors: time of a prediction, labels and norm of the difference, on mail.

python -m benchmarks.margin.compression
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from mercer import SVC, LogisticRegression, compress
from mercer.kernels import Gaussian

NOTE = """Spambase, logarithms of all columns, standardized; 3000 training samples, 1601 new
ones. The time is the processor time of `predict` on the new samples, the least of seven. "others"
is the fraction of labels that differ from those of the full estimator. The norm is |f - g| / |f|,
which bounds every value and is much stricter than labels require."""

FILE = Path(__file__).parents[2] / "examples" / "data" / "spambase.npz"
WISHES: tuple[dict[str, Any], ...] = (
    {"n_vectors": 50},
    {"n_vectors": 50, "move": True},
    {"n_vectors": 100},
    {"n_vectors": 200},
    {"tol": 0.1},
    {"tol": 0.01},
)


def main() -> str:
    """Write the table."""
    lines = [
        "| estimator | vectors | ms per prediction | wrong | others | norm | s to compress |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    X, y, new = rows()
    for machine in (SVC(Gaussian(6.0), C=3.0), LogisticRegression(Gaussian(6.0), penalty=0.1)):
        machine.fit(X[~new], y[~new])
        name = type(machine).__name__
        wrong = np.mean(machine.predict(X[new]) != y[new])
        count = len(machine._expansion.coef)
        lines.append(f"| {name} | {count} | {seconds(machine, X[new]):.1f} | {wrong:.1%} | | | |")
        for asked in WISHES:
            started = time.process_time()
            small = compress(machine, X=X[new], **asked)
            spent = time.process_time() - started
            found = small.certificate_.quantities
            wrong = np.mean(small.predict(X[new]) != y[new])
            text = ", ".join(f"{key}={value}" for key, value in asked.items())
            lines.append(
                f"| {text} | {found.vectors} | {seconds(small, X[new]):.1f} | {wrong:.1%} | "
                f"{found.labels_changed / new.sum():.1%} | {found.relative_error:.1%} | "
                f"{spent:.2f} |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines)


def rows() -> tuple[Any, Any, Any]:
    """Return the rows, their labels, and which of them are new."""
    with np.load(FILE, allow_pickle=False) as held:
        X, y = np.log1p(held["X"]), held["y"]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    new = np.zeros(len(y), dtype=bool)
    new[np.random.default_rng(0).permutation(len(y))[3000:]] = True
    return X, y, new


def seconds(machine: Any, X: Any) -> float:
    """Return milliseconds of processor time for a prediction, the least of seven."""
    times = []
    for _ in range(7):
        started = time.process_time()
        machine.predict(X)
        times.append(time.process_time() - started)
    return 1e3 * min(times)


if __name__ == "__main__":
    print(main())
