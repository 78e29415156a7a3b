"""Which kernel: kinds of columns, candidates, and choices that the data call for."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from mercer import SVC, KernelRidge, LogisticRegression, NearestMean, Whiten
from mercer.data import Kind, Table
from mercer.selection import choose
from mercer.selection.choice import Comparison, of_numbers, of_strings, of_table

RNG = np.random.default_rng(0)
DISC = RNG.normal(size=(240, 2))
RING = (DISC**2).sum(axis=1) > 1.4


def names(choice):
    return [one.name for one in choice.contenders]


def test_a_plane_is_told_from_a_ring():
    plane = choose(DISC, DISC @ [1.0, -0.7] > 0.1)
    ring = choose(DISC, RING)
    assert names(plane)[plane.chosen] == "linear"
    assert names(ring)[ring.chosen] != "linear"
    assert ring.machine.score(DISC, RING) > 0.95
    assert ring.contenders[0].behind > ring.contenders[0].behind_error


def test_scores_are_those_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    found = choose(X, y, cv=folds)
    for one, candidate in zip(found.contenders, of_numbers(X), strict=True):
        points = [{key: [value] for key, value in point.items()} for point in one.tuning.points]
        some = points[:: max(1, len(points) // 4)]
        theirs = GridSearchCV(candidate.pipeline(SVC()), some, cv=folds).fit(X, y)
        ours = one.tuning.mean[:: max(1, len(points) // 4)]
        np.testing.assert_allclose(theirs.cv_results_["mean_test_score"], ours, atol=0.011)


def test_the_plainest_within_its_error_is_taken_and_the_table_says_why(monkeypatch):
    monkeypatch.setattr("mercer.selection.choice._FEW_ROWS", 100)
    found = choose(DISC, RING)
    taken = found.contenders[found.chosen]
    assert taken.behind <= taken.behind_error
    assert all(one.behind > one.behind_error for one in found.contenders[: found.chosen])
    text = str(found)
    assert "Selected: " + taken.name in text and "behind" in text
    assert all(name in text for name in names(found))
    assert min(one.behind for one in found.contenders) == 0.0


def test_targets_get_a_regression():
    y = np.sin(2 * DISC[:, 0]) + 0.1 * RNG.normal(size=240)
    found = choose(DISC, y)
    assert names(found)[found.chosen] in ("gaussian", "laplacian", "polynomial")
    assert found.machine.score(DISC, y) > 0.9


def test_polynomials_are_no_plainer_choice_for_a_quantity():
    X = RNG.normal(size=(60, 2))
    found = choose(X, X[:, 0] ** 2 + 0.1 * RNG.normal(size=60), cv=2)
    assert names(found)[-1] == "polynomial" and names(found)[0] == "linear"
    assert names(choose(X, X[:, 0] > 0, cv=2))[1] == "polynomial"


def test_whole_numbers_of_many_values_are_targets():
    counts = np.repeat(np.arange(5, 30), 4)
    found = choose(DISC[:100], counts, cv=2)
    assert isinstance(found.machine[-1], KernelRidge)


MIXED = pd.DataFrame(
    {
        "age": RNG.normal(40, 10, size=200),
        "income": np.where(RNG.random(200) < 0.2, np.nan, RNG.normal(size=200)),
        "town": RNG.choice(["Ulm", "Bern", "Riga"], size=200),
        "member": RNG.random(200) < 0.5,
        "id": [f"row{i}" for i in range(200)],
        "note": [
            " ".join(RNG.choice(["good", "bad", "late", "paid", "never", "again"], size=6))
            for _ in range(200)
        ],
    }
)
MIXED.loc[::17, "town"] = None


def test_dates_are_numbers_and_durations_are_refused_by_name():
    born = pd.to_datetime("2001-01-01") + pd.to_timedelta(np.arange(240) * 3, "D")
    table = pd.DataFrame({"x": DISC[:, 0], "born": born})
    found = choose(table, np.arange(240) > 120, cv=2)
    assert found.machine.score(table, np.arange(240) > 120) > 0.95
    assert "sum over kinds of columns" in names(found)
    with pytest.raises(ValueError, match="column 'age' holds timedelta"):
        choose(pd.DataFrame({"age": born - born[0]}), RING)


def test_mixed_tables_with_gaps_and_text_work():
    y = ((MIXED["town"] == "Ulm") ^ (MIXED["age"] > 40)).to_numpy()
    found = choose(MIXED, y, cv=3)
    assert "sum over kinds of columns" in names(found)
    assert any("'id'" in note for note in found.notes)
    assert found.machine.score(MIXED, y) > 0.8
    unseen = MIXED.iloc[:3].assign(town=["Oslo", None, "Ulm"], age=[np.nan, 1.0, 2.0])
    assert len(found.machine.predict(unseen)) == 3
    copy = pickle.loads(pickle.dumps(found.machine))
    assert (copy.predict(MIXED) == found.machine.predict(MIXED)).all()


def test_categories_alone_decide_where_they_should():
    table = pd.DataFrame({"a": RNG.choice(list("xyz"), 150), "b": RNG.choice(list("uv"), 150)})
    y = ((table["a"] == "x") ^ (table["b"] == "u")).to_numpy()
    found = choose(table, y, cv=3)
    assert names(found)[found.chosen] != "linear"
    assert found.machine.score(table, y) == 1.0


def test_tables_in_other_forms():
    y = MIXED["age"].to_numpy() > 40
    rows = MIXED[["age", "town"]]
    frame = choose(rows, y, cv=3)
    objects = choose(rows.to_numpy(dtype=object), y, cv=3)
    assert names(frame) == names(objects)
    assert frame.contenders[0].tuning.best_score == objects.contenders[0].tuning.best_score
    polars = pytest.importorskip("polars")
    towns = [town if isinstance(town, str) else None for town in rows["town"]]
    theirs = choose(polars.DataFrame({"age": rows["age"].tolist(), "town": towns}), y, cv=3)
    assert theirs.contenders[0].tuning.best_score == frame.contenders[0].tuning.best_score


def test_the_width_of_a_table_does_not_depend_on_the_fold():
    """A category, or a word, that one fold lacks must not shift the columns of a sum."""
    candidate = of_table(Table.of(MIXED))[-1]
    prepare = candidate.pipeline(SVC())[:-1]
    widths = {clone(prepare).fit(MIXED.iloc[k::4]).transform(MIXED).shape[1] for k in range(4)}
    assert len(widths) == 1


def test_strings_are_compared_by_words_and_by_letters():
    good = [f"{a} cats purr {b}" for a in ("two", "old", "wild") for b in ("softly", "here", "now")]
    bad = [f"{a} dogs bark {b}" for a in ("two", "old", "wild") for b in ("softly", "here", "now")]
    y = np.repeat(["cat", "dog"], 9)
    found = choose(good + bad, y, cv=3)
    assert names(found) == ["linear (words)", "spectrum"]
    assert found.machine.predict(["my dogs bark"]).tolist() == ["dog"]
    assert [c.name for c in of_strings(["", "."])] == ["spectrum"]


def test_sparse_rows():
    X = sparse.random_array((120, 40), density=0.2, rng=np.random.default_rng(1), format="csr")
    y = np.asarray(X[:, [0]].todense()).ravel() > 0
    found = choose(X, y, cv=3)
    assert "laplacian" not in names(found)
    assert found.machine.predict(X[:5]).shape == (5,)


def test_large_data_are_sampled_and_fitted_whole():
    X = RNG.normal(size=(900, 2))
    y = np.where(X[:, 0] > 2.2, "rare", np.where(X[:, 1] > 0, "up", "down"))
    found = choose(X, y, max_rows=300, cv=3)
    assert any("300 of 900" in note for note in found.notes)
    assert found.machine.named_steps["machine"].n_features_in_ == 2
    assert set(found.machine.classes_) == {"rare", "up", "down"}


@pytest.mark.slow
def test_another_machine():
    found = choose(DISC, RING, machine=LogisticRegression(), cv=3)
    assert isinstance(found.machine[-1], LogisticRegression)
    assert found.machine.predict_proba(DISC).shape == (240, 2)


def test_repeatable_and_resumable(tmp_path):
    first = choose(DISC, RING, cv=3, journal=tmp_path / "kept")
    again = choose(DISC, RING, cv=3, journal=tmp_path / "kept")
    plain = choose(DISC, RING, cv=3)
    for a, b, c in zip(first.contenders, again.contenders, plain.contenders, strict=True):
        np.testing.assert_array_equal(a.tuning.scores, b.tuning.scores)
        np.testing.assert_array_equal(a.tuning.scores, c.tuning.scores)
    assert len(list((tmp_path / "kept").iterdir())) == len(first.contenders)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"y": np.zeros((240, 2))}, "y has shape"),
        ({"y": [0, 1]}, "y has shape"),
        ({"machine": Whiten()}, "kernel"),
        ({"max_rows": 2}, "max_rows"),
        ({"max_rows": "x"}, "max_rows"),
        ({"X": DISC[:0], "y": RING[:0]}, "at least one row"),
        ({"y": np.where(RING, np.nan, 0.5)}, "missing values, the first in row"),
        ({"y": np.where(RING, None, "a")}, "missing values, the first in row"),
        ({"scoring": ["accuracy", "f1"]}, "one score"),
        ({"max_rows": 50, "cv": [(np.arange(100), np.arange(100, 240))]}, "cv lists rows"),
        ({"X": pd.DataFrame({"a": np.full(240, np.inf)})}, "column 'a' has infinite"),
    ],
)
def test_wrong_arguments_are_named(wrong, match):
    given = {"X": DISC, "y": RING} | wrong
    with pytest.raises(ValueError, match=match):
        choose(given.pop("X"), given.pop("y"), **given)


def test_a_class_is_no_machine():
    with pytest.raises(TypeError, match="must be an estimator"):
        choose(DISC, RING, machine=SVC)


def test_columns_named_by_numbers_are_no_positions():
    table = pd.DataFrame({1: DISC[:, 0], 0: np.where(RING, "x", "y"), ("a", 2): DISC[:, 1]})
    found = choose(table, RING, cv=2)
    assert found.machine.score(table, RING) == 1.0


def test_words_that_scikit_learn_does_not_count():
    short = [" ".join(RNG.choice(list("abcdefgh"), 5)) for _ in range(240)]
    long = [f"word{k % 7} of__its own{k}" for k in range(240)]
    table = pd.DataFrame({"short": short, "a__b": long, "x": DISC[:, 0]})
    assert Table.of(table).kinds["a__b"] is Kind.TEXT
    assert choose(table, RING, cv=2).notes == (
        "Column 'short' has a distinct word in most rows and was ignored.",
    )


def test_arrays_with_gaps_and_targets_that_are_objects():
    gaps = np.where(DISC > 1.5, np.nan, DISC)
    assert choose(gaps, RING, cv=2).machine.score(gaps, RING) > 0.7
    numbers = choose(sparse.coo_array(DISC), (DISC[:, 0] ** 2).astype(object), cv=2)
    assert hasattr(numbers.machine["machine"], "penalty")
    labels = choose(DISC, RING.astype(int).astype(object), cv=2)
    assert labels.machine.predict(DISC).dtype.kind == "i"


def test_other_folds_and_machines_without_more_to_tune():
    found = choose(DISC[:30], RING[:30], cv="loo", machine=NearestMean())
    assert found.contenders[0].tuning.scores.shape == (1, 30)


def test_a_sample_has_rows_of_rare_classes():
    rare = np.arange(240) < 6
    found = choose(DISC, rare, cv=3, max_rows=60)
    assert found.contenders[0].tuning.scores.shape[1] == 3


def test_a_callback_ends_the_comparison():
    calls = []

    def stop(progress):
        calls.append(progress)
        return progress.done == progress.points

    found = choose(DISC, RING, cv=2, callback=stop)
    assert names(found) == ["gaussian"]  # which the others' time is measured by, so it is first
    assert any("laplacian was not compared" in note for note in found.notes)


def test_with_few_rows_the_best_is_taken():
    found = choose(DISC[:120], RING[:120], cv=3)
    assert found.contenders[found.chosen].behind == 0.0


def test_matern_is_among_the_candidates():
    assert [one.name for one in of_numbers(DISC)][2:4] == ["gaussian", "matern"]


def test_the_time_limit_is_shared():
    candidates = of_numbers(DISC)
    comparison = Comparison(None, candidates, 8.0)
    assert comparison.order()[0].name == "gaussian"
    assert 1.0 < comparison.share() <= 8.0 / len(candidates)
    comparison.left = 1
    assert comparison.share() > 4.0
    free = Comparison(None, candidates, None)
    assert free.share() is None
    free.reference = 20.0
    assert free.share() == 100.0
