"""Gaps count what rounding of sums may hide: no claim is below the truth in rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from mercer import SVC, SVR, KernelRidge
from mercer.gram.centering import CenteredFeatures
from mercer.kernels import Linear, Precomputed

pytestmark = pytest.mark.numerics


def drawn(seed):
    """Draw rows of very different lengths, with one far away."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60))
    X = rng.exponential(1.0, (n, 2))
    X[0] = 1e6
    return X * 10.0 ** rng.uniform(-3, 3, (n, 1)), rng.standard_normal(n)


def true_gap(machine, X, y, loss, linear):
    """Return primal minus dual of the answer, as rational numbers have them."""
    b = np.zeros(len(X))
    b[machine.support_] = np.ravel(machine.dual_coef_)
    b, rows = [Fraction(v) for v in b], [[Fraction(v) for v in row] for row in X]
    w = [sum(c * row[j] for c, row in zip(b, rows, strict=True)) for j in range(X.shape[1])]
    intercept = Fraction(float(np.ravel(machine.intercept_)[0]))
    f = [sum(v * x for v, x in zip(w, row, strict=True)) + intercept for row in rows]
    lost = sum(loss(Fraction(t), value) for t, value in zip(y, f, strict=True))
    dual = sum(linear(Fraction(t), c) for t, c in zip(y, b, strict=True))
    return float(sum(v * v for v in w) + lost - dual)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(12))
def test_regression_on_rows_of_many_sizes(seed):
    X, y = drawn(seed)
    machine = SVR(Linear()).fit(X, y)
    eps = Fraction(machine.epsilon_)
    truth = true_gap(
        machine, X, y, lambda t, f: max(0, abs(t - f) - eps), lambda t, b: t * b - eps * abs(b)
    )
    claimed = machine.certificate_.quantities
    assert claimed.gap >= truth * (1 - 1e-9) - 1e-12 * claimed.dual
    assert not machine.certificate_.ok or claimed.relative_gap < 1e-2  # nor is it given up


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(12))
def test_classes_of_rows_of_many_sizes(seed):
    X, y = drawn(seed)
    signs = np.where(y > 0, 1.0, -1.0)
    machine = SVC(Linear()).fit(X, signs)
    truth = true_gap(machine, X, signs, lambda t, f: max(0, 1 - t * f), lambda t, b: t * b)
    claimed = machine.certificate_.quantities
    assert claimed.gap >= truth * (1 - 1e-9) - 1e-12 * claimed.dual


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_given_matrix_is_judged_by_what_it_holds():
    X, y = drawn(3)
    K = X @ X.T
    machine = SVR(Precomputed()).fit(K, y)
    b = np.zeros(len(X))
    b[machine.support_] = np.ravel(machine.dual_coef_)
    b = [Fraction(v) for v in b]
    products = [sum(Fraction(k) * c for k, c in zip(row, b, strict=True)) for row in K]
    f = [p + Fraction(float(machine.intercept_)) for p in products]
    eps = Fraction(machine.epsilon_)
    lost = sum(max(0, abs(Fraction(t) - v) - eps) for t, v in zip(y, f, strict=True))
    norm = sum(c * p for c, p in zip(b, products, strict=True))
    dual = sum(Fraction(t) * c - eps * abs(c) for t, c in zip(y, b, strict=True))
    claimed = machine.certificate_.quantities
    assert claimed.gap >= float(norm + lost - dual) * (1 - 1e-9) - 1e-12 * claimed.dual


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array])
def test_ridge_equations_on_rows_of_many_sizes(seed, held):
    """What is left of the equations is what is claimed, and no less."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 120)), int(rng.integers(1, 6))
    X = rng.exponential(1.0, (n, d))
    if rng.random() < 0.6:
        X[0] = 10.0 ** rng.uniform(0, 9)
    if rng.random() < 0.6:
        X = X * 10.0 ** rng.uniform(-3, 3, (n, 1))
    if rng.random() < 0.3:
        X = X + 10.0 ** rng.uniform(0, 8)
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.uniform(-8, 8)
    y, penalty = rng.standard_normal(n), 10.0 ** rng.uniform(-6, 3)
    machine = KernelRidge(penalty, kernel=Linear()).fit(held(X), y)
    w = [Fraction(v) for v in machine.solution_.value.weights[:, 0]]
    intercept = Fraction(float(machine.solution_.value.intercept[0]))
    features = machine._expansion.features  # samples far away are stored minus an origin
    origin = features.mean if isinstance(features, CenteredFeatures) else np.zeros(d)
    rows = [[Fraction(v) - Fraction(o) for v, o in zip(row, origin, strict=True)] for row in X]
    pull = [
        Fraction(t) - sum(v * x for v, x in zip(w, row, strict=True)) - intercept
        for t, row in zip(y, rows, strict=True)
    ]
    left = [
        float(sum(p * row[j] for p, row in zip(pull, rows, strict=True)) - Fraction(penalty) * w[j])
        for j in range(d)
    ]
    claimed = machine.certificate_.quantities.residual
    right = np.linalg.norm(X.T @ (y - y.mean()))
    assert np.linalg.norm(left) <= claimed * (1 + 1e-6) + 2e-8 * right
