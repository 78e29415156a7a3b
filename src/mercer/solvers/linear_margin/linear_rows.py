"""Rows of features beside the offsets of their groups: what an iteration in the primal space sees.

Products only: beside the features nothing as large as them is held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import Features
from mercer.card_rows import looked_up
from mercer.gram.storage.factored import squared_lengths
from mercer.points import is_sparse, to_dense, to_host

_FEW = 2000  # rows that stand for all where only a size is asked
_COPY = 1 << 22  # entries; so many may be copied whatever the size of the features


@dataclass(frozen=True, eq=False)
class LinearRows:
    """A_i = [F_i - centre, e_g]: features and, for the offset of its group, a one.

    Attributes
    ----------
    factor : (N, d) array, CSR array or CardRows
        The features of all points, where they lie.
    index : (n,) int array or None
        Which of them these rows are, repeats allowed; None for all in order.
    group : (n,) int array
        The offset that each row has; -1 for none.
    offsets : int
        How many offsets there are.
    centre : (d,) array
        Taken off dense features, against the loss of digits that large means cause; zero for
        sparse ones, and where a row has no offset that could make up for it. Search directions gain
        by it; answers are coefficients of rows as they are, and judged so, by K b: of rows with an
        entry c, that is known to c^2 sum |b| roundings, whatever the solver did.
    stays : bool
        Whether values of many rows stay on a card that the features lie on.
    """

    factor: Any
    index: Array | None
    group: Array
    offsets: int
    centre: Array
    stays: bool = True

    @property
    def count(self) -> int:
        """Count the rows."""
        return len(self.group)

    @property
    def width(self) -> int:
        """Count the unknowns: features and offsets."""
        return int(self.factor.shape[1]) + self.offsets

    def length(self) -> float:
        """Return the root mean square length of a row, from some of them."""
        found = np.sqrt(np.square(self._lengths).mean()) if len(self._lengths) else 0.0
        return np.float64(found or 1.0)  # whose square may be infinite; a plain float's raises

    def longest(self) -> float:
        """Return the length of the longest of some rows."""
        return np.float64(self._lengths.max(initial=0.0) or 1.0)

    @cached_property
    def _lengths(self) -> Array:
        few = np.arange(0, self.count, max(1, self.count // _FEW))
        some = self.factor[few if self.index is None else self.index[few]]
        return np.sqrt(squared_lengths(some))

    def placed(self, x: Any) -> Any:
        """Return a vector of the length of the rows where the work with it is done."""
        return self.features.placed(x) if self.stays else to_host(x)

    def settled(self) -> LinearRows:
        """Return the same rows with their numbers and groups where products are made."""
        put = self.placed
        index = None if self.index is None else put(self.index)
        return replace(self, index=index, group=put(self.group))

    def take(self, which: Array) -> LinearRows:
        """Return some of the rows, side by side in memory if that is cheap enough."""
        index = which if self.index is None else self.index[which]
        group = self.group[which]
        small = len(which) * self.factor.shape[1] <= _COPY
        if is_sparse(self.factor) or small or 8 * len(which) <= self.factor.shape[0]:
            return replace(self, factor=self.factor[index], index=None, group=group)
        return replace(self, index=index, group=group)

    def weighted_gram(self, which: Array, weights: Array) -> Array:
        """Return A' diag(weights) A over some of the rows, weights being theirs; none is copied."""
        if is_sparse(self.factor):
            return self.take(which).gram(weights)
        index = which if self.index is None else self.index[which]
        return replace(self, index=index, group=self.group[which]).gram(weights)

    @cached_property
    def features(self) -> Features:
        """Bind the features alone, as they are: neither centre nor offsets."""
        return choose_backend().features(self.factor, self.index)

    def dense(self) -> Array:
        """Write A out: few rows only."""
        some = to_dense(self.factor if self.index is None else self.factor[self.index])
        beside = (self.group[:, None] == np.arange(self.offsets)).astype(np.float64)
        return np.hstack([some - self.centre, beside])

    def matvec(self, v: Array) -> Any:
        """Return A v."""
        d = self.factor.shape[1]
        out = self.values(v[:d])
        if self.offsets:
            # the last entry is for rows without an offset
            each = np.append(v[d:] - self.centre @ v[:d], 0.0)
            out += each[0] if self._all_have_the_first else looked_up(each, self.group)
        return out

    def values(self, w: Array) -> Any:
        """Return F w."""
        return self.features.values(w) if self.stays else self.features.matvec(w)

    def rmatvec(self, x: Array) -> Array:
        """Return A'x."""
        sums = self.sums(x)
        return np.concatenate([self.features.rmatvec(x) - self.centre * sums.sum(), sums])

    def sums(self, x: Array) -> Array:
        """Return the sum of x over each group."""
        if self._all_have_the_first:
            return np.array([x.sum()])
        return np.bincount(self.group + 1, weights=x, minlength=self.offsets + 1)[1:]

    @cached_property
    def _all_have_the_first(self) -> bool:
        return self.offsets == 1 and bool(self.group.min(initial=0) == 0)

    def gram(self, weights: Array) -> Array:
        """Return A' diag(weights) A."""
        return self.features.gram(weights, self.centre, self.group, self.offsets)
