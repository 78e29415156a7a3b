"""Are these the canonical correlations? Recomputed on the data, and tried to be improved.

From the coefficients alone: the variates G c of both views, their penalised variances and
correlations, and the equations of a maximum. Then the answer is put into a larger space (a few
steps of block Krylov from random vectors and from the variates of the other view), where the best
pairs are found exactly. What that gains is a proof that the answer was not the best; where it gains
nothing, a direction that was missed would have to be orthogonal to all probes. Of features without
a penalty the whole space is taken, each column by its direction alone: no scale spoils that.
Variances are squares only if both Grams are positive semidefinite.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isnan
from typing import NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, definiteness, exact
from mercer.gram.accurate_products import gamma
from mercer.machines.correlation.problem import CanonicalPairs, Correlation, Shrinkage, column_sizes
from mercer.solvers.certificate import Certificate, certify

_TOL = 1e-6
_PROBES = 8
_STEPS = 3
_EPS = float(np.finfo(float).eps)
_MORE = 12  # roundings of what a bound is computed from, beside those of its sums
_DEPENDENT = 1e-10  # of the largest singular value of unit columns
_NOTHING = 1e-12  # of the largest penalised variance in the larger space


@dataclass(frozen=True)
class CorrelationQuantities:
    """Measures of a set of canonical pairs.

    Attributes
    ----------
    first_correlation : float
        Plain correlation of the first two variates on the training rows, without any penalty.
    correlation_error : float
        Largest difference between a correlation as claimed and as recomputed, penalty included.
    normalisation : float
        Largest entry of |C'MC - I| over both views: unit penalised variances, orthogonality; and
        by how much weights and coefficients of one direction differ.
    cross : float
        Largest correlation between variates of different pairs.
    residual : float
        Largest |G_x G_y c_y - rho M_x c_x|, either view, over the largest |G_x G_y c_y|.
    gain : float
        By how much a larger space than that of the answer raises a correlation; NaN where a view
        varies by less than the rounding of its Gram, so that nothing can be said.
    share_x, share_y : float
        Share of the variance of each view that lies along its variates.
    bound : float
        How far an approximation may have moved the correlations, as the answer says.
    indefiniteness : float
        What is added to the diagonals of both Grams to make them positive semidefinite: zero by the
        construction of the kernels, rounding where a Gram was factored, infinite where that is not
        shown.
    """

    first_correlation: float
    correlation_error: float
    normalisation: float
    cross: float
    residual: float
    gain: float
    share_x: float
    share_y: float
    bound: float
    indefiniteness: float = 0.0


class _ViewSide(NamedTuple):
    """One view of an answer: its Gram, penalty, coefficients and variates.

    Where there are features and no penalty, also an orthonormal basis of all variates.
    """

    gram: Gram
    penalty: float
    c: Array
    Gc: Array
    basis: Array | None
    mismatch: float


@certify.register
def _(problem: Correlation, value: CanonicalPairs, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    used = np.flatnonzero(value.coef_x.any(axis=0) & value.coef_y.any(axis=0))
    held = [(value.coef_x, value.weights_x), (value.coef_y, value.weights_y)]
    sides = [
        _side(*view, c[:, used], None if w is None else w[:, used])
        for view, (c, w) in zip(problem.views, held, strict=True)
    ]
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        quantities = _measure(problem, value, value.values[used], sides, tol)
    convex = [definiteness(gram) for gram, _ in problem.views]
    quantities = replace(quantities, indefiniteness=max(view.shift for view in convex))
    measured = (
        quantities.correlation_error,
        quantities.normalisation,
        quantities.cross,
        quantities.residual,
        quantities.gain,
    )
    claims_nothing = not np.delete(value.values, used).any()
    ok = claims_nothing and all(np.isfinite(q) and q <= tol for q in measured)
    statement = _statement(quantities, len(used), tol)
    obstacles = [view.obstacle for view in convex if not view.shown]
    if obstacles and not np.isnan(quantities.gain):
        statement = (
            f"of a view, {obstacles[0]}, so variances are no squares, nor correlations cosines"
        )
    return Certificate(bool(ok and not obstacles), quantities, tol, statement)


def _statement(q: CorrelationQuantities, pairs: int, tol: float) -> str:
    if np.isnan(q.gain):
        return (
            "rounding of the kernel matrix of a view hides its variance, or may change a "
            "correlation by more than the tolerance, so nothing can be said; move its samples "
            "nearer to the origin, or use weights of similar size"
        )
    if q.gain > tol:
        return f"a correlation can be raised by {q.gain:.1e}: these are not the largest"
    if not pairs:
        return "no direction of a view varies by more than rounding, so all correlations are zero"
    text = (
        f"{pairs} canonical correlations agree with the data to {q.correlation_error:.1e}, and a "
        f"larger space raises none by more than {max(q.gain, 0.0):.1e}"
    )
    return text + (f"; the approximation is proven to {q.bound:.1e} only" if q.bound else "")


def _side(gram: Gram, penalty: float, c: Array, w: Array | None) -> _ViewSide:
    gram, c = exact(gram), np.asarray(c, dtype=np.float64)
    if not isinstance(gram.factor, np.ndarray):
        return _ViewSide(gram, penalty, c, np.asarray(gram @ c), None, 0.0)
    basis = _basis(gram) if penalty == 0 else None
    if w is None:
        return _ViewSide(gram, penalty, c, np.asarray(gram @ c), basis, 0.0)
    variates = gram.factor @ w
    if penalty == 0:
        return _ViewSide(gram, penalty, c, variates, basis, _away(gram.factor, c, variates))
    sizes = np.maximum(np.abs(w).max(axis=0, initial=0.0), np.finfo(float).tiny)
    away = np.linalg.norm((w - gram.factor.T @ c) / sizes, axis=0)
    return _ViewSide(
        gram, penalty, c, variates, basis, _most(away / np.linalg.norm(w / sizes, axis=0))
    )


def _away(F: Array, c: Array, variates: Array) -> float:
    """Compare the variates of weights with those of coefficients, beyond rounding of the latter.

    Without a penalty the columns may be of any scale: what the large ones leave of the small ones
    in F F'c is rounding, and says nothing about c. It is at most gamma_(n + d) |F| |F|'|c|, Higham
    (3.5).
    """
    size = np.abs(F)
    rounding = gamma(sum(F.shape) + _MORE) * (size @ (size.T @ np.abs(c)))
    over = np.maximum(np.abs(F @ (F.T @ c) - variates) - rounding, 0.0)
    lengths = np.maximum(np.linalg.norm(variates, axis=0), np.finfo(float).tiny)
    return _most(np.linalg.norm(over, axis=0) / lengths)


def _basis(gram: Gram) -> Array:
    """Return an orthonormal basis of the columns of centred features."""
    sizes = column_sizes(gram)
    Q, R = np.linalg.qr(gram.factor[:, sizes > 0] / sizes[sizes > 0])
    W, sigma, _ = np.linalg.svd(R)
    return np.asarray(Q @ W[:, : len(sigma)][:, sigma > _DEPENDENT * sigma.max(initial=0.0)])


def _measure(
    problem: Correlation, value: CanonicalPairs, rho: Array, sides: list[_ViewSide], tol: float
) -> CorrelationQuantities:
    x, y = sides
    form, unit = problem.form, np.eye(len(rho))
    metrics = [form.metric(s.c, s.Gc, s.penalty) for s in sides]
    roots = [np.sqrt(np.maximum(m.diagonal(), np.finfo(float).tiny)) for m in metrics]
    cross = x.Gc.T @ y.Gc / np.outer(*roots)
    return CorrelationQuantities(
        _plain(x.Gc, y.Gc),
        _most(cross.diagonal() - rho),
        max(*(_most(m - unit) for m in metrics), x.mismatch, y.mismatch),
        _most(cross * (1 - unit)),
        max(_residual(form, x, y, rho), _residual(form, y, x, rho)),
        _gain(form, x, y, cross.diagonal(), problem.count, tol),
        _share(x),
        _share(y),
        float(value.bound),
    )


def _plain(u: Array, v: Array) -> float:
    if not u.shape[1]:
        return 0.0
    a, b = u[:, 0], v[:, 0]
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0 else 0.0


def _residual(form: Shrinkage, x: _ViewSide, y: _ViewSide, rho: Array) -> float:
    if x.basis is not None:
        pull, left = x.basis.T @ y.Gc, x.basis.T @ (y.Gc - rho * x.Gc)
        largest = np.linalg.norm(pull, axis=0).max(initial=0.0)
        return _most(np.linalg.norm(left, axis=0)) / max(float(largest), np.finfo(float).tiny)
    pull = np.asarray(x.gram @ y.Gc)
    left = pull - rho * form.times(x.gram, x.c, x.Gc, x.penalty)
    largest = np.linalg.norm(pull, axis=0).max(initial=0.0)
    return _most(np.linalg.norm(left, axis=0)) / max(float(largest), np.finfo(float).tiny)


def _share(side: _ViewSide) -> float:
    trace = float(side.gram.diag().sum())
    if trace <= 0 or not side.Gc.shape[1]:
        return 0.0
    Q = np.linalg.qr(side.Gc)[0]
    return float(np.einsum("ij,ij->", Q, side.gram @ Q)) / trace


def _gain(form: Shrinkage, x: _ViewSide, y: _ViewSide, rho: Array, count: int, tol: float) -> float:
    """Find the best pairs in a space that holds the answer and more; return what they gain."""
    unresolved = [_unresolved(side, tol) for side in (x, y)]
    if any(unresolved):
        alike = all(_alike(side.gram) for side, bad in zip((x, y), unresolved, strict=True) if bad)
        return 0.0 if alike else float("nan")
    (cx, ux), (cy, uy) = _larger(x, y.Gc), _larger(y, x.Gc)
    Rx = _whitening(form.metric(cx, ux, x.penalty))
    Ry = _whitening(form.metric(cy, uy, y.penalty))
    better = np.linalg.svd(Rx.T @ (ux.T @ uy) @ Ry, compute_uv=False)[:count]
    held = np.zeros(len(better))
    held[: len(rho)] = np.sort(rho)[::-1][: len(better)]
    return float((better - held).max(initial=0.0))


def _unresolved(side: _ViewSide, tol: float) -> bool:
    """Return whether rounding of its means is all of a centered Gram, or much of its trace.

    The penalty is a share of the trace, so that a relative change of that moves correlations by as
    much; rounding of an entry counts as often as its sample does. An estimate, for errors of both
    signs; by it nothing is claimed, but that nothing can be said.
    """
    if side.basis is not None:
        return False
    base, trace = side.gram.raw, float(side.gram.diag().sum())
    n, largest = base.shape[0], float(np.abs(base.diag()).max(initial=0.0))
    weight = float(np.square(getattr(side.gram, "scale", np.ones(n))).sum())
    rounding = 4 * _EPS * largest * weight
    return trace <= np.sqrt(n) * rounding or tol * trace < rounding


def _alike(gram: Gram) -> bool:
    """Return whether the entries of a Gram before centring are all the same: rows do not vary.

    But for a few roundings of the largest: an allowance, and no bound of what means may be off by.
    """
    base = gram.raw
    n, diag = base.shape[0], base.diag()
    means = np.asarray(base @ np.full((n, 1), 1.0 / n)).ravel()
    rounding = 16 * _EPS * float(np.abs(diag).max(initial=0.0))
    return bool(max(np.ptp(diag), np.ptp(means), abs(diag[0] - means[0])) <= rounding)


def _larger(side: _ViewSide, other: Array) -> tuple[Array, Array]:
    """Return a space of coefficients that holds the answer's, and its variates, in unit columns."""
    if side.basis is not None:  # all there is; coefficients mean nothing without a penalty
        return np.zeros_like(side.basis), side.basis
    n = side.gram.shape[0]
    block = np.hstack([other, np.random.default_rng(0).standard_normal((n, min(_PROBES, n)))])
    c, u = [side.c], [side.Gc]
    for _ in range(_STEPS):
        block = np.linalg.qr(block)[0]
        product = np.asarray(side.gram @ block)
        c.append(block)
        u.append(product)
        block = product
    coefs, variates = np.hstack(c), np.hstack(u)
    size = np.linalg.norm(variates, axis=0) + side.penalty * np.linalg.norm(coefs, axis=0)
    size = np.where(size > _NOTHING * size.max(initial=0.0), size, np.inf)
    return coefs / size, variates / size


def _whitening(metric: Array) -> Array:
    """Return R with R'MR = I on the directions that are more than rounding."""
    values, vectors = np.linalg.eigh((metric + metric.T) / 2)
    kept = values > max(_NOTHING * values.max(initial=0.0), np.finfo(float).tiny)
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _most(values: Array) -> float:
    found = float(np.abs(values).max(initial=0.0))
    return inf if isnan(found) else found  # a number, so that `max` and comparisons see it
