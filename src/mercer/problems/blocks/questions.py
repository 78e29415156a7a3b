"""What is asked of rows in blocks: the problems of ridge, risk and margin, without a Gram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.problems.blocks.feature_rows import FeatureRows
from mercer.problems.risk.losses import Loss


@dataclass(frozen=True, eq=False)
class BlockRidge:
    """Minimise sum_i s_i (y_i - w'phi(x_i) - b)^2 + penalty |w|^2; see `LinearSystem`.

    Attributes
    ----------
    rows : FeatureRows
        Features, targets and weights.
    penalties : (t,) array
        The penalty of each target.
    bias : bool
        Whether there is a bias b.
    """

    rows: FeatureRows
    penalties: Array
    bias: bool


@dataclass(frozen=True, eq=False)
class ClassCodes:
    """Numbers of classes from labels, and what their rows count.

    Attributes
    ----------
    classes : (c,) array
        The labels, sorted.
    factors : (c,) array
        What the weights of the rows of each class are multiplied by.
    """

    classes: Array
    factors: Array

    def codes(self, y: Array) -> Array:
        """Return the number of the class of each row."""
        return np.searchsorted(self.classes, y)

    def weights(self, counts: Array, codes: Array) -> Array:
        """Return what rows count."""
        return np.asarray(counts * self.factors[codes])


@dataclass(frozen=True, eq=False)
class BlockRisk:
    """Minimise sum_i s_i loss(f(x_i), y_i) + penalty / 2 |w|^2, f = w'phi + b; see `SmoothRisk`.

    Attributes
    ----------
    rows : FeatureRows
        Features, labels and weights.
    labels : ClassCodes
        Numbers of the classes.
    total : float
        The sum of all weights.
    penalty : float
        Weight of the squared norm.
    loss : Loss
        Log or squared.
    bias : bool
        Whether there is a bias b.
    """

    rows: FeatureRows
    labels: ClassCodes
    total: float
    penalty: float
    loss: Loss
    bias: bool

    @property
    def columns(self) -> int:
        """How many functions there are."""
        count = len(self.labels.classes)
        return 1 if count == 2 else count
