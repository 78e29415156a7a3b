"""Two views of the same rows, prediction of one from the other, and choice of the penalty."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Expansion, Gram, centered, exact, pivoted_cholesky, scaled
from mercer.gram.base import RKHSFunction
from mercer.gram.build import factor_gram
from mercer.gram.centering import CenteredFeatures
from mercer.gram.definite import has_negative_curvature
from mercer.gram.factored import FeatureExpansion
from mercer.gram.policy import WRITTEN_OUT
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.machines.base.certificate import (
    LazyDataCertificate,
    LazyPointsCertificate,
    lazy_certificate,
)
from mercer.machines.base.inputs import read_array, refuse_nonfinite
from mercer.machines.base.parameters import is_real, refuse
from mercer.machines.correlation.problem import CanonicalPairs, Correlation, Shrinkage
from mercer.machines.correlation.solvers import has_features
from mercer.machines.decomposition.components import moments, moved
from mercer.rows.points import (
    as_points,
    is_objects,
    is_sequence_data,
    is_sparse,
    row_count,
    to_dense,
)
from mercer.solvers.base import Watch
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.eigen.block_lanczos import largest_pairs
from mercer.solvers.eigen.dense import signs_of

# --- views ---------------------------------------------------------------------------------------
#
# Two views of the same rows: read, centred, weighted, and what is kept of them after the fit.


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


# --- prediction ----------------------------------------------------------------------------------
#
# One view from the other: by least squares on its variates, or from variate to variate.


@dataclass(frozen=True, eq=False)
class Route:
    """From the variates of one view to the rows of the other, in two ways.

    Attributes
    ----------
    rows : Regression
        The rows themselves, by least squares on the variates of the first view.
    variates : Regression
        The variates of the other view, likewise.
    from_variates : Regression
        The rows of the other view from its own variates, likewise.
    """

    rows: Regression
    variates: Regression
    from_variates: Regression

    def by(self, through: str) -> Regression:
        """Return what predicts rows: straight, or by way of the variates of their own view."""
        if through == "least_squares":
            return self.rows
        slopes = self.variates.slopes @ self.from_variates.slopes
        return Regression(slopes, self.from_variates(self.variates.centre))


THROUGH = ("least_squares", "variates")


def routes(
    grams: Grams,
    value: CanonicalPairs,
    targets: tuple[Points | None, Points | None],
    weights: Array,
) -> tuple[Route, Route]:
    """Return how the second view is predicted from the first, and the first from the second.

    Parameters
    ----------
    grams : pair of Gram
        Both views, prepared.
    value : CanonicalPairs
        Their canonical pairs.
    targets : pair of (n, t) arrays, sparse arrays or None
        Rows of both views; None where a view is not made of numbers, and its variates are
        predicted.
    weights : (n,) array
        How often each row counts.
    """
    u = training_variates(grams[0], value.coef_x, value.weights_x, weights)
    v = training_variates(grams[1], value.coef_y, value.weights_y, weights)
    x, y = (own if rows is None else rows for own, rows in zip((u, v), targets, strict=True))
    return _route(u, v, y, weights), _route(v, u, x, weights)


def _route(u: Array, v: Array, rows: Points, weights: Array) -> Route:
    return Route(regressed(u, rows, weights), regressed(u, v, weights), regressed(v, rows, weights))


def regressed(u: Array, targets: Points, weights: Array) -> Regression:
    """Regress targets, rows or variates, on variates.

    These have mean zero, so the mean of the targets takes no part in the slopes, and sparse rows
    stay sparse.
    """
    share = weights / weights.sum()
    weighted = u * share[:, None]
    centre = np.asarray(targets.T @ share).ravel()
    cross = np.asarray(targets.T @ weighted).T - np.outer(weighted.sum(axis=0), centre)
    return Regression(np.linalg.pinv(u.T @ weighted, hermitian=True) @ cross, centre)


# --- penalty -------------------------------------------------------------------------------------
#
# The penalty of a canonical correlation: as the parameter says, or chosen by held-out rows.
#
# A penalty is a share of the total variance of its view in feature space, sum_i s_i
# |phi_c(x_i)|^2: the scale of a kernel, the number of rows and their weights do not matter.

Pair = tuple[float, float]

DEFAULT = 0.01  # of the variance, where a view could reach any variate without a penalty
AS_KERNELS = (DEFAULT, DEFAULT)
_ROUNDING = 1e-13  # of the trace before centring, by which a matrix is centred
_OF_FEATURES = (8 * float(np.finfo(float).eps)) ** 2  # the same for features
_NONE = 1e-13  # shares below shrink nothing that is kept of a matrix
CANDIDATES = tuple((float(p), float(p)) for p in np.logspace(-4, 0, 9))


def as_pair(value: Any) -> Pair | None:
    """Read one penalty, or one for each view; None if it is neither."""
    both = (value, value) if is_real(value) else value
    pair = isinstance(both, tuple | list | np.ndarray) and np.ndim(both) == 1
    if not pair or len(both) != 2:
        return None
    if not all(is_real(p) and np.isfinite(float(p)) and p >= 0 for p in both):
        return None
    return float(both[0]), float(both[1])


def check_penalty(machine: Any) -> None:
    """Refuse what no penalty can be, before anything is allocated."""
    if isinstance(machine.penalty, str):
        if machine.penalty not in ("auto", "cv"):
            refuse(machine, "penalty", machine.penalty, "be a number, a pair, 'auto' or 'cv'")
    elif as_pair(machine.penalty) is None:
        must = "be finite and not negative: one number, a pair for both views, 'auto' or 'cv'"
        refuse(machine, "penalty", machine.penalty, must)
    if machine.penalties is not None:
        _check_candidates(machine)


def _check_candidates(machine: Any) -> None:
    given = machine.penalties
    good = hasattr(given, "__len__") and not isinstance(given, str) and len(given) > 0
    if not good or any((pair := as_pair(p)) is None or min(pair) <= 0 for p in given):
        refuse(machine, "penalties", given, "be a list of positive numbers or pairs of them")


def candidates(machine: Any) -> list[Pair]:
    """Return the penalties that folds choose from."""
    if machine.penalties is None:
        return list(CANDIDATES)
    return [pair for p in machine.penalties if (pair := as_pair(p)) is not None]


def automatic(grams: tuple[Gram, Gram]) -> Pair:
    """Ask for no penalty where both views together have fewer features than there are rows."""
    n = grams[0].shape[0]
    if all(map(has_features, grams)) and sum(gram.rank for gram in grams) < n - 1:
        return 0.0, 0.0
    return AS_KERNELS


def refuse_trivial(machine: Any, grams: tuple[Gram, Gram]) -> None:
    """Refuse to go without a penalty where a view can reach any variate at all."""
    for name, kernel, gram, penalty in zip(
        "xy", _kernels(machine), grams, machine.penalty_, strict=True
    ):
        asked = not isinstance(kernel, Linear | Precomputed)  # of those the rank is looked at
        if penalty == 0 and asked and not has_features(gram):
            raise ValueError(_trivial(machine, name, kernel, gram.shape[0]))


def judge_ranks(machine: Any, n: int) -> None:
    """Refuse or warn, once ranks are known, where correlations say nothing."""
    ranks, called = (machine.rank_x_, machine.rank_y_), type(machine).__name__
    for name, kernel, rank, penalty in zip(
        "xy", _kernels(machine), ranks, machine.penalty_, strict=True
    ):
        if isinstance(kernel, Precomputed) and penalty == 0 and rank is not None and rank >= n - 1:
            raise ValueError(_trivial(machine, name, kernel, n))
    if max(machine.penalty_) <= _NONE and None not in ranks and sum(ranks) > n - 1:
        _warn(
            f"{called}: the views have {ranks[0]} and {ranks[1]} directions, but there are only "
            f"{n} rows, so {sum(ranks) - (n - 1)} correlation(s) are 1 whatever the data. Use a "
            f"penalty above {_NONE:g}, or more rows."
        )
    known = [rank for rank in ranks if rank is not None]
    if known and machine.n_components > min(known):
        _warn(
            f"{called}: n_components={machine.n_components}, but a view has only {min(known)} "
            "direction(s); the other components are zero."
        )


def _kernels(machine: Any) -> tuple[Kernel, Kernel]:
    return machine.kernel_x_, machine.kernel_y_


def _trivial(machine: Any, name: str, kernel: Kernel, n: int) -> str:
    return (
        f"{type(machine).__name__}: penalty=0 for view {name}: with {kernel!r} the {n} rows span "
        "as many directions as there are rows, so every variate can be reached and the correlation "
        "is 1 whatever the data. Use a penalty above 0, such as 0.01, or penalty='cv'."
    )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=6)


def absolute(gram: Gram, base: Gram, weights: Array, share: float) -> float:
    """Return a penalty in units of eigenvalues: its share of the trace.

    Of a constant view nothing but rounding is left after centring; a share of that is no penalty.
    """
    trace, before = float(gram.diag().sum()), float(weights @ np.abs(base.diag()))
    rounding = _OF_FEATURES if has_features(gram) else _ROUNDING
    return share * trace if trace > rounding * before else 0.0


# --- penalties of a canonical correlation judged by folds: correlation on rows that were left out
#
# All folds and penalties share one factor of each Gram (features where there are few, else a
# pivoted Cholesky factor of bounded rank), and all penalties of a fold share its two small
# eigenproblems. The factor only ranks the penalties; the fit itself is made from the Grams.

LARGEST = 800  # columns of the shared factors
_CUT = 1e-12
_SMALL = 200  # rows of a matrix whose singular pairs are all taken


def held_out(
    machine: Any, grams: tuple[Gram, Gram], weights: Array, form: Shrinkage, seed: int
) -> Array:
    """Return the held-out correlations of the candidates of a machine: (folds, penalties)."""
    folds = _folds(machine, len(weights))
    scale = np.sqrt(weights)[:, None]
    x, y = (shared_factor(gram, seed) / scale for gram in grams)
    watch = Watch(machine.callback, machine.time_limit)
    return held_out_scores(
        (x, y), weights, folds, machine.penalties_, machine.n_components, form, watch
    )


def check_folds(machine: Any) -> None:
    """Require a number of folds, or an object that splits."""
    cv = machine.cv
    whole = isinstance(cv, int | np.integer) and not isinstance(cv, bool)
    if not (hasattr(cv, "split") or isinstance(cv, list) or (whole and cv >= 2)):
        refuse(machine, "cv", cv, "be a number of folds of at least 2, a splitter or a list")


def _folds(machine: Any, n: int) -> Iterable[tuple[Array, Array]]:
    """Return training and held-out rows; for a number, of that many runs of rows."""
    if hasattr(machine.cv, "split"):
        return list(machine.cv.split(np.zeros((n, 1))))
    if isinstance(machine.cv, list):
        return machine.cv
    if machine.cv > n:
        refuse(machine, "cv", machine.cv, f"be at most the number of rows, {n}")
    runs = np.array_split(np.arange(n), machine.cv)
    return [(np.setdiff1d(np.arange(n), test), test) for test in runs]


def shared_factor(gram: Gram, random_state: int) -> Array:
    """Return features of all rows: F with K = F F', nearly."""
    if has_features(gram) and gram.rank <= LARGEST:
        return np.asarray(gram.factor)
    return pivoted_cholesky(gram, LARGEST, random_state).factor


@dataclass(frozen=True, eq=False)
class _FoldView:
    """A view within a fold: features of all rows in the eigenbasis of the training rows.

    Attributes
    ----------
    rows : (n, r) array
        Centred features of all rows, each column of unit length over the (weighted) training rows.
    s : (r,) array
        The eigenvalues of the training Gram.
    """

    rows: Array
    s: Array


def _fold_view(F: Array, weights: Array) -> _FoldView:
    centred = F - np.average(F, axis=0, weights=weights)
    s, Z = np.linalg.eigh((centred * weights[:, None]).T @ centred)
    kept = s > _CUT * s.max(initial=0.0)
    return _FoldView(centred @ (Z[:, kept] / np.sqrt(s[kept])), s[kept])


def held_out_scores(
    factors: tuple[Array, Array],
    weights: Array,
    folds: Iterable[tuple[Array, Array]],
    penalties: list[tuple[float, float]],
    count: int,
    form: Shrinkage,
    watch: Watch,
) -> Array:
    """Return the mean correlation of held-out variates, for each fold and penalty.

    Parameters
    ----------
    factors : tuple of two (n, r) arrays
        Features of all rows, of both views.
    weights : (n,) array
        How often each row counts.
    folds : iterable of (int array, int array)
        Training and held-out rows.
    penalties : list of pairs
        Candidates, as shares of the variance of each view.
    count : int
        How many pairs are correlated.
    form : Shrinkage
        How a penalty enters.
    watch : Watch
        Asked after every fold whether to stop.

    Returns
    -------
    (folds, penalties) array
        The scores.
    """
    scores: list[list[float]] = []
    for number, (train, test) in enumerate(folds, start=1):
        inside = np.zeros(len(weights))
        inside[train] = weights[train]
        x, y = (_fold_view(F, inside) for F in factors)
        cross = (x.rows * inside[:, None]).T @ y.rows
        scores.append(
            [_score(x, y, cross, pair, count, form, test, weights[test]) for pair in penalties]
        )
        if watch.tick(number, float(np.max(scores[-1]))):
            break
    return np.array(scores)


def _score(
    x: _FoldView,
    y: _FoldView,
    cross: Array,
    penalties: tuple[float, float],
    count: int,
    form: Shrinkage,
    test: Array,
    weights: Array,
) -> float:
    a, b = (
        form.shrink(view.s, penalty * float(view.s.sum()))
        for view, penalty in zip((x, y), penalties, strict=True)
    )
    P, Qt = _largest(a[:, None] * cross * b, count)
    u, v = x.rows[test] @ (a[:, None] * P[:, :count]), y.rows[test] @ (b[:, None] * Qt[:count].T)
    found = correlations_of(u, v, weights)
    return float(found.sum()) / count


def _largest(M: Array, count: int) -> tuple[Array, Array]:
    """Return the largest singular pairs; of large matrices, without the others."""
    if min(M.shape) <= max(_SMALL, 8 * count):
        P, _, Qt = np.linalg.svd(M, full_matrices=False)
        return P, Qt
    Q = largest_pairs(lambda V: M.T @ (M @ V), M.shape[1], count, tol=1e-8).vectors
    P, _, turn = np.linalg.svd(M @ Q, full_matrices=False)
    return P, turn @ Q.T
