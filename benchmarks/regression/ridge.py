"""Kernel ridge: one fit, and the choice of the penalty, against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.model_selection import GridSearchCV

from benchmarks.harness import Case, Row, run
from mercer import KernelRidge, certify
from mercer.gram import Need, make_gram
from mercer.kernels import Gaussian
from mercer.problems import Coefficients, LinearSystem

SCALE = 2.0

NOTE = """With 10 penalties, the reduction to a band needs 8/3 n^3 operations in any
implementation. The rival's time divided by the lower bound below is therefore the largest possible
ratio. If the library's Cholesky factorization is fast, this ratio may be below the goal. Further
penalties cost little in Mercer; a grid search fits each of them."""


def data(n: int) -> tuple[Any, Any]:
    """Make a smooth function of eight variables with a little noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 8))
    y = np.sin(X[:, 0] * X[:, 1]) + np.cos(X[:, 2:5].sum(axis=1)) + 0.1 * rng.standard_normal(n)
    return X, y


def judge(X: Any, y: Any, penalty: float) -> Any:
    """Certify dual coefficients, Mercer's or scikit-learn's, as solutions of the same equations."""
    gram = make_gram(Gaussian(SCALE), X, Need.MATRIX)

    def certificate(coef: Any) -> str:
        system = LinearSystem(gram, y[:, None], np.array([penalty]), np.ones(len(y)), bias=False)
        q = certify(system, Coefficients(coef.reshape(-1, 1), np.zeros(1))).quantities
        return f"residual {q.relative_residual:.0e}"

    return certificate


def cases(n: int = 5000, quick: bool = False) -> list[Row]:
    X, y = data(n)
    gamma = 1 / (2 * SCALE**2)
    ten, hundred = np.logspace(-4, 2, 10), np.logspace(-4, 2, 100)

    def ours(penalty: Any, penalties: Any = None) -> KernelRidge:
        return KernelRidge(penalty, kernel=Gaussian(SCALE), penalties=penalties, bias=False).fit(
            X, y
        )

    def theirs() -> Any:
        return TheirRidge(kernel="rbf", gamma=gamma, alpha=0.1).fit(X, y).dual_coef_

    def grid() -> str:
        search = GridSearchCV(
            TheirRidge(kernel="rbf", gamma=gamma),
            {"alpha": ten},
            cv=5,
            scoring="neg_mean_squared_error",
        ).fit(X, y)
        best = search.best_params_["alpha"]
        return f"picks {best:.2g}, 5-fold error {-search.best_score_:.4f}"

    def path(penalties: Any) -> str:
        machine = ours("loo", penalties)
        assert machine.certificate_.ok
        return f"picks {machine.penalty_:.2g}, exact error {machine.loo_scores_.min():.4f}"

    rows = run(
        Case(
            f"KernelRidge, one fit, n = {n}",
            lambda: ours(0.1).dual_coef_,
            {"scikit-learn KernelRidge": theirs},
            judge(X, y, 0.1),
            {"scikit-learn KernelRidge": 1.6},
            repeats=5,
            rival_repeats=5,
        )
    )
    rows += run(
        Case(
            f"KernelRidge, 10 penalties, exact leave-one-out, n = {n}",
            lambda: path(ten),
            {} if quick else {"scikit-learn GridSearchCV, 5 folds": grid},
            str,
            {"scikit-learn GridSearchCV, 5 folds": 12},
            rival_repeats=1,
        )
    )
    rows += run(
        Case(
            f"KernelRidge, 100 penalties, exact leave-one-out, n = {n}",
            lambda: path(hundred),
            {"Mercer, 10 penalties": lambda: path(ten)},
            str,
            {"Mercer, 10 penalties": 0.4},
        )
    )
    return rows
