"""Numbers at the ends of their range: refused in words, or judged, never a raw error."""

import numpy as np
import pytest

import mercer
from mercer.kernels import Intersection, Laplacian, Linear

pytestmark = pytest.mark.numerics

RNG = np.random.default_rng(0)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_similarities_without_digits_are_no_edges():
    X = np.abs(RNG.standard_normal((73, 4)) * 5e-324)
    machine = mercer.SpectralClustering(
        kernel=Intersection(), neighbors=3, weights="kernel", self_loops=False
    ).fit(X)
    assert np.isfinite(machine.eigenvalues_).all()
    assert machine.solution_.status.ok == machine.certificate_.ok


def test_a_fit_that_overflows_says_so_itself():
    rng = np.random.default_rng(824728)
    X = rng.integers(0, 4, (52, 1)).astype(float)
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    machine = mercer.GaussianClassifier(covariance="diagonal", shared=True, floor=1e-15)
    with pytest.raises((ValueError, RuntimeError), match=r"[Ss]cale"):
        machine.fit(np.full((52, 1), 7.0) * 1e300, y, sample_weight=1e-300 * rng.random(52))
    assert not hasattr(machine, "classes_")


def test_means_of_far_rows_are_the_same_to_rounding():
    X = np.array([[1e8 + 0.1], [1e8 + 0.9]])
    machine = mercer.NearestMean(Laplacian(0.382) ** 2 + Linear())
    with pytest.warns(UserWarning, match="the same to rounding"):
        machine.fit(X, [0, 1])
    assert not machine.certificate_.ok
