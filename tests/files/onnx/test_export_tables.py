"""Tables as inputs: a graph takes columns by name, with gaps and levels that are new."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import mercer
from mercer.data import Table, TablePreparation
from mercer.files import OnnxExportError, to_onnx
from mercer.files.onnx.export import feeds_of, run

RNG = np.random.default_rng(0)
N = 120
AGE = np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(50, 10, N))
TOWN = np.array(["Ulm", "Bern", "Zürich", None], dtype=object)[RNG.integers(4, size=N)]
COLUMNS = {
    "age": AGE,
    "town": TOWN,
    "size": RNG.exponential(1000, N),
    "up": RNG.integers(2, size=N),
}
TABLE = Table.of(COLUMNS)
LABEL = np.where(np.nan_to_num(AGE, nan=60.0) + 9 * (TOWN == "Ulm") > 53, "yes", "no")


@pytest.mark.parametrize("rows", [None, TABLE])
def test_a_pipeline_with_a_table(rows):
    pipeline = make_pipeline(TablePreparation(), mercer.SVC(probability=True)).fit(TABLE, LABEL)
    model = to_onnx(pipeline, rows_sample=rows)
    assert sorted(one.name for one in model.graph.input) == sorted(TABLE.columns)
    found = run(model.SerializeToString(), feeds_of(pipeline[0], TABLE))
    np.testing.assert_array_equal(found["label"], pipeline.predict(TABLE))
    np.testing.assert_allclose(
        found["probabilities"], pipeline.predict_proba(TABLE), rtol=0, atol=1e-12
    )


def test_gaps_and_new_levels():
    pipeline = make_pipeline(TablePreparation(), mercer.LogisticRegression()).fit(TABLE, LABEL)
    rows = {"age": [np.nan], "town": ["Paris"], "size": [np.nan], "up": [1.0]}
    feeds = {
        "age": [[np.nan]],
        "size": [[np.nan]],
        "up": [[1.0]],
        "town": np.array([["Paris"]], dtype=object),
    }
    feeds = {name: np.asarray(value) for name, value in feeds.items()}
    found = run(to_onnx(pipeline).SerializeToString(), feeds)
    kinds = {"town": "category", "up": "number", "age": "number", "size": "number"}
    expected = pipeline.decision_function(Table.of(rows, kinds=kinds))
    np.testing.assert_allclose(found["decision"], expected, rtol=1e-12)
    feeds["town"] = np.array([[""]], dtype=object)  # missing
    found = run(to_onnx(pipeline).SerializeToString(), feeds)
    expected = pipeline.decision_function(Table.of({**rows, "town": [None]}, kinds=kinds))
    np.testing.assert_allclose(found["decision"], expected, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"positive": "no", "costs": (5.0, 1.0)}])
def test_table_models(options):
    whole = Table.of({**COLUMNS, "bought": LABEL})
    model = mercer.fit(whole, target="bought", machine=mercer.SVC(), tune=False, **options)
    found = run(to_onnx(model).SerializeToString(), feeds_of(model.preparation, TABLE))
    np.testing.assert_array_equal(found["label"], model.predict(TABLE))
    np.testing.assert_allclose(
        found["decision"], model.decision_function(TABLE), rtol=0, atol=1e-12
    )


def test_regression_of_a_table():
    pipeline = make_pipeline(TablePreparation(), mercer.KernelRidge(1.0)).fit(
        TABLE, COLUMNS["size"] ** 0.5
    )
    found = run(to_onnx(pipeline).SerializeToString(), feeds_of(pipeline[0], TABLE))
    np.testing.assert_allclose(found["prediction"], pipeline.predict(TABLE), rtol=1e-12)


def test_columns_that_are_refused_by_name():
    words = [f"the {'red' if i % 2 else 'blue'} house number {i} on the hill" for i in range(N)]
    table = Table.of({"age": AGE, "note": words}, kinds={"note": "text"})
    pipeline = make_pipeline(TablePreparation(), mercer.SVC("linear")).fit(table, LABEL)
    with pytest.raises(OnnxExportError, match="text column 'note'"):
        to_onnx(pipeline)
    renamed = Table.of({"label": AGE})
    pipeline = make_pipeline(TablePreparation(), mercer.SVC("linear")).fit(renamed, LABEL)
    with pytest.raises(OnnxExportError, match="rename"):
        to_onnx(pipeline)
