"""Shares of counts, smoothed: the probabilities of naive Bayes as scikit-learn stores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.array_types import Array


@dataclass(frozen=True, eq=False)
class SmoothedShares:
    """Distributions over values, each the most likely one for its counts.

    Attributes
    ----------
    counts : tuple of (k, V) arrays
        Of each table: the weight of each value (column) in each class (row).
    alpha : float or array that fits every table
        What is added to each count.
    """

    counts: tuple[Array, ...]
    alpha: Any


@dataclass(frozen=True, eq=False)
class LogShares:
    """An answer to `SmoothedShares`.

    Attributes
    ----------
    logs : tuple of (k, V) arrays
        Logarithms of the probabilities.
    """

    logs: tuple[Array, ...]
