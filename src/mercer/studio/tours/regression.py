"""Tours of regression: ridge, the tube, Gaussian processes."""

from __future__ import annotations

from collections.abc import Iterator

from mercer.studio.tours.tour import Frame, Tour, changed, preset, told


def ridge() -> Iterator[Frame]:
    """Change the penalty of ridge regression."""
    scene = changed(preset("sine", 40), machine="KernelRidge", kernel="gaussian(0.4)")
    yield from told(scene, [
        ("A line first", "Least squares with the linear kernel: one slope, one constant.",
         {"kernel": "linear", "parameters": {"penalty": 1e-3}}),
        ("Bumps in place of a line", "With the Gaussian kernel the function is a sum of bumps, "
         "one at each point; (K + penalty) c = y gives their heights.",
         {"parameters": {"penalty": 0.1}}),
        ("Almost no regularization", "With a tiny penalty the function passes through nearly every "
         "point, including the noise, and oscillates.", {"parameters": {"penalty": 1e-8}}),
        ("Strong regularization", "With a large penalty it is flat. Leave-one-out finds a value "
         "between: look at the curve under the slider.", {"parameters": {"penalty": 100.0}}),
    ])  # fmt: skip


def tube() -> Iterator[Frame]:
    """Change the tube of support vector regression."""
    scene = changed(preset("sinc", 60), machine="SVR", kernel="gaussian(0.25)")
    yield from told(scene, [
        ("A tube", "Errors up to epsilon cost nothing: points inside the tube have no say. Those "
         "on it and outside carry the function.", {"parameters": {"C": 10.0, "epsilon": 0.1}}),
        ("A wide tube", "With epsilon = 0.4 a few points hold the whole function.",
         {"parameters": {"C": 10.0, "epsilon": 0.4}}),
        ("No tube", "With epsilon near zero every point has the same influence: the function "
         "follows the median.", {"parameters": {"C": 10.0, "epsilon": 0.001}}),
        ("Outliers", "Errors cost their size, not its square: some points far off hardly move "
         "the line.", {"points": preset("outliers")["points"], "kernel": "linear",
          "parameters": {"C": 10.0, "epsilon": 0.1}}),
        ("Squared errors", "Ridge regression squares errors, and the same outliers lift the line.",
         {"points": preset("outliers")["points"], "machine": "KernelRidge", "kernel": "linear"}),
    ])  # fmt: skip


def process() -> Iterator[Frame]:
    """Show mean, band and draws of a Gaussian process."""
    scene = changed(preset("sine", 30), machine="GaussianProcess", kernel="gaussian(0.4)")
    yield from told(scene, [
        ("All functions at once", "The curve is the mean of all functions that agree with the "
         "points; the band holds two standard deviations; thin lines are draws.",
         {"parameters": {"noise": 0.02}}),
        ("No data", "The band widens between the points: without data the variance is large.",
         {"parameters": {"noise": 0.002}}),
        ("A rough kernel", "Matern functions have corners: draws are rougher, and the band opens "
         "sooner.", {"kernel": "matern(0.5, 0.5)", "parameters": {"noise": 0.02}}),
        ("By likelihood", "Scale and noise can be fitted to the likelihood of the points.",
         {"parameters": {"noise": 0.1, "optimize": True}}),
    ])  # fmt: skip


TOURS = (
    Tour("ridge", "Ridge regression", "regression", "Bumps, and what large functions cost.",
         "Welling 10", ridge),
    Tour("tube", "The tube", "regression", "Errors that cost nothing, and outliers.", "Welling 9",
         tube),
    Tour("process", "Gaussian processes", "regression", "A band that widens without data.",
         "lectures on processes", process),
)  # fmt: skip
