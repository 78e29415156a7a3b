"""Maximum entropy: the loaded die, duality, borders, and targets that nobody can meet."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, special
from sklearn.base import clone

from mercer import MaximumEntropy, ParameterError, certify, solve
from mercer.problems import Expectations, GibbsAnswer, InfeasibleError
from mercer.solvers import EntropyNewton, IterativeScaling, Status
from mercer.theory import relative_entropy

FACES = np.arange(1, 7)
METHODS = ["newton", "scaling"]
quick = settings(max_examples=25, deadline=None)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mean", [1.5, 3.5, 4.2, 4.5, 5.9])
def test_the_loaded_die(method, mean):
    """p_i = x^i / sum x^j with the root of a polynomial."""
    die = MaximumEntropy(method=method).fit(FACES, mean)
    x = optimize.brentq(lambda x: x**FACES @ (FACES - mean), 1e-6, 1e3, xtol=1e-15)
    np.testing.assert_allclose(die.probabilities_, x**FACES / (x**FACES).sum(), atol=1e-7)
    assert die.multipliers_[0] == pytest.approx(np.log(x), abs=1e-6)
    assert die.expectations_[0] == pytest.approx(mean, abs=1e-7)
    assert die.entropy_ == pytest.approx(special.entr(die.probabilities_).sum())
    assert die.relative_entropy_ == pytest.approx(np.log(6) - die.entropy_, abs=1e-9)
    quantities = die.certificate_.quantities
    assert die.certificate_.ok
    assert quantities.primal == pytest.approx(quantities.dual, abs=1e-7)
    partition = special.logsumexp(die.multipliers_ * FACES) - np.log(6)
    assert die.log_partition_ == pytest.approx(partition, abs=1e-9)


def test_the_die_of_jaynes():
    die = MaximumEntropy().fit(FACES, [4.5])
    expected = [0.05435, 0.07877, 0.11416, 0.16545, 0.23977, 0.34749]
    np.testing.assert_allclose(die.probabilities_, expected, atol=6e-6)
    assert die.entropy_ == pytest.approx(1.61358, abs=1e-5)


def test_a_prior_that_is_not_uniform():
    prior = np.array([1, 1, 2, 2, 3, 3.0])
    die = MaximumEntropy(prior=prior).fit(FACES, [3.0])
    ratio = np.diff(np.log(die.probabilities_ / prior))
    np.testing.assert_allclose(ratio, ratio[0], atol=1e-8)
    assert die.relative_entropy_ == pytest.approx(
        relative_entropy(die.probabilities_, prior / prior.sum()), rel=1e-9
    )
    nothing = MaximumEntropy(prior=prior).fit(FACES, [FACES @ prior / prior.sum()])
    np.testing.assert_allclose(nothing.probabilities_, prior / prior.sum(), atol=1e-9)
    absent = MaximumEntropy(prior=[1, 1, 1, 1, 1, 0]).fit(FACES, [4.0])
    assert absent.probabilities_[5] == 0


def cases(seed, n=12, m=3):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, m)) * rng.choice([0.1, 1.0, 30.0], m)
    p = rng.dirichlet(np.ones(n))
    return F, p, rng.dirichlet(np.full(n, 2.0))


@quick
@given(seed=st.integers(0, 10**6))
def test_against_a_general_optimiser(seed):
    F, p, prior = cases(seed, n=6, m=2)
    ours = MaximumEntropy(prior=prior).fit(F, p @ F)
    assert ours.certificate_.ok
    # no feasible distribution is closer: p itself, and moves within the constraints
    assert ours.relative_entropy_ <= special.rel_entr(p, prior).sum() + 1e-9
    free = np.linalg.svd(np.c_[F / np.abs(F).max(axis=0), np.ones(6)].T)[2][3:]
    for way in free:
        moved = ours.probabilities_ + 1e-4 * ours.probabilities_.min() * way
        assert special.rel_entr(moved, prior).sum() >= ours.relative_entropy_ - 1e-12


@quick
@given(seed=st.integers(0, 10**6))
def test_duality_with_maximum_likelihood(seed):
    """The most likely member of the exponential family, found without any constraint."""
    F, p, prior = cases(seed)
    F = F / np.abs(F).max(axis=0)
    ours = MaximumEntropy(prior=prior).fit(F, p @ F)

    def loss(m):  # of data with frequencies p
        scores = np.log(prior) + F @ m
        q = special.softmax(scores)
        return -(p @ (scores - special.logsumexp(scores))), (q - p) @ F

    best = optimize.minimize(loss, np.zeros(3), jac=True, options={"gtol": 1e-10})
    np.testing.assert_allclose(
        special.softmax(np.log(prior) + F @ best.x), ours.probabilities_, atol=1e-6
    )


@quick
@given(seed=st.integers(0, 10**6))
def test_both_methods_agree(seed):
    F, p, prior = cases(seed, n=8, m=2)
    p = 0.5 * p + 0.5 / 8  # well inside
    problem = Expectations(F, p @ F, prior)
    newton = solve(problem, EntropyNewton())
    scaling = solve(problem, IterativeScaling(tol=1e-9))
    assert newton.status is scaling.status is Status.SOLVED
    np.testing.assert_allclose(newton.value.probabilities, scaling.value.probabilities, atol=1e-6)
    assert certify(problem, scaling.value).ok
    assert newton.iterations <= scaling.iterations


@pytest.mark.parametrize("method", METHODS)
def test_targets_on_the_border(method):
    six = MaximumEntropy(method=method).fit(FACES, [6])
    assert six.at_border_
    assert six.probabilities_.tolist() == [0, 0, 0, 0, 0, 1]
    assert six.certificate_.ok
    assert six.certificate_.quantities.pushed_out == 5
    grid = np.array([(a, b) for a in range(4) for b in range(4)], dtype=float)
    edge = MaximumEntropy(method=method).fit(grid, [3.0, 1.2])
    assert edge.at_border_
    on_edge = grid[:, 0] == 3
    assert (edge.probabilities_[~on_edge] == 0).all()
    line = MaximumEntropy(method=method).fit(np.arange(4.0), [1.2])
    np.testing.assert_allclose(edge.probabilities_[on_edge], line.probabilities_, atol=1e-7)
    assert edge.certificate_.ok


@pytest.mark.parametrize("method", METHODS)
def test_impossible_targets_are_proved_impossible(method):
    with pytest.raises(InfeasibleError, match="cannot be 7: its feature lies between 1 and 6"):
        MaximumEntropy(method=method).fit(FACES, [7])
    squares = np.c_[FACES, FACES**2]
    with pytest.raises(InfeasibleError, match="separates the targets") as caught:
        MaximumEntropy(method=method).fit(squares, [3.5, 10.0])  # a variance below zero
    error = pickle.loads(pickle.dumps(caught.value))
    gaps = (squares - [3.5, 10.0]) @ error.direction
    assert gaps.max() == pytest.approx(-error.margin)
    assert error.margin > 0
    with pytest.raises(ValueError, match="MaximumEntropy: no distribution"):
        MaximumEntropy(method=method).fit(np.c_[FACES, 2 * FACES], [4.5, 9.1])


@pytest.mark.parametrize("method", METHODS)
def test_constraints_that_repeat_others(method):
    twice = MaximumEntropy(method=method).fit(np.c_[FACES, 2 * FACES, np.ones(6)], [4.5, 9.0, 1.0])
    once = MaximumEntropy(method=method).fit(FACES, [4.5])
    np.testing.assert_allclose(twice.probabilities_, once.probabilities_, atol=1e-7)
    assert twice.certificate_.ok


def test_points_of_any_kind():
    words = ["a", "bb", "cc", "ddd"]
    by_list = MaximumEntropy([len, lambda w: w == "cc"]).fit(words, [2.0, 0.1])
    by_one = MaximumEntropy(lambda w: [len(w), w == "cc"]).fit(words, [2.0, 0.1])
    np.testing.assert_array_equal(by_list.probabilities_, by_one.probabilities_)
    assert by_list.expectation(len) == pytest.approx(2.0)
    assert by_list.expectation(lambda w: w == "cc") == pytest.approx(0.1)
    np.testing.assert_allclose(by_list.expectation(np.eye(4)), by_list.probabilities_)
    drawn = by_list.sample(5000, random_state=0)
    assert np.mean([len(w) for w in drawn]) == pytest.approx(2.0, abs=0.05)
    faces = MaximumEntropy().fit(FACES, [4.5]).sample(5000, random_state=0)
    assert faces.mean() == pytest.approx(4.5, abs=0.1)


def test_one_constraint_after_another():
    """A later constraint with the earlier answer as prior: the closest to what was believed."""
    first = MaximumEntropy().fit(FACES, [4.5])
    second = MaximumEntropy(lambda x: x % 2, prior=first.probabilities_).fit(FACES, [0.5])
    scale = np.where(FACES % 2, 0.5 / first.expectation(FACES % 2), 0.0)
    scale += np.where(FACES % 2, 0.0, 0.5 / (1 - first.expectation(FACES % 2)))
    np.testing.assert_allclose(second.probabilities_, scale * first.probabilities_, atol=1e-8)


def test_many_points_and_large_numbers():
    x = 1e6 + np.linspace(0, 1e-2, 20_001)
    found = MaximumEntropy().fit(x, [1e6 + 2e-3])
    assert found.certificate_.ok
    assert found.probabilities_ @ (x - 1e6) == pytest.approx(2e-3, rel=1e-6)
    # almost the exponential distribution of mean 2e-3, cut at 1e-2
    normal = np.linspace(-8, 8, 4001)
    bell = MaximumEntropy().fit(np.c_[normal, normal**2], [0.5, 1.25])
    density = np.exp(-0.5 * (normal - 0.5) ** 2)
    np.testing.assert_allclose(bell.probabilities_, density / density.sum(), atol=1e-8)


def test_certificates_refuse_what_is_wrong():
    problem = Expectations(FACES[:, None].astype(float), np.array([4.5]), np.full(6, 1 / 6))
    good = solve(problem).value
    assert certify(problem, good).ok
    assert not certify(problem, replace(good, multipliers=good.multipliers + 0.1)).ok
    uniform = GibbsAnswer(np.zeros(1), np.full(6, 1 / 6), np.zeros(1))
    assert not certify(problem, uniform).ok
    feasible = GibbsAnswer(np.zeros(1), np.array([0, 0, 0.5, 0, 0, 0.5]), np.zeros(1))
    judged = certify(problem, feasible)
    assert judged.quantities.infeasibility <= 1e-12
    assert not judged.ok
    assert judged.quantities.gap > 0.1
    assert not certify(problem, replace(good, probabilities=-good.probabilities)).ok
    # a direction that proves nothing pushes nothing out
    assert certify(problem, replace(good, direction=np.ones(1))).ok


def test_stopping_cloning_and_refusals():
    with pytest.warns(UserWarning, match="callback asked"):
        stopped = MaximumEntropy(method="scaling", callback=lambda p: True).fit(FACES, [4.5])
    assert not stopped.certificate_.ok
    with pytest.warns(UserWarning, match="iteration limit"):
        MaximumEntropy(method="scaling", max_iter=3).fit(FACES, [4.5])
    machine = MaximumEntropy(len, prior=[1, 2], tol=1e-8)
    assert clone(machine).get_params()["prior"] == [1, 2]
    copied = pickle.loads(pickle.dumps(MaximumEntropy().fit(FACES, [4.5])))
    assert copied.certificate_.ok
    with pytest.raises(ParameterError, match="method='gis'"):
        MaximumEntropy(method="gis").fit(FACES, [4.5])
    with pytest.raises(ParameterError, match="prior"):
        MaximumEntropy(prior=[1, 2]).fit(FACES, [4.5])
    with pytest.raises(ParameterError, match="some point a positive probability"):
        MaximumEntropy(prior=np.zeros(6)).fit(FACES, [4.5])
    with pytest.raises(ParameterError, match="list of functions"):
        MaximumEntropy([1]).fit(FACES, [4.5])
    with pytest.raises(ValueError, match="one number for each of the 1 feature"):
        MaximumEntropy().fit(FACES, [4.5, 1.0])
    with pytest.raises(ValueError, match=r"entry \(1, 0\) is nan"):
        MaximumEntropy().fit([1.0, np.nan], [1.0])
    with pytest.raises(ValueError, match="pass features"):
        MaximumEntropy().fit(["a", "b"], [1.0])


def test_the_way_back_from_a_step_too_far():
    """A first step that leaves a point no variance; its direction must not be taken for none."""
    points = np.array([[2.0, -1, -1], [-2, 0, 2], [2, -1, 1]])
    p = np.array([0.0605, 0.9345, 0.005])
    prior = np.array([0.264, 0.016, 0.72])
    found = MaximumEntropy(prior=prior).fit(points, p @ points)
    assert found.solution_.status is Status.SOLVED
    np.testing.assert_allclose(found.probabilities_, p, atol=1e-9)  # the only one there is


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_averages_of_points_are_always_possible(seed):
    """Also on borders, among repeated points, and next to a large common part."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 11), rng.integers(1, 5)
    F = rng.integers(-2, 3, (n, m)) * 10.0 ** rng.integers(-3, 4, m)
    F = F + rng.choice([0.0, 1.0, 1e3])
    p = rng.dirichlet(np.ones(n)) * (rng.uniform(size=n) < rng.choice([0.3, 1.0]))
    p = p / p.sum() if p.any() else np.full(n, 1.0 / n)
    found = MaximumEntropy(prior=rng.dirichlet(np.ones(n))).fit(F, p @ F)
    assert found.solution_.status is Status.SOLVED
    assert found.certificate_.ok


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("short", [1e-9, 1e-10, 1e-12, -1e-10])
def test_targets_next_to_the_border(method, short):
    """Not farther from it than the tolerance: solved, without a word."""
    six = MaximumEntropy(method=method).fit(FACES, [6 - short])
    assert six.solution_.status is Status.SOLVED
    assert six.certificate_.ok
    np.testing.assert_allclose(six.probabilities_, [0, 0, 0, 0, 0, 1], atol=2e-9)


def test_refusals_show_all_digits():
    with pytest.raises(InfeasibleError, match=r"cannot be 6\.000001: .* between 1 and 6 "):
        MaximumEntropy().fit(FACES, [6.000001])


def test_tables_generators_and_copies_of_points():
    squares = np.c_[FACES, FACES**2].astype(float)
    table = pd.DataFrame(squares, columns=["face", "square"])
    wanted = MaximumEntropy().fit(squares, [4.5, 23.0])
    for X in (table, sparse.csr_array(squares)):
        found = MaximumEntropy().fit(X, [4.5, 23.0])
        np.testing.assert_allclose(found.probabilities_, wanted.probabilities_)
        assert found.sample(3, random_state=0).shape == (3, 2)
        assert found.expectation(lambda row: row[0]) == pytest.approx(4.5)
    once = MaximumEntropy(float).fit((face for face in FACES), [4.5])
    assert once.expectation(float) == pytest.approx(4.5)
    assert len(once.sample(2)) == 2
    mine = FACES.astype(float)
    kept = MaximumEntropy().fit(mine, [4.5])
    mine[:] = 0.0
    assert kept.expectation(lambda x: x) == pytest.approx(4.5)


def test_refusals_name_what_is_wrong():
    fitted = MaximumEntropy().fit(FACES, [4.5])
    for wrong in (["x"], [4.5 + 1j], np.array([4.5 + 1j])):
        with pytest.raises(ValueError, match="MaximumEntropy: targets must hold real numbers"):
            MaximumEntropy().fit(FACES, wrong)
    with pytest.raises(ValueError, match="MaximumEntropy: features must hold real numbers"):
        MaximumEntropy().fit(FACES + 1j, [4.5])
    for wrong in (["a"] * 6, np.ones(6) + 1j):
        with pytest.raises(ParameterError, match="MaximumEntropy: prior="):
            MaximumEntropy(prior=wrong).fit(FACES, [4.5])
    with pytest.raises(ValueError, match=r"feature 0 at point 0 .* divide"):
        MaximumEntropy().fit([-1.7e308, 0.0, 1.7e308], [1e308])
    with pytest.raises(ValueError, match="X must be a sequence of points, not float"):
        MaximumEntropy().fit(3.0, [3.0])
    with pytest.raises(ValueError, match="for each of the 6 points"):
        fitted.expectation([1.0, 2.0])
    with pytest.raises(ParameterError, match="n_samples=-1"):
        fitted.sample(-1)
    large = MaximumEntropy(prior=np.full(6, 1e308)).fit(FACES, [4.5])
    np.testing.assert_allclose(large.probabilities_, fitted.probabilities_)


@pytest.mark.parametrize(
    ("points", "p"),
    [
        (  # three points, so three of the four columns follow from the others but for rounding
            [
                [1100.0, 999.9998, 1000.0, 1000.000001],
                [1000.0, 999.9998, 999.98, 999.999999],
                [1200.0, 1000.0002, 999.98, 1000.000002],
            ],
            [0.7, 0.25, 0.05],
        ),
        (  # an edge of the points, and the target off it by rounding
            [[1e4 + 1e-6, 9e3], [1e4 - 1e-6, 11e3], [1e4 - 1e-6, 8e3], [1e4 - 2e-6, 9e3]],
            [0.0, 0.0, 0.842, 0.158],
        ),
        ([[1e16, 1.0], [1e16, 2.0], [1e16, 3.0]], [0.2, 0.3, 0.5]),  # nothing but a common part
    ],
    ids=["redundant", "border", "constant"],
)
def test_rounding_makes_nothing_impossible(points, p):
    points = np.array(points)
    found = MaximumEntropy().fit(points, p @ points)
    assert found.solution_.status is Status.SOLVED
    assert found.certificate_.ok
    at = points - points.mean(axis=0)
    width = np.maximum(np.abs(at).max(axis=0), 1e-300)
    np.testing.assert_allclose(found.probabilities_ @ at / width, p @ at / width, atol=1e-5)


def test_features_near_the_largest_number_are_not_taken_for_their_targets():
    rng = np.random.default_rng(3)
    X = (np.concatenate([rng.normal(size=70), rng.normal(9, 1, 75)])[:, None] + 1e8) * 1e300
    b = rng.dirichlet(np.ones(145)) @ X
    machine = MaximumEntropy().fit(X, b)
    off = np.abs(machine.probabilities_ @ X - b) / np.ptp(X)
    assert machine.certificate_.ok and off[0] < 1e-6


@pytest.mark.parametrize("method", ["newton", "scaling"])
@pytest.mark.parametrize("seed", range(4))
def test_features_known_to_few_digits_do_not_pull_at_those_known_to_all(seed, method):
    """Next to a common part of 1e8 columns keep 0 to 16 digits, and some repeat others."""
    rng = np.random.default_rng(seed)
    line = np.linspace(-1, 1, 3 + seed)[:, None] ** np.arange(1, 8)
    X = np.abs(line * 10.0 ** rng.uniform(-8, 8, 7) + 1e8)
    b = rng.dirichlet(np.ones(len(X))) @ X
    machine = MaximumEntropy(method=method).fit(X, b)
    off = np.abs(machine.probabilities_ @ X - b)
    known = 1e-5 * np.ptp(X, axis=0) + 1e-13 * np.abs(X).max(axis=0)
    assert machine.certificate_.ok and machine.solution_.status is Status.SOLVED
    assert (off <= known).all()
