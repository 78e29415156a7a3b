"""Learning kernels beside loops over scikit-learn's machines and its Gaussian processes.

python -m benchmarks.tables.kernel_learning         every case
python -m benchmarks.tables.kernel_learning scales  cases whose name contains the word
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from benchmarks.harness import Case, Row, as_table, run
from mercer.certificates import certify
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian, Linear
from mercer.machines.svm import problem as svm
from mercer.problems import Dual, Duals, KernelCombination, WeightedDuals
from mercer.selection import combine, learn_scales

NOTE = """*Weights.* 20 kernels on blocks of columns, C = 10, to a relative duality gap of 1e-4.
The rival is a loop around scikit-learn's `SVC(kernel="precomputed")`: weights in proportion to the
norms of the parts of the function, for at most 300 fits. Its matrices exist in advance. Mercer
evaluates and scales them and certifies the solution within the measured time. The gap is computed
by the same certificate for both.

*Scales.* Marginal likelihood of a Gaussian process with one scale per feature, noise and variance,
from one start. scikit-learn's `GaussianProcessRegressor` maximizes the same function. Large scales
of irrelevant features make it flat. With the default tolerance of 1e-4, Mercer stops 0.2 below in
the case of 40 scales, in about half the time."""


def blocks(n: int) -> tuple[Any, Any, list[Any]]:
    """Return rows, labels, and kernels on blocks of columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 10))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    pairs = [Gaussian(1.0).on([i, j]) for i in range(5) for j in range(i)]
    return X, y, pairs + [Linear().on([j]) for j in range(10)]


def by_fixed_point(matrices: list[Any], y: Any, C: float) -> WeightedDuals:
    """Update weights around scikit-learn's machine."""
    weights = np.full(len(matrices), 1.0 / len(matrices))
    for _ in range(300):
        K = sum(w * M for w, M in zip(weights, matrices, strict=True) if w > 1e-8)
        machine = sklearn.svm.SVC(C=C, kernel="precomputed", tol=1e-5, cache_size=1000).fit(K, y)
        b = np.zeros(len(y))
        b[machine.support_] = machine.dual_coef_[0]
        squares = np.array([b @ M @ b for M in matrices])
        gap = 0.5 * (squares.max() - weights @ squares)
        value = Duals((Dual(b, float(machine.intercept_[0])),))
        if gap < 1e-4 * (y @ b - 0.5 * weights @ squares):
            break
        used, weights = weights, weights * np.sqrt(squares)
        weights /= weights.sum()
    else:
        weights = used
    return WeightedDuals(weights, value)


def weights(n: int) -> Case:
    X, y, kernels = blocks(n)
    C = 10.0
    raw = [k(X) for k in kernels]
    matrices = [K / (np.trace(K) / n - K.mean()) for K in raw]
    factors = np.array([1.0 / (np.trace(K) / n - K.mean()) for K in raw])
    grams = tuple(make_gram(k, X, Need.ROWS) for k in kernels)
    problem = KernelCombination(grams, factors, lambda g: svm.svc(g, y, np.full(n, C)))

    def judge(answer: Any) -> str:
        if not isinstance(answer, WeightedDuals):
            return f"gap {answer.certificate.quantities.relative_gap:.0e}"
        return f"gap {certify(problem, answer).quantities.relative_gap:.0e}"

    return Case(
        f"weights of 20 kernels, n = {n}",
        lambda: combine(kernels, X, y, method="margin", C=C),
        {"loop over SVC": lambda: by_fixed_point(matrices, y, C)},
        judge,
        repeats=3,
        rival_repeats=1,
    )


def scales(n: int, d: int) -> Case:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    spread = X.std(axis=0) * np.sqrt(d)

    def process() -> Any:
        kernel = ConstantKernel(1.0, (1e-5, 1e8)) * RBF(
            spread, np.column_stack([1e-2 * spread, 1e3 * spread])
        ) + WhiteKernel(0.1, (1e-8, 1e3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return GaussianProcessRegressor(kernel, alpha=0.0).fit(X, y)

    def judge(answer: Any) -> str:
        value = getattr(answer, "log_marginal_likelihood_value_", None)
        return f"log-likelihood {answer.value if value is None else value:.3f}"

    return Case(
        f"{d} scales by likelihood, n = {n}",
        lambda: learn_scales(
            X, y, objective="likelihood", bias=False, starts=1, tol=1e-6, max_iter=1000
        ),
        {"GaussianProcessRegressor": process},
        judge,
        repeats=3,
        rival_repeats=1,
    )


CASES = {
    "weights 500": lambda: weights(500),
    "weights 2000": lambda: weights(2000),
    "scales 10": lambda: scales(600, 10),
    "scales 40": lambda: scales(400, 40),
}


def main(word: str = "") -> list[Row]:
    """Run the cases whose name contains the word."""
    return [row for name, case in CASES.items() if word in name for row in run(case())]


if __name__ == "__main__":
    print(as_table(main(*sys.argv[1:2])))
