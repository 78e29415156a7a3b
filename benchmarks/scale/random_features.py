"""Ridge and logistic regression on random features beside scikit-learn's RBFSampler and the same.

python -m benchmarks.scale.random_features [kegg | covertype | logistic]     prints a line for each

The same Gaussian kernel and penalty; judged by held-out rows. Frequencies in orthogonal directions,
each with cosine and sine, may need fewer features for the same error: a line for each number of
them. Logistic regression is of the second class of covertype or not, judged by the share of errors.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from benchmarks.scale.tables import Predict, compare, share_wrong
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


def our_logistic(X: Any, y: Any, count: int) -> Predict:
    """Draw frequencies, fit, and certify; the features are fitted to the sign."""
    kernel = RandomFeatures(count).of(Gaussian(SCALE), X)
    machine = LogisticRegression(kernel, PENALTY).fit(X, np.sign(y))
    assert machine.certificate_.ok
    print(f"  {machine.solution_}", file=sys.stderr, flush=True)
    return machine.predict


def their_logistic(X: Any, y: Any) -> Predict:
    """Fit the pipeline with as many iterations as it asks for."""
    features = RBFSampler(gamma=0.5 / SCALE**2, n_components=FEATURES, random_state=0)
    machine = TheirLogistic(C=1.0 / PENALTY, max_iter=ITERATIONS)
    return make_pipeline(features, machine).fit(X, np.sign(y)).predict


def logistic() -> None:
    """Compare logistic regression."""
    fits: dict[str, Any] = {
        f"Mercer, RandomFeatures({m}), logistic": lambda X, y, m=m: our_logistic(X, y, m)
        for m in (FEATURES // 2, FEATURES)
    }
    rival = f"scikit-learn, RBFSampler({FEATURES}) + LogisticRegression"
    compare("covertype", {**fits, rival: their_logistic}, share_wrong)


def main() -> None:
    """Compare on both sets, or on one."""
    print("rows | contestant | held-out error | processor s | wall s", flush=True)
    for name in sys.argv[1:] or ("kegg", "covertype", "logistic"):
        if name == "logistic":
            logistic()
            continue
        fits: dict[str, Any] = {
            f"Mercer, RandomFeatures({m})": lambda X, y, m=m: ours(X, y, m)
            for m in (FEATURES // 2, FEATURES)
        }
        compare(name, {**fits, f"scikit-learn, RBFSampler({FEATURES}) + Ridge": theirs})


if __name__ == "__main__":
    main()
