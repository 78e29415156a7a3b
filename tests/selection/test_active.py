"""The loop: what it asks, when it stops, and that it needs fewer labels than chance."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from mercer import SVC, KernelRidge, LogisticRegression, ParameterError
from mercer.data import Table
from mercer.kernels import Gaussian, Spectrum
from mercer.selection import ActiveEnding, ActiveLearner, MarginQuery, RandomQuery

DIGITS = load_digits()
LINE = np.linspace(0, 1, 101)[:, None]
SIDES = (LINE[:, 0] > 0.37).astype(int)


def started(rule="margin", machine=None, rows=LINE, labels=SIDES):
    learner = ActiveLearner(machine or SVC("linear", C=1e6), rows, rule)
    learner.teach([0, len(labels) - 1], labels[[0, -1]])
    return learner


def test_margins_halve_an_interval():
    learner = started()
    asked = []
    learner.run(lambda index: asked.extend(index) or SIDES[index], budget=9)
    assert len(asked) == 7 and asked[0] == 50 and asked[1] in (25, 26)
    assert (learner.machine_.predict(LINE) == SIDES).all()
    assert learner.machine_.certificate_.ok
    assert learner.labelled_.tolist() == [0, 100, *asked]
    np.testing.assert_array_equal(learner.labels_, SIDES[learner.labelled_])
    assert [done.labels for done in learner.rounds_] == list(range(2, 10))


def needed(rule, seed, share):
    """Return how many labels a rule needs until so many labels of new digits are right."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(DIGITS.data))
    pool, test = order[:600], order[600:1100]
    X, y = DIGITS.data / 16, DIGITS.target
    learner = ActiveLearner(SVC(Gaussian(1.5), C=10.0), X[pool], rule, random_state=seed)
    start = rng.choice(600, 20, replace=False)
    learner.teach(start, y[pool][start])
    learner.run(
        y[pool],
        budget=260,
        batch=10,
        callback=lambda now: np.mean(now.machine_.predict(X[test]) == y[test]) >= share,
    )
    return len(learner.labelled_)


def test_fewer_labels_than_chance_on_digits():
    ours = [needed("margin", seed, 0.95) for seed in range(3)]
    chance = [needed("random", seed, 0.95) for seed in range(3)]
    assert np.mean(ours) <= 0.7 * np.mean(chance), (ours, chance)
    assert all(a <= b for a, b in zip(ours, chance, strict=True))


def test_variance_covers_an_interval_better_than_chance():
    X = np.linspace(-3, 3, 200)[:, None]
    y = np.sin(3 * X[:, 0])

    def error(rule, seed=0):
        machine = KernelRidge(1e-4, Gaussian(0.5), bias=False)
        learner = ActiveLearner(machine, X, rule, random_state=seed)
        learner.teach([0], y[:1])
        learner.run(y, budget=14)
        return np.abs(learner.machine_.predict(X) - y).max()

    chance = np.mean([error("random", seed) for seed in range(5)])
    assert error("variance") < 0.3 * chance
    assert error("expected_change") < 0.3 * chance


# --- ends -----------------------------------------------------------------------------------------


def test_no_row_within_the_margin_ends_it():
    X = np.concatenate([np.linspace(-3, -1, 40), np.linspace(1, 3, 40)])[:, None]
    y = (X[:, 0] > 0).astype(int)
    learner = started(rows=X, labels=y)
    assert learner.run(y, stop_outside_margin=True) is ActiveEnding.NOTHING_IN_MARGIN
    assert len(learner.labelled_) < 10
    assert (np.abs(learner.machine_.decision_function(X[learner.pool])) >= 1).all()
    # the fit to all rows is the same machine: no other label could have changed it
    everything = SVC("linear", C=1e6).fit(X, y)
    np.testing.assert_allclose(
        learner.machine_.decision_function(X), everything.decision_function(X), atol=1e-3
    )


def test_calm_budget_and_an_empty_pool():
    learner = started()
    assert learner.run(SIDES, tol=0.0) is ActiveEnding.CALM
    assert [done.change for done in learner.rounds_[-3:]] == [0.0, 0.0, 0.0]
    assert np.isnan(learner.rounds_[0].change)
    before = len(learner.labelled_)
    assert learner.run(SIDES, budget=before + 3, batch=2) is ActiveEnding.BUDGET
    assert len(learner.labelled_) == before + 3
    assert learner.run(SIDES, batch=50) is ActiveEnding.POOL_IS_EMPTY
    assert not len(learner.pool) and not len(learner.query(3))
    assert learner.ending_ is ActiveEnding.POOL_IS_EMPTY


def test_many_classes_have_no_such_margin():
    y = np.digitize(LINE[:, 0], [0.3, 0.6])
    learner = ActiveLearner(SVC(), LINE)
    learner.teach([0, 50, 100], y[[0, 50, 100]])
    with pytest.raises(ParameterError, match="binary classifier; pass tol or budget"):
        learner.run(y, stop_outside_margin=True)


def test_before_two_classes_are_known_rows_are_random():
    learner = ActiveLearner(SVC(), LINE, MarginQuery(), random_state=3)
    first = learner.query(2)
    again = ActiveLearner(SVC(), LINE, MarginQuery(), random_state=3).query(2)
    np.testing.assert_array_equal(first, again)
    learner.teach([0], [0])
    assert learner.machine_ is None and learner.labelled_.tolist() == [0]
    assert 0 not in learner.query(100)
    assert learner.run(SIDES, budget=20) is ActiveEnding.BUDGET
    assert learner.machine_ is not None


# --- rows of every form, errors -------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_array, Table.of], ids=["a", "csr", "table"]
)
def test_rows_of_every_form(form):
    X, y = DIGITS.data[:200] / 16, DIGITS.target[:200] % 2
    learner = ActiveLearner(LogisticRegression(), form(X), "entropy")
    learner.teach([0, 1], y[:2])
    learner.run(y, budget=6, batch=2)
    plain = ActiveLearner(LogisticRegression(), X, "entropy")
    plain.teach([0, 1], y[:2])
    plain.run(y, budget=6, batch=2)
    np.testing.assert_array_equal(learner.labelled_, plain.labelled_)


def test_words():
    words = ["abab", "baba", "xyxy", "yxyx", "abxy", "aabb", "xxyy"]
    learner = ActiveLearner(SVC(Spectrum(2)), words)
    learner.teach([0, 2], ["a", "x"])
    learner.run(lambda index: ["a" if "ab" in words[i] else "x" for i in index], budget=5)
    assert len(learner.labelled_) == 5


def test_what_fails_changes_nothing():
    learner = started()
    before = dict(vars(learner))

    def interrupt(index):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.run(interrupt, budget=5)
    with pytest.raises(ValueError, match="same length"):
        learner.teach([1, 2], [0])
    with pytest.raises(ValueError, match="same length"):
        learner.teach([1.5], [0])
    with pytest.raises(ValueError, match="must be from 0 to 100"):
        learner.teach([101], [0])
    with pytest.raises(ValueError, match="already labeled"):
        learner.teach([0], [0])
    with pytest.raises(ValueError, match="already labeled"):
        learner.teach([1, 1], [0, 0])
    with pytest.raises(ValueError):
        ActiveLearner(KernelRidge(), LINE, "variance").teach([0], [np.nan])
    assert {k: v is before[k] for k, v in vars(learner).items()} == dict.fromkeys(before, True)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a: a.run(SIDES, budget=0), "budget=0 must be a positive integer"),
        (lambda a: a.run(SIDES, batch=None), "batch=None"),
        (lambda a: a.run(SIDES, batch=True), "batch=True"),
        (lambda a: a.run(SIDES, tol=-1), "tol=-1"),
        (lambda a: a.query(0), "count=0"),
    ],
)
def test_wrong_options(call, said):
    with pytest.raises(ParameterError, match=said):
        call(started())


def test_rules_by_name():
    with pytest.raises(ValueError, match="rule='best' must be one of 'margin', 'entropy'"):
        ActiveLearner(SVC(), LINE, "best")
    assert ActiveLearner(SVC(), LINE, "random").rule == RandomQuery()


def test_a_callback_that_stops_is_named_as_the_end():
    learner = ActiveLearner(SVC(), LINE)
    learner.teach([0, 100], SIDES[[0, 100]])
    assert learner.run(SIDES, budget=20, callback=lambda _: True) is ActiveEnding.STOPPED
    assert len(learner.labelled_) == 3


def test_too_few_labels_are_refused_before_any_is_asked_for():
    learner = ActiveLearner(SVC(), LINE)
    with pytest.raises(ValueError, match="labels of the 101 samples"):
        learner.run(SIDES[:5], budget=20)
    assert not len(learner.labelled_)
