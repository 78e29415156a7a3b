"""Ridge on random features beside scikit-learn's RBFSampler and Ridge.

python -m benchmarks.scale.random_features [kegg | covertype]     prints a line for each contestant

The same Gaussian kernel and penalty; judged by held-out rows. Frequencies in orthogonal directions,
each with cosine and sine, need fewer features for the same error: a line for each number of them.
"""

from __future__ import annotations

import sys
from typing import Any

from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from benchmarks.scale.tables import Predict, compare
from mercer import KernelRidge
from mercer.approximation import RandomFeatures
from mercer.kernels import Gaussian

SCALE, PENALTY, FEATURES = 3.0, 1e-1, 2000


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


def main() -> None:
    """Compare on both sets, or on one."""
    print("rows | contestant | held-out RMSE | processor s | wall s", flush=True)
    for name in sys.argv[1:] or ("kegg", "covertype"):
        fits: dict[str, Any] = {
            f"Mercer, RandomFeatures({m})": lambda X, y, m=m: ours(X, y, m)
            for m in (FEATURES // 2, FEATURES)
        }
        compare(name, {**fits, f"scikit-learn, RBFSampler({FEATURES}) + Ridge": theirs})


if __name__ == "__main__":
    main()
