"""The drop-in SpectralClustering against scikit-learn's own."""

import inspect

import numpy as np
import pytest
import sklearn.cluster
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_circles
from sklearn.manifold import spectral_embedding
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from mercer import ParameterError
from mercer.compat.sklearn import SpectralClustering

Theirs = sklearn.cluster.SpectralClustering


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small matrices on busy cores: threads would mostly wait for one another."""
    with threadpool_limits(1):
        yield


def blobs(n=150, seed=0):
    return make_blobs(n, 2, centers=6 * np.eye(3, 2) + 4, cluster_std=0.6, random_state=seed)


def same(a, b):
    return adjusted_rand_score(a, b) == 1.0


def falling(x, y, scale):
    return np.exp(-np.sum((x - y) ** 2) / scale)


@pytest.mark.filterwarnings("ignore:.*Graph is not fully connected:UserWarning")  # so it is there
@parametrize_with_checks([SpectralClustering(), SpectralClustering(affinity="nearest_neighbors")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_signature_is_theirs():
    ours, theirs = (inspect.signature(c.__init__) for c in (SpectralClustering, Theirs))
    assert [(p.name, p.default, p.kind) for p in ours.parameters.values()] == [
        (p.name, p.default, p.kind) for p in theirs.parameters.values()
    ]


@pytest.mark.parametrize("assign", ["kmeans", "discretize", "cluster_qr"])
@pytest.mark.parametrize(
    "params",
    [
        {"gamma": 0.5},
        {"affinity": "laplacian", "gamma": 0.5},
        {"affinity": "poly", "degree": 2, "gamma": 0.2},
        {"affinity": "cosine"},
        {"affinity": "nearest_neighbors", "n_neighbors": 34},
        {"affinity": "rbf", "kernel_params": {"gamma": 0.5}},
        {"n_components": 4, "gamma": 0.3},
        {"affinity": falling, "kernel_params": {"scale": 2.0}},
    ],
    ids=lambda p: "-".join(p) + str(p.get("affinity", ""))[:12],
)
def test_clusters_and_affinities_are_theirs(params, assign):
    X, _ = blobs(90)
    options = {"n_clusters": 3, "assign_labels": assign, "random_state": 0, **params}
    ours, theirs = SpectralClustering(**options).fit(X), Theirs(**options).fit(X)
    if params.get("affinity") != "cosine":  # where there are no three clusters to agree on
        assert same(ours.labels_, theirs.labels_)
    assert ours.labels_.dtype == theirs.labels_.dtype
    gap = abs(ours.affinity_matrix_ - theirs.affinity_matrix_).max()
    assert gap < 1e-10 * abs(theirs.affinity_matrix_).max()
    assert sparse.issparse(ours.affinity_matrix_) == sparse.issparse(theirs.affinity_matrix_)


def test_the_embedding_is_theirs():
    X, _ = blobs()
    machine = SpectralClustering(3, gamma=0.2, eigen_tol=0.0, random_state=0).fit(X)
    theirs = spectral_embedding(
        machine.affinity_matrix_, n_components=3, drop_first=False, random_state=0
    )
    ours = machine.machine_.embedding_
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-6)


def test_given_affinities_dense_sparse_and_uneven():
    X, y = blobs(90)
    K = np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(axis=2))
    for matrix in (K, sparse.csr_matrix(np.where(K > 1e-3, K, 0.0)), sparse.coo_array(K)):
        machine = SpectralClustering(3, affinity="precomputed", random_state=0).fit(matrix)
        assert same(machine.labels_, y)
    K[0, 1] += 0.1
    with pytest.warns(UserWarning, match="not symmetric"):
        SpectralClustering(3, affinity="precomputed", random_state=0).fit(K)


def test_a_graph_of_distances():
    X, _ = blobs()
    graph = NearestNeighbors(n_neighbors=70).fit(X).kneighbors_graph(X, mode="distance")
    options = {"affinity": "precomputed_nearest_neighbors", "n_neighbors": 60, "random_state": 0}
    ours, theirs = (c(3, **options).fit(graph) for c in (SpectralClustering, Theirs))
    assert same(ours.labels_, theirs.labels_)
    assert abs(ours.affinity_matrix_ - theirs.affinity_matrix_).max() < 1e-12


def test_certificate_and_solution_come_on_top():
    X, y = make_circles(200, factor=0.4, noise=0.03, random_state=0)
    machine = SpectralClustering(2, gamma=50.0, random_state=0)
    assert same(machine.fit_predict(X), y)
    assert machine.certificate_.ok
    assert machine.solution_.status.ok
    assert machine.n_features_in_ == 2
    with pytest.raises(AttributeError):
        _ = SpectralClustering().certificate_


def test_a_disconnected_graph_needs_no_luck():
    W = np.kron(np.eye(3), np.ones((5, 5)))
    with pytest.warns(UserWarning, match="3 components, and no cluster crosses a gap"):
        labels = SpectralClustering(3, affinity="precomputed").fit_predict(W)
    assert same(labels, np.repeat([0, 1, 2], 5))


@pytest.mark.parametrize(
    "params",
    [
        *({"n_clusters": 0}, {"eigen_solver": "qr"}, {"n_components": 0}, {"gamma": -1.0}),
        *({"affinity": "none"}, {"n_neighbors": 0}, {"eigen_tol": -1.0}, {"degree": -1}),
        *({"assign_labels": "sign"}, {"kernel_params": 3}, {"n_jobs": "two"}, {"n_init": 0}),
        *({"verbose": -1}, {"random_state": "x"}, {"coef0": None}),
        {"affinity": "nearest_neighbors", "n_neighbors": 1},
    ],
    ids=str,
)
def test_parameters_are_refused(params):
    with pytest.raises(ValueError, match=next(reversed(params))):
        SpectralClustering(**params).fit(blobs(30)[0])


def test_errors_name_parameters_that_there_are():
    X, _ = blobs(20)
    with pytest.raises(ParameterError, match=r"n_neighbors=50 must be at most .* n_samples=20"):
        SpectralClustering(2, affinity="nearest_neighbors", n_neighbors=50).fit(X)
    with pytest.raises(ValueError, match="in place of affinity='poly'"):
        SpectralClustering(2, affinity="poly").fit(X - X.mean(axis=0))


def test_what_is_accepted_without_meaning_anything_here():
    X, y = blobs(90)
    machine = SpectralClustering(
        3, eigen_solver="arpack", n_jobs=2, verbose=True, gamma=0.3, random_state=0
    )
    assert same(clone(machine).fit(X).labels_, y)
