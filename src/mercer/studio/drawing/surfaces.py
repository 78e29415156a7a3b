"""What a machine says at each point of the plane, and which region the point belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.studio.drawing.fitted import Fitted, Grid
from mercer.studio.frames import packed


@dataclass(frozen=True, eq=False)
class Surface:
    """Values at points, what they mean, the levels worth a line, and regions.

    Attributes
    ----------
    values : (m,) array or None
        A number at each point.
    meaning : str
        What it is: "decision", "probability", "confidence", "value", "density", "novelty",
        "component".
    levels : tuple of float
        Where lines are drawn.
    regions : (m,) int array or None
        The place among `labels` that a point belongs to.
    labels : list
        Labels of the regions.
    """

    values: Array | None
    meaning: str = ""
    levels: tuple[float, ...] = ()
    regions: Array | None = None
    labels: tuple[Any, ...] = ()


SurfaceOf = Callable[[Fitted, Array], Surface]


def decision(fitted: Fitted, at: Array, levels: tuple[float, ...] = (0.0,)) -> Surface:
    """Return the decision function of a classifier; for several classes the lead of the best."""
    scores = np.asarray(fitted.machine.decision_function(fitted.rows.back(at)))
    labels = tuple(fitted.machine.classes_.tolist())
    if scores.ndim == 1:
        return Surface(scores, "decision", levels, (scores > 0).astype(int), labels)
    return Surface(_lead(scores), "confidence", (), scores.argmax(axis=1), labels)


margin = partial(decision, levels=(-1.0, 0.0, 1.0))


def probability(fitted: Fitted, at: Array) -> Surface:
    """Return the probability of the second of two classes; of several, the lead of the best."""
    chances = np.asarray(fitted.machine.predict_proba(fitted.rows.back(at)))
    labels, best = tuple(fitted.machine.classes_.tolist()), chances.argmax(axis=1)
    if chances.shape[1] == 2:
        return Surface(chances[:, 1], "probability", (0.25, 0.5, 0.75), best, labels)
    return Surface(_lead(chances), "confidence", (), best, labels)


def label(fitted: Fitted, at: Array) -> Surface:
    """Return the predicted class alone."""
    classes = fitted.machine.classes_
    found = np.searchsorted(classes, fitted.machine.predict(fitted.rows.back(at)))
    return Surface(None, regions=found, labels=tuple(classes.tolist()))


def value(fitted: Fitted, at: Array) -> Surface:
    """Return what is predicted of a number."""
    return Surface(np.asarray(fitted.machine.predict(fitted.rows.back(at))), "value")


def cluster(fitted: Fitted, at: Array) -> Surface:
    """Return the cluster of each point."""
    found = np.asarray(fitted.machine.predict(fitted.rows.back(at)))
    count = int(max(found.max(initial=0), fitted.machine.labels_.max(initial=0))) + 1
    return Surface(None, regions=found, labels=tuple(range(count)))


def novelty(fitted: Fitted, at: Array) -> Surface:
    """Return how far inside the border each point is."""
    found = np.asarray(fitted.machine.decision_function(fitted.rows.back(at)))
    return Surface(found, "novelty", (0.0,), (found >= 0).astype(int), (-1, 1))


def density(fitted: Fitted, at: Array) -> Surface:
    """Return the logarithm of a density, and which part is likeliest where it has parts."""
    rows = fitted.rows.back(at)
    found = np.asarray(fitted.machine.score_samples(rows))
    best = found.max(initial=-np.inf)
    levels = tuple(float(best - drop) for drop in (0.5, 2.0, 4.5, 8.0))  # 1, 2, 3, 4 deviations
    if not hasattr(fitted.machine, "predict_proba"):
        return Surface(found, "density", levels)
    parts = np.asarray(fitted.machine.predict_proba(rows))
    return Surface(found, "density", levels, parts.argmax(axis=1), tuple(range(parts.shape[1])))


def component(fitted: Fitted, at: Array) -> Surface:
    """Return the first score."""
    found = np.asarray(fitted.machine.transform(fitted.rows.back(at)))
    values = found[:, 0]
    return Surface(values, "component", tuple(np.quantile(values, np.linspace(0.1, 0.9, 9))))


def drawn(surface: Surface, grid: Grid) -> dict[str, Any]:
    """Return the fields `surface` and `regions` of an answer."""
    shape = (grid.ny, grid.nx)
    found: dict[str, Any] = {"surface": None, "regions": None}
    if surface.values is not None:
        found["surface"] = {
            "bounds": grid.bounds,
            **packed(surface.values.reshape(shape)),
            "levels": surface.levels,
            "meaning": surface.meaning,
        }
    if surface.regions is not None:
        found["regions"] = {
            "bounds": grid.bounds,
            **packed(surface.regions.reshape(shape), small=True),
            "labels": surface.labels,
        }
    return found


def _lead(scores: Array) -> Array:
    """Return how far the best score is above the second."""
    best = np.partition(scores, -2, axis=1)
    return np.asarray(best[:, -1] - best[:, -2])
