"""Programs whose answers are known: projections, the widest margin, and two valleys with a gap."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mercer.theory.bound import check_nonnegative
from mercer.theory.duality.quadratic import QuadraticProgram, finite
from mercer.theory.duality.smooth import SmoothFunction, SmoothProgram


def projection_program(
    point: npt.ArrayLike,
    A_ub: npt.ArrayLike | None = None,
    b_ub: npt.ArrayLike | None = None,
    A_eq: npt.ArrayLike | None = None,
    b_eq: npt.ArrayLike | None = None,
) -> QuadraticProgram:
    """Return the program of the nearest point: minimise |x - point|^2 / 2 in a polyhedron.

    Parameters
    ----------
    point : (n,) array-like
        What is projected.
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
    """Return the program of the widest margin: minimise |w|^2 / 2, 1 - y_i (w'x_i + b) <= 0.

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
    """Return a program with a duality gap: minimise (x^2 - 1)^2 - tilt x subject to x <= 0.

    The lower valley, near 1, is not feasible. The line of slope -tilt touches both valleys of
    (x^2 - 1)^2, so that d* = 0; p* is the value in the other valley, near tilt. No multiplier
    proves more than d*.

    Parameters
    ----------
    tilt : float
        How much lower the right valley is, not negative.

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
