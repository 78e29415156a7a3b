"""Conformance kit for nearest neighbours: the rows that the reference finds, in its order."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.backends.contract import Backend
from mercer.backends.reference.backend import Reference
from mercer.expression import (
    AbsDist,
    Dot,
    Exp,
    Expression,
    MinSum,
    Opaque,
    RowProduct,
    SelfValue,
    SqDist,
)

_SIZES = (2, 17, 192, 193, 400)  # rows around the edges of tiles


def check_neighbours(backend: Backend) -> None:
    """Compare the verb `neighbours` of a backend with the reference."""
    rng = np.random.default_rng(8)
    X, Y = rng.random((61, 20)), rng.random((215, 20))
    cosine = Dot() * RowProduct(SelfValue(Dot(), -0.5))
    kernels = [
        Dot(),
        Exp(-0.5 * SqDist()),
        Exp(-0.5 * AbsDist()),
        (0.3 * Dot() + 1.0) ** 3 + Exp(-1.0 * SqDist()),
        cosine,
        MinSum(),
        Opaque(_linear) + 0.5 * Dot(),
    ]
    for kernel in kernels:
        for count in (1, 5, 60):
            _compare(backend, kernel, X, None, count)
            _compare(backend, kernel, X, Y, count)
        _compare(backend, kernel, sparse.csr_array(X), sparse.csr_array(np.where(Y > 0.8, Y, 0)), 7)
    for n in _SIZES:
        rows = rng.standard_normal((n, 3))
        for count in {1, min(n - 1, 10), n - 1}:
            _compare(backend, Exp(-1.0 * SqDist()), rows, None, count)
    _check_ties(backend, rng)


def _check_ties(backend: Backend, rng: np.random.Generator) -> None:
    """Equal distances and equal rows, many of them: the smaller number comes first."""
    grid = rng.integers(0, 3, (300, 20)).astype(float)
    twice = np.repeat(rng.standard_normal((70, 20)), 4, axis=0)
    none = np.zeros((250, 20))
    for rows in (grid, twice, none, grid + 1e8, 2.0**-80 * grid, 2.0**66 * grid):
        _compare(backend, Dot(), rows, None, 6)
        _compare(backend, Exp(-1e-3 * SqDist()), rows, rows[::-1].copy(), 6)
    for rows in (grid, twice, none):
        _compare(backend, Dot(), sparse.csr_array(rows), None, 6)


def _compare(backend: Backend, kernel: Expression, X: Points, Y: Points | None, count: int) -> None:
    label = f"{backend.name}: {count} neighbours by {kernel}, {type(X).__name__} {X.shape}"
    index, squared = backend.neighbours(kernel, X, Y, count)
    expected, distances = Reference().neighbours(kernel, X, Y, count)
    assert index.dtype == np.int64 and squared.dtype == np.float64, label
    assert index.shape == squared.shape == expected.shape, label
    scale = max(1e-300, float(np.abs(distances).max()))
    np.testing.assert_allclose(squared, distances, rtol=0, atol=1e-13 * scale, err_msg=label)
    assert (np.diff(squared, axis=1) >= 0).all(), label
    different = index != expected
    if different.any():  # rounding may order differently only what is equally near
        again = _distances(kernel, X, Y)
        found = np.take_along_axis(again, index, axis=1)
        expected_values = np.take_along_axis(again, expected, axis=1)
        size = max(1e-300, float(np.abs(again).max()))
        np.testing.assert_allclose(found, expected_values, rtol=0, atol=1e-13 * size, err_msg=label)
        assert different.mean() < 0.05, label


def _distances(kernel: Expression, X: Points, Y: Points | None) -> Array:
    reference = Reference()
    columns = X if Y is None else Y
    own = reference.diagonal(kernel, X, np.float64)
    other = reference.diagonal(kernel, columns, np.float64)
    K = reference.pairs(kernel, X, Y, np.float64).dense()
    return np.asarray(own[:, None] + other[None, :] - 2.0 * K)


def _linear(rows: Any, columns: Any) -> Any:
    return rows @ columns.T
