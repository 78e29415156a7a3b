"""Finite classes, conjunctions, nets and the adversary: against brute force and simulation."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.theory import (
    Conjunctions,
    FiniteClass,
    HalfSpaces,
    Intervals,
    Rectangles,
    Sines,
    double_sampling_size,
    growth,
    is_shattered,
    no_free_lunch,
    play_adversary,
    sauer,
    vc_dimension,
)

tables = st.integers(1, 40).flatmap(
    lambda rows: st.lists(
        st.lists(st.booleans(), min_size=5, max_size=5), min_size=rows, max_size=rows
    )
)


# --- finite classes ------------------------------------------------------------------------------


@settings(max_examples=30)
@given(tables)
def test_growth_and_dimension_by_brute_force(table):
    concepts = FiniteClass(table)
    distinct = {tuple(row) for row in table}
    assert len(concepts) == len(distinct)
    dimension = 0
    for m in range(6):
        counts = [
            len({tuple(row[i] for i in chosen) for row in distinct})
            for chosen in combinations(range(5), m)
        ]
        assert concepts.growth(m) == max(counts)
        dimension = m if max(counts) == 2**m else dimension
        assert max(counts) <= sauer(concepts.vc_dimension(), m)
    assert concepts.vc_dimension() == dimension
    assert dimension <= concepts.dimension_bound().value  # log2 of their number
    assert vc_dimension(concepts, largest=5, trials=30) <= dimension


@pytest.mark.parametrize(
    ("hypotheses", "points", "vc"),
    [
        (Intervals(), np.arange(9.0), 2),
        (Rectangles(2), [[0, 1], [1, 0], [2, 1], [1, 2], [1, 1], [0, 0]], 4),
        (HalfSpaces(2), [[0, 0], [1, 0], [0, 1], [1, 1], [3, 2]], 3),
        (Conjunctions(2), Conjunctions(2).points(), 2),
        (Conjunctions(3), Conjunctions(3).points(), 3),
    ],
)
def test_classes_of_the_text_written_out(hypotheses, points, vc):
    concepts = FiniteClass.from_hypotheses(hypotheses, points)
    assert concepts.vc_dimension() == vc
    labels = [np.array(p) for p in product([False, True], repeat=min(len(points), 9))]
    rows = np.asarray(points, dtype=float).reshape(len(points), -1)
    assert len(concepts) == sum(hypotheses.realises(rows, y) for y in labels)
    assert concepts.growth(vc + 1) <= sauer(vc, vc + 1)


@given(st.integers(0, 2**31))
def test_learning_is_counting_errors(seed):
    draw = np.random.default_rng(seed)
    concepts = FiniteClass(draw.integers(0, 2, (12, 6)))
    points, labels = draw.integers(0, 6, 8), draw.integers(0, 2, 8).astype(bool)
    wrong = [(row[points] != labels).mean() for row in concepts.table]
    learnt = concepts.learn(points, labels)
    assert learnt.index == int(np.argmin(wrong))
    assert learnt.observed == min(wrong)
    assert learnt.consistent == sum(w == 0 for w in wrong)
    assert learnt.bound(0.05).value >= learnt.observed
    target = draw.integers(0, len(concepts))
    seen = concepts.consistent(points, concepts.table[target][points])
    assert seen[target]


@pytest.mark.parametrize("realisable", [True, False])
def test_the_sample_sizes_of_theorems_5_and_6(realisable):
    """Failures over many samples stay below delta, noisy labels in the second case."""
    draw, error, delta = np.random.default_rng(0), 0.2, 0.1
    concepts = FiniteClass.from_hypotheses(Intervals(), range(8))
    m = concepts.sample_size(error, delta, realisable=realisable).value
    weights = draw.dirichlet(np.ones(8))
    truth, noise = concepts.table[20], 0.0 if realisable else 0.25
    true_errors = noise + (1 - 2 * noise) * concepts.errors(truth, weights)
    failed = 0
    for _ in range(300):
        points = draw.choice(8, m, p=weights)
        labels = truth[points] ^ (draw.uniform(size=m) < noise)
        failed += true_errors[concepts.learn(points, labels).index] > true_errors.min() + error
    assert failed / 300 <= delta


def test_finite_classes_that_cannot_be():
    with pytest.raises(ValueError, match="row of True and False"):
        FiniteClass([[0, 2]])
    with pytest.raises(ValueError, match="row of True and False"):
        FiniteClass(np.zeros((0, 3)))
    concepts = FiniteClass(np.eye(3))
    for bad in ([3], [-1], [0.5], [np.nan]):
        with pytest.raises(ValueError, match="indices"):
            concepts.learn(bad, [True])
    with pytest.raises(ValueError, match="as many labels"):
        concepts.learn([0, 1], [True])
    with pytest.raises(ValueError, match="at least one example"):
        concepts.learn([], [])
    with pytest.raises(ValueError, match="weights"):
        concepts.errors(0, [1, -1, 1])
    with pytest.raises(ValueError, match="3 hypotheses"):
        concepts.errors(3)
    with pytest.raises(ValueError, match="growth"):
        concepts.growth(4)
    with pytest.raises(TypeError, match="such as HalfSpaces"):
        FiniteClass.from_hypotheses(Intervals, [0.0])
    assert repr(concepts) == "FiniteClass(3 hypotheses on 3 points)"
    assert not is_shattered(concepts, [0, 1])
    assert growth(concepts, 2) == 3


# --- nets ----------------------------------------------------------------------------------------


def test_points_half_an_epsilon_apart_are_a_net_of_intervals():
    """The example of the text: every interval of length above epsilon is hit."""
    population = (np.arange(40) + 0.5) / 40
    concepts = FiniteClass.from_hypotheses(Intervals(), population)
    epsilon = 0.2
    sample = np.arange(3, 40, 4)  # every epsilon / 2
    assert concepts.epsilon_net(sample, epsilon).is_net
    assert not concepts.epsilon_net(sample[[0, 1, 2, 6, 7, 8, 9]], epsilon).is_net
    assert concepts.epsilon_net([], epsilon).weight == pytest.approx(1.0)


@given(st.integers(0, 2**31), st.integers(0, 6))
def test_nets_by_brute_force(seed, m):
    draw = np.random.default_rng(seed)
    concepts = FiniteClass(draw.integers(0, 2, (15, 7)))
    weights, sample = draw.dirichlet(np.ones(7)), draw.integers(0, 7, m)
    target = int(draw.integers(0, len(concepts)))
    truth = concepts.table[target]
    missed = [
        weights[row != truth].sum()
        for row in concepts.table
        if not set(np.flatnonzero(row != truth)) & set(sample.tolist())
    ]
    net = concepts.epsilon_net(sample, 0.3, target, weights)
    assert net.weight == pytest.approx(max(missed))
    assert net.is_net == (max(missed) <= 0.3)
    # what a net promises: consistent hypotheses are good
    agree = concepts.consistent(sample, truth[sample])
    assert concepts.errors(target, weights)[agree].max() == pytest.approx(net.weight)
    assert ("is an" in str(net)) == net.is_net


def test_samples_of_the_theorem_are_nets():
    """`double_sampling_size` examples fail to be a net less often than delta; few often fail."""
    draw, epsilon, delta = np.random.default_rng(0), 0.2, 0.1
    concepts = FiniteClass.from_hypotheses(Intervals(), range(30))
    m = double_sampling_size(concepts.vc_dimension(), epsilon, delta).value
    # theorem 11 with the constants of Blumer and others (1989)
    largest = max(4 / epsilon * np.log2(2 / delta), 8 * 2 / epsilon * np.log2(13 / epsilon))
    assert m <= largest

    def fails(size):
        return np.mean(
            [
                not concepts.epsilon_net(draw.integers(0, 30, size), epsilon).is_net
                for _ in range(60)
            ]
        )

    assert fails(m) <= delta < 0.5 < fails(8)


# --- conjunctions --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
def test_there_are_3_to_the_n_conjunctions_and_the_one_that_never_holds(n):
    points = Conjunctions(n).points()
    assert len(FiniteClass.from_hypotheses(Conjunctions(n), points)) == 3**n + 1


@given(st.integers(0, 2**31), st.integers(1, 6))
def test_elimination_is_right_and_errs_at_most_n_plus_1_times(seed, n):
    draw = np.random.default_rng(seed)
    signs = draw.integers(-1, 2, n)  # negated, absent, present
    X = draw.integers(0, 2, (60, n))
    y = np.all((signs == 0) | (X == (signs > 0)), axis=1)
    online = Conjunctions(n).learn_online(X, y)
    bound = Conjunctions(n).mistake_bound()
    assert len(online.mistakes) <= bound.value == n + 1
    assert all(y[place] for place in online.mistakes)  # on positive examples alone
    batch = Conjunctions(n).learn(X, y)
    np.testing.assert_array_equal(batch.predict(X), y)
    assert batch == online.conjunction
    if y.any():
        assert set(np.flatnonzero(signs > 0)) <= batch.positive
        assert set(np.flatnonzero(signs < 0)) <= batch.negative


def test_any_learner_can_be_made_to_err_n_times():
    """Rows with one zero: the label is the contrary of what is predicted, and always possible."""
    n = 6
    rows = np.ones((n, n), dtype=int) - np.eye(n, dtype=int)
    answers = []
    for place in range(n):
        so_far = Conjunctions(n).learn_online(rows[:place], answers).conjunction
        answers.append(not bool(so_far.predict(rows[place : place + 1])[0]))
    assert len(Conjunctions(n).learn_online(rows, answers).mistakes) == n
    np.testing.assert_array_equal(Conjunctions(n).learn(rows, answers).predict(rows), answers)


def test_the_sample_size_of_conjunctions_is_enough():
    draw, n, error, delta = np.random.default_rng(0), 8, 0.1, 0.1
    m = Conjunctions(n).sample_size(error, delta).value
    assert m == int(np.ceil(np.log((3**n + 1) / delta) / error))
    everything, chance = Conjunctions(n).points(), draw.uniform(0.3, 0.7, n)
    weights = np.prod(np.where(everything, chance, 1 - chance), axis=1)
    truth = everything[:, 0].astype(bool) & ~everything[:, 3].astype(bool)
    failed = 0
    for _ in range(200):
        seen = draw.choice(len(everything), m, p=weights)
        found = Conjunctions(n).learn(everything[seen], truth[seen])
        failed += weights[found.predict(everything) != truth].sum() > error
    assert failed / 200 <= delta


def test_conjunctions_in_words_and_refusals():
    assert str(Conjunctions(2).learn([[1, 1], [0, 0]], [True, True])) == "always"
    assert str(Conjunctions(2).learn([[1, 1]], [False])) == "never"
    with pytest.raises(ValueError, match="row 2, which is negative"):
        Conjunctions(2).learn([[1, 1], [0, 0], [0, 1]], [True, True, False])
    with pytest.raises(ValueError, match="rows of 2"):
        Conjunctions(2).learn([[1, 1, 1]], [True])
    with pytest.raises(ValueError, match="2 labels"):
        Conjunctions(2).learn([[1, 1], [0, 0]], [True])
    with pytest.raises(ValueError, match="n=0"):
        Conjunctions(0)
    with pytest.raises(ValueError, match="2\\^30"):
        Conjunctions(30).points()


# --- the adversary of theorem 8 ------------------------------------------------------------------


def remember(guess):
    def learner(X, y, Z):
        seen = {float(x): label for x, label in zip(X[:, 0], y, strict=True)}
        return [seen.get(float(z), guess(X, y, z)) for z in Z[:, 0]]

    return learner


def nearest(X, y, z):
    return y[np.abs(np.log10(X[:, 0]) - np.log10(z)).argmin()]


LEARNERS = {
    "no": remember(lambda X, y, z: False),
    "majority": remember(lambda X, y, z: y.mean() > 0.5),
    "nearest": remember(nearest),
}


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_no_learner_beats_the_adversary(learner):
    points = Sines().draw(np.random.default_rng(0), 10)
    assert is_shattered(Sines(), points)
    game = play_adversary(learner, points, m=5, trials=800)
    assert game.mean == pytest.approx(game.bound.value, abs=4 * game.standard_error)
    assert game.bound.value == pytest.approx(0.5 * 0.9**5)
    assert game.mean > 0.25  # and a learner in the formal sense has at most 0.19
    assert game.failures(0.1) > 0.1
    assert "800 games" in str(game)


def test_the_mean_over_all_targets_and_samples_is_the_bound():
    """Brute force for m = 2: 2^4 targets, 4^2 samples."""
    points, errors = np.arange(4), []
    for truth in product([False, True], repeat=4):
        for sample in product(range(4), repeat=2):
            found = [truth[i] if i in sample else False for i in points]
            errors.append(np.mean(np.array(found) != truth))
    assert np.mean(errors) == pytest.approx(no_free_lunch(2).value)


@given(st.integers(1, 10**6))
def test_with_twice_as_many_points_a_quarter_is_lost(m):
    value = no_free_lunch(m).value
    assert 0.25 <= value <= 0.5 * np.exp(-0.5) + 1e-12
    assert no_free_lunch(m, points=1).vacuous


def test_games_that_cannot_be_played():
    with pytest.raises(ValueError, match="must be distinct"):
        play_adversary(LEARNERS["no"], [1.0, 1.0], m=1)
    with pytest.raises(ValueError, match="a label for each"):
        play_adversary(lambda X, y, Z: [True], [1.0, 2.0], m=1)
    with pytest.raises(ValueError, match="m=0"):
        no_free_lunch(0)
