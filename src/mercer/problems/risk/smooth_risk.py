"""A smooth loss over rows plus a squared norm: logistic regression and its relatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.card_rows import placed_beside
from mercer.gram import Gram
from mercer.problems.ridge.linear_system import Coefficients
from mercer.problems.risk.losses import Loss


@dataclass(frozen=True, eq=False)
class SmoothRisk:
    """Minimise sum_i s_i loss(f(x_i), y_i) + penalty / 2 |f|^2 over f = sum_j a_j k(x_j, .) + b.

    One function for two classes, one for each class otherwise. At a minimum
    a_i = -s_i loss'(f(x_i)) / penalty and, with a bias, the a_i add up to zero. The answer is a
    `Coefficients`.

    Attributes
    ----------
    gram : Gram
        K.
    codes : (n,) int array
        The number of the class of each row.
    count : int
        How many classes.
    weights : (n,) array
        Positive weights s of the rows.
    penalty : float
        Weight of the squared norm; zero where features of full rank, and classes that overlap,
        leave one minimum without it.
    loss : Loss
        Log, squared or tanh.
    bias : bool
        Whether there is a bias b, which is not penalised.
    """

    gram: Gram
    codes: Array
    count: int
    weights: Array
    penalty: float
    loss: Loss
    bias: bool

    @property
    def columns(self) -> int:
        """How many functions there are."""
        return 1 if self.count == 2 else self.count

    def risk(self, f: Array) -> float:
        """Return the weighted loss of scores (n, columns)."""
        return float(self.weights @ self.loss.values(f, self.codes))

    def weighted_slopes(self, f: Array) -> Any:
        """Return the weighted slopes of the loss: (n, columns)."""
        return self.weights[:, None] * self.loss.slopes(f, self.codes)

    def both(self, f: Array) -> tuple[float, Array]:
        """Return risk and pulls."""
        values, slopes = self.loss.both(f, self.codes)
        return float(self.weights @ values), self.weights[:, None] * slopes

    def sizes(self, weighted_slopes: Array) -> Array:
        """Return what pulls are measured by: their sizes, (n, columns).

        Of a bounded loss, the sizes they can have anywhere: its slopes all vanish together when a
        bias runs away, where there is no minimum to come near to.
        """
        if self.loss.convex:
            return np.abs(weighted_slopes)
        return np.ones_like(weighted_slopes) * self.weights[:, None]

    def objective(self, value: Coefficients) -> float:
        """Return the weighted loss and the penalty of an answer in coefficients of rows."""
        image = np.asarray(self.gram @ value.coef)
        squared = float((value.coef * image).sum())
        return self.risk(image + value.intercept) + 0.5 * self.penalty * squared

    def placed(self) -> SmoothRisk:
        """Return the same question with what it holds of rows where their features lie."""
        codes, weights = self.beside(self.codes), self.beside(self.weights)
        return replace(self, codes=codes, weights=weights)

    def beside(self, array: Any) -> Any:
        """Return numbers of rows where the features lie, if these are many; else on the host."""
        return placed_beside(self.gram.at_hand, array)

    def of_weight_one(self) -> SmoothRisk:
        """Return the same question with weights that add up to one: its answers are the same."""
        total = float(self.weights.sum())
        return replace(self, weights=self.weights / total, penalty=self.penalty / total)
