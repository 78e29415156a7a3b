"""The nearest training points in feature space, for each training point or each new one."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.reference.closeness import closeness
from mercer.expression import AbsDist, SqDist, Statistic
from mercer.gram.base import Gram
from mercer.gram.source import CachedGram, DenseGram, LazyGram, Source, mapped_once
from mercer.points import is_sparse, take, to_dense
from mercer.row_chunks import in_pieces

# of the largest number in a comparison: what sums in another order may differ by
ROUNDINGS = 16 * float(np.finfo(np.float64).eps)
_ROUNDINGS_OF_A_SUM = 16  # beside two for each feature, as tiles add up products
_DIGITS = 1e11 * float(np.finfo(np.float64).eps)  # of a larger distance ten digits are left
_AT_ONCE = 4096  # rows whose differences from one row are held together
_LONG = 1e4  # k(z, z) over the largest k(x, x), from where on four digits of distances are lost
_SEARCHED = 4  # arrays of features of new points: they, their bound copy, and float32 guesses
_QUERIES = 256  # new points that are compared with all others at a time


def neighbours(source: Source, count: int, Z: Points | None = None) -> tuple[Array, Array]:
    """Find the nearest training points by |phi(z) - phi(x)|^2 = k(z, z) + k(x, x) - 2 k(z, x).

    Parameters
    ----------
    source : Source
        The kernel and the training points.
    count : int
        How many to find, at least 1.
    Z : Points, optional
        New points; the training points themselves when not given, each without itself.

    Returns
    -------
    index : (m, count) int64 array
        Numbers of training points, nearest first, ties to the smallest number.
    squared : (m, count) float64 array
        Their squared distances.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> source = Source(Gaussian(1.0).expression(), np.array([[0.0], [1.0], [3.0]]))
    >>> neighbours(source, 1)[0].ravel()
    array([1, 0, 1])
    >>> neighbours(source, 2, np.array([[2.5]]))[0]
    array([[2, 1]])
    """
    there = source.n - 1 if Z is None else source.n
    if not 1 <= count <= there:
        raise ValueError(f"{count} neighbours were asked for, but a row can have 1 to {there} here")
    index, squared = _searched(source, count, Z)
    bad = np.flatnonzero((index < 0).any(axis=1))
    if len(bad):
        shown = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
        raise ValueError(
            f"kernel value not finite: {len(bad)} row(s) of X ({shown}) are at no finite distance "
            f"from {count} others. Scale the features, or use a smaller degree."
        )
    if Z is not None and not closeness(source.expression).direct:
        _search_again(source, Z, index, squared)
    return index, squared


def _searched(source: Source, count: int, Z: Points | None) -> tuple[Array, Array]:
    """Search; features of new points are written a few at a time."""
    search = choose_backend().neighbours
    if Z is None:
        return search(source.expression, source.X, None, count)
    bound = mapped_once(source.expression, source.X)
    if not bound.width:
        return search(source.expression, Z, source.X, count)

    def found(rows: Points) -> Array:
        return np.stack(search(bound.expression, bound.of(rows), bound.points, count), axis=1)

    both = in_pieces(found, Z, bound.width, _SEARCHED)
    return both[:, 0].astype(np.int64), np.ascontiguousarray(both[:, 1])


def _search_again(source: Source, Z: Points, index: Array, squared: Array) -> None:
    """Search anew, without k(z, z), for new points beside whose k(z, z) all others lose digits.

    It is the same in all distances of z, and only their differences count.
    """
    lengths = source.diag()
    own = choose_backend().diagonal(source.expression, Z, np.float64)
    longest = float(np.abs(lengths).max(initial=0.0))
    again = np.flatnonzero(own > _LONG * longest)
    for part in np.array_split(again, len(again) // _QUERIES + 1):
        deadline.check()
        far = take(Z, part)
        pairs = choose_backend().pairs(source.expression, far, source.X, np.float64)
        key = lengths - 2.0 * np.asarray(pairs.dense())
        chosen = np.argsort(key, axis=1, kind="stable")[:, : index.shape[1]]
        index[part] = chosen
        squared[part] = np.maximum(np.take_along_axis(key, chosen, axis=1) + own[part, None], 0.0)


def is_exact(source: Source) -> bool:
    """Return whether `neighbours` compares rows by squared differences of their entries.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian, Laplacian
    >>> X = np.zeros((2, 1))
    >>> [is_exact(Source(kernel(1.0).expression(), X)) for kernel in (Gaussian, Laplacian)]
    [True, False]
    """
    order = closeness(source.expression)
    return order.direct and order.key == SqDist()


@singledispatch
def nearness(gram: Gram, points: Array) -> tuple[Array, float]:
    """Return what neighbours are ordered by, in float64, and how much of it may be rounding.

    Parameters
    ----------
    gram : Gram
        K.
    points : (m,) int array
        Some of its points.

    Returns
    -------
    key : (m, n) array
        Rises with the distance from each of these points to all points: the squared distance of
        feature space up to a constant for each row, or a distance of the rows themselves where
        that has the same order and loses no digits.
    rounding : float
        What two keys may differ by, beyond their own last digits, and still be equal: an allowance
        of a few roundings of the longest row, which decides ties, and is no bound.
    """
    lengths = gram.diag()
    key = lengths - 2.0 * np.asarray(gram.rows(points), dtype=np.float64)
    return key, ROUNDINGS * float(np.abs(lengths).max(initial=0.0))


def _compare_again(key: Array, Z: Array, X: Points, kind: type[Statistic]) -> None:
    """Compute distances anew, by differences of entries, that are small beside the rows.

    Tiles compare dense rows around their mean, which a single one far away takes from the others,
    and sparse ones by products: both are rounded in the size of the rows.
    """
    power = 2.0 if kind is SqDist else 1.0
    Z = np.asarray(Z, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.abs(Z if is_sparse(X) else Z - X.mean(axis=0)) ** power
        doubtful = _DIGITS * (2 * X.shape[1] + _ROUNDINGS_OF_A_SUM) * far.sum(axis=1)
        for row, at in enumerate(Z):
            deadline.check()
            # (rows that are farther from the mean are not near this one by rounding alone)
            again = np.flatnonzero(~(key[row] > doubtful[row]))
            for part in np.array_split(again, len(again) // _AT_ONCE + 1):
                apart = np.abs(to_dense(take(X, part)).astype(np.float64) - at)
                key[row, part] = (apart**power).sum(axis=1)


@nearness.register(DenseGram)
@nearness.register(CachedGram)
@nearness.register(LazyGram)
def _(gram: DenseGram | CachedGram | LazyGram, points: Array) -> tuple[Array, float]:
    source = gram.source
    order = closeness(source.expression)
    pairs = choose_backend().pairs(order.key, take(source.X, points), source.X, np.float64)
    key = np.array(pairs.rows(slice(0, len(points))))
    if order.direct and isinstance(order.key, SqDist | AbsDist) and not order.key.steps:
        _compare_again(key, to_dense(take(source.X, points)), source.X, type(order.key))
    largest = float(np.abs(source.diag()).max(initial=0.0))
    return key, 0.0 if order.direct else ROUNDINGS * largest
