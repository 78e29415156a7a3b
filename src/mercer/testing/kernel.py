"""Conformance kit for kernels: what every kernel must satisfy, one's own included."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import mercer.kernels
from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.kernels.base import parts
from mercer.kernels.columns import column_names
from mercer.points import as_points, is_objects, row_count, take

# Relative to the largest entry: rounding in another order, no more.
_ROUNDING = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}


def check_kernel(kernel: Kernel, X: Any = None) -> None:
    """Check that a kernel keeps the promises of all kernels; raise AssertionError if it does not.

    Symmetric; positive semidefinite if `kernel.psd`; k(X) = k(X, X); diag the diagonal; blocks are
    blocks; CSR rows give the same; a finite feature map reproduces the kernel; the text reads back;
    equal, hashable, picklable, and unchanged by replacing parameters with themselves.

    Parameters
    ----------
    kernel : Kernel
    X : array-like, DataFrame or list of sequences, optional
        Rows to look at; 17 nonnegative rows of 5 numbers, one of them zero, by default.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear, Spectrum
    >>> check_kernel(Gaussian(2.0) + Linear() ** 2)
    >>> check_kernel(Spectrum(2).normalized(), ["banana", "bandana", "ban"])
    """
    X = _default_rows() if X is None else X
    K = kernel(X)
    size = float(np.abs(K).max())
    atol = _ROUNDING[K.dtype] * size
    n = row_count(as_points(X))
    assert K.shape == (n, n), f"k(X) has shape {K.shape} for {n} rows"
    assert np.all(np.isfinite(K)), "k(X) has entries that are not finite"
    _same(K, K.T, 0.0, "k(X) is not exactly symmetric")
    _same(kernel(X, X), K, atol, "k(X, X) differs from k(X)")
    _same(kernel.diag(X), np.diagonal(K), atol, "diag(X) is not the diagonal of k(X)")
    _check_blocks(kernel, X, K, atol)
    if kernel.psd:
        smallest = float(np.linalg.eigvalsh(K)[0])
        assert smallest >= -100 * n * atol, f"psd is True, but k(X) has eigenvalue {smallest:g}"
    _check_sparse(kernel, X, K, atol)
    _check_features(kernel, X, K, atol)
    _check_value(kernel)


def _default_rows() -> Array:
    X = np.random.default_rng(0).uniform(0.0, 2.0, size=(17, 5))
    X[X < 0.4] = 0.0
    X[7] = 0.0
    return X


def _same(found: Any, expected: Any, atol: float, message: str) -> None:
    difference = float(np.abs(np.asarray(found) - np.asarray(expected)).max(initial=0.0))
    assert difference <= atol, f"{message}: by {difference:g}, allowed are {atol:g}"


def _check_blocks(kernel: Kernel, X: Any, K: Array, atol: float) -> None:
    if column_names(X) is not None:
        return  # a block of points has lost the names of its columns
    points = as_points(X)
    some = np.array([len(K) - 1, 0])
    block = kernel(take(points, some), take(points, slice(0, 3)))
    _same(block, K[some, :3], atol, "the matrix of some rows is not a part of the matrix")


def _check_sparse(kernel: Kernel, X: Any, K: Array, atol: float) -> None:
    points = as_points(X)
    unsuitable = is_objects(points) or column_names(X) is not None or _holds_function(kernel)
    if not unsuitable:
        rows = sparse.csr_array(points)
        _same(kernel(rows), K, atol, "CSR rows give another matrix")
        _same(kernel.diag(rows), np.diagonal(K), atol, "CSR rows give another diagonal")


def _check_features(kernel: Kernel, X: Any, K: Array, atol: float) -> None:
    points = as_points(X)
    phi = None if is_objects(points) else kernel.features(points.shape[1])
    if phi is None:
        return
    F = phi(X)
    F = F.toarray() if isinstance(F, sparse.csr_array) else F
    assert F.shape == (len(K), phi.dimension), f"{F.shape} features, {phi.dimension} were promised"
    assert F.dtype == points.dtype, f"features of {points.dtype} rows are {F.dtype}"
    _same(F @ F.T, K, atol, "the feature map does not reproduce the kernel")


def _check_value(kernel: Kernel) -> None:
    assert hash(kernel) == hash(kernel.with_params(**kernel.get_params(deep=False)))
    assert kernel == kernel.with_params(**kernel.get_params(deep=True)), "parameters do not return"
    assert kernel.expression() == kernel.expression(), "the expression is not the same each time"
    assert hash(kernel.expression()) == hash(kernel.expression())
    assert clone(kernel) is kernel, "a kernel is a value: cloning gives the same"
    assert not (kernel == "another thing")
    if not _holds_function(kernel):
        assert pickle.loads(pickle.dumps(kernel)) == kernel, "pickling changes the kernel"
        assert eval(repr(kernel), _names(kernel)) == kernel, f"{kernel!r} does not read back"


def _names(kernel: Kernel) -> dict[str, Any]:
    public = {name: getattr(mercer.kernels, name) for name in mercer.kernels.__all__}
    return {**public, **{type(part).__name__: type(part) for part in _all_parts(kernel)}}


def _all_parts(kernel: Kernel) -> Iterator[Kernel]:
    yield kernel
    for part in parts(kernel):
        yield from _all_parts(part)


def _holds_function(kernel: Kernel) -> bool:
    """Return whether a user's function is inside: it may not take CSR rows, nor pickle."""
    values = (v for part in _all_parts(kernel) for v in part.get_params(deep=False).values())
    return any(callable(v) and not isinstance(v, Kernel) for v in values)
