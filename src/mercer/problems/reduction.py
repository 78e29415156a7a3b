"""The same functions with fewer vectors: what compressing an expansion asks."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.array_types import Array, Points
from mercer.gram import Source


@dataclass(frozen=True, eq=False)
class ReducedSet:
    """An answer to a `Reduction`: g_c = sum_j coef_jc k(v_j, .).

    Attributes
    ----------
    vectors : Points
        The vectors v_j, m of them.
    coef : (m, k) array
        Their coefficients.
    """

    vectors: Points
    coef: Array


@dataclass(frozen=True, eq=False)
class Reduction:
    """Find functions g with fewer vectors, close to f_c = sum_i coef_ic k(x_i, .).

    Attributes
    ----------
    source : Source
        The kernel, positive semidefinite, and the vectors x_i.
    coef : (n, k) array
        Their coefficients.
    """

    source: Source
    coef: Array
