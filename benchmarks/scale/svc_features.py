"""A support vector classifier on Nystrom features, beside scikit-learn's Nystroem + LinearSVC.

python -m benchmarks.scale.svc_features [rows [loss]]     prints one line for each contestant

The loss of LinearSVC is squared_hinge, as it comes, or hinge, the one that SVC has by itself. Both
have the same landmarks, rows drawn at random: the kernel of their features is one and the same, so
that held-out errors, and objectives with the hinge loss, compare the solvers alone. Each computes
features in its own way, within its time.

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

from benchmarks.datasets import FOLDER
from mercer import SVC
from mercer.approximation import ApproximateKernel, Nystrom
from mercer.approximation.nystrom import NystromFeatures
from mercer.kernels import Gaussian

Decide = Callable[[Any], Any]
Weights = Callable[[], Any]
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


def landmarks(X: Any, count: int) -> Any:
    """Draw rows for everybody, all alike."""
    return X[np.random.default_rng(1).choice(len(X), count, replace=False)]


def nystrom(rows: Any) -> ApproximateKernel:
    """Return the kernel of the features that landmarks give."""
    kernel = Gaussian(SCALE)
    features = NystromFeatures.at(kernel.expression(), rows)
    return ApproximateKernel(kernel, Nystrom(len(rows), "uniform"), features)


def nystroem(rows: Any) -> Nystroem:
    """Return scikit-learn's features of the same landmarks: it takes all rows of a fit to few."""
    return Nystroem(gamma=0.5 / SCALE**2, n_components=len(rows), random_state=0).fit(rows)


def mercer_svc(X: Any, y: Any, rows: Any) -> tuple[Decide, Weights]:
    """Find features and fit; return the decision function, and what gives w."""
    kernel = nystrom(rows)
    machine = SVC(kernel, C=C).fit(X, y)
    assert machine.certificate_.ok
    return machine.decision_function, lambda: machine.dual_coef_ @ kernel.phi(X[machine.support_])


def linear_svc(X: Any, y: Any, rows: Any, loss: str) -> tuple[Decide, Weights]:
    """Do the same by scikit-learn."""
    features = nystroem(rows)
    machine = LinearSVC(C=C, loss=loss).fit(features.transform(X), y)
    decide = make_pipeline(features, machine).decision_function
    return decide, lambda: machine.coef_


def touched(gigabytes: int = 3) -> None:
    """Write to as much memory as a fit takes: pages that are lent for the first time cost."""
    np.empty(gigabytes << 27).fill(0.0)


def main(rows: int, loss: str) -> None:
    """Fit both, and print seconds, held-out errors, and the objective with the hinge loss."""
    X, y, Z, z = covertype(rows)
    drawn = landmarks(X, FEATURES)
    contestants: dict[str, Callable[[], tuple[Decide, Weights]]] = {
        "mercer SVC": lambda: mercer_svc(X, y, drawn),
        f"LinearSVC, {loss}": lambda: linear_svc(X, y, drawn, loss),
    }
    for name, fit in contestants.items():
        touched()
        wall, processor = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decide, weights = fit()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        error = float(np.mean((decide(Z) > 0) != z))
        slack = np.maximum(1.0 - np.where(y > 0, 1.0, -1.0) * decide(X), 0.0)
        objective = 0.5 * float(np.square(weights()).sum()) + C * float(slack.sum())
        print(
            f"{name:24} n {rows} wall {wall:8.2f} s processor {processor:8.2f} s "
            f"error {error:.4f} objective {objective:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 500_000, given[1] if len(given) > 1 else "squared_hinge")
