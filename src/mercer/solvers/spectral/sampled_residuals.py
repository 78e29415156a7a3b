"""True residuals of eigenpairs, from a few rows of K in float64.

How far products with a K in float32 are off depends on who makes them: tensor cores, and sums over
many columns, round differently from a processor. A few rows of the exact product tell it for the
price of these rows.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.gram import CenteredGram, Gram, ScaledGram, exact
from mercer.points import take
from mercer.resources import rows_at_once

ROWS = 256  # of K: lengths are off by a twentieth where rounding is spread evenly over rows
_ARRAYS = 2  # of a block of rows: itself, and in float64


def sampled_residuals(gram: Gram, values: Array, vectors: Array, seed: int) -> Array:
    """Estimate |K v - m v| of every pair from some rows of K, evaluated anew in float64.

    Parameters
    ----------
    gram : Gram
        K, in any precision.
    values : (k,) array
        The eigenvalues m.
    vectors : (n, k) array
        The eigenvectors v.
    seed : int
        Of the choice of rows.

    Returns
    -------
    (k,) array
        Root mean squares over the rows chosen, times sqrt(n).

    Examples
    --------
    >>> from mercer.gram.build import matrix_gram
    >>> K = np.diag(np.arange(1.0, 1001.0))
    >>> v = np.eye(1000)[:, -1:] + 1e-3
    >>> exact_one = np.linalg.norm(K @ v - 1000.0 * v)
    >>> found = sampled_residuals(matrix_gram(K), np.array([1000.0]), v, 0)
    >>> bool(abs(found[0] / exact_one - 1) < 0.1)
    True
    """
    n = len(vectors)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:ROWS])
    product, means = _at_rows(gram, vectors, chosen)
    left = product - vectors[chosen] * values
    # a mean over all rows is not known, but it is the same number for all of them
    for ones in means.T:
        left = left - np.outer(ones, ones @ left) / max(float(ones @ ones), np.finfo(float).tiny)
    return np.asarray(np.sqrt(n / max(1, len(chosen))) * np.linalg.norm(left, axis=0))


def _at_rows(gram: Gram, V: Array, chosen: Array) -> tuple[Array, Array]:
    """Return rows of K V but for multiples of some columns, and these columns."""
    if isinstance(gram, ScaledGram):
        product, means = _at_rows(gram.base, gram.scale[:, None] * V, chosen)
        scale = gram.scale[chosen, None]
        return scale * product, scale * means
    if isinstance(gram, CenteredGram):
        shifted = V - gram.weights[:, None] * V.sum(axis=0)
        product, means = _at_rows(gram.base, shifted, chosen)
        return product, np.hstack([means, np.ones((len(chosen), 1))])
    return _evaluated(gram, V, chosen), np.zeros((len(chosen), 0))


def _evaluated(gram: Gram, V: Array, chosen: Array) -> Array:
    if gram.source is not None:
        source = gram.source.in_float64()
        return np.asarray(source.cross(take(source.X, chosen)) @ V)
    precise, product = exact(gram), np.empty((len(chosen), V.shape[1]))
    step = rows_at_once(len(V), len(chosen), arrays=_ARRAYS)
    for first in range(0, len(chosen), step):
        some = slice(first, first + step)
        product[some] = precise.rows(chosen[some]).astype(np.float64, copy=False) @ V
    return product
