"""Sparse matrices whose arrays contradict one another are refused wherever rows enter."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import mercer
from mercer import SVC, KernelRidge, NaiveBayes, Perceptron
from mercer.compat import sklearn as compat
from mercer.kernels import Gaussian, Linear
from mercer.rows.points import refuse_broken_sparse
from mercer.selection import tune

ROWS, COLUMNS = 20, 8
rng = np.random.default_rng(0)
DENSE = np.where(rng.random((ROWS, COLUMNS)) < 0.4, rng.integers(1, 4, (ROWS, COLUMNS)), 0.0)
DENSE[:, 0] = 1.0  # no row is empty
LABELS = np.arange(ROWS) % 2


def whole():
    return sparse.csr_array(DENSE)


def with_index(value, at=10):
    X = whole()
    X.indices[at] = value
    return X


def with_pointer(at, value):
    X = whole()
    X.indptr[at] = value
    return X


def cut(name):
    X = whole()
    setattr(X, name, getattr(X, name)[:-3])
    return X


def coordinates(row):
    X = sparse.coo_array(DENSE)
    X.coords[0][4] = row
    return X


BROKEN = {
    "far index": lambda: with_index(10**6),
    "one past the columns": lambda: with_index(COLUMNS),
    "negative index": lambda: with_index(-3),
    "pointer too far": lambda: with_pointer(-1, 10**6),
    "falling pointer": lambda: with_pointer(5, 0),
    "negative pointer": lambda: with_pointer(3, -7),
    "first pointer": lambda: with_pointer(0, 2),
    "few values": lambda: cut("data"),
    "few indices": lambda: cut("indices"),
    "few pointers": lambda: cut("indptr"),
    "row of a coordinate": lambda: coordinates(ROWS),
    "negative coordinate": lambda: coordinates(-2),
}

MACHINES = [
    SVC(),
    SVC(Linear()),
    mercer.SVR(),
    KernelRidge(),
    mercer.GaussianProcess(),
    mercer.MultiTaskGaussianProcess(),
    mercer.GaussianProcessClassifier(),
    mercer.LogisticRegression(),
    mercer.PCA(1, kernel=Linear()),
    mercer.KMeans(2),
    mercer.FisherDiscriminant(),
    mercer.NearestMean(),
    mercer.NearestNeighbors(),
    mercer.OneClassSVM(),
    mercer.EnclosingBall(),
    mercer.SpectralClustering(2),
    mercer.CCA(n_components=1),
    mercer.MultinomialMixture(2),
    mercer.BernoulliMixture(2),
    mercer.MDS(1),
    mercer.ProbabilisticPCA(1),
    mercer.ICA(1),
    mercer.LabelPropagation(),
    mercer.LaplacianSVC(),
    Perceptron(),
    NaiveBayes(kinds="count"),
    compat.SVC(),
    compat.LinearSVC(),
    compat.SVR(),
    compat.OneClassSVM(),
    compat.KernelPCA(1),
    compat.SpectralClustering(2),
]


def refused(call, *args):
    """Call with the last argument broken, and see that it is refused and left as it was."""
    X = args[0]
    before = [part.copy() for part in parts(X)]
    with pytest.raises(ValueError, match=r"broken sparse matrix X: .*Make it anew"):
        call(*args)
    for was, now in zip(before, parts(X), strict=True):
        np.testing.assert_array_equal(was, now)


def parts(X):
    return (X.data, *X.coords) if X.format == "coo" else (X.data, X.indices, X.indptr)


@pytest.mark.parametrize("how", BROKEN)
def test_every_contradiction_is_found(how):
    refused(refuse_broken_sparse, BROKEN[how]())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # not separable
@pytest.mark.parametrize("how", ["far index", "one past the columns", "negative index"])
@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_machines_refuse_at_fit_and_afterwards(machine, how):
    refused(clone(machine).fit, BROKEN[how](), LABELS)
    fitted = clone(machine).fit(whole(), LABELS)
    for name in ("predict", "transform", "decision_function", "partial_fit"):
        if hasattr(fitted, name):
            more = (LABELS,) if name == "partial_fit" else ()
            refused(getattr(fitted, name), BROKEN[how](), *more)


@pytest.mark.parametrize("how", ["far index", "negative index", "pointer too far"])
def test_kernels_and_tuning_refuse(how):
    for kernel in (Gaussian(1.0), Linear()):
        refused(kernel, BROKEN[how]())
        refused(kernel.diag, BROKEN[how]())
        refused(lambda X, k=kernel: k(whole(), X), BROKEN[how]())
    refused(lambda X: tune(SVC(), X, LABELS, grid={"C": [1.0]}, cv=2), BROKEN[how]())


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_whole_matrices_pass(form):
    X = whole().asformat(form)
    refuse_broken_sparse(X)
    np.testing.assert_allclose(Linear()(X), DENSE @ DENSE.T)


def test_blocks_and_columns_are_looked_at_in_their_own_units():
    blocks = sparse.bsr_array(DENSE, blocksize=(2, 2))
    blocks.indices[0] = COLUMNS // 2
    refused(refuse_broken_sparse, blocks)
    columns = sparse.csc_array(DENSE)
    columns.indices[0] = ROWS
    refused(refuse_broken_sparse, columns)


def test_the_place_is_named():
    X = whole()
    X.indices[X.indptr[7]] = 11
    with pytest.raises(ValueError, match=r"index 11 in row 7 is not one of 8 columns"):
        SVC().fit(X, LABELS)
