"""Novelty detectors are tuned without labels: rows left out against artificial outliers."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import EnclosingBall, FitWarning, KernelRidge, OneClassSVM
from mercer.kernels import Gaussian, Spectrum
from mercer.selection import ArtificialOutliers, Tuned, cross_validate, default_grid, tune

RNG = np.random.default_rng(0)
ANGLE = RNG.uniform(0, 2 * np.pi, 240)
RING = 3 * np.column_stack([np.cos(ANGLE), np.sin(ANGLE)]) + 0.1 * RNG.normal(size=(240, 2))
SCALES = {"kernel__scale": [0.5, 5.0]}


class Recorder:
    """A detector that keeps the rows it is asked for."""

    def __init__(self):
        self.seen = []

    def __sklearn_tags__(self):
        return OneClassSVM().__sklearn_tags__()

    def score_samples(self, X):
        self.seen.append(X)
        return np.zeros(X.shape[0])


def artificial(X, **options):
    machine = Recorder()
    assert ArtificialOutliers()(machine, X, **options) == pytest.approx(0.5)  # all ties
    return machine.seen[1]


def test_artificial_rows_have_the_mean_and_twice_the_covariance_of_the_rows():
    X = RNG.normal(size=(500, 3)) @ RNG.normal(size=(3, 3)) + [5.0, -2.0, 0.0]
    made = artificial(X)
    spread = np.sqrt(np.diag(np.cov(X.T)))
    np.testing.assert_allclose(made.mean(axis=0), X.mean(axis=0), atol=0.2 * spread.max())
    np.testing.assert_allclose(np.diag(np.cov(made.T)) / spread**2, 2.0, rtol=0.15)
    np.testing.assert_array_equal(made, artificial(X))


def test_artificial_rows_have_the_form_of_the_rows():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(RING, columns=["a", "b"])
    made = artificial(table)
    assert list(made.columns) == ["a", "b"]
    np.testing.assert_array_equal(made, artificial(RING))
    np.testing.assert_allclose(artificial(csr_array(RING)).toarray(), artificial(RING))


def test_rows_without_weight_do_not_count():
    machine, weights = OneClassSVM(Gaussian(0.5)).fit(RING[:120]), np.repeat([2.0, 0.0], [100, 20])
    score = ArtificialOutliers()
    weighed = score(machine, RING[120:], sample_weight=weights)
    assert weighed == pytest.approx(score(machine, RING[120:220]), abs=1e-12)


@pytest.mark.parametrize(
    "machine", [OneClassSVM(Gaussian(1.0), nu=0.1), EnclosingBall(Gaussian(1.0))]
)
def test_a_hollow_ring_needs_the_smaller_scale(machine):
    found = tune(machine, RING, grid=SCALES)
    assert found.best_params == {"kernel__scale": 0.5}
    assert found.best_score > 0.85 > found.scores.mean(axis=1).min()
    assert "threshold of predict" in str(found)
    again = tune(machine, RING, grid=SCALES)
    np.testing.assert_array_equal(found.scores, again.scores)


def test_tuned_detectors_of_any_kind_have_a_score():
    pipe = make_pipeline(StandardScaler(), OneClassSVM(nu=0.1))
    tuned = Tuned(pipe, cv=3).fit(RING)
    assert set(tuned.best_params_) == {"oneclasssvm__kernel"}
    assert isinstance(tuned.scorer_, ArtificialOutliers)
    assert tuned.score(RING) > 0.85
    forest = IsolationForest(n_estimators=10, random_state=0)
    assert tune(forest, RING, grid={"max_samples": [20, 60]}, cv=2).best_score > 0.5
    assert cross_validate(OneClassSVM(Gaussian(0.5)), RING).scores.mean() > 0.85


def test_digits_of_an_unseen_kind_are_ranked_nearly_as_by_the_best_scale():
    X, y = load_digits(return_X_y=True)
    common = RNG.permutation(np.flatnonzero(y != 3))
    train, test = common[:400], np.concatenate([common[400:900], np.flatnonzero(y == 3)])

    def area(machine):
        return roc_auc_score(y[test] != 3, machine.score_samples(X[test]))

    tuned = Tuned(OneClassSVM(nu=0.1), cv=3).fit(X[train])
    every = default_grid(OneClassSVM(), X[train]).points()
    best = max(area(OneClassSVM(nu=0.1, **point).fit(X[train])) for point in every)
    assert area(tuned) > best - 0.02
    assert area(tuned) > area(OneClassSVM(nu=0.1).fit(X[train])) + 0.15

    held = common[900:]
    machine = tuned.best_estimator_
    assert (machine.predict(X[held]) < 0).mean() > 0.5  # why the border is taken from other rows
    machine.offset_ = np.quantile(machine.score_samples(X[held]), 0.1)
    assert (machine.predict(X[test][:500]) < 0).mean() < 0.15
    assert (machine.predict(X[test][500:]) < 0).mean() > 0.8
    assert machine.certificate_.ok


def test_nu_is_tuned_with_labels_only():
    assert set(default_grid(OneClassSVM(), RING).parts[0]) == {"kernel"}
    assert set(default_grid(EnclosingBall(), RING).parts[0]) == {"kernel"}
    assert set(default_grid(OneClassSVM("linear"), RING).parts[0]) == {"nu"}
    assert set(default_grid(OneClassSVM(), RING, np.ones(240)).parts[0]) == {"nu", "kernel"}


def test_rows_that_cannot_be_added_are_refused():
    options = {"cv": 2, "error_score": "raise"}
    with pytest.raises(ValueError, match=r"precomputed.*scoring="):
        tune(OneClassSVM("precomputed"), RING @ RING.T, grid={"nu": [0.1, 0.2]}, **options)
    words = ["abcab", "bcabc", "cabca", "abcbc", "bcbca", "cacab"]
    with pytest.raises(ValueError, match=r"numeric samples.*scoring="):
        tune(OneClassSVM(Spectrum(2)), words, grid={"nu": [0.5, 0.9]}, **options)
    with pytest.raises(ValueError, match="at least 3 samples, got 1; use fewer, larger folds"):
        tune(OneClassSVM(), RING[:8], grid={"nu": [0.5]}, cv="loo", error_score="raise")


def test_labels_are_never_left_out_of_account():
    with pytest.raises(TypeError, match="scoring"):
        tune(OneClassSVM(), RING, np.ones(240))


def test_the_scorer_of_a_tuned_machine_is_that_of_the_tuning():
    tuned = Tuned(KernelRidge(kernel=Gaussian(1.0)), {"penalty": [0.1, 1.0]}, cv="loo")
    tuned.fit(RING[:30], RING[:30, 0])
    error = np.mean((tuned.predict(RING[30:60]) - RING[30:60, 0]) ** 2)
    assert tuned.score(RING[30:60], RING[30:60, 0]) == pytest.approx(-error)


def test_scales_that_are_only_tried_raise_no_warning(recwarn):
    grid = {"kernel": [Gaussian(1e-3), Gaussian(0.5)]}
    tuned = Tuned(OneClassSVM(), grid).fit(RING)
    assert tuned.best_params_ == {"kernel": Gaussian(0.5)}
    assert not recwarn.list
    with pytest.warns(FitWarning, match="nearly the identity"):
        Tuned(OneClassSVM(), {"kernel": [Gaussian(1e-3)]}).fit(RING)  # what is chosen still warns
