"""Figures of merit against scikit-learn's."""

import numpy as np
import pytest
from sklearn import metrics as theirs

from mercer.fitting.evaluation import (
    Answers,
    calibration_of,
    classification_metrics,
    confusion_of,
    regression_metrics,
    roc_of,
)

RNG = np.random.default_rng(1)


def answers_of(k, n=150):
    labels = np.array(["a", "b", "c"][:k])
    truth = labels[RNG.integers(0, k, n)]
    p = RNG.dirichlet(np.ones(k), n) + 0.7 * (truth[:, None] == labels)
    p /= p.sum(axis=1, keepdims=True)
    scores = np.log(p[:, 1] / p[:, 0]) if k == 2 else p
    return Answers(truth, labels[p.argmax(axis=1)], scores, p), labels.tolist()


@pytest.mark.parametrize("k", [2, 3])
def test_figures_of_classifiers_are_those_of_scikit_learn(k):
    answers, classes = answers_of(k)
    shares = np.full(k, 1 / k)
    found = {one.name: one for one in classification_metrics(answers, classes, shares, 0)}
    truth, said, p = answers.truth, answers.predictions, answers.probabilities
    assert found["accuracy"].value == pytest.approx(theirs.accuracy_score(truth, said))
    balanced = theirs.balanced_accuracy_score(truth, said)
    assert found["balanced accuracy"].value == pytest.approx(balanced)
    assert found["log loss"].value == pytest.approx(theirs.log_loss(truth, p, labels=classes))
    assert found["log loss"].baseline == pytest.approx(np.log(k))
    score = answers.scores if k == 2 else p
    area = theirs.roc_auc_score(truth, score, multi_class="ovr", labels=classes)
    assert found["area under the ROC curve"].value == pytest.approx(area)
    if k == 2:
        brier = theirs.brier_score_loss(truth == "b", p[:, 1])
        assert found["Brier score"].value == pytest.approx(brier)
    for one in found.values():
        assert one.low <= one.value <= one.high
    np.testing.assert_array_equal(
        confusion_of(answers, classes), theirs.confusion_matrix(truth, said, labels=classes)
    )


def test_figures_of_regressions_are_those_of_scikit_learn():
    y = 100.0 + RNG.normal(size=200)
    said = y + 0.5 * RNG.normal(size=200)
    rmse, mae, r2 = regression_metrics(Answers(y, said), 100.0, 0)
    assert rmse.value == pytest.approx(theirs.root_mean_squared_error(y, said))
    assert mae.value == pytest.approx(theirs.mean_absolute_error(y, said))
    assert r2.value == pytest.approx(theirs.r2_score(y, said))
    assert rmse.baseline == pytest.approx(np.sqrt(np.mean((y - 100.0) ** 2)))
    for one in (rmse, mae, r2):
        assert one.low < one.value < one.high


def test_no_error_among_few_rows_is_no_certainty():
    truth = np.array(["a"] * 10 + ["b"] * 10)
    found = classification_metrics(Answers(truth, truth), ["a", "b"], np.full(2, 0.5), 0)
    balanced = next(one for one in found if one.name == "balanced accuracy")
    assert balanced.low == pytest.approx(0.7225, abs=1e-4), "Wilson's, of 10 out of 10"
    assert balanced.value == balanced.high == 1.0


def test_classes_that_do_not_come_are_left_aside():
    answers = Answers(np.array(["a"] * 5), np.array(["a"] * 4 + ["b"]), np.arange(5.0))
    found = classification_metrics(answers, ["a", "b"], np.array([0.5, 0.5]), 0)
    assert [one.name for one in found] == ["accuracy", "balanced accuracy"]
    assert found[1].value == pytest.approx(0.8)
    assert roc_of(answers, ["a", "b"]) is None


def test_the_calibration_table_counts_every_row():
    p = RNG.random(1000)
    truth = np.where(RNG.random(1000) < p, "yes", "no")
    answers = Answers(truth, truth, None, np.column_stack([1 - p, p]))
    table = calibration_of(answers, ["no", "yes"])
    assert table.count.sum() == 1000
    assert table.error < 0.05
    inside = (table.low <= table.predicted) & (table.predicted <= table.high)
    assert inside.sum() >= 8
