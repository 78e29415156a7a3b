"""Spectral clustering: cuts relaxed. References: LAPACK, brute force, scikit-learn, geometry."""

import dataclasses
import itertools
import warnings

import numpy as np
import pytest
import sklearn.cluster
from helpers.fake_clock import Ticking
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import eigh, subspace_angles
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import mercer
from mercer import DisconnectedWarning, ParameterError, SpectralClustering, deadline, solve
from mercer.gram import (
    EdgeWeight,
    Need,
    PrecomputedGram,
    ShiftedGram,
    SparseGram,
    components,
    make_gram,
    neighbour_graph,
    scaled,
)
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed, Spectrum
from mercer.machines.clustering.graph_cut_relaxation import NormalizedCut, Plain, localised
from mercer.problems import Eigenproblem
from mercer.solvers import ARPACK, LOBPCG, Status
from mercer.testing import check_solver

pytestmark = pytest.mark.numerics

NORMALIZATIONS = ("normalized", "ratio", "doubly_stochastic", "plain")
CUTS = NORMALIZATIONS[:3]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small matrices on busy cores: threads would mostly wait for one another."""
    with threadpool_limits(1):
        yield


def blobs(n=90, seed=0):
    return make_blobs(
        n, 2, centers=np.array([[0, 0], [6, 0], [0, 6]]), cluster_std=0.6, random_state=seed
    )


def same(a, b):
    return adjusted_rand_score(a, b) == 1.0


def cliques(sizes, bridge=0.0):
    """Return complete graphs in a row, neighbouring ones joined by an edge of this weight."""
    n, W = sum(sizes), np.zeros((sum(sizes),) * 2)
    ends = np.cumsum([0, *sizes])
    for a, b in itertools.pairwise(ends):
        W[a:b, a:b] = 1.0
        if b < n:
            W[b - 1, b] = W[b, b - 1] = bridge
    return W - np.eye(n), np.repeat(np.arange(len(sizes)), sizes)


def path(n):
    ones = np.ones(n - 1)
    return sparse.csr_array(sparse.diags_array([ones, ones], offsets=[-1, 1]))


# --- what it finds -----------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", CUTS)
def test_rings(normalization):
    X, y = make_circles(300, factor=0.4, noise=0.03, random_state=0)
    machine = SpectralClustering(2, Gaussian(0.1), normalization=normalization, random_state=0)
    assert same(machine.fit_predict(X), y)
    assert machine.certificate_.ok


@pytest.mark.parametrize("weights", ["binary", "kernel"])
def test_moons(weights):
    X, y = make_moons(400, noise=0.05, random_state=0)
    options = {"neighbors": 8, "weights": weights, "random_state": 0}
    assert same(SpectralClustering(2, Gaussian(0.3), **options).fit_predict(X), y)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_blobs_and_new_points(normalization):
    X, y = blobs()
    machine = SpectralClustering(3, Gaussian(1.0), normalization=normalization, random_state=0)
    machine.fit(X)
    assert same(machine.labels_, y)
    Z, z = blobs(60, seed=1)
    assert same(np.append(machine.labels_, machine.predict(Z)), np.append(y, z))


def test_plain_takes_any_valid_kernel():
    rng = np.random.default_rng(0)
    directions = np.repeat([[1.0, 0.2], [-0.3, 1.0]], 40, axis=0)
    X = directions * rng.uniform(1, 3, (80, 1)) + 0.05 * rng.standard_normal((80, 2))
    machine = SpectralClustering(2, "linear", normalization="plain", random_state=0).fit(X)
    assert same(machine.labels_, np.repeat([0, 1], 40))
    assert np.isnan(machine.cut_values_.cut)
    with pytest.raises(ValueError, match=r"similarity of rows \d+ and \d+ is -.*'plain'"):
        SpectralClustering(2, "linear").fit(X)


def test_strings():
    texts = ["aaaa", "aaab", "abaa", "zzzz", "zzzy", "yzzz"]
    labels = SpectralClustering(2, Spectrum(2).normalized(), random_state=0).fit_predict(texts)
    assert same(labels, [0, 0, 0, 1, 1, 1])
    machine = SpectralClustering(2, Spectrum(2).normalized(), random_state=0, neighbors=2)
    assert same(machine.fit(texts).labels_, [0, 0, 0, 1, 1, 1])


def test_labels_are_those_of_scikit_learn_on_easy_data():
    X, _ = blobs(300)
    theirs = sklearn.cluster.SpectralClustering(3, gamma=0.5, random_state=0).fit_predict(X)
    assert same(SpectralClustering(3, Gaussian(1.0), random_state=0).fit_predict(X), theirs)
    rivals = sklearn.cluster.SpectralClustering(
        3, affinity="nearest_neighbors", n_neighbors=11, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, about a graph that is not connected
        theirs = rivals.fit_predict(X)
    ours = SpectralClustering(3, neighbors=10, random_state=0).fit(X)
    assert same(ours.labels_, theirs)
    graph = ours.graph_ + sparse.eye_array(300)
    assert abs(graph - rivals.affinity_matrix_).max() < 1e-12


def test_the_sign_rule():
    X, y = make_circles(200, factor=0.4, noise=0.03, random_state=1)
    for normalization in CUTS:
        machine = SpectralClustering(2, Gaussian(0.15), normalization=normalization, assign="sign")
        assert same(machine.fit(X).labels_, y)
        assert (machine.labels_ == (machine.embedding_[:, 1] > 0)).all()
        assert (machine.predict(X) == machine.labels_).all()
    with pytest.raises(ParameterError, match="unless n_clusters=2"):
        SpectralClustering(3, assign="sign").fit(X)


def test_the_eigengap_finds_three_blobs():
    X, y = blobs()
    for normalization in NORMALIZATIONS:
        machine = SpectralClustering(
            "eigengap", Gaussian(1.0), normalization=normalization, random_state=0
        ).fit(X)
        assert machine.n_clusters_ == 3
        assert same(machine.labels_, y)
        assert len(machine.eigenvalues_) == 11
        assert machine.embedding_.shape == (90, 3)
        assert machine.certificate_.ok
    graph = SpectralClustering("eigengap", neighbors=12, max_clusters=6, random_state=0).fit(X)
    assert graph.n_clusters_ == 3


# --- the embedding -----------------------------------------------------------------------------


def reference(K, normalization):
    """Return all eigenvalues, largest first, and vectors of the normalised matrix, by LAPACK."""
    d = K.sum(axis=1)
    if normalization == "normalized":
        K = K / np.sqrt(d[:, None] * d[None, :])
    if normalization == "ratio":
        K = K - np.diag(d) + np.eye(len(K))
    if normalization == "doubly_stochastic":
        x = np.ones(len(K))
        for _ in range(200):
            x = np.sqrt(x / (K @ x))
        K = x[:, None] * K * x[None, :]
    values, vectors = eigh(K)
    return values[::-1], vectors[:, ::-1]


@pytest.mark.parametrize("n", [120, 700])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_the_embedding_is_that_of_lapack(normalization, n):
    X = np.random.default_rng(0).standard_normal((n, 2)) * [2.0, 1.0]
    K = Gaussian(1.0)(X)
    values, vectors = reference(K, normalization)
    machine = SpectralClustering(
        4, Gaussian(1.0), normalization=normalization, tol=1e-9, random_state=0
    ).fit(X)
    np.testing.assert_allclose(machine.eigenvalues_, values[:4], rtol=1e-8, atol=1e-8 * n)
    found = machine.solution_.value.vectors
    assert np.sin(subspace_angles(found, vectors[:, :4])).max() < 1e-6
    assert machine.certificate_.ok
    assert machine.certificate_.quantities.residual < 1e-9


def test_ratio_cut_is_the_laplacian():
    X = np.random.default_rng(0).standard_normal((150, 2))
    K = Gaussian(0.7)(X)
    smallest = np.linalg.eigvalsh(np.diag(K.sum(axis=1)) - K)[:4]
    machine = SpectralClustering(4, Gaussian(0.7), normalization="ratio", tol=1e-10).fit(X)
    np.testing.assert_allclose(1 - machine.eigenvalues_, smallest, atol=1e-7)


def test_doubly_stochastic_rows_sum_to_one():
    X, _ = blobs()
    for options in ({}, {"neighbors": 20}):
        machine = SpectralClustering(
            3, Gaussian(2.0), normalization="doubly_stochastic", random_state=0, **options
        ).fit(X)
        assert machine.certificate_.quantities.row_sum_error < 1e-10
        assert "every row sums to one" in machine.certificate_.statement
    K, x = (
        Gaussian(2.0)(X),
        SpectralClustering(3, Gaussian(2.0), normalization="doubly_stochastic", random_state=0)
        .fit(X)
        .scaling_,
    )
    assert np.abs(x * (K @ x) - 1).max() < 1e-10


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_training_points_are_placed_where_they_were(normalization):
    X = np.random.default_rng(3).standard_normal((200, 2))
    machine = SpectralClustering(
        4, Gaussian(0.8), normalization=normalization, tol=1e-11, random_state=0
    ).fit(X)
    np.testing.assert_allclose(machine.transform(X), machine.embedding_, atol=1e-7)
    assert (machine.predict(X) == machine.labels_).all()
    assert machine.get_feature_names_out().tolist() == [f"spectralclustering{i}" for i in range(4)]


def test_cut_values_are_those_of_the_labels():
    X, _ = blobs()
    machine = SpectralClustering(3, Gaussian(2.0), random_state=0).fit(X)
    K, labels = Gaussian(2.0)(X), machine.labels_
    between = sum(K[labels == a][:, labels != a].sum() for a in range(3)) / 2
    assert machine.cut_values_.cut == pytest.approx(between)
    np.testing.assert_allclose(machine.degrees_, K.sum(axis=1))
    without = SpectralClustering(3, Gaussian(2.0), random_state=0, self_loops=False).fit(X)
    np.testing.assert_allclose(without.degrees_, K.sum(axis=1) - 1)


# --- one machine, many ways in -----------------------------------------------------------------


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_kernel_precomputed_and_sparse_are_one(normalization):
    X, _ = blobs()
    options = {"normalization": normalization, "tol": 1e-10, "random_state": 0}
    K = Gaussian(1.5)(X)
    rows = SpectralClustering(3, Gaussian(1.5), **options).fit(X)
    dense = SpectralClustering(3, Precomputed(), **options).fit(K)
    thin = SpectralClustering(3, "precomputed", **options).fit(sparse.csr_array(K))
    csr = SpectralClustering(3, Gaussian(1.5), **options).fit(sparse.csr_matrix(X))
    for other in (dense, thin, csr):
        assert (other.labels_ == rows.labels_).all()
        np.testing.assert_allclose(other.embedding_, rows.embedding_, atol=1e-7)
    Z, _ = blobs(20, seed=4)
    KZ = Gaussian(1.5)(Z, X)
    for machine, new in ((dense, KZ), (thin, KZ), (thin, sparse.csr_array(KZ))):
        np.testing.assert_allclose(machine.transform(new), rows.transform(Z), atol=1e-7)
    assert dense.n_features_in_ == 90


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(NORMALIZATIONS))
def test_the_order_of_rows_does_not_matter(seed, normalization):
    X, _ = blobs(seed=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    machine = SpectralClustering(
        3, Gaussian(1.0), normalization=normalization, tol=1e-10, random_state=0
    )
    straight, turned = clone(machine).fit(X), clone(machine).fit(X[order])
    assert same(straight.labels_[order], turned.labels_)
    np.testing.assert_allclose(straight.eigenvalues_, turned.eigenvalues_, atol=1e-8)
    assert straight.cut_values_.cut == pytest.approx(turned.cut_values_.cut)


def test_an_integer_seed_repeats():
    X = np.random.default_rng(0).standard_normal((200, 3))
    one, two = (SpectralClustering(5, random_state=3).fit(X) for _ in range(2))
    assert (one.labels_ == two.labels_).all()
    assert (one.embedding_ == two.embedding_).all()


def test_neighbours_of_a_matrix_are_its_largest_entries():
    X, _ = blobs(60)
    K = Gaussian(2.0)(X)
    for weights in ("binary", "kernel"):
        options = {"neighbors": 7, "weights": weights, "random_state": 0}
        rows = SpectralClustering(3, Gaussian(2.0), **options).fit(X)
        given_ = SpectralClustering(3, Precomputed(), **options).fit(K)
        assert abs(rows.graph_ - given_.graph_).max() < 1e-12
        Z, _ = blobs(9, seed=2)
        new = given_.transform(Gaussian(2.0)(Z, X))
        np.testing.assert_allclose(rows.transform(Z), new, atol=1e-8)


def test_the_graph_of_neighbours():
    X = np.random.default_rng(0).standard_normal((50, 3))
    gram = neighbour_graph(Linear(), X, 4, EdgeWeight.BINARY)
    distance = np.linalg.norm(X[:, None] - X[None], axis=2) + np.diag(np.full(50, np.inf))
    A = np.zeros((50, 50))
    np.put_along_axis(A, np.argsort(distance, axis=1)[:, :4], 1.0, axis=1)
    np.testing.assert_array_equal(gram.dense(), (A + A.T) / 2)
    weighted = neighbour_graph(Gaussian(0.2), X, 4, EdgeWeight.KERNEL).dense()
    np.testing.assert_allclose(weighted, (A + A.T) / 2 * Gaussian(0.2)(X), rtol=1e-9)


# --- graphs that fall apart (B12) --------------------------------------------------------------


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("normalization", CUTS)
def test_as_many_components_as_clusters_are_recovered_exactly(normalization, as_given):
    W, y = cliques([12, 7, 20, 5])
    machine = SpectralClustering(4, "precomputed", normalization=normalization, random_state=0)
    machine.fit(as_given(W))
    assert same(machine.labels_, y)
    assert machine.n_connected_ == 4
    assert machine.cut_values_.cut == 0
    assert machine.certificate_.ok
    assert machine.solution_.solver == "connected components"
    assert same(machine.predict(as_given(W)), y)


def test_far_blobs_whose_similarity_underflows():
    X, y = make_blobs(90, 2, centers=900 * np.eye(3, 2), random_state=0)
    machine = SpectralClustering(3, Gaussian(1.0), random_state=0).fit(X)
    assert machine.n_connected_ == 3
    assert same(machine.labels_, y)


def test_fewer_clusters_than_components_is_warned_about():
    W, y = cliques([12, 7, 20, 5])
    machine = SpectralClustering(2, "precomputed", random_state=0)
    with pytest.warns(DisconnectedWarning, match="4 connected components, more than the 2"):
        machine.fit(W)
    assert same(machine.labels_, y == 2)
    assert machine.certificate_.ok


@pytest.mark.parametrize("normalization", CUTS)
def test_more_clusters_than_components_never_cross_a_gap(normalization):
    W, y = cliques([10, 10, 10], bridge=0.05)
    both = np.kron(np.eye(2), W)  # twins: their eigenvalues are equal and come mixed
    truth = np.append(y, y + 3)
    for as_given in (np.asarray, sparse.csr_array):
        machine = SpectralClustering(
            6, "precomputed", normalization=normalization, random_state=0, tol=1e-9
        ).fit(as_given(both))
        assert machine.n_connected_ == 2
        assert same(machine.labels_, truth)
        assert machine.certificate_.ok
        if normalization != "doubly_stochastic":  # which gives bare points loops
            assert (machine.predict(as_given(both)) == machine.labels_).all()


def test_an_isolated_point_is_a_cluster():
    W, y = cliques([10, 10], bridge=0.1)
    W = np.pad(W, (0, 1))
    for normalization in CUTS:
        machine = SpectralClustering(3, "precomputed", normalization=normalization, random_state=0)
        machine.fit(W)
        assert same(machine.labels_, np.append(y, 2))
        assert np.isfinite(machine.embedding_).all()
        assert machine.certificate_.ok


def test_a_graph_without_edges():
    with pytest.warns(DisconnectedWarning, match="5 connected"):
        machine = SpectralClustering(2, "precomputed").fit(np.zeros((5, 5)))
    assert machine.labels_.tolist() == [0, 1, 1, 1, 1]
    machine = SpectralClustering(5, "precomputed").fit(sparse.csr_array((5, 5)))
    assert sorted(machine.labels_) == [0, 1, 2, 3, 4]


def test_a_bipartite_graph():
    """Its normalised matrix has the eigenvalue -1 as well, which is not that of a cluster."""
    W = np.zeros((20, 20))
    W[:10, 10:] = np.kron(np.eye(2), np.ones((5, 5))) + 0.02
    W = W + W.T
    truth = np.tile(np.repeat([0, 1], 5), 2)
    for normalization in CUTS:
        for given_ in (W, sparse.csr_array(W)):
            machine = SpectralClustering(
                2, "precomputed", normalization=normalization, random_state=0
            ).fit(given_)
            assert same(machine.labels_, truth)
            assert machine.certificate_.ok


def test_negative_weights_are_refused():
    W, _ = cliques([3, 3], bridge=-0.5)
    for given_ in (W, sparse.csr_array(W)):
        with pytest.raises(ValueError, match=r"rows 2 and 3 is -0\.5"):
            SpectralClustering(2, "precomputed").fit(given_)


def test_asymmetry_is_named():
    W, _ = cliques([3, 3], bridge=0.5)
    W[0, 4] = 1.0
    for given_ in (W, sparse.csr_array(W)):
        with pytest.raises(ValueError, match="not symmetric"):
            SpectralClustering(2, "precomputed").fit(given_)


@pytest.mark.slow
def test_a_path_of_a_million_edges():
    n = 1_000_001
    machine = SpectralClustering(2, "precomputed", assign="sign", random_state=0).fit(path(n))
    changes = np.flatnonzero(np.diff(machine.labels_))
    assert len(changes) == 1
    assert abs(changes[0] - n // 2) <= 1
    assert machine.cut_values_.cut == 1
    assert machine.solution_.solver == "ARPACK"


def test_the_eigengap_counts_components():
    W, y = cliques([10, 10, 10, 10])
    machine = SpectralClustering("eigengap", "precomputed", random_state=0).fit(W)
    assert machine.n_clusters_ == 4
    assert same(machine.labels_, y)
    with pytest.warns(DisconnectedWarning):
        few = SpectralClustering("eigengap", "precomputed", max_clusters=3).fit(W)
    assert few.n_clusters_ == 3


@pytest.mark.parametrize("dense", [True, False])
def test_components_are_those_of_the_graph(dense):
    W, y = cliques([4, 9, 2, 6])
    order = np.random.default_rng(0).permutation(21)
    W = W[np.ix_(order, order)]
    found = components(PrecomputedGram(W) if dense else SparseGram(sparse.csr_array(W)))
    assert same(found, y[order])
    assert np.bincount(found).tolist() == [9, 6, 4, 2]
    chain = path(500).toarray()  # the search by rows goes step by step
    assert components(PrecomputedGram(chain)).max() == 0


# --- solvers -----------------------------------------------------------------------------------


def graph_problem(n=900, count=4):
    X = np.random.default_rng(0).standard_normal((n, 2))
    gram = neighbour_graph(Linear(), X, 10)
    d = gram @ np.ones(n)
    first = np.sqrt(d) / np.linalg.norm(np.sqrt(d))
    return Eigenproblem(scaled(gram, d**-0.5), count, first[:, None])


@pytest.mark.parametrize("solver", [ARPACK(), LOBPCG()])
def test_sparse_solvers_agree_with_lapack(solver):
    problem = graph_problem()
    values = np.linalg.eigvalsh(problem.gram.dense())[::-1]
    solution = solve(problem, solver)
    np.testing.assert_allclose(solution.value.values, values[1:5], atol=1e-9)
    assert np.abs(problem.known.T @ solution.value.vectors).max() < 1e-10
    free = Eigenproblem(problem.gram, 5)
    check_solver(solver, free)


def test_repeated_eigenvalues_are_all_found():
    """On a cycle every eigenvalue but the first is double, and one vector sees one copy."""
    n = 1200
    index = np.arange(n)
    ones = np.ones(n)
    cycle = sparse.coo_array((ones, (index, (index + 1) % n)), shape=(n, n))
    chords = sparse.coo_array((ones, (index, (index + 7) % n)), shape=(n, n))
    matrix = sparse.csr_array(cycle + cycle.T + chords + chords.T) / 4
    problem = Eigenproblem(SparseGram(matrix), 4, np.full((n, 1), n**-0.5))
    k = np.arange(1, 3)
    exact = (np.cos(2 * np.pi * k / n) + np.cos(14 * np.pi * k / n)) / 2
    found = solve(problem, ARPACK(tol=1e-10)).value.values
    np.testing.assert_allclose(found, np.sort(np.repeat(exact, 2))[::-1], atol=1e-10)


def test_what_was_found_until_the_limit_is_given():
    problem = graph_problem()
    exact = np.linalg.eigvalsh(problem.gram.dense())[::-1][1:5]
    with pytest.warns(UserWarning, match="iteration limit"):
        few = solve(problem, ARPACK(max_iter=60))
    assert few.status is Status.ITERATION_LIMIT
    assert (few.value.values < exact).all() and (few.value.values > exact - 0.05).all()
    np.testing.assert_allclose(few.value.vectors.T @ few.value.vectors, np.eye(4), atol=1e-12)
    with pytest.warns(UserWarning, match="callback"):
        none = solve(problem, ARPACK(), callback=lambda progress: True)
    assert none.value.vectors.shape == (900, 4) and np.isfinite(none.value.vectors).all()


def test_what_a_product_raises_leaves_the_search():
    problem = graph_problem()

    def interrupted(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(problem, ARPACK(), callback=interrupted)
    assert solve(problem, ARPACK()).status is Status.SOLVED


def test_a_matrix_of_zeros_and_one_of_copies():
    for matrix in (sparse.csr_array((700, 700)), sparse.csr_array(sparse.eye_array(700))):
        solution = solve(Eigenproblem(SparseGram(matrix), 3), ARPACK())
        np.testing.assert_allclose(solution.value.values, matrix.diagonal()[:3], atol=1e-12)
        vectors = solution.value.vectors
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-12)


def test_trees_are_solved_through_their_factors():
    n = 1500
    matrix = path(n)
    d = np.asarray(matrix.sum(axis=1))
    known = (np.sqrt(d) / np.linalg.norm(np.sqrt(d)))[:, None]
    problem = Eigenproblem(scaled(SparseGram(matrix), d**-0.5), 3, known)
    solution = solve(problem)
    assert solution.solver == "ARPACK"
    exact = np.cos(np.pi * np.arange(1, 4) / (n - 1))
    np.testing.assert_allclose(solution.value.values, exact, rtol=1e-13)
    laplacian = ShiftedGram(SparseGram(matrix), 4.0 - d)
    solution = solve(Eigenproblem(laplacian, 3, np.full((n, 1), n**-0.5)))
    assert solution.solver == "ARPACK" and solution.iterations < 100
    exact = 2.0 + 2.0 * np.cos(np.pi * np.arange(1, 4) / n)
    np.testing.assert_allclose(solution.value.values, exact, rtol=1e-13)


def test_laplacians_are_solved_by_preconditioning():
    X = np.random.default_rng(0).standard_normal((800, 2))
    gram = make_gram(Gaussian(0.6), X, Need.PRODUCTS)
    d = gram @ np.ones(800)
    problem = Eigenproblem(ShiftedGram(gram, 2 * d.max() - d), 3, np.full((800, 1), 800**-0.5))
    solution = solve(problem)
    assert solution.solver == "LOBPCG"
    exact = np.linalg.eigvalsh(np.diag(d) - gram.dense())[1:4]
    np.testing.assert_allclose(2 * d.max() - solution.value.values, exact, rtol=1e-7)


# --- stopping, refusing, remembering -----------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"neighbors": 10}, {"normalization": "ratio"}])
def test_callbacks_and_limits_stop_the_solver(options, monkeypatch):
    X = np.random.default_rng(0).standard_normal((1500, 2))
    seen = []
    machine = SpectralClustering(
        3, Gaussian(0.3), tol=1e-13, callback=lambda p: seen.append(p) or True, **options
    )
    with pytest.warns(UserWarning, match="callback asked"):
        machine.fit(X)
    assert seen
    assert np.isfinite(machine.embedding_).all()
    monkeypatch.setattr(deadline, "clock", Ticking(1e-8))  # past the limit, never past the grace
    with pytest.warns(UserWarning, match="time limit"):
        SpectralClustering(3, Gaussian(0.3), tol=1e-13, time_limit=1e-9, **options).fit(X)


def test_a_failing_fit_changes_nothing():
    X, _ = blobs()
    machine = SpectralClustering(3, Gaussian(1.0), random_state=0).fit(X)
    before = dict(machine.__dict__)

    def fail(progress):
        raise RuntimeError("no")

    machine.callback = fail
    with pytest.raises(ValueError, match="NaN"):
        machine.fit(np.full((5, 2), np.nan))
    assert {k: v for k, v in machine.__dict__.items() if k != "callback"}.keys() == {
        k for k in before if k != "callback"
    }
    assert machine.labels_ is before["labels_"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 must be a positive integer or 'eigengap'"),
        ({"n_clusters": "many"}, "n_clusters='many'"),
        ({"n_clusters": True}, "n_clusters=True"),
        ({"normalization": "none"}, "normalization='none'"),
        ({"neighbors": 0}, "neighbors=0"),
        ({"neighbors": 30}, "neighbors=30 must be below the number of rows: n_samples=30"),
        ({"weights": "heat"}, "weights='heat'"),
        ({"assign": "qr"}, "assign='qr'"),
        ({"n_init": 0}, "n_init=0"),
        ({"max_clusters": 1.5}, "max_clusters=1.5"),
        ({"n_clusters": "eigengap", "max_clusters": 1}, "max_clusters=1 must be at least 2"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"self_loops": "no"}, "self_loops='no'"),
        ({"random_state": -1}, "random_state=-1"),
        ({"time_limit": 0}, "time_limit=0"),
        ({"callback": 3}, "callback=3"),
    ],
)
def test_parameters_are_refused_by_name(params, message):
    with pytest.raises(ParameterError, match=message):
        SpectralClustering(**params).fit(blobs(30)[0])


def test_more_clusters_than_rows_are_refused():
    with pytest.raises(ValueError, match="n_samples=4 should be >= n_clusters=8"):
        SpectralClustering().fit(np.arange(8.0).reshape(4, 2))
    X = np.arange(8.0).reshape(4, 2)
    assert sorted(SpectralClustering(4, Gaussian(2.0), random_state=0).fit_predict(X)) == [
        0,
        1,
        2,
        3,
    ]


def test_a_sparse_affinity_is_a_graph_already():
    with pytest.raises(ParameterError, match="neighbors=3 must be None for a sparse affinity"):
        SpectralClustering(2, "precomputed", neighbors=3).fit(path(10))


def test_one_cluster():
    X, _ = blobs(30)
    for normalization in NORMALIZATIONS:
        machine = SpectralClustering(1, Gaussian(1.0), normalization=normalization).fit(X)
        assert set(machine.labels_) == {0}
        assert set(machine.predict(X)) == {0}


@pytest.mark.filterwarnings("ignore:.*stopped making progress")  # K is rounding only
def test_constant_rows():
    machine = SpectralClustering(2, random_state=0, n_init=1)
    with (
        pytest.warns(UserWarning, match="all entries of X are equal"),
        pytest.warns(UserWarning, match="rank 1 < n_clusters=2"),
    ):
        machine.fit(np.ones((10, 2)))
    assert np.isfinite(machine.embedding_).all()


@pytest.mark.parametrize(
    ("count", "kernel", "normalization", "rank"),
    [
        (4, Linear(), "plain", 2),
        (6, Gaussian(1e4), "normalized", 3),
        (6, Gaussian(1e4), "doubly_stochastic", 3),
    ],
)
def test_eigenvectors_of_the_null_space_place_nothing(count, kernel, normalization, rank):
    X, _ = make_moons(1200, noise=0.05, random_state=0)
    machine = SpectralClustering(count, kernel, normalization=normalization, random_state=0)
    with pytest.warns(UserWarning, match=f"rank {rank} < n_clusters={count}"):
        machine.fit(X)
    assert machine.embedding_.shape == (1200, count)
    assert not machine.embedding_[:, rank:].any()
    scale = np.abs(machine.embedding_).max()
    np.testing.assert_allclose(machine.transform(X), machine.embedding_, atol=1e-5 * scale)
    assert (machine.predict(X) == machine.labels_).mean() > 0.999
    assert machine.certificate_.ok


@pytest.mark.parametrize("normalization", ["normalized", "ratio"])
def test_groups_far_apart_lose_no_digits(normalization):
    X, _ = make_moons(1200, noise=0.05, random_state=0)
    X[600:] += 1e3
    machine = SpectralClustering(2, Gaussian(0.2), normalization=normalization, random_state=0)
    assert same(machine.fit(X).labels_, np.repeat([0, 1], 600))
    assert machine.certificate_.ok


@pytest.mark.parametrize("n", [400, 1200])
def test_components_do_not_depend_on_single_precision(n):
    X = np.random.default_rng(0).standard_normal((n, 2)) * 0.1
    X[n // 2 :, 0] += 20.0  # exp(-200): zero in single precision
    assert SpectralClustering(2, Gaussian(1.0), random_state=0).fit(X).n_connected_ == 1


def test_a_probe_that_finds_the_identity():
    K = np.kron(np.eye(60), np.ones((20, 20))) + 1e-3
    machine = SpectralClustering(60, "precomputed", normalization="ratio", random_state=0).fit(K)
    assert machine.certificate_.ok


def test_new_rows_without_any_similarity_are_warned_about():
    X, _ = blobs(60)
    machine = SpectralClustering(3, Gaussian(1.0), random_state=0).fit(X)
    with pytest.warns(UserWarning, match=r"1 new row\(s\) of X \(1\) have no similarity"):
        machine.predict([[0.0, 0.0], [1e3, 1e3]])
    K = Gaussian(1.0)(X)
    machine = SpectralClustering(3, "precomputed", random_state=0).fit(K)
    for rows in (-K[4:6], sparse.csr_array(-K[4:6])):
        with pytest.raises(ValueError, match="row 0 has an affinity of -1 to a training row"):
            machine.predict(rows)


def test_one_cluster_of_many_components():
    with pytest.warns(DisconnectedWarning, match="6 connected components, all of which the one"):
        SpectralClustering(1, "precomputed").fit(np.eye(6))


def test_refitting_forgets_what_belonged_to_other_parameters():
    X, _ = blobs()
    machine = SpectralClustering(
        3, Gaussian(1.0), normalization="doubly_stochastic", neighbors=20, random_state=0
    ).fit(X)
    assert hasattr(machine, "scaling_")
    assert hasattr(machine, "graph_")
    machine.set_params(normalization="ratio", neighbors=None).fit(X)
    assert not hasattr(machine, "scaling_")
    assert not hasattr(machine, "graph_")


def test_polynomial_kernels_are_their_features():
    X = np.random.default_rng(0).standard_normal((60, 3))
    Z = np.random.default_rng(1).standard_normal((9, 3))
    kernel = Polynomial(2)
    phi = kernel.features(3)
    options = {"n_clusters": 3, "normalization": "plain", "random_state": 0}
    ours = SpectralClustering(kernel=kernel, **options).fit(X)
    theirs = SpectralClustering(kernel="linear", **options).fit(np.asarray(phi(X)))
    np.testing.assert_allclose(ours.embedding_, theirs.embedding_, atol=1e-8)
    np.testing.assert_allclose(ours.transform(Z), theirs.transform(np.asarray(phi(Z))), atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [3, 5, 8])
def test_a_repeated_eigenvalue_that_is_cut_off_in_the_middle(seed, count):
    """Of twelve vectors of eigenvalue one some are asked for, mixed over components in any way."""
    rng = np.random.default_rng(seed)
    component = np.sort(np.concatenate([np.arange(3), rng.integers(0, 3, 17)]))[::-1]
    component = np.unique(component, return_inverse=True)[1]
    values = np.concatenate([np.ones(12), np.linspace(0.5, 0.1, 8)])
    mixed = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    vectors = np.eye(20)
    vectors[:12, :12] = mixed
    kept, found, owner = localised(values[:count], vectors[:, :count], component)
    np.testing.assert_allclose(found.T @ found, np.eye(count), atol=1e-12)
    np.testing.assert_allclose(kept, values[:count], atol=1e-12)
    A = np.diag(np.repeat([1.0, 0.5], [12, 8]))
    np.testing.assert_allclose(A @ found, found, atol=1e-10)
    assert all((component[np.abs(v) > 0] == j).all() for v, j in zip(found.T, owner, strict=True))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(8))
def test_points_that_are_alone_but_for_rounding(seed):
    """Similarities of 1e-300 connect a graph in name only: eigenvalues of one are many."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.standard_normal((1, 4)), 43, axis=0) * 10.0 ** rng.uniform(-3, 3, (43, 1))
    X[0] *= 1e6
    for loops in (True, False):
        machine = SpectralClustering(8, Gaussian(0.7), self_loops=loops).fit(X)
        status = machine.solution_.status
        assert (status is Status.SOLVED) <= machine.certificate_.ok
        assert machine.certificate_.quantities.orthonormality < 1e-6


def test_vectors_that_are_not_orthonormal_are_judged_within_the_fit(monkeypatch):
    import mercer.machines.clustering.spectral as room

    true = room.relax

    def skew(*given):
        found = true(*given)
        vectors = found.vectors.copy()
        vectors[:, 1] += 0.1 * vectors[:, 0]
        return dataclasses.replace(found, vectors=vectors)

    monkeypatch.setattr(room, "relax", skew)
    X = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.warns(ConvergenceWarning, match="not orthonormal"):
        machine = SpectralClustering(3, Gaussian(1.0)).fit(X)
    assert machine.solution_.status is Status.INACCURATE


def test_components_that_hang_on_rounding_are_judged_within_the_fit() -> None:
    """Distances beside rows a million times as large are rounding: another block, another graph."""
    random = np.random.default_rng(688219)
    X = 1e8 * 10.0 ** random.uniform(-3, 3, (163, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with mercer.config(memory="200 kB"):
            machine = SpectralClustering(8, Gaussian(np.sqrt(0.5))).fit(X)
        ended = machine.solution_.status
        assert machine.certificate_.ok or ended is not Status.SOLVED
        assert machine.solution_.status is ended


def test_a_loop_of_one_is_not_lost_beside_a_negative_rounding() -> None:
    """Row sums without k(x, x) of 1e100 are rounding, which may be below zero."""
    K = np.diag([1e22, 1e40, 1e84, 1e80, 1e100]) + 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DisconnectedWarning)
        machine = SpectralClustering(1, kernel="precomputed", self_loops=False).fit(K)
    assert (machine.degrees_ > 0).all()
    assert machine.solution_.status is not mercer.Status.SOLVED or machine.certificate_.ok


def test_places_of_rows_with_huge_degrees():
    """Eigenvalues of an INACCURATE fit may be anything; divisors that overflow leave zero."""
    walk = NormalizedCut(np.ones(3))
    sums = np.array([[1e100, -1e100, 1e300]])  # two eigenvectors, and the degree
    np.testing.assert_array_equal(
        walk.extend(sums, np.array([1e105, 1e-105])) == 0, [[True, False]]
    )


def test_places_of_length_one_at_the_end_of_the_range():
    """Lengths whose squares overflow, or are nothing, are lengths still."""
    sums = np.array([[3e200, -4e200, 0.0], [3e-200, -4e-200, 0.0]])
    np.testing.assert_allclose(Plain(np.ones(3)).extend(sums, np.ones(2)), [[0.6, -0.8]] * 2)


def test_residuals_whose_squares_overflow_are_judged_without_a_warning():
    X = np.full((5, 3), 1e8) + np.eye(5, 3)
    kernel = 1e165 * Linear()
    machine = SpectralClustering(
        3, kernel, normalization="plain", neighbors=1, weights="kernel", random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        machine.fit(X)
    assert machine.solution_.status is not mercer.Status.SOLVED or machine.certificate_.ok
