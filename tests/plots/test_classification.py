import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import brier_score_loss, confusion_matrix, roc_auc_score, roc_curve

from mercer import SVC, GaussianClassifier, KernelRidge, LogisticRegression
from mercer.kernels import Gaussian
from mercer.plots import CalibrationDisplay, ConfusionMatrixDisplay, RocCurveDisplay
from mercer.selection import choose_threshold

X, CODES = make_moons(200, noise=0.4, random_state=0)
Y = np.array(["no", "yes"])[CODES]
MACHINE = SVC(Gaussian(1.0)).fit(X[:100], Y[:100])
NEW, TRUTH = X[100:], Y[100:]


def axes():
    return Figure(layout="constrained").subplots()


def test_the_curve_is_scikit_learns():
    shown = RocCurveDisplay.from_estimator(MACHINE, NEW, TRUTH, ax=axes())
    score = MACHINE.decision_function(NEW)
    false, true, cut = roc_curve(TRUTH == "yes", score, drop_intermediate=False)
    assert np.allclose(shown.line_.get_xdata(), false)
    assert np.allclose(shown.line_.get_ydata(), true)
    assert np.allclose(shown.thresholds[1:], cut[1:])
    assert np.isclose(shown.area, roc_auc_score(TRUTH, score))


def test_the_threshold_of_predict_is_marked():
    shown = RocCurveDisplay.from_estimator(MACHINE, NEW, TRUTH, ax=axes())
    called = MACHINE.predict(NEW) == "yes"
    (mark,) = shown.marks_
    assert np.isclose(mark.get_xdata()[0], called[TRUTH == "no"].mean())
    assert np.isclose(mark.get_ydata()[0], called[TRUTH == "yes"].mean())


def test_the_cheapest_threshold_and_weights():
    score, weights = MACHINE.decision_function(NEW), np.arange(100) % 3
    shown = RocCurveDisplay.from_predictions(
        TRUTH, score, sample_weight=weights, threshold=0.5, false_negative_cost=10.0, ax=axes()
    )
    best = choose_threshold(TRUTH, score, false_negative_cost=10.0, sample_weight=weights)
    assert shown.chosen[1] == best and len(shown.marks_) == 2
    assert np.isclose(shown.area, roc_auc_score(TRUTH, score, sample_weight=weights))


def test_the_positive_class_may_be_the_first():
    shown = RocCurveDisplay.from_estimator(MACHINE, NEW, TRUTH, pos_label="no", ax=axes())
    called = MACHINE.predict(NEW) == "no"
    score = -MACHINE.decision_function(NEW)
    assert np.isclose(shown.area, roc_auc_score(TRUTH == "no", score))
    assert np.isclose(shown.chosen[0].true_positive, called[TRUTH == "no"].mean())
    with pytest.raises(ValueError, match="pos_label='maybe' is not among the labels"):
        RocCurveDisplay.from_estimator(MACHINE, NEW, TRUTH, pos_label="maybe")


def test_probabilities_serve_where_there_is_no_decision():
    class Probable(LogisticRegression):
        decision_function = property()

    machine = Probable().fit(X[:100], Y[:100])
    shown = RocCurveDisplay.from_estimator(machine, NEW, TRUTH, ax=axes())
    assert np.isclose(shown.area, roc_auc_score(TRUTH, machine.predict_proba(NEW)[:, 1]))
    assert shown.chosen[0].value == 0.5


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bins_are_scikit_learns(strategy):
    machine = LogisticRegression().fit(X[:100], Y[:100])
    prob = machine.predict_proba(NEW)[:, 1]
    shown = CalibrationDisplay.from_estimator(
        machine, NEW, TRUTH, n_bins=6, strategy=strategy, ax=axes()
    )
    observed, predicted = calibration_curve(TRUTH == "yes", prob, n_bins=6, strategy=strategy)
    assert np.allclose(shown.points_.get_offsets(), np.column_stack([predicted, observed]))
    assert shown.counts.sum() == 100
    assert np.isclose(shown.brier, brier_score_loss(TRUTH == "yes", prob))


def test_wilson_intervals():
    shown = CalibrationDisplay.from_predictions([0, 1, 1, 1], [0.6] * 4, n_bins=1, ax=axes())
    low, high = shown.intervals[:, 0]  # Wilson (1927) for 3 of 4
    assert (round(low, 4), round(high, 4)) == (0.3006, 0.9544)


def test_one_class_of_several_against_the_rest():
    iris, label = load_iris(return_X_y=True)
    machine = GaussianClassifier().fit(iris, label)
    shown = CalibrationDisplay.from_estimator(machine, iris, label, pos_label=1, ax=axes())
    total = (shown.observed * shown.counts).sum()
    assert np.isclose(total, 50) and shown.label == "1"
    with pytest.raises(ValueError, match="the model has 3 classes; choose one with pos_label="):
        CalibrationDisplay.from_estimator(machine, iris, label)


def test_confusions_are_counted():
    shown = ConfusionMatrixDisplay.from_estimator(MACHINE, NEW, TRUTH, ax=axes())
    expected = confusion_matrix(TRUTH, MACHINE.predict(NEW))
    assert np.array_equal(shown.matrix, expected)
    assert np.allclose(shown.image_.get_array(), expected / expected.sum(axis=1, keepdims=True))
    written = [int(text.get_text().split()[0]) for text in shown.texts_]
    assert written == expected.ravel().tolist()
    assert ConfusionMatrixDisplay.from_predictions([1], [1], ax=axes()).matrix.tolist() == [[1]]
    many = np.arange(40) % 8
    large = ConfusionMatrixDisplay.from_predictions(many, np.roll(many, 1), ax=axes())
    assert len(large.texts_) == 8  # zeros are left out


def test_judgements_that_are_refused():
    iris, label = load_iris(return_X_y=True)
    three = GaussianClassifier().fit(iris, label)
    with pytest.raises(ValueError, match="has 3; use ConfusionMatrixDisplay"):
        RocCurveDisplay.from_estimator(three, iris, label)
    ridge = KernelRidge().fit(X, CODES)
    for display in (RocCurveDisplay, CalibrationDisplay, ConfusionMatrixDisplay):
        with pytest.raises(TypeError, match="needs a classifier, got KernelRidge"):
            display.from_estimator(ridge, X, CODES)
    with pytest.raises(TypeError, match="SVC gives no probabilities; pass probability=True"):
        CalibrationDisplay.from_estimator(MACHINE, NEW, TRUTH)
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        CalibrationDisplay.from_predictions([0, 1], [0.5, 1.5])
    with pytest.raises(ValueError, match="2 labels, 1 probabilities"):
        CalibrationDisplay.from_predictions([0, 1], [0.5])
    with pytest.raises(ValueError, match="n_bins=0 must be"):
        CalibrationDisplay.from_predictions([0, 1], [0.5, 0.6], n_bins=0)
    with pytest.raises(ValueError, match="threshold=nan must be a number"):
        RocCurveDisplay.from_predictions([0, 1], [0.5, 0.6], threshold=np.nan)
    with pytest.raises(ValueError, match="2 true and 1 predicted labels"):
        ConfusionMatrixDisplay.from_predictions([0, 1], [0])
    with pytest.raises(ValueError, match="Mix of label input types"):
        ConfusionMatrixDisplay.from_predictions([0, 1], ["0", "1"])
    with pytest.raises(ValueError, match="strategy='other'"):
        CalibrationDisplay.from_predictions([0, 1], [0.5, 0.6], strategy="other")
