"""Kernels bound to points, and Grams evaluated from them: stored whole, by rows, or not at all."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.backends import Pairs, choose_backend
from mercer.backends.contract import Factor, Operator, StoredMatrix
from mercer.expression import Constant, Dot, Expression, Mapped, walk
from mercer.gram.base import Cross, Expansion, Gram, columns_of, nonzero_rows
from mercer.resources import require_memory
from mercer.rows.chunks import in_pieces
from mercer.rows.points import as_points, is_objects, is_sparse, row_count, take, to_host

# Squares of entries of rows, and constants of kernels, with which distances and what is made of
# them have all digits of float32.
_SINGLE = 1e-30, 1e30


@dataclass(frozen=True, eq=False)
class Source:
    """A kernel bound to rows.

    Attributes
    ----------
    expression : Expression
        The kernel, names of columns already numbers.
    X : Points
        The rows it compares.
    dtype : numpy dtype
        Type of K.
    valid : bool
        Whether K is known to be positive semidefinite, by the rules of the algebra.
    """

    expression: Expression
    X: Points
    dtype: Any = np.float64
    valid: bool = False

    @property
    def n(self) -> int:
        """Count the training points."""
        return row_count(self.X)

    def pairs(self) -> Pairs:
        """Bind the training points against themselves."""
        return choose_backend().pairs(self.expression, self.X, None, self.dtype)

    def against(self, index: Index) -> Pairs:
        """Bind all training points against some of them."""
        columns = take(self.X, index)
        return choose_backend().pairs(self.expression, self.X, columns, self.dtype)

    def diag(self) -> Array:
        """Return k(x_i, x_i) in float64."""
        return choose_backend().diagonal(self.expression, self.X, np.float64)

    def cross(self, Z: Points) -> Cross:
        """Bind new points against the training points."""
        return PairsCross(choose_backend().pairs(self.expression, Z, self.X, self.dtype))

    def expand(self, coef: Array) -> KernelExpansion:
        """Keep only the points with a coefficient: a support vector machine keeps few."""
        coef = columns_of(coef)
        kept = nonzero_rows(coef)
        offset = np.zeros(coef.shape[1])
        points = to_host(take(self.X, kept))  # a fitted machine may answer anywhere
        return KernelExpansion(self.expression, points, coef[kept], offset)

    def only(self, index: Index) -> Source:
        """Return the same kernel on some of the points."""
        return replace(self, X=take(self.X, index))

    def in_float64(self) -> Source:
        """Return the same kernel and points with K in float64."""
        return self if self.dtype == np.float64 else replace(self, dtype=np.float64)

    def in_float32(self) -> Source:
        """Return the same kernel and points with K in float32, or in float64 out of its range."""
        dtype = np.dtype(np.float32 if self.fits_float32() else np.float64)
        return self if self.dtype == dtype else replace(self, dtype=dtype)

    def fits_float32(self) -> bool:
        """Return whether float32 holds squares of the rows' entries, and the kernel's constants."""
        sizes = [abs(at.value) for at in walk(self.expression) if isinstance(at, Constant)]
        entries: Any = None if is_objects(self.X) else self.X.data if is_sparse(self.X) else self.X
        if entries is not None and entries.dtype.kind == "f" and entries.size:
            largest = max(float(entries.max()), -float(entries.min()))
            sizes.append(largest * largest)
        return all(size == 0.0 or _SINGLE[0] < size < _SINGLE[1] for size in sizes)

    def exact(self) -> LazyGram:
        """Return K evaluated in float64, whenever it is asked for."""
        return LazyGram(self.in_float64())


@dataclass(frozen=True, eq=False)
class MappedOnce:
    """A kernel of features, on points whose features are written out, for work with new rows.

    Attributes
    ----------
    expression : Expression
        The kernel on features; the given one where there are none.
    points : Points
        Features of the points, or the points.
    phi : callable or None
        Maps new rows to their features.
    """

    expression: Expression
    points: Points
    phi: Any = None

    @property
    def width(self) -> int:
        """Count the features; zero for none."""
        return 0 if self.phi is None else int(self.phi.dimension)

    def of(self, Z: Points) -> Points:
        """Map new rows."""
        return Z if self.phi is None else as_points(self.phi(Z))


def mapped_once(expression: Expression, points: Points) -> MappedOnce:
    """Write out the features of points, where the kernel is a dot product of such.

    New rows may then come a few at a time, without those of the points being found each time.
    """
    steps = expression.steps if isinstance(expression, Dot) else ()
    first = steps[0] if steps else None
    if not isinstance(first, Mapped) or not hasattr(first.function, "dimension"):
        return MappedOnce(expression, points)
    return MappedOnce(Dot(steps[1:]), as_points(first.function(to_host(points))), first.function)


class PairsCross(Cross):
    """New points against training points, evaluated by a backend on demand."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self.shape = pairs.shape

    def rows(self, index: Index) -> Array:
        """Evaluate rows."""
        return self._pairs.rows(index)

    def __matmul__(self, V: Array) -> Array:
        return self._pairs.matmul(V)


@dataclass(frozen=True, eq=False)
class KernelExpansion(Expansion):
    """An expansion over points.

    Attributes
    ----------
    expression : Expression
        The kernel.
    points : Points
        The points with a coefficient.
    coef : (points, k) array
        Their coefficients.
    offset : (k,) array
        The constant b.
    """

    expression: Expression
    points: Points
    coef: Array
    offset: Array

    def __call__(self, Z: Points) -> Array:
        """Evaluate without storing K(Z, points)."""
        if len(self.coef) == 0:
            return np.tile(self.offset, (row_count(Z), 1))
        # in float64 whatever the rows are: large coefficients would blow up float32 rounding
        bound = mapped_once(self.expression, self.points)

        def values(rows: Points) -> Array:
            pairs = choose_backend().pairs(
                bound.expression, bound.of(rows), bound.points, np.float64
            )
            return pairs.matmul(self.coef) + self.offset

        return in_pieces(values, Z, bound.width) if bound.width else values(Z)

    def only(self, some: slice) -> KernelExpansion:
        """Return the sums over some of the points; no row of numbers is copied."""
        return replace(self, points=take(self.points, some), coef=self.coef[some])

    def plus(self, offset: Array) -> KernelExpansion:
        """Add to the constant."""
        return replace(self, offset=self.offset + offset)


# --- what all of them have from their source -----------------------------------------------------


class SourceGram(Gram):
    """K of a kernel on points: new points and float64 come from the source, however K is stored.

    Parameters
    ----------
    source : Source
        Kernel, points and type of the entries.
    """

    source: Source

    def __init__(self, source: Source) -> None:
        self.source = source
        self.shape = (source.n,) * 2
        self.dtype = source.dtype
        self.valid = source.valid

    def cross(self, Z: Points) -> Cross:
        """Bind new points."""
        return self.source.cross(Z)

    def expand(self, coef: Array) -> Expansion:
        """Expand over the points."""
        return self.source.expand(coef)

    def exact(self) -> Gram:
        """Evaluate anew from the points."""
        return self.source.exact()


# --- k stored whole ------------------------------------------------------------------------------


class DenseGram(SourceGram):
    """The matrix in memory, evaluated once.

    Parameters
    ----------
    source : Source
        Kernel, points and type of the matrix.
    matrix : (n, n) array, optional
        The matrix, if it has been evaluated already.

    Attributes
    ----------
    stored : StoredMatrix
        The matrix, where the backend works with it.
    """

    def __init__(self, source: Source, matrix: Array | None = None) -> None:
        super().__init__(source)
        if matrix is None:
            self.stored = source.pairs().stored()
        else:
            self.stored = choose_backend().stored(matrix)
        self._diag: Array | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix."""
        return self.stored.nbytes

    def diag(self) -> Array:
        """Evaluate the diagonal, once; in float64 whatever the matrix is stored in."""
        if self._diag is None:
            self._diag = self.source.diag()
            self._diag.setflags(write=False)  # handed out again and again
        return self._diag

    def rows(self, index: Index) -> Array:
        """Read rows."""
        return self.stored.rows(index)

    def __matmul__(self, V: Array) -> Array:
        product = self.stored.product(columns_of(V))
        return product[:, 0] if V.ndim == 1 else product

    def operator(self) -> Operator:
        """Multiply where the matrix lies."""
        return self.stored.operator()

    def cholesky(self, shift: Array, scale: Array | None = None) -> Factor | None:
        """Factor where the matrix lies."""
        return self.stored.cholesky(shift, scale)

    def dense(self) -> Array:
        """Return the stored matrix, read-only."""
        return self.stored.dense()


# --- k never stored: products are made tile by tile ----------------------------------------------


class LazyGram(SourceGram):
    """Fused products: an entry of K lives only inside the tile that uses it.

    Parameters
    ----------
    source : Source
        Kernel, points and type of the tiles.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.dtype = np.dtype(source.dtype)

    @cached_property
    def _pairs(self) -> Pairs:
        # bound when first used: a Gram that is held for later costs nothing
        return self.source.pairs()

    def part_product(self, index: Array, V: Array) -> Array:
        """Return K[index] V; of points that a card has, where they lie."""
        part, source = self._pairs.part(index), self.source
        if part is None:
            some = take(source.X, index)
            part = choose_backend().pairs(source.expression, some, source.X, source.dtype)
        return part.matmul(V)

    def stored_part(self, index: Array) -> StoredMatrix:
        """Store K[index, index]; of points that a card has, where they lie."""
        part = self._pairs.stored_part(index)
        return self.source.only(index).pairs().stored() if part is None else part

    def diag(self) -> Array:
        """Evaluate the diagonal."""
        return self.source.diag()

    def rows(self, index: Index) -> Array:
        """Evaluate rows."""
        return self._pairs.rows(index)

    def __matmul__(self, V: Array) -> Array:
        product = self._product(columns_of(V))
        return product[:, 0] if V.ndim == 1 else product

    def operator(self) -> Operator:
        """Multiply where the points lie."""
        return self._pairs.operator()

    def _product(self, V: Array) -> Array:
        """Multiply; rows of V that are zero (points that support nothing) cost nothing."""
        used = np.flatnonzero(V.any(axis=1))
        if not len(used):
            return np.zeros(V.shape)
        if 2 * len(used) > len(V):
            return self._pairs.matmul(V)
        return self.source.against(used).matmul(V[used])

    def dense(self) -> Array:
        """Evaluate everything, if the memory budget allows it."""
        n = self.source.n
        require_memory(
            n * n * self.dtype.itemsize,
            f"the Gram matrix of {n} points",
            "A lazy Gram is meant for products; use a solver that asks only for those.",
        )
        return self._pairs.dense()


# --- rows of K on demand, the least recently used forgotten first, under a byte budget -----------


class CachedGram(SourceGram):
    """A row cache.

    Parameters
    ----------
    source : Source
        Kernel, points and type of the rows.
    budget : int
        Bytes for kept rows; at least two rows are always kept, as a pair step needs two.

    Attributes
    ----------
    evaluated : int
        Rows computed so far.
    """

    def __init__(self, source: Source, budget: int) -> None:
        super().__init__(source)
        self.evaluated = 0
        self._lazy = LazyGram(source)
        self._capacity = max(2, budget // max(1, source.n * np.dtype(source.dtype).itemsize))
        self._kept: OrderedDict[int, Array] = OrderedDict()

    def diag(self) -> Array:
        """Evaluate the diagonal."""
        return self._lazy.diag()

    def rows(self, index: Index) -> Array:
        """Read rows, computing the missing ones in one block."""
        requested = np.atleast_1d(np.arange(self.shape[0])[index])
        if len(requested) > self._capacity:
            return self._lazy.rows(requested)  # would flush the cache and not fit anyway
        missing = np.array([i for i in requested.tolist() if i not in self._kept], dtype=np.intp)
        if len(missing):
            self._keep(missing)
        for i in requested.tolist():
            self._kept.move_to_end(i)
        block = np.stack([self._kept[i] for i in requested.tolist()])
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
        return block

    def _keep(self, missing: Array) -> None:
        # own copies: a view would keep the whole block alive after its neighbours are forgotten
        for i, row in zip(missing.tolist(), self._lazy.rows(missing), strict=True):
            self._kept[i] = row.copy()
        self.evaluated += len(missing)

    def __matmul__(self, V: Array) -> Array:
        return self._lazy @ V

    def dense(self) -> Array:
        """Evaluate everything, if the memory budget allows it."""
        return self._lazy.dense()
