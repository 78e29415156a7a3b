"""NumPy backend: kernel matrices, Cholesky factors, and sums and descent over features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.array_types import Array, Index, Points
from mercer.backends.box_programs import (
    Box,
    BoxAnswer,
    BoxPath,
    BoxPathAnswer,
    FeatureAnswer,
    FeatureBox,
)
from mercer.backends.contract import (
    BackendFeatures,
    Band,
    GroupAnswer,
    Groups,
    LinearFunctions,
    Pairs,
    PassCounts,
    Poll,
    RowParts,
    StoredMatrix,
)
from mercer.backends.host import HostBackend, HostMatrix
from mercer.backends.neighbor_order import closeness
from mercer.backends.reference.evaluate import diagonal, evaluate
from mercer.backends.reference.kmeans import labelled, partition
from mercer.backends.reference.perceptron import perceptron_pass
from mercer.backends.reference.smo import on_stored, solve_path
from mercer.expression import Expression
from mercer.resources import rows_at_once
from mercer.rows.points import is_sparse, row_count, take, to_dense

# --- backend -------------------------------------------------------------------------------------
#
# The NumPy backend: blocks by `evaluate`, algebra by NumPy and SciPy. Always there.
#
# Other backends are tested against this one (`mercer.testing.check_backend`). Rows are handled in
# blocks, so that a product never holds the whole matrix.

_PANEL = 128  # columns of a Cholesky factor that are found together
_BLOCK_ENTRIES = 1 << 22  # entries of one block of K held at a time by products
_ARRAYS = 3  # of a block: what a formula holds at once


class ReferencePairs(Pairs):
    """An expression bound to points, evaluated by NumPy."""

    def __init__(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> None:
        self._expression, self._X, self._Y = expression, X, X if Y is None else Y
        self._symmetric = Y is None
        self.shape = (row_count(X), row_count(self._Y))
        self.dtype = np.dtype(dtype)

    def rows(self, index: Index) -> Array:
        """Evaluate rows; overflow gives infinity, silently, as compiled code does."""
        with np.errstate(all="ignore"):
            block = evaluate(self._expression, take(self._X, index), self._Y)
            return block.astype(self.dtype, copy=False)

    def dense(self, *, padded: bool = False) -> Array:
        """Evaluate everything; one triangle is copied to the other, so symmetry is exact."""
        out = np.empty(self.shape, dtype=self.dtype)
        for part in self.blocks():
            out[part] = self.rows(part)
        if self._symmetric:
            _mirror(out)
        return out

    def stored(self) -> StoredMatrix:
        """Keep the matrix in memory."""
        return HostMatrix(self.dense())

    def matmul(self, V: Array) -> Array:
        """Multiply block by block."""
        V = np.asarray(V, dtype=np.float64)
        out = np.empty((self.shape[0], *V.shape[1:]))
        for part in self.blocks():
            with np.errstate(all="ignore"):
                out[part] = evaluate(self._expression, take(self._X, part), self._Y) @ V
        return out

    def blocks(self) -> list[slice]:
        """Cover all rows by parts small enough to hold."""
        n, m = self.shape
        height = rows_at_once(m, max(1, _BLOCK_ENTRIES // max(1, m)), arrays=_ARRAYS)
        return [slice(i, min(n, i + height)) for i in range(0, n, height)]


def _mirror(K: Array, height: int = 256) -> None:
    """Copy the upper triangle to the lower one, block by block."""
    for i in range(0, len(K), height):
        j = min(i + height, len(K))
        K[i:j, :i] = K[:i, i:j].T
        K[i:j, i:j] = np.triu(K[i:j, i:j]) + np.triu(K[i:j, i:j], 1).T


class Reference(HostBackend):
    """NumPy and SciPy, on the host."""

    name = "reference"

    def pairs(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> Pairs:
        """Bind an expression to points."""
        return ReferencePairs(expression, X, Y, dtype)

    def diagonal(self, expression: Expression, X: Points, dtype: Any) -> Array:
        """Evaluate e(x_i, x_i)."""
        with np.errstate(all="ignore"):
            return diagonal(expression, X).astype(dtype, copy=False)

    def neighbours(
        self, expression: Expression, X: Points, Y: Points | None, count: int
    ) -> tuple[Array, Array]:
        """Sort blocks of rows; a stable sort leaves ties in the order of their numbers."""
        order = closeness(expression)
        pairs = ReferencePairs(order.key, X, Y, np.float64)
        index = np.empty((pairs.shape[0], count), dtype=np.int64)
        key = np.empty(index.shape)
        for part in pairs.blocks():
            block = pairs.rows(part)
            if Y is None:
                block[np.arange(len(block)), np.arange(part.start, part.stop)] = np.inf
            block[np.isnan(block)] = np.inf
            index[part] = np.argsort(block, axis=1, kind="stable")[:, :count]
            key[part] = np.take_along_axis(block, index[part], axis=1)
        index[~(key < np.inf)] = -1
        return index, order.squared(key)

    def empty(self, n: int, m: int) -> Array:
        """Leave it to NumPy."""
        return np.empty((n, m))

    def symmetric_product(self, K: Array, V: Array, parts: RowParts | None = None) -> Array:
        """Multiply block by block, so that no float64 copy of K is made."""
        if parts is not None:
            sizes = np.diff(parts.ends, prepend=0)
            read = np.where(np.repeat(parts.reads, sizes, axis=0), V, 0.0)
            product = self.symmetric_product(K, read)
            return np.where(np.repeat(parts.writes, sizes, axis=0), product, 0.0)
        out = np.empty((len(K), V.shape[1]))
        height = max(1, _BLOCK_ENTRIES // max(1, len(K)))
        with np.errstate(all="ignore"):
            for i in range(0, len(K), height):
                deadline.check()
                out[i : i + height] = K[i : i + height] @ V
        return out

    def cholesky(self, A: Array) -> int:
        """Factor panel by panel: between two of them, Ctrl-C is heard, and a deadline kept.

        One LAPACK call on the whole matrix would be as short, but SciPy's holds the interpreter's
        lock to its end, however many minutes that takes.
        """
        for first in range(0, len(A), _PANEL):
            deadline.check()
            last = min(first + _PANEL, len(A))
            done, block = A[first:last, :first], A[first:last, first:last]
            factor, info = linalg.lapack.dpotrf(block - done @ done.T, lower=1, clean=0)
            lower = np.tril_indices(last - first)
            block[lower] = factor[lower]
            if info:
                return first + int(info)
            below = A[last:, first:last]
            below -= A[last:, :first] @ done.T
            below[:] = linalg.solve_triangular(factor, below.T, lower=True, check_finite=False).T
        return 0

    def band_reduce(self, A: Array, width: int) -> Band:
        """Reduce by the QR factors of panels below the band, applied from both sides."""
        n = len(A)
        Qt = np.eye(n)
        for j in range(0, n - width - 1, width):
            deadline.check()
            below, panel = slice(j + width, n), slice(j, j + width)
            Q, R = np.linalg.qr(A[below, panel], mode="complete")
            A[below, panel], A[panel, below] = R, R.T
            A[below, below] = Q.T @ A[below, below] @ Q
            Qt[below] = Q.T @ Qt[below]
        lower = np.zeros((n, width + 1))
        for k in range(min(width + 1, n)):
            lower[: n - k, k] = np.diagonal(A, -k)
        return Band(Qt, lower, width)

    def band_inverse_diagonals(self, band: Band, shifts: Array) -> Array:
        """Solve with each shifted band."""
        out = np.full((len(shifts), len(band.Qt)), np.nan)
        for row, shift in zip(out, shifts, strict=True):
            deadline.check()
            try:
                factor = linalg.cholesky_banded(_shifted_lower(band, shift), lower=True)
            except linalg.LinAlgError:
                continue
            Y = linalg.solve_banded((band.width, 0), factor, band.Qt)
            row[:] = np.einsum("ij,ij->j", Y, Y)
        return out

    def box_qps(
        self, K: Array, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxAnswer]:
        """Run the loop of `smo`, one box after the other."""
        return [on_stored(K, box, tol, max_iter, poll) for box in boxes]

    def box_paths(
        self, K: Array, paths: Sequence[BoxPath], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxPathAnswer]:
        """Solve one path after the other."""
        return [solve_path(K, path, tol, max_iter, poll) for path in paths]

    def partition(self, K: Array, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Run the steps of `partition`, one start after the other."""
        return partition(K, groups, poll)

    def perceptron(
        self,
        X: Any,
        codes: Array,
        order: Array | None,
        rules: LinearFunctions,
        step: float,
        interruptible: bool,
    ) -> PassCounts:
        """Walk row by row."""
        return perceptron_pass(X, codes, order, rules, step, interruptible)

    def features(self, F: Any, index: Array | None) -> BackendFeatures:
        """Bind rows."""
        return ReferenceFeatures(F, index)


def _shifted_lower(band: Band, shift: float) -> Array:
    lower = band.lower.T.copy()
    lower[0] += shift
    return lower


# --- features ------------------------------------------------------------------------------------
#
# Rows of features in NumPy: products in chunks, and the specification of the coordinate descent.
#
# With w = F'b kept along, one variable at a time is set to its optimum given all others, in
# random order. A fixed sum of variables becomes rho/2 (sum - total)^2 plus a multiplier (the
# offset), which moves once the descent knows the sum better than the sum is off.

_CHUNK = 1 << 18  # entries: two such blocks stay in a second-level cache
_LONG = 1 << 25  # entries that a product with a vector may read between two chances for Ctrl-C
_POLL_EVERY = 256
_STEEP = 10.0  # times the least steep penalty of a sum


class ReferenceFeatures(BackendFeatures):
    """Rows F[index], dense or CSR.

    Parameters
    ----------
    F : (N, d) float64 array or CSR array
        The features of all points.
    index : (n,) int array, optional
        Which of them, repeats allowed.
    """

    def __init__(self, F: Any, index: Array | None) -> None:
        self._F, self._index = F, index
        self.shape = (F.shape[0] if index is None else len(index), F.shape[1])

    def matvec(self, w: Array) -> Array:
        """Multiply chunk by chunk."""
        out = np.empty(self.shape[0])
        for part, block in self._blocks(_LONG):
            out[part] = block @ w
        return out

    def rmatvec(self, x: Array) -> Array:
        """Multiply chunk by chunk."""
        out = np.zeros(self.shape[1])
        for part, block in self._blocks(_LONG):
            out += block.T @ x[part]
        return out

    def gram(self, weights: Array, centre: Array, group: Array, groups: int) -> Array:
        """Add up chunks; sparse ones are never centred."""
        d = self.shape[1]
        out = np.zeros((d + groups, d + groups))
        for part, block in self._blocks(_LONG if is_sparse(self._F) else _CHUNK):
            beside = (group[part, None] == np.arange(groups)).astype(np.float64)
            if is_sparse(block):
                scaled = block.multiply(weights[part, None]).tocsr()
                out[:d, :d] += to_dense(block.T @ scaled)
                out[:d, d:] += scaled.T @ beside - np.outer(centre, weights[part] @ beside)
            else:
                scaled = weights[part, None] * (block - centre)
                out[:d, :d] += (block - centre).T @ scaled
                out[:d, d:] += scaled.T @ beside
            out[d:, d:] += np.diag(weights[part] @ beside)
        out[d:, :d] = out[:d, d:].T
        return out

    def partition(self, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Run the steps of `partition` on F F', of which only what is asked for is multiplied."""
        rows = self._F if self._index is None else self._F[self._index]
        return partition(FeatureProducts(rows), labelled(groups, rows), poll)

    def descend(
        self, box: FeatureBox, tol: float, max_epochs: int, poll: Poll | None
    ) -> FeatureAnswer:
        """Walk over all variables in random order, without leaving any out."""
        return _CoordinateDescent(self, box).run(tol, max_epochs, poll)

    def row(self, i: int) -> Array:
        """Return one row."""
        return np.asarray(to_dense(self._F[[i if self._index is None else self._index[i]]])[0])

    def _blocks(self, entries: int) -> Iterator[tuple[slice, Any]]:
        step = max(1, entries // max(1, self.shape[1]))
        if is_sparse(self._F):
            step = max(1, entries // max(1, self._F.nnz // max(1, self._F.shape[0])))
        for first in range(0, self.shape[0], step):
            deadline.check()
            part = slice(first, min(self.shape[0], first + step))
            yield part, self._F[part if self._index is None else self._index[part]]


class _CoordinateDescent:
    def __init__(self, rows: ReferenceFeatures, box: FeatureBox) -> None:
        self.rows, self.box, self.b = rows, box, box.start.astype(np.float64)
        n = rows.shape[0]
        self.epsilon = np.zeros(n) if box.epsilon is None else box.epsilon
        self.shift = np.zeros(n) if box.shift is None else box.shift
        lengths = np.array([float(x @ x) for x in map(rows.row, range(n))])
        slope = _STEEP * _box_slope(box)
        self.rho = float(max(lengths.mean() if n else 0.0, slope)) or 1.0
        self.curvature = lengths + self.shift + np.where(box.group >= 0, self.rho, 0.0)
        self.offsets = box.offsets.astype(np.float64)
        self.w = rows.rmatvec(self.b)
        sums = np.bincount(box.group + 1, weights=self.b, minlength=len(box.totals) + 1)[1:]
        self.off = sums - box.totals

    def run(self, tol: float, max_epochs: int, poll: Poll | None) -> FeatureAnswer:
        rng, epochs, violation = np.random.default_rng(0), 0, np.inf
        while epochs < max_epochs:
            rise = fall = 0.0
            for step, i in enumerate(rng.permutation(len(self.b))):
                if step % _POLL_EVERY == 0 and poll is not None and poll(epochs, violation):
                    return FeatureAnswer(self.b, self.offsets, epochs, violation)
                up, down = self._move(int(i))
                rise, fall = max(rise, up), max(fall, -down)
            epochs, violation = epochs + 1, rise + fall
            infeasibility = self.rho * float(np.abs(self.off).max(initial=0.0))
            if violation <= tol and infeasibility <= 0.1 * tol:
                break
            if violation <= max(tol, 3.0 * infeasibility):
                self.offsets += self.rho * self.off
        return FeatureAnswer(self.b, self.offsets, epochs, violation)

    def _move(self, i: int) -> tuple[float, float]:
        x, g, b, box = self.rows.row(i), int(self.box.group[i]), self.b[i], self.box
        G = box.linear[i] - x @ self.w - self.shift[i] * b
        if g >= 0:
            G -= self.offsets[g] + self.rho * self.off[g]
        epsilon, q = self.epsilon[i], self.curvature[i]
        up = G + (epsilon if b < 0 else -epsilon) if b < box.upper[i] else -np.inf
        down = G + (-epsilon if b > 0 else epsilon) if b > box.lower[i] else np.inf
        if up > 0 or down < 0:
            z = float(np.clip(_target(b, G, epsilon, q), box.lower[i], box.upper[i]))
            if np.isfinite(z):
                self.b[i] = z
                self.w += (z - b) * x
                if g >= 0:
                    self.off[g] += z - b
        return float(up), float(down)


def _target(b: float, G: float, epsilon: float, q: float) -> float:
    """Return where a variable would like to be; with a row of zeros as far as it may go."""
    if q > 0:
        z = b + G / q
        return float(np.sign(z) * max(abs(z) - epsilon / q, 0.0))
    return float(np.sign(G) * np.inf) if abs(G) > epsilon else b


def _box_slope(box: FeatureBox) -> float:
    """Return how far forces lie apart, over how far sums can go: by less a sum is not felt."""
    m = box.group >= 0
    apart = float(np.ptp(box.linear[m])) if m.any() else 0.0
    width = (box.upper - box.lower)[m]
    if box.shift is not None:
        bent = box.shift[m] > 0
        reach = np.where(bent, apart / np.where(bent, box.shift[m], 1.0), np.inf)
        width = np.minimum(width, reach)
    total = float(width.sum())
    return apart / total if total > 0 else 0.0


class FeatureProducts:
    """F F' for those who ask for single rows or for products."""

    def __init__(self, F: Any) -> None:
        self._F = F

    def __getitem__(self, index: Array) -> Array:
        return to_dense(self._F[index] @ self._F.T)

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self._F @ (self._F.T @ V))
