"""(K + penalty S^-1) a + b 1 = y, with 1'a = 0 when there is a bias b: ridge regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram

_LARGEST_SHIFT = 1e300


@dataclass(frozen=True, eq=False)
class Coefficients:
    """An answer to a `LinearSystem`.

    Attributes
    ----------
    coef : (n, t) array
        One column a per target; no rows where only the weights are known, as from libraries that
        have no other form. A form that is there is judged.
    intercept : (t,) array
        The biases b; zero where the system has none.
    weights : (D, t) array or None
        For K = F F' answered in the space of the features: w = F'a. With small penalties w is
        known to full precision where a, a residual divided by the penalty, is not.
    """

    coef: Array
    intercept: Array
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """Kernel ridge regression as equations.

    Minimising sum_i s_i (y_i - f(x_i))^2 + penalty |f|^2 over f = sum_j a_j k(x_j, .) + b gives
    (K + penalty S^-1) a + b 1 = y and, for the unpenalised bias, 1'a = 0.

    Attributes
    ----------
    gram : Gram
        K.
    targets : (n, t) array
        The right-hand sides y.
    penalties : (t,) array
        The penalty of each target.
    row_weights : (n,) array
        Positive weights s of the rows.
    bias : bool
        Whether there is a bias b.
    """

    gram: Gram
    targets: Array
    penalties: Array
    row_weights: Array
    bias: bool

    def shift(self, target: int) -> Array:
        """Return the diagonal that is added to K for a target."""
        with np.errstate(over="ignore"):  # a row of no weight to speak of gets no coefficient
            return np.asarray(np.minimum(self.penalties[target] / self.row_weights, _LARGEST_SHIFT))

    def groups(self) -> Iterator[Array]:
        """Return the sets of targets that share one penalty, hence one matrix."""
        for penalty in np.unique(self.penalties):
            yield np.flatnonzero(self.penalties == penalty)

    def residual(self, value: Coefficients, product: Array) -> Array:
        """Return y - (K + penalty S^-1) a - b 1, given `product` = K a."""
        shifts = np.column_stack([self.shift(t) for t in range(len(self.penalties))])
        shifted = shifts * value.coef
        return np.asarray(self.targets - product - shifted - value.intercept)
