"""The drop-in CCA gives what scikit-learn's iterations tend to."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import cross_decomposition
from sklearn.datasets import load_linnerud
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.compat.sklearn import CCA

ATTRIBUTES = [
    "x_weights_",
    "y_weights_",
    "x_loadings_",
    "y_loadings_",
    "x_rotations_",
    "y_rotations_",
    "coef_",
    "intercept_",
]


def data(n=60, p=5, q=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X[:, :q] @ rng.standard_normal((q, q)) + rng.standard_normal((n, q))


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("which", ["normal", "linnerud", "one target"])
def test_equals_scikit_learn(which, scale):
    X, y = load_linnerud(return_X_y=True) if which == "linnerud" else data()
    y = y[:, 0] if which == "one target" else y
    count = 1 if which == "one target" else 2
    options = {"scale": scale, "max_iter": 100_000, "tol": 1e-20}
    ours = CCA(count, **options).fit(X, y)
    theirs = cross_decomposition.CCA(count, **options).fit(X, y)
    for name in ATTRIBUTES:
        expected = getattr(theirs, name)
        assert_allclose(
            getattr(ours, name), expected, atol=1e-6 * np.abs(expected).max(), err_msg=name
        )
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
    assert ours.predict(X).shape == theirs.predict(X).shape
    for a, b in zip(ours.transform(X, y), theirs.transform(X, y), strict=True):
        assert_allclose(a, b, atol=1e-6 * np.abs(b).max())
    scores = ours.transform(X, y)
    back, expected = ours.inverse_transform(*scores), theirs.inverse_transform(*scores)
    for a, b in zip(back, expected, strict=True):
        assert_allclose(a, b, atol=1e-5 * np.abs(b).max())
    assert ours.certificate_.ok
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-6)


def test_signature():
    assert str(inspect.signature(CCA)).replace(" -> None", "").count("=") == 5
    assert CCA().get_params() == cross_decomposition.CCA().get_params()


def test_too_many_components():
    X, y = data()
    with pytest.raises(ValueError, match=r"upper bound is 3\. Got 4 instead"):
        CCA(4).fit(X, y)
    with pytest.warns(UserWarning, match="y residual is constant at iteration 1"):
        machine = CCA(2).fit(X, np.column_stack([y[:, 0], y[:, 0]]))
    assert not machine.x_weights_[:, 1].any()


@pytest.mark.filterwarnings("ignore:y residual is constant.*:UserWarning")
@parametrize_with_checks([CCA(n_components=1), CCA(n_components=1, scale=False)])
def test_check_estimator(estimator, check):
    check(estimator)


def test_an_answer_that_is_not_certified_is_warned_about():
    rng = np.random.default_rng(432179)
    X = rng.exponential(1.0, (4, 11))
    Y = X[:, :1] + rng.standard_normal((4, 3))
    X[0] = 1e6
    with pytest.warns(ConvergenceWarning, match="not certified"):
        machine = CCA().fit(X.astype(np.float32), Y)
    assert not machine.certificate_.ok
