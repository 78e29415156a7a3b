"""The drop-in KernelRidge against scikit-learn's."""

import inspect
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn import kernel_ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.compat.sklearn import KernelRidge
from mercer.kernels import Gaussian

THEIRS = kernel_ridge.KernelRidge
rng = np.random.default_rng(0)
X, Z = rng.uniform(size=(60, 4)), rng.uniform(size=(20, 4))
Y = np.column_stack([np.sin(X @ np.arange(4.0)), X[:, 0]])


@parametrize_with_checks([KernelRidge(), KernelRidge(kernel="rbf")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_signature_is_theirs():
    ours, theirs = (inspect.signature(c).parameters.values() for c in (KernelRidge, THEIRS))
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs
    ]


@pytest.mark.parametrize("gamma", [None, 0.7])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "polynomial", "laplacian", "cosine"])
def test_values_are_the_same(kernel, gamma):
    weights = rng.uniform(size=60)
    for y, alpha in ((Y, [0.1, 1.0]), (Y, 0.5), (Y[:, 0], 0.5)):
        theirs, ours = (
            machine(alpha, kernel=kernel, gamma=gamma).fit(X, y, sample_weight=weights)
            for machine in (THEIRS, KernelRidge)
        )
        assert_allclose(ours.predict(Z), theirs.predict(Z), atol=1e-8)
        assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-7)
        assert ours.dual_coef_.shape == theirs.dual_coef_.shape
        assert ours.certificate_.ok


def overlap(x, y, power=1.0):
    return np.minimum(x, y).sum() ** power


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "chi2", "gamma": 0.5},
        {"kernel": "poly", "degree": 2.5},
        {"kernel": overlap},
        {"kernel": overlap, "kernel_params": {"power": 2.0}},
    ],
)
def test_other_kernels_are_scikit_learns(options):
    theirs, ours = (machine(0.3, **options).fit(X, Y) for machine in (THEIRS, KernelRidge))
    assert_allclose(ours.predict(Z), theirs.predict(Z), atol=1e-8)


def test_kernels_of_mercer_and_sparse_rows():
    ours = KernelRidge(0.1, kernel=Gaussian(0.5)).fit(X, Y)
    theirs = THEIRS(0.1, kernel="rbf", gamma=2.0).fit(X, Y)
    assert_allclose(ours.predict(Z), theirs.predict(Z), atol=1e-10)
    for kind in (sparse.csr_array, sparse.csc_matrix):
        again = KernelRidge(0.1, kernel="rbf", gamma=2.0).fit(kind(X), Y)
        assert_allclose(again.predict(kind(Z)), theirs.predict(Z), atol=1e-10)


@pytest.mark.parametrize(
    "options",
    [{"alpha": -1.0}, {"alpha": "a"}, {"kernel": "none"}, {"gamma": -1.0}, {"kernel_params": 3}],
)
def test_refusals_name_the_parameter(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        KernelRidge(**options).fit(X, Y)


@pytest.mark.parametrize("options", [{"degree": 1e-300}, {"kernel": "poly", "degree": 2.5}])
def test_copies_answer_the_same_bits(options):
    """Also to the very array of the fit, and whatever becomes of it."""
    rows = np.random.default_rng(0).uniform(0, 1, (45, 5))
    machine = KernelRidge(**options).fit(rows, rows[:, 0])
    copy = pickle.loads(pickle.dumps(machine))
    found = machine.predict(rows)
    np.testing.assert_array_equal(found, copy.predict(rows))
    asked = rows.copy()
    rows[:] = 0
    np.testing.assert_array_equal(found, machine.predict(asked))
