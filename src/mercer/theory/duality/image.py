"""The geometry of duality: a program with one constraint, seen in the plane of g and f.

The image set holds the points (g(x), f(x)). The program asks for its lowest point with g <= 0. The
dual function at mu is where the line of slope -mu that supports the image set from below meets the
axis g = 0; the dual asks for the highest such point. If the lower edge of the set is not convex, no
line reaches it: a duality gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.theory.bound import check_count
from mercer.theory.duality.program import Program


@dataclass(frozen=True)
class ImageSet:
    """Points of the image set.

    Attributes
    ----------
    x : (m, n) array
        Points of a grid.
    g, f : (m,) arrays
        Their constraint and objective.
    """

    x: Array
    g: Array
    f: Array


@dataclass(frozen=True)
class SupportingLine:
    """The line f = intercept - mu g below the image set.

    Attributes
    ----------
    mu : float
        The multiplier; the slope is -mu.
    intercept : float
        The dual function: where the line meets g = 0.
    touches : (float, float) or None
        A point (g, f) of the image set on the line.
    """

    mu: float
    intercept: float
    touches: tuple[float, float] | None

    def at(self, g: npt.ArrayLike) -> Array:
        """Return the height of the line."""
        return np.asarray(self.intercept - self.mu * np.asarray(g, dtype=np.float64))


def image_set(
    program: Program,
    bounds: tuple[npt.ArrayLike, npt.ArrayLike],
    resolution: int = 200,
) -> ImageSet:
    """Map a grid of points to the plane of g and f.

    Parameters
    ----------
    program : Program
        With one constraint, and one or two variables.
    bounds : (low, high), each a number or (n,) array-like
        The box of the grid.
    resolution : int
        Points along each variable.

    Returns
    -------
    ImageSet

    Examples
    --------
    >>> from mercer.theory import double_well_program
    >>> image = image_set(double_well_program(), bounds=(-1.5, 1.5))
    >>> bool(image.f[image.g <= 0].min() > 0.9)  # the best that is feasible
    True
    """
    check_one_constraint(program)
    if program.n > 2:
        raise ValueError(f"{program.n} variables have too many points for a grid; at most 2")
    if not isinstance(bounds, Sequence) or len(bounds) != 2:
        raise ValueError(f"bounds={bounds!r} must be (low, high)")
    low, high = (np.broadcast_to(np.asarray(b, dtype=np.float64), (program.n,)) for b in bounds)
    count = check_count("resolution", resolution, 2)
    axes = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, program.n)
    f = np.array([program.objective(x) for x in points])
    g = np.array([[*program.inequalities(x), *program.equalities(x)] for x in points])
    return ImageSet(points, g[:, 0], f)


def supporting_line(program: Program, mu: float) -> SupportingLine:
    """Return the line of slope -mu that supports the image set from below.

    Parameters
    ----------
    program : Program
        With one constraint.
    mu : float
        Its multiplier, not negative for an inequality.

    Returns
    -------
    SupportingLine

    Examples
    --------
    >>> from mercer.theory import double_well_program
    >>> line = supporting_line(double_well_program(), mu=1.0)
    >>> round(abs(line.intercept), 6), line.touches is None
    (0.0, False)
    """
    check_one_constraint(program)
    price = np.array([float(mu)])
    dual = program.dual(price) if program.n_inequalities else program.dual((), price)
    if dual.x is None:
        return SupportingLine(float(mu), dual.value, None)
    g = np.concatenate([program.inequalities(dual.x), program.equalities(dual.x)])
    touches = float(g[0]), program.objective(dual.x)
    return SupportingLine(float(mu), dual.value, touches)


def check_one_constraint(program: Program) -> None:
    """Require a picture in the plane."""
    if not isinstance(program, Program):
        raise TypeError(f"needs a QuadraticProgram or SmoothProgram, got {type(program).__name__}")
    count = program.n_inequalities + program.n_equalities
    if count != 1:
        raise ValueError(f"the plane of g and f is for one constraint; this program has {count}")
