"""Laplacian ridge and SVC against closed forms, and against machines on the labelled rows alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, KernelRidge, LaplacianRidge, LaplacianSVC, ParameterError, certify, solve
from mercer.gram import Need, make_gram, neighbour_graph
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.problems import Deformation, DeformedKernel

pytestmark = pytest.mark.numerics

X, MOON = make_moons(90, noise=0.08, random_state=1)
KERNEL = Gaussian(0.4)
KNOWN = np.zeros(90, dtype=bool)
KNOWN[np.random.default_rng(3).choice(90, 8, replace=False)] = True
Y = np.where(KNOWN, MOON, -1)
T = np.where(KNOWN, X @ [1.0, -2.0], np.nan)


def laplacian(neighbors=10):
    W = neighbour_graph(KERNEL, X, neighbors).dense()
    return (np.diag(W.sum(axis=1)) - W) / W.sum(axis=1).mean()


@pytest.mark.parametrize("bias", [False, True])
def test_ridge_is_the_closed_form(bias):
    K, L, n = KERNEL(X), laplacian(), len(X)
    J = np.diag(KNOWN.astype(float))
    y = np.nan_to_num(T)
    machine = LaplacianRidge(0.1, KERNEL, intrinsic_penalty=0.5, bias=bias).fit(X, T)
    # minimise |J (y - K a - b)|^2 + 0.1 a'Ka + 0.5 a'KLKa, all equations at once
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = J @ K + 0.1 * np.eye(n) + 0.5 * L @ K
    A[:n, n], A[n, :n], A[n, n] = KNOWN, KNOWN @ K, KNOWN.sum()
    right = np.append(J @ y, y.sum())
    if bias:
        found = np.linalg.solve(A, right)
        assert machine.intercept_ == pytest.approx(found[n])
    else:
        found = np.append(np.linalg.solve(A[:n, :n], right[:n]), 0.0)
    assert np.allclose(machine.dual_coef_, found[:n], atol=1e-8)
    assert np.allclose(machine.predict(X), K @ found[:n] + found[n])
    assert machine.certificate_.ok


def test_without_intrinsic_penalty_they_are_the_machines_on_labelled_rows():
    new = X + 0.05
    ridge = LaplacianRidge(0.1, KERNEL, intrinsic_penalty=0).fit(X, T)
    plain = KernelRidge(0.1, KERNEL).fit(X[KNOWN], T[KNOWN])
    assert np.allclose(ridge.predict(new), plain.predict(new), rtol=1e-12, atol=1e-12)
    assert np.allclose(ridge.dual_coef_[KNOWN], plain.dual_coef_, rtol=1e-12)
    assert not ridge.dual_coef_[~KNOWN].any()
    svc = LaplacianSVC(KERNEL, 5.0, intrinsic_penalty=0, tol=1e-8).fit(X, Y)
    plain = SVC(KERNEL, 5.0, tol=1e-8).fit(X[KNOWN], Y[KNOWN])
    assert np.allclose(svc.decision_function(new), plain.decision_function(new), atol=1e-6)


def test_svc_is_the_least_of_its_objective():
    L, K = laplacian(), KERNEL(X)
    machine = LaplacianSVC(KERNEL, 2.0, intrinsic_penalty=3.0, tol=1e-9).fit(X, Y)
    signs = 2.0 * MOON[KNOWN] - 1

    def objective(a, b):
        h = K @ a
        slack = np.maximum(0.0, 1 - signs * (h[KNOWN] + b))
        return 0.5 * (a @ h + 3.0 * h @ L @ h) + 2.0 * slack.sum()

    coef = np.zeros(KNOWN.sum())
    coef[machine.machine_.support_] = machine.machine_.dual_coef_
    a = machine._expansion.coef @ coef
    b = machine.machine_.intercept_
    assert np.allclose(K @ a + b, machine.decision_function(X))
    best = objective(a, b)
    # the dual, by another solver: max sum(alpha) - (alpha y)'K~(alpha y) / 2
    Kt = np.linalg.solve(np.eye(len(X)) + 3.0 * K @ L, K)[np.ix_(KNOWN, KNOWN)]
    Q = signs[:, None] * (Kt + Kt.T) / 2 * signs
    found = minimize(
        lambda v: 0.5 * v @ Q @ v - v.sum(),
        np.zeros(len(signs)),
        jac=lambda v: Q @ v - 1,
        bounds=[(0, 2.0)] * len(signs),
        constraints={"type": "eq", "fun": lambda v: v @ signs, "jac": lambda v: signs},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert best == pytest.approx(-found.fun, rel=1e-6)
    assert machine.certificate_.ok
    assert machine.certificate_.quantities.fit_error < 1e-6


def test_two_labels_are_enough_for_two_moons():
    rows, moon = make_moons(200, noise=0.05, random_state=0)
    y = np.full(200, -1)
    for label in (0, 1):
        y[np.flatnonzero(moon == label)[0]] = label
    machine = LaplacianSVC(Gaussian(0.3), 100.0, intrinsic_penalty=10.0).fit(rows, y)
    assert (machine.transduction_ == moon).mean() > 0.95
    assert np.array_equal(machine.predict(rows), machine.transduction_)
    alone = SVC(Gaussian(0.3), 100.0).fit(rows[y >= 0], y[y >= 0])
    assert (alone.predict(rows) == moon).mean() < 0.85


def test_features_rows_and_matrices_give_the_same():
    one = LaplacianRidge(0.1, Linear(), intrinsic_penalty=2.0).fit(X, T)
    assert np.allclose(one.predict(X), one.fit(sparse.csr_array(X), T).predict(X))
    problem = [
        DeformedKernel(gram, laplacian_edges(), 2.0, np.flatnonzero(KNOWN))
        for gram in (
            make_gram(Linear(), X, Need.MATRIX),
            make_gram(Gaussian(1.0) * 0.0 + Linear(), X, Need.MATRIX),
        )
    ]
    first, second = (solve(one).value.matrix for one in problem)
    assert np.allclose(first, second)
    K, options = KERNEL(X), {"intrinsic_penalty": 2.0, "neighbors": None}
    given = LaplacianRidge(0.1, "precomputed", **options).fit(K, T)
    assert given.certificate_.ok
    assert np.allclose(
        given.predict(K), LaplacianRidge(0.1, KERNEL, **options).fit(X, T).predict(X)
    )


def laplacian_edges():
    return neighbour_graph(Linear(), X, 5).csr


def test_many_classes_and_many_targets():
    rows, kind = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 10 == 0, kind, -1)
    for multiclass in ("ovo", "ovr"):
        machine = LaplacianSVC(C=10.0, intrinsic_penalty=10.0, multiclass=multiclass).fit(rows, y)
        assert (machine.predict(rows) == kind).mean() > 0.9
        assert machine.certificate_.ok
    targets = np.where((y >= 0)[:, None], rows[:, :2], np.nan)
    both = LaplacianRidge(0.1).fit(rows, targets)
    one = LaplacianRidge(0.1).fit(rows, targets[:, 0])
    assert np.allclose(both.predict(rows)[:, 0], one.predict(rows))


def test_wrong_deformations_are_not_certified():
    gram = make_gram(KERNEL, X, Need.MATRIX)
    problem = DeformedKernel(gram, neighbour_graph(KERNEL, X, 5).csr, 2.0, np.flatnonzero(KNOWN))
    value = solve(problem).value
    assert certify(problem, value).ok
    moved = value.matrix.copy()
    moved[0, 0] += 1e-6
    assert not certify(problem, Deformation(value.transfer, moved)).ok
    assert not certify(problem, Deformation(value.transfer * (1 + 1e-6), value.matrix)).ok
    assert not certify(problem, Deformation(value.transfer[:, :1], value.matrix)).ok


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (LaplacianSVC(C=0.0), "LaplacianSVC: C=0.0"),
        (LaplacianSVC(intrinsic_penalty=-1.0), "intrinsic_penalty"),
        (LaplacianSVC(multiclass="all"), "multiclass"),
        (LaplacianRidge(0.0), "LaplacianRidge: penalty=0.0"),
        (LaplacianRidge(bias=1), "bias"),
        (LaplacianRidge(neighbors=-1), "neighbors"),
    ],
)
def test_refusals(machine, message):
    with pytest.raises(ParameterError, match=message):
        machine.fit(X, Y if isinstance(machine, LaplacianSVC) else T)


def test_partly_known_targets_are_refused():
    targets = np.where(KNOWN[:, None], X, np.nan)
    targets[np.flatnonzero(KNOWN)[0], 1] = np.nan
    with pytest.raises(ValueError, match="has some targets and lacks others"):
        LaplacianRidge().fit(X, targets)


def test_limits_and_numbers_beyond_rounding():
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        machine = LaplacianSVC(KERNEL, 100.0, max_iter=1).fit(X, MOON)
    assert not machine.solution_.status.ok
    huge = X * 1e-12 + 1e8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = LaplacianRidge(kernel=Polynomial(4, 1.0)).fit(huge, T)
    assert machine.certificate_.ok or not machine.solution_.status.ok
