"""Parts that kernels of a grid have in common are evaluated once."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold

import mercer
from mercer import SVC, KernelRidge, NearestMean
from mercer.gram import Source
from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum, exp
from mercer.kernels.families import FromCallable
from mercer.selection import tune
from mercer.selection.sharing.gram import Parts

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("abcd"), size=12)) for _ in range(60)]
WIDE = RNG.normal(size=(50, 1600))


class Counted:
    """A kernel function that counts the entries it is asked for."""

    def __init__(self):
        self.entries = 0

    def __call__(self, X, Y):
        self.entries += X.shape[0] * Y.shape[0]
        return np.asarray(X @ Y.T)


@pytest.mark.parametrize(
    ("kernels", "rows"),
    [
        ([w * Spectrum(2) + Spectrum(3) for w in (0.1, 1.0, 5.0)], WORDS),
        ([Spectrum(2).normalized() ** p for p in (1, 2, 3)], WORDS),
        ([exp(c * Spectrum(2).normalized()) for c in (0.1, 1.0)], WORDS),
        ([Spectrum(2) * Spectrum(k) for k in (2, 3)], WORDS),
        ([Gaussian(s) for s in (40.0, 80.0)], WIDE),
        ([Gaussian(s) + 0.5 * Polynomial(2) for s in (40.0, 80.0)], WIDE),
        ([Gaussian(s).on(range(1550)) + Linear() for s in (40.0, 80.0)], WIDE),
        ([Gaussian(s).normalized() for s in (40.0, 80.0)], WIDE),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matrices_from_parts_are_those_of_the_kernels(kernels, rows, dtype):
    formulas = [kernel.expression() for kernel in kernels]
    points = np.array(rows, dtype=object) if rows is WORDS else rows
    parts = Parts(formulas, points)
    assert parts.count
    for formula, kernel in zip(formulas, kernels, strict=True):
        K = parts.dense(Source(formula, points, np.dtype(dtype)))
        assert K.dtype == dtype and K.flags["C_CONTIGUOUS"]
        exact = kernel(rows)
        rounding = 3e-6 if dtype == np.float32 else 1e-13  # of sums that may cancel
        np.testing.assert_allclose(K, exact, rtol=0, atol=rounding * np.abs(exact).max())
        np.testing.assert_array_equal(K, K.T)


def test_nothing_is_kept_for_few_columns_or_for_one_kernel_alone():
    narrow = [Gaussian(s).expression() for s in (1.0, 2.0)]
    assert Parts(narrow, RNG.normal(size=(20, 3))).count == 0
    assert Parts([Gaussian(2.0).expression()], WIDE).count == 0


@pytest.mark.parametrize(
    ("machine", "other"),
    [
        (SVC(), {"C": [0.1, 10.0]}),
        (KernelRidge(), {"penalty": [0.1, 10.0]}),
        (NearestMean(), {}),
    ],
)
def test_a_function_is_asked_once_for_all_kernels(machine, other):
    X = RNG.normal(size=(200, 3))
    y = X[:, 0] > 0 if not isinstance(machine, KernelRidge) else X[:, 0]
    counted = Counted()
    kernels = [w * FromCallable(counted) + Gaussian(1.0) for w in (0.5, 1.0, 2.0, 4.0)]
    grid, folds = {"kernel": kernels, **other}, KFold(4, shuffle=True, random_state=0)
    found = tune(machine, X, y, grid=grid, cv=folds)
    entries = counted.entries
    assert entries < 2.5 * 200 * 200  # once, and diagonals
    theirs = GridSearchCV(machine, grid, cv=folds).fit(X, y)
    np.testing.assert_allclose(found.mean, theirs.cv_results_["mean_test_score"], atol=1e-9)
    assert counted.entries - entries > 3 * entries


def test_parts_count_in_the_memory_that_is_planned():
    X = RNG.normal(size=(400, 2))
    kernels = [w * FromCallable(Counted()) + Gaussian(1.0) for w in (0.5, 1.0)]
    with mercer.config(memory="2 MB"):  # not even one matrix beside what a fit needs
        found = tune(KernelRidge(), X, X[:, 0], grid={"kernel": kernels}, cv=2)
    assert np.isfinite(found.mean).all()
