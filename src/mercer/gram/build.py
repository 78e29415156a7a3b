"""Choice of how K is stored (features, dense, cached rows, lazy), and checks of kernel values."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.box_programs import Form
from mercer.backends.operands import operand
from mercer.deadline import check
from mercer.expression import Dot, Expression, Mapped, bind_columns
from mercer.gram.base import Gram
from mercer.gram.evaluated import CachedGram, DenseGram, LazyGram, Source
from mercer.gram.factored import FactoredGram, FeatureFunction, RowMap, StreamedGram
from mercer.gram.policy import (
    FLOAT32_RANGE,
    FLOAT64_ROWS,
    LARGEST_STORED,
    MILD,
    NARROW,
    NARROW_ROWS,
    NONZERO_COST,
    PART_OF_ROWS,
    ROWS_PER_FEATURE,
    SQUARED,
    STIFF,
    STORED_UNSEEN,
    WRITTEN_OUT,
    box_bytes,
    dense_bytes,
    panel_bytes,
)
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.sparse import SparseGram
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.algebra import is_proven
from mercer.kernels.features import FeatureMap, feature_map, feature_map_of
from mercer.resources import (
    MemoryBudgetError,
    format_bytes,
    memory_budget,
    require_memory,
    within_budget,
)
from mercer.rows.chunks import gathered
from mercer.rows.points import is_objects, is_sparse, row_count, take

# --- build ---------------------------------------------------------------------------------------
#
# How K is held: decided here and nowhere else, by what is asked, the budget, and `policy`.

_PRODUCTS = (
    "a solver that only asks for products (solver=ConjugateGradient(), never stores the matrix)"
)


class Need(Enum):
    """What the coming work asks of K."""

    MATRIX = "the whole matrix, to factor it"
    ROWS = "single rows, again and again"
    PRODUCTS = "products with vectors; the whole matrix if it fits"
    PASSES = "a dozen products with blocks of vectors, in float32 if float64 does not fit"
    BOX = "box programmes of support vector machines"
    SAMPLE = "a few of its rows, each once"


def make_gram(
    kernel: Kernel,
    X: Points,
    need: Need,
    *,
    rows: Array | None = None,
    names: list[str] | None = None,
    dtype: Any = np.float64,
    copies: int = 1,
    cost: float = 0.0,
    form: Form | None = None,
    remedy: str = _PRODUCTS,
    numbers: Array | None = None,
) -> Gram:
    """Choose how the Gram matrix of `kernel` on `X` is held.

    Parameters
    ----------
    kernel : Kernel
        What similarity is.
    X : Points
        The training points; for `Precomputed()` the matrix itself.
    need : Need
        What will be asked.
    rows : (m,) int array, optional
        Train on these rows of X only.
    names : list of str, optional
        Names of the columns of X, for kernels that speak of columns by name.
    dtype : numpy dtype
        Type of stored entries.
    copies : int
        How many matrices of this size the coming work holds at once (a factorisation: two); for
        box programmes, how many variables each row has.
    cost : float
        For box programmes: the largest bound of a coefficient.
    form : Form, optional
        What box programmes will be like, where that is known.
    remedy : str
        What a refusal names first, of the choices that the machine has.
    numbers : (n,) int array, optional
        What refusals call the rows of X, where these were taken from a larger table.

    Returns
    -------
    Gram
        Factored when the kernel has fewer features than there are points; dense when that fits
        the budget; else cached rows or lazy products, or a refusal where only the whole matrix
        would do.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian, Linear
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> type(make_gram(Linear(), X, Need.PRODUCTS)).__name__
    'FactoredGram'
    >>> type(make_gram(Gaussian(2.0), X, Need.PRODUCTS)).__name__
    'DenseGram'
    """
    check()
    if isinstance(kernel, Precomputed):
        needed = dense_bytes(row_count(X)) * (2 + copies)
        require_memory(needed, "work with a precomputed matrix", "Use fewer rows.")
        return PrecomputedGram(X, rows)
    X = X if rows is None else gathered(X, rows)
    gram = _choose(kernel, X, need, names, np.dtype(dtype), copies, cost, form, remedy)
    refuse_overflow(gram, kernel, numbers if rows is None else rows)
    return gram


def matrix_gram(K: Any, rows: Array | None = None) -> Gram:
    """Return the Gram of a given matrix, dense or sparse, or of some of its rows if it is dense."""
    return SparseGram(K) if rows is None and is_sparse(K) else PrecomputedGram(K, rows)


def evaluated_gram(source: Source, K: Array) -> Gram:
    """Return the Gram of a kernel on points where its matrix has been evaluated already."""
    return DenseGram(source, K)


def is_kept(source: Source, beside: float = 0.0) -> bool:
    """Return whether the matrix is soon made, and has room, where a backend works off the host.

    Parameters
    ----------
    source : Source
        Kernel and points.
    beside : float
        Bytes that are to have room there, too.
    """
    return choose_backend().keeps(beside + dense_bytes(source.n, source.dtype))


def descends_beside_others(source: Source, variables: int) -> bool:
    """Return whether programmes of so many variables on several such matrices run side by side."""
    return choose_backend().descends_on_several(variables, source.dtype)


def stored_gram(source: Source) -> Gram:
    """Return the Gram of a kernel on points, whose matrix is evaluated where a backend keeps it."""
    return DenseGram(source)


def feature_gram(features: FeatureFunction, X: Points) -> Gram:
    """Return K = F F' for a feature map, however many features that has."""
    return FactoredGram(features, X)


def factor_gram(features: FeatureFunction, factor: Any) -> Gram:
    """Return K = F F' where F, what the feature map makes of the points, is known already."""
    return FactoredGram.of(features, factor)


def _choose(
    kernel: Kernel,
    X: Points,
    need: Need,
    names: list[str] | None,
    dtype: Any,
    copies: int,
    cost: float,
    form: Form | None,
    remedy: str,
) -> Gram:
    expression = bind_columns(kernel.expression(), names)
    if need is Need.BOX and _is_stiff(expression, X, cost):
        need, copies = Need.PRODUCTS, 1
    n = row_count(X)
    needed = dense_bytes(n, dtype) * copies
    if need is Need.BOX:
        needed = box_bytes(n, copies * n, dtype)
    elif copies > 1:
        needed += panel_bytes(n)
    kept = need is Need.BOX and choose_backend().keeps(dense_bytes(n, dtype))
    fits = within_budget(needed) and not (need is Need.BOX and n > LARGEST_STORED)
    shared = fits and _share_matrix(form, expression, X, cost)
    factored = None if shared else _by_features(expression, X, need, fits)
    if factored is not None:
        return factored
    source = Source(expression, X, dtype, is_proven(kernel))
    source = source if dtype == np.float64 else source.in_float32()
    if need is Need.PASSES:
        return _for_passes(source, copies)
    if need is Need.SAMPLE:
        return LazyGram(source)
    if kept or (fits and not (need is Need.BOX and _looks_first(source))):
        return _stored_for(form, source)
    if need is Need.ROWS:
        return CachedGram(source, memory_budget() // 2)
    if need is Need.PRODUCTS or need is Need.BOX:
        return LazyGram(source)
    raise MemoryBudgetError(_refusal(source.n, needed, memory_budget(), remedy))


def _stored_for(form: Form | None, source: Source) -> DenseGram:
    """Store K, while what programmes need is made ready."""
    if form is not None and source.dtype == np.float32:
        choose_backend().expect_boxes(form)
    return DenseGram(source)


def _looks_first(source: Source) -> bool:
    """Return whether a solver of box programmes finds out how many rows matter before K is stored.

    Not where an entry of K is dear, nor where all of them are to be looked at.
    """
    dense = not is_objects(source.X) and not is_sparse(source.X)
    return source.n > STORED_UNSEEN and source.valid and dense


def _by_features(expression: Expression, X: Points, need: Need, fits: bool) -> FactoredGram | None:
    if need is Need.BOX:
        return factored_rows(expression, X, fits)
    if need is Need.PASSES and is_sparse(X):
        return factored_sparse(expression, X)
    return None if need is Need.ROWS else factored(expression, X)


def _is_stiff(expression: Expression, X: Points, cost: float) -> bool:
    """Return whether features, where there are any, are better than pair steps that crawl.

    Those crawl where one coefficient at its bound moves f by thousands.
    """
    if row_count(X) > FLOAT64_ROWS or is_objects(X):
        return False
    if feature_map(expression, X.shape[1]) is None:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(not cost * Source(expression, X).diag().max(initial=0.0) < STIFF)


def _share_matrix(form: Form | None, expression: Expression, X: Points, cost: float) -> bool:
    """Return whether programmes share K, each on few of the rows, and need few pair steps.

    An interior point method squares the features of each programme anew.
    """
    if form is None or form.sums > 1 or form.largest > PART_OF_ROWS * row_count(X):
        return False
    if feature_map_of(expression, X) is None:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(cost * Source(expression, X).diag().max(initial=0.0) < MILD)


def _for_passes(source: Source, copies: int) -> Gram:
    """Store K as asked, or else in float32, or not at all: a dozen evaluations are soon done.

    Solvers go on in float64, from the points, where float32 is not enough.
    """
    size = float(np.abs(source.diag()).max(initial=0.0))
    single = np.dtype(np.float32)
    in_range = FLOAT32_RANGE[0] < size < FLOAT32_RANGE[1] and source.fits_float32()
    kinds = {source.dtype, single} if in_range else {np.dtype(np.float64)}
    preferred = source.dtype if source.dtype in kinds else np.dtype(np.float64)
    for dtype in sorted(kinds, key=lambda kind: kind != preferred):
        if within_budget(dense_bytes(source.n, dtype) * copies):
            return DenseGram(replace(source, dtype=dtype))
    return LazyGram(replace(source, dtype=single if single in kinds else preferred))


def _refusal(n: int, needed: int, budget: int, remedy: str) -> str:
    return (
        f"exact work with the whole Gram matrix of {n} points needs {format_bytes(needed)}, but "
        f"the memory budget is {format_bytes(budget)}. Alternatives: {remedy}; landmarks "
        "in place of the kernel (approximation=Nystrom(1000), of mercer.approximation); a kernel "
        "with a small explicit feature map (Linear, low-degree Polynomial); fewer rows; or a "
        "larger budget with mercer.config(memory=...)."
    )


# --- by features ---------------------------------------------------------------------------------
#
# Whether K is held as F F': decided by the number of its kernel's features and the need.


def factored(expression: Expression, X: Points) -> FactoredGram | None:
    """Decide for products with vectors: fewer features than points, which fit the budget."""
    n, features = row_count(X), feature_map_of(expression, X)
    if features is None or features.dimension >= n:
        return None
    rows = _row_map(expression)
    # centred, weighted, rotated, and as is
    fits = within_budget(4 * n * features.dimension * 8)
    if rows is not None and (n * features.dimension > WRITTEN_OUT or not fits):
        return StreamedGram(features, rows, X)  # which refuses to write out what does not fit
    return FactoredGram(features, X) if fits else None


def _row_map(expression: Expression) -> RowMap | None:
    """Return the feature map that an approximation found, where the kernel is nothing else."""
    steps = expression.steps if isinstance(expression, Dot) else ()
    found = steps[0].function if len(steps) == 1 and isinstance(steps[0], Mapped) else None
    return found if isinstance(found, RowMap) else None


def _stays_sparse(features: FeatureMap, X: Points) -> bool:
    """Return whether features of sparse rows are sparse: the map itself tells, by those of a row.

    Maps of so many features that a row of them is large are products, which are not.
    """
    if row_count(X) == 0 or features.dimension > WRITTEN_OUT:
        return False
    return is_sparse(features(take(X, slice(0, 1))))


def factored_sparse(expression: Expression, X: Points) -> FactoredGram | None:
    """Decide for products with sparse rows: F (F'V) costs nonzeros of F, K V entries of K."""
    n, features = row_count(X), feature_map(expression, X.shape[1])
    if features is None or not _stays_sparse(features, X):
        return factored(expression, X)
    nonzeros = X.nnz * features.dimension / max(1, X.shape[1])
    if NONZERO_COST * nonzeros > float(n) * n or not within_budget(48 * nonzeros):
        return factored(expression, X)
    return FactoredGram(features, X)


def factored_rows(expression: Expression, X: Points, fits: bool) -> FactoredGram | None:
    """Decide for solvers that walk over rows of features, and square them when they are few.

    With F'F small, an interior point method beats descents on K, the more the larger C; with many
    columns only sparse rows are cheap enough to walk, and only where K could not be stored.
    """
    n, features = row_count(X), feature_map_of(expression, X)
    if features is None:
        return None
    few = features.dimension <= SQUARED and ROWS_PER_FEATURE * features.dimension <= n
    if fits and not (few and features.dimension <= NARROW and n >= NARROW_ROWS):
        return None
    sparse = is_sparse(X) and _stays_sparse(features, X)
    size = 24 * X.nnz if sparse else 10 * n * features.dimension  # and rows that are copied
    if not within_budget(size) or not (few or sparse or features.dimension <= SQUARED):
        return None
    if _row_map(expression) is not None:  # which may make them on a card
        X = choose_backend().placed(X, n * features.dimension)
    return FactoredGram(features, X)


# --- kernel values -------------------------------------------------------------------------------
#
# Kernel values must be finite numbers whose products are, too: this is checked before a solver
# meets them.

# kernel values beyond have squares that are no normal numbers: solvers multiply two of them
_RANGE = 1e-150, 1e150
_NORMAL = 1e-280  # below, squares of differences a thousandth as long lose digits
_FAR = 1e15  # entries of X: below, squared distances are far from the range's end in float32, too


def refuse_overflow(gram: Gram, kernel: Kernel, rows: Array | None = None) -> None:
    """Raise if the kernel overflows on the training points.

    A valid kernel has |k(x, y)|^2 <= k(x, x) k(y, y), so a finite diagonal vouches for the whole
    matrix, unless rows are so large that distances overflow; a kernel that is not known to be valid
    is looked at entry by entry where it is stored.
    """
    own = gram.longest() if isinstance(gram, FactoredGram) else gram.diag()
    bad = np.flatnonzero(~np.isfinite(own))
    if not len(bad):
        bad = _too_far(gram)
    if not len(bad) and not gram.valid and isinstance(gram, DenseGram):
        bad = np.flatnonzero(~np.isfinite(gram.dense()).all(axis=1))
    if len(bad):
        numbers = bad if rows is None else rows[bad]
        shown = ", ".join(map(str, numbers[:5])) + (", ..." if len(bad) > 5 else "")
        raise ValueError(
            f"kernel value not finite: {kernel!r} overflows on {len(bad)} row(s) of X ({shown}). "
            "Scale the features, or use a smaller degree."
        )


def refuse_overflow_of(source: Source, kernel: Kernel, rows: Array | None = None) -> None:
    """Raise if the kernel overflows on points of which no matrix is held."""
    refuse_overflow(LazyGram(source), kernel, rows)


def _too_far(gram: Gram) -> Array:
    """Return the row of the largest entry of X if its distances to others make no kernel values."""
    X: Any = gram.source.X if isinstance(gram, DenseGram | CachedGram | LazyGram) else None
    if X is None or is_objects(X) or X.dtype.kind != "f" or not 0 < X.shape[0] * X.shape[1]:
        return np.zeros(0, dtype=int)
    if not is_sparse(X) and not max(float(X.max()), -float(X.min())) > _FAR:
        return np.zeros(0, dtype=int)
    sizes = abs(X).max(axis=1)
    sizes = sizes.toarray().ravel() if is_sparse(sizes) else np.asarray(sizes)
    row = int(sizes.argmax())
    if not sizes[row] > _FAR:
        return np.zeros(0, dtype=int)
    far = np.asarray(gram.rows(np.array([row])))
    return np.zeros(0, dtype=int) if np.isfinite(far).all() else np.array([row])


def _underflows(gram: Gram) -> bool:
    """Return whether products of rows that are not zero are."""
    source = gram.source
    rows: Any = gram.at_hand
    if source is not None and isinstance(source.expression, Dot) and not is_objects(source.X):
        rows = operand(source.expression, source.X)
    return rows is not None and rows.shape[0] > 0 and bool(abs(rows).max() > 0)


def refuse_underflow(owner: str, gram: Gram, kernel: Kernel, rows: Array | None = None) -> None:
    """Raise if squared lengths of rows that are not zero have no digits, or too few.

    Parameters
    ----------
    owner : str
        The name of the machine.
    gram : Gram
        On the training points.
    kernel : Kernel
        Whose values they are.
    rows : (n,) int array, optional
        Numbers of the rows, if they are not all.
    """
    own = np.abs(gram.diag())
    if not len(own) or own.max() > _NORMAL or not _underflows(gram):
        return
    row = int(own.argmax()) if rows is None else int(rows[own.argmax()])
    raise ValueError(
        f"{owner}: values of {kernel!r} are at most {own.max():.0e} (row {row} of X): they "
        "underflow. Scale the features, e.g. with sklearn.preprocessing.StandardScaler."
    )


def refuse_extremes(
    owner: str, gram: Gram, kernel: Kernel, rows: Array | None = None, *, small: bool = False
) -> Gram:
    """Return the Gram back if products of two kernel values are numbers that have all their digits.

    Parameters
    ----------
    owner : str
        The name of the machine, for errors.
    gram : Gram
        On the training points.
    kernel : Kernel
        Whose values they are.
    rows : (n,) int array, optional
        Numbers of the rows, if they are not all.
    small : bool
        Whether values that are all tiny are refused, too: for machines whose answer does not
        depend on the scale, and for which zero is no answer.
    """
    own = np.abs(gram.diag())
    if isinstance(gram, PrecomputedGram):  # which need not be largest on its diagonal
        own = np.maximum(gram.dense().max(axis=1), -gram.dense().min(axis=1)).astype(np.float64)
    largest = float(own.max(initial=0.0))
    if largest == 0.0 and _underflows(gram):
        largest = float(np.finfo(np.float64).tiny)
    if largest <= _RANGE[1] and not (small and 0.0 < largest < _RANGE[0]):
        return gram
    row = int(own.argmax()) if rows is None else int(rows[own.argmax()])
    raise ValueError(
        f"{owner}: kernel values of {kernel!r} are as {'large' if largest > 1 else 'small'} as "
        f"{largest:.0e} (row {row} of X): products of two leave the range of float64. "
        "Scale the features, e.g. with sklearn.preprocessing.StandardScaler, or the kernel."
    )
