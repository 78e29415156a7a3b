"""Columns of a linear kernel far from zero: a machine with a free constant moves the origin.

A constant that costs nothing absorbs where the origin is: w'x + b = w'(x - c) + (b + w'c). By
coefficients of the rows, which then add up to zero, that holds to rounding only, and a column of
1e8 multiplies what is left of the sum twice. Problems are therefore written, solved and certified
for rows less c, which keep all of their digits; a constant column is zero then. What is left to
rounding is f at rows as they were given, w'x + b, which the certificate counts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.gram import Expansion, FactoredGram, Gram
from mercer.gram.accurate_products import gamma
from mercer.gram.centering import CenteredFeatures
from mercer.gram.factored import FeatureExpansion
from mercer.kernels import Kernel, Linear
from mercer.kernels.features import feature_map
from mercer.machines.base.certificate import Judge, LazyDataCertificate, LazyPointsCertificate
from mercer.resources import within_budget
from mercer.rows.points import is_objects, is_sparse, take, to_host
from mercer.solvers.certificate import Certificate

# Squared, over the squares of what all columns range over: below, the rounding of sums times the
# column squared is no more than 1e-13 of what the columns do.
_FAR = 1e3


def far_origin(kernel: Kernel, X: Points, rows: Array) -> Array | None:
    """Return the middle of columns that are far from zero, zero for others; None where none is.

    None, too, where memory has no room for the rows once more.

    Parameters
    ----------
    kernel : Kernel
        What compares the rows.
    X : Points
        Rows.
    rows : int array
        Those that count.

    Examples
    --------
    >>> import numpy as np
    >>> far_origin(Linear(), np.array([[1.0, 1e8], [2.0, 1e8 + 2.0]]), np.arange(2))
    array([0.00000000e+00, 1.00000001e+08])
    """
    if not isinstance(kernel, Linear) or is_objects(X) or is_sparse(X):
        return None
    X = X if len(rows) == len(X) else take(X, rows)
    low, high = (np.asarray(end, dtype=np.float64) for end in (X.min(axis=0), X.max(axis=0)))
    with np.errstate(over="ignore"):  # ranges whose squares overflow are far from nothing
        spread = float(((high - low) ** 2).sum())
        far = np.maximum(high, -low) ** 2 > _FAR * spread
    if not far.any() or not spread < np.inf or not within_budget(8.0 * X.shape[0] * X.shape[1]):
        return None
    return np.where(far, low + (high - low) / 2, 0.0)


def less_origin(X: Points, origin: Array | None) -> Points:
    """Return rows less the origin, in float64: they keep all of their digits."""
    return X if origin is None else np.asarray(to_host(X), dtype=np.float64) - origin


def about_origin(kernel: Kernel, X: Points, rows: Array) -> FactoredGram | None:
    """Return the Gram of rows less an origin, where columns are far from zero; else None.

    For machines with a free constant whose functions stay those of rows less the origin: new rows
    are moved, too, before anything is multiplied, and no digit is lost. There may be more columns
    than rows.

    Parameters
    ----------
    kernel : Kernel
        What compares the rows.
    X : Points
        Rows.
    rows : int array
        Those that count.
    """
    origin = far_origin(kernel, X, rows)
    if origin is None:
        return None
    features = feature_map(Linear().expression(), len(origin))
    assert features is not None
    F = less_origin(X if len(rows) == len(X) else take(X, rows), origin)
    return FactoredGram.of(CenteredFeatures(features, origin), F)


def less_given(expansion: Expansion, origin: Array | None) -> Expansion:
    """Return f of rows less the origin as a function of rows as they are given, which it moves."""
    if origin is None:
        return expansion
    features = feature_map(Linear().expression(), len(origin))
    assert features is not None
    weights = weights_of(expansion, len(origin))
    return FeatureExpansion(CenteredFeatures(features, origin), weights, np.zeros(weights.shape[1]))


def constant_as_given(gram: Gram, weights: Array | None, constants: Array) -> Array:
    """Return the constants of w'x + b at rows as they are given, from those of rows less an origin.

    Parameters
    ----------
    gram : Gram
        That of the fit; its features say what was taken off.
    weights : (d, k) array or None
        w.
    constants : (k,) array
        b of rows less the origin.
    """
    if weights is None or not isinstance(gram.features, CenteredFeatures):
        return constants
    return np.asarray(constants - gram.features.mean @ weights)


def as_given(expansion: Expansion, constants: Array, origin: Array | None) -> tuple[Any, Array]:
    """Return f of rows as they are given, and its constants, from that of rows less the origin.

    Parameters
    ----------
    expansion : Expansion
        f less its constants.
    constants : (k,) array
        What is added to it at rows less the origin.
    origin : (d,) array or None
        What was taken off the rows, if anything was.
    """
    if origin is None:
        return expansion.plus(constants), constants
    weights = weights_of(expansion, len(origin))
    features = feature_map(Linear().expression(), len(origin))
    assert features is not None
    constants = constants - origin @ weights
    return FeatureExpansion(features, weights, constants), constants


def balanced(coef: Array) -> Array:
    """Return coefficients of rows whose columns add up to zero, as a free constant has them.

    What solvers and rounding leave of a sum is multiplied by the origin squared where coefficients
    meet rows as they are given. The smallest entry that is larger takes it: it has the most digits.

    Parameters
    ----------
    coef : (n, k) array
        Coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> balanced(np.array([[0.5], [-0.25], [-0.25 + 1e-12]])).sum()
    np.float64(0.0)
    """
    coef = coef.copy()
    for column in coef.T:
        for _ in range(2):  # the first leaves what the entry cannot hold
            left, sizes = math.fsum(column), np.abs(column)
            if left != 0.0 and sizes.max() > abs(left):
                column[np.where(sizes > abs(left), sizes, np.inf).argmin()] -= left
    return coef


def weights_of(expansion: Any, width: int) -> Array:
    """Return w of linear functions w'x + b, (width, k): their values at unit vectors less b."""
    ends = sparse.vstack([sparse.eye_array(width), sparse.csr_array((1, width))], format="csr")
    # a constant that is large beside w would take its digits
    values = expansion.plus(-expansion.offset)(ends)
    return np.asarray(values[:-1] - values[-1])


def counting_rounding(
    judgement: LazyPointsCertificate | LazyDataCertificate | Certificate,
    expansion: Any,
    origin: Array | None,
    strict: bool = True,
) -> LazyPointsCertificate | LazyDataCertificate | Certificate:
    """Return a certificate, or what makes it, that counts what f loses at rows as given.

    Higham (3.5): gamma_d of the sizes of d products, for w'x and for the constant. That is counted
    at the origin; what the distance from it adds is that of the rows less the origin.

    Parameters
    ----------
    judgement : Certificate, or what makes it
        Of the problem of rows less the origin.
    expansion : FeatureExpansion
        f of rows as they are given.
    origin : (d,) array or None
        What was taken off the rows.
    strict : bool
        Whether the error of the constant is judged, and not the objective alone.
    """
    if origin is None:
        return judgement
    # w'x, and w'c in the constant: sums of d products, and of two numbers, all of which round
    size = float((np.abs(origin) @ np.abs(expansion.weights)).max())
    lost = 2.0 * gamma(len(origin) + 4) * size
    if lost == 0.0:  # only constant columns were far
        return judgement
    if isinstance(judgement, Certificate):
        return _counted(judgement, lost, strict)
    judge = partial(_judged, judgement.judge, lost, strict)
    return replace(judgement, judge=judge, eager=True)


def _judged(judge: Judge, lost: float, strict: bool, problem: Any, value: Any) -> Certificate:
    return _counted(judge(problem, value), lost, strict)


def _counted(found: Certificate, lost: float, strict: bool) -> Certificate:
    """Add what is lost to the error of the constant, judge what is lost, and say it."""
    said = f"{found.statement}; at rows so far from zero values are known to {lost:.0e}"
    measured: Any = found.quantities
    # near its optimum an objective changes by squares: a thousandth of values is a millionth of it
    ok = lost**2 <= found.tol
    if hasattr(measured, "intercept_error"):
        measured = replace(measured, intercept_error=measured.intercept_error + lost)
        ok = ok and (not strict or measured.intercept_error <= found.tol)
    return replace(found, ok=bool(found.ok and ok), quantities=measured, statement=said)
