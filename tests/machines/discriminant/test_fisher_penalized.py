"""Fisher's discriminant with the penalty on the coefficients, against the matrices of the text."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, sparse

from mercer import FisherDiscriminant, ParameterError, certify
from mercer.gram import PrecomputedGram
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed
from mercer.machines.discriminant.fisher import kernel_features
from mercer.problems import Directions, Discriminant
from mercer.solvers import CholeskyDiscriminant

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(5)
y = rng.integers(0, 3, 40)
X = rng.standard_normal((40, 3)) + 1.5 * rng.standard_normal((3, 3))[y]
Z = rng.standard_normal((15, 3))


def by_the_text(K, y, beta):
    """S_B a = lambda (S_W + beta I) a with the matrices of Welling, eq. 13.16 and 13.17."""
    classes, counts = np.unique(y, return_counts=True)
    kappa = np.stack([K[y == c].mean(axis=0) for c in classes])
    mean = K.mean(axis=0)
    S_B = sum(
        n * (np.outer(k, k) - np.outer(mean, mean)) for n, k in zip(counts, kappa, strict=True)
    )
    S_W = K @ K - sum(n * np.outer(k, k) for n, k in zip(counts, kappa, strict=True))
    values, A = linalg.eigh(S_B, S_W + beta * np.eye(len(K)))
    return values[::-1][:2], A[:, ::-1][:, :2]


def up_to_sign(found, expected):
    return expected * np.sign((found * expected).sum(axis=0))


@pytest.mark.parametrize("penalty", [1e-3, 0.3])
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Linear(), Polynomial(2)], ids=repr)
def test_equals_the_generalised_eigenproblem_of_the_text(kernel, penalty):
    machine = FisherDiscriminant(kernel, penalty=penalty, penalty_on="coefficients").fit(X, y)
    values, A = by_the_text(kernel(X), y, len(y) * machine.penalty_)  # its scatters are sums
    assert_allclose(machine.ratios_, values, rtol=1e-8)
    A = up_to_sign(machine.dual_coef_, A * np.sqrt(len(y)))  # a'(S_W / n + beta I) a = 1
    assert_allclose(machine.dual_coef_, A, atol=1e-7 * np.abs(A).max())
    middle = kernel(X).mean(axis=0) @ A
    found = machine.transform(Z)
    assert_allclose(found, kernel(Z, X) @ A - middle, atol=1e-7 * np.abs(found).max())
    assert machine.certificate_.ok
    assert machine.solution_.status.ok


def test_both_penalties_differ_and_agree_where_there_is_hardly_any():
    both = [
        FisherDiscriminant(Polynomial(2), penalty=1e-9, penalty_on=what).fit(X, y)
        for what in ("function", "coefficients")
    ]
    assert_allclose(both[0].ratios_, both[1].ratios_, rtol=1e-4)
    far = [
        FisherDiscriminant(Polynomial(2), penalty=1.0, penalty_on=what).fit(X, y).ratios_
        for what in ("function", "coefficients")
    ]
    assert abs(far[0] - far[1]).max() > 1e-3 * far[0].max()


def test_given_matrices_sparse_rows_and_another_solver():
    kernel = Gaussian(1.5)
    plain = FisherDiscriminant(kernel, penalty_on="coefficients").fit(X, y)
    others = {
        "given": FisherDiscriminant(Precomputed(), penalty_on="coefficients").fit(kernel(X), y),
        "sparse": FisherDiscriminant(kernel, penalty_on="coefficients").fit(sparse.csr_array(X), y),
        "other": FisherDiscriminant(
            kernel, penalty_on="coefficients", solver=CholeskyDiscriminant()
        ).fit(X, y),
    }
    for name, other in others.items():
        rows = kernel(Z, X) if name == "given" else Z
        expected = up_to_sign(other.transform(rows), plain.transform(Z))
        assert_allclose(other.transform(rows), expected, atol=1e-5 * np.abs(expected).max())
        assert other.certificate_.ok


@pytest.mark.parametrize("rule", ["gaussian", "mahalanobis"])
def test_weights_are_repetition(rule):
    times = rng.integers(0, 4, 40)
    again = np.repeat(np.arange(40), times)
    options = {"penalty_on": "coefficients", "rule": rule, "penalty": 1e-2}
    weighted = FisherDiscriminant(Gaussian(1.5), **options).fit(X, y, sample_weight=times)
    repeated = FisherDiscriminant(Gaussian(1.5), **options).fit(X[again], y[again])
    assert_allclose(weighted.ratios_, repeated.ratios_, rtol=1e-9)
    assert_allclose(weighted.predict_proba(Z), repeated.predict_proba(Z), atol=1e-8)
    coef = np.zeros((40, 2))
    np.add.at(coef, again, repeated.dual_coef_)
    assert_allclose(weighted.dual_coef_, up_to_sign(weighted.dual_coef_, coef), atol=1e-6)


def test_the_certificate_refuses_the_directions_of_the_other_penalty():
    K = Gaussian(1.5)(X)
    q, shares = np.full(40, 1 / 40), np.bincount(y) / 40
    problem = Discriminant(kernel_features(PrecomputedGram(K), np.ones(40)), y, q, shares, 0.1, 2)
    values, A = by_the_text(K, y, 40 * 0.1)
    A = A * np.sqrt(40)
    assert certify(problem, Directions(values, weights=A)).ok
    assert not certify(problem, Directions(values, weights=A * 1.001)).ok
    assert not certify(problem, Directions(values[1:], weights=A[:, 1:])).ok
    other = FisherDiscriminant(Gaussian(1.5), penalty=0.1).fit(X, y)
    assert not certify(problem, Directions(other.ratios_, weights=other.dual_coef_)).ok


def test_refusals():
    with pytest.raises(ParameterError, match="penalty_on='weights' must be 'function'"):
        FisherDiscriminant(penalty_on="weights").fit(X, y)
    with pytest.raises(np.linalg.LinAlgError, match="larger penalty"):
        FisherDiscriminant("gaussian", penalty=0.0, penalty_on="coefficients").fit(X, y)
    with pytest.raises(ValueError, match="fourth powers"):
        FisherDiscriminant(penalty_on="coefficients").fit(X * 1e50, y)
    machine = FisherDiscriminant(penalty_on="coefficients").fit(X, y)
    with pytest.raises(AttributeError, match="penalty_on='function'"):
        machine.scalings_  # noqa: B018
