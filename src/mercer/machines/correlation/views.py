"""Two views of the same rows: read, centred, weighted, and what is kept of them after the fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.certificates import Certificate, certify
from mercer.gram import Expansion, Gram, centered, exact, scaled
from mercer.gram.base import RKHSFunction
from mercer.gram.build import factor_gram
from mercer.gram.definite import has_negative_curvature
from mercer.gram.policy import WRITTEN_OUT
from mercer.gram.storage.factored import FeatureExpansion
from mercer.gram.transformed.centered import CenteredFeatures
from mercer.kernels import Kernel, Linear
from mercer.machines.base.certificate import (
    LazyDataCertificate,
    LazyPointsCertificate,
    lazy_certificate,
)
from mercer.machines.base.inputs import read_array, refuse_nonfinite
from mercer.machines.projection.components import moments
from mercer.machines.projection.origin import moved
from mercer.points import as_points, is_objects, is_sequence_data, is_sparse, row_count, to_dense
from mercer.problems import CanonicalPairs, Correlation
from mercer.solvers.spectral.signs import signs_of


@dataclass(frozen=True)
class Reader:
    """How rows of the second view look, so that new ones are held against it.

    Attributes
    ----------
    machine : str
        The name of the machine, for errors.
    precomputed : bool
        Whether rows are rows of a given matrix.
    width : int or None
        The number of columns; None for strings.
    flat : bool
        Whether the view came as one column without a second axis.
    names : tuple of str or None
        Names of the columns.
    """

    machine: str
    precomputed: bool
    width: int | None
    flat: bool
    names: tuple[str, ...] | None

    @property
    def has_rows(self) -> bool:
        """Return whether the view is made of rows of numbers, which can be predicted."""
        return self.width is not None and not self.precomputed

    def new(self, Y: Any) -> Points:
        """Check new rows of the second view."""
        points, _ = _read(self.machine, Y, self.precomputed)
        width = None if is_objects(points) else points.shape[1]
        if width != self.width:
            had, has = ("strings" if w is None else f"{w} column(s)" for w in (self.width, width))
            raise ValueError(f"{self.machine} was fitted to y with {had}, but this y has {has}")
        names = _names(Y)
        if None not in (names, self.names) and names != self.names:
            raise ValueError(
                f"{self.machine}: the columns of y must be those of fit, in the same order: "
                f"{', '.join(self.names or ())}; but these are {', '.join(names or ())}"
            )
        return points


def second_view(machine: Any, Y: Any, precomputed: bool) -> tuple[Points, Reader]:
    """Check training rows of the second view."""
    name = type(machine).__name__
    if Y is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None: y is the second view"
        )
    points, flat = _read(name, Y, precomputed)
    width = None if is_objects(points) else int(points.shape[1])
    return points, Reader(name, precomputed, width, flat, _names(Y))


def _read(name: str, Y: Any, precomputed: bool) -> tuple[Points, bool]:
    if is_sequence_data(Y) and not _numbers_in_text(Y):
        return as_points(Y), False
    rows = read_array(name, Y, "y", accept_sparse=False if precomputed else "csr", ensure_2d=False)
    flat = rows.ndim == 1
    if rows.ndim > 2:
        raise ValueError(f"{name}: y must have one or two axes, not {rows.ndim}")
    rows = as_points(rows[:, None] if flat else rows)
    refuse_nonfinite(name, rows, "y")
    return rows, flat


def _numbers_in_text(Y: Any) -> bool:
    """Tell a column of numbers held as objects from one of strings."""
    held = isinstance(Y, np.ndarray) and Y.dtype == object
    return bool(held) and not isinstance(Y.flat[0], str | list | tuple)


def _names(Y: Any) -> tuple[str, ...] | None:
    columns = getattr(Y, "columns", None)
    if columns is None or not all(isinstance(c, str) for c in columns):
        return None
    return tuple(columns)


@dataclass(frozen=True, eq=False)
class Densified:
    """Features written out, for few of them."""

    features: Any

    def __call__(self, Z: Points) -> Array:
        """Map points to dense features."""
        return to_dense(self.features(Z))


def prepared(gram: Gram, weights: Array) -> Gram:
    """Centre a Gram by the weighted mean, and count every row as often as its weight says."""
    if is_sparse(gram.factor):
        if gram.factor.shape[0] * gram.factor.shape[1] <= WRITTEN_OUT:
            gram = factor_gram(Densified(gram.features), to_dense(gram.factor))
    centred = _centred(gram, weights)
    return centred if (weights == 1.0).all() else scaled(centred, np.sqrt(weights))


def _centred(gram: Gram, weights: Array) -> Gram:
    """Centre; dense features by a mean from which rounding was taken off."""
    if not isinstance(gram.factor, np.ndarray):
        return centered(gram, weights)
    mean = moments(gram.factor, weights)[0]
    return factor_gram(CenteredFeatures(gram.features, mean), gram.factor - mean)


@dataclass(frozen=True, eq=False)
class FittedView:
    """The functions of one view.

    Attributes
    ----------
    kernel : Kernel
        The kernel used.
    expansion : Expansion
        Returns the canonical variates of new rows.
    """

    kernel: Kernel
    expansion: Expansion

    def variates(self, machine: str, Z: Points) -> Array:
        """Evaluate at new rows."""
        values = self.expansion(Z)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise ValueError(
                f"{machine}: kernel value not finite: {self.kernel!r} overflows on {len(bad)} of "
                f"{row_count(Z)} new rows, the first is row {bad[0]}. Scale the features, or use a "
                "smaller degree."
            )
        return values


def column_weights(view: FittedView | None, name: str) -> Array:
    """Return the weights of the columns of a linear view; else say when there are any."""
    if view is not None and isinstance(view.kernel, Linear):
        if isinstance(view.expansion, FeatureExpansion):
            return view.expansion.weights
    raise AttributeError(f"{name} exists after a fit with a linear kernel in primal space")


def correlations_of(U: Array, V: Array, weights: Array) -> Array:
    """Return the weighted correlation of each column of U with that of V; 0 for constants."""
    share = weights / weights.sum()
    U, V = U - share @ U, V - share @ V
    sizes = np.sqrt((share @ U**2) * (share @ V**2))
    cross = share @ (U * V)
    return np.where(sizes > 0, cross / np.where(sizes > 0, sizes, 1.0), 0.0)


# --- from two Grams to canonical functions: the steps of `CCA.fit` that need no parameters' checks

Grams = tuple[Gram, Gram]

_QUICK = 3000  # rows: judging takes products of matrices that the fit has decomposed


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

    quick = first.shape[0] <= _QUICK
    eager = quick or (not other.valid and has_negative_curvature(other))
    if is_sparse(first.factor):
        return LazyDataCertificate(question(first), value, judge, eager, first.shape[0])
    return lazy_certificate(first, question, value, judge, weights, eager=eager)
