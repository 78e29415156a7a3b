"""Every display once, on small data: for tests of what all have in common, and for references.

`python tests/plots/shown.py` writes the reference pictures anew; look at them before committing.
They are for people. Tests compare what the artists hold, not pixels: with other fonts 8 % larger
(DejaVu Serif), coarse pictures differ by up to 0.038 of white, root mean square; without its curve
that of a convergence differs by 0.017. No tolerance survives the one and sees the other.
"""

from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import make_moons

from mercer import CCA, PCA, SVC, SVR, KernelRidge, MultinomialMixture
from mercer import plots as p
from mercer.kernels import Gaussian
from mercer.selection import tune
from mercer.solvers import Progress
from mercer.theory import (
    double_sampling_error,
    double_well_program,
    finite_class_error,
    projection_program,
)

REFERENCES = Path(__file__).parent / "references"
DPI = 50  # of reference pictures: 320 pixels wide


@cache
def moons():
    return make_moons(80, noise=0.25, random_state=0)


@cache
def svc():
    return SVC(Gaussian(0.6), C=5.0).fit(*moons())


@cache
def wave():
    x = np.random.default_rng(0).uniform(0, 6, 60)
    return x[:, None], np.sin(x) + 0.2 * np.random.default_rng(1).normal(size=60)


@cache
def views():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(80, 1))
    return common + 0.4 * rng.normal(size=(80, 3)), common + 0.4 * rng.normal(size=(80, 2))


@cache
def blobs():
    rng = np.random.default_rng(0)
    y = np.repeat(["ash", "birch", "cedar"], 30)
    centres = {"ash": [0, 0, 0, 0], "birch": [3, 0, 1, 0], "cedar": [0, 3, 0, 1]}
    return np.array([centres[label] for label in y]) + rng.normal(size=(90, 4)), y


@cache
def tuning():
    grid = {"C": [0.1, 1.0, 10.0], "kernel__scale": [0.1, 0.3, 1.0, 3.0]}
    return tune(SVC(Gaussian(1.0)), *moons(), grid=grid, cv=3)


def topics(ax):
    counts = np.random.default_rng(0).poisson([[6, 5, 1, 0], [0, 1, 5, 7]] * 10)
    machine = MultinomialMixture(2).fit(counts)
    words = ["cat", "dog", "bond", "stock"]
    return p.TopicsDisplay.from_estimator(machine, words, n_words=3, ax=ax)


def bias_variance(ax):
    X, y = wave()
    return p.BiasVarianceDisplay.from_estimator(
        KernelRidge(0.1, kernel=Gaussian(1.0)), X[:30], y[:30], X[30:], y[30:],
        param_name="kernel__scale", param_range=[0.1, 0.5, 2.0, 10.0], resamples=8, ax=ax,
    )  # fmt: skip


def bounds(ax):
    promises = {
        "VC dimension 3": lambda n: double_sampling_error(3, n, delta=0.05),
        "1000 hypotheses": lambda n: finite_class_error(1000, n, delta=0.05),
    }
    return p.BoundsDisplay.from_functions(promises, [10, 100, 1000, 10_000], ax=ax)


def probabilities():
    rng = np.random.default_rng(0)
    prob = rng.uniform(size=400)
    return rng.uniform(size=400) < prob**1.5, prob


SHOWN = {
    "DecisionRegionDisplay": lambda ax: p.DecisionRegionDisplay.from_estimator(
        svc(), *moons(), grid_resolution=60, ax=ax
    ),
    "MarginDisplay": lambda ax: p.MarginDisplay.from_estimator(
        svc(), *moons(), grid_resolution=60, ax=ax
    ),
    "TubeDisplay": lambda ax: p.TubeDisplay.from_estimator(
        SVR(Gaussian(1.0), C=5.0, epsilon=0.2).fit(*wave()), *wave(), ax=ax
    ),
    "KernelMatrixDisplay": lambda ax: p.KernelMatrixDisplay.from_kernel(
        Gaussian(2.0), *blobs(), ax=ax
    ),
    "SpectrumDisplay": lambda ax: p.SpectrumDisplay.from_estimator(PCA().fit(blobs()[0]), ax=ax),
    "ProjectionDisplay": lambda ax: p.ProjectionDisplay.from_directions(
        *blobs(), directions="discriminant", ax=ax
    ),
    "ProjectionHistogramDisplay": lambda ax: p.ProjectionHistogramDisplay.from_directions(
        *blobs(), directions="principal", ax=ax
    ),
    "CanonicalPairsDisplay": lambda ax: p.CanonicalPairsDisplay.from_estimator(
        CCA(2).fit(*views()), *views(), ax=ax
    ),
    "RocCurveDisplay": lambda ax: p.RocCurveDisplay.from_estimator(
        SVC(Gaussian(3.0)).fit(*moons()), *moons(), false_negative_cost=5.0, ax=ax
    ),
    "CalibrationDisplay": lambda ax: p.CalibrationDisplay.from_predictions(*probabilities(), ax=ax),
    "ConfusionMatrixDisplay": lambda ax: p.ConfusionMatrixDisplay.from_predictions(
        ["a", "a", "b", "b", "b", "c"], ["a", "b", "b", "b", "b", "c"], ax=ax
    ),
    "ResidualsDisplay": lambda ax: p.ResidualsDisplay.from_estimator(
        KernelRidge(0.1, kernel=Gaussian(1.0)).fit(*wave()), *wave(), ax=ax
    ),
    "RidgePathDisplay": lambda ax: p.RidgePathDisplay.from_estimator(
        KernelRidge("loo").fit(views()[0], views()[1][:, 0]), views()[0], views()[1][:, 0], ax=ax
    ),
    "TuningDisplay": lambda ax: p.TuningDisplay.from_tuning(tuning(), ax=ax),
    "LearningCurveDisplay": lambda ax: p.LearningCurveDisplay.from_estimator(
        SVC(Gaussian(0.6)), *moons(), sizes=[10, 20, 40], cv=3, ax=ax
    ),
    "BiasVarianceDisplay": bias_variance,
    "ConvergenceDisplay": lambda ax: p.ConvergenceDisplay.from_trace(
        [Progress(k, 0.1 * k, 10.0 ** (-k / 3)) for k in range(20)], goal=1e-5, name="EM", ax=ax
    ),
    "TopicsDisplay": topics,
    "BoundsDisplay": bounds,
    "ImageSetDisplay": lambda ax: p.ImageSetDisplay.from_program(
        double_well_program(), (-1.5, 1.5), ax=ax
    ),
    "ForcesDisplay": lambda ax: p.ForcesDisplay.from_program(
        projection_program([2.0, 1.5], [[1, 0], [1, 1]], [1.0, 2.2]), (-1, 3), ax=ax
    ),
}


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    REFERENCES.mkdir(exist_ok=True)
    for name, draw in SHOWN.items():
        draw(None).figure_.savefig(REFERENCES / f"{name}.png", dpi=DPI)
