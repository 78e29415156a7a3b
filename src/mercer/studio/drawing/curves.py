"""Regression along one axis: the curve, its tube or band, draws of a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.studio.drawing.fitted import Fitted

_DRAWS = 4
_DRAWN_AT = 80  # points that functions are drawn at: a factorisation of so many


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of x, with what is around it.

    Attributes
    ----------
    x, y : (m,) array
        The curve.
    low, high : (m,) array or None
        What is around it.
    band : str or None
        What that is: "tube" or "deviation".
    more : list of (m,) arrays
        Other functions of x, at `more_x`.
    """

    x: Array
    y: Array
    low: Array | None = None
    high: Array | None = None
    band: str | None = None
    more_x: Array | None = None
    more: tuple[Array, ...] = ()


CurveOf = Callable[[Fitted, Array], Curve]


def plain_curve(fitted: Fitted, x: Array) -> Curve:
    """Return the prediction alone."""
    return Curve(x, np.asarray(fitted.machine.predict(x[:, None])))


def tube(fitted: Fitted, x: Array) -> Curve:
    """Return the prediction and the tube in which errors cost nothing."""
    found = np.asarray(fitted.machine.predict(x[:, None]))
    width = float(fitted.machine.epsilon_)
    return Curve(x, found, found - width, found + width, "tube")


def process(fitted: Fitted, x: Array) -> Curve:
    """Return mean, two standard deviations, and some draws of a Gaussian process."""
    mean, deviation = fitted.machine.predict(x[:, None], return_std=True)
    at = x if len(x) <= _DRAWN_AT else np.linspace(x[0], x[-1], _DRAWN_AT)
    draws = np.asarray(fitted.machine.sample_y(at[:, None], n_samples=_DRAWS))
    return Curve(
        x, mean, mean - 2 * deviation, mean + 2 * deviation, "deviation", at, tuple(draws.T)
    )
