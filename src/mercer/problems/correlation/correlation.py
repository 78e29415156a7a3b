"""Directions of two views whose variates correlate most: canonical correlation analysis.

max c_x'G_x G_y c_y over c_x'M_x c_x = c_y'M_y c_y = 1, each pair orthogonal (in M) to those before.

G are the centred Grams of the two views of the same rows, M = G^2 plus a penalty (`Shrinkage`). The
maxima are the singular values of M_x^-1/2 G_x G_y M_y^-1/2; without penalties they are the cosines
of the principal angles between the spaces of variates that the two views can reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.problems.correlation.shrinkage import Shrinkage, Squared


@dataclass(frozen=True, eq=False)
class CanonicalPairs:
    """An answer to a `Correlation`.

    Attributes
    ----------
    values : (k,) array
        The (penalised) correlations, largest first, within [0, 1]. Zero beyond the smaller rank.
    coef_x, coef_y : (n, k) array
        The coefficients c of both views; columns of zeros beyond the smaller rank.
    rank_x, rank_y : int or None
        How many directions each view has; None where the answer did not need to know.
    weights_x, weights_y : (D, k) array or None
        For a view with dense features, G = F F': the directions w = F'c themselves. Where columns
        differ in scale, c holds them less exactly.
    bound : float
        How far the correlations may be from those of the problem because the Grams were
        approximated: 0 for exact answers. Pessimistic.
    """

    values: Array
    coef_x: Array
    coef_y: Array
    rank_x: int | None = None
    rank_y: int | None = None
    bound: float = 0.0
    weights_x: Array | None = None
    weights_y: Array | None = None


@dataclass(frozen=True, eq=False)
class Correlation:
    """The `count` largest canonical correlations of two views.

    Attributes
    ----------
    gram_x, gram_y : Gram
        The Grams of both views, centred (`mercer.gram.centered`); for weighted rows also scaled by
        the square roots of the weights (`mercer.gram.scaled`).
    count : int
        How many pairs.
    penalties : tuple of two floats
        The penalty of each view, in units of the eigenvalues of its Gram.
    form : Shrinkage
        How a penalty enters.
    """

    gram_x: Gram
    gram_y: Gram
    count: int
    penalties: tuple[float, float] = (0.0, 0.0)
    form: Shrinkage = field(default_factory=Squared)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Correlation: count={self.count} must be at least 1")
        if self.gram_x.shape != self.gram_y.shape:
            raise ValueError(
                f"Correlation: the views must have the same rows, but there are "
                f"{self.gram_x.shape[0]} and {self.gram_y.shape[0]}"
            )
        if not all(np.isfinite(p) and p >= 0 for p in self.penalties):
            raise ValueError(
                f"Correlation: penalties={self.penalties} must be finite and not negative"
            )

    @property
    def views(self) -> tuple[tuple[Gram, float], tuple[Gram, float]]:
        """Both Grams with their penalties."""
        return (self.gram_x, self.penalties[0]), (self.gram_y, self.penalties[1])


def column_sizes(gram: Gram) -> Array:
    """Return the length of each column of centred dense features; 0 where all of it is rounding.

    Taking off the mean leaves of a constant column what rounding makes of it.
    """
    sizes = np.linalg.norm(gram.factor, axis=0)
    mean = np.abs(getattr(gram.features, "mean", np.zeros(1)))
    rounding = 4.0 * float(np.finfo(float).eps) * np.sqrt(gram.shape[0]) * mean
    return np.where(sizes > rounding, sizes, 0.0)
