"""Classical scaling: against principal components, known places, and formulas by hand."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform

import mercer
from mercer import MDS, PCA, ParameterError

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5]) + 5.0
Z = rng.standard_normal((9, 4)) + 5.0
# driving times of a ring road: no places in a plane have these distances
STEPS = np.abs(np.subtract.outer(np.arange(8.0), np.arange(8.0)))
RING = np.minimum(STEPS, 8.0 - STEPS)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_euclidean_distances_give_principal_components(k):
    machine, pca = MDS(k).fit(X), PCA(k).fit(X)
    assert_allclose(machine.embedding_, pca.transform(X), atol=1e-9)
    assert_allclose(machine.eigenvalues_, pca.eigenvalues_, rtol=1e-9)
    assert_allclose(machine.transform(Z), pca.transform(Z), atol=1e-9)
    assert_allclose(machine.explained_, pca.explained_variance_ratio_.sum(), rtol=1e-9)
    assert machine.negative_share_ == 0
    given = MDS(k, metric="precomputed").fit(cdist(X, X))
    assert_allclose(given.embedding_, machine.embedding_, atol=1e-8)
    assert_allclose(given.transform(cdist(Z, X)), machine.transform(Z), atol=1e-8)
    assert machine.certificate_.ok
    assert machine.solution_.status.ok
    if k == 4:
        assert_allclose(pdist(machine.embedding_), pdist(X), atol=1e-9)
        assert machine.stress_ < 1e-9


def test_the_matrix_by_hand_and_gowers_formula():
    n = len(RING)
    H = np.eye(n) - 1 / n
    B = -H @ RING**2 @ H / 2
    values = np.linalg.eigvalsh(B)
    machine = MDS(2, metric="precomputed").fit(RING)
    assert_allclose(machine.eigenvalues_, values[::-1][:2], atol=1e-9)
    P = machine.embedding_
    assert_allclose(P.T @ P, np.diag(machine.eigenvalues_), atol=1e-9)
    assert_allclose(B @ P, P * machine.eigenvalues_, atol=1e-8)
    sizes = np.abs(values)
    assert_allclose(machine.negative_share_, sizes[values < -1e-9].sum() / sizes.sum(), rtol=1e-9)
    assert_allclose(machine.explained_, values[::-1][:2].sum() / sizes.sum(), rtol=1e-9)
    near = squareform(pdist(P))
    stress = np.sqrt(((near - RING) ** 2).sum() / (RING**2).sum())
    assert_allclose(machine.stress_, stress, rtol=1e-9)
    new = rng.uniform(0.5, 4.0, (5, n))
    expected = 0.5 * (np.diag(B) - new**2) @ P / machine.eigenvalues_
    assert_allclose(machine.transform(new), expected, atol=1e-9)
    assert_allclose(machine.transform(RING), P, atol=1e-9)
    assert "negative" in machine.certificate_.statement


def test_no_other_places_have_less_strain():
    machine = MDS(2, metric="precomputed").fit(RING)
    H = np.eye(8) - 1 / 8
    B = -H @ RING**2 @ H / 2

    def strain(P):
        return np.square(B - P @ P.T).sum()

    best = strain(machine.embedding_)
    for _ in range(200):
        assert strain(machine.embedding_ + 0.1 * rng.standard_normal((8, 2))) >= best - 1e-9


@pytest.mark.parametrize("metric", ["cityblock", "cosine", lambda a, b: float(np.abs(a - b).max())])
def test_metrics_and_functions(metric):
    machine = MDS(1, metric=metric).fit(X)
    given = MDS(1, metric="precomputed").fit(cdist(X, X, metric))
    assert_allclose(machine.embedding_, given.embedding_, atol=1e-8)
    assert_allclose(machine.transform(Z), given.transform(cdist(Z, X, metric)), atol=1e-8)


def test_weights_are_repetition_and_sparse_rows_are_taken():
    times = rng.integers(0, 3, 40)
    again = np.repeat(np.arange(40), times)
    weighted, repeated = MDS(2).fit(X, sample_weight=times), MDS(2).fit(X[again])
    assert_allclose(weighted.embedding_[again], repeated.embedding_, atol=1e-8)
    assert_allclose(weighted.transform(Z), repeated.transform(Z), atol=1e-8)
    assert_allclose(weighted.stress_, repeated.stress_, rtol=1e-8)
    assert_allclose(weighted.embedding_[times == 0], repeated.transform(X[times == 0]), atol=1e-8)
    thin = MDS(2).fit(sparse.csr_array(X))
    assert_allclose(thin.transform(sparse.csr_array(Z)), MDS(2).fit(X).transform(Z), atol=1e-9)


def test_hostile_scales_copies_and_one_row():
    for factor in (1e-140, 1e140):
        scaled = MDS(2).fit(X * factor)
        assert_allclose(scaled.embedding_ / factor, MDS(2).fit(X).embedding_, atol=1e-8)
        assert scaled.certificate_.ok
    assert_allclose(MDS(2).fit(X + 1e8).embedding_, MDS(2).fit(X).embedding_, atol=1e-6)
    same = MDS(2).fit(np.ones((5, 3)))
    assert not same.embedding_.any()
    assert same.certificate_.ok
    one = MDS(1).fit([[1.0, 2.0]])
    assert one.embedding_.tolist() == [[0.0]]
    line = MDS(3).fit(np.arange(5.0)[:, None])
    assert not line.embedding_[:, 1:].any()
    copies = MDS(2).fit(np.repeat(X[:3], 4, axis=0))
    assert copies.certificate_.ok


def test_far_from_euclidean_is_warned_about():
    D = np.ones((6, 6)) - np.eye(6)
    D[:3, :3] = 3.0 * (1 - np.eye(3))
    D[0, 3:] = D[3:, 0] = 0.2
    with pytest.warns(UserWarning, match="far from Euclidean"):
        machine = MDS(5, metric="precomputed").fit(D)
    assert machine.negative_share_ > 0.01


def test_refusals():
    D = cdist(X, X)
    with pytest.raises(ValueError, match="square matrix"):
        MDS(metric="precomputed").fit(D[:, :5])
    with pytest.raises(ValueError, match="must be symmetric"):
        MDS(metric="precomputed").fit(D + np.triu(np.ones_like(D), 1))
    with pytest.raises(ValueError, match="from itself"):
        MDS(metric="precomputed").fit(D + np.eye(40))
    with pytest.raises(ValueError, match=r"Negative values in data: .* rows 0 and 1"):
        MDS(metric="precomputed").fit(-D)
    with pytest.raises(ParameterError, match="metric='far' must be 'precomputed'"):
        MDS(metric="far").fit(X)
    with pytest.raises(ParameterError, match="n_components=50 must be at most"):
        MDS(50).fit(X)
    with pytest.raises(ValueError, match="not finite: the dissimilarity of rows 0 and 40"):
        MDS(metric="cosine").fit(np.vstack([X, np.zeros(4)]))
    with pytest.raises(ValueError, match="range of float64"):
        MDS().fit(X * 1e160)
    with pytest.raises(ValueError, match="range of float64"):
        MDS().fit(X * 1e-170)
    with pytest.raises(TypeError, match="rows must be numbers"):
        MDS().fit(["ab", "ba"])
    with pytest.raises(ValueError, match="expecting 40 features"):
        MDS(metric="precomputed").fit(D).transform(D[:, :7])


def test_files_and_pickles(tmp_path):
    machine = MDS(2).fit(X)
    again = pickle.loads(pickle.dumps(machine))
    assert_allclose(again.transform(Z), machine.transform(Z))
    mercer.save(machine, tmp_path / "places.mercer")
    assert_allclose(mercer.load(tmp_path / "places.mercer").transform(Z), machine.transform(Z))
