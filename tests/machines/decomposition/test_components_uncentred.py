"""PCA about the origin: K itself is decomposed, against singular values of the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

from mercer import PCA, ParameterError
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed
from mercer.solvers import Lanczos

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 4)) @ rng.standard_normal((4, 4)) + 2.0
Z = rng.standard_normal((15, 4)) + 2.0


def up_to_sign(found, expected):
    return expected * np.sign((found * expected).sum(axis=0))


@pytest.mark.parametrize("width", [3, 4, 60], ids=["tall", "square", "wide"])
def test_linear_is_the_singular_value_decomposition_of_the_rows(width):
    rows = rng.standard_normal((40, width)) + 1.0
    machine = PCA(3, center=False).fit(rows)
    U, sigma, Vt = np.linalg.svd(rows, full_matrices=False)
    assert_allclose(machine.eigenvalues_, sigma[:3] ** 2, rtol=1e-10)
    assert_allclose(machine.explained_variance_, sigma[:3] ** 2 / 40, rtol=1e-10)
    assert_allclose(machine.explained_variance_ratio_, sigma[:3] ** 2 / (rows**2).sum(), rtol=1e-10)
    scores = machine.transform(rows)
    assert_allclose(scores, up_to_sign(scores, U[:, :3] * sigma[:3]), atol=1e-9)
    directions = machine.components_
    assert_allclose(directions, up_to_sign(directions.T, Vt[:3].T).T, atol=1e-9)
    assert not machine.mean_.any()
    assert_allclose(PCA(3, center=False).fit_transform(rows), scores, atol=1e-9)
    assert machine.certificate_.ok


def test_the_same_as_a_truncated_decomposition_elsewhere():
    theirs = TruncatedSVD(2, algorithm="arpack", random_state=0).fit(X)
    ours = PCA(2, center=False).fit(X)
    assert_allclose(
        ours.transform(Z), up_to_sign(ours.transform(Z), theirs.transform(Z)), atol=1e-9
    )


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Polynomial(2)], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_decompose_the_matrix_itself(kernel, weighted):
    s = rng.integers(1, 4, 40).astype(float) if weighted else np.ones(40)
    machine = PCA(3, kernel, center=False).fit(X, sample_weight=s)
    root = np.sqrt(s)
    values, U = np.linalg.eigh(root[:, None] * kernel(X) * root)
    values, U = values[::-1][:3], U[:, ::-1][:, :3]
    assert_allclose(machine.eigenvalues_, values, rtol=1e-9)
    assert_allclose(machine.explained_variance_ratio_, values / (s @ kernel.diag(X)), rtol=1e-9)
    scores = machine.transform(Z)
    expected = kernel(Z, X) @ (root[:, None] * U / np.sqrt(values))
    assert_allclose(scores, up_to_sign(scores, expected), atol=1e-8)
    left = kernel.diag(Z) - np.square(scores).sum(axis=1)
    assert_allclose(machine.squared_distance(Z), left, atol=1e-8)
    assert machine.certificate_.ok


def test_one_more_component_than_with_centring():
    rows = rng.standard_normal((6, 20))
    assert PCA().fit(rows).n_components_ == 5
    assert PCA(center=False).fit(rows).n_components_ == 6
    kernel = Gaussian(1.0)
    assert PCA(kernel=kernel, center=False).fit(rows).n_components_ == 6


def test_the_same_directions_where_the_mean_is_zero():
    rows = X - X.mean(axis=0)
    one, other = PCA(2).fit(rows), PCA(2, center=False).fit(rows)
    assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-10)
    assert_allclose(one.transform(Z), other.transform(Z), atol=1e-10)


def test_ways_of_holding_rows_agree():
    kernel = Gaussian(2.0)
    plain = PCA(2, kernel, center=False).fit(X)
    given = PCA(2, Precomputed(), center=False).fit(kernel(X))
    assert_allclose(given.transform(kernel(Z, X)), plain.transform(Z), atol=1e-9)
    many = rng.standard_normal((300, 4))
    iterated = PCA(2, kernel, center=False, solver=Lanczos(tol=1e-12)).fit(many)
    direct = PCA(2, kernel, center=False).fit(many)
    assert_allclose(iterated.transform(Z), direct.transform(Z), atol=1e-7)
    thin = PCA(2, center=False).fit(sparse.csr_array(X))
    assert_allclose(thin.transform(Z), PCA(2, center=False).fit(X).transform(Z), atol=1e-9)
    far = thin.squared_distance(sparse.csr_array(Z))
    assert_allclose(far, PCA(2, center=False).fit(X).squared_distance(Z), atol=1e-9)


def test_whitened_scores_have_mean_square_one():
    scores = PCA(2, Gaussian(2.0), center=False, whiten=True).fit(X).transform(X)
    assert_allclose(scores.T @ scores / len(X), np.eye(2), atol=1e-9)


def test_rows_come_back():
    linear = PCA(center=False).fit(X)
    assert_allclose(linear.inverse_transform(linear.transform(Z)), Z, atol=1e-9)
    machine = PCA(12, Gaussian(2.0), center=False).fit(X)
    found = machine.preimages(machine.transform(X))
    target = machine.kernel_.diag(X) - machine.squared_distance(X)  # squared lengths of projections
    K = machine.kernel_(found.points, X)
    inner = np.einsum("ij,ij->i", machine.transform(X) @ machine.dual_coef_.T, K)
    expected = machine.kernel_.diag(found.points) - 2 * inner + target
    assert_allclose(found.squared_distance, expected, atol=1e-8)
    assert found.squared_distance.max() < 0.3
    learned = PCA(4, Polynomial(2), center=False, preimage="learned").fit(X)
    assert learned.inverse_transform(learned.transform(Z)).shape == Z.shape


def test_zero_rows_and_refusals():
    zero = PCA(2, center=False).fit(np.zeros((5, 3)))
    assert not zero.eigenvalues_.any()
    assert zero.certificate_.ok
    assert "rows are zero" in zero.certificate_.statement
    constant = PCA(2, center=False).fit(np.ones((5, 3)))
    assert_allclose(constant.eigenvalues_, [15.0, 0.0], atol=1e-12)
    with pytest.raises(ParameterError, match="center='no'"):
        PCA(center="no").fit(X)
    assert PCA(1, Linear(), center=False).fit(X + 1e8).certificate_.ok
