"""Tables into numbers: against scikit-learn's transformers, unseen entries, and what is stored."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from mercer import SVC
from mercer.data import DataError, Kind, Table, TablePreparation, read
from mercer.data.preparation import plan_of

RNG = np.random.default_rng(0)
N = 60
WORDS = ["good", "bad", "late", "paid", "never", "again"]
MIXED = Table.of(
    {
        "age": RNG.normal(40, 10, N),
        "income": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
        "town": [None if k % 17 == 0 else ["Ulm", "Bern", "Riga"][k % 3] for k in range(N)],
        "member": RNG.random(N) < 0.5,
        "sick": RNG.choice(["yes", "no"], N),
        "born": np.datetime64("2001-01-01T06:00") + np.arange(N) * np.timedelta64(700, "h"),
        "code": [f"row{k}" for k in range(N)],
        "note": [" ".join(RNG.choice(WORDS, size=6)) for _ in range(N)],
    }
)


def test_numbers_are_filled_and_scaled_as_scikit_learn_does():
    numbers = MIXED[["age", "income", "member"]]
    X = np.asarray(numbers)
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    expected = np.column_stack([StandardScaler().fit_transform(filled), np.isnan(X[:, 1])])
    prepare = TablePreparation().fit(numbers)
    np.testing.assert_allclose(prepare.transform(numbers), expected, atol=1e-12)
    np.testing.assert_allclose(TablePreparation().fit_transform(numbers), expected, atol=1e-12)
    names = prepare.get_feature_names_out().tolist()
    assert names == ["age", "income", "member", "income_missing"]


def test_texts_are_weighted_as_scikit_learn_does():
    texts = ["The cat sat, the cat ran", "a dog", "", "Ünï cat 12 dog dog"] * 8
    table = Table.of({"t": texts}, kinds={"t": "text"})
    prepared = TablePreparation().fit(table).transform(table)
    vectoriser = TfidfVectorizer(sublinear_tf=True).fit(texts)
    np.testing.assert_allclose(
        prepared.toarray(), vectoriser.transform(texts).toarray(), atol=1e-12
    )
    few = TablePreparation(most_words=2).fit(table)
    assert few.plan_["words"] == {"t": ["cat", "dog"]}
    gaps = Table.of({"t": [None, "cat"]}, kinds={"t": "text"})
    assert few.transform(gaps).toarray()[0].tolist() == [0.0, 0.0]


def test_blocks_cover_the_columns():
    prepare = TablePreparation().fit(MIXED)
    prepared = prepare.transform(MIXED)
    assert sparse.issparse(prepared) and prepared.shape[1] == len(prepare.get_feature_names_out())
    blocks = prepare.blocks_
    assert [block.name for block in blocks] == ["numbers", "dates", "categories", "text 'note'"]
    assert [block.start for block in blocks[1:]] == [block.stop for block in blocks[:-1]]
    assert blocks[-1].stop == prepared.shape[1] and blocks[-1].kind is Kind.TEXT
    dense = TablePreparation().fit_transform(MIXED.drop("note"))
    assert isinstance(dense, np.ndarray) and dense.dtype == np.float64
    np.testing.assert_allclose(prepared.toarray()[:, : dense.shape[1]], dense, atol=1e-12)


def test_dates_have_the_cycles_that_they_go_through():
    prepare = TablePreparation().fit(MIXED[["born"]])
    names = prepare.get_feature_names_out().tolist()
    waves = [f"born_{cycle}_{wave}" for cycle in ("year", "week", "day") for wave in ("sin", "cos")]
    assert names == ["born_days", *waves]
    days = np.datetime64("2020-03-01") + np.arange(10)
    short = TablePreparation().fit(Table.of({"d": [*days[:9], None]}))
    assert short.get_feature_names_out().tolist() == ["d_days", "d_missing"]


def test_unseen_levels_and_gaps_are_zeros_and_medians():
    prepare = TablePreparation().fit(MIXED[["age", "town", "sick"]])
    new = Table.of({"sick": ["perhaps", None], "town": ["Oslo", None], "age": [None, 40.0]})
    prepared = prepare.transform(new)
    names = prepare.get_feature_names_out().tolist()
    assert prepared[0, 0] == (np.median(MIXED["age"]) - prepare.means_[0]) / prepare.scales_[0]
    assert prepared[0, 1:].tolist() == [0.0] * 6
    assert dict(zip(names, prepared[1], strict=True))["town_(missing)"] == 1.0
    assert "town_(missing)" in names and "sick_(missing)" not in names


def test_a_plan_gives_every_part_the_same_columns():
    plan = plan_of(MIXED)
    parts = [TablePreparation(plan).fit(MIXED.rows(slice(k, None, 4))) for k in range(4)]
    assert len({part.transform(MIXED).shape for part in parts}) == 1
    assert clone(parts[0]).plan == plan


def test_sparse_columns_are_scaled_and_stay_sparse():
    X = sparse.random_array((40, 2000), density=0.02, rng=RNG, format="csr")
    table = Table.of(X)
    prepared = TablePreparation().fit(table).transform(table)
    expected = StandardScaler(with_mean=False).fit_transform(X)
    assert sparse.issparse(prepared) and abs(prepared - expected).max() < 1e-12


def test_many_levels_are_sparse():
    table = Table.of({"c": [f"w{k % 600}" for k in range(1200)]}, kinds={"c": "category"})
    prepared = TablePreparation().fit_transform(table)
    assert sparse.issparse(prepared) and prepared.nnz == 1200


def test_what_is_fitted_is_plain():
    prepare = TablePreparation().fit(MIXED)

    def is_plain(value):
        if isinstance(value, dict):
            return all(isinstance(key, str) and is_plain(inner) for key, inner in value.items())
        if isinstance(value, list):
            return all(isinstance(entry, str) for entry in value)
        return isinstance(value, np.ndarray | int) and getattr(value, "dtype", float) in (
            float,
            object,
        )

    fitted = {name: value for name, value in vars(prepare).items() if name.endswith("_")}
    assert fitted and all(map(is_plain, fitted.values()))
    again = TablePreparation()
    vars(again).update(fitted)
    assert abs(again.transform(MIXED) - prepare.transform(MIXED)).max() == 0
    assert again.blocks_ == prepare.blocks_ and again.describe() == prepare.describe()


def test_it_says_what_it_does():
    said = " ".join(TablePreparation().fit(MIXED).describe())
    told = ("'age'", "median", "Missing values of 'income'", "'born'", "year, week, day", "'town'")
    for word in (*told, "tf-idf", "Ignored identifiers: 'code'"):
        assert word in said


def test_what_cannot_be_prepared():
    with pytest.raises(NotFittedError):
        TablePreparation().transform(MIXED)
    with pytest.raises(DataError, match="identifiers or constant"):
        TablePreparation().fit(MIXED[["code"]])
    with pytest.raises(DataError, match="no rows"):
        TablePreparation().fit(MIXED.rows([]))
    prepare = TablePreparation().fit(MIXED)
    with pytest.raises(
        DataError, match=r"lacks 2 column\(s\) of the training table: 'age', 'town'"
    ):
        prepare.transform(MIXED.drop("age", "town"))
    words = MIXED.drop("age").with_column("age", ["x"] * N)
    with pytest.raises(DataError, match="column 'age': 'x' in row 0 is not a number"):
        prepare.transform(words)
    for value, match in (
        (np.inf, "column 'x' has infinite"),
        (1e300, "column 'x' holds entries so large"),
    ):
        with pytest.raises(DataError, match=match):
            TablePreparation().fit(Table.of({"x": [value, 0.0, 1.0, -value]}))


def test_machines_take_tables_of_numbers():
    numbers = MIXED[["age", "member"]]
    y = numbers["age"] > 40
    machine = SVC().fit(numbers, y)
    assert machine.feature_names_in_.tolist() == ["age", "member"]
    plain = SVC().fit(np.asarray(numbers), y)
    np.testing.assert_array_equal(
        machine.decision_function(numbers), plain.decision_function(np.asarray(numbers))
    )
    with pytest.raises(ValueError, match=r"SVC: the feature names should match .*another order"):
        machine.predict(numbers[["member", "age"]])
    with pytest.raises(ValueError, match=r"new: 'income'; lacking: 'member'"):
        machine.predict(MIXED[["age", "income"]])
    with pytest.raises(
        TypeError, match="SVC: column 'town' holds categories; convert it with TableP"
    ):
        SVC().fit(MIXED[["age", "town"]], y)
    with pytest.raises(ValueError, match=r"column 1 \('income'\)|contains NaN"):
        SVC().fit(MIXED[["age", "income"]], y)


def test_a_file_read_in_blocks_is_prepared_as_the_whole(tmp_path):
    path = tmp_path / "x.csv"
    MIXED.to_pandas().to_csv(path, index=False)
    table = read(path)
    assert table.kinds == MIXED.kinds | {"member": Kind.BINARY}
    prepare = TablePreparation().fit(table)
    from mercer.data import read_blocks

    parts = [prepare.transform(block) for block in read_blocks(path, table.schema, rows=7)]
    assert abs(sparse.vstack(parts) - prepare.transform(table)).max() == 0
