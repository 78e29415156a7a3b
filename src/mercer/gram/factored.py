"""Grams K = F F' of features, stored or evaluated on demand, and feature maps in two parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.backends import Pairs, choose_backend
from mercer.backends.contract import BoundRows
from mercer.backends.factorizations import parts
from mercer.backends.lapack import one_blas_thread
from mercer.deadline import check
from mercer.gram.base import Cross, Expansion, Gram, columns_of
from mercer.resources import require_memory, rows_at_once
from mercer.rows.chunks import chunk_count, chunked, in_pieces, slices
from mercer.rows.device_rows import CardRows
from mercer.rows.points import is_objects, is_sparse, row_count, take, to_dense, to_host

# --- factored ------------------------------------------------------------------------------------
#
# K = F F': the primal space. F are features of the points, explicit or approximate.
#
# A solver that finds a `FactoredGram` with fewer columns than rows works with F'F instead of K.
# That is the whole of the primal/dual choice.

FeatureFunction = Callable[[Points], Any]


class FactoredGram(Gram):
    """A Gram given by features.

    Parameters
    ----------
    features : callable
        Maps points to their features (n, D): a `mercer.kernels.FeatureMap` or anything alike.
    X : Points
        The training points.
    """

    valid = True
    features: FeatureFunction
    _diag: Array | None = None

    def __init__(self, features: FeatureFunction, X: Points) -> None:
        self._hold(features, features_of(features, X))  # judged by `refuse_overflow`

    @classmethod
    def of(cls, features: FeatureFunction, factor: Any) -> FactoredGram:
        """Return the Gram of features that are known already, or changed: K = factor factor'."""
        gram = object.__new__(cls)
        gram._hold(features, factor)
        return gram

    def _hold(self, features: FeatureFunction, factor: Any) -> None:
        self.features, self.placed = features, factor
        self.shape = (factor.shape[0], factor.shape[0])
        self.dtype = np.dtype(np.float64)

    @property
    def factor(self) -> Any:
        """F in the memory of the processor, brought there once where it lies on a card."""
        return to_host(self.placed)

    @property
    def rank(self) -> int:
        """Count the features."""
        return int(self.placed.shape[1])

    def diag(self) -> Array:
        """Return the squared lengths of the features, added up once."""
        if self._diag is None:
            self._diag = squared_lengths(self.placed)
            self._diag.setflags(write=False)  # handed out again and again
        return self._diag

    def rows(self, index: Index) -> Array:
        """Multiply out rows."""
        return to_dense(self.placed[index] @ self.placed.T)

    def __matmul__(self, V: Array) -> Array:
        F = self.placed
        if V.ndim == 1:
            return np.asarray(F @ (F.T @ V))
        work = 4.0 * (F.nnz if is_sparse(F) else self.shape[0] * self.rank)
        found = [np.asarray(F @ (F.T @ V[:, some])) for some in parts(V.shape[1], work)]
        return found[0] if len(found) == 1 else np.hstack([np.zeros((len(V), 0)), *found])

    def dense(self) -> Array:
        """Multiply out everything."""
        return self.rows(slice(0, self.shape[0]))

    def round_trip(self, W: Array, change: Callable[[slice, Array], Array]) -> Array:
        """Return F'g(F W): g is given the numbers of rows and their values (r, k)."""
        every = slice(0, self.shape[0])
        return np.asarray(self.placed.T @ change(every, np.asarray(self.placed @ W)))

    def push(self, W: Array) -> Array:
        """Return F W."""
        return np.asarray(self.placed @ W)

    def pull(self, V: Array) -> Array:
        """Return F'V."""
        return self.round_trip(np.zeros((self.rank, 0)), lambda rows, _: V[rows])

    def absolute_pull(self, V: Array) -> Array:
        """Return |F|'V for V that is not negative: sums before anything cancels."""
        return np.asarray(abs(self.placed.T) @ V)

    @property
    def written(self) -> Any:
        """Return F if it is written out, else None."""
        return self.factor

    def sampled(self, index: Array) -> Array:
        """Return the features of some rows."""
        return np.asarray(to_dense(self.placed[index]))

    def made_for(self) -> Array | None:
        """Return the features of the rows that they were made for; None where none are known."""
        return None

    def longest(self) -> Array:
        """Return bounds of |phi(x)|^2, exact here."""
        return self.diag()

    def cross(self, Z: Points) -> Cross:
        """Return features of new points times features of the training points."""
        return FactoredCross(self.features, Z, self.placed)

    def expand(self, coef: Array) -> Expansion:
        """Collapse to one weight per feature."""
        coef = columns_of(coef)
        work = 2.0 * (self.placed.nnz if is_sparse(self.placed) else self.shape[0] * self.rank)
        found = [np.asarray(self.placed.T @ coef[:, some]) for some in parts(coef.shape[1], work)]
        return self.expand_weights(np.hstack([np.zeros((self.rank, 0)), *found]))

    def expand_weights(self, weights: Array) -> FeatureExpansion:
        """Return f(z) = phi(z)'w for weights that are known already."""
        return FeatureExpansion(self.features, weights, np.zeros(weights.shape[1]))


class FactoredCross(Cross):
    """A rectangle given by features on both sides, those of new points when they are needed."""

    def __init__(self, features: FeatureFunction, Z: Points, right: Any) -> None:
        self._features, self._Z, self._right = features, Z, right
        self.shape = (row_count(Z), right.shape[0])

    def rows(self, index: Index) -> Array:
        """Multiply out rows."""
        return to_dense(features_of(self._features, take(self._Z, index)) @ self._right.T)

    def __matmul__(self, V: Array) -> Array:
        W = self._right.T @ V
        return over_features(lambda F: np.asarray(F @ W), self._features, self._Z, len(W))


@dataclass(frozen=True, eq=False)
class FeatureExpansion(Expansion):
    """An expansion collapsed to weights: f(z) = phi(z)'w + b.

    Attributes
    ----------
    features : callable
        The feature map phi.
    weights : (D, k) array
        The weights w.
    offset : (k,) array
        The constant b.
    """

    features: FeatureFunction
    weights: Array
    offset: Array

    def __call__(self, Z: Points) -> Array:
        """Evaluate at new points, features of a few at a time."""
        return over_features(self._values, self.features, Z, len(self.weights))

    def _values(self, F: Any) -> Array:
        return np.asarray(F @ self.weights + self.offset)

    def plus(self, offset: Array) -> FeatureExpansion:
        """Add to the constant."""
        return replace(self, offset=self.offset + offset)


def over_features(
    work: Callable[[Any], Array],
    features: FeatureFunction,
    Z: Points,
    width: int | None = None,
    arrays: int = 3,
) -> Array:
    """Return what `work` makes of features of new points, a few of them at a time.

    Parameters
    ----------
    work : callable
        Maps features (r, width), dense or sparse, to an array of r rows.
    features : callable
        The feature map.
    Z : Points
        The points.
    width : int, optional
        How many features there are; those of the first point are counted when not given.
    arrays : int
        Arrays of features that are held at once.
    """
    if width is None or is_sparse(Z):
        first = features_of(features, take(Z, slice(0, 1)))
        width = first.shape[1]
        if is_sparse(first):  # numbers and their columns, as dense as the points are
            width = min(width, 2 * width * Z.nnz // max(1, Z.shape[0] * Z.shape[1]))

    def piece(rows: Points) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # as compiled code does
            return work(features_of(features, rows))

    return in_pieces(piece, Z, width, arrays)


def squared_lengths(F: Any) -> Array:
    """Return the squared lengths of rows of features, dense or sparse."""
    if is_sparse(F):
        return np.asarray(F.multiply(F).sum(axis=1)).ravel()
    if isinstance(F, CardRows):
        return F.squared_lengths()
    out = np.empty(len(F), dtype=F.dtype)

    def chunk(rows: slice) -> None:
        np.einsum("ij,ij->i", F[rows], F[rows], out=out[rows])

    with np.errstate(over="ignore", invalid="ignore"):
        chunked(chunk, len(F))
    return out


def features_of(features: FeatureFunction, Z: Points) -> Any:
    """Return the features of points in float64; they may be sparse."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused by those who use them
        return _float64(features(_float64(Z)))


def _float64(F: Any) -> Any:
    return F if F.dtype == object else F.astype(np.float64, copy=False)


# --- streamed ------------------------------------------------------------------------------------
#
# K = F F' where the rows of F are evaluated when they are needed, and never all written out.
#
# F = B R: rows b(x) that are cheap (the kernel's values at landmarks, or the features
# themselves), and a matrix R that turns them. Work with F'g(F W) is one pass over the rows b,
# whatever g is.

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
    kind : numpy dtype
        Type of the rows b in products that are made on a card.
    """

    def __init__(
        self,
        features: FeatureFunction,
        rows: RowMap,
        X: Points,
        held: Array | None = None,
        kind: Any = np.float64,
    ) -> None:
        self.features, self.map, self.X = features, rows, X
        self._held, self._filled, self._kind = held, False, np.dtype(kind)
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


# --- row map -------------------------------------------------------------------------------------
#
# Feature maps in two parts: phi(x) = R'b(x), of rows b that are cheap and a matrix R.


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
