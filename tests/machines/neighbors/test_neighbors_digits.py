"""Neighbors in extreme units, near copies, and under kernels whose rounding hides distances."""

import mpmath
import numpy as np
import pytest

from mercer import NearestMean, NearestNeighbors, load, save
from mercer.kernels import Gaussian, Laplacian, Polynomial, RationalQuadratic

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
y = np.arange(60) % 2


@pytest.mark.parametrize("exponent", [-1000, -664, -500, 500, 900])
@pytest.mark.parametrize("kernel", [lambda unit: "linear", Gaussian])
def test_units_change_no_neighbor(kernel, exponent):
    unit = 2.0**exponent
    plain = NearestNeighbors(3, kernel(1.0)).fit(X, y)
    scaled = NearestNeighbors(3, kernel(unit)).fit(X * unit, y)
    near, far = plain.kneighbors(X), scaled.kneighbors(X * unit)
    np.testing.assert_array_equal(near[1], far[1])
    np.testing.assert_array_equal(far[1][:, 0], np.arange(60))  # each finds itself
    length = unit if kernel is not Gaussian else 1.0
    np.testing.assert_allclose(far[0], near[0] * length, rtol=1e-12)
    assert scaled.certificate_.ok


@pytest.mark.numerics
@pytest.mark.parametrize(
    ("kernel", "profile"),
    [
        (Gaussian(1e3), lambda q: mpmath.exp(-q / (2 * mpmath.mpf(10) ** 6))),
        (
            RationalQuadratic(0.7, 1e3),
            lambda q: (1 + q / (2 * mpmath.mpf(0.7) * 10**6)) ** -mpmath.mpf(0.7),
        ),
        (
            2.0 * Gaussian(1e3) + RationalQuadratic(1.0, 1e3),
            lambda q: 2 * mpmath.exp(-q / (2 * mpmath.mpf(10) ** 6)) + 1 / (1 + q / (2 * 10**6)),
        ),
        (Laplacian(1e9), None),
    ],
)
def test_distances_of_near_samples_keep_their_digits(kernel, profile):
    pairs = np.column_stack([X[:20, 0], X[:20, 0] + 2.0 ** -np.arange(5, 25)])
    for pair in pairs:
        machine = NearestNeighbors(1, kernel).fit(pair[:, None], [0, 1])
        found = machine.kneighbors(n_neighbors=1)[0][0, 0]
        with mpmath.workdps(60):
            apart = mpmath.mpf(float(pair[0])) - mpmath.mpf(float(pair[1]))
            if profile is None:
                wanted = mpmath.sqrt(-2 * mpmath.expm1(-abs(apart) / mpmath.mpf(10) ** 9))
            else:
                wanted = mpmath.sqrt(2 * (profile(mpmath.mpf(0)) - profile(apart**2)))
            assert abs(found / wanted - 1) < 1e-13


@pytest.mark.filterwarnings("ignore:.*stopped making progress")
def test_what_rounding_of_a_polynomial_hides_is_not_certified():
    rows = np.round(X * 64) / 64
    near = NearestNeighbors(3, Polynomial(2)).fit(rows, y)
    assert near.certificate_.ok and near.certificate_.quantities.hidden < 1e-9
    far = NearestNeighbors(3, Polynomial(2)).fit(rows + 2.0**30, y)
    assert not far.certificate_.ok
    assert "rounding of the kernel hides" in far.certificate_.statement


@pytest.mark.filterwarnings("ignore:.*differ in scale")
def test_an_outlier_hides_no_neighbor_of_the_others():
    rows = np.vstack([X, [[1e12, 0.0, 0.0]]])
    far, near = NearestNeighbors(3, Gaussian(1.0)), NearestNeighbors(3, Gaussian(1.0))
    found = far.fit(rows, np.append(y, 0)).kneighbors(X)
    wanted = near.fit(X, y).kneighbors(X)
    np.testing.assert_array_equal(found[1], wanted[1])
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-14)
    assert far.certificate_.ok


def test_the_unit_is_saved(tmp_path):
    machine = NearestNeighbors(3).fit(X * 1e-200, y)
    save(machine, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    for here, there in zip(
        machine.kneighbors(X * 1e-200), again.kneighbors(X * 1e-200), strict=True
    ):
        np.testing.assert_array_equal(here, there)
    assert machine.kneighbors(n_neighbors=1)[0].max() > 1e-202


@pytest.mark.filterwarnings("ignore:.*stopped making progress")
@pytest.mark.parametrize("kernel", [Polynomial(2, offset=100.0), Polynomial(3)], ids=repr)
def test_means_whose_distances_are_lost_in_rounding_are_not_certified(kernel):
    rows, of = X[:6], np.arange(6) % 2  # fewer than the kernel has features
    near, far = NearestMean(kernel).fit(rows, of), NearestMean(kernel).fit(rows + 1e8, of)
    assert near.certificate_.ok
    assert near.certificate_.quantities.rounding < 1e-12
    assert not far.certificate_.ok
    assert far.certificate_.quantities.rounding > 1e-3


@pytest.mark.filterwarnings("ignore:.*stopped making progress")
def test_means_whose_distances_underflow_are_not_certified():
    rows = np.array([[1e6, 1e6], [1e6 + 1.0, 1e6 + 3.0]])
    assert NearestMean().fit(rows, [0, 1]).certificate_.ok
    assert not NearestMean().fit(1e-155 * rows, [0, 1]).certificate_.ok


@pytest.mark.filterwarnings("ignore:.*stopped making progress")
def test_the_certificate_of_means_says_what_distances_are_known_to():
    machine = NearestMean(Polynomial(2)).fit(X[:6] + 1e4, np.arange(6) % 2)
    found = machine.certificate_
    assert found.ok
    assert f"squared distances are known to {found.quantities.rounding:.1e}" in found.statement
