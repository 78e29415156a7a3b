"""Example programs with known solutions, and the image of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.theory.bounds import check_count, check_nonnegative
from mercer.theory.duality.program import Program
from mercer.theory.duality.quadratic import QuadraticProgram, finite
from mercer.theory.duality.smooth import SmoothFunction, SmoothProgram

# --- known ---------------------------------------------------------------------------------------
#
# Programs with known solutions: projections, the widest margin, and two valleys with a duality gap.


def projection_program(
    point: npt.ArrayLike,
    A_ub: npt.ArrayLike | None = None,
    b_ub: npt.ArrayLike | None = None,
    A_eq: npt.ArrayLike | None = None,
    b_eq: npt.ArrayLike | None = None,
) -> QuadraticProgram:
    """Return the program of the nearest point: minimize |x - point|^2 / 2 in a polyhedron.

    Parameters
    ----------
    point : (n,) array-like
        The projected point.
    A_ub, b_ub, A_eq, b_eq : array-like, optional
        The polyhedron, as in `QuadraticProgram`.

    Returns
    -------
    QuadraticProgram

    Examples
    --------
    On the probability simplex:

    >>> import numpy as np
    >>> program = projection_program([2, 1, 0], -np.eye(3), np.zeros(3), [[1, 1, 1]], [1])
    >>> program.solve().x.round(6).tolist()
    [1.0, 0.0, 0.0]
    """
    p = finite("point", point).ravel()
    return QuadraticProgram(np.eye(len(p)), -p, A_ub, b_ub, A_eq, b_eq, constant=float(p @ p / 2))


def hard_margin_program(X: npt.ArrayLike, y: npt.ArrayLike) -> QuadraticProgram:
    """Return the program of the widest margin: minimize |w|^2 / 2, 1 - y_i (w'x_i + b) <= 0.

    The variables are w and then b. The multipliers are the dual coefficients alpha of the support
    vector machine, and those that are not zero tell its support vectors.

    Parameters
    ----------
    X : (m, d) array-like
        Rows, few of them.
    y : (m,) array-like
        Labels, -1 and 1.

    Returns
    -------
    QuadraticProgram
        Infeasible if no hyperplane separates the labels.

    Examples
    --------
    >>> program = hard_margin_program([[0, 0], [2, 0], [3, 1]], [-1, 1, 1])
    >>> solution = program.solve()
    >>> (solution.x.round(6) + 0.0).tolist(), solution.lam.round(6).tolist()
    ([1.0, 0.0, -1.0], [0.5, 0.5, 0.0])
    """
    rows, signs = np.atleast_2d(finite("X", X)), finite("y", y).ravel()
    if signs.shape != (len(rows),) or not np.isin(signs, (-1, 1)).all():
        raise ValueError(f"y must hold {len(rows)} labels, -1 or 1")
    d = rows.shape[1]
    P = np.diag(np.append(np.ones(d), 0.0))
    A = -signs[:, None] * np.column_stack([rows, np.ones(len(rows))])
    return QuadraticProgram(P, np.zeros(d + 1), A, -np.ones(len(rows)))


def double_well_program(tilt: float = 1.0) -> SmoothProgram:
    """Return a program with a duality gap: minimize (x^2 - 1)^2 - tilt x subject to x <= 0.

    The lower valley, near 1, is not feasible. The line of slope -tilt touches both valleys of
    (x^2 - 1)^2, so that d* = 0; p* is the value in the other valley, near tilt. No multiplier
    proves more than d*.

    Parameters
    ----------
    tilt : float
        Tilt of f towards the right minimum, not negative.

    Returns
    -------
    SmoothProgram
        Of one variable between -2 and 2.

    Examples
    --------
    >>> double_well_program().dual([1.0]).value < 1e-9
    True
    """
    slant = check_nonnegative("tilt", tilt)
    well = SmoothFunction(
        lambda x: (x[0] ** 2 - 1) ** 2 - slant * x[0],
        lambda x: 4 * x * (x**2 - 1) - slant,
    )
    wall = SmoothFunction(lambda x: x[0], np.ones_like)
    return SmoothProgram(well, [wall], n=1, convex=False, bounds=(-2.0, 2.0))


# --- image ---------------------------------------------------------------------------------------
#
# The geometry of duality: a program with one constraint, seen in the plane of g and f.
#
# The image set holds the points (g(x), f(x)). The program asks for its lowest point with g <= 0.
# The dual function at mu is where the line of slope -mu that supports the image set from below
# meets the axis g = 0; the dual asks for the highest such point. If the lower edge of the set is
# not convex, no line reaches it: a duality gap.


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
