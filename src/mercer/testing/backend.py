"""Conformance kit for backends: whatever the machine, the numbers are those of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.contract import RowParts
from mercer.backends.reference.backend import Reference
from mercer.expression import Dot, Exp, Expression, SqDist
from mercer.points import row_count, take
from mercer.resources import config
from mercer.testing.box_paths import check_box_paths
from mercer.testing.boxes import check_box_programmes
from mercer.testing.expressions import expressions, statistics
from mercer.testing.factorisations import check_factorisations
from mercer.testing.judge import Judge
from mercer.testing.neighbours import check_neighbours
from mercer.testing.partition import check_partitions

# largest difference allowed, relative to the largest entry of the matrix
_TOLERANCE = {np.dtype(np.float32): 3e-6, np.dtype(np.float64): 1e-13}
# rows around the edges of blocks that implementations like to use
_SIZES = (0, 1, 7, 191, 192, 193, 400)
_COLUMNS = (1, 3, 5, 16, 50)  # of what is multiplied
_FEATURES = 12  # of rows that check single nodes


def check_backend(name: str) -> dict[str, float]:
    """Compare a backend with the reference over all nodes, kinds of rows, sizes and verbs.

    Parameters
    ----------
    name : str
        As in `mercer.config(backend=...)`.

    Returns
    -------
    dict
        For each verb the worst error that was met, over the largest that is allowed.

    Raises
    ------
    AssertionError
        If one is above what is allowed, with the verb and the expression.

    Examples
    --------
    >>> check_backend("reference")  # doctest: +SKIP
    """
    with config(backend=name):
        backend = choose_backend()
    assert backend.name == name
    judge = Judge(backend)
    for _, check in backend_checks(judge):
        check()
        judge.refuse()
    return judge.shares()


def backend_checks(
    judge: Judge, columns: Sequence[int] = _COLUMNS
) -> list[tuple[str, Callable[[], None]]]:
    """Return all checks with their names; each may run alone, and in a process of its own.

    Parameters
    ----------
    judge : Judge
        Holds the backend, and keeps the worst errors.
    columns : sequence of int
        What nodes are multiplied by, beside a vector: for some backends each width is a program of
        its own, which takes a second to compile.
    """
    nodes = [(f"node {e}", partial(_check_node, judge, e, columns)) for e in expressions(_FEATURES)]
    verbs = (
        check_factorisations,
        check_box_programmes,
        check_neighbours,
        check_box_paths,
        check_partitions,
    )
    return [
        *nodes,
        ("kinds of rows", partial(_check_kinds_of_rows, judge)),
        ("sizes", partial(_check_sizes, judge)),
        ("hard distances", partial(_check_hard_distances, judge)),
        ("stored products", partial(_check_symmetric_products, judge)),
        *((verb.__name__, partial(verb, judge.backend)) for verb in verbs),
    ]


# --- checks of kernel matrices ------------------------------------------------------------------


def _check_node(judge: Judge, expression: Expression, columns: Sequence[int]) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.random((61, _FEATURES)), rng.random((215, _FEATURES))
    X[3] = 0.0
    for dtype in _TOLERANCE:
        _check_pairs(judge, expression, X, None, dtype, columns=columns)
        _check_pairs(judge, expression, X, Y, dtype, columns=columns)
        _check_pairs(judge, expression, _sparse(X), _sparse(Y), dtype, columns=columns)


def _check_kinds_of_rows(judge: Judge) -> None:
    """Dense, CSR of low and high density, one of each, float32 and float64, read-only, strided."""
    rng = np.random.default_rng(1)
    for features, density in ((400, 0.02), (20, 0.5), (30, 0.0)):
        X = _random_sparse(rng, 130, features, density)
        Y = _random_sparse(rng, 210, features, density)
        for expression in (*statistics(), Exp(-0.1 * SqDist())):
            _check_pairs(judge, expression, X, None, np.float64)
            _check_pairs(judge, expression, X, Y, np.float32)
            _check_pairs(judge, expression, X.toarray(), Y, np.float64)
            _check_pairs(judge, expression, X.astype(np.float32), Y.toarray(), np.float64)
    rows = rng.random((40, 9))
    rows.flags.writeable = False
    before = rows.copy()
    for points in (rows, rows[::2, ::-1], rows.astype(np.float32), np.asfortranarray(rows)):
        for dtype in _TOLERANCE:
            _check_pairs(judge, Exp(-1.0 * SqDist()), points, None, dtype)
    np.testing.assert_array_equal(rows, before)


def _check_sizes(judge: Judge) -> None:
    rng = np.random.default_rng(2)
    for features in (1, 8, 33, 300):
        rows = rng.standard_normal((max(_SIZES), features))
        expression = Exp((-0.5 / features) * SqDist()) + 0.1 * Dot()
        for n in _SIZES if features == 33 else (1, 193):
            _check_pairs(judge, expression, rows[:n], None, np.float32)
            for m in _SIZES if features == 33 else (7, 200):
                _check_pairs(judge, expression, rows[:n], rows[::-1][:m], np.float64)
    wide = rng.standard_normal((9, 5000))
    _check_pairs(judge, Exp(-1e-4 * SqDist()) + 1e-3 * Dot(), wide, wide[:5] + 0.1, np.float32)


def _check_hard_distances(judge: Judge) -> None:
    """Near duplicates, far clusters, a large common offset: where |x|^2 + |y|^2 - 2xy fails."""
    rng = np.random.default_rng(3)
    near = np.repeat(rng.standard_normal((20, 30)), 5, axis=0)
    near[1::5] += 1e-7 * rng.standard_normal((20, 30))
    far = rng.standard_normal((100, 30)) + 1e3 * rng.integers(0, 2, 100)[:, None]
    offset = rng.standard_normal((100, 30)) + 1e8
    kernel = Exp(-0.02 * SqDist())
    for rows in (near, far, offset):
        for points in (rows, rows[:, :3].copy()):
            K = judge.backend.pairs(kernel, points, None, np.float64).dense()
            assert (np.diagonal(K) == 1.0).all()
            # rows of 1e8 are spaced 1.5e-8 apart: their distances are no better than that
            _check_pairs(judge, kernel, points, None, np.float64, slack=100.0)
    # float32 rounds rows of 1e3 to 6e-5, so only the rows around their own centre are exact
    for rows in (near, offset):
        _check_pairs(judge, kernel, rows, None, np.float32)
    twice = judge.backend.pairs(kernel, near, near.copy(), np.float32).dense()
    assert (np.diagonal(twice) == 1.0).all()


# --- comparing -------------------------------------------------------------------------------


def _check_pairs(
    judge: Judge,
    expression: Expression,
    X: Points,
    Y: Points | None,
    dtype: Any,
    slack: float = 1.0,
    columns: Sequence[int] = _COLUMNS,
) -> None:
    """Compare all verbs of bound pairs with the matrix of the reference."""
    backend, kind = judge.backend, np.dtype(dtype)
    label = f"{backend.name}: {expression}, {type(X).__name__} {X.shape}, {kind}"
    pairs = backend.pairs(expression, X, Y, dtype)
    K = Reference().pairs(expression, X, Y, np.float64).dense()
    atol = slack * _TOLERANCE[np.dtype(dtype)] * max(1.0, float(np.abs(K).max(initial=0.0)))
    assert pairs.shape == K.shape, label
    assert pairs.dtype == np.dtype(dtype), label

    dense = pairs.dense()
    assert dense.dtype == np.dtype(dtype), label
    judge.close(f"dense {kind}", dense, K, atol, label)
    if Y is None:
        np.testing.assert_array_equal(dense, dense.T, err_msg=label)
        diagonal = backend.diagonal(expression, X, dtype)
        assert diagonal.dtype == np.dtype(dtype), label
        judge.close(f"diagonal {kind}", diagonal, np.diagonal(K), atol, label)
    for index in _indices(len(K)):
        judge.close(f"rows {kind}", pairs.rows(index), K[index], atol, label)
    for V in _vectors(K.shape[1], columns):
        product = pairs.matmul(V)
        assert product.dtype == np.float64, label
        size = max(1.0, float(np.abs(V).sum(axis=0).max(initial=0.0)))
        judge.close(f"product {kind}", product, K @ V, atol * size, label)


def _indices(n: int) -> Iterator[Any]:
    yield slice(0, n)
    yield slice(n // 3, n // 3 + 5)
    yield slice(None, None, 2)
    if n:
        yield np.array([n - 1])
        yield np.array([n // 2, 0, n // 2, -1])


def _vectors(m: int, columns: Sequence[int]) -> Iterator[Array]:
    rng = np.random.default_rng(7)
    yield rng.standard_normal(m)
    for k in columns:
        yield rng.standard_normal((m, k))


def _sparse(X: Array) -> Any:
    return sparse.csr_array(np.where(X > 0.9, X, 0.0))


def _random_sparse(rng: np.random.Generator, n: int, features: int, density: float) -> Any:
    filled = rng.random((n, features)) < density
    rows = sparse.csr_array(np.where(filled, rng.random((n, features)), 0.0))
    assert row_count(take(rows, slice(0, 3))) == 3
    return rows


# --- stored matrices -------------------------------------------------------------------------


def _check_symmetric_products(judge: Judge) -> None:
    rng = np.random.default_rng(8)
    for n in (*_SIZES, 1000):
        B = rng.standard_normal((n, n))
        for tolerance, K in (
            (_TOLERANCE[np.dtype(np.float32)], (B + B.T).astype(np.float32)),
            (_TOLERANCE[np.dtype(np.float64)], B + B.T),
        ):
            for k in (0, 1, 3, 4, 16, 17, 50):
                V = rng.standard_normal((n, k)) * np.exp(50.0 * rng.standard_normal(k))
                found = judge.backend.symmetric_product(K, V)
                assert found.dtype == np.float64
                size = np.abs(V).sum(axis=0) * max(1.0, float(np.abs(K).max(initial=0.0)))
                verb, label = f"stored product {K.dtype}", f"{n} rows, {k} columns"
                judge.close(verb, found, K.astype(np.float64) @ V, tolerance * size, label)
                ends = np.append(np.sort(rng.integers(0, n + 1, 4)), n)
                flags = rng.random((2, len(ends), k)) < 0.6
                read, written = np.repeat(flags, np.diff(ends, prepend=0), axis=1)
                found = judge.backend.symmetric_product(K, V * read, RowParts(ends, *flags))
                wanted = written * (K.astype(np.float64) @ (V * read))
                judge.close(verb, found, wanted, tolerance * size, f"{label}, parts {flags}")
    K = np.eye(300)
    K[5, 200] = K[200, 5] = np.inf
    K[7, 7] = np.nan
    odd = ~np.isfinite(judge.backend.symmetric_product(K, np.ones((300, 5))))
    assert np.flatnonzero(odd.any(axis=1)).tolist() == [5, 7, 200]
