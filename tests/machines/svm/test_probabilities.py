"""Probabilities: never against the decision, calibrated out of sample, alike for copies."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from mercer import SVC
from mercer.kernels import Gaussian, Linear
from mercer.machines.svm.multiclass import couple_pairs
from mercer.machines.svm.probabilities import (
    FOLDS,
    OutOfFoldValues,
    fold_order,
    fold_shares,
    in_order,
    slopes_of,
)


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def digits():
    rows, y = load_digits(return_X_y=True)
    return rows[:700] / 16.0, y[:700]


def moons(n=400, noise=0.4, seed=0):
    return make_moons(n, noise=noise, random_state=seed)


SETS = {
    "two": (*moons(), Gaussian(0.7)),
    "ten": (*digits(), Gaussian(1.5)),
    "uneven": (
        *make_classification(
            500, 8, n_informative=4, n_classes=3, weights=[0.8, 0.15, 0.05], random_state=0
        ),
        Gaussian(2.0),
    ),
    "few": (load_iris().data[::10], load_iris().target[::10], Linear()),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_b20_three_answers_agree_on_every_row(name, multiclass):
    rows, y, kernel = SETS[name]
    machine = SVC(kernel, multiclass=multiclass, probability=True).fit(rows, y)
    draw = np.random.default_rng(0)
    far = rows[draw.integers(0, len(rows), 300)] + 3 * draw.standard_normal((300, rows.shape[1]))
    for new in (rows, far, np.zeros((1, rows.shape[1]))):
        p, predicted = machine.predict_proba(new), machine.predict(new)
        assert p.shape == (len(new), len(machine.classes_))
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_array_equal(machine.classes_[p.argmax(axis=1)], predicted)
        decision = machine.decision_function(new)
        if decision.ndim == 1:
            decision = np.column_stack([-decision, decision])
        np.testing.assert_array_equal(machine.classes_[decision.argmax(axis=1)], predicted)
        # and in every row the order of all classes is the same
        order = np.argsort(-decision, axis=1, kind="stable")
        assert (np.diff(np.take_along_axis(p, order, axis=1), axis=1) <= 1e-12).all()
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(machine.predict_log_proba(new), np.log(p))


def test_b20_monotone_in_the_decision():
    rows, y = moons()
    machine = SVC(Gaussian(0.7), probability=True).fit(rows, y)
    grid = np.random.default_rng(1).uniform(-3, 3, (2000, 2))
    f, p = machine.decision_function(grid), machine.predict_proba(grid)[:, 1]
    order = np.argsort(f)
    assert (np.diff(p[order]) >= 0).all()
    assert (np.diff(p[order][np.abs(f[order]) < 3]) > 0).mean() > 0.99
    assert ((p > 0.5) == (f > 0)).all()


def test_b20_a_few_rows_of_each_class():
    """Platt's own two-parameter fit turns predictions around on sets like this."""
    rows = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    y = np.array([0, 0, 0, 1, 1, 1])
    for C in (0.01, 1.0, 100.0):
        machine = SVC(Linear(), C=C, probability=True).fit(rows, y)
        p = machine.predict_proba(rows)
        np.testing.assert_array_equal(p.argmax(axis=1), machine.predict(rows))
        assert (np.diff(p[:, 1]) >= 0).all()


@pytest.mark.parametrize("ratio", [(3, 1), (1, 1), (999, 1)])
def test_b5_contradictory_copies_have_the_frequencies_of_their_classes(ratio):
    places = np.random.default_rng(0).standard_normal((6, 2)) * 10
    more, less = ratio
    rows = np.vstack([places, places])
    y = np.append(np.arange(6) % 2, 1 - np.arange(6) % 2)  # each place has its own majority
    weights = np.append(np.full(6, more * 100.0), np.full(6, less * 100.0))
    machine = SVC(Gaussian(1.0), probability=True).fit(rows, y, sample_weight=weights)
    p = machine.predict_proba(places)
    np.testing.assert_allclose(p[np.arange(6), np.arange(6) % 2], more / (more + less), atol=0.005)


def test_copies_and_order_change_no_bit():
    rows, y = moons(120)
    weights = np.arange(120) % 4
    index = np.random.default_rng(0).permutation(np.repeat(np.arange(120), weights))
    machine = SVC(Gaussian(0.7), probability=True)
    weighted = clone(machine).fit(rows, y, sample_weight=weights)
    repeated = clone(machine).fit(rows[index], y[index])
    np.testing.assert_array_equal(weighted.predict_proba(rows), repeated.predict_proba(rows))
    again = clone(machine).fit(rows, y, sample_weight=weights)
    np.testing.assert_array_equal(weighted.predict_proba(rows), again.predict_proba(rows))


@pytest.mark.parametrize("options", [{}, {"slack": "l2"}, {"nu": 0.5}, {"C": np.inf}])
def test_every_form_has_probabilities(options):
    rows, y = moons(200, noise=0.05 if "C" in options else 0.3)
    machine = SVC(Gaussian(0.4), probability=True, **options).fit(rows, y)
    p = machine.predict_proba(rows)
    assert np.isfinite(p).all()
    assert log_loss(y, p) < 0.5


def test_calibrated_out_of_sample():
    """With noise in the labels, what is said to be 80 % sure is right in about 80 of 100."""
    draw = np.random.default_rng(0)
    rows = draw.uniform(-2, 2, (3000, 1))
    truth = 1 / (1 + np.exp(-3 * rows[:, 0]))
    y = (draw.uniform(size=3000) < truth).astype(int)
    machine = SVC(Gaussian(1.0), probability=True).fit(rows[:1500], y[:1500])
    p = machine.predict_proba(rows[1500:])[:, 1]
    assert np.abs(p - truth[1500:]).mean() < 0.08
    sure = (p > 0.7) & (p < 0.9)
    assert y[1500:][sure].mean() == pytest.approx(p[sure].mean(), abs=0.1)
    assert log_loss(y[1500:], p) < log_loss(y[1500:], truth[1500:]) + 0.05


def test_overfitting_machines_are_not_sure_of_themselves():
    """In sample every label of noise is fitted; out of sample nothing is known."""
    draw = np.random.default_rng(0)
    rows, y = draw.standard_normal((300, 5)), draw.integers(0, 2, 300)
    machine = SVC(Gaussian(0.5), C=1e3, probability=True).fit(rows, y)
    assert machine.score(rows, y) == 1
    assert machine.predict_proba(rows).max() < 0.85


def test_asked_for_too_late_or_not_at_all():
    rows, y = moons(60)
    plain = SVC().fit(rows, y)
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError):
        plain.predict_proba(rows)
    with pytest.raises(NotFittedError, match="call fit again"):
        plain.set_params(probability=True).predict_proba(rows)
    with pytest.raises(NotFittedError):
        SVC(probability=True).predict_proba(rows)


# --- parts -------------------------------------------------------------------------------------


def test_folds_share_out_weights():
    ends, weights = np.array([0, 7, 12]), np.array([1, 2, 0.5, 2.5, 7, 1, 1, 1, 12.25, 1, 3, 0.1])
    shares = fold_shares(ends, weights)
    assert shares.shape == (12, FOLDS)
    np.testing.assert_allclose(shares.sum(axis=1), weights)
    assert (shares[weights <= 1] > 0).sum(axis=1).tolist() == [1] * 7
    assert (shares[8] >= 2).all()  # twelve copies and a quarter
    codes = np.repeat([0, 1], [7, 5])
    order = fold_order(codes)
    assert sorted(order.tolist()) == list(range(12))
    assert (codes[order] == codes).all()
    assert order[:7].tolist() == [0, 5, 1, 6, 2, 3, 4]


def test_slopes():
    """Rows at f = 1, three in four right: the sigmoid must say (75 + 1) / (100 + 2)."""
    values, signs = np.full(100, 1.0), np.where(np.arange(100) < 75, 1.0, -1.0)
    below, above = slopes_of(OutOfFoldValues(values, signs, np.ones(100)))
    assert 1 / (1 + np.exp(-above)) == pytest.approx(76 / 102)
    assert 0 < below < 1e-5  # nothing is known of that side
    below, above = slopes_of(OutOfFoldValues(-values, signs, np.ones(100)))
    assert 0 < below < 1e-5  # mostly wrong: flat, not turned around


def test_coupling_gives_back_what_pairs_were_made_of():
    draw = np.random.default_rng(0)
    p = draw.dirichlet(np.ones(6), size=50)
    first, second = np.triu_indices(6, 1)
    pairs = p[:, second] / (p[:, first] + p[:, second])
    np.testing.assert_allclose(couple_pairs(pairs, first, second, 6), p, atol=1e-9)
    sure = couple_pairs(np.zeros((1, 15)), first, second, 6)
    assert sure.argmax() == 0
    assert couple_pairs(np.empty((0, 15)), first, second, 6).shape == (0, 6)


def test_handing_out_in_order():
    p = np.array([[0.2, 0.5, 0.3], [1 / 3, 1 / 3, 1 / 3]])
    decision = np.array([[3.0, 1.0, 2.0], [0.0, 0.1, 0.2]])
    found = in_order(p, decision)
    np.testing.assert_allclose(found[0], [0.5, 0.2, 0.3])
    assert found[1].argmax() == 2


def test_a_stop_during_calibration_is_said_and_leaves_usable_probabilities():
    rows, y = moons()
    done = SVC(Gaussian(0.7)).fit(rows, y).solution_.iterations

    class Late:
        """Stops what comes after the fit itself."""

        def __init__(self):
            self.calls = 0

        def __call__(self, progress):
            self.calls += 1
            return self.calls > 1

    assert done > 0
    with pytest.warns(ConvergenceWarning, match="calibrated out of sample"):
        machine = SVC(Gaussian(0.7), probability=True, callback=Late()).fit(rows, y)
    assert machine.solution_.status.ok
    p = machine.predict_proba(rows)
    assert p.max() > 0.8 and (p.argmax(axis=1) == machine.predict(rows)).all()


def test_values_of_the_smallest_numbers_have_probabilities():
    values, signs = np.repeat([-4e-323, 4e-323], 20), np.repeat([-1.0, 1.0], 20)
    assert np.isfinite(slopes_of(OutOfFoldValues(values, signs, np.ones(40)))).all()
