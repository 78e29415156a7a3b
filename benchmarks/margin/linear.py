"""Linear support vector machines in the space of the features, against LIBLINEAR."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.harness import Case, Row, run
from mercer.gram import FactoredGram
from mercer.machines.svm import problem as svm
from mercer.problems import BoxQP
from mercer.solvers import solve

NOTE = """Both minimize LIBLINEAR's objective: the bias is the weight of a constant feature and
is regularized. The last two columns show the objective relative to the lower bound that Mercer's
dual solution gives. LIBLINEAR's dual solver stops after 60 epochs, even if it has not converged.
The accuracies then differ, as these columns show. Mercer always runs to its own tolerance and
reaches rounding error if there are few features."""

GOAL = 1.5
PASSES = 60


def dense(n: int, d: int) -> tuple[Any, Any]:
    """Make two overlapping classes, a tenth of the labels wrong, and a constant feature."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.sign(X @ rng.standard_normal(d) / np.sqrt(d) + 0.3 * rng.standard_normal(n) + 0.2)
    y[rng.random(n) < 0.1] *= -1
    return np.column_stack([X, np.ones(n)]), y


def text(n: int, d: int, filled: int) -> tuple[Any, Any]:
    """Make rows like those of text: few columns each, some of them common, of length one."""
    rng = np.random.default_rng(0)
    columns = (d * rng.random((n, filled)) ** 3).astype(np.int32)
    begin = np.arange(0, n * filled + 1, filled, dtype=np.int32)
    X = sparse.csr_array((rng.random(n * filled) + 0.1, columns.ravel(), begin), shape=(n, d))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr))
    f = X @ rng.standard_normal(d)
    y = np.sign(f - np.median(f) + 0.1 * f.std() * rng.standard_normal(n))
    y[rng.random(n) < 0.05] *= -1
    return sparse.hstack([X, np.ones((n, 1))], format="csr"), y


def machine(X: Any, y: Any, C: float, squared: bool) -> BoxQP:
    """Write LIBLINEAR's problem: no sum is fixed."""
    gram = FactoredGram(lambda Z: Z, X)
    box = (svm.svc_l2 if squared else svm.svc)(gram, y, np.full(len(y), C))
    alone = np.full(len(y), -1)
    return BoxQP(box.gram, box.linear, box.lower, box.upper, np.zeros(0), 0.0, alone)


def compare(
    name: str, X: Any, y: Any, C: float, squared: bool, tol: float, goal: float
) -> list[Row]:
    """Let both solve one problem; judge weights by the primal objective."""
    bound: list[float] = []

    def ours() -> Any:
        problem = machine(X, y, C, squared)
        return problem, solve(problem).value.coef

    def theirs(dual: bool) -> Any:
        loss = "squared_hinge" if squared else "hinge"
        rival = LinearSVC(
            C=C, loss=loss, dual=dual, tol=tol, fit_intercept=False, max_iter=PASSES, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return rival.fit(X, y).coef_[0]

    def judge(answer: Any) -> str:
        w = answer
        if isinstance(answer, tuple):
            problem, b = answer
            bound.append(float(problem.linear @ b - 0.5 * b @ (problem.gram @ b)))
            w = np.asarray(X.T @ b).ravel()
        slack = np.maximum(0.0, 1.0 - y * (X @ w))
        value = 0.5 * float(w @ w) + C * float((slack**2 if squared else slack).sum())
        return f"{(value - bound[0]) / bound[0]:.0e} above the bound"

    rivals = {"LinearSVC, dual": lambda: theirs(True)}
    if squared:
        rivals["LinearSVC, primal"] = lambda: theirs(False)
    slack_name = "squared slack" if squared else "slack"
    case = f"{name}, {slack_name}, C = {C:g}"
    goals = dict.fromkeys(rivals, goal)
    return run(Case(case, ours, rivals, judge, goals, repeats=3, rival_repeats=1))


def cases(quick: bool = False) -> list[Row]:
    """Run all comparisons; `quick` shrinks the data."""
    share = 50 if quick else 1
    rows: list[Row] = []
    X, y = dense(1_000_000 // share, 50)
    for C in (1.0, 0.01):
        for squared in (False, True):
            rows += compare(f"{len(y)} x 50", X, y, C, squared, 0.01, GOAL)
    X, y = dense(100_000 // share, 500 if not quick else 50)
    rows += compare(f"{len(y)} x {X.shape[1] - 1}", X, y, 0.1, False, 0.01, GOAL)
    X, y = text(200_000 // share, 50_000 // share, 100)
    for squared in (False, True):
        rows += compare(f"{len(y)} x {X.shape[1] - 1}, sparse", X, y, 0.1, squared, 0.01, 1.0)
    return rows
