"""How PCA has K held: by what is wanted of it, and by whose features are at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.gram import Gram, Need, make_gram
from mercer.gram.policy import FLOAT32_TOL_COMPONENTS, FREE_ROWS
from mercer.gram.sizes import stored_dtype
from mercer.kernels import Linear, Precomputed
from mercer.machines.projection.components import Centred, moments, shifted
from mercer.machines.projection.subspace import HEAVY
from mercer.machines.projection.uncentred import Uncentred
from mercer.points import is_objects, is_sparse, to_dense
from mercer.resources import within_budget

_FEWER = "a number of components (n_components=10: a few products, never stores the matrix)"
_TINY = 1e-20  # entries of X: above, no kernel of use underflows
_NO_DIGITS = 1e-290  # kernel values: below, the smaller variances are lost
_FAR = 1e4  # variances of a row: a squared mean above costs digits of K
_ALL = 8  # matrices held for all components: K, its decomposition, coefficients and scores
_FEW = 10  # rows for each component: fewer, and all pairs are found at once


def centred_rows(machine: Any, X: Points, used: Points, rows: Array, weights: Array) -> Centred:
    """Put the question of PCA.

    Parameters
    ----------
    machine : PCA
        With `kernel_` resolved.
    X : Points
        All rows, or the precomputed matrix.
    used : Points
        The rows of positive weight.
    rows : (m,) int array
        Which these are.
    weights : (m,) array
        Their weights.
    """
    linear = isinstance(machine.kernel_, Linear) and not is_objects(used)
    if linear and is_sparse(used):
        near, mean = _nearer(_thin(machine, used), weights)
        gram = _gram(machine, near, None)
        return Centred(gram, weights, _size(gram, weights) + float(weights.sum() * (mean @ mean)))
    if linear and used.shape[1] >= len(weights):  # centred first: a far origin costs nothing then
        near, mean = shifted(used, weights)
        gram = _gram(machine, near, None)
        size = _size(gram, weights) + float(weights.sum() * (mean @ mean))
        return Centred(gram, weights, size)
    if isinstance(machine.kernel_, Precomputed):
        gram = _gram(machine, X.astype(np.float64, copy=False), rows)
        known = float(np.finfo(X.dtype).eps)
        return Centred(gram, weights, _size(gram, weights), known)
    gram = _gram(machine, used, None)
    return Centred(gram, weights, _size(gram, weights))


def uncentred_rows(machine: Any, X: Points, used: Points, rows: Array, weights: Array) -> Uncentred:
    """Put the question of PCA without centring; see `centred_rows`."""
    if isinstance(machine.kernel_, Precomputed):
        gram = _gram(machine, X.astype(np.float64, copy=False), rows)
        return Uncentred(gram, weights, _size(gram, weights), float(np.finfo(X.dtype).eps))
    thin = isinstance(machine.kernel_, Linear) and is_sparse(used)
    gram = _gram(machine, _thin(machine, used) if thin else used, None)
    return Uncentred(gram, weights, _size(gram, weights))


def _size(gram: Gram, weights: Array) -> float:
    return float(weights @ np.abs(gram.diag()))


def _nearer(X: Points, weights: Array) -> tuple[Points, Array]:
    """Return sparse rows, and what was taken off: the mean of the few columns that lie far away."""
    if not is_sparse(X):
        return X, np.zeros(1)
    mean, spread = moments(X.astype(np.float64, copy=False), weights)
    if not np.isfinite(spread) or spread == 0:
        return X, np.zeros(1)
    far = np.flatnonzero(np.square(mean) > _FAR * spread / weights.sum())
    if not 0 < len(far) <= HEAVY:
        return X, np.zeros(1)
    rest = np.ones(X.shape[1])
    rest[far] = 0.0
    columns = sparse.csr_array(X[:, far].toarray() - mean[far])
    place = (np.ones(len(far)), (np.arange(len(far)), far))
    filled = columns @ sparse.csr_array(place, shape=(len(far), X.shape[1]))
    return type(X)(X @ sparse.diags_array(rest, format="csr") + filled), mean[far]


def _thin(machine: Any, X: Points) -> Points:
    """Return sparse rows as they are, unless all components are wanted and dense rows fit."""
    many = not isinstance(machine.n_components, int | np.integer)
    n, d = X.shape
    return to_dense(X) if many and d < n and within_budget(32 * n * d) else X


def _gram(machine: Any, X: Points, rows: Array | None) -> Gram:
    gram = _held(machine, X, rows)
    if rows is None and not is_objects(X):
        _refuse_underflow(machine, X, gram)
    return gram


def _refuse_underflow(machine: Any, X: Points, gram: Gram) -> None:
    """Raise where kernel values are so small that variances have no digits left."""
    largest = float(np.abs(X.data if is_sparse(X) else X).max(initial=0.0))
    if 0 < largest < _TINY and float(np.abs(gram.diag()).max(initial=0.0)) < _NO_DIGITS:
        raise ValueError(
            f"{type(machine).__name__}: {machine.kernel_!r} underflows on rows of X as small as "
            f"{largest:.0e}: variances would have no digits. Scale the features, e.g. multiply X "
            f"by {2.0 ** min(round(-np.log2(largest)), 1000):.0e}."
        )


def _held(machine: Any, X: Points, rows: Array | None) -> Gram:
    n, n_components = X.shape[0], machine.n_components
    options: dict[str, Any] = {"rows": rows, "names": machine._column_names()}
    if n_components is None and n > FREE_ROWS:  # all pairs: the matrix, and room for its vectors
        return make_gram(machine.kernel_, X, Need.MATRIX, copies=_ALL, remedy=_FEWER, **options)
    few = isinstance(n_components, int | np.integer) and _FEW * int(n_components) <= n
    single = few and machine.tol >= FLOAT32_TOL_COMPONENTS and machine.solver is None
    dtype = stored_dtype(n, lambda: single)
    return make_gram(machine.kernel_, X, Need.PASSES, dtype=dtype, **options)
