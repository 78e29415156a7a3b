"""Clusters of equal sizes: against all balanced partitions, and exact assignments elsewhere."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from mercer import KMeans, ParameterError, certify
from mercer.gram import Need, PrecomputedGram, make_gram
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed
from mercer.machines.clustering.balanced import assigned
from mercer.problems import BalancedPartition, Clusters
from mercer.solvers import BalancedLloyd, Status, solve


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) + 3.0 * (rng.random(n) < 0.25)[:, None]


def all_balanced(n, k):
    """Labels of all partitions into sizes n / k, rounded up or down, with point 0 in cluster 0."""
    low, more = divmod(n, k)
    for others in itertools.product(range(k), repeat=n - 1):
        labels = np.array((0, *others))
        sizes = np.bincount(labels, minlength=k)
        if sizes.min() == low and sizes.max() == low + (more > 0):
            yield labels


def objective(K, labels):
    parts = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    return np.trace(K) - sum(K[np.ix_(p, p)].sum() / len(p) for p in parts)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)], ids=repr)
@pytest.mark.parametrize(("n", "k", "seed"), [(10, 2, 0), (10, 2, 1), (9, 2, 2), (8, 3, 3)])
def test_against_all_balanced_partitions(kernel, n, k, seed):
    X = rows(n, seed)
    K = kernel(X)
    machine = KMeans(k, kernel, balanced=True).fit(X)
    assert np.ptp(machine.cluster_sizes_) == (n % k > 0)
    assert_allclose(machine.inertia_, objective(K, machine.labels_), rtol=1e-9)
    best = min(objective(K, labels) for labels in all_balanced(n, k))
    assert machine.inertia_ >= best - 1e-9
    assert_allclose(machine.inertia_, best, rtol=1e-9)  # ten starts find it here
    assert machine.relaxation_.bound <= best + 1e-9
    assert machine.certificate_.ok
    assert machine.solution_.status is Status.SOLVED


@pytest.mark.parametrize("seed", range(20))
def test_assignments_are_the_cheapest_and_prices_prove_it(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    k = int(rng.integers(1, min(n, 6) + 1))
    cost = rng.random((n, k)) if seed % 2 else rng.integers(0, 4, (n, k)).astype(float)
    labels, prices = assigned(cost, rng.random(k) * (seed % 3))
    low, more = divmod(n, k)
    sizes = np.bincount(labels, minlength=k)
    assert (np.sort(sizes) == np.sort(low + (np.arange(k) < more))).all()
    table = np.zeros((n + k - more, k * low + k))  # the larger places may stay empty, k - more do
    table[:n] = np.hstack([np.repeat(cost, low, axis=1), cost])
    table[n:, : k * low] = 1e6
    best = table[linear_sum_assignment(table)].sum()
    assert_allclose(cost[np.arange(n), labels].sum(), best, atol=1e-9)
    paid = cost + prices
    assert (paid[np.arange(n), labels] <= paid.min(axis=1) + 1e-9).all()


def test_the_certificate_proves_and_refutes():
    X = rows(30)
    machine = KMeans(3, balanced=True).fit(X)
    problem = BalancedPartition(make_gram(Linear(), X, Need.PRODUCTS), 3, np.ones(30))
    labels = machine.labels_
    assert certify(problem, Clusters(labels)).ok
    swapped = labels.copy()
    a, b = np.flatnonzero(labels == 0)[0], np.flatnonzero(labels == 1)[0]
    swapped[[a, b]] = labels[[b, a]]
    judged = certify(problem, Clusters(swapped))
    assert not judged.ok
    assert judged.quantities.reassignment_gain > 0
    uneven = np.where(np.arange(30) == a, 1, labels)
    assert "sizes are not equal" in certify(problem, Clusters(uneven)).statement
    # the bound is below what any assignment to the same means costs
    means = np.array([X[swapped == c].mean(axis=0) for c in range(3)])
    D = np.square(X[:, None] - means).sum(axis=2)
    least = D[np.arange(30), assigned(D, np.zeros(3))[0]].sum()
    gain = (D[np.arange(30), swapped].sum() - least) / judged.quantities.objective
    assert judged.quantities.reassignment_gain >= gain - 1e-9
    plain = KMeans(3).fit(X)
    assert machine.inertia_ >= plain.inertia_ - 1e-9


def test_descent_never_rises_and_refining_helps():
    X = rows(60, 4)
    machine = KMeans(4, Gaussian(1.0), balanced=True, n_init=3).fit(X)
    traces = machine.solution_.value.traces
    assert (np.diff(traces, axis=1) <= 1e-9).all()
    rough = KMeans(4, Gaussian(1.0), balanced=True, n_init=3, refine=False).fit(X)
    assert machine.inertia_ <= rough.inertia_ + 1e-9
    assert rough.certificate_.ok  # no other assignment to its means is better
    cut = KMeans(4, balanced=True, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        cut.fit(X)
    assert cut.solution_.status is Status.ITERATION_LIMIT


def test_ways_of_holding_rows_agree():
    X = rows(24, 5)
    plain = KMeans(3, Polynomial(2), balanced=True).fit(X)
    given = KMeans(3, Precomputed(), balanced=True).fit(Polynomial(2)(X))
    thin = KMeans(3, Polynomial(2), balanced=True).fit(sparse.csr_array(X))
    assert_allclose(plain.inertia_, given.inertia_, rtol=1e-8)
    assert_allclose(plain.inertia_, thin.inertia_, rtol=1e-8)
    start = KMeans(3, balanced=True, init=np.arange(24) % 3).fit(X)
    assert np.ptp(start.cluster_sizes_) == 0
    assert KMeans(3, balanced=True, init="relaxation").fit(X).certificate_.ok
    solution = solve(BalancedPartition(PrecomputedGram(X @ X.T), 3, np.ones(24)))
    assert solution.solver == type(BalancedLloyd()).__name__


def test_weights_are_repetition_and_copies_may_part():
    X = rows(12, 6)
    times = np.array([0, 1, 2, 3] * 3)
    again = np.repeat(np.arange(12), times)
    weighted = KMeans(3, balanced=True).fit(X, sample_weight=times)
    repeated = KMeans(3, balanced=True).fit(X[again])
    assert_allclose(weighted.inertia_, repeated.inertia_, rtol=1e-9)
    assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-9)
    assert weighted.cluster_sizes_.tolist() == [6, 6, 6]
    assert np.bincount(repeated.labels_).tolist() == [6, 6, 6]
    same = KMeans(2, balanced=True).fit(np.ones((7, 2)))
    assert sorted(same.cluster_sizes_.tolist()) == [3, 4]
    assert same.certificate_.ok
    with pytest.raises(ValueError, match="whole numbers"):
        KMeans(2, balanced=True).fit(X, sample_weight=np.full(12, 0.5))
    with pytest.raises(ParameterError, match="n_clusters=20 must be at most"):
        KMeans(20, balanced=True).fit(X)
    with pytest.raises(ParameterError, match="balanced='yes'"):
        KMeans(2, balanced="yes").fit(X)
    with pytest.raises(ValueError, match="count once each"):
        BalancedPartition(PrecomputedGram(X @ X.T), 2, np.full(12, 2.0))


@pytest.mark.parametrize("seed", range(12))
def test_prices_that_rounding_has_moved_end_all_the_same(seed):
    """One row far away: differences of costs are rounding, and chains of moves may be circles."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((16, 7))[rng.integers(0, 16, 46)]
    X = np.where(rng.random((46, 7)) < 0.8, 0.0, X)
    X[0] = 1e6
    machine = KMeans(n_clusters=8, balanced=True, random_state=seed, kernel="linear").fit(X)
    assert machine.certificate_.ok
    assert sorted(np.bincount(machine.labels_)) == [5, 5, 6, 6, 6, 6, 6, 6]
