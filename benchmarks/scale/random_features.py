"""Ridge and logistic regression on random features beside scikit-learn's RBFSampler and the same.

python -m benchmarks.scale.random_features [kegg | covertype | logistic [tol ...]]     prints lines

The same Gaussian kernel and penalty; judged by held-out rows. Frequencies in orthogonal directions,
each with cosine and sine, may need fewer features for the same error: a line for each number of
them. Logistic regression is of the second class of covertype or not; both sides have the same
features there, each computing them within its time, and are judged by objective and gradient, too.
The tolerances are those of the rival.
"""

from __future__ import annotations

import gc
import sys
import time
from functools import partial
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from benchmarks.scale.tables import Predict, compare, share_wrong, standardised
from mercer import KernelRidge, LogisticRegression
from mercer.approximation import RandomFeatures
from mercer.kernels import Gaussian

SCALE, PENALTY, FEATURES = 3.0, 1e-1, 2000
ITERATIONS = 1000  # of the rival's logistic regression: its default of 100 ends with a warning


def ours(X: Any, y: Any, count: int) -> Predict:
    """Draw frequencies, fit, and certify."""
    kernel = RandomFeatures(count).of(Gaussian(SCALE), X)
    machine = KernelRidge(PENALTY, kernel).fit(X, y)
    assert machine.certificate_.ok
    print(f"  {machine.solution_}", file=sys.stderr, flush=True)
    return machine.predict


def theirs(X: Any, y: Any) -> Predict:
    """Fit the pipeline."""
    features = RBFSampler(gamma=0.5 / SCALE**2, n_components=FEATURES, random_state=0)
    return make_pipeline(features, Ridge(PENALTY)).fit(X, y).predict


def our_logistic(kernel: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Fit and certify; return weights and bias."""
    machine = LogisticRegression(kernel, PENALTY).fit(X, y)
    assert machine.certificate_.ok
    print(f"  {machine.solution_}", file=sys.stderr, flush=True)
    found = machine.solution_.value
    return found.weights[:, 0], found.intercept[0]


def their_logistic(kernel: Any, X: Any, y: Any, tol: float) -> tuple[Any, Any]:
    """Do the same by scikit-learn, with as many iterations as it asks for."""
    machine = TheirLogistic(C=1.0 / PENALTY, tol=tol, max_iter=ITERATIONS)
    machine.fit(kernel.phi(X), y)
    print(f"  {machine.n_iter_} iterations", file=sys.stderr, flush=True)
    return machine.coef_[0], machine.intercept_[0]


def logistic(tols: list[float]) -> None:
    """Compare logistic regression."""
    X, y, Z, z = standardised("covertype")
    y = np.sign(y)
    kernel = RandomFeatures(FEATURES).of(Gaussian(SCALE), X)
    fits: dict[str, Any] = {f"Mercer, RandomFeatures({FEATURES}), logistic": our_logistic}
    for tol in tols:
        fits[f"scikit-learn, LogisticRegression(tol={tol:g})"] = partial(their_logistic, tol=tol)
    for title, fit in fits.items():
        gc.collect()
        work, wall = time.process_time(), time.perf_counter()
        w, b = fit(kernel, X, y)
        work, wall = time.process_time() - work, time.perf_counter() - wall
        F = kernel.phi(X)
        margins = y * (F @ w + b)
        objective = np.logaddexp(0.0, -margins).sum() + 0.5 * PENALTY * w @ w
        slopes = -y / (1.0 + np.exp(margins))
        gradient = np.hypot(np.linalg.norm(F.T @ slopes + PENALTY * w), slopes.sum())
        error = share_wrong(kernel.phi(Z) @ w + b, z)
        print(
            f"covertype, {len(X)} rows | {title} | {error:.4f} | {work:.1f} | {wall:.1f} | "
            f"objective {objective:.4f} | gradient {gradient:.1e}",
            flush=True,
        )


def main() -> None:
    """Compare on both sets, or on one."""
    print("rows | contestant | held-out error | processor s | wall s", flush=True)
    given = sys.argv[1:]
    if given[:1] == ["logistic"]:
        logistic([float(tol) for tol in given[1:]] or [1e-4])
        return
    for name in given or ("kegg", "covertype"):
        fits: dict[str, Any] = {
            f"Mercer, RandomFeatures({m})": lambda X, y, m=m: ours(X, y, m)
            for m in (FEATURES // 2, FEATURES)
        }
        compare(name, {**fits, f"scikit-learn, RBFSampler({FEATURES}) + Ridge": theirs})


if __name__ == "__main__":
    main()
