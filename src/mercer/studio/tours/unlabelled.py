"""Tours without labels: K-means, EM, spectral clustering, components."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.machines.clustering.kmeans import KMeans
from mercer.machines.decomposition.pca import PCA
from mercer.machines.mixture.gaussian_mixture import GaussianMixture
from mercer.studio.tours.tour import (
    NOTHING,
    Frame,
    Tour,
    changed,
    preset,
    quietly_fitted,
    rows_in,
    step,
    told,
)

_MOVES = 10
_EM_STEPS = (1, 2, 3, 5, 8, 13, 21, 34, 55)


def kmeans() -> Iterator[Frame]:
    """Show the moves of the means."""
    scene = changed(preset("clusters", 150, 0.2, seed=2), machine="KMeans",
                    parameters={"n_clusters": 3, "refine": False})  # fmt: skip
    rows = rows_in(scene)
    start = rows.X[np.argsort(rows.X[:, 0])[:3]]  # all at the left: a poor start
    layers = {"means": [[*row, k] for k, row in enumerate(start.tolist())]}
    yield Frame(
        "Three means, badly placed",
        "K-means alternates: each point goes to the nearest mean, each mean to the middle of its "
        "points. Here all three begin at the left.", scene,
        {"surface": None, "regions": None, "curve": None, "layers": layers},
    )  # fmt: skip
    last = None
    for most in range(1, _MOVES + 1):
        machine = KMeans(3, init=start, n_init=1, max_iter=most, refine=False)
        quietly_fitted(machine, rows.X)
        if last is not None and machine.inertia_ == last:
            break
        last = float(machine.inertia_)
        yield Frame(
            f"Move {most}",
            f"The sum of squared distances is {last:.4g}. It falls with every move, so the moves "
            "must end.", scene, step(scene, machine),
        )  # fmt: skip
    yield Frame(
        "An end, not always the best one",
        "No point is nearer to another mean, and nothing moves. Another start may end elsewhere: "
        "several starts are tried, and the best is kept.",
        changed(scene, parameters={"n_clusters": 3}),
    )
    yield Frame(
        "What means cannot see", "Two moons: regions of nearest means are cut by lines.",
        changed(scene, points=preset("crescents", 120)["points"], parameters={"n_clusters": 2}),
    )  # fmt: skip


def mixture() -> Iterator[Frame]:
    """Show the steps of EM."""
    scene = changed(preset("ellipses", 140), machine="GaussianMixture",
                    parameters={"n_components": 2})  # fmt: skip
    rows = rows_in(scene)
    yield Frame(
        "Which Gaussian drew which point?",
        "If that were known, means and covariances would be easy; if those were known, it would be "
        "easy. EM alternates: expectations of the one, maximum likelihood of the other.",
        scene, NOTHING,
    )  # fmt: skip
    for most in _EM_STEPS:
        machine = GaussianMixture(2, n_init=1, max_iter=most, random_state=1)
        quietly_fitted(machine, rows.X)
        yield Frame(
            f"After {machine.n_iter_} step{'s' * (machine.n_iter_ > 1)}",
            f"Mean log likelihood {machine.certificate_.quantities.log_likelihood:.4f}: it never "
            "falls. Ellipses are of one and two standard deviations.", scene, step(scene, machine),
        )  # fmt: skip
        if machine.converged_:
            break
    yield from told(scene, [
        ("Shapes", "Spherical Gaussians cannot follow long clouds. With equal weights they would "
         "be K-means with soft assignments.",
         {"parameters": {"n_components": 2, "covariance": "spherical"}}),
    ])  # fmt: skip


def spectral() -> Iterator[Frame]:
    """Cut the weakest connections of graphs."""
    scene = changed(preset("crescents", 120, 0.1), kernel="gaussian(0.1)")
    yield from told(scene, [
        ("Neither is round", "K-means cuts both moons through the middle.",
         {"machine": "KMeans", "kernel": "linear", "parameters": {"n_clusters": 2}}),
        ("A graph", "Points are connected by similarities of range 0.1. The normalized cut removes "
         "as little similarity as possible and keeps both sides large. Its relaxation is an "
         "eigenvector.",
         {"parameters": {"n_clusters": 2}}),
        ("The scale decides", "With similarities of long range all points are connected, and the "
         "cut is a line again.",
         {"kernel": "gaussian(1)", "parameters": {"n_clusters": 2}}),
        ("Circles", "The same cut for circles within one another.",
         {"points": preset("circles", 120)["points"], "parameters": {"n_clusters": 2}}),
    ])  # fmt: skip


def components() -> Iterator[Frame]:
    """Show principal components from both sides, and with a kernel."""
    scene = changed(preset("cloud", 100), machine="PCA", kernel="linear")
    rows = rows_in(scene)
    scores = PCA(2).fit(rows.X).transform(rows.X)
    yield from told(scene, [
        ("The widest direction", "The first principal component is the direction along which the "
         "points spread most. The arrows are one standard deviation long.", {}),
        ("The other view", "Seen from the points: eigenvectors of the n x n matrix of inner "
         "products give the same scores as those of the 2 x 2 covariance. Here the "
         "scores are drawn: the cloud, turned so that its widest direction lies level.",
         {"points": scores.tolist()}),
        ("With a kernel", "The dual problem needs inner products only, so any kernel works. Lines "
         "of equal score are curved.",
         {"points": preset("circles", 120)["points"], "kernel": "gaussian(0.5)"}),
        ("Probabilistic", "The same direction as a model: a Gaussian with one direction and "
         "noise, so that every point has a density.",
         {"machine": "ProbabilisticPCA", "parameters": {"n_components": 1}}),
    ])  # fmt: skip


def independent() -> Iterator[Frame]:
    """Unmix two sources."""
    scene = preset("parallelogram", 200)
    yield from told(scene, [
        ("Two sources, mixed", "Each point is a mixture of two independent numbers. Principal "
         "components see the spread alone, and are at right angles.",
         {"machine": "PCA", "kernel": "linear"}),
        ("Least Gaussian", "Sums of independent numbers look more Gaussian than the numbers. So "
         "the directions that look least Gaussian are the sources.", {}),
    ])  # fmt: skip


TOURS = (
    Tour("kmeans", "K-means, move by move", "unlabelled", "Points to means, means to points.",
         "Welling 11, Shashua 6", kmeans),
    Tour("mixture", "EM, step by step", "unlabelled", "A mixture of Gaussians finds its parts.",
         "Shashua 3", mixture),
    Tour("spectral", "Spectral clustering", "unlabelled", "Cut a graph at its weakest edges.",
         "Shashua 6", spectral),
    Tour("components", "Principal components, both views", "unlabelled", "Directions, inner "
         "products, kernels.", "Welling 12, Shashua 5", components),
    Tour("independent", "Independent components", "unlabelled", "Two sources unmixed.",
         "Welling 2", independent),
)  # fmt: skip
