"""Fisher's discriminant beside one Cholesky factor and scikit-learn; nearest neighbours.

python -m benchmarks.classification.fisher             every case
python -m benchmarks.classification.fisher neighbours  cases whose name contains the word
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

import mercer
from benchmarks.harness import Case, Row, as_table, run
from mercer import FisherDiscriminant
from mercer.backends import choose_backend
from mercer.gram import Need, Source, make_gram, neighbours
from mercer.kernels import Gaussian, Kernel, Linear, Polynomial

NOTE = """*Fisher discriminant.* "one Cholesky" factors an existing matrix of the same size. The
goal is a fit, with evaluation of the kernel, within twice that time: a ratio of at least 0.5. The
linear fits use 20000 x 100 samples in 10 classes.

*Neighbors.* 15 nearest neighbors of 50000 x 30 samples among themselves, in float64. If float32
tiles cannot exclude a pair by a rounding bound, its distance is computed from the samples. In
three dimensions, a tree compares few samples and is faster; Mercer compares all. Both are verified
on 300 samples by sorted float64 distances.

*Votes.* The 5 nearest of 20000 x 50 samples vote on 20000 new ones; leave-one-out compares the
samples among themselves. Composed kernels are compared with scikit-learn's Euclidean distances and
with Mercer's linear kernel. The reference is the vote of the 5 samples with the smallest k(x, x) +
k(y, y) - 2 k(x, y), sorted in float64, for 300 new samples. A label is wrong if another one has
more votes. Composed kernels have different neighbors, so the labels of Euclidean distances differ
there."""


def groups(n: int, d: int, classes: int = 10) -> tuple[Any, Any]:
    """Return Gaussian classes with means that overlap."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    return rng.standard_normal((n, d)) + 0.8 * rng.standard_normal((classes, d))[y], y


def fisher_gaussian(n: int = 5000) -> Case:
    X, y = groups(n, 50)
    K = make_gram(Gaussian(7.0), X, Need.MATRIX).dense()
    backend = choose_backend()
    A = backend.empty(n, n)

    def factor() -> None:
        A[:] = K  # part of the time, as the fit writes its matrix too
        A.flat[:: n + 1] += 1e-4
        assert backend.cholesky(A) == 0

    def judge(answer: Any) -> str:
        return "" if answer is None else f"residual {answer.certificate_.quantities.residual:.0e}"

    return Case(
        f"Fisher, Gaussian, n = {n}, 10 classes",
        lambda: FisherDiscriminant(Gaussian(7.0)).fit(X, y),
        {"one Cholesky": factor},
        judge,
        {"one Cholesky": 0.5},
        repeats=5,
        rival_repeats=5,
    )


def fisher_linear() -> Case:
    X, y = groups(20000, 100)

    def judge(machine: Any) -> str:
        return f"accuracy {machine.score(X, y):.4f}"

    return Case(
        "Fisher, linear, 20000 x 100, 10 classes",
        lambda: FisherDiscriminant(penalty=1e-8).fit(X, y),
        {
            "LDA svd": lambda: LinearDiscriminantAnalysis().fit(X, y),
            "LDA lsqr": lambda: LinearDiscriminantAnalysis("lsqr").fit(X, y),
        },
        judge,
    )


def nearest(name: str, d: int, algorithm: str, goals: dict[str, float]) -> Case:
    X = np.random.default_rng(0).standard_normal((50000, d))
    source = Source(Gaussian(3.0).expression(), X)
    machine = NearestNeighbors(n_neighbors=15, algorithm=algorithm, n_jobs=-1).fit(X)
    some = slice(0, 300)
    distances = np.array([np.square(X - x).sum(axis=1) for x in X[some]])
    distances[np.arange(300), np.arange(300)] = np.inf
    expected = np.argsort(distances, axis=1, kind="stable")[:, :15]

    def judge(found: Any) -> str:
        return f"{int((found[some] != expected).sum())} of {expected.size} wrong"

    return Case(
        name,
        lambda: neighbours(source, 15)[0],
        {algorithm: lambda: machine.kneighbors(return_distance=False)},
        judge,
        goals,
        repeats=3,
        rival_repeats=1,
    )


def votes(name: str, kernel: Kernel, goals: dict[str, float], n: int = 20000) -> Case:
    rows, labels = groups(2 * n, 50)
    X, y, Z = rows[:n], labels[:n], rows[n:]
    machine = mercer.NearestNeighbors(5, kernel=kernel).fit(X, y)
    plain = mercer.NearestNeighbors(5, kernel="linear").fit(X, y)
    brute = KNeighborsClassifier(5, algorithm="brute", n_jobs=-1).fit(X, y)
    some = Z[:300]
    squared = kernel.diag(some)[:, None] + kernel.diag(X) - 2 * kernel(some, X)
    if isinstance(kernel, Linear):
        squared = np.array([np.square(X - z).sum(axis=1) for z in some])
    near = y[np.argsort(squared, axis=1, kind="stable")[:, :5]]
    counts = (near[:, :, None] == np.arange(10)).sum(axis=1)

    def judge(chosen: Any) -> str:
        wrong = counts[np.arange(300), chosen[:300]] < counts.max(axis=1)
        return f"{int(wrong.sum())} of 300 wrong"

    rivals = {"brute": lambda: brute.predict(Z)}
    if not isinstance(kernel, Linear):
        rivals["our linear"] = lambda: plain.predict(Z)
    return Case(name, lambda: machine.predict(Z), rivals, judge, goals, 5, 3)


def leave_one_out(name: str, kernel: Kernel, n: int = 20000) -> Case:
    X, y = groups(n, 50)
    brute = NearestNeighbors(n_neighbors=15, algorithm="brute", n_jobs=-1).fit(X)

    def judge(answer: Any) -> str:
        return "" if isinstance(answer, np.ndarray) else f"{answer.n_neighbors_} neighbors"

    return Case(
        name,
        lambda: mercer.NearestNeighbors("loo", kernel=kernel, max_neighbors=15).fit(X, y),
        {"brute": lambda: brute.kneighbors(return_distance=False)},
        judge,
        {"brute": 1.0},
        repeats=3,
        rival_repeats=3,
    )


COMPOSED = Gaussian(7.0) + 0.5 * Polynomial(2)
IN_COLUMNS = Gaussian(5.0).on(range(25)) + 0.5 * Polynomial(2).on(range(25, 50))
CASES = {
    "gaussian": fisher_gaussian,
    "linear": fisher_linear,
    "neighbours brute": lambda: nearest("15 neighbors, 50000 x 30", 30, "brute", {"brute": 1.0}),
    "neighbours tree": lambda: nearest("15 neighbors, 50000 x 3", 3, "kd_tree", {}),
    "neighbours linear": lambda: votes("5 neighbors, linear", Linear(), {"brute": 1.0}),
    "neighbours gaussian": lambda: votes("5 neighbors, Gaussian", Gaussian(7.0), {"brute": 1.0}),
    "neighbours composed": lambda: votes(
        "5 neighbors, Gaussian + 0.5 polynomial", COMPOSED, {"brute": 1.0}
    ),
    "neighbours columns": lambda: votes(
        "5 neighbors, the same on 25 columns each", IN_COLUMNS, {"brute": 1.0}
    ),
    "neighbours product": lambda: votes(
        "5 neighbors, Gaussian x polynomial", Gaussian(7.0) * Polynomial(2), {"brute": 1.0}
    ),
    "neighbours one out linear": lambda: leave_one_out("leave-one-out, linear", Linear()),
    "neighbours one out composed": lambda: leave_one_out(
        "leave-one-out, Gaussian + 0.5 polynomial", COMPOSED
    ),
}


def main(word: str = "") -> list[Row]:
    """Run the cases whose name contains the word."""
    return [row for name, case in CASES.items() if word in name for row in run(case())]


if __name__ == "__main__":
    print(as_table(main(*sys.argv[1:2])))
