"""The drop-in KMeans against scikit-learn's."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn import cluster
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.compat.sklearn import KMeans

THEIRS = cluster.KMeans
X, _ = make_blobs(120, 3, centers=4, random_state=0)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@parametrize_with_checks([KMeans(n_clusters=3)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_signature_is_theirs():
    ours, theirs = (inspect.signature(c).parameters.values() for c in (KMeans, THEIRS))
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs
    ]


@pytest.mark.parametrize("max_iter", [1, 2, 3])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_same_start_makes_the_same_steps(kind, max_iter):
    weights = np.random.default_rng(0).uniform(size=120)
    theirs, ours = (c(4, init=X[:4], max_iter=max_iter, tol=0) for c in (THEIRS, KMeans))
    theirs.fit(kind(X), sample_weight=weights)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        ours.fit(kind(X), sample_weight=weights)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.inertia_, theirs.inertia_)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X))
    np.testing.assert_allclose(ours.score(X), theirs.score(X))
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.labels_.dtype == theirs.labels_.dtype


@pytest.mark.parametrize("seed", range(5))
def test_ends_are_never_worse_and_certified(seed):
    start = np.random.default_rng(seed).choice(X, 6, replace=False)
    theirs, ours = (c(6, init=start, tol=0).fit(X) for c in (THEIRS, KMeans))
    assert ours.inertia_ <= theirs.inertia_ * (1 + 1e-12)
    assert ours.solution_.status.ok
    assert ours.certificate_.ok
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)


@pytest.mark.parametrize(
    "options", [{"n_clusters": 0}, {"init": "far"}, {"tol": -1.0}, {"algorithm": "full"}]
)
def test_refusals_name_the_parameter(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        KMeans(**options).fit(X)


@pytest.mark.parametrize("fitted", [np.float32, np.float64])
@pytest.mark.parametrize("asked", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_of_any_type_find_their_clusters(fitted, asked, kind):
    machine = KMeans(4, random_state=0).fit(X.astype(fitted))
    rows = kind(np.round(4 * X).astype(asked))
    if kind is sparse.csr_array:
        rows.indices, rows.indptr = (a.astype(np.int64) for a in (rows.indices, rows.indptr))
    away = machine.transform(rows)
    np.testing.assert_array_equal(machine.predict(rows), away.argmin(axis=1))
    np.testing.assert_allclose(-machine.score(rows), np.square(away.min(axis=1)).sum(), rtol=1e-4)
    assert KMeans(4, random_state=0).fit(rows).labels_.dtype == np.int32
