"""Perceptrons one example at a time and by the block; logistic regression at equal objective.

python -m benchmarks.classification.online             every case
python -m benchmarks.classification.online single      cases whose name contains the word
"""

from __future__ import annotations

import copy
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression as TheirRegression
from sklearn.linear_model import Perceptron as Theirs

from benchmarks.harness import Case, Row, as_table, run
from mercer import LogisticRegression, Perceptron
from mercer.certificates import certify
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian, Linear
from mercer.problems import Coefficients, LogLoss, SmoothRisk

SINGLE = 2000  # examples, one call each

NOTE = """Perceptrons: one `partial_fit` on samples in the given order, by estimators that have
already learned a few samples. The last columns show the fraction of misclassified samples
afterwards. Logistic regression: scikit-learn's `lbfgs` and `newton-cholesky` with tol=1e-8. The
gap is the duality gap of both solutions, computed by the same code."""


def rows(n: int, d: int, classes: int) -> Any:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X @ rng.standard_normal((d, classes))).argmax(axis=1)


def text(n: int, d: int, filled: int) -> Any:
    """Draw sparse rows with a long tail of rare words."""
    rng = np.random.default_rng(0)
    columns = np.minimum(rng.zipf(1.3, n * filled) - 1, d - 1).astype(np.int32)
    begin = np.arange(0, n * filled + 1, filled, dtype=np.int32)
    X = sparse.csr_array((np.ones(n * filled), columns, begin), shape=(n, d))
    X.sum_duplicates()
    return X, (X @ rng.standard_normal(d) > 0).astype(int)


def one_by_one(make: Any, X: Any, y: Any) -> Any:
    machine = make().partial_fit(X[:1], y[:1], classes=np.unique(y))
    parts = [(X[i : i + 1], y[i : i + 1]) for i in range(1, SINGLE)]

    def work() -> Any:
        for x, label in parts:
            machine.partial_fit(x, label)
        return machine

    return work


def in_one_block(make: Any, X: Any, y: Any) -> Any:
    started = make().partial_fit(X[:10], y[:10], classes=np.unique(y))
    return lambda: copy.deepcopy(started).partial_fit(X, y)


def perceptron_case(name: str, how: Any, X: Any, y: Any, goal: float) -> Case:
    def judge(fitted: Any) -> str:
        return f"{100 * (1 - fitted.score(X[:5000], y[:5000])):.1f} % wrong"

    rivals = {"scikit-learn": how(Theirs, X, y)}
    return Case(name, how(Perceptron, X, y), rivals, judge, {"scikit-learn": goal}, 3, 3)


def regression_case(n: int, d: int, classes: int, uneven: bool = False) -> Case:
    X, y = rows(n, d, classes)
    rng = np.random.default_rng(1)
    if uneven:  # columns that share much and differ in scale, as measured ones do
        X = np.cumsum(X, axis=1) * np.geomspace(0.1, 10, d) + 1.0
    y = np.where(rng.random(n) < 0.2, rng.integers(classes, size=n), y)
    gram = make_gram(Linear(), X, Need.PRODUCTS)
    problem = SmoothRisk(gram, y, classes, np.ones(n), 1.0, LogLoss(), True)

    def theirs(solver: str) -> Any:
        most = 500 if uneven else 10_000  # where steps without curvature hardly get anywhere
        return lambda: TheirRegression(solver=solver, tol=1e-8, max_iter=most).fit(X, y)

    def judge(fitted: Any) -> str:
        coef, b = fitted.coef_, fitted.intercept_
        value = Coefficients(np.empty((0, len(b))), b, np.ascontiguousarray(coef.T))
        return f"gap {certify(problem, value).quantities.relative_gap:.0e}"

    rivals = {f"scikit-learn {name}": theirs(name) for name in ("lbfgs", "newton-cholesky")}
    name = f"logistic regression {n} x {d}, {classes} classes" + ", uneven columns" * uneven
    times = 1 if uneven else 3
    return Case(name, lambda: LogisticRegression().fit(X, y), rivals, judge, {}, 3, times)


def memory() -> float:
    """Return the peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def stream(machine: Perceptron, draw: Any, total: int, block: int, seconds: float) -> str:
    """Learn from rows that are never the same; give cost per row early and late, and memory."""
    rng, costs, seen, first = np.random.default_rng(7), [], 0, 0.0
    began = time.perf_counter()
    while seen < total and time.perf_counter() - began < seconds:
        X, y = draw(rng, block)
        before = time.perf_counter()
        machine.partial_fit(X, y, classes=[0, 1])
        costs.append((time.perf_counter() - before) / block)
        seen += block
        first = first or memory()
    tenth = max(1, len(costs) // 10)
    early, late = (1e6 * float(np.median(part)) for part in (costs[1 : tenth + 1], costs[-tenth:]))
    return (
        f"{seen} rows, {block * sum(costs):.1f} s of learning, {early:.1f} us a row early and "
        f"{late:.1f} late, memory {first:.0f} MB after the first block and {memory():.0f} MB at "
        "the end"
    )


def streams(seconds: float = 170.0) -> None:
    """Print what a million rows cost: sparse texts in the primal, a kernel with a budget."""
    truth, d = np.random.default_rng(0).standard_normal(100_000), 100_000

    def words(rng: Any, n: int) -> Any:
        columns = np.minimum(rng.zipf(1.3, n * 60) - 1, d - 1).astype(np.int32)
        X = sparse.csr_array((np.ones(n * 60), columns, np.arange(0, n * 60 + 1, 60)), shape=(n, d))
        X.sum_duplicates()
        return X, (X @ truth > 0).astype(int)

    def noise(rng: Any, n: int) -> Any:
        return rng.standard_normal((n, 10)), rng.integers(2, size=n)

    print("linear, averaged:", stream(Perceptron(answer="averaged"), words, 10**6, 10_000, seconds))
    kernel = Perceptron(Gaussian(1.0), budget=100)
    print("budget of 100, labels mean nothing:", stream(kernel, noise, 10**6, 10_000, seconds))


def cases() -> list[Case]:
    dense, many, words = rows(20_000, 50, 2), rows(20_000, 50, 10), text(50_000, 100_000, 60)
    return [
        perceptron_case("perceptron, single examples, 50 columns", one_by_one, *dense, 5.0),
        perceptron_case("perceptron, single examples, 10 classes", one_by_one, *many, 5.0),
        perceptron_case("perceptron, single examples, sparse text", one_by_one, *words, 5.0),
        perceptron_case("perceptron, a block of 20000 x 50", in_one_block, *dense, 1.0),
        perceptron_case("perceptron, a block, 10 classes", in_one_block, *many, 1.0),
        perceptron_case("perceptron, a block of 50000 sparse texts", in_one_block, *words, 1.0),
        regression_case(20_000, 50, 2),
        regression_case(10_000, 20, 5),
        regression_case(20_000, 50, 10),
        regression_case(20_000, 50, 10, uneven=True),
    ]


def main(words: Sequence[str] = ()) -> list[Row]:
    """Run the cases whose name contains a word, or all."""
    chosen = [case for case in cases() if not words or any(word in case.name for word in words)]
    return [row for case in chosen for row in run(case)]


if __name__ == "__main__" and sys.argv[1:] == ["stream"]:
    streams()
elif __name__ == "__main__":
    print(as_table(main(sys.argv[1:])))
