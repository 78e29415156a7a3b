"""Rows and constants out of the range of float32, where K of many rows would be stored in it."""

import numpy as np
import pytest

from mercer import SVC, SVR, KMeans, OneClassSVM, SpectralClustering, Status, tune
from mercer.kernels import Gaussian

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
X = rng.standard_normal((1010, 3))  # more than have K in float64
X[:500] += 3.0
y = X[:, 0] + X[:, 1] ** 2 / 2 + 0.3 * rng.standard_normal(1010)
MACHINES = {
    "SVC": lambda s: SVC(kernel=Gaussian(1.5 * s)).fit(X * s, y > 1).decision_function(X[:20] * s),
    "SVR": lambda s: SVR(kernel=Gaussian(1.5 * s)).fit(X * s, y).predict(X[:20] * s),
    "one class": lambda s: OneClassSVM(Gaussian(1.5 * s)).fit(X * s).decision_function(X[:20] * s),
    "means": lambda s: _of_first(KMeans(2, kernel=Gaussian(1.5 * s)).fit(X * s)),
    "cut": lambda s: _of_first(SpectralClustering(2, Gaussian(1.5 * s)).fit(X * s)),
}


def _scores(s):
    grid = {"kernel": [Gaussian(1.5 * s)], "C": [1.0, 10.0]}
    return tune(SVC(), X * s, y > 1, grid=grid, cv=3).mean


def _of_first(machine):
    assert machine.solution_.status is not Status.SOLVED or machine.certificate_.ok
    return machine.labels_ == machine.labels_[0]


MACHINES["tune"] = _scores


@pytest.mark.parametrize("scale", [1e-100, 1e-20, 1e20, 1e100])
@pytest.mark.parametrize("name", MACHINES)
def test_answers_do_not_depend_on_the_unit(name, scale):
    found, expected = MACHINES[name](scale), MACHINES[name](1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-2)
