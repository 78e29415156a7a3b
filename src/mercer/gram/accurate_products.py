"""Products with K almost free of rounding, bounds of rounding, and parts of K in float64."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends.reference.evaluate import evaluate
from mercer.expression import Opaque, walk
from mercer.gram.base import Gram, columns_of, exact
from mercer.gram.centering import CenteredGram
from mercer.gram.evaluated import LazyGram, Source
from mercer.gram.policy import FLOAT64_COPY, PROVEN_ROWS
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.transformed import ScaledGram
from mercer.resources import rows_at_once
from mercer.rows.points import is_objects, is_sparse, take, to_host

# --- accurate products ---------------------------------------------------------------------------
#
# K b with nearly no rounding, where K is held as data, and what a plain K b may be off by.
#
# A sum whose terms cancel is known to the rounding of its terms, not of itself. That decides
# where rows have very different sizes: f at a row of length 1e9 is off by 1e9 times the rounding
# of w, and w = F'b may be a small difference of large terms. Certificates come here where a plain
# product leaves too few digits for what they claim.
#
# Bounds are those of the standard model: a result is right to a factor of 1 + delta, |delta| <= u
# = 2^-53, and, of a product that underflows, to half the smallest number. References are to
# Higham, Accuracy and Stability of Numerical Algorithms (2nd edition). They hold for every order
# in which a sum is added up, on any number of threads, with and without fused multiply-add; not
# where a processor flushes small numbers to zero.
#
# Sums are split without error (Rump, Ogita and Oishi, Accurate floating-point summation, 2008):
# adding and subtracting a power of two well above all terms rounds them to a common grid, on
# which they add up exactly; what is left over is small, and so is its rounding.

EPS = float(np.finfo(np.float64).eps)
UNIT = EPS / 2  # u: what one operation may be off by, relative to its result
_LEAST = 2.0**-1074  # the smallest number
_HALVES = 2.0**27 + 1  # splits 53 bits into two halves, whose products are exact (Dekker, 1971)
_BLOCK = 1 << 18  # entries at a time: a dozen arrays of them stay in the cache
_ROWS = 1 << 12  # rows at a time, at most: what is left over grows with the square of their number
_MORE = 12  # roundings of what a bound is computed from, beside those of its sums


def inner(a: Array, b: Array) -> float:
    """Return a'b of two vectors, added up pairwise, by this thread alone.

    BLAS wakes its threads for ten thousand entries. Where a process has others that wait for work
    (torch's), these and those take turns, and a product takes milliseconds.

    Examples
    --------
    >>> inner(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float((a * b).sum())


def gamma(count: int) -> float:
    """Return what so many roundings in a row may change, relative to the computed sum of sizes.

    Higham (3.4) and lemma 3.1: n factors of 1 + delta are 1 + theta, |theta| <= gamma_n =
    n u / (1 - n u). A sum of n products, in any order, is off by gamma_n times the sum of their
    sizes, (3.5). That sum is itself computed, by n roundings at most, and may be too small by
    gamma_n of it: gamma_n / (1 - gamma_n) = n u / (1 - 2 n u) counts that as well.

    Examples
    --------
    >>> gamma(1) > 2.0**-53, gamma(1 << 60)
    (True, inf)
    """
    share = count * UNIT
    return share / (1.0 - 2.0 * share) if 2.0 * share < 1.0 else float("inf")


def product_rounding(gram: Gram, b: Array, more: int = 0) -> Array:
    """Bound what each entry of a plain float64 K b is off by, K being the numbers that it is of.

    Higham (3.5), in two stages where K = F F': with m coefficients that are not zero and rows of d
    features, |F'b computed - F'b| <= gamma_m |F|'|b|, so that F F'b is off by no more than
    gamma_(m + d) |F| |F|'|b|, which lengths of rows bound (Cauchy and Schwarz):

        gamma_(m + d) |phi(x_i)| sum_j |b_j| |phi(x_j)|.

    The same bounds gamma_m |K| |b| where K is positive semidefinite, as |k(x_i, x_j)| is at most
    the product of lengths. Where that is not known, it is at most the root of the product of the
    largest entries of both rows.

    Features, and entries that a kernel computes, are taken for what they came out as: how far they
    are from those that real arithmetic has is not in this bound.

    Parameters
    ----------
    gram : Gram
        K.
    b : (n,) array
        What it is multiplied by.
    more : int
        How many more roundings of the products to count: of sums of several of them.

    Returns
    -------
    (n,) array
        The bounds; infinite of a function of the user's own on more rows than it is proven for.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(b)
        if not size.any():  # products with zero are exact
            return np.zeros(gram.shape[0])
        count = _roundings(gram, int(np.count_nonzero(size)))
        bounds = gamma(count + more + _MORE) * _largest_terms(gram, size)
        # (2.8), of products that underflow: in entries, in F'b and then times F, and in the sums
        lengths = np.sqrt(np.abs(gram.diag()))
        return np.asarray(bounds + _LEAST * count * (2.0 + float(size.sum()) + count * lengths))


def _roundings(gram: Gram, count: int) -> int:
    """Return how many roundings in a row K b has, for b with so many entries that are not zero."""
    if isinstance(gram, CenteredGram):  # and two means: of b, and of the product
        n = gram.shape[0]
        return _roundings(gram.base, n) + 2 * n + 2
    if isinstance(gram, ScaledGram):
        return _roundings(gram.base, count) + 2
    return count + (0 if gram.features is None else _most_features(gram.at_hand, gram.rank))


def _most_features(F: Any, width: int) -> int:
    """Return how many features the rows have at most that are not zero, of so many."""
    if not is_sparse(F) or F.format not in ("csr", "csc"):
        return width
    counts = np.diff(F.indptr) if F.format == "csr" else np.bincount(F.indices)
    return int(counts.max(initial=0))


def _largest_terms(gram: Gram, size: Array) -> Array:
    """Bound |K| |b| for |b|, or |F| |F|'|b|; of centred K, all terms before they cancel."""
    if isinstance(gram, CenteredGram):
        terms = _largest_terms(gram.base, size + gram.weights * size.sum())
        return np.asarray(terms + gram.weights @ terms)
    if isinstance(gram, ScaledGram):
        scale = np.abs(gram.scale)
        return np.asarray(scale * _largest_terms(gram.base, scale * size))
    if gram.valid:
        wide = 0 if gram.features is None else gram.rank
        lengths = np.sqrt(np.abs(gram.diag()) + _LEAST * (wide + 1))  # squares underflow, too
        return np.asarray(lengths * inner(size, lengths))
    if gram.csr is not None:
        return np.asarray(abs(gram.csr) @ size)
    n = gram.shape[0]
    if n > PROVEN_ROWS and not isinstance(gram, PrecomputedGram):
        return np.full(n, np.inf)
    roots = np.sqrt(gram.row_sizes())
    return np.asarray(roots * inner(size, roots))


def accurate_product(gram: Gram, b: Array) -> tuple[Array, Array] | None:
    """Return K b and what each entry may be off by; None where K itself is known to rounding only.

    A given matrix: by `transposed_product`, and as near. Features: w = F'b by the same, so that
    w is off by r, and F w by |F| (r + gamma_d |w|), Higham (3.5).

    Parameters
    ----------
    gram : Gram
        K.
    b : (n,) array
        What it is multiplied by.

    Returns
    -------
    (n,) array, (n,) array, or None
        The product and a bound of its rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import FactoredGram
    >>> X = np.array([[1e9, 1e9, 1.0]]).T
    >>> b = np.array([1.0, -1.0, 1e-9]) + 1e-10
    >>> w = float(sum(int(2**90 * v) * int(x) for v, x in zip(b, X[:, 0])) / 2**90)
    >>> product, rounding = accurate_product(FactoredGram(lambda Z: Z, X), b)
    >>> bool(abs(product[0] - 1e9 * w) <= rounding[0])
    True
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if gram.factor is not None:
            F = gram.factor
            w, lost = transposed_product(F, b)
            wide = _most_features(F, F.shape[1])
            product, share = np.asarray(F @ w), gamma(wide + _MORE)
            rounding = np.asarray(abs(F) @ ((1.0 + share) * lost + share * np.abs(w)))
            rounding += _LEAST * wide
        elif isinstance(gram, PrecomputedGram):
            product, rounding = transposed_product(exact(gram).dense(), b)
        else:
            return None
    return (product, rounding) if np.isfinite(product).all() else None


def transposed_product(F: Any, b: Array) -> tuple[Array, Array]:
    """Return F'b, each entry to about its last digit, and what it may be off by.

    Of m terms of a block, none above c, the grid is a multiple of u s, s <= 8 m c a power of two.
    On it they add up exactly. What is left of each is at most u s, and what rounding took from
    the products is less: together at most 2 m u s, in sums of m terms, so that they are off by
    gamma_m 2 m u s. With what two blocks lose to each other, u times the larger sum, k blocks are
    off by gamma_(m + k) times all of that, and the end by u times itself, Higham (2.5).

    Parameters
    ----------
    F : (n, D) array or sparse array
        A matrix.
    b : (n,) array
        What its transpose is multiplied by.

    Returns
    -------
    (D,) array
        The sums; not finite where a term is near the end of the range.
    (D,) array
        Bounds of their rounding.

    Examples
    --------
    >>> F = np.array([[1e16], [1.0], [-1e16]])
    >>> product, rounding = transposed_product(F, np.ones(3))
    >>> product, bool(rounding[0] < 1e-12)
    (array([1.]), True)
    """
    if not b.any():  # products with zero are exact
        return np.zeros(F.shape[1]), np.zeros(F.shape[1])
    if is_sparse(F):
        return _sparse(F.tocsc(), b)
    n, width = F.shape
    high, low, left_over = np.zeros(width), np.zeros(width), np.zeros(width)
    step = max(1, min(_ROWS, _BLOCK // max(1, width)))
    for first in range(0, n, step):
        rows = slice(first, first + step)
        terms, errors = _multiplied(np.asarray(F[rows], dtype=np.float64), b[rows, None])
        largest = np.abs(terms).max(axis=0, initial=0.0)
        grid = _grid(largest, len(terms))
        coarse = (terms + grid) - grid
        high, lost = _added(high, coarse.sum(axis=0))
        low += lost + ((terms - coarse).sum(axis=0) + errors.sum(axis=0))
        left_over += np.where(largest > 0, 2 * len(terms) * grid, 0.0) + np.abs(high)
    sums = np.asarray(high + low)
    return sums, _rounding_of(sums, left_over, min(step, n) + n // step + 1, n)


def _sparse(F: Any, b: Array) -> tuple[Array, Array]:
    """Return F'b, and its rounding, for a matrix held by columns: each is one block."""
    sums, left_over = np.zeros(F.shape[1]), np.zeros(F.shape[1])
    counts = np.diff(F.indptr)
    held, most = np.flatnonzero(counts), int(counts.max(initial=0))
    if not len(held):
        return sums, left_over
    starts = F.indptr[held]
    terms, errors = _multiplied(F.data.astype(np.float64), b[F.indices])
    largest = np.maximum.reduceat(np.abs(terms), starts)
    grid = _grid(largest, most)
    left_over[held] = np.where(largest > 0, 2 * counts[held] * grid, 0.0)
    grid = np.repeat(grid, counts[held])
    coarse = (terms + grid) - grid
    left = np.add.reduceat(terms - coarse, starts) + np.add.reduceat(errors, starts)
    sums[held] = np.add.reduceat(coarse, starts) + left
    return sums, _rounding_of(sums, left_over, most, most)


def _rounding_of(sums: Array, left_over: Array, roundings: int, count: int) -> Array:
    """Bound the rounding of split sums; underflow leaves products up to five least numbers off."""
    split = UNIT * np.abs(sums) + gamma(roundings + _MORE) * UNIT * left_over
    return np.asarray(split + 16 * count * _LEAST)


def _multiplied(A: Array, B: Array) -> tuple[Array, Array]:
    """Return A * B rounded, and what rounding took from it, exactly."""
    product = A * B
    upper, over = _HALVES * A, _HALVES * B
    upper, over = upper - (upper - A), over - (over - B)
    lower, under = A - upper, B - over
    return product, ((upper * over - product) + upper * under + lower * over) + lower * under


def _grid(largest: Array, count: int) -> Array:
    """Return powers of two beside which so many terms of that size are rounded to one grid."""
    return np.asarray(np.ldexp(1.0, np.frexp(largest)[1] + int(count).bit_length() + 1))


def _added(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b rounded, and what rounding took from it, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


# --- exact parts ---------------------------------------------------------------------------------
#
# Rows, blocks and sums of K evaluated anew from the points, without the rest of it.

# Entries of K for several programmes: up to here, one product of all that is asked for takes less
# time than one for each of them.
_TOGETHER = 1 << 20
_ROWS_AT_ONCE = 256  # of a given matrix, so that no copy of all of it is made
_ARRAYS_OF_A_BLOCK = 12  # a block by formulas, what it is evaluated from, and its split sums


def in_float32(gram: Gram) -> Gram:
    """Return a Gram of the points evaluated anew in float32, where that is quicker than float64.

    For looking around: what is found is to be confirmed by `exact`.
    """
    if isinstance(gram, CenteredGram):
        return CenteredGram(in_float32(gram.base), gram.weights)
    if isinstance(gram, ScaledGram):
        return ScaledGram(in_float32(gram.base), gram.scale)
    if gram.source is not None:
        return LazyGram(gram.source.in_float32())
    return gram.exact()


class Float64Copy:
    """K in float64, evaluated once, for those who would evaluate its entries several times over.

    Parameters
    ----------
    source : Source
        Kernel and points.
    times : int
        How often what is asked for will be asked for in all: folds of one K.
    """

    def __init__(self, source: Source, times: int) -> None:
        self.source, self.times = source, times
        self.matrix: Array | None = None
        self._lock = threading.Lock()

    def __call__(self, entries: float) -> Array | None:
        """Return K where so many entries, in all, are more work than all of it; else None."""
        if self.times * entries < FLOAT64_COPY * self.source.n**2:
            return None
        with self._lock:
            if self.matrix is None:
                self.matrix = self.source.in_float64().pairs().dense(padded=True)
            return self.matrix


def exact_rows(gram: Gram, rows: Array, coef: Array) -> Array:
    """Return some rows of K b in float64 from the points, without evaluating the others.

    Parameters
    ----------
    gram : Gram
        K.
    rows : (m,) int array
        Which rows.
    coef : (n,) array
        b; its zeros cost nothing.

    Returns
    -------
    (m,) array
        The rows of the product.
    """
    unwrapped, used = gram.unwrapped(), np.flatnonzero(coef)
    shifted = 0.0 if unwrapped.shift is None else unwrapped.shift[rows] * coef[rows]
    if unwrapped.index is None:
        return exact_sums(unwrapped.base, rows, used, coef[used])[:, 0] + shifted
    points, where = np.unique(unwrapped.index[used], return_inverse=True)
    merged = np.bincount(where, coef[used], len(points))
    return exact_sums(unwrapped.base, unwrapped.index[rows], points, merged)[:, 0] + shifted


def exact_rows_of_several(asked: Sequence[tuple[Gram, Array, Array]]) -> list[Array]:
    """Return `exact_rows` for several Grams on one base, by one product where they are few.

    Parameters
    ----------
    asked : sequence of (Gram, (m,) int array, (n,) array)
        As `exact_rows` takes them; Grams share their base.

    Returns
    -------
    list of (m,) arrays
        The rows of each product.
    """
    parts = [gram.unwrapped() for gram, _, _ in asked]
    n, places, sums = parts[0].base.shape[0], [], []
    for part, (_, rows, coef) in zip(parts, asked, strict=True):
        used = np.flatnonzero(coef)
        points = used if part.index is None else part.index[used]
        places.append(rows if part.index is None else part.index[rows])
        sums.append((points, coef[used]))
    left, columns = _Numbered(places, n), _Numbered([points for points, _ in sums], n)
    if len(left.points) * len(columns.points) > _TOGETHER:
        return [exact_rows(*one) for one in asked]
    right = np.zeros((len(columns.points), len(asked)))
    for k, (points, coef) in enumerate(sums):
        # points may be there twice: those above and below a tube add up
        right[:, k] = np.bincount(columns.place[points], coef, len(right))
    found = exact_sums(parts[0].base, left.points, columns.points, right)
    shifted = [
        0.0 if part.shift is None else part.shift[rows] * coef[rows]
        for part, (_, rows, coef) in zip(parts, asked, strict=True)
    ]
    return [found[left.place[place], k] + shifted[k] for k, place in enumerate(places)]


class _Numbered:
    """Points of several lists, each once and in order.

    Parameters
    ----------
    lists : sequence of int arrays
        Points.
    n : int
        How many there are.

    Attributes
    ----------
    points : int array
        Those that are in a list.
    place : (n,) int array
        Where each of them is there.
    """

    def __init__(self, lists: Sequence[Array], n: int) -> None:
        there = np.zeros(n, dtype=bool)
        for points in lists:
            there[points] = True
        self.points = np.flatnonzero(there)
        self.place = np.cumsum(there) - 1


def exact_block(gram: Gram, index: Array) -> Array:
    """Return K between some of its points, a new matrix in float64 from the points.

    Parameters
    ----------
    gram : Gram
        K.
    index : (m,) int array
        Which points.

    Returns
    -------
    (m, m) array
        The block, with the shift on its diagonal.
    """
    unwrapped = gram.unwrapped()
    points = index if unwrapped.index is None else unwrapped.index[index]
    if unwrapped.base.source is not None:
        block = np.array(unwrapped.base.source.in_float64().only(points).pairs().dense())
    else:
        block = np.array(unwrapped.base.exact().rows(points)[:, points], dtype=np.float64)
    if unwrapped.shift is not None:
        block.flat[:: len(block) + 1] += unwrapped.shift[index]
    return block


def reference_sums(gram: Gram, rows: Array, columns: Array, coef: Array) -> Array | None:
    """Return a rectangle of K by the formulas of the reference backend, times coefficients.

    Those take distances from differences of coordinates, without norms that cancel, and the sums
    are split without rounding. So digits that another evaluation loses are not lost here as well.

    Parameters
    ----------
    gram : Gram
        K.
    rows, columns : (m,), (u,) int array
        Which of its rows and columns.
    coef : (u,) array
        What they are multiplied by.

    Returns
    -------
    (m,) array or None
        The products; None where K is not evaluated from numbers by formulas.
    """
    source = gram.source
    if source is None or is_objects(source.X):
        return None
    if any(isinstance(node, Opaque) for node in walk(source.expression)):
        return None
    X, total = to_host(source.X), np.zeros(len(rows))
    at_rows = take(X, rows)
    step = rows_at_once(len(rows), _ROWS_AT_ONCE, arrays=_ARRAYS_OF_A_BLOCK)
    for first in range(0, len(columns), step):
        deadline.check()
        some = slice(first, first + step)
        block = evaluate(source.expression, take(X, columns[some]), at_rows)
        total += transposed_product(block, coef[some])[0]
    return total


def exact_sums(gram: Gram, rows: Array, columns: Array, coef: Array) -> Array:
    """Return a rectangle of K, in float64 from the points, times coefficients.

    Parameters
    ----------
    gram : Gram
        K.
    rows, columns : (m,), (u,) int array
        Which of its rows and columns.
    coef : (u,) or (u, k) array
        What they are multiplied by.

    Returns
    -------
    (m, k) array
        The products.
    """
    coef = columns_of(coef)
    if not len(columns):
        return np.zeros((len(rows), coef.shape[1]))
    if gram.source is not None:
        source = gram.source.in_float64()
        return source.only(columns).cross(take(source.X, rows)) @ coef
    gram, product = gram.exact(), np.empty((len(rows), coef.shape[1]))
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        product[part] = gram.rows(rows[part])[:, columns] @ coef
    return product
