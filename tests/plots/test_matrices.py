import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn import decomposition
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import CCA, PCA, SVC, FisherDiscriminant, KMeans, NaiveBayes, SpectralClustering, Whiten
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.plots import KernelMatrixDisplay, SpectrumDisplay

RNG = np.random.default_rng(0)
Y = np.array(list("cabacbbaca" * 6))
X = RNG.normal(size=(60, 3)) + 4.0 * (Y[:, None] == np.array(list("abc")))


def axes():
    return Figure(layout="constrained").subplots()


def test_entries_are_those_of_the_kernel_in_the_order_of_classes():
    shown = KernelMatrixDisplay.from_kernel(Gaussian(2.0), X, Y, ax=axes())
    assert np.array_equal(Y[shown.order], np.sort(Y))
    expected = Gaussian(2.0)(X)[np.ix_(shown.order, shown.order)]
    assert np.allclose(shown.image_.get_array(), expected, rtol=1e-12)
    assert shown.groups.tolist() == ["a", "b", "c"] and shown.sizes.sum() == 60
    ticks = [text.get_text() for text in shown.ax_.get_yticklabels()]
    assert ticks == ["a", "b", "c"]


def test_entries_of_a_fitted_machine_are_those_of_its_own_rows():
    machine = make_pipeline(StandardScaler(), SVC("gaussian")).fit(X, Y)
    shown = KernelMatrixDisplay.from_estimator(machine, X, Y, ax=axes())
    rows = StandardScaler().fit_transform(X)[shown.order]
    assert np.allclose(shown.matrix, machine[-1].kernel_(rows))


def test_clusters_lie_together():
    machine = KMeans(3).fit(X)
    shown = KernelMatrixDisplay.from_estimator(machine, X, ax=axes())
    assert np.array_equal(machine.labels_[shown.order], np.sort(machine.labels_))
    found = KernelMatrixDisplay.from_kernel(
        Gaussian(1.5), X, order="cluster", n_clusters=3, ax=axes()
    )
    names = [set(Y[part]) for part in np.split(found.order, np.cumsum(found.sizes)[:-1])]
    assert sorted(map(len, names)) == [1, 1, 1]
    both = KernelMatrixDisplay.from_kernel(
        Linear(), X - X.mean(axis=0), order="cluster", n_clusters=3, ax=axes()
    )
    low, high = both.image_.get_clim()
    assert low == -high  # zero is the middle of the colours


def test_rows_as_they_come_and_precomputed():
    K = Gaussian(1.0)(X)
    shown = KernelMatrixDisplay.from_kernel(Precomputed(), K, order="rows", ax=axes())
    assert np.array_equal(shown.matrix, K)


def test_of_many_rows_some_are_drawn_and_that_is_said():
    shown = KernelMatrixDisplay.from_kernel(Gaussian(1.0), X, Y, max_rows=25, ax=axes())
    assert shown.matrix.shape == (25, 25) and "25 of 60 rows, drawn at random" in shown.text
    assert np.allclose(shown.matrix, Gaussian(1.0)(X[shown.order]))


def test_matrices_that_are_refused():
    with pytest.raises(TypeError, match="an estimator with a kernel, got NaiveBayes"):
        KernelMatrixDisplay.from_estimator(NaiveBayes().fit(X, Y), X)
    with pytest.raises(ValueError, match="order='class' needs labels"):
        KernelMatrixDisplay.from_kernel(Linear(), X, order="class")
    with pytest.raises(ValueError, match="order='size' must be"):
        KernelMatrixDisplay.from_kernel(Linear(), X, order="size")
    with pytest.raises(ValueError, match="60 rows, but 5 labels"):
        KernelMatrixDisplay.from_kernel(Linear(), X, Y[:5])


def test_shares_are_those_of_principal_components():
    shown = SpectrumDisplay.from_estimator(PCA().fit(X), ax=axes())
    theirs = decomposition.PCA().fit(X).explained_variance_ratio_
    assert np.allclose([bar.get_height() for bar in shown.bars_], theirs)
    assert np.allclose(shown.line_.get_ydata(), np.cumsum(theirs))
    few = SpectrumDisplay.from_estimator(PCA(1).fit(X), ax=axes())
    assert np.allclose(few.shares, theirs[:1])  # of the whole variance, not of what was kept


def test_eigenvalues_of_a_kernel():
    K = Gaussian(1.0)(X)
    values = np.linalg.eigvalsh(K)[::-1]
    shown = SpectrumDisplay.from_kernel(Gaussian(1.0), X, centred=False, ax=axes(), kind="values")
    assert np.allclose(shown.bars_.get_ydata(), values)
    assert shown.ax_.get_yscale() == "log"
    centred = SpectrumDisplay.from_kernel(Gaussian(1.0), X, ax=axes())
    machine = PCA(kernel=Gaussian(1.0)).fit(X)
    assert np.allclose(centred.values[:5], machine.eigenvalues_[:5])
    assert np.allclose(centred.shares[:5], machine.explained_variance_ratio_[:5])


def test_rounding_is_not_drawn_and_negative_eigenvalues_are():
    flat = SpectrumDisplay.from_kernel(Linear(), X, ax=axes(), kind="values")
    assert np.isfinite(flat.bars_.get_ydata()).sum() == 3
    K = np.diag([2.0, 1.0, -0.5])
    below = SpectrumDisplay.from_kernel(Precomputed(), K, centred=False, ax=axes(), kind="values")
    assert below.bars_.get_ydata().tolist() == [2.0, 1.0, -0.5]
    assert below.ax_.get_yscale() == "linear"


def test_a_matrix_of_zeros():
    for kind in ("share", "values"):
        shown = SpectrumDisplay.from_kernel(Precomputed(), np.zeros((4, 4)), kind=kind, ax=axes())
        assert not shown.values.any() and not shown.shares.any()
    assert not KernelMatrixDisplay.from_kernel(
        Precomputed(), np.zeros((4, 4)), ax=axes()
    ).matrix.any()


def test_other_machines_with_a_spectrum():
    fisher = FisherDiscriminant().fit(X, Y)
    shown = SpectrumDisplay.from_estimator(fisher, ax=axes())
    assert np.allclose(shown.bars_.get_ydata(), fisher.ratios_)
    with pytest.raises(ValueError, match=r"no fractions; use kind='values'"):
        shown.plot(axes(), kind="share")
    cca = CCA(1).fit(X[:, :2], X[:, 2:])
    assert SpectrumDisplay.from_estimator(cca, ax=axes()).name == "canonical correlation"
    assert SpectrumDisplay.from_estimator(Whiten().fit(X), ax=axes()).shares.sum() == 1.0
    cut = SpectralClustering(3, Gaussian(1.0)).fit(X)
    assert SpectrumDisplay.from_estimator(cut, ax=axes()).values[0] > 0.99
    with pytest.raises(TypeError, match="such as PCA, got SVC; MarginDisplay draws SVC"):
        SpectrumDisplay.from_estimator(SVC().fit(X, Y))
