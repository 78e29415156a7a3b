"""Every rule against brute force: refits, differences, dense inverses."""

import numpy as np
import pytest

from mercer import SVC, KernelRidge, LogisticRegression, Perceptron
from mercer.kernels import Gaussian, Linear
from mercer.selection import (
    EntropyQuery,
    ExpectedChangeQuery,
    MarginQuery,
    RandomQuery,
    VarianceQuery,
    posterior_variance,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 3))
POOL = rng.standard_normal((20, 3))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(30)
two = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
three = np.digitize(X[:, 0], [-0.5, 0.5])
SEED = np.random.RandomState(0)
K = Gaussian(1.3)


def brute_variance(kernel, labelled, rows, noise):
    inverse = np.linalg.inv(kernel(labelled) + noise * np.eye(len(labelled)))
    cross = kernel(labelled, rows)
    return np.diag(kernel(rows)) - np.einsum("ij,ik,kj->j", cross, inverse, cross)


def test_margins_are_distances_of_decision_values():
    machine = SVC(K, C=5.0).fit(X, two)
    values = np.abs([machine.decision_function(row[None])[0] for row in POOL])
    rule = MarginQuery()
    np.testing.assert_allclose(rule.distances(machine, POOL), values)
    assert rule.choose(machine, POOL, X, SEED, 4).tolist() == np.argsort(values)[:4].tolist()
    machine = SVC(K, multiclass="ovr").fit(X, three)
    f = np.sort(machine.decision_function(POOL), axis=1)
    np.testing.assert_allclose(rule.distances(machine, POOL), f[:, -1] - f[:, -2])


def test_the_distance_to_the_hyperplane_orders_rows_as_decision_values_do():
    machine = SVC("linear", C=10.0).fit(X, two)
    w, b = machine.coef_.ravel(), float(np.ravel(machine.intercept_)[0])
    distances = np.abs(POOL @ w + b) / np.linalg.norm(w)
    found = MarginQuery().choose(machine, POOL, X, SEED, len(POOL))
    assert found.tolist() == np.argsort(distances).tolist()


def test_entropy_of_chances():
    machine = LogisticRegression(K).fit(X, three)
    p = machine.predict_proba(POOL)
    brute = [-sum(q * np.log(q) for q in row if q > 0) for row in p]
    np.testing.assert_allclose(EntropyQuery().scores(machine, POOL, X, SEED), brute)


def test_variances_against_a_dense_inverse():
    brute = brute_variance(K, X, POOL, 0.3)
    np.testing.assert_allclose(posterior_variance(K, X, POOL, 0.3), brute, atol=1e-12)
    machine = KernelRidge(0.3, K).fit(X, y)
    np.testing.assert_allclose(VarianceQuery().scores(machine, POOL, X, SEED), brute, atol=1e-12)
    given = VarianceQuery(K, 0.3).scores(None, POOL, X, SEED)
    np.testing.assert_allclose(given, brute, atol=1e-12)
    np.testing.assert_allclose(posterior_variance(K, X[:0], POOL, 0.3), 1.0)


def test_variances_of_a_machine_that_has_them():
    class Known(KernelRidge):
        def predict(self, X, return_std=False):
            mean = super().predict(X)
            return (mean, np.arange(len(mean), dtype=float)) if return_std else mean

    machine = Known(0.3, K).fit(X, y)
    assert VarianceQuery().scores(machine, POOL, X, SEED).argmax() == len(POOL) - 1


def test_variances_of_a_gaussian_process():
    mercer = pytest.importorskip("mercer")
    process = mercer.GaussianProcess(K, noise=0.3).fit(X, y)
    np.testing.assert_allclose(
        VarianceQuery().scores(process, POOL, X, SEED),
        brute_variance(K, X, POOL, 0.3),
        atol=1e-10,
    )


def test_several_rows_are_chosen_each_after_those_before():
    rule, chosen = VarianceQuery(K, 0.2), []
    for _ in range(5):
        known = np.vstack([X[:4], POOL[chosen]])
        variance = brute_variance(K, known, POOL, 0.2)
        variance[chosen] = -1.0
        chosen.append(int(variance.argmax()))
    assert rule.choose(None, POOL, X[:4], SEED, 5).tolist() == chosen
    assert rule.choose(None, POOL, X[:0], SEED, 20).tolist() != list(range(20))
    plain = np.argsort(-brute_variance(K, X[:4], POOL, 0.2))[:5].tolist()
    assert chosen != plain  # near rows say the same: the best five together are not the five best


def test_expected_change_of_a_ridge_is_that_of_refits():
    machine = KernelRidge(0.4, K, bias=False).fit(X, y)
    scores = ExpectedChangeQuery().scores(machine, POOL, X, SEED)
    f = machine.predict(POOL)
    variance = brute_variance(K, X, POOL, 0.4)
    draws = np.random.default_rng(1).standard_normal(20000)
    for i in (0, 3, 11):
        rows = np.vstack([X, POOL[i]])
        again = KernelRidge(0.4, K, bias=False).fit(rows, np.append(y, f[i] + 1.0))
        moved = again.dual_coef_ - np.append(machine.dual_coef_, 0.0)
        norm = np.sqrt(moved @ K(rows) @ moved)  # for a label that is off by one
        mean = np.abs(draws * np.sqrt(variance[i] + 0.4)).mean()
        np.testing.assert_allclose(scores[i], norm * mean, rtol=0.02)
        exact = norm * np.sqrt(2 / np.pi * (variance[i] + 0.4))
        np.testing.assert_allclose(scores[i], exact, rtol=1e-8)


def test_expected_change_of_a_classifier_is_that_of_gradients():
    machine = LogisticRegression(Linear(), penalty=0.5).fit(X, three)
    p = machine.predict_proba(POOL)
    scores = ExpectedChangeQuery().scores(machine, POOL, X, SEED)

    def loss(W, x, label):
        f = W @ x
        return np.log(np.exp(f).sum()) - f[label]

    for i in (0, 7):
        # weights that give these chances at x: any with the same differences of f
        W = np.outer(np.log(p[i]), POOL[i]) / (POOL[i] @ POOL[i])
        expected = 0.0
        for label in range(3):
            slope = np.zeros_like(W)
            for place in np.ndindex(*W.shape):
                e = np.zeros_like(W)
                e[place] = 1e-6
                slope[place] = (loss(W + e, POOL[i], label) - loss(W - e, POOL[i], label)) / 2e-6
            expected += p[i, label] * np.linalg.norm(slope)
        np.testing.assert_allclose(scores[i], expected, rtol=1e-6)


def test_a_classifier_without_a_kernel_is_taken_as_linear():
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression as Other

    machine = Other().fit(X, two)
    p = machine.predict_proba(POOL)
    wanted = 2 * np.sqrt(2) * p[:, 0] * p[:, 1] * np.sqrt(1 + np.sum(POOL**2, axis=1))
    scores = ExpectedChangeQuery().scores(machine, POOL, X, SEED)
    np.testing.assert_allclose(scores, wanted)
    thin = ExpectedChangeQuery().scores(machine, sparse.csr_array(POOL), X, SEED)
    np.testing.assert_allclose(thin, wanted)


def test_random_rows_are_a_permutation_of_the_pool():
    rule = RandomQuery()
    found = [rule.choose(None, POOL, X, np.random.RandomState(s), 20).tolist() for s in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert sorted(found[0]) == list(range(20))


def test_equal_rows_without_noise():
    rows = np.repeat(POOL[:2], 3, axis=0)
    found = posterior_variance(K, rows, rows, 0.0)
    np.testing.assert_allclose(found, 0.0, atol=1e-6)
    chosen = VarianceQuery(K, 1e-12).choose(None, rows, rows[:0], SEED, 6)
    assert sorted(chosen.tolist()) == list(range(6))


@pytest.mark.parametrize(
    ("rule", "machine", "said"),
    [
        (MarginQuery(), KernelRidge(0.1).fit(X, y), "MarginQuery: KernelRidge has no decision_fun"),
        (EntropyQuery(), SVC().fit(X, two), r"EntropyQuery: SVC has no predict_proba.*MarginQuery"),
        (VarianceQuery(), object(), r"VarianceQuery: object has no kernel; pass one"),
        (VarianceQuery(), SVC().fit(X, two), r"SVC has no single penalty.*noise=0\.1"),
        (ExpectedChangeQuery(), Perceptron(K).fit(X, two), "no single penalty"),
    ],
)
def test_rules_say_what_they_need(rule, machine, said):
    with pytest.raises(TypeError, match=said):
        rule.choose(machine, POOL, X, SEED, 1)
