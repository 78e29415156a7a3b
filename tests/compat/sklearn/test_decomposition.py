"""The drop-in `KernelPCA` equals scikit-learn's: signature, attributes, values, signs, errors."""

import inspect
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Status
from mercer.compat.sklearn import KernelPCA
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X, Z = rng.standard_normal((60, 4)), rng.standard_normal((9, 4))


def test_a_matrix_that_is_symmetric_once_centred():
    A = np.random.default_rng(0).normal(size=(30, 4))
    K, shift = A @ A.T, np.linspace(0.0, 3.0, 30)
    plain = KernelPCA(3, kernel="precomputed").fit(K)
    moved = KernelPCA(3, kernel="precomputed").fit(K + shift)
    np.testing.assert_allclose(moved.eigenvalues_, plain.eigenvalues_)
    np.testing.assert_allclose(moved.transform(K + shift), plain.transform(K), atol=1e-8)
    with pytest.raises(ValueError, match="not symmetric"):
        KernelPCA(3, kernel="precomputed").fit(K + np.random.default_rng(1).normal(size=(30, 30)))


@parametrize_with_checks(
    [
        KernelPCA(),
        KernelPCA(2, kernel="rbf", fit_inverse_transform=True),
        KernelPCA(1, kernel="cosine"),
        KernelPCA(kernel="precomputed"),
        KernelPCA(3, kernel="poly", degree=2, eigen_solver="dense", remove_zero_eig=True),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_signature_is_the_same():
    ours, theirs = (
        {name: p.default for name, p in inspect.signature(kind).parameters.items()}
        for kind in (KernelPCA, decomposition.KernelPCA)
    )
    assert ours == theirs
    assert list(ours) == list(theirs) or set(ours) == set(theirs)


def distance(x, y, power=2):
    return np.exp(-(np.abs(x - y) ** power).sum())


def named(option):
    name, value = option
    return f"{name}={getattr(value, '__name__', value)}"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": 0.3, "n_components": 5, "fit_inverse_transform": True},
        {"kernel": "poly", "degree": 2, "n_components": 20},
        {"kernel": "poly", "degree": 2.0, "coef0": 0.5},
        {"kernel": "sigmoid", "gamma": 0.01, "n_components": 3},
        {"kernel": "cosine", "n_components": 3},
        {"kernel": distance, "n_components": 4, "kernel_params": {"power": 1}},
        {"n_components": 10},
        {"n_components": 10, "remove_zero_eig": True},
        {"n_components": 3, "fit_inverse_transform": True, "alpha": 0.01},
        {"kernel": "rbf", "eigen_solver": "dense", "n_components": 60},
        {"kernel": "rbf", "eigen_solver": "arpack", "n_components": 3, "max_iter": 50},
        {"kernel": "rbf", "n_components": 100},
    ],
    ids=lambda options: "-".join(map(named, options.items())) or "defaults",
)
def test_values_are_the_same(options):
    ours, theirs = KernelPCA(**options), decomposition.KernelPCA(**options)
    A, B = ours.fit_transform(X), theirs.fit_transform(X)
    assert A.shape == B.shape
    np.testing.assert_allclose(A, B, atol=1e-8)
    np.testing.assert_allclose(ours.transform(Z), theirs.transform(Z), atol=1e-8)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-9)
    used = theirs.eigenvalues_ > 0
    np.testing.assert_allclose(
        ours.eigenvectors_[:, used], theirs.eigenvectors_[:, used], atol=1e-6
    )
    assert ours.gamma_ == theirs.gamma_
    np.testing.assert_array_equal(ours.X_fit_, theirs.X_fit_)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    if options.get("fit_inverse_transform"):
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-8)
        np.testing.assert_allclose(ours.X_transformed_fit_, theirs.X_transformed_fit_, atol=1e-8)
        np.testing.assert_allclose(
            ours.inverse_transform(A), theirs.inverse_transform(B), atol=1e-8
        )
    assert ours.certificate_.ok
    assert ours.solution_.status.ok


def test_other_rows_and_refusals():
    K = np.exp(-0.25 * np.square(X[:, None] - X[None]).sum(axis=2))
    by_matrix = KernelPCA(3, kernel="precomputed").fit(K)
    by_rows = KernelPCA(3, kernel="rbf").fit(X)
    np.testing.assert_allclose(by_matrix.transform(K), by_rows.transform(X), atol=1e-10)
    by_kernel = KernelPCA(3, kernel=Gaussian(np.sqrt(2.0))).fit(X)
    np.testing.assert_allclose(by_kernel.transform(Z), by_rows.transform(Z), atol=1e-10)
    thin = sparse.csr_array(np.where(X > 0, X, 0))
    csr = KernelPCA(3, kernel="rbf", fit_inverse_transform=True).fit(thin)
    dense = KernelPCA(3, kernel="rbf", fit_inverse_transform=True).fit(thin.toarray())
    np.testing.assert_allclose(csr.dual_coef_, dense.dual_coef_, atol=1e-8)
    assert not hasattr(csr.set_params(fit_inverse_transform=False).fit(thin), "dual_coef_")
    with pytest.raises(NotFittedError, match="fit_inverse_transform"):
        by_rows.inverse_transform(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="Cannot fit_inverse_transform"):
        KernelPCA(kernel="precomputed", fit_inverse_transform=True).fit(K)
    for wrong in (
        {"kernel": "best"},
        {"kernel": 3},
        {"gamma": -1.0},
        {"degree": -1},
        {"n_components": 0},
        {"eigen_solver": "qr"},
        {"iterated_power": -1},
        {"iterated_power": "many"},
        {"max_iter": 0},
        {"alpha": -1.0},
        {"copy_X": "no"},
        {"random_state": "x"},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            KernelPCA(**wrong).fit(X)
    repeated = KernelPCA(2, kernel="rbf", random_state=1).fit_transform(X)
    np.testing.assert_allclose(repeated, by_rows.transform(X)[:, :2], atol=1e-8)


def test_training_rows_are_copied_unless_told_otherwise():
    X = np.random.default_rng(0).standard_normal((20, 3))
    kept, shared = (
        KernelPCA(kernel="linear").fit(X),
        KernelPCA(kernel="linear", copy_X=False).fit(X),
    )
    assert not np.shares_memory(kept.X_fit_, X)
    assert np.shares_memory(shared.X_fit_, X)


@pytest.mark.filterwarnings("ignore:PCA. the centred kernel matrix has negative")
def test_a_dense_solver_that_was_asked_for_is_no_wish_for_less():
    # of a sigmoid that is flat here all variances are rounding
    X = np.random.default_rng(271423).standard_normal((41, 4))
    X[:, 0] = 7.0
    with pytest.warns(ConvergenceWarning, match="not certified"):
        machine = KernelPCA(kernel="sigmoid", coef0=1.0, eigen_solver="dense").fit(X)
    assert machine.solution_.status is Status.INACCURATE


@pytest.mark.parametrize("copy_X", [True, False])
def test_copies_answer_the_same_bits(copy_X):
    rows = np.random.default_rng(0).uniform(0, 1, (45, 5))
    machine = KernelPCA(2, kernel="poly", degree=2.5, copy_X=copy_X).fit(rows)
    copy = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(machine.transform(rows), copy.transform(rows))
