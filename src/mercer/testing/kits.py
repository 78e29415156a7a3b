"""Functions `check_kernel`, `check_gram` and `check_solver`."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import mercer.kernels
from mercer.array_types import Array, Points
from mercer.gram import Gram, exact
from mercer.kernels import Kernel
from mercer.kernels.algebra import parts
from mercer.rows.points import as_points, column_names, is_objects, row_count, take, to_dense
from mercer.solvers.base import Solver, Status, Watch
from mercer.solvers.certificate import certify

# --- kernel --------------------------------------------------------------------------------------
#
# Conformance kit for kernels: requirements of every kernel, including user-defined ones.

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


# --- gram ----------------------------------------------------------------------------------------
#
# Conformance kit for Grams: every representation of K must behave like the matrix.


def check_gram(
    gram: Gram, K: Array, Z: Points | None = None, KZ: Array | None = None, rtol: float = 1e-10
) -> None:
    """Compare every operation of a Gram with the expected matrix.

    Parameters
    ----------
    gram : Gram
        The tested Gram.
    K : (n, n) array
        The matrix it stands for.
    Z : Points, optional
        New points.
    KZ : (m, n) array, optional
        The matrix of the new points against the training points.
    rtol : float
        Allowed difference, relative to the largest entry.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> check_gram(PrecomputedGram(np.eye(3)), np.eye(3))
    """
    n = len(K)
    atol = rtol * max(float(np.abs(K).max(initial=0.0)), 1e-300)
    rng = np.random.default_rng(0)
    assert gram.shape == (n, n)
    np.testing.assert_allclose(gram.dense(), K, rtol=0, atol=atol)
    np.testing.assert_array_equal(gram.dense(), gram.dense().T)
    np.testing.assert_allclose(gram.diag(), np.diagonal(K), rtol=0, atol=atol)
    index = rng.integers(0, n, size=min(n, 5))
    np.testing.assert_allclose(gram.rows(index), K[index], rtol=0, atol=atol)
    np.testing.assert_allclose(gram.rows(slice(0, 2)), K[:2], rtol=0, atol=atol)
    for V in (rng.standard_normal(n), rng.standard_normal((n, 3))):
        product = gram @ V
        assert product.shape == V.shape
        np.testing.assert_allclose(product, K @ V, rtol=0, atol=atol * n)
    _check_forms(gram, K, atol)
    if Z is not None and KZ is not None:
        _check_cross(gram, Z, KZ, atol, rng.standard_normal((n, 2)))


def _check_forms(gram: Gram, K: Array, atol: float) -> None:
    """Compare optional operations of the Gram with the matrix."""
    n = len(K)
    assert gram.raw.shape == gram.shape
    assert gram.rank >= np.linalg.matrix_rank(K, tol=n * atol, hermitian=True)
    if gram.factor is not None:
        assert gram.features is not None
        assert gram.factor.shape == (n, gram.rank)
        np.testing.assert_allclose(to_dense(gram.factor @ gram.factor.T), K, rtol=0, atol=atol)
    if gram.csr is not None:
        np.testing.assert_allclose(to_dense(gram.csr), K, rtol=0, atol=atol)
    if gram.source is not None:
        np.testing.assert_allclose(exact(gram.source).dense(), K, rtol=0, atol=atol)


def _check_cross(gram: Gram, Z: Points, KZ: Array, atol: float, V: Array) -> None:
    n = gram.shape[0]
    cross = gram.cross(Z)
    assert cross.shape == KZ.shape
    np.testing.assert_allclose(cross.dense(), KZ, rtol=0, atol=atol)
    np.testing.assert_allclose(cross @ V, KZ @ V, rtol=0, atol=atol * n)
    expansion = gram.expand(V)
    np.testing.assert_allclose(expansion(Z), KZ @ V, rtol=0, atol=10 * atol * n)
    np.testing.assert_allclose(
        expansion.plus(np.array([1.0, 2.0]))(Z), KZ @ V + [1.0, 2.0], rtol=0, atol=10 * atol * n
    )


# --- solver --------------------------------------------------------------------------------------
#
# Conformance kit for solvers: a solution must be certified and repeatable, and stop on request.


def check_solver(solver: Solver, problem: Any, tol: float | None = None) -> None:
    """Run a solver on a problem that it supports, and verify it by certificate alone.

    Parameters
    ----------
    solver : Solver
        The tested solver.
    problem : LinearSystem, RidgePath, Eigenproblem or BoxQP
        A problem of the solver's kind.
    tol : float, optional
        Tolerance of the certificate; the kind's default when not given.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.problems import Eigenproblem
    >>> from mercer.solvers import Eigh
    >>> check_solver(Eigh(), Eigenproblem(PrecomputedGram(np.diag([3.0, 2.0, 1.0])), count=2))
    """
    refusal = solver.refuses(problem)
    assert refusal is None, refusal
    assert solver.refuses(object()) is not None, "a solver must reject unsupported problems"
    solution = solver.run(problem, Watch())
    assert solution.status is Status.SOLVED, solution.status.value
    assert solution.seconds >= 0
    assert solution.iterations >= 0
    certificate = certify(problem, solution.value, tol)
    assert certificate.ok, str(certificate)
    again = solver.run(problem, Watch())
    assert repr(certify(problem, again.value, tol)) == repr(certificate), "runs must repeat"
    warm = solver.run(problem, Watch(), start=solution.value)
    assert certify(problem, warm.value, tol).ok, "a solution from a warm start must be certified"
