"""Function `check_backend`: conformance of kernels, factors, box QPs, neighbors, k-means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from mercer.array_types import Array, FrozenArray, Points
from mercer.backends import choose_backend
from mercer.backends.box_programs import Box, BoxAnswer, BoxPath, BoxPathAnswer, PathStep
from mercer.backends.contract import Backend, Factor, GroupAnswer, Groups, RowParts
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
from mercer.resources import config
from mercer.rows.points import is_sparse, row_count, take

# --- backend -------------------------------------------------------------------------------------
#
# Conformance kit for backends: the results must be those of the reference on every computer.

# largest difference allowed, relative to the largest entry of the matrix
_TOLERANCE = {np.dtype(np.float32): 3e-6, np.dtype(np.float64): 1e-13}
# rows around the edges of blocks that implementations like to use
_BACKEND_SIZES = (0, 1, 7, 191, 192, 193, 400)
_COLUMNS = (1, 3, 5, 16, 50)  # of the factor
_FEATURES = 12  # of rows that check single nodes


def check_backend(name: str) -> dict[str, float]:
    """Compare a backend with the reference over all nodes, kinds of rows, sizes and operations.

    Parameters
    ----------
    name : str
        As in `mercer.config(backend=...)`.

    Returns
    -------
    dict
        For each operation the worst error, over the allowed error.

    Raises
    ------
    AssertionError
        If an error exceeds the allowed one, with the operation and the expression.

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
        Numbers of columns of the factor, in addition to a vector: for some backends each width is a
        program of its own, which takes a second to compile.
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
        rows = rng.standard_normal((max(_BACKEND_SIZES), features))
        expression = Exp((-0.5 / features) * SqDist()) + 0.1 * Dot()
        for n in _BACKEND_SIZES if features == 33 else (1, 193):
            _check_pairs(judge, expression, rows[:n], None, np.float32)
            for m in _BACKEND_SIZES if features == 33 else (7, 200):
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
            # rows of 1e8 are spaced 1.5e-8 apart: their distances are not more accurate
            _check_pairs(judge, kernel, points, None, np.float64, slack=100.0)
    # float32 rounds rows of 1e3 to 6e-5, so only the rows around their own center are exact
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
    """Compare all operations of bound pairs with the matrix of the reference."""
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
    for n in (*_BACKEND_SIZES, 1000):
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


# --- errors --------------------------------------------------------------------------------------
#
# Errors of a backend by operation: keep the largest of each, and raise if it is too large.


class WorstError(NamedTuple):
    """The largest error of an operation relative to the allowed one, and its location."""

    share: float
    label: str


class Judge:
    """Compares the results of a backend with the expected ones.

    Parameters
    ----------
    backend : Backend
        The tested backend.

    Attributes
    ----------
    worst : dict
        The largest error of each operation.

    Examples
    --------
    >>> from mercer.backends.reference.backend import Reference
    >>> judge = Judge(Reference())
    >>> judge.close("sum", np.array([1.0]), np.array([1.5]), 1.0, "one number")
    >>> judge.shares()
    {'sum': 0.5}
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.worst: dict[str, WorstError] = {}

    def close(self, verb: str, found: Array, wanted: Array, atol: Any, label: str) -> None:
        """Record the largest difference over `atol`; undefined entries must coincide."""
        assert found.shape == wanted.shape, f"{label}: {found.shape}, expected {wanted.shape}"
        with np.errstate(all="ignore"):
            same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
            apart = np.where(same, 0.0, np.abs(found - wanted) / atol)
        worst = float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0))
        if verb not in self.worst or worst > self.worst[verb].share:
            self.worst[verb] = WorstError(worst, label)

    def shares(self) -> dict[str, float]:
        """Return the largest error of each operation relative to the allowed one."""
        return {verb: finding.share for verb, finding in self.worst.items()}

    def refuse(self) -> None:
        """Raise if an error exceeds the allowed one."""
        for verb, (share, label) in self.worst.items():
            assert share <= 1.0, f"{verb} is off by {share:.3g} times the allowed error: {label}"


# --- expressions ---------------------------------------------------------------------------------
#
# Expressions that check backends: one or more for every node of the language.


def statistics() -> list[Expression]:
    """Return every statistic that two rows are compared by."""
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


def expressions(features: int) -> list[Expression]:
    """Return one expression or more for every node of the language."""
    dot, far = Dot(), SqDist()
    r = Sqrt(0.7 * far)
    rng = np.random.default_rng(5)
    factors = FrozenArray(rng.uniform(0.5, 2.0, features))
    matrix = FrozenArray(rng.standard_normal((features, 3)))
    some = Columns(tuple(range(0, features, 2)))
    own = SelfValue(dot + 1.0, -0.5)
    return [
        *statistics(),
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


# --- factorizations ------------------------------------------------------------------------------
#
# Conformance of dense factorizations: Cholesky factors, eigenpairs, band reductions.


def check_factorisations(backend: Backend) -> None:
    """Factor and reduce matrices of several sizes, and multiply back."""
    rng = np.random.default_rng(4)
    for n in (1, 5, 70, 260):
        B = rng.standard_normal((n, n))
        A = B @ B.T / n + 0.1 * np.eye(n)
        _check_cholesky(backend, A)
        _check_stored(backend, A)
        values, vectors = backend.eigh(A.copy())
        np.testing.assert_allclose((vectors * values) @ vectors.T, A, rtol=0, atol=1e-10)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), rtol=0, atol=1e-10)
        assert (np.diff(values) >= 0).all()
        for width in (1, 4, 16):
            _check_band(backend, A, width)


def _check_cholesky(backend: Backend, A: Array) -> None:
    L = A.copy()
    assert backend.cholesky(L) == 0
    np.testing.assert_allclose(np.tril(L), linalg.cholesky(A, lower=True), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(np.triu(L, 1), np.triu(A, 1))
    indefinite = A.copy()
    middle = len(A) // 2
    indefinite[middle, middle] = -1.0
    assert backend.cholesky(indefinite) == middle + 1


def _check_stored(backend: Backend, A: Array) -> None:
    """Compare a stored matrix, and its factors with and without scales, with arrays."""
    n, rng = len(A), np.random.default_rng(9)
    scale, shift = rng.uniform(0.5, 2.0, n), rng.uniform(0.1, 1.0, n)
    right, points = rng.standard_normal((n, 3)), rng.integers(0, n, 7)
    for dtype, atol in ((np.float64, 1e-11), (np.float32, 1e-5)):
        given = A.astype(dtype)
        K, entries = backend.stored(given.copy()), given.astype(np.float64)
        assert K.shape == (n, n) and K.dtype == dtype and K.nbytes == given.nbytes
        np.testing.assert_array_equal(K.dense(), given)
        assert not K.dense().flags.writeable
        np.testing.assert_array_equal(K.rows(points), given[points])
        np.testing.assert_array_equal(K.diagonal(), entries.diagonal())
        np.testing.assert_allclose(K.product(right), entries @ right, atol=n * atol)
        summed = K.combination(points, np.arange(7.0))
        np.testing.assert_allclose(summed, np.arange(7.0) @ entries[points], atol=n * atol)
        for s in (None, scale):
            C = entries * (1.0 if s is None else np.outer(s, s)) + np.diag(shift)
            _check_factor(K.cholesky(shift, s), C, right)
            U, E = right[:, :2] / n, right[:, 1:] / (10 * n)
            _check_factor(K.cholesky(shift, s, (U, E)), C - U @ E.T - E @ U.T, right)
        assert K.cholesky(shift - 1e3) is None
    _check_factor(backend.cholesky_factor(A.copy()), A, right)
    whole = backend.cholesky_factor(A.copy())
    assert whole is not None
    np.testing.assert_allclose(whole.inverse(), linalg.inv(A), atol=1e-9)
    assert backend.cholesky_factor(-A) is None
    C = A + rng.standard_normal((n, n))
    found, sign, logarithm = backend.solve_with_determinant(C, right)
    np.testing.assert_allclose(found, linalg.solve(C, right), atol=1e-8)
    np.testing.assert_allclose((sign, logarithm), np.linalg.slogdet(C), atol=1e-9)
    assert np.isnan(backend.solve_with_determinant(np.zeros((2, 2)), np.ones((2, 1)))[0]).all()


def _check_factor(factor: Factor | None, C: Array, right: Array) -> None:
    assert factor is not None
    inverse = linalg.inv(C)
    np.testing.assert_allclose(factor.solve(right), inverse @ right, atol=1e-9)
    for transposed in (False, True):
        half = factor.half_solve(right, transposed)
        lower = linalg.cholesky(C, lower=True)
        np.testing.assert_allclose((lower.T if transposed else lower) @ half, right, atol=1e-9)
    np.testing.assert_allclose(factor.solve(right[:, 0]), inverse @ right[:, 0], atol=1e-9)
    L = factor.lower().copy()
    np.testing.assert_allclose(L, linalg.cholesky(C, lower=True), atol=1e-10)
    np.testing.assert_allclose(factor.diagonal(), L.diagonal(), atol=1e-10)
    np.testing.assert_allclose(factor.inverse_diagonal(), inverse.diagonal(), rtol=1e-8)


def _check_band(backend: Backend, A: Array, width: int) -> None:
    n = len(A)
    band = backend.band_reduce(A.copy(), width)
    assert band.width == width and band.lower.shape == (n, width + 1)
    B = np.zeros((n, n))
    for k in range(min(width + 1, n)):
        entries = band.lower[: n - k, k]
        B += np.diag(entries, -k) + (np.diag(entries, k) if k else 0.0)
    np.testing.assert_allclose(band.Qt.T @ B @ band.Qt, A, rtol=0, atol=1e-10)
    np.testing.assert_allclose(band.Qt @ band.Qt.T, np.eye(n), rtol=0, atol=1e-10)
    shifts = np.array([0.0, 0.3, 10.0, -1e6])
    found = backend.band_inverse_diagonals(band, shifts)
    expected = [np.diagonal(linalg.inv(A + shift * np.eye(n))) for shift in shifts[:3]]
    np.testing.assert_allclose(found[:3], expected, rtol=1e-9)
    assert np.isnan(found[3]).all()


# --- boxes ---------------------------------------------------------------------------------------
#
# Conformance of box programs on a stored matrix: the solution meets the KKT conditions.


def check_box_programmes(backend: Backend) -> None:
    """Solve boxes of several kinds; compare with the reference, and with the KKT conditions."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((80, 3))
    labels = np.where(X[:, 0] + 0.5 * rng.standard_normal(80) > 0, 1.0, -1.0)
    K = Reference().pairs(Exp(-2.0 * SqDist()), X, None, np.float64).dense()
    plain = Box(labels, np.zeros(80), np.minimum(labels, 0.0), np.maximum(labels, 0.0))
    boxes = [plain, *_boxes(rng, K, X[:, 1])]
    for matrix, tol in ((K, 1e-5), (K.astype(np.float32), 1e-3)):
        answers = backend.box_qps(matrix, boxes, tol, 100_000, None)
        expected = Reference().box_qps(matrix, boxes, tol, 100_000, None)
        assert len(answers) == len(boxes)
        for box, answer, other in zip(boxes, answers, expected, strict=True):
            _check_box(matrix.astype(np.float64), box, answer, other, tol)
    (whole,) = backend.box_qps(K, [plain], 1e-9, 100_000, None)
    (stopped,) = backend.box_qps(K, [plain], 1e-9, 100_000, lambda iteration, violation: True)
    assert 0 <= stopped.iterations <= whole.iterations
    assert backend.box_qps(K, [], 1e-9, 10, None) == []


def _boxes(rng: np.random.Generator, K: Array, targets: Array) -> Iterator[Box]:
    """Return boxes with epsilons, shifts, groups, and rows in runs, out of order and repeated."""
    halves = np.concatenate([np.arange(50, 77), np.arange(9, 40)])
    for rows in (None, halves, rng.permutation(80)[:41], rng.integers(0, 80, 100)):
        own = np.arange(80) if rows is None else rows
        n = len(own)
        epsilon, shift = np.full(n, 0.1), rng.uniform(0.05, 0.5, n)
        for group in (None, np.repeat([0, 1], [n // 3, n - n // 3]), rng.integers(0, 3, n)):
            start = np.where(np.arange(n) % 2, 0.5, -0.5)
            for k, s in ((None, None), (epsilon, None), (None, shift), (epsilon, shift)):
                gradient = targets[own] - K[np.ix_(own, own)] @ start
                gradient -= 0.0 if s is None else s * start
                yield Box(gradient, start, np.full(n, -2.0), np.full(n, 2.0), k, s, group, rows)


def _check_box(K: Array, box: Box, answer: BoxAnswer, other: BoxAnswer, tol: float) -> None:
    n = len(box.start)
    own = np.arange(n) if box.rows is None else box.rows
    K = K[np.ix_(own, own)] + (0.0 if box.shift is None else np.diag(box.shift))
    epsilon = 0.0 if box.epsilon is None else box.epsilon
    linear = box.gradient + K @ box.start

    def value(b: Array) -> float:
        return float(b @ K @ b / 2 - linear @ b + np.sum(epsilon * np.abs(b)))

    b = answer.b
    assert answer.violation <= tol
    assert (b >= box.lower).all() and (b <= box.upper).all()
    group = np.zeros(n, dtype=int) if box.group is None else box.group
    sums = np.bincount(group, b), np.bincount(group, box.start)
    np.testing.assert_allclose(*sums, rtol=0, atol=1e-9)
    slack = tol * (1.0 + float(np.abs(b).sum()))
    assert abs(value(b) - value(other.b)) <= slack, (value(b), value(other.b), slack)
    np.testing.assert_allclose(answer.gradient, linear - K @ b, rtol=0, atol=0.1 * tol + 1e-9)


# --- box paths -----------------------------------------------------------------------------------
#
# Paths of a backend: every step as good as a descent of its own, and as the reference.

_STEPS = (
    PathStep(0.1, 2.0, 3.0, 0.1),
    PathStep(1.0, 2.0, 1.0, 1.0, start=0),
    PathStep(30.0, 1.0, 0.5, 20.0, start=1),
    PathStep(0.5, 0.5, 1.0, 0.5, start=2),
    PathStep(2.0, 0.5, 1.0, 2.0, start=1),
)


def check_box_paths(backend: Backend) -> None:
    """Compare paths with epsilons, shifts, sums and runs of rows with the reference."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((90, 3))
    K = Reference().pairs(Exp(-0.5 * SqDist()), X, None, np.float64).dense()
    paths = list(_paths(rng, X[:, 0]))
    for matrix, tol in ((K, 1e-5), (K.astype(np.float32), 1e-3)):
        answers = backend.box_paths(matrix, paths, tol, 100_000, None)
        expected = Reference().box_paths(matrix, paths, tol, 100_000, None)
        assert len(answers) == len(paths)
        for path, answer, other in zip(paths, answers, expected, strict=True):
            for s, step in enumerate(path.steps):
                _check_step(matrix.astype(np.float64), path, step, s, answer, other, tol)
    (stopped,) = backend.box_paths(K, paths[:1], 1e-9, 100_000, lambda steps, violation: True)
    assert stopped.b.shape == (len(_STEPS), 90)
    assert backend.box_paths(K, [], 1e-9, 10, None) == []


def _paths(rng: np.random.Generator, targets: Array) -> Iterator[BoxPath]:
    """Return paths of classifiers, of tubes, and with two sums; the last rows are held out."""
    judged = np.array([88, 89, 3, 4, 5, 80, 79])
    for rows in (None, np.concatenate([np.arange(40, 77), np.arange(9, 30)]), rng.permutation(41)):
        own = np.arange(90) if rows is None else rows
        n = len(own)
        signs = np.where(targets[own] > 0, 1.0, -1.0)
        weights = rng.uniform(0.5, 2.0, n)
        nothing, none = np.zeros(n), np.zeros(1)
        lower, upper = weights * np.minimum(signs, 0.0), weights * np.maximum(signs, 0.0)
        yield BoxPath(Box(signs, nothing, lower, upper, rows=rows), none, _STEPS, judged)
        tube = Box(targets[own], nothing, -weights, weights, np.full(n, 0.1), rows=rows)
        yield BoxPath(tube, none, _STEPS, judged)
        far = np.full(n, np.inf)
        loose = Box(targets[own], nothing, -far, far, np.full(n, 0.1), 0.5 / weights, None, rows)
        yield BoxPath(loose, none, _STEPS, judged[:0])
        group = np.where(signs > 0, 0, 1)
        sums = 0.4 * min(weights[signs > 0].sum(), weights[signs < 0].sum()) * np.array([1.0, -1.0])
        nu = Box(nothing, 0.1 * signs, lower, upper, group=group, rows=rows)
        yield BoxPath(nu, sums, _STEPS, judged)


def _check_step(
    K: Array,
    path: BoxPath,
    step: PathStep,
    s: int,
    answer: BoxPathAnswer,
    other: BoxPathAnswer,
    tol: float,
) -> None:
    box, b = path.box, answer.b[s]
    own = np.arange(len(K)) if box.rows is None else box.rows
    shift = np.zeros(len(own)) if box.shift is None else step.shift * box.shift
    part = K[np.ix_(own, own)] + np.diag(shift)
    epsilon = 0.0 if box.epsilon is None else step.epsilon * box.epsilon

    def value(b: Array) -> float:
        return float(b @ part @ b / 2 - box.gradient @ b + np.sum(epsilon * np.abs(b)))

    assert answer.violation[s] <= tol
    assert (b >= step.bound * box.lower).all() and (b <= step.bound * box.upper).all()
    group = np.zeros(len(own), dtype=int) if box.group is None else box.group
    size = 1.0 + float(np.abs(b).sum())
    np.testing.assert_allclose(
        np.bincount(group, b), step.total * path.totals, rtol=0, atol=1e-9 * size
    )
    slack = tol * size
    assert abs(value(b) - value(other.b[s])) <= slack, (value(b), value(other.b[s]), slack)
    gradient = box.gradient - part @ b
    np.testing.assert_allclose(answer.gradient[s], gradient, rtol=0, atol=0.1 * tol * size)
    np.testing.assert_allclose(answer.offsets[s], other.offsets[s], rtol=0, atol=20 * tol)
    expected = K[np.ix_(path.evaluation_rows, own)] @ b
    np.testing.assert_allclose(answer.values[s], expected, rtol=0, atol=1e-4 * tol * size)


# --- neighbors ----------------------------------------------------------------------------------
#
# Conformance kit for nearest neighbors: the rows that the reference finds, in its order.

_NEIGHBOURS_SIZES = (2, 17, 192, 193, 400)  # rows around the edges of tiles


def check_neighbours(backend: Backend) -> None:
    """Compare the operation `neighbours` of a backend with the reference."""
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
            _neighbours_compare(backend, kernel, X, None, count)
            _neighbours_compare(backend, kernel, X, Y, count)
        _neighbours_compare(
            backend, kernel, sparse.csr_array(X), sparse.csr_array(np.where(Y > 0.8, Y, 0)), 7
        )
    for n in _NEIGHBOURS_SIZES:
        rows = rng.standard_normal((n, 3))
        for count in {1, min(n - 1, 10), n - 1}:
            _neighbours_compare(backend, Exp(-1.0 * SqDist()), rows, None, count)
    _check_ties(backend, rng)


def _check_ties(backend: Backend, rng: np.random.Generator) -> None:
    """Equal distances and equal rows, many of them: the smaller number comes first."""
    grid = rng.integers(0, 3, (300, 20)).astype(float)
    twice = np.repeat(rng.standard_normal((70, 20)), 4, axis=0)
    none = np.zeros((250, 20))
    for rows in (grid, twice, none, grid + 1e8, 2.0**-80 * grid, 2.0**66 * grid):
        _neighbours_compare(backend, Dot(), rows, None, 6)
        _neighbours_compare(backend, Exp(-1e-3 * SqDist()), rows, rows[::-1].copy(), 6)
    for rows in (grid, twice, none):
        _neighbours_compare(backend, Dot(), sparse.csr_array(rows), None, 6)


def _neighbours_compare(
    backend: Backend, kernel: Expression, X: Points, Y: Points | None, count: int
) -> None:
    label = f"{backend.name}: {count} neighbors by {kernel}, {type(X).__name__} {X.shape}"
    index, squared = backend.neighbours(kernel, X, Y, count)
    expected, distances = Reference().neighbours(kernel, X, Y, count)
    assert index.dtype == np.int64 and squared.dtype == np.float64, label
    assert index.shape == squared.shape == expected.shape, label
    scale = max(1e-300, float(np.abs(distances).max()))
    np.testing.assert_allclose(squared, distances, rtol=0, atol=1e-13 * scale, err_msg=label)
    assert (np.diff(squared, axis=1) >= 0).all(), label
    different = index != expected
    if different.any():  # rounding may change the order of equal distances only
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


# --- partition -----------------------------------------------------------------------------------
#
# Partitions of a backend are those of the reference: the same labels by the same way.


def check_partitions(backend: Backend) -> None:
    """Compare stored matrices and rows of features, dense and sparse, with the reference."""
    rng = np.random.default_rng(9)
    for n, d, k in ((1, 1, 1), (7, 2, 7), (40, 3, 1), (300, 5, 6), (700, 20, 11)):
        F, w = rng.standard_normal((n, d)), rng.integers(1, 4, n).astype(np.float64)
        K = F @ F.T
        for refine in (False, True):
            groups = Groups(_starts(rng, n, k), k, w, K.diagonal().copy(), 100, refine)
            expected = Reference().partition(K, groups, None)
            label = f"{backend.name}: {n} points, {k} groups, refine={refine}"
            _partition_compare(backend.partition(K, groups, None), expected, label)
            for rows in (F, sparse.csr_array(F)):
                _partition_compare(
                    backend.features(rows, None).partition(groups, None), expected, label
                )
            single = backend.partition(K.astype(np.float32), groups, None)
            for answer in single:
                assert (np.diff(answer.trace[:, 0]) < 0).all(), label
                assert len(np.unique(answer.labels)) == k, label


def _starts(rng: np.random.Generator, n: int, k: int) -> Array:
    starts = [np.append(np.arange(k), rng.integers(0, k, n - k)) for _ in range(3)]
    return np.stack(starts).astype(np.int32)


def _partition_compare(found: list[GroupAnswer], expected: list[GroupAnswer], label: str) -> None:
    for answer, other in zip(found, expected, strict=True):
        assert (answer.labels == other.labels).all(), label
        assert answer.converged and other.converged, label
        assert answer.trace.shape == other.trace.shape, label
        size = max(1.0, float(other.trace[0, 0]))
        assert np.abs(answer.trace[:, 0] - other.trace[:, 0]).max() <= 1e-9 * size, label
