"""One view from the other: by least squares on its variates, or from variate to variate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array, Points
from mercer.machines.correlation.views import Grams, Regression, training_variates
from mercer.problems import CanonicalPairs


@dataclass(frozen=True, eq=False)
class Route:
    """From the variates of one view to the rows of the other, in two ways.

    Attributes
    ----------
    rows : Regression
        The rows themselves, by least squares on the variates of the first view.
    variates : Regression
        The variates of the other view, likewise.
    from_variates : Regression
        The rows of the other view from its own variates, likewise.
    """

    rows: Regression
    variates: Regression
    from_variates: Regression

    def by(self, through: str) -> Regression:
        """Return what predicts rows: straight, or by way of the variates of their own view."""
        if through == "least_squares":
            return self.rows
        slopes = self.variates.slopes @ self.from_variates.slopes
        return Regression(slopes, self.from_variates(self.variates.centre))


THROUGH = ("least_squares", "variates")


def routes(
    grams: Grams,
    value: CanonicalPairs,
    targets: tuple[Points | None, Points | None],
    weights: Array,
) -> tuple[Route, Route]:
    """Return how the second view is predicted from the first, and the first from the second.

    Parameters
    ----------
    grams : pair of Gram
        Both views, prepared.
    value : CanonicalPairs
        Their canonical pairs.
    targets : pair of (n, t) arrays, sparse arrays or None
        Rows of both views; None where a view is not made of numbers, and its variates are
        predicted.
    weights : (n,) array
        How often each row counts.
    """
    u = training_variates(grams[0], value.coef_x, value.weights_x, weights)
    v = training_variates(grams[1], value.coef_y, value.weights_y, weights)
    x, y = (own if rows is None else rows for own, rows in zip((u, v), targets, strict=True))
    return _route(u, v, y, weights), _route(v, u, x, weights)


def _route(u: Array, v: Array, rows: Points, weights: Array) -> Route:
    return Route(regressed(u, rows, weights), regressed(u, v, weights), regressed(v, rows, weights))


def regressed(u: Array, targets: Points, weights: Array) -> Regression:
    """Regress targets, rows or variates, on variates.

    These have mean zero, so the mean of the targets takes no part in the slopes, and sparse rows
    stay sparse.
    """
    share = weights / weights.sum()
    weighted = u * share[:, None]
    centre = np.asarray(targets.T @ share).ravel()
    cross = np.asarray(targets.T @ weighted).T - np.outer(weighted.sum(axis=0), centre)
    return Regression(np.linalg.pinv(u.T @ weighted, hermitian=True) @ cross, centre)
