"""Reports of every kind of model: sections, figures, and files that are whole or not there."""

import dataclasses
import os
from base64 import b64encode
from hashlib import sha256

import numpy as np
import pytest
from report.page_reader import read
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.fitting import cluster, project, topics
from mercer.report import model_card, render, write_report

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(X[:, 0] > 0, "right", "left")


def text_of(page):
    return " ".join("".join(read(page).text).split())


def test_a_classifier(classifier):
    page = render(classifier)
    found, text = read(page), text_of(page)
    sections = "quality importance choice pictures certificate bounds data cost reproduce privacy"
    assert set(sections.split()) <= set(found.ids)
    accuracy = classifier.evaluation["accuracy"]
    assert f"{100 * accuracy.value:.1f} %" in text
    assert f"{100 * accuracy.low:.1f} % to {100 * accuracy.high:.1f} %" in text
    assert "✓ Certified" in text
    for word in ("ROC curve", "Calibration", "Confusion", "Margins", "Kernel matrix", "Spectrum"):
        assert word in text
    assert classifier.settings.digest in text
    assert classifier.python.strip().splitlines()[0] in page
    assert "vacuous" in text


def test_a_regression(regression):
    text = text_of(render(regression))
    for word in ("Predicted and true values", "Residuals", "Root mean squared error", "R^2"):
        assert word in text


def test_the_policy_lets_in_this_style_and_nothing_else(classifier):
    found = read(render(classifier))
    digest = b64encode(sha256(found.style.encode()).digest()).decode()
    assert found.policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    for word in ("prefers-color-scheme: dark", "@media print", "max-width: 520px"):
        assert word in found.style


def test_drawings_say_what_they_show(classifier):
    page = render(classifier)
    assert page.count("<svg") == page.count('role="img"')
    assert page.count("<svg") <= page.count("<title>") - 1  # the page has one of its own
    assert page.count('class="chart"') == page.count("<desc>")


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (mercer.SVC(), "cross-validated"),
        (mercer.KernelRidge(0.1), "cross-validated"),
        (mercer.NaiveBayes(), "cross-validated"),
        (make_pipeline(StandardScaler(), mercer.SVC()), "cross-validated"),
        (mercer.KMeans(2), "Clusters"),
        (mercer.SpectralClustering(2), "Clusters"),
        (mercer.PCA(2), "Spectrum"),
        (mercer.OneClassSVM(), "Support vectors"),
        (mercer.GaussianMixture(2), "certificate"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_machines_with_rows(machine, words):
    target = X[:, 0] if is_regressor(machine) else Y if is_classifier(machine) else None
    fitted = machine.fit(X, target)
    assert words in text_of(render(fitted, X=X, y=target))
    read(render(fitted))  # without rows there is less to say
    assert model_card(fitted).startswith("# ")


def test_a_machine_is_judged_by_other_rows_where_there_are_some():
    machine = mercer.SVC().fit(X[:40], Y[:40])
    text = text_of(render(machine, X=X[:40], y=Y[:40], test=(X[40:], Y[40:])))
    assert "20 rows of the test table" in text
    with pytest.raises(ValueError, match="test must be a tuple"):
        render(machine, test=X)


def test_a_given_matrix_is_judged_by_itself_and_says_so():
    machine = mercer.SVC(kernel="precomputed").fit(X @ X.T, Y)
    assert "which is optimistic for every model" in text_of(render(machine, X=X @ X.T, y=Y))


def test_a_choice():
    found = mercer.choose(X, Y, cv=3)
    assert found.reason in text_of(render(found, X=X, y=Y))


def test_several_targets_are_not_judged():
    machine = mercer.KernelRidge(0.1).fit(X, X[:, :2])
    assert "there is more than one target" in text_of(render(machine, X=X, y=X[:, :2]))


def test_strings():
    words = ["abba", "abab", "baab", "xyzz", "zyxx", "yyxz"] * 4
    machine = mercer.SVC(kernel="spectrum(2)").fit(words, [0, 0, 0, 1, 1, 1] * 4)
    assert "Kernel matrix" in text_of(render(machine, X=words, y=[0, 0, 0, 1, 1, 1] * 4))


def test_clusters_projections_topics():
    table = {"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0, "u", "v")}
    assert "Number of clusters" in text_of(render(cluster(table)))
    assert "Weights of columns" in text_of(render(project(table)))
    texts = ["dog cat dog bone", "cat dog fur", "sun rain wind", "rain cloud sun"] * 8
    found = topics({"said": texts}, "said", topics=2)
    assert "Words by topic" in text_of(render(found))


def test_models_of_tables_have_their_rows(classifier):
    with pytest.raises(ValueError, match="a table model is already evaluated"):
        render(classifier, y=Y)
    with pytest.raises(ValueError, match="this model contains it"):
        render(classifier, X=X)
    without = dataclasses.replace(classifier, table=None)  # as model files leave it
    assert "data" not in read(render(without)).ids
    assert "SHA-256 digest differs" not in render(without, X=classifier.table)
    some = classifier.table.rows(np.arange(50))
    assert "SHA-256 digest differs" in render(without, X=some)


def test_rows_and_labels_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="X has 60 rows, but y has 59 entries"):
        render(mercer.SVC().fit(X, Y), X=X, y=Y[1:])


def test_what_is_not_certified_is_said_first(classifier):
    doubted = dataclasses.replace(classifier.certificate, ok=False, statement="far from it")
    text = text_of(render(dataclasses.replace(classifier, certificate=doubted)))
    assert text.index("Not certified: far from it") < text.index("Performance")


def test_a_model_no_better_than_a_constant_is_said_first(classifier):
    accuracy = dataclasses.replace(classifier.evaluation["accuracy"], baseline=0.99)
    poor = dataclasses.replace(classifier.evaluation, metrics=(accuracy,))
    text = text_of(render(dataclasses.replace(classifier, evaluation=poor)))
    assert (
        "The accuracy of the model is not significantly better than that of the best constant"
        in text
    )


def test_unfitted_machines_are_refused():
    with pytest.raises(Exception, match="not fitted"):
        render(mercer.SVC())


def test_the_page_of_one_model_does_not_change(classifier):
    def without_times(page):
        a, b = page.index('<div class="cards">'), page.index('<section id="quality"')
        c, d = page.index('<section id="cost"'), page.index('<section id="reproduce"')
        return page[:a] + page[b:c] + page[d:]

    assert without_times(render(classifier)) == without_times(render(classifier))


# --- files ---------------------------------------------------------------------------------------


def test_a_report_is_written_whole(classifier, tmp_path):
    path = tmp_path / "spaces and ünïcode.html"
    assert write_report(classifier, path) == path
    assert path.read_text(encoding="utf-8").endswith("</html>")
    assert os.listdir(tmp_path) == [path.name]
    assert path.stat().st_size < 2_000_000


def test_a_failed_write_leaves_the_old_report(classifier, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(classifier, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_folder_that_is_not_there_is_named(classifier, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_report(classifier, tmp_path / "nowhere" / "report.html")


def test_what_is_missing_is_named(classifier, monkeypatch):
    import sys

    from mercer.report import write as rendering

    rendering._template.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "mercer\[report\]"'):
        render(classifier)
