"""From a table to a model: figures, honesty, programs, and tables with faults."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from helpers.mixed_tables import labelled, measured
from scipy import sparse

import mercer
from mercer import KernelRidge, LogisticRegression, NearestNeighbors
from mercer.approximation import Nystrom
from mercer.data import Table, read
from mercer.fitting import evaluate, fit, split
from mercer.kernels import Gaussian

QUICK = {"kernels": ["linear", "gaussian"], "cv": 3}


@pytest.fixture(scope="module")
def classifier():
    return fit(labelled(), "sick", **QUICK)


@pytest.fixture(scope="module")
def regression():
    return fit(measured(), "cost", **QUICK)


# --- what comes out --------------------------------------------------------------------------


def test_a_classifier_is_good_judged_and_certified(classifier):
    model = classifier
    assert (model.task, model.classes, model.positive) == ("classification", ("no", "yes"), "yes")
    assert model.certificate.ok
    found = model.evaluation
    assert found.kind == "held-out"
    assert found["accuracy"].value > 0.8 > found["accuracy"].baseline
    assert found["accuracy"].low < found["accuracy"].value < found["accuracy"].high
    assert found.confusion.sum() == len(found.truth) == model.settings.held_out_rows
    assert found.roc.area == pytest.approx(found["area under the ROC curve"].value)
    assert found.importance[0].column in ("size", "town")
    assert {one.column for one in found.importance} == {"size", "noise", "town", "shade"}
    held_out = model.table.rows(found.rows)
    assert held_out["sick"].tolist() == found.truth.tolist()
    assert model.predict(held_out).tolist() == found.predictions.tolist()
    p = model.predict_proba(held_out)
    np.testing.assert_array_equal(p, found.probabilities)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert ((p[:, 1] > 0.5) == (model.predict(held_out) == "yes")).all()


def test_a_regression_is_good_judged_and_certified(regression):
    model = regression
    assert model.task == "regression"
    assert isinstance(model.machine, KernelRidge)
    assert model.certificate.ok
    found = model.evaluation
    assert found["R^2"].value > 0.7
    assert found["root mean squared error"].value < found["root mean squared error"].baseline
    np.testing.assert_allclose(found.residuals, found.truth - found.predictions)
    with pytest.raises(AttributeError, match="probabilities"):
        model.predict_proba(model.table)
    with pytest.raises(AttributeError, match="decision values"):
        model.decision_function(model.table)


def test_everything_that_was_decided_is_said(classifier):
    text = "\n".join(classifier.notes)
    for part in (
        "classification",
        "positive class is 'yes'",
        "held out",
        "median",
        "'town'",
        "SVC",
    ):
        assert part in text
    assert "Selected: " in text
    assert set(classifier.settings.seconds) >= {"check", "prepare", "choose", "train", "evaluate"}
    assert classifier.settings.options == {"kernels": "['linear', 'gaussian']", "cv": "3"}
    assert "accuracy" in str(classifier) and "certified" in str(classifier)
    again = pickle.loads(pickle.dumps(classifier))
    assert again.predict(labelled()).tolist() == classifier.predict(labelled()).tolist()


def test_a_column_that_gives_the_target_away_is_said():
    table = labelled()
    table["result"] = np.where(table["sick"] == "yes", "A", "B").astype(object)
    model = fit(table, "sick", tune=False)
    assert "leak" in model.findings.codes
    assert any("'result' may leak 'sick'" in one for one in model.notes)


def test_bounds_hold_for_all_that_was_compared(classifier, regression):
    held_out, margin = classifier.bounds
    assert held_out.value > 1 - classifier.evaluation["accuracy"].value
    assert any("candidates were fixed" in one for one in margin.assumptions)
    assert regression.bounds == ()


# --- the equivalent program ------------------------------------------------------------------


def run(model, table):
    space = {"table": Table.of(table)}
    exec(model.python, space)
    return space


def test_the_program_is_the_model_bit_for_bit(classifier, regression):
    for model, table in ((classifier, labelled()), (regression, measured())):
        again = run(model, table)["model"]
        new = Table.of(table)
        np.testing.assert_array_equal(again.predict(new), model.predict(new))
    decision = run(classifier, labelled())["model"].decision_function(Table.of(labelled()))
    np.testing.assert_array_equal(decision, classifier.decision_function(labelled()))


def test_the_program_of_other_ways(tmp_path):
    path = tmp_path / "sick.csv"
    pd.DataFrame(labelled(150)).to_csv(path, index=False)
    model = fit(
        path, "sick", kinds={"noise": "category"}, drop=["shade"], positive="no",
        costs=(1.0, 5.0), refit=True, machine=LogisticRegression(), kernels=[Gaussian(2.0)],
    )  # fmt: skip
    assert model.classes == ("yes", "no")
    assert "refit" in model.settings.options
    assert model.settings.trained_rows == 150
    again = run(model, {})
    table = read(path)
    np.testing.assert_array_equal(again["predict"](table), model.predict(table))
    value = model.decision_function(table)
    assert ((value >= model.threshold) == (model.predict(table) == "no")).all()


def test_features_in_place_of_the_kernel():
    """They are honoured, said, and in the program; a machine without them refuses them in words."""
    table = labelled(150)
    model = fit(table, "sick", kernels=["gaussian"], cv=3, approximation=Nystrom(12))
    machine = model.machine
    assert machine.kernel_.phi.dimension == 12
    assert any("12 features" in note and "approximation=None" in note for note in model.notes)
    assert "Nystrom(n_components=12" in model.certificate.statement
    again = run(model, table)["model"]
    np.testing.assert_array_equal(again.predict(Table.of(table)), model.predict(table))
    with pytest.raises(ValueError, match="NaiveBayes does not support approximation"):
        fit(table, "sick", machine=mercer.NaiveBayes(), approximation="nystrom:9")
    with pytest.raises(ValueError, match="did you mean 'nystrom'"):
        fit(table, "sick", approximation="nystroem")


# --- honesty ---------------------------------------------------------------------------------


def test_rows_held_out_touch_nothing_that_is_learnt():
    table = Table.of(labelled())
    rows = split(table, "sick", task="classification").held_out_rows
    changed = {name: np.array(table[name]) for name in table.columns}
    changed["size"][rows] = 1e6
    changed["town"][rows] = "Nowhere"
    # the same rows must be held out, so they are given as another table
    train = np.setdiff1d(np.arange(len(table)), rows)
    models = [
        fit(table.rows(train), "sick", test=Table.of(one).rows(rows), **QUICK)
        for one in (labelled(), changed)
    ]
    assert models[0].evaluation.kind == "test table"
    a, b = (model.pipeline for model in models)
    np.testing.assert_array_equal(a[0].means_, b[0].means_)
    assert a[0].plan_ == b[0].plan_
    np.testing.assert_array_equal(a[-1].dual_coef_, b[-1].dual_coef_)
    assert models[0].evaluation["accuracy"].value != models[1].evaluation["accuracy"].value


def test_the_order_of_rows_changes_no_bit(classifier):
    table = Table.of(labelled())
    turned = table.rows(np.random.default_rng(3).permutation(len(table)))
    other = fit(turned, "sick", **QUICK)
    assert other.evaluation.metrics == classifier.evaluation.metrics
    np.testing.assert_array_equal(
        other.decision_function(table), classifier.decision_function(table)
    )


def test_the_order_of_columns_changes_rounding_only(regression):
    table = Table.of(measured())
    other = fit(table[table.columns[::-1]], "cost", **QUICK)
    assert sorted(other.evaluation.rows) == sorted(regression.evaluation.rows)
    np.testing.assert_allclose(other.predict(table), regression.predict(table), rtol=1e-8)


def test_tables_of_any_kind_give_one_answer(classifier, tmp_path):
    frame = pd.DataFrame(labelled())
    path = tmp_path / "sick.csv"
    frame.to_csv(path, index=False)
    for table in (frame, path, Table.of(frame)):
        other = fit(table, "sick", **QUICK)
        np.testing.assert_array_equal(
            other.decision_function(frame), classifier.decision_function(labelled())
        )


# --- tables that are not as they should be ---------------------------------------------------


def test_words_among_numbers_of_the_target_are_named():
    x = np.random.default_rng(0).normal(size=60)
    y = [*map(str, x[:58].round(6)), "unknown", "unknown"]
    for task in (None, "regression"):
        with pytest.raises(ValueError, match=r"58 of its 60 .* 'unknown'.*missing='unknown'"):
            fit({"x": x, "y": y}, "y", task=task)


def test_rows_without_target_and_tiny_classes_are_left_out_and_said():
    table = labelled(120)
    table["sick"][:10], table["sick"][10] = None, "perhaps"
    model = fit(table, "sick", tune=False)
    assert model.settings.rows == 109
    assert model.classes == ("no", "yes")
    text = "\n".join(model.notes)
    assert "10 of 120 rows have no target" in text
    assert "perhaps" in text
    lost = [one.message for one in model.findings if one.code == "left-out"]
    assert len(lost) == 2, "the command and the report show findings, not notes"
    again = run(model, table)["model"]
    np.testing.assert_array_equal(again.predict(Table.of(table)), model.predict(table))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sick": ["yes"] * 120}, "'yes' in every row"),
        ({"sick": [None] * 120}, "missing in every row"),
        ({"sick": ["yes"] * 119 + ["no"]}, "has 1 row"),
        ({"sick": pd.date_range("2020-01-01", periods=120)}, "dates"),
        ({"sick": [f"name{k}" for k in range(120)]}, "row"),
    ],
)
def test_targets_that_cannot_be_learnt_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        fit(labelled(120) | change, "sick")


def test_other_refusals():
    table = labelled(120)
    for wrong, message in (
        ({"target": "nothing"}, "is not a column"),
        ({"task": "guess"}, "task='guess'"),
        ({"test": 1.5}, "test=1.5"),
        ({"machine": KernelRidge()}, "does not support the task"),
        ({"machine": KernelRidge}, "must be an estimator"),
        ({"positive": "maybe"}, "positive='maybe'"),
        ({"kernels": ["wavelet!"]}, "neither a family"),
        ({"kernels": []}, "is empty"),
        ({"costs": (1.0, -1.0)}, "costs"),
        ({"time_limit": -1}, "time_limit"),
        ({"cv": 1}, "cv=1"),
        ({"task": "regression"}, "requires numbers"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            fit(table, **({"target": "sick"} | wrong))
    with pytest.raises(ValueError, match="no columns other than"):
        fit({"y": ["a", "b"] * 20}, "y")
    with pytest.raises(ValueError, match="nothing to learn"):
        fit({"x": [1.0, 2.0] * 20, "y": [1.0] * 40}, "y", task="regression")


def test_ten_rows_are_judged_by_cross_validation():
    for table, target in ((labelled(10, 3), "sick"), (measured(10), "cost")):
        model = fit(table, target)
        assert model.evaluation.kind == "cross-validated"
        assert len(model.evaluation.truth) == 10
        assert model.settings.held_out_rows == 0
        assert "cross-validation" in "\n".join(model.notes)
        again = run(model, table)["model"]
        np.testing.assert_array_equal(again.predict(Table.of(table)), model.predict(table))


def test_whole_numbers_are_classes_where_they_are_few():
    columns = labelled(150)
    columns["sick"] = (columns["sick"] == "yes").astype(float) + (np.arange(150) % 2)
    model = fit(columns, "sick", tune=False)
    assert model.classes == (0, 1, 2)
    assert "task='regression'" in model.notes[0]
    assert model.predict(columns).dtype.kind == "i"
    quantity = fit(columns, "sick", task="regression", tune=False)
    assert quantity.task == "regression"
    assert any("only 3 distinct values" in one for one in quantity.notes)


def test_many_words_that_repeat_are_categories():
    words = np.array([f"k{k % 30}" for k in range(300)], dtype=object)
    x = np.random.default_rng(0).normal(size=300)
    table = Table.of({"word": words, "x": x, "y": np.where(np.arange(300) % 2, "a", "b")})
    assert table.kinds["word"] is mercer.data.Kind.CATEGORY
    model = fit(table, "y", kernels=["linear"])
    assert model.evaluation["accuracy"].value > 0.95
    again = run(model, table)["model"]
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


def test_text_alone_and_more_columns_than_rows():
    rng = np.random.default_rng(0)
    words = np.array(["salt", "oil", "pepper", "rain", "wind", "sun"])
    chances = ([0.3, 0.3, 0.3, 0.04, 0.03, 0.03], [0.04, 0.03, 0.03, 0.3, 0.3, 0.3])
    texts = [" ".join(rng.choice(words, 8, p=chances[k % 2])) for k in range(120)]
    model = fit({"t": texts, "y": ["kitchen", "sky"] * 60}, "y", kernels=["linear"])
    assert model.evaluation["accuracy"].value > 0.9
    X = rng.normal(size=(60, 220))
    wide = {f"g{k}": X[:, k] for k in range(220)} | {"y": X[:, 0] + X[:, 1]}
    model = fit(wide, "y", kernels=["linear"])
    assert len(model.evaluation.importance) == 100
    assert "100 of 220 columns" in model.evaluation.importance_note


# --- other machines, limits, progress --------------------------------------------------------


def test_machines_of_all_sorts():
    table = labelled()
    model = fit(table, "sick", machine=NearestNeighbors(), kernels=["gaussian"])
    assert model.evaluation.roc is not None
    assert model.evaluation["area under the ROC curve"].value > 0.8
    plain = fit(table, "sick", calibrate=False, tune=False)
    assert plain.evaluation.probabilities is None
    assert plain.choice is None
    with pytest.raises(AttributeError, match="calibrate=True"):
        plain.predict_proba(table)


def test_new_rows_may_lack_levels_and_have_new_ones(classifier):
    new = {
        "size": [0.5, np.nan],
        "noise": [0.0, 0.0],
        "town": ["Atlantis", None],
        "shade": ["red"] * 2,
    }
    assert set(classifier.predict(new)) <= {"yes", "no"}
    with pytest.raises(ValueError, match="town"):
        classifier.predict({"size": [0.5], "noise": [0.0], "shade": ["red"]})


def test_progress_is_told_and_a_journal_goes_on(tmp_path):
    told = []
    first = fit(labelled(), "sick", callback=told.append, journal=tmp_path, **QUICK)
    phases = [one.phase for one in told]
    assert phases[0] == "check"
    assert {"choose", "train", "evaluate"} <= set(phases)
    assert any(one.detail is not None for one in told)
    assert any(one.phase == "train" and one.text.startswith("step ") for one in told)
    assert list(tmp_path.iterdir())
    again = fit(labelled(), "sick", journal=tmp_path, **QUICK)
    np.testing.assert_array_equal(
        again.decision_function(labelled()), first.decision_function(labelled())
    )


def test_a_callback_that_raises_leaves_nothing_behind():
    def fail(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(labelled(), "sick", callback=fail, **QUICK)


def test_the_time_limit_is_kept_with_what_there_is():
    model = fit(labelled(), "sick", time_limit=20.0, **QUICK)
    assert model.certificate.ok
    assert model.settings.options["time_limit"] == "20.0"


def test_sparse_tables_stay_sparse():
    rng = np.random.default_rng(0)
    rows = sparse.random_array((200, 400), density=0.05, rng=rng, format="csr")
    labels = np.where(rows[:, [0, 1, 2]].sum(axis=1) + 0.02 * rng.normal(size=200) > 0.02, "a", "b")
    table = Table.of(rows).with_column("y", labels)
    model = fit(table, "y", kernels=["linear"])
    assert sparse.issparse(model.preparation.transform(table))
    assert model.certificate.ok
    assert len(model.evaluation.importance) == 100
    turn = rng.permutation(200)
    other = fit(table.rows(turn), "y", kernels=["linear"])
    np.testing.assert_array_equal(other.decision_function(table), model.decision_function(table))
    again = run(model, table)["model"]
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


def test_a_model_is_judged_by_other_rows(classifier, regression):
    new = labelled(100, seed=9)
    new["sick"][:3] = None
    found = evaluate(classifier, new, importance=True)
    assert len(found.truth) == 97
    assert found.kind == "test table"
    assert found["accuracy"].value > 0.75
    share = max(classifier.constant)
    truth = np.mean(found.truth == classifier.classes[int(np.argmax(classifier.constant))])
    assert 0.5 <= share <= 1.0
    assert found["accuracy"].baseline == pytest.approx(truth)
    assert found.importance
    assert evaluate(regression, measured(100, seed=9))["R^2"].value > 0.5
    with pytest.raises(ValueError, match="no target column"):
        evaluate(classifier, measured(20))
    with pytest.raises(ValueError, match="missing in every row"):
        evaluate(classifier, labelled(20) | {"sick": [None] * 20})


def test_long_labels_are_refused_before_they_take_memory():
    labels = np.array(["a", "b"] * 50, dtype=object)
    labels[7] = "c" * 5_000_000
    tracemalloc.start()
    with pytest.raises(ValueError, match="a label of 5000000 characters, more than 1000"):
        fit({"x": np.arange(100.0), "y": labels}, "y")
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 100e6
