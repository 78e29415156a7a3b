"""Neighbours by largest similarity, and votes that similarity weighs, against brute force."""

import numpy as np
import pytest
from scipy import sparse

from mercer import NearestNeighbors, ParameterError, certify
from mercer.gram import PrecomputedGram
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed, Sigmoid
from mercer.machines.neighbors import search
from mercer.problems import MostSimilar, Neighbourhoods

rng = np.random.default_rng(3)
X, Z = rng.standard_normal((60, 3)) + 0.3, rng.standard_normal((25, 3))
two = (X[:, 0] + 0.7 * rng.standard_normal(60) > 0).astype(int)
three = np.digitize(X[:, 1], [-0.3, 0.8])


@pytest.mark.parametrize("k", [1, 4, 9])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(3), Sigmoid(0.5), Gaussian(1.0)], ids=repr)
def test_most_similar_rows_by_brute_force(kernel, k):
    machine = NearestNeighbors(k, kernel=kernel, by="similarity").fit(X, two)
    order = np.argsort(-kernel(Z, X), axis=1, kind="stable")[:, :k]
    similarity, index = machine.kneighbors(Z)
    np.testing.assert_array_equal(index, order)
    np.testing.assert_allclose(similarity, np.take_along_axis(kernel(Z, X), order, 1), rtol=1e-12)
    share = np.stack([(two[order] == c).mean(axis=1) for c in (0, 1)], axis=1)
    np.testing.assert_allclose(machine.predict_proba(Z), share, atol=1e-12)
    assert machine.certificate_.ok
    assert "more similar" in machine.certificate_.statement


@pytest.mark.parametrize("by", ["distance", "similarity"])
@pytest.mark.parametrize("k", [35, 50])
def test_signed_votes_are_the_sign_of_the_weighted_sum(k, by):
    machine = NearestNeighbors(k, votes="signed", by=by).fit(X, two)
    near = machine.kneighbors(Z, return_distance=False)
    K = np.take_along_axis(Z @ X.T, near, axis=1)
    rule = (K * (2 * two[near] - 1)).sum(axis=1)
    assert (K < 0).any()
    np.testing.assert_array_equal(machine.predict(Z), (rule > 0).astype(int))
    proba = machine.predict_proba(Z)
    np.testing.assert_allclose(proba[:, 1] - proba[:, 0], rule / np.abs(K).sum(axis=1), atol=1e-12)


def test_a_vote_against_one_of_three_classes_is_half_a_vote_for_each_other():
    machine = NearestNeighbors(6, votes="signed").fit(X, three)
    near = machine.kneighbors(Z, return_distance=False)
    K, label = np.take_along_axis(Z @ X.T, near, axis=1), three[near]
    total = np.zeros((len(Z), 3))
    for i in range(len(Z)):
        for n in range(6):
            if K[i, n] > 0:
                total[i, label[i, n]] += K[i, n]
            else:
                total[i, [c for c in range(3) if c != label[i, n]]] -= K[i, n] / 2
    share = total / total.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(machine.predict_proba(Z), share, atol=1e-12)


def test_rows_that_lose_their_votes_are_named():
    machine = NearestNeighbors(8, votes="similarity").fit(X, two)
    with pytest.warns(UserWarning, match="neighbours of negative similarity"):
        machine.predict(Z)
    with pytest.warns(UserWarning, match="votes='signed'"):
        machine.predict_proba(Z)
    NearestNeighbors(8, kernel=Gaussian(1.0), votes="similarity").fit(X, two).predict(Z)


def test_both_searches_agree_where_all_rows_are_equally_long():
    rows, new = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, Z))
    near = NearestNeighbors(5).fit(rows, three).kneighbors(new, return_distance=False)
    like = NearestNeighbors(5, by="similarity").fit(rows, three)
    np.testing.assert_array_equal(near, like.kneighbors(new, return_distance=False))


def test_matrices_sparse_rows_weights_and_leave_one_out():
    options = {"by": "similarity", "votes": "signed"}
    plain = NearestNeighbors("loo", max_neighbors=9, **options).fit(X, two)
    as_csr = NearestNeighbors("loo", max_neighbors=9, **options).fit(sparse.csr_array(X), two)
    given = NearestNeighbors("loo", kernel=Precomputed(), max_neighbors=9, **options)
    given.fit(X @ X.T, two)
    np.testing.assert_allclose(plain.loo_errors_, as_csr.loo_errors_)
    np.testing.assert_allclose(plain.loo_errors_, given.loo_errors_)
    np.testing.assert_allclose(plain.predict_proba(Z), given.predict_proba(Z @ X.T), atol=1e-12)
    np.testing.assert_allclose(given.kneighbors(Z @ X.T)[0], plain.kneighbors(Z)[0], rtol=1e-12)
    assert given.certificate_.ok
    times = rng.integers(0, 3, 60)
    again = np.repeat(np.arange(60), times)
    weighted = NearestNeighbors(7, **options).fit(X, two, sample_weight=times)
    repeated = NearestNeighbors(7, **options).fit(X[again], two[again])
    np.testing.assert_allclose(weighted.predict_proba(Z), repeated.predict_proba(Z), atol=1e-12)


def test_blocks_change_nothing(monkeypatch):
    whole = NearestNeighbors(4, by="similarity").fit(X, two).kneighbors()[1]
    monkeypatch.setattr(search, "_BLOCK", 7)
    np.testing.assert_array_equal(
        NearestNeighbors(4, by="similarity").fit(X, two).kneighbors()[1], whole
    )


def test_a_row_left_out_is_found_by_the_certificate():
    K = X @ X.T
    points = np.arange(10)
    order = np.argsort(-K[points], axis=1)
    problem = MostSimilar(PrecomputedGram(K), points, 3)
    assert certify(problem, Neighbourhoods(order[:, :3])).ok
    wrong = certify(problem, Neighbourhoods(order[:, [0, 1, 3]]))
    assert not wrong.ok
    assert "more similar point was left out" in wrong.statement
    assert not certify(problem, Neighbourhoods(order[:, :2])).ok
    assert not certify(problem, Neighbourhoods(order[:, [0, 0, 1]])).ok


def test_refusals():
    with pytest.raises(ParameterError, match="by='size' must be 'distance' or 'similarity'"):
        NearestNeighbors(by="size").fit(X, two)
    with pytest.raises(ValueError, match="kernel value not finite"):
        NearestNeighbors(1, by="similarity").fit(X * 1e200, two)


@pytest.mark.parametrize("votes", ["similarity", "signed"])
def test_votes_by_similarities_that_overflow_are_refused(votes):
    machine = NearestNeighbors(1, votes=votes).fit(X, two)
    far = NearestNeighbors(1, votes=votes).fit(X * 2.0**660, two)  # in a unit of its own
    assert (far.predict_proba(X * 2.0**660) == machine.predict_proba(X)).all()
    with pytest.raises(ValueError, match=r"2 row.*\(1, 2\).*Scale the features"):
        machine.predict(np.array([[1.0, 1.0, 1.0], [1e308] * 3, [-1e308] * 3]))
    plain = NearestNeighbors(1).fit(X * 1e200, two)  # distances are compared at their scale
    assert np.isfinite(plain.predict_proba(X * 1e200)).all()


def test_shares_of_similarities_at_the_end_of_the_range():
    X = np.array([[1.0], [0.9], [0.8], [0.7]]) * 1.2e154
    machine = NearestNeighbors(3, Linear(), votes="similarity", by="similarity").fit(
        X, [0, 1, 1, 0]
    )
    near = NearestNeighbors(3, Linear(), votes="similarity", by="similarity").fit(
        X / 1.2e154, [0, 1, 1, 0]
    )
    np.testing.assert_allclose(machine.predict_proba(X), near.predict_proba(X / 1.2e154))
