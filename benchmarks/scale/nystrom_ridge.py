"""Ridge on landmarks beside scikit-learn's Nystroem and Ridge.

python -m benchmarks.scale.nystrom_ridge [kegg | covertype]     prints a line for each contestant

The same Gaussian kernel and penalty; judged by held-out rows. Landmarks drawn by what is not
explained so far need fewer of them for the same error: a line for half as many.
"""

from __future__ import annotations

import sys
from typing import Any

from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from benchmarks.scale.tables import Predict, compare
from mercer import KernelRidge
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian

SCALE, PENALTY, LANDMARKS = 3.0, 1e-3, 2000


def ours(X: Any, y: Any, sampling: str, count: int = LANDMARKS) -> Predict:
    """Draw landmarks, fit, and certify."""
    kernel = Nystrom(count, sampling).of(Gaussian(SCALE), X)
    machine = KernelRidge(PENALTY, kernel).fit(X, y)
    assert machine.certificate_.ok
    print(f"  {machine.solution_}", file=sys.stderr, flush=True)
    return machine.predict


def theirs(X: Any, y: Any) -> Predict:
    """Fit the pipeline."""
    landmarks = Nystroem(gamma=0.5 / SCALE**2, n_components=LANDMARKS, random_state=0)
    return make_pipeline(landmarks, Ridge(PENALTY)).fit(X, y).predict


def main() -> None:
    """Compare on both sets, or on one."""
    print("rows | contestant | held-out RMSE | processor s | wall s", flush=True)
    for name in sys.argv[1:] or ("kegg", "covertype"):
        compare(
            name,
            {
                "Mercer, Nystrom(2000)": lambda X, y: ours(X, y, "pivoted"),
                "Mercer, Nystrom(1000)": lambda X, y: ours(X, y, "pivoted", LANDMARKS // 2),
                'Mercer, Nystrom(2000, "uniform")': lambda X, y: ours(X, y, "uniform"),
                "scikit-learn, Nystroem(2000) + Ridge": theirs,
            },
        )


if __name__ == "__main__":
    main()
