"""Feature maps in two parts: phi(x) = R'b(x), of rows b that are cheap and a matrix R."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends import Pairs, choose_backend
from mercer.backends.landmark_rows import BoundRows
from mercer.card_rows import CardRows
from mercer.gram.base import Expansion
from mercer.gram.storage.factored import over_features, squared_lengths
from mercer.points import row_count


class RowMap(ABC):
    """phi(x) = R'b(x): a feature map by rows b that are cheap and a matrix R."""

    @property
    def mixing(self) -> Array | None:
        """Return R; None where b(x) are the features."""
        return None

    @property
    def width(self) -> int:
        """Count the entries of a row b."""
        return self.dimension if self.mixing is None else len(self.mixing)

    def mix(self, W: Array) -> Array:
        """Return R W."""
        return W if self.mixing is None else np.asarray(self.mixing @ W)

    def mix_transposed(self, V: Array) -> Array:
        """Return R'V."""
        return V if self.mixing is None else np.asarray(self.mixing.T @ V)

    def bound(self, X: Points) -> BoundRows | None:
        """Bind points for sums over all of them on a card; None where none makes such sums."""
        return None

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Count the features."""

    @abstractmethod
    def __call__(self, X: Any) -> Array:
        """Return the features of rows, float64."""

    def features_on_card(self, X: CardRows) -> CardRows | None:
        """Return the features of rows on a card, made there; None where it has no room or way."""
        return None

    def placed(self, X: Points) -> Any:
        """Return the features of rows where these lie, on a card if they are many, or here."""
        X = choose_backend().placed(X, row_count(X) * self.dimension)
        there = self.features_on_card(X) if isinstance(X, CardRows) else None
        return self(X) if there is None else there

    def write(self, X: Points, out: Array) -> None:
        """Write the features of rows to an array (n, dimension)."""
        out[...] = self(X)

    def raw(self, X: Points, dtype: Any) -> Array:
        """Return the rows b(x) of points, in float64 or float32."""
        return np.asarray(self(X), dtype=dtype)

    def pairs(self, X: Points, dtype: Any) -> Pairs | None:
        """Return the rows b of points as a matrix of pairs; None if it is none.

        For products where a backend works, of rows that never come here.
        """
        return None

    def pairs_back(self, X: Points, dtype: Any) -> Pairs | None:
        """Return the transpose of `pairs`."""
        return None

    def squared_lengths(self, X: Points) -> Array:
        """Return |phi(x)|^2 of rows."""
        return over_features(squared_lengths, self, X, self.dimension)

    def longest(self, X: Points) -> Array | None:
        """Return bounds of |phi(x)|^2 that cost less than the features do; None for none."""
        return None

    def made_for(self) -> Points | None:
        """Return the rows that the features were made for, if they were for single rows.

        Each may be alone in a direction of the features, which a sample of others would not show.
        """
        return None

    def expansion(self, weights: Array) -> Expansion | None:
        """Return phi(z)'w at less than the cost of the features; None where there is no way."""
        return None
