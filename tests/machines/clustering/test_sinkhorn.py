"""Doubly stochastic scaling, cuts and flows: judged by row sums, brute force, closed forms."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mercer import certify, solve
from mercer.gram import Need, PrecomputedGram, SparseGram, make_gram
from mercer.kernels import Gaussian
from mercer.problems import MinimumCut, Scales, Scaling, cut_values
from mercer.solvers import MaximumFlow, Sinkhorn, Status, minimum_cut
from mercer.testing import check_gram, check_solver


def points(n=200, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 3))


def weights(n, seed=0, share=1.0):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.uniform(0.1, 1.0, (n, n)) * (rng.uniform(size=(n, n)) < share), 1)
    return W + W.T


# --- scaling -----------------------------------------------------------------------------------


def test_rows_sum_to_one_after_the_iteration():
    gram = make_gram(Gaussian(1.0), points(), Need.PRODUCTS)
    solution = solve(Scaling(gram))
    x = solution.value.scale
    S = x[:, None] * gram.dense() * x[None, :]
    assert np.abs(S.sum(axis=1) - 1).max() < 1e-10
    assert solution.status is Status.SOLVED
    check_solver(Sinkhorn(), Scaling(gram))


def test_the_limit_is_that_of_repeated_normalisation():
    K = Gaussian(0.8)(points(40))
    limit = K.copy()
    for _ in range(2000):
        d = limit.sum(axis=1)
        limit = limit / np.sqrt(d[:, None] * d[None, :])
    x = solve(Scaling(PrecomputedGram(K))).value.scale
    np.testing.assert_allclose(x[:, None] * K * x[None, :], limit, atol=1e-10)


def test_mixing_takes_fewer_products_than_the_plain_iteration():
    gram = make_gram(Gaussian(1.0), points(400), Need.PRODUCTS)
    plain = solve(Scaling(gram), Sinkhorn(memory=0))
    mixed = solve(Scaling(gram), Sinkhorn())
    assert mixed.iterations < plain.iterations
    np.testing.assert_allclose(mixed.value.scale, plain.value.scale, rtol=1e-8)


def test_empty_rows_are_left_alone():
    K = np.zeros((4, 4))
    K[:3, :3] = [[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 1.0]]
    problem = Scaling(SparseGram(sparse.csr_array(K)))
    value = solve(problem).value
    certificate = certify(problem, value)
    assert certificate.ok
    assert certificate.quantities.empty_rows == 1
    assert value.scale[3] == 0


def test_a_wrong_scaling_is_not_certified():
    gram = PrecomputedGram(np.eye(3) + 1.0)
    assert certify(Scaling(gram), Scales(np.full(3, 0.5))).ok
    assert not certify(Scaling(gram), Scales(np.full(3, 0.6))).ok


def test_extreme_scales():
    size = 10.0 ** np.linspace(-60, 60, 30)
    K = Gaussian(1.0)(points(30)) * size[:, None] * size[None, :]
    problem = Scaling(PrecomputedGram(K))
    assert certify(problem, solve(problem).value, 1e-9).ok


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10_000))
def test_any_matrix_with_a_positive_diagonal_can_be_scaled(n, seed):
    W = weights(n, seed, share=0.5) + np.diag(np.random.default_rng(seed).uniform(0.2, 2, n))
    problem = Scaling(SparseGram(sparse.csr_array(W)))
    assert certify(problem, solve(problem).value).ok


def test_a_scaling_can_be_stopped():
    gram = make_gram(Gaussian(1.0), points(), Need.PRODUCTS)
    with pytest.warns(UserWarning, match="callback asked"):
        solution = solve(Scaling(gram), callback=lambda progress: progress.iteration >= 2)
    assert solution.status is Status.STOPPED
    assert np.isfinite(solution.value.scale).all()


# --- sparse Grams ------------------------------------------------------------------------------


def test_a_sparse_gram_answers_like_its_matrix():
    W = weights(12, share=0.4)
    Z = weights(12, seed=1)[:3]
    check_gram(SparseGram(sparse.csr_array(W)), W, sparse.csr_array(Z), Z)
    check_gram(SparseGram(sparse.coo_array(W)), W, Z, Z)


def test_a_sparse_matrix_must_be_square_finite_and_symmetric():
    with pytest.raises(ValueError, match="square"):
        SparseGram(sparse.csr_array(np.ones((2, 3))))
    W = weights(5)
    W[1, 3] += 1e-13
    assert (
        SparseGram(sparse.csr_array(W)).dense() == SparseGram(sparse.csr_array(W)).dense().T
    ).all()
    W[1, 3] += 0.5
    with pytest.raises(ValueError, match=r"not symmetric: entries \(1, 3\) and \(3, 1\)"):
        SparseGram(sparse.csr_array(W))
    W[0, 2] = np.nan
    with pytest.raises(ValueError, match=r"entry \(0, 2\) is nan"):
        SparseGram(sparse.csr_array(W))


# --- cuts --------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 10), st.integers(0, 10_000))
def test_cut_values_are_what_their_formulas_say(n, seed):
    W = weights(n, seed) + np.diag(np.random.default_rng(seed).uniform(0, 1, n))
    labels = np.random.default_rng(seed).integers(0, 3, n)
    cut = ratio = normalized = 0.0
    for c in np.unique(labels):
        inside = labels == c
        leaving = W[inside][:, ~inside].sum()
        cut += leaving / 2
        ratio += leaving / inside.sum()
        normalized += leaving / W[inside].sum() if W[inside].sum() else 0
    for matrix in (W, sparse.csr_array(W), PrecomputedGram(W)):
        found = cut_values(matrix, labels)
        np.testing.assert_allclose(
            [found.cut, found.ratio, found.normalized], [cut, ratio, normalized], atol=1e-12
        )


def test_cut_values_want_a_label_for_every_point():
    with pytest.raises(ValueError, match="3 points, but labels of shape"):
        cut_values(np.ones((3, 3)), [0, 1])


@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_cut_is_that_of_all_bipartitions(seed):
    W = weights(10, seed, share=0.6)
    sides = [np.array((0, *side)) for side in product([0, 1], repeat=9) if any(side)]
    least = min(cut_values(W, side).cut for side in sides)
    found = minimum_cut(W)
    assert found.value.value == pytest.approx(least, rel=1e-12)
    assert cut_values(W, found.value.labels).cut == pytest.approx(least, rel=1e-12)
    assert certify(MinimumCut(PrecomputedGram(W)), found.value).ok
    apart = min(cut_values(W, side).cut for side in sides if side[2] != side[7])
    problem = MinimumCut(SparseGram(sparse.csr_array(W)), 2, 7)
    between = solve(problem)
    assert between.value.value == pytest.approx(apart, rel=1e-12)
    assert between.value.labels[[2, 7]].tolist() == [1, 0]
    check_solver(MaximumFlow(), problem)


def test_a_cut_that_is_not_minimal_is_not_certified():
    W = weights(8, 3)
    found = minimum_cut(W).value
    worse = type(found)(np.arange(8) % 2, found.value, found.flow)
    problem = MinimumCut(PrecomputedGram(W))
    assert not certify(problem, worse).ok
    assert not certify(problem, type(found)(np.zeros(8, int), 0.0, 0.0)).ok


def test_a_disconnected_graph_is_cut_for_nothing():
    W = np.kron(np.eye(2), np.ones((3, 3)))
    found = minimum_cut(W).value
    assert found.value == 0
    assert found.labels.tolist() == [1, 1, 1, 0, 0, 0]


def test_minimum_cuts_refuse_what_they_cannot_cut():
    with pytest.raises(ValueError, match="negative weights"):
        minimum_cut([[0.0, -1.0], [-1.0, 0.0]])
    with pytest.raises(ValueError, match="fewer than two"):
        minimum_cut([[1.0]])
    with pytest.raises(ValueError, match="both source and sink"):
        minimum_cut(np.ones((3, 3)), source=1)
    with pytest.raises(ValueError, match="two points below 3"):
        minimum_cut(np.ones((3, 3)), source=1, sink=3)
    with pytest.raises(ValueError, match="whole numbers"):
        minimum_cut(np.ones((3, 3)), source=0.5, sink=1)
