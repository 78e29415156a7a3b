"""Tables: columns by name and kind, parts of them, and what they are made of."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from mercer import SVC
from mercer.data import Column, DataError, Kind, Schema, Table, TablePreparation, read, read_blocks

TABLE = Table.of(
    {
        "age": [31.0, None, 52.0, 8.0],
        "town": ["Ulm", None, "Bern", "Riga"],
        "born": np.array(["2001-01-01", "NaT", "2002-02-02", "2003-03-03"], dtype="M8[D]"),
        "sick": [True, False, True, True],
    }
)


def test_entries_have_the_types_of_their_kinds():
    assert TABLE.kinds == {
        "age": Kind.NUMBER,
        "town": Kind.CATEGORY,
        "born": Kind.DATE,
        "sick": Kind.BINARY,
    }
    assert TABLE["age"].dtype == np.float64 and np.isnan(TABLE["age"][1])
    assert TABLE["town"].tolist() == ["Ulm", None, "Bern", "Riga"]
    assert TABLE["born"].dtype == np.dtype("M8[us]") and np.isnat(TABLE["born"][1])
    assert TABLE["sick"].tolist() == [1.0, 0.0, 1.0, 1.0]
    assert TABLE.shape == (4, 4) == (len(TABLE), len(TABLE.columns))


def test_nothing_can_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        TABLE["age"][0] = 5
    given = np.arange(6.0).reshape(3, 2)
    table = Table.of(given)
    given[:] = 0
    assert table["x1"].tolist() == [1.0, 3.0, 5.0]


def test_parts():
    assert TABLE[["sick", "age"]].columns == ["sick", "age"]
    assert TABLE.drop("age", "born").columns == ["town", "sick"]
    assert TABLE.rows([2, 0])["town"].tolist() == ["Bern", "Ulm"]
    assert TABLE.rows(TABLE["sick"] == 1.0).shape == (3, 4)
    assert TABLE.rows(slice(1, 2))["town"].tolist() == [None]
    assert TABLE[np.array([3])]["town"].tolist() == ["Riga"] == TABLE[np.array([3]), ...]["town"]
    assert TABLE.rows([]).shape == (0, 4)
    assert TABLE.rows([0, 1]).below(TABLE.rows([2, 3])).digest == TABLE.digest
    assert "age" in TABLE and "x" not in TABLE and list(TABLE) == TABLE.columns
    with pytest.raises(KeyError, match=r"no column 'Age'; its columns are 'age', 'town'"):
        TABLE["Age"]
    with pytest.raises(TypeError, match="slice, mask or indices"):
        TABLE.rows([0.5])


def test_kinds_can_be_changed_where_entries_allow_it():
    codes = Table.of({"zip": [89073.0, 3011.0, 1001.5, np.nan]}).with_kinds({"zip": "category"})
    assert codes["zip"].tolist() == ["89073", "3011", "1001.5", None]
    assert codes.with_kinds({"zip": "number"})["zip"].tolist()[:3] == [89073.0, 3011.0, 1001.5]
    assert TABLE.with_kinds({"born": "number"})["born"][0] == 11323.0
    assert TABLE.with_kinds({"born": "category"})["born"][0] == "2001-01-01"
    words = Table.of({"d": ["2020-01-01", "2020-01-02 12:00", None]})
    assert words.with_kinds({"d": Kind.DATE})["d"][1] == np.datetime64("2020-01-02T12:00")
    for kind, match in [("number", "'Ulm' in row 0 is not a number"), ("date", "is not a date"),
                        ("binary", "3 distinct values")]:  # fmt: skip
        with pytest.raises(DataError, match=match) as caught:
            TABLE.with_kinds({"town": kind})
        assert caught.value.column == "town"
    with pytest.raises(DataError, match="cannot be converted to dates"):
        TABLE.with_kinds({"age": "date"})
    with pytest.raises(ValueError, match="must be one of number, category"):
        TABLE.with_kinds({"age": "numeric"})


def test_the_digest_is_that_of_the_contents():
    assert TABLE.digest == copy.deepcopy(TABLE).digest == pickle.loads(pickle.dumps(TABLE)).digest
    assert TABLE.digest != TABLE.rows([1, 0, 2, 3]).digest
    assert TABLE.digest != TABLE.with_kinds({"sick": "number"}).digest
    same = Table.of({"x": [0.0, np.nan]}).digest
    assert same == Table.of({"x": [-0.0, -np.nan]}).digest
    assert Table.of({"a": ["bc", "d"]}).digest != Table.of({"a": ["b", "cd"]}).digest


def test_a_matrix_needs_numbers():
    numbers = Table.of({"a": [1.0, 2.0], "b": [3.0, np.nan]})
    np.testing.assert_array_equal(np.asarray(numbers), [[1.0, 3.0], [2.0, np.nan]])
    assert np.asarray(numbers, dtype=np.float32).dtype == np.float32
    with pytest.raises(
        TypeError, match="column 'town' holds categories; convert it with TablePrep"
    ):
        np.asarray(TABLE)
    with pytest.raises(TypeError, match="column 'id' holds identifiers; drop it"):
        np.asarray(Table.of({"id": [1, 2, 3, 4]}))


def test_sparse_columns_stay_sparse():
    X = sparse.random_array((20, 50), density=0.1, rng=np.random.default_rng(0), format="csr")
    table = Table.of(X, names=[f"w{k}" for k in range(50)]).with_column("y", np.arange(20) % 3)
    assert table.columns[:2] == ["y", "w0"] and table.drop("y").csr is not None
    np.testing.assert_array_equal(table["w3"], X.toarray()[:, 3])
    some = table[["w7", "y", "w3"]].rows([4, 2])
    np.testing.assert_array_equal(some.drop("y").matrix().toarray(), X.toarray()[[4, 2]][:, [7, 3]])
    np.testing.assert_array_equal(np.asarray(table.drop("y")), X.toarray())
    changed = table.with_kinds({"w3": "category"})
    assert changed.kinds["w3"] is Kind.CATEGORY and changed.shape == table.shape
    assert SVC().fit(table.drop("y"), table["y"]).feature_names_in_[0] == "w0"


def test_pandas_polars_and_pyarrow():
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "f": [0.5, np.nan, 1.5],
            "b": pd.array([True, None, False], dtype="boolean"),
            "s": ["x", None, "z"],
            "c": pd.Categorical([1, 2, None]),
            "d": pd.to_datetime(["2020-01-01", None, "2020-02-01"]).tz_localize("Europe/Berlin"),
        }
    )
    table = Table.of(frame)
    assert [kind.value for kind in table.kinds.values()] == [
        "number", "number", "binary", "binary", "category", "date",
    ]  # fmt: skip
    assert table["c"].tolist() == ["1", "2", None]
    assert table["d"][0] == np.datetime64("2019-12-31T23:00")
    again = Table.of(table.to_pandas())
    np.testing.assert_array_equal(again["i"], table["i"])
    assert again["s"].tolist() == table["s"].tolist()
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    columns = {
        "i": [1, None, 3],
        "f": [0.5, None, 1.5],
        "s": ["x", None, "z"],
        "b": [True, None, False],
    }
    for holder in (pa.table(columns), pl.DataFrame(columns)):
        held = Table.of(holder)
        np.testing.assert_array_equal(held["i"], [1.0, np.nan, 3.0])
        np.testing.assert_array_equal(held["b"], [1.0, np.nan, 0.0])
        assert held["s"].tolist() == ["x", None, "z"] and held.kinds["b"] is Kind.BINARY
    assert (
        Table.of(pa.table({"c": pa.array(["u", "v"]).dictionary_encode()})).kinds["c"].value
        == "category"
    )


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"a": [1, 2], "b": [1]}, "differ in length"),
        ({"a": [[1], [2]]}, "column 'a' holds list objects"),
        ({"a": np.zeros((2, 2))}, "has 2 dimensions"),
        ({"a": np.array([1, 2], dtype="m8[s]")}, "column 'a' holds timedelta64"),
        ({"a": [10**400, 1]}, "out of range of float64"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "columns 1 and 2 are both named 'a'"),
        (np.zeros(3), "rows and columns"),
        ({"a": "text"}, "not a column of entries"),
    ],
)
def test_what_is_no_table_is_refused(given, match):
    with pytest.raises(DataError, match=match):
        Table.of(given)


def test_columns_that_are_not_asked_for_are_not_looked_at():
    frame = pd.DataFrame({"l": [[1], [2]], "a": [1.0, 2.0], "b": ["x", "y"]})
    assert Table.of(frame, columns=["b", "a"]).columns == ["b", "a"]
    assert TablePreparation().fit(frame[["a", "b"]]).transform(frame).shape == (2, 3)
    with pytest.raises(KeyError, match="no column 'c'"):
        Table.of(frame, columns=["c"])
    with pytest.raises(DataError, match="differ in length"):
        Table({"a": TABLE.column("age"), "b": TABLE.rows([0]).column("age")})


def test_hostile_names_are_shown_as_text():
    table = Table.of({"<script>alert(1)</script>": ["\x1b[31m<b>", "y", "z"], "n" * 500: [1, 2, 3]})
    assert "<script>" not in table._repr_html_() and "&lt;script&gt;" in table._repr_html_()
    assert "\x1b" not in str(table) and max(map(len, str(table).splitlines())) < 130


def test_schemas_are_closed_and_come_back():
    schema = TABLE.schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.drop("age").names == ["town", "born", "sick"]
    changes = [{"kinds": ["number"]}, {"names": [1, 2, 3, 4]}, {"parsed": ["code"] * 4}]
    for wrong in ({}, *(schema.to_dict() | change for change in [*changes, {"decimal": "x"}])):
        with pytest.raises(DataError, match="not a table schema"):
            Schema.from_dict(wrong)


def test_scikit_learn_chooses_rows_of_a_table():
    rng = np.random.default_rng(0)
    table = Table.of({"x": rng.normal(size=60), "c": rng.choice(["u", "v", "w"], 60)})
    y = (table["x"] > 0) ^ (table["c"] == "u")
    assert cross_val_score(make_pipeline(TablePreparation(), SVC()), table, y, cv=3).min() > 0.6


def test_errors_keep_their_place_when_they_travel():
    error = DataError("has no entry", source="a.csv", line=3, column="x")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "a.csv, line 3, column 'x' has no entry"
    assert (again.source, again.line, again.column) == ("a.csv", 3, "x")
    assert Column.of("x", np.array([1.0, 2.0, 3.0])).kind is Kind.NUMBER


def test_dates_in_words_are_dates_wherever_they_come_from(tmp_path):
    words = ["2024-01-31", None, "2024-02-29", "2024-03-01"]
    (tmp_path / "days.csv").write_text("day,x\n" + "".join(f"{w or ''},1\n" for w in words))
    kinds = [
        table.kinds["day"]
        for table in (
            Table.of({"day": words}),
            Table.of(pd.DataFrame({"day": words})),
            read(tmp_path / "days.csv"),
        )
    ]
    assert kinds == [Kind.DATE] * 3
    assert Table.of({"day": [*words[:3], "soon"]}).kinds["day"] is not Kind.DATE


@pytest.mark.parametrize("words", [("True", "False"), ("TRUE", "FALSE"), ("true", "false")])
def test_truth_values_are_the_same_column_from_a_frame_and_from_a_file(words, tmp_path):
    flags = np.arange(12) % 3 == 0
    frame = pd.DataFrame({"flag": flags, "x": np.arange(12.0)})
    written = frame.assign(flag=np.where(flags, *words))
    written.loc[5, "flag"] = None
    written.to_csv(tmp_path / "rows.csv", index=False)
    held = Table.of(frame.astype({"flag": "boolean"}).assign(flag=lambda f: f.flag.where(f.x != 5)))
    found = read(tmp_path / "rows.csv")
    assert found.kinds == held.kinds == {"flag": Kind.BINARY, "x": Kind.NUMBER}
    assert found.schema.parsed == held.schema.parsed
    np.testing.assert_array_equal(found["flag"], held["flag"])
    np.testing.assert_array_equal(Table.of(written)["flag"], held["flag"])
    for schema in (held.schema, found.schema):  # new rows of a model, whatever it was fitted to
        (block,) = read_blocks(tmp_path / "rows.csv", schema)
        np.testing.assert_array_equal(block["flag"], held["flag"])
    (tmp_path / "more.csv").write_text("flag,x\nmaybe,1\n")
    with pytest.raises(DataError, match="'maybe' is not a number"):
        list(read_blocks(tmp_path / "more.csv", found.schema))
    one = read(tmp_path / "rows.csv", kinds={"flag": "category"})
    assert set(one["flag"]) == {*words, None}


def test_one_truth_value_alone_is_binary_as_in_a_frame(tmp_path):
    frame = pd.DataFrame({"flag": [True] * 4, "x": np.arange(4.0)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert read(tmp_path / "rows.csv").kinds == Table.of(frame).kinds
