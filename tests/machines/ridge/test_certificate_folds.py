"""Certificates of ridge paths over folds see every kind of wrong answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer.certificates import certify
from mercer.gram import Need, make_gram
from mercer.gram.build import matrix_gram
from mercer.kernels import Gaussian, Linear
from mercer.problems import FoldedRidgePath
from mercer.solvers import solve

PENALTIES = np.array([1e-2, 0.1, 1.0])


def asked(kind="matrix", bias=True):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y, s = X[:, 0] + X[:, 1] ** 2 + 3.0, rng.uniform(0.5, 2.0, 60)
    s[7] = 0.0
    kernel = Linear() if kind == "features" else Gaussian(1.0)
    gram = make_gram(kernel, X, Need.MATRIX)
    folds = None if kind == "alone" else (np.arange(40), np.arange(10, 60))
    problem = FoldedRidgePath(gram, y, s, PENALTIES, bias, folds)
    return problem, solve(problem).value


def spoilt(value, name, where, by):
    part = np.array(getattr(value, name))
    part[where] += by
    return replace(value, **{name: part})


@pytest.mark.parametrize("kind", ["matrix", "features", "alone"])
@pytest.mark.parametrize("bias", [True, False])
def test_right_answers_are_certified(kind, bias):
    problem, value = asked(kind, bias)
    certificate = certify(problem, value)
    assert certificate.ok, str(certificate)
    assert certificate.quantities.unmet == 0 and "of the largest target" in str(certificate)


@pytest.mark.parametrize("kind", ["matrix", "features", "alone"])
def test_wrong_values_are_seen(kind):
    problem, value = asked(kind)
    certificate = certify(problem, spoilt(value, "values", (0, 50, 1), 1e-3))
    assert not certificate.ok and certificate.quantities.mismatch > 1e-4


@pytest.mark.parametrize(("kind", "name"), [("matrix", "coef"), ("features", "weights")])
def test_wrong_coefficients_are_seen(kind, name):
    problem, value = asked(kind)
    certificate = certify(problem, spoilt(value, name, (1, 2 if kind == "features" else 20, 0), 1))
    assert not certificate.ok and certificate.quantities.relative_residual > 1e-4


@pytest.mark.parametrize("kind", ["matrix", "features"])
def test_a_wrong_bias_is_seen(kind):
    problem, value = asked(kind)
    certificate = certify(problem, spoilt(value, "intercept", (1, 0), 1e-2))
    assert not certificate.ok
    if kind == "features":
        assert certificate.quantities.bias_condition > 1e-4


def test_rows_left_out_have_no_coefficient():
    problem, value = asked()
    certificate = certify(problem, spoilt(value, "coef", (0, 50, 0), 1e-9))
    assert certificate.quantities.relative_residual == np.inf and not certificate.ok
    certificate = certify(problem, spoilt(value, "coef", (0, 7, 0), 1e-9))  # without weight
    assert not certificate.ok


@pytest.mark.parametrize("kind", ["matrix", "features", "alone"])
def test_fits_that_are_not_met_are_counted_and_not_judged(kind):
    problem, value = asked(kind)
    met, values = value.met.copy(), value.values.copy()
    met[0, 1], values[0, :, 1] = False, np.nan
    certificate = certify(problem, replace(value, met=met, values=values))
    assert certificate.quantities.unmet == 1 and not certificate.ok
    assert certificate.quantities.mismatch < 1e-6


def test_a_matrix_that_is_not_semidefinite_is_not_certified():
    problem, _ = asked()
    K = np.array(problem.gram.dense()) - 0.005 * np.eye(60)
    indefinite = replace(problem, gram=matrix_gram(K), penalties=np.array([0.5, 1.0]))
    found = solve(indefinite)
    certificate = certify(indefinite, found.value)
    assert found.value.met.all() and not certificate.ok
    assert "not positive semidefinite" in certificate.statement
