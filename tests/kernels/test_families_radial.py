"""Kernels of a distance, against scikit-learn and arbitrary precision."""

import mpmath
import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer.backends import available_backends
from mercer.expression import SqDist, walk
from mercer.kernels import Gaussian, Laplacian, Matern, RationalQuadratic
from mercer.resources import config

RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(12, 4)), RNG.normal(size=(7, 4))
SCALES = [0.5, 1.0, 2.0, 4.0]


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


def close(found, wanted, rtol=1e-12):
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-300)


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_gaussian(scale):
    close(Gaussian(scale)(X, Y), pairwise.rbf_kernel(X, Y, gamma=0.5 / scale**2))


def test_gaussian_with_one_scale_per_feature():
    close(Gaussian(SCALES)(X, Y), gp.RBF(SCALES)(X, Y))
    assert Gaussian(np.array(SCALES)) == Gaussian(SCALES)
    close(Gaussian([2.0] * 4)(X, Y), Gaussian(2.0)(X, Y))
    with pytest.raises(ValueError, match="4 scales"):
        Gaussian(SCALES)(X[:, :3])


def test_gaussians_of_all_scales_share_one_distance():
    distances = {
        e for s in (0.1, 1, 9) for e in walk(Gaussian(s).expression()) if isinstance(e, SqDist)
    }
    assert distances == {SqDist()}


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_laplacian(scale):
    close(Laplacian(scale)(X, Y), pairwise.laplacian_kernel(X, Y, gamma=1 / scale))


def test_laplacian_with_one_scale_per_feature():
    wanted = np.exp(-np.abs((X[:, None] - Y[None]) / SCALES).sum(axis=2))
    close(Laplacian(SCALES)(X, Y), wanted)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf, 0.3, 1.0, 3.7])
@pytest.mark.parametrize("scale", [0.7, 3.0, SCALES])
def test_matern(nu, scale):
    close(Matern(nu, scale)(X, Y), gp.Matern(scale, nu=nu)(X, Y), rtol=1e-11)
    assert np.all(Matern(nu, scale).diag(X) == 1.0)


def exact_matern(d, nu, scale):
    with mpmath.workdps(50):
        r = mpmath.sqrt(2 * mpmath.mpf(nu)) * mpmath.mpf(d) / mpmath.mpf(scale)
        if r == 0:
            return 1.0
        front = mpmath.mpf(2) ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu)
        return float(front * r**nu * mpmath.besselk(nu, r))


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.75, 1.5, 2.0, 2.5, 3.5, 7.25])
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 30.0, 1e4])
def test_matern_against_arbitrary_precision(nu, scale):
    D = np.array([0.0, 1e-6, 1e-3, 0.1, 0.9, 2.0, 5.0])
    found = Matern(nu, scale)(D[:, None], [[0.0]])[:, 0]
    wanted = np.array([exact_matern(d, nu, scale) for d in D])
    np.testing.assert_allclose(
        found, wanted, rtol=2e-12 * (1 + np.abs(np.log(wanted + 1e-300)).max()), atol=1e-290
    )


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.5, 50.0])
@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_rational_quadratic(alpha, scale):
    close(RationalQuadratic(alpha, scale)(X, Y), gp.RationalQuadratic(scale, alpha)(X, Y))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-20, 1e20, 1e160, 1e300])
@pytest.mark.parametrize("kernel", [Gaussian, Laplacian, Matern, RationalQuadratic])
def test_extreme_scales_stay_numbers(kernel, scale):
    K = kernel(scale=scale)(np.array([[0.0], [0.0], [1.0]]))
    assert np.all(np.isfinite(K))
    assert K[0, 1] == 1.0
    np.testing.assert_allclose(K[0, 2], 0.0 if scale < 1 else 1.0, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-3, 0.04, 1.0, 1e3, 1e8])
def test_gaussian_against_arbitrary_precision(scale):
    D = np.array([1e-8, 1e-3, 0.5, 1.0, 1.3])
    found = Gaussian(scale)(D[:, None], [[0.0]])[:, 0]
    with mpmath.workdps(50):
        wanted = [
            float(mpmath.exp(-(mpmath.mpf(d) ** 2) / (2 * mpmath.mpf(scale) ** 2))) for d in D
        ]
    # relative error of exp is the absolute error of its argument
    np.testing.assert_allclose(
        found, wanted, rtol=4e-16 * (2 + 0.5 * (1.3 / scale) ** 2), atol=5e-324
    )


@pytest.mark.parametrize("kernel", [Gaussian, Laplacian, Matern, RationalQuadratic])
@pytest.mark.parametrize(
    "scale", [0, -1, np.nan, np.inf, "a", [], [1, -1], [[1, 2]], None, 10**400]
)
def test_scale_must_be_positive(kernel, scale):
    with pytest.raises(ValueError, match=f"{kernel.__name__}: scale"):
        kernel(scale=scale)


def test_other_refusals():
    with pytest.raises(ValueError, match="nu=0"):
        Matern(nu=0)
    with pytest.raises(ValueError, match="nu=nan"):
        Matern(nu=np.nan)
    with pytest.raises(ValueError, match="alpha=-1"):
        RationalQuadratic(alpha=-1)


def test_near_and_far_points_keep_their_distance():
    # |x|^2 - 2 x'y + |y|^2 would lose all digits here
    Z = np.array([[1e8], [1e8 + 1.0], [1e8 + 2.0]])
    close(Gaussian(1.0)(Z)[0], np.exp(-0.5 * np.array([0.0, 1.0, 4.0])))


@pytest.mark.parametrize("unit", [1e-153, 1e-150, 1e-146, 1e150])
@pytest.mark.parametrize(
    "kernel", [Gaussian, lambda s: RationalQuadratic(0.7, s), lambda s: Matern(np.inf, s)]
)
def test_values_depend_on_distances_over_the_scale(kernel, unit):
    X = np.random.default_rng(0).standard_normal((9, 3))
    np.testing.assert_allclose(kernel(1.2 * unit)(X * unit), kernel(1.2)(X), rtol=1e-10)


@pytest.mark.numerics
@pytest.mark.parametrize("exponent", [-1020, -670, -515, -449, 449, 515, 670, 1020])
@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian,
        Laplacian,
        lambda scale: Matern(1.5, scale),
        lambda scale: Matern(2.5, scale),
        lambda scale: Matern(0.8, scale),
        lambda scale: RationalQuadratic(0.7, scale),
    ],
)
def test_scales_whose_squares_leave_the_range(kernel, exponent):
    """Powers of two change no digit: rows and scale in one unit give what they give in another."""
    unit = 2.0**exponent
    close(kernel(3.0 * unit)(X * unit, Y * unit), kernel(3.0)(X, Y))


def test_rows_of_another_size_than_an_extreme_scale():
    wide, narrow = Gaussian(1e200), Gaussian(1e-200)
    assert (wide(X) == 1.0).all()
    np.testing.assert_array_equal(narrow(X), np.eye(len(X)))
