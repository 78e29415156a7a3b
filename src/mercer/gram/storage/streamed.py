"""K = F F' where the rows of F are evaluated when they are needed, and never all written out.

F = B R: rows b(x) that are cheap (the kernel's values at landmarks, or the features themselves),
and a matrix R that turns them. Work with F'g(F W) is one pass over the rows b, whatever g is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.backends import Pairs, choose_backend
from mercer.backends.blas import one_blas_thread
from mercer.card_rows import CardRows
from mercer.deadline import check
from mercer.gram.base import Cross, Expansion, Gram, columns_of
from mercer.gram.storage.factored import FactoredGram, FeatureFunction
from mercer.gram.storage.row_map import RowMap
from mercer.points import is_objects, is_sparse, row_count, take
from mercer.resources import require_memory, rows_at_once
from mercer.row_chunks import chunk_count, chunked, slices

_ENTRIES = 1 << 20  # of a block that is evaluated: 8 MB, so that what is done once is soon done
_LEAST = 1024  # rows of a thread
_CACHED = 1 << 21  # bytes of a block that is read: there and back again, it comes from memory once
_WRITTEN = 1024  # rows that a thread writes features of at a time, and moves while in its cache
_ON_CARD = ("_there", "_back", "placed")  # what is not pickled
_COPIES = 3  # of F that work with all of it holds: as it is, centred, and weighted or rotated

Changed = Callable[[slice, Array], Array]
"""Of some rows: their numbers and values F W (r, k) give what is pulled back, (r, j)."""


class StreamedGram(FactoredGram):
    """A Gram given by features that are evaluated block of rows by block, when they are needed.

    `factor` writes them out all the same, for work that knows no other way, if memory allows.

    Parameters
    ----------
    features : callable
        Maps points to their features.
    rows : RowMap
        The same, in two parts.
    X : Points
        The training points.
    held : (n, p) array, optional
        Where the rows b of all points are kept after the first pass over them.
    is_filled : bool
        Whether they are there already.
    kind : numpy dtype
        Type of the rows b in products that are made on a card.
    """

    def __init__(
        self,
        features: FeatureFunction,
        rows: RowMap,
        X: Points,
        held: Array | None = None,
        is_filled: bool = False,
        kind: Any = np.float64,
    ) -> None:
        self.features, self.map, self.X = features, rows, X
        self._held, self._filled, self._kind = held, is_filled, np.dtype(kind)
        self._longest: Array | None = None
        self._first: StreamedGram | None = None  # who makes the first pass, on a card
        self.shape = (row_count(X),) * 2
        self.dtype = np.dtype(np.float64)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _ON_CARD}

    @cached_property
    def _there(self) -> Pairs | None:
        """The rows b on a card that has room for the points; else None."""
        if self._held is not None or is_objects(self.X) or is_sparse(self.X):
            return None
        needed = 8.0 * (self.shape[0] + self.width) * self.X.shape[1]
        return self.map.pairs(self.X, self._kind) if choose_backend().keeps(needed) else None

    @cached_property
    def _back(self) -> Pairs:
        """The transpose of the rows b on a card."""
        found = self.map.pairs_back(self.X, self._kind)
        assert found is not None
        return found

    @cached_property
    def factor(self) -> Any:
        """Write out the features, and keep them."""
        return self.write_out()

    @cached_property
    def placed(self) -> Any:
        """Write out the features on the card of the points, where it has room; else here."""
        if self.written is not None or not isinstance(self.X, CardRows):
            return self.factor
        found = self.map.features_on_card(self.X.astype(np.float64, copy=False))
        return self.factor if found is None else found

    @property
    def at_hand(self) -> Any:
        """The features that were written out, if any were."""
        return vars(self).get("placed", self.written)

    def write_out(self, origin: Array | None = None) -> Array:
        """Write out the features, less those of an origin, for the caller to change or keep."""
        n, m = self.shape[0], self.rank
        require_memory(
            _COPIES * 8 * n * m,
            f"work with {m} features of {n} rows, written out",
            "Use fewer components (a smaller m in approximation=Nystrom(m) or RandomFeatures(m)), "
            "fewer rows, or a larger budget with mercer.config(memory=...).",
        )
        with np.errstate(over="ignore", invalid="ignore"):
            F = np.empty((n, m))

            def chunk(rows: slice) -> None:
                for part in slices(rows.start, rows.stop, _WRITTEN):
                    self.map.write(take(self.X, part), F[part])
                    if origin is not None:
                        np.subtract(F[part], origin, out=F[part])

            if self.on_card:  # one after the other
                chunk(slice(0, n))
            else:
                with one_blas_thread():
                    chunked(chunk, n)
        return F

    @property
    def rank(self) -> int:
        """Count the features."""
        return self.map.dimension

    @property
    def width(self) -> int:
        """Count the entries of a row b."""
        return self.map.width

    @property
    def is_rounded(self) -> bool:
        """Whether rows are held, or multiplied, in float32."""
        kind = self._kind if self._held is None else self._held.dtype
        return bool(kind == np.float32)

    @property
    def on_card(self) -> bool:
        """Whether products with the rows b are made on a card, and none of them comes here."""
        return self._there is not None

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that are held."""
        return 0 if self._held is None else int(self._held.nbytes)

    def hold(self, dtype: Any) -> StreamedGram:
        """Return the same Gram, which keeps the rows b of its first pass over them for others.

        The first pass is exact; from float32 the others are as near as its rounding. On a card
        nothing is kept: to evaluate again takes no longer there.
        """
        if self._there is not None:
            again = StreamedGram(self.features, self.map, self.X, kind=dtype)
            again._first = self
            return again
        held = np.empty((self.shape[0], self.width), dtype=dtype)
        return StreamedGram(self.features, self.map, self.X, held)

    def parts(self, width: int) -> Iterator[slice]:
        """Cover all rows by blocks of such a width; time limits and Ctrl-C hold between them."""
        n = self.shape[0]
        step = rows_at_once(width, max(32, _ENTRIES // max(1, width)), arrays=2)
        for first in range(0, n, step):
            check()
            yield slice(first, min(first + step, n))

    def _blocks(self, rows: slice, step: int) -> Iterator[tuple[slice, Array]]:
        """Return the rows b of a chunk, block by block, for one of several threads."""
        for part in slices(rows.start, rows.stop, step):
            if self._held is not None and self._filled:
                yield part, self._held[part]
                continue
            B = self.map.raw(take(self.X, part), np.float64)
            if self._held is not None:
                self._held[part] = B
            yield part, B

    def _summed(self, work: Callable[[slice, Array], Array]) -> Array:
        """Add up what the work makes of blocks of rows b, chunks of them in threads."""
        entries = _ENTRIES
        if self._held is not None and self._filled:
            entries = _CACHED // self._held.itemsize
        most = max(32, entries // max(1, self.width))
        step = rows_at_once(self.width, most, arrays=2 * chunk_count(self.shape[0], _LEAST))

        def chunk(rows: slice) -> Array:
            blocks = self._blocks(rows, step)
            total = work(*next(blocks))
            for part, B in blocks:
                total = total + work(part, B)
            return total

        with one_blas_thread():  # thin products, between calls that need all cores
            first, *others = chunked(chunk, self.shape[0], _LEAST)  # no fit has no rows
        self._filled = self._held is not None
        return sum(others, start=first)

    def round_trip(self, W: Array, change: Changed) -> Array:
        """Return F'g(F W) in one pass, g given for blocks of rows."""
        if self._first is not None:
            first, self._first = self._first, None
            return first.round_trip(W, change)
        U = self.map.mix(W)
        if self._there is not None and not self.is_rounded:
            return self.map.mix_transposed(self._there.round_trip(U, change))
        if self._there is not None:
            values = self._there.matmul(U) if U.shape[1] else np.empty((self.shape[0], 0))
            total = self._back.matmul(change(slice(0, self.shape[0]), values))
            return self.map.mix_transposed(total)

        def there_and_back(rows: slice, B: Array) -> Array:
            return _product(B.T, change(rows, _product(B, U)))

        return self.map.mix_transposed(self._summed(there_and_back))

    def push(self, W: Array) -> Array:
        """Return F W."""
        W = columns_of(W)
        U, out = self.map.mix(W), np.empty((self.shape[0], W.shape[1]))
        if self._there is not None and W.shape[1]:
            return self._there.matmul(U)

        def there(rows: slice, B: Array) -> Array:
            out[rows] = _product(B, U)
            return np.zeros(0)  # nothing to add up

        self._summed(there)
        return out

    def absolute_pull(self, V: Array) -> Array:
        """Return the bound of the norms of |F|'V that lengths of rows give: (1, k)."""
        return np.asarray(np.sqrt(self.longest())[None, :] @ V)

    @property
    def written(self) -> Any:
        """Return F if it was written out, else None."""
        return vars(self).get("factor")

    def sampled(self, index: Array) -> Array:
        """Write out the features of some rows."""
        return np.asarray(self.map(take(self.X, index)))

    def sampled_raw(self, index: Index) -> Array:
        """Evaluate the rows b of some points, in float64."""
        return self.map.raw(take(self.X, index), np.float64)

    def made_for(self) -> Array | None:
        """Return the features of landmarks."""
        found = self.map.made_for()
        return None if found is None else self.map(found)

    def longest(self) -> Array:
        """Return bounds of |phi(x)|^2, found once."""
        if self._longest is None:
            bounds = self.map.longest(self.X)
            self._longest = self.diag() if bounds is None else bounds
        return self._longest

    def diag(self) -> Array:
        """Return the squared lengths of the features, block by block."""
        if self.written is not None or "placed" in vars(self):
            return super().diag()
        if isinstance(self.X, CardRows):
            return self.map.squared_lengths(self.X)
        out = np.empty(self.shape[0])
        with np.errstate(over="ignore", invalid="ignore"):
            for rows in self.parts(self.rank):
                F = self.map(take(self.X, rows))
                out[rows] = np.einsum("ij,ij->i", F, F)
        return out

    def rows(self, index: Index) -> Array:
        """Evaluate the features of these rows, and multiply by those of all."""
        return np.ascontiguousarray(self.push(self.sampled(index).T).T)

    def dense(self) -> Array:
        """Multiply out everything, features of both sides alike."""
        return np.asarray(self.factor @ self.factor.T)

    def __matmul__(self, V: Array) -> Array:
        product = self.push(self.pull(columns_of(V)))
        return np.asarray(product[:, 0] if np.ndim(V) == 1 else product)

    def cross(self, Z: Points) -> Cross:
        """Return new points against the training points, by features of both."""
        return FactoredGram.of(self.features, self.factor).cross(Z)

    def expand(self, coef: Array) -> Expansion:
        """Collapse to one weight per feature."""
        found: Expansion = self.expand_weights(self.pull(columns_of(coef)))
        return found

    def expand_weights(self, weights: Array) -> Any:
        """Return f(z) = phi(z)'w, by the rows b(z) where that is less work."""
        found = self.map.expansion(weights)
        return super().expand_weights(weights) if found is None else found

    def exact(self) -> Gram:
        """Evaluate the rows anew, written out where they were."""
        if self.written is not None:
            return FactoredGram(self.features, self.X)
        return StreamedGram(self.features, self.map, self.X)


def _product(A: Array, V: Array) -> Array:
    """Return A V in float64; for A in float32 of V scaled into its range."""
    if A.dtype == np.float64:
        return np.asarray(A @ V)
    largest = np.abs(V).max(axis=0, initial=0.0)
    scales = np.ldexp(1.0, np.frexp(np.where(np.isfinite(largest), largest, 1.0))[1])
    return np.asarray((A @ (V / scales).astype(np.float32)) * scales, dtype=np.float64)
