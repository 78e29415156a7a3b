"""From two Grams to canonical functions: the steps of `CCA.fit` that need no parameters' checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer.array_types import Array, Points
from mercer.certificates import Certificate, certify
from mercer.gram import Gram, exact
from mercer.gram.definite import has_negative_curvature
from mercer.gram.function import RKHSFunction
from mercer.kernels import Kernel
from mercer.machines.base.certificate import (
    LazyDataCertificate,
    LazyPointsCertificate,
    lazy_certificate,
)
from mercer.machines.correlation.views import FittedView, prepared
from mercer.machines.projection.origin import moved
from mercer.points import is_sparse
from mercer.problems import CanonicalPairs, Correlation
from mercer.solvers.spectral.signs import signs_of

Grams = tuple[Gram, Gram]

_SLIGHT = 1e-4  # of the mean of k(x, x): a penalty below leaves K nearly singular
_QUICK = 3000  # rows: an approximation is judged at once, where all pairs of them are few


@dataclass(frozen=True, eq=False)
class Regression:
    """Least squares on canonical variates.

    Attributes
    ----------
    slopes : (k, t) array
        What each variate adds.
    centre : (t,) array
        The mean.
    """

    slopes: Array
    centre: Array

    def __call__(self, variates: Array) -> Array:
        """Predict from variates."""
        return np.asarray(variates @ self.slopes + self.centre)


def regression(
    grams: Grams, value: CanonicalPairs, rows: Points | None, weights: Array
) -> Regression:
    """Regress the second view on the variates of the first.

    The variates have mean zero, so the mean of the targets takes no part in the slopes, and sparse
    rows stay sparse.

    Parameters
    ----------
    grams : tuple of two Grams
        Both views.
    value : CanonicalPairs
        Their canonical pairs.
    rows : (n, t) array, sparse array or None
        What is predicted; None for the variates of the second view.
    weights : (n,) array
        How often each row counts.
    """
    u = training_variates(grams[0], value.coef_x, value.weights_x, weights)
    second = value.coef_y, value.weights_y
    targets = training_variates(grams[1], *second, weights) if rows is None else rows
    share = weights / weights.sum()
    weighted = u * share[:, None]
    centre = np.asarray(targets.T @ share).ravel()
    cross = np.asarray(targets.T @ weighted).T - np.outer(weighted.sum(axis=0), centre)
    return Regression(np.linalg.pinv(u.T @ weighted, hermitian=True) @ cross, centre)


def training_variates(gram: Gram, coef: Array, held: Array | None, weights: Array) -> Array:
    """Return the variates of the training rows, of unit variance but for the penalty."""
    values = RKHSFunction(gram, coef, held).at_points()
    return np.asarray(values * np.sqrt(weights.sum() / weights)[:, None])


def fitted_view(
    kernel: Kernel,
    gram: Gram,
    coef: Array,
    held: Array | None,
    mean: Array | None,
    scale: float,
) -> FittedView:
    """Return the functions of a view: by weights of its features where the answer has them."""
    f = RKHSFunction(gram, scale * coef, None if held is None else scale * held)
    return FittedView(kernel, f.expand() if f.is_primal else moved(f.expand(), mean))


def signed(value: CanonicalPairs, gram: Gram, weights: Array) -> CanonicalPairs:
    """Make the first of the largest variates of each component positive.

    The solver looked for it among variates scaled by weights; those of the rows themselves are what
    repetition leaves as they are.
    """
    if (weights == 1.0).all():
        return value
    turn = signs_of(training_variates(gram, value.coef_x, value.weights_x, weights))
    names = ("coef_x", "coef_y", "weights_x", "weights_y")
    held = {name: getattr(value, name) for name in names}
    return replace(value, **{name: v * turn for name, v in held.items() if v is not None})


def promised(
    bases: Grams, weights: Array, problem: Correlation, value: CanonicalPairs, tol: float | None
) -> LazyPointsCertificate | LazyDataCertificate | Certificate:
    """Promise a certificate that keeps rows of both views, not their matrices."""
    swap = bases[0].factor is not None  # a kernel to be evaluated again comes first
    first, other = bases[::-1] if swap else bases
    second = exact(other)
    asked = partial(Correlation, count=problem.count, penalties=problem.penalties)

    def question(gram: Gram) -> Correlation:
        pair = prepared(gram, weights), prepared(second, weights)
        x, y = pair[::-1] if swap else pair
        return asked(gram_x=x, gram_y=y, form=problem.form)

    def judge(problem: Correlation, value: CanonicalPairs) -> Certificate:
        return certify(problem, value, tol)

    if is_sparse(first.factor):
        return LazyDataCertificate(question(first), value, judge)
    unseen = any(gram.source is not None and not gram.valid for gram in bases)
    slight = any(
        penalty < _SLIGHT * float(np.abs(gram.diag()).mean())
        for penalty, gram in zip(problem.penalties, bases, strict=True)
    )
    rough = (unseen or slight or value.bound > (tol or 0.0)) and first.shape[0] <= _QUICK
    doubtful = rough or has_negative_curvature(other)
    return lazy_certificate(first, question, value, judge, weights, doubtful=doubtful)
