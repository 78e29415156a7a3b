"""Conformance kit for backends: whatever the machine, the numbers are those of the reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, FrozenArray, Points
from mercer.backends import choose_backend
from mercer.backends.contract import Backend, RowParts
from mercer.backends.reference.backend import Reference
from mercer.expression import (
    AbsDist,
    ChiSq,
    Columns,
    Constant,
    Dot,
    Exp,
    Expression,
    LinearMap,
    Mapped,
    MaternProfile,
    MinSum,
    Opaque,
    Ratio,
    RowFunction,
    RowProduct,
    RowSum,
    SelfValue,
    SqDist,
    Sqrt,
    Stretch,
    SubsetProduct,
    SymmetricSum,
    Tanh,
)
from mercer.points import is_sparse, row_count, take
from mercer.resources import config
from mercer.testing.box_paths import check_box_paths
from mercer.testing.boxes import check_box_programmes
from mercer.testing.factorisations import check_factorisations
from mercer.testing.neighbours import check_neighbours
from mercer.testing.partition import check_partitions

# largest difference allowed, relative to the largest entry of the matrix
_TOLERANCE = {np.dtype(np.float32): 3e-6, np.dtype(np.float64): 1e-13}
# rows around the edges of blocks that implementations like to use
_SIZES = (0, 1, 7, 191, 192, 193, 400)


def check_backend(name: str) -> None:
    """Compare a backend with the reference over all nodes, kinds of rows, sizes and verbs.

    Parameters
    ----------
    name : str
        As in `mercer.config(backend=...)`.

    Examples
    --------
    >>> check_backend("reference")  # doctest: +SKIP
    """
    with config(backend=name):
        backend = choose_backend()
    assert backend.name == name
    _check_nodes(backend)
    _check_kinds_of_rows(backend)
    _check_sizes(backend)
    _check_hard_distances(backend)
    _check_symmetric_products(backend)
    check_factorisations(backend)
    check_box_programmes(backend)
    check_neighbours(backend)
    check_box_paths(backend)
    check_partitions(backend)


# --- expressions -----------------------------------------------------------------------------


def _statistics() -> list[Expression]:
    return [
        Dot(),
        SqDist(),
        AbsDist(),
        MinSum(),
        ChiSq(),
        SubsetProduct(),
        *(SymmetricSum(degree=degree) for degree in (0, 1, 2, 5)),
    ]


def _norm(rows: Any) -> Array:
    squares = rows.multiply(rows) if is_sparse(rows) else np.square(rows)
    return np.asarray(np.sqrt(squares.sum(axis=1)), dtype=np.float64)


def _linear(rows: Any, columns: Any) -> Any:
    return rows @ columns.T


def _shift(rows: Any) -> Any:
    return np.asarray((rows.toarray() if is_sparse(rows) else rows) + 0.25)


def _expressions(features: int) -> list[Expression]:
    """Return one expression or more for every node of the language."""
    dot, far = Dot(), SqDist()
    r = Sqrt(0.7 * far)
    rng = np.random.default_rng(5)
    factors = FrozenArray(rng.uniform(0.5, 2.0, features))
    matrix = FrozenArray(rng.standard_normal((features, 3)))
    some = Columns(tuple(range(0, features, 2)))
    own = SelfValue(dot + 1.0, -0.5)
    return [
        *_statistics(),
        Constant(2.5),
        Exp(-0.5 * far),
        Exp(-0.5 * far) + Exp(-2.0 * far) + 0.25 * Exp(-0.5 * far) + 1.0,
        (0.3 * dot + 1.0) ** 3,
        (0.3 * dot + 1.0) ** 3 * dot + Exp(-1.0 * far),
        2.0 * (dot + 1.0) * (far + 2.0) * Constant(0.5),
        *((far + 1.0) ** power for power in (-1.0, -2.0, -0.7, 0.5, 0.0, 7.0)),
        Tanh(0.5 * dot - 1.0),
        Tanh(1e-3 * dot),
        Ratio(dot, dot + 1.0),
        Ratio(MinSum(), RowSum(SelfValue(MinSum())) - MinSum()),
        Ratio(Constant(0.0) * far, Constant(0.0) * dot),
        *(MaternProfile(r, nu) for nu in (0.5, 1.5, 2.5, 3.5, 0.8)),
        RowProduct(own) * (dot + 1.0),
        RowSum(RowFunction(_norm)) - 2.0 * Exp(-1.0 * far),
        Opaque(_linear) + Exp(-1.0 * far),
        Opaque(_linear),
        Exp(-1.0 * SqDist(steps=(Stretch(factors),))) + SqDist(steps=(some,)),
        Dot(steps=(LinearMap(matrix),)) * AbsDist(steps=(Mapped(_shift),)),
        RowProduct(SelfValue(Dot(steps=(some,)) + 1.0)),
    ]


def _check_nodes(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.random((61, 12)), rng.random((215, 12))
    X[3] = 0.0
    for expression in _expressions(12):
        for dtype in _TOLERANCE:
            _check_pairs(backend, expression, X, None, dtype)
            _check_pairs(backend, expression, X, Y, dtype)
            _check_pairs(backend, expression, _sparse(X), _sparse(Y), dtype)


def _check_kinds_of_rows(backend: Backend) -> None:
    """Dense, CSR of low and high density, one of each, float32 and float64, read-only, strided."""
    rng = np.random.default_rng(1)
    for features, density in ((400, 0.02), (20, 0.5), (30, 0.0)):
        X = _random_sparse(rng, 130, features, density)
        Y = _random_sparse(rng, 210, features, density)
        for expression in (*_statistics(), Exp(-0.1 * SqDist())):
            _check_pairs(backend, expression, X, None, np.float64)
            _check_pairs(backend, expression, X, Y, np.float32)
            _check_pairs(backend, expression, X.toarray(), Y, np.float64)
            _check_pairs(backend, expression, X.astype(np.float32), Y.toarray(), np.float64)
    rows = rng.random((40, 9))
    rows.flags.writeable = False
    before = rows.copy()
    for points in (rows, rows[::2, ::-1], rows.astype(np.float32), np.asfortranarray(rows)):
        for dtype in _TOLERANCE:
            _check_pairs(backend, Exp(-1.0 * SqDist()), points, None, dtype)
    np.testing.assert_array_equal(rows, before)


def _check_sizes(backend: Backend) -> None:
    rng = np.random.default_rng(2)
    for features in (1, 8, 33, 300):
        rows = rng.standard_normal((max(_SIZES), features))
        expression = Exp((-0.5 / features) * SqDist()) + 0.1 * Dot()
        for n in _SIZES if features == 33 else (1, 193):
            _check_pairs(backend, expression, rows[:n], None, np.float32)
            for m in _SIZES if features == 33 else (7, 200):
                _check_pairs(backend, expression, rows[:n], rows[::-1][:m], np.float64)
    wide = rng.standard_normal((9, 5000))
    _check_pairs(backend, Exp(-1e-4 * SqDist()) + 1e-3 * Dot(), wide, wide[:5] + 0.1, np.float32)


def _check_hard_distances(backend: Backend) -> None:
    """Near duplicates, far clusters, a large common offset: where |x|^2 + |y|^2 - 2xy fails."""
    rng = np.random.default_rng(3)
    near = np.repeat(rng.standard_normal((20, 30)), 5, axis=0)
    near[1::5] += 1e-7 * rng.standard_normal((20, 30))
    far = rng.standard_normal((100, 30)) + 1e3 * rng.integers(0, 2, 100)[:, None]
    offset = rng.standard_normal((100, 30)) + 1e8
    kernel = Exp(-0.02 * SqDist())
    for rows in (near, far, offset):
        for points in (rows, rows[:, :3].copy()):
            K = backend.pairs(kernel, points, None, np.float64).dense()
            assert (np.diagonal(K) == 1.0).all()
            # rows of 1e8 are spaced 1.5e-8 apart: their distances are no better than that
            _check_pairs(backend, kernel, points, None, np.float64, slack=100.0)
    # float32 rounds rows of 1e3 to 6e-5, so only the rows around their own centre are exact
    for rows in (near, offset):
        _check_pairs(backend, kernel, rows, None, np.float32)
    twice = backend.pairs(kernel, near, near.copy(), np.float32).dense()
    assert (np.diagonal(twice) == 1.0).all()


# --- comparing -------------------------------------------------------------------------------


def _check_pairs(
    backend: Backend,
    expression: Expression,
    X: Points,
    Y: Points | None,
    dtype: Any,
    slack: float = 1.0,
) -> None:
    """Compare all verbs of bound pairs with the matrix of the reference."""
    label = f"{backend.name}: {expression}, {type(X).__name__} {X.shape}, {np.dtype(dtype)}"
    pairs = backend.pairs(expression, X, Y, dtype)
    K = Reference().pairs(expression, X, Y, np.float64).dense()
    atol = slack * _TOLERANCE[np.dtype(dtype)] * max(1.0, float(np.abs(K).max(initial=0.0)))
    assert pairs.shape == K.shape, label
    assert pairs.dtype == np.dtype(dtype), label

    dense = pairs.dense()
    assert dense.dtype == np.dtype(dtype), label
    _close(dense, K, atol, label)
    if Y is None:
        np.testing.assert_array_equal(dense, dense.T, err_msg=label)
        diagonal = backend.diagonal(expression, X, dtype)
        assert diagonal.dtype == np.dtype(dtype), label
        _close(diagonal, np.diagonal(K), atol, label)
    for index in _indices(len(K)):
        _close(pairs.rows(index), K[index], atol, label)
    for V in _vectors(K.shape[1]):
        product = pairs.matmul(V)
        assert product.dtype == np.float64, label
        size = max(1.0, float(np.abs(V).sum(axis=0).max(initial=0.0)))
        _close(product, K @ V, atol * size, label)


def _close(actual: Array, expected: Array, atol: float, label: str) -> None:
    assert actual.shape == expected.shape, f"{label}: {actual.shape}, expected {expected.shape}"
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol, err_msg=label)


def _indices(n: int) -> Iterator[Any]:
    yield slice(0, n)
    yield slice(n // 3, n // 3 + 5)
    yield slice(None, None, 2)
    if n:
        yield np.array([n - 1])
        yield np.array([n // 2, 0, n // 2, -1])


def _vectors(m: int) -> Iterator[Array]:
    rng = np.random.default_rng(7)
    yield rng.standard_normal(m)
    for k in (1, 3, 5, 16, 50):
        yield rng.standard_normal((m, k))


def _sparse(X: Array) -> Any:
    return sparse.csr_array(np.where(X > 0.9, X, 0.0))


def _random_sparse(rng: np.random.Generator, n: int, features: int, density: float) -> Any:
    filled = rng.random((n, features)) < density
    rows = sparse.csr_array(np.where(filled, rng.random((n, features)), 0.0))
    assert row_count(take(rows, slice(0, 3))) == 3
    return rows


# --- stored matrices -------------------------------------------------------------------------


def _check_symmetric_products(backend: Backend) -> None:
    rng = np.random.default_rng(8)
    for n in (*_SIZES, 1000):
        B = rng.standard_normal((n, n))
        for tolerance, K in (
            (_TOLERANCE[np.dtype(np.float32)], (B + B.T).astype(np.float32)),
            (_TOLERANCE[np.dtype(np.float64)], B + B.T),
        ):
            for k in (0, 1, 3, 4, 16, 17, 50):
                V = rng.standard_normal((n, k)) * np.exp(50.0 * rng.standard_normal(k))
                found = backend.symmetric_product(K, V)
                assert found.dtype == np.float64
                size = np.abs(V).sum(axis=0) * max(1.0, float(np.abs(K).max(initial=0.0)))
                error = np.abs(found - K.astype(np.float64) @ V)
                assert found.shape == (n, k) and (error <= tolerance * size).all(), (n, k, K.dtype)
                ends = np.append(np.sort(rng.integers(0, n + 1, 4)), n)
                flags = rng.random((2, len(ends), k)) < 0.6
                read, written = np.repeat(flags, np.diff(ends, prepend=0), axis=1)
                found = backend.symmetric_product(K, V * read, RowParts(ends, *flags))
                error = np.abs(found - written * (K.astype(np.float64) @ (V * read)))
                assert (error <= tolerance * size).all(), (n, k, K.dtype, flags)
    K = np.eye(300)
    K[5, 200] = K[200, 5] = np.inf
    K[7, 7] = np.nan
    odd = ~np.isfinite(backend.symmetric_product(K, np.ones((300, 5))))
    assert np.flatnonzero(odd.any(axis=1)).tolist() == [5, 7, 200]


# --- factorisations and loops of solvers -----------------------------------------------------
