"""x_i (K x)_i = 1: scale a nonnegative symmetric matrix so that its rows sum to one."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.array_types import Array
from mercer.gram import Gram


@dataclass(frozen=True, eq=False)
class Scales:
    """An answer to a `Scaling`.

    Attributes
    ----------
    scale : (n,) array
        The factors x, positive; zero where a row of K is zero, which no factor can help.
    """

    scale: Array


@dataclass(frozen=True, eq=False)
class Scaling:
    """Find x with diag(x) K diag(x) doubly stochastic: nonnegative, symmetric, rows sum to one.

    It is the doubly stochastic matrix closest to K in relative entropy, and the limit of
    K <- D^-1/2 K D^-1/2 with D the row sums. It exists when the diagonal of K is positive.

    Attributes
    ----------
    gram : Gram
        K, with no negative entry.
    """

    gram: Gram
