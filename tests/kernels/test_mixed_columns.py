"""Kernels on columns of mixed rows: text beside numbers, however the rows are held."""

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.data import Table
from mercer.kernels import Gaussian, Spectrum, Subsequence, is_valid
from mercer.selection import MultipleKernel, Tuned

rng = np.random.default_rng(0)
TEXT = ["".join(rng.choice(list("ab"), 6)) for _ in range(30)]
SIZE = rng.standard_normal(30)
LABELS = np.array([int("aa" in text) for text in TEXT])
TARGETS = SIZE + LABELS
FRAME = pd.DataFrame({"name": TEXT, "size": SIZE})
ROWS = list(zip(TEXT, SIZE, strict=True))
NUMBERED = Spectrum(2).on([0]) + Gaussian(1.0).on([1])
NAMED = Spectrum(2).on(["name"]) + Gaussian(1.0).on(["size"])
K = Spectrum(2)(TEXT) + Gaussian(1.0)(SIZE[:, None])
HELD = {
    "tuples": ROWS,
    "lists": [list(row) for row in ROWS],
    "array": FRAME.to_numpy(),
    "frame": FRAME,
    "categories": FRAME.astype({"name": "category"}),
    "strings": FRAME.astype({"name": "string"}),
    "table": Table.of(FRAME),
}


@pytest.mark.parametrize("held", HELD)
def test_the_matrix_is_that_of_the_columns(held):
    X = HELD[held]
    np.testing.assert_allclose(NUMBERED(X), K, rtol=1e-12)
    np.testing.assert_allclose(NUMBERED.diag(X), np.diag(K), rtol=1e-12)
    assert is_valid(NUMBERED, X)
    if hasattr(X, "columns"):
        np.testing.assert_allclose(NAMED(X, X), K, rtol=1e-12)
        product = Subsequence(2).on("name") * Gaussian(1.0).on("size")
        expected = Subsequence(2)(TEXT) * Gaussian(1.0)(SIZE[:, None])
        np.testing.assert_allclose(product(X), expected, rtol=1e-12)


def test_polars_frames():
    polars = pytest.importorskip("polars")
    np.testing.assert_allclose(NAMED(polars.DataFrame({"name": TEXT, "size": SIZE})), K)


def test_text_of_digits_is_text_and_tokens_are_text():
    held = pd.DataFrame({"zip": ["123", "321"], "size": [1.0, 2.0]})
    kernel = Spectrum(1).on(["zip"]) + Gaussian(1.0).on(["size"])
    expected = Spectrum(1)(["123", "321"]) + Gaussian(1.0)([[1.0], [2.0]])
    np.testing.assert_allclose(kernel(held), expected)
    tokens = [(["to", "be"], 1.0), (["be"], 2.0)]
    np.testing.assert_allclose(
        (Spectrum(1).on([0]) + Gaussian(1.0).on([1]))(tokens),
        Spectrum(1)([["to", "be"], ["be"]]) + Gaussian(1.0)([[1.0], [2.0]]),
    )
    two = [("ab", "b"), ("b", "a")]
    np.testing.assert_allclose(
        (Spectrum(1).on([0]) * Spectrum(1).on([1]))(two),
        Spectrum(1)(["ab", "b"]) * Spectrum(1)(["b", "a"]),
    )


MACHINES = {
    "SVC": (mercer.SVC, LABELS),
    "SVR": (mercer.SVR, TARGETS),
    "OneClassSVM": (mercer.OneClassSVM, None),
    "KernelRidge": (mercer.KernelRidge, TARGETS),
    "LogisticRegression": (mercer.LogisticRegression, LABELS),
    "GaussianProcess": (mercer.GaussianProcess, TARGETS),
    "NearestNeighbors": (mercer.NearestNeighbors, LABELS),
    "Perceptron": (mercer.Perceptron, LABELS),
    "KMeans": (mercer.KMeans, None),
    "FisherDiscriminant": (mercer.FisherDiscriminant, LABELS),
    "LaplacianRidge": (mercer.LaplacianRidge, TARGETS),
    "LabelPropagation": (mercer.LabelPropagation, LABELS),
}
WAYS = {
    "frame": (FRAME, NAMED),
    "table": (Table.of(FRAME), NAMED),
    "tuples": (ROWS, NUMBERED),
    "text": (FRAME, "spectrum(2)[name] + gaussian(1)[size]"),
    "normalized": (FRAME, NAMED.normalized()),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MACHINES)
def test_estimators_fit_answer_and_are_saved(name, way, tmp_path):
    (kind, y), (X, kernel) = MACHINES[name], WAYS[way]
    machine = kind(kernel=kernel).fit(X, y)
    assert machine.certificate_.ok
    assert machine.n_features_in_ == 2
    if way != "tuples":
        assert machine.feature_names_in_.tolist() == ["name", "size"]
    found = machine.predict(X)
    alike = "SVC", "SVR", "KernelRidge", "LogisticRegression", "GaussianProcess"
    if way != "normalized" and name in alike:
        expected = kind(kernel="precomputed").fit(K, y).predict(K)
        np.testing.assert_allclose(found, expected, atol=1e-2)
    mercer.save(machine, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict(X), found)


def test_default_scales_landmarks_and_searches():
    machine = mercer.SVC("spectrum(2)[name] + gaussian[size]").fit(FRAME, LABELS)
    alone = mercer.SVC("gaussian").fit(SIZE[:, None], LABELS).kernel_
    assert machine.kernel_ == Spectrum(2).on(["name"]) + alone.on(["size"])
    landmarks = mercer.SVC(NAMED, approximation="nystrom:10").fit(FRAME, LABELS)
    assert landmarks.score(FRAME, LABELS) > 0.9
    tuned = Tuned(mercer.SVC(NAMED), {"kernel__k2__kernel__scale": [0.1, 1.0]}, cv=3)
    assert tuned.fit(FRAME, LABELS).score(FRAME, LABELS) > 0.9
    assert mercer.tune(mercer.SVC(NAMED), FRAME, LABELS).mean.max() > 0.5


def test_kernels_are_learnt_on_mixed_columns():
    kernels = [Spectrum(2).on(["name"]), Gaussian(1.0).on(["size"])]
    machine = MultipleKernel(mercer.SVC(), kernels).fit(FRAME, LABELS)
    assert machine.predict(FRAME).shape == LABELS.shape
    assert machine.certificate_.ok


def test_refusals_say_where_and_what_to_do():
    machine = mercer.SVC(NAMED).fit(FRAME, LABELS)
    with pytest.raises(ValueError, match="should match those that were passed"):
        machine.predict(FRAME[["size", "name"]])
    with pytest.raises(ValueError, match="X has 3 features, but SVC is expecting 2"):
        mercer.SVC(NUMBERED).fit(ROWS, LABELS).predict([(*row, 1.0) for row in ROWS])
    gaps = FRAME.assign(size=FRAME["size"].where(FRAME["size"] > 0))
    with pytest.raises(ValueError, match=r"SVC: nan in row .*, column 1 of X is neither text nor"):
        mercer.SVC(NAMED).fit(gaps, LABELS)
    with pytest.raises(ValueError, match="speaks of column 5, but X has 2 columns"):
        mercer.SVC(Spectrum(2).on([0]) + Gaussian(1.0).on([5])).fit(ROWS, LABELS)
    with pytest.raises(ValueError, match="row 1 of X has 1 entries, but row 0 has 2"):
        NUMBERED([("a", 1.0), ("b",)])
    with pytest.raises(TypeError, match="is text; a kernel takes one column of text"):
        Gaussian(1.0).on([0, 1])(ROWS)
    with pytest.raises(TypeError, match="X holds strings, which have none"):
        NUMBERED(["ab", "ba"])
    with pytest.raises(ValueError, match="is not a number; encode such columns first"):
        mercer.SVC(Gaussian(1.0)).fit(FRAME, LABELS)
