"""A support vector classifier on Nystrom features, beside scikit-learn's Nystroem + LinearSVC.

python -m benchmarks.scale.svc_features [rows [loss]]     prints one line for each contestant

The loss of LinearSVC is squared_hinge, as it comes, or hinge, the one that SVC has by itself.

Covertype, the largest class against the rest; rows drawn again with a little noise where more are
asked for than there are. Held-out rows are apart from the drawn ones.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.svm_data import FOLDER
from mercer import SVC
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian

SCALE, FEATURES, C, HELD_OUT, NOISE = 5.0, 300, 1.0, 20_000, 0.05


def covertype(rows: int) -> tuple[Any, Any, Any, Any]:
    """Draw rows, standardised, with noise on the ten columns that are numbers."""
    with np.load(FOLDER / "covertype_part.npz", allow_pickle=False) as data:
        X, y = data["X"].astype(np.float64), data["y"]
    y, rng = (y == np.bincount(y).argmax()).astype(int), np.random.default_rng(0)
    order = rng.permutation(len(X))
    X, y = X[order][:, X.std(axis=0) > 0], y[order]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    drawn = rng.integers(HELD_OUT, len(X), rows)
    train = X[drawn]
    train[:, :10] += NOISE * rng.standard_normal((rows, 10))
    return train, y[drawn], X[:HELD_OUT], y[:HELD_OUT]


def mercer_svc(X: Any, y: Any) -> Any:
    """Find landmarks and fit."""
    return SVC(Gaussian(SCALE), C=C, approximation=Nystrom(FEATURES, "uniform")).fit(X, y)


def linear_svc(**options: Any) -> Callable[[Any, Any], Any]:
    """Return scikit-learn's pipeline."""
    features = Nystroem(gamma=0.5 / SCALE**2, n_components=FEATURES, random_state=0)
    return make_pipeline(features, LinearSVC(C=C, **options)).fit


def main(rows: int, loss: str) -> None:
    """Fit both, and print seconds and held-out errors."""
    X, y, Z, z = covertype(rows)
    contestants: dict[str, Callable[[Any, Any], Any]] = {
        "mercer SVC": mercer_svc,
        f"LinearSVC, {loss}": linear_svc(loss=loss),
    }
    for name, fit in contestants.items():
        wall, processor = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine = fit(X, y)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        error = 1.0 - machine.score(Z, z)
        print(
            f"{name:24} n {rows} wall {wall:8.2f} s processor {processor:8.2f} s error {error:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 500_000, given[1] if len(given) > 1 else "squared_hinge")
