"""Whether K is held as F F': decided by the number of its kernel's features and the need."""

from __future__ import annotations

from mercer.array_types import Points
from mercer.backends import choose_backend
from mercer.expression import Dot, Expression, Mapped
from mercer.gram.policy import (
    NARROW,
    NARROW_ROWS,
    NONZERO_COST,
    ROWS_PER_FEATURE,
    SQUARED,
    WRITTEN_OUT,
)
from mercer.gram.storage.factored import FactoredGram
from mercer.gram.storage.row_map import RowMap
from mercer.gram.storage.streamed import StreamedGram
from mercer.kernels.features import FeatureMap, feature_map, sequence_map
from mercer.points import is_objects, is_sparse, row_count, take
from mercer.resources import (
    within_budget,
)


def _map_of(expression: Expression, X: Points) -> FeatureMap | None:
    return sequence_map(expression) if is_objects(X) else feature_map(expression, X.shape[1])


def factored(expression: Expression, X: Points) -> FactoredGram | None:
    """Decide for products with vectors: fewer features than points, which fit the budget."""
    n, features = row_count(X), _map_of(expression, X)
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
    n, features = row_count(X), _map_of(expression, X)
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
