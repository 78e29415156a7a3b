"""Points to begin with: moons, rings, spirals, and figures of the texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.array_types import Array

Draw = Callable[[np.random.Generator, int, float], Array]


@dataclass(frozen=True)
class Preset:
    """Randomly drawn points, and an estimator that suits them.

    Attributes
    ----------
    name, title : str
        For the page, and for people.
    task : str
        Their task.
    draw : callable
        Draws points: generator, how many, how noisy.
    machine : str
        The initial estimator.
    kernel : str or None
        Its kernel.
    parameters : dict
        Its parameters.
    """

    name: str
    title: str
    task: str
    draw: Draw
    machine: str
    kernel: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """Return the description sent to the page."""
        return {"name": self.name, "title": self.title, "task": self.task}

    def scene(self, n: int = 100, noise: float = 0.15, seed: int = 0) -> dict[str, Any]:
        """Draw the points, and return a scene of them."""
        points = self.draw(np.random.default_rng(seed), n, noise)
        found: dict[str, Any] = {
            "task": self.task,
            "points": np.round(points, 4).tolist(),
            "machine": self.machine,
            "parameters": dict(self.parameters),
            "view": {"bounds": [-1.5, 1.5, -1.5, 1.5], "nx": 200, "ny": 200},
        }
        return found if self.kernel is None else {**found, "kernel": self.kernel}


def labelled(places: Array, labels: Any) -> Array:
    """Return points with their labels as third column."""
    return np.column_stack([places, np.asarray(labels, dtype=float)])


def moons(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw two half circles, one the lower right of the other."""
    label = np.arange(n) % 2
    angle = rng.uniform(0, np.pi, n)
    side = np.where(label == 0, 1.0, -1.0)
    x = np.cos(angle) * side + np.where(label == 0, -0.5, 0.5)
    y = np.sin(angle) * side - np.where(label == 0, 0.25, -0.25)
    places = np.column_stack([x, y]) * 0.8 + rng.normal(scale=noise * 0.8, size=(n, 2))
    return labelled(places, label)


def rings(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw a class around another."""
    label, angle = np.arange(n) % 2, rng.uniform(0, 2 * np.pi, n)
    radius = np.where(label == 0, 0.45, 1.1) + rng.normal(scale=noise * 0.6, size=n)
    return labelled(_polar(radius, angle), label)


def spirals(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw two spirals within one another."""
    label, way = np.arange(n) % 2, np.sqrt(rng.uniform(0.02, 1.0, n))
    angle = 3.2 * np.pi * way + np.pi * label
    places = _polar(1.3 * way, angle) + rng.normal(scale=noise * 0.25, size=(n, 2))
    return labelled(places, label)


def squares(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw exclusive or: opposite squares are of one class."""
    places = rng.uniform(-1.2, 1.2, size=(n, 2))
    label = (places[:, 0] > 0) != (places[:, 1] > 0)
    return labelled(places + rng.normal(scale=noise * 0.3, size=(n, 2)), label)


def lines(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw two classes that a line tells apart."""
    label = np.arange(n) % 2
    side = np.where(label == 0, -1.0, 1.0)[:, None]
    places = rng.normal(scale=0.18 + noise * 0.5, size=(n, 2)) + side * np.array([0.6, 0.45])
    return labelled(places, label)


def overlap(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw two Gaussians that overlap: no function tells their points apart without mistakes."""
    label = np.arange(n) % 2
    side = np.where(label == 0, -1.0, 1.0)[:, None]
    places = rng.normal(scale=0.4 + noise, size=(n, 2)) + side * np.array([0.35, 0.25])
    return labelled(places, label)


def groups(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw four classes."""
    label = np.arange(n) % 4
    centres = np.array([[-0.8, -0.6], [0.7, -0.8], [0.8, 0.7], [-0.5, 0.8]])
    return labelled(centres[label] + rng.normal(scale=0.12 + noise, size=(n, 2)), label)


def partly(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw moons of which five points of each class have their label."""
    points = moons(rng, n, noise * 0.6)
    points[10:, 2] = -1
    return points


def inside(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw points of a rectangle, and around it."""
    places = rng.uniform(-1.3, 1.3, size=(n, 2))
    within = (places[:, 0] > -0.6) & (places[:, 0] < 0.8) & (np.abs(places[:, 1]) < 0.6)
    return labelled(places, within)


def sine(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw a sine with noise, with a gap."""
    x = np.sort(rng.uniform(-1.4, 1.4, n))
    x = x[(x < 0.2) | (x > 0.6)]
    return np.column_stack([x, 0.9 * np.sin(3.5 * x) + rng.normal(scale=noise * 0.8, size=len(x))])


def sinc(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw the sinc function, as in the figures of support vector regression."""
    x = np.sort(rng.uniform(-1.4, 1.4, n))
    return np.column_stack([x, np.sinc(3 * x) + rng.normal(scale=noise * 0.5, size=n)])


def outliers(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw a line with some points far off it."""
    x = np.sort(rng.uniform(-1.3, 1.3, n))
    y = 0.6 * x + rng.normal(scale=noise * 0.4, size=n)
    y[:: max(8, n // 6)] += 1.0
    return np.column_stack([x, y])


def hills(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw a hill and a valley over the plane."""
    places = rng.uniform(-1.4, 1.4, size=(n, 2))
    hill = np.exp(-3 * ((places - [0.5, 0.4]) ** 2).sum(axis=1))
    valley = np.exp(-3 * ((places - [-0.6, -0.5]) ** 2).sum(axis=1))
    return np.column_stack([places, hill - valley + rng.normal(scale=noise * 0.3, size=n)])


def clusters(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw three clusters of different sizes."""
    centres, share = np.array([[-0.8, -0.4], [0.7, -0.6], [0.1, 0.8]]), [0.5, 0.3, 0.2]
    which = rng.choice(3, size=n, p=share)
    return centres[which] + rng.normal(scale=0.1 + noise, size=(n, 2))


def ellipses(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw two long clusters across one another."""
    which = np.arange(n) % 2
    long, short = rng.normal(scale=0.55, size=n), rng.normal(scale=0.05 + noise * 0.5, size=n)
    first = np.column_stack([long, short + 0.5 * long])
    second = np.column_stack([0.4 * long + short, -0.8 * long])
    return np.where(which[:, None] == 0, first - [0.0, -0.45], second - [0.1, 0.35])


def crescents(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw two moons without labels."""
    return moons(rng, n, noise * 0.5)[:, :2]


def circles(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw two circles without labels."""
    return rings(rng, n, noise * 0.5)[:, :2]


def cloud(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw a long cloud."""
    spread = rng.normal(size=(n, 2)) * [0.6, 0.08 + noise]
    turn = np.array([[0.85, 0.53], [-0.53, 0.85]])
    return np.asarray(spread @ turn)


def parallelogram(rng: np.random.Generator, n: int, noise: float) -> Array:
    """Draw two independent sources, mixed."""
    sources = rng.uniform(-1, 1, size=(n, 2))
    return np.asarray(sources @ np.array([[0.9, 0.3], [0.35, 0.8]]))


def _polar(radius: Array, angle: Array) -> Array:
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


_WIDE = {"C": 10.0}
PRESETS: dict[str, Preset] = {
    one.name: one
    for one in (
        Preset("moons", "Two moons", "classes", moons, "SVC", "gaussian(0.5)", _WIDE),
        Preset("rings", "A ring around a disc", "classes", rings, "SVC", "polynomial(2)", _WIDE),
        Preset("spirals", "Two spirals", "classes", spirals, "SVC", "gaussian(0.2)", {"C": 100.0}),
        Preset("squares", "Exclusive or", "classes", squares, "SVC", "polynomial(2)", _WIDE),
        Preset("lines", "Two classes apart", "classes", lines, "SVC", "linear", _WIDE),
        Preset("overlap", "Two classes that overlap", "classes", overlap, "SVC", "linear"),
        Preset("groups", "Four classes", "classes", groups, "SVC", "gaussian(0.5)"),
        Preset("partly", "Moons, few of them labeled", "classes", partly, "LabelPropagation",
               "gaussian(0.2)"),
        Preset("inside", "A rectangle", "classes", inside, "AxisAlignedRectangle"),
        Preset("sine", "A sine with a gap", "regression", sine, "GaussianProcess", "gaussian(0.4)",
               {"noise": 0.02}),
        Preset("sinc", "The sinc function", "regression", sinc, "SVR", "gaussian(0.25)", _WIDE),
        Preset("outliers", "A line with outliers", "regression", outliers, "SVR", "linear"),
        Preset("hills", "A hill and a valley", "targets", hills, "KernelRidge", "gaussian(0.5)"),
        Preset("clusters", "Three clusters", "unlabelled", clusters, "KMeans", "linear"),
        Preset("ellipses", "Two long clusters", "unlabelled", ellipses, "GaussianMixture",
               parameters={"n_components": 2}),
        Preset("crescents", "Moons without labels", "unlabelled", crescents, "SpectralClustering",
               "gaussian(0.1)"),
        Preset("circles", "Circles without labels", "unlabelled", circles, "SpectralClustering",
               "gaussian(0.15)"),
        Preset("cloud", "A long cloud", "unlabelled", cloud, "PCA", "linear"),
        Preset("parallelogram", "Two mixed sources", "unlabelled", parallelogram, "ICA"),
    )
}  # fmt: skip
