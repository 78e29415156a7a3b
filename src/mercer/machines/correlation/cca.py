"""Canonical correlation analysis: what two views of the same rows have in common."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.approximation import Approximation, Nystrom
from mercer.array_types import Array, Points
from mercer.gram import Gram, Need, make_gram
from mercer.gram.build import refuse_extremes
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.machines.base.certificate import Certified
from mercer.machines.base.inputs import new_rows, training_rows_alone
from mercer.machines.base.machine import NestedKernels, all_or_nothing, is_precomputed, kernel_of
from mercer.machines.base.parameters import (
    check_choice,
    check_count,
    check_limits,
    check_optional_count,
    check_seed,
    refuse,
    seed_of,
)
from mercer.machines.base.sharing import Reusing, SharedDecomposition, Store
from mercer.machines.base.targets import check_weights
from mercer.machines.correlation import views as penalty_of
from mercer.machines.correlation.problem import (
    CanonicalPairs,
    Correlation,
    Lengths,
    Norm,
    Shrinkage,
    Squared,
)
from mercer.machines.correlation.views import (
    THROUGH,
    Grams,
    Regression,
    Route,
    check_folds,
    column_weights,
    correlations_of,
    fitted_view,
    held_out,
    prepared,
    promised,
    routes,
    second_view,
    signed,
)
from mercer.machines.decomposition.components import near_origin
from mercer.resources import require_memory
from mercer.rows.points import is_objects, take
from mercer.solvers.base import Callback, Solution
from mercer.solvers.dispatch import solve

_FORMS: dict[str, Shrinkage] = {"squared": Squared(), "norm": Norm(), "lengths": Lengths()}
ERRORS = {"approximation_error_x_", "approximation_error_y_"}
_SQUARES = 4  # matrices of components by components: a covariance, and its pseudo-inverse's three


class CCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Certified, Reusing, NestedKernels):
    """Canonical correlation analysis of two views, linear or with any kernels.

    With G_x, G_y the centred Gram matrices of both views, maximises the covariance of u = G_x c and
    v = G_y d over unit penalised variances c'(G_x + eta)^2 c and d'(G_y + eta)^2 d; each pair is
    uncorrelated with those before. With linear kernels and no penalty this is Hotelling's canonical
    correlation: the cosines of the principal angles between the columns of both views.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs. Beyond the smaller rank, correlations and variates are zero.
    kernel_x, kernel_y : Kernel, str or callable, default="linear"
        What similarity is in each view.
    approximation : Approximation, str or None, default="auto"
        Features in place of both kernels, such as `Nystrom(1000)` or "random_features:2000"; None
        for the kernels themselves. "auto" takes those as long as that is not refused, and past the
        limit landmarks, with a warning that says so.
    penalty : float, pair of floats, "auto" or "cv", default="auto"
        For both views or each, as a share of the total variance of the view in feature space:
        eta = penalty * trace(G). "auto" takes none where both views together have fewer features
        than there are rows, else 0.01; "cv" the member of `penalties` with the largest correlation
        on held-out rows. 0 is refused where a kernel has as many features as there are rows: any
        variate could be reached, and the correlation is always 1.
    penalties : list of floats or pairs, or None, default=None
        Candidates for penalty="cv"; None takes nine from 1e-4 to 1.
    cv : int, splitter or list of pairs of index arrays, default=5
        Folds for penalty="cv", of the rows of positive weight.
    form : {"squared", "norm", "lengths"}, default="squared"
        How the penalty enters: (G + eta)^2; G^2 + eta G, which penalises the squared norm of the
        direction (ridge CCA); or G^2 + eta^2, which penalises the length of the coefficients.
    rank : int or None, default=None
        Deprecated: `approximation=Nystrom(rank)` of `mercer.approximation`, which takes its place.
    random_state : int, RandomState or None, default=0
        Draws rows for penalty="cv".
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which an iterative fit stops with what it has.

    Attributes
    ----------
    correlations_ : array of shape (n_components,)
        The correlations of the fit, penalty included, largest first.
    penalty_ : tuple of two floats
        The penalties used, as shares.
    rank_x_, rank_y_ : int or None
        How many directions each view has; None where a Cholesky factor was taken and nobody needed
        to know.
    dual_coef_x_, dual_coef_y_ : array of shape (n_samples, n_components)
        Coefficients of the training rows, centred.
    weights_x_, weights_y_ : array of shape (n_features, n_components)
        Weights of the columns; only for a linear kernel in primal space.
    kernel_x_, kernel_y_ : Kernel
        The kernels used.
    approximation_error_x_, approximation_error_y_ : StatedError
        With features in place of a kernel: how far they are from it.
    penalties_ : list of pairs
        With penalty="cv": the candidates.
    cv_scores_ : array of shape (n_folds, n_penalties)
        With penalty="cv": mean held-out correlations.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Correlations, variances and optimality recomputed from the data, when first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import CCA
    >>> from mercer.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0, 6, size=(200, 1))
    >>> X = np.hstack([t, rng.normal(size=(200, 1))])
    >>> Y = np.hstack([np.sin(t), rng.normal(size=(200, 1))])
    >>> plain = CCA(n_components=1).fit(X, Y)
    >>> machine = CCA(kernel_x=Gaussian(1.0), kernel_y=Gaussian(1.0), n_components=1).fit(X, Y)
    >>> round(plain.score(X, Y), 2), round(machine.score(X, Y), 2)
    (0.8, 0.98)
    >>> machine.certificate_.ok
    True
    """

    penalty_: tuple[float, float]

    shares = (SharedDecomposition(("n_components",)),)

    def __init__(
        self,
        n_components: int = 2,
        kernel_x: Kernel | str | Any = "linear",
        kernel_y: Kernel | str | Any = "linear",
        *,
        approximation: Approximation | str | None = "auto",
        penalty: float | tuple[float, float] | str = "auto",
        penalties: list[Any] | None = None,
        cv: Any = 5,
        form: str = "squared",
        rank: int | None = None,
        random_state: Any = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel_x = kernel_x
        self.kernel_y = kernel_y
        self.approximation = approximation
        self.n_components = n_components
        self.penalty: Any = penalty  # checked when `fit` starts, as all parameters are
        self.penalties = penalties
        self.cv = cv
        self.form = form
        self.rank = rank
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to two views of the same rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The first view; the Gram matrix for a precomputed kernel; strings for string kernels.
        y : array-like or sparse matrix of shape (n_samples,) or (n_samples, n_targets)
            The second view, likewise.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        if self.rank is not None:
            message = (
                f"CCA: rank is deprecated and will be removed in the next version. Use "
                f"approximation=Nystrom({self.rank}), of mercer.approximation, and a penalty, such "
                "as 0.01, which 'auto' takes of kernels alone."
            )
            warnings.warn(message, FutureWarning, stacklevel=4)
        store = self._take_store()
        self._refuse_many_components()
        X = training_rows_alone(self, X, is_precomputed(self.kernel_x))
        y, self._reader = second_view(self, y, is_precomputed(self.kernel_y))
        check_consistent_length(X, y)
        weights = check_weights(self, sample_weight, X.shape[0])
        rows = np.flatnonzero(weights)
        if len(rows) < 2:
            raise ValueError("CCA: correlations need two rows, but n_samples = 1")
        names = getattr(self, "feature_names_in_", None), self._reader.names
        for view, given, points, known in (
            ("kernel_x_", self.kernel_x, X, names[0]),
            ("kernel_y_", self.kernel_y, y, names[1]),
        ):
            kernel = kernel_of(given, points, weights, known)
            with self._landmarks_of_rank(kernel, points):
                self._use_kernel(kernel, points, weights, known, view=view, store=store)
        base_x, mean_x = store.once(
            "x", lambda: self._gram(self.kernel_x_, X, rows, weights, names[0])
        )
        base_y, mean_y = store.once(
            "y", lambda: self._gram(self.kernel_y_, y, rows, weights, names[1])
        )
        bases, means = (base_x, base_y), (mean_x, mean_y)
        for name in ("penalties_", "cv_scores_"):  # an earlier fit may have left them
            self.__dict__.pop(name, None)
        weights = weights[rows] / weights[rows].mean()
        grams = prepared(bases[0], weights), prepared(bases[1], weights)
        problem = self._ask(bases, grams, weights)
        solution = self._solve(problem, store)
        value = signed(solution.value, grams[0], weights)
        self.solution_ = replace(solution, value=value)
        self._keep(grams, value, means, weights, rows, X.shape[0])
        first = None if is_precomputed(self.kernel_x) or is_objects(X) else take(X, rows)
        targets = first, y[rows] if self._reader.has_rows else None
        self._routes = routes(grams, value, targets, weights)
        self._regression = self._routes[0].rows
        self._judgement = promised(bases, weights, problem, value, None)
        return self

    def transform(self, X: Any, y: Any = None) -> Any:
        """Return the canonical variates of new rows of the first view, or of both.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows of the first view.
        y : array-like or sparse matrix of shape (n_samples,) or (n_samples, n_targets), optional
            New rows of the second view.

        Returns
        -------
        array of shape (n_samples, n_components), or a pair of them
            Variates; of unit variance on the training rows, but for the penalty.
        """
        variates = self._variates(X)
        return variates if y is None else (variates, self.transform_y(y))

    def transform_y(self, y: Any) -> Array:
        """Return the canonical variates of new rows of the second view alone.

        Parameters
        ----------
        y : array-like or sparse matrix of shape (n_samples,) or (n_samples, n_targets)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Variates.
        """
        check_is_fitted(self)
        return self._y.variates(type(self).__name__, self._reader.new(y))

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Any:
        """Fit to two views, and give the variates of both.

        Parameters
        ----------
        X, y : array-like or sparse matrix
            The views.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        pair of arrays of shape (n_samples, n_components)
            The variates of both views.
        """
        return self.fit(X, y, sample_weight).transform(X, y)

    def predict(self, X: Any, *, through: str = "least_squares") -> Array:
        """Predict the second view from the first, through the canonical directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows of the first view.
        through : {"least_squares", "variates"}, default="least_squares"
            Rows of the second view by least squares on the canonical variates u of the first; or
            from variate to variate: v by least squares on u, then rows by least squares on v.
            Without a penalty both are the same, and with all pairs of two linear views they are
            ordinary least squares.

        Returns
        -------
        array of shape (n_samples,), (n_samples, n_targets) or (n_samples, n_components)
            The rows of the second view. Where that view is not rows of numbers (strings, a
            precomputed kernel), its canonical variates, likewise.
        """
        variates = self._variates(X)
        if through == "least_squares":
            values = self._within_memory(variates, self._regression)
        else:
            values = self._along(0, variates, through)
        return values[:, 0] if self._reader.flat else values

    def predict_x(self, y: Any, *, through: str = "least_squares") -> Array:
        """Predict the first view from the second, through the canonical directions.

        Parameters
        ----------
        y : array-like or sparse matrix of shape (n_samples,) or (n_samples, n_targets)
            New rows of the second view.
        through : {"least_squares", "variates"}, default="least_squares"
            As in `predict`.

        Returns
        -------
        array of shape (n_samples, n_features) or (n_samples, n_components)
            The rows of the first view, or its canonical variates where it has no rows of numbers.
        """
        return self._along(1, self.transform_y(y), through)

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the mean correlation of the variates of both views on new rows.

        Parameters
        ----------
        X, y : array-like or sparse matrix
            New rows of both views.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        float
            The mean over the components; `correlations` has them one by one.
        """
        return float(self.correlations(X, y, sample_weight).mean())

    def correlations(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Array:
        """Return the correlation of each pair of variates on new rows.

        Parameters
        ----------
        X, y : array-like or sparse matrix
            New rows of both views.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        array of shape (n_components,)
            Plain correlations, without penalty; 0 where a variate does not vary.
        """
        u, v = self._variates(X), self.transform_y(y)
        check_consistent_length(u, v)
        return correlations_of(u, v, check_weights(self, sample_weight, len(u)))

    @property
    def weights_x_(self) -> Array:
        """Weights of the columns of the first view, for the linear kernel."""
        return column_weights(self.__dict__.get("_x"), "weights_x_")

    @property
    def weights_y_(self) -> Array:
        """Weights of the columns of the second view, for the linear kernel."""
        return column_weights(self.__dict__.get("_y"), "weights_y_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not is_precomputed(self.kernel_x)
        tags.input_tags.pairwise = is_precomputed(self.kernel_x)
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _variates(self, X: Any) -> Array:
        check_is_fitted(self)
        points = new_rows(self, X, isinstance(self.kernel_x_, Precomputed))
        return self._x.variates(type(self).__name__, points)

    @property
    def _n_features_out(self) -> int:
        return len(self.correlations_)

    def _along(self, way: int, variates: Array, through: Any) -> Array:
        """Predict a view from the variates of the other."""
        if through not in THROUGH:
            refuse(self, "through", through, f"be {' or '.join(map(repr, THROUGH))}")
        known: tuple[Route, Route] | None = self.__dict__.get("_routes")
        if known is None:
            raise ValueError(
                "CCA: this model is of a file that holds no more than the way from the first view "
                "to the second by least squares; fit it again"
            )
        return self._within_memory(variates, known[way].by(through))

    def _within_memory(self, variates: Array, regression: Regression) -> Array:
        width = len(regression.centre)
        size = 8 * len(variates) * width
        require_memory(size, f"predictions of {width} columns", "Predict fewer rows at a time.")
        return regression(variates)

    def _gram(
        self, kernel: Kernel, X: Points, rows: Array, weights: Array, names: Any
    ) -> tuple[Gram, Any]:
        """Make a Gram; give also what was taken off its rows before."""
        X, mean = near_origin(kernel, X, rows, weights)
        listed = None if names is None else list(names)
        gram = make_gram(kernel, X, Need.MATRIX, rows=rows, names=listed, copies=5)
        return refuse_extremes(type(self).__name__, gram, kernel, rows, small=True), mean

    def _ask(self, bases: Grams, grams: Grams, weights: Array) -> Correlation:
        """Write the problem: the penalty is chosen, or refused, beside the data."""
        form = _FORMS[self.form]
        if isinstance(self.penalty, str) and self.penalty == "cv":
            self.penalties_ = penalty_of.candidates(self)
            self.cv_scores_ = held_out(self, grams, weights, form, seed_of(self.random_state))
            best = int(np.argmax(self.cv_scores_.mean(axis=0)))
            self.penalty_ = self.penalties_[best]
        else:
            landmarks = self.rank is not None and not ERRORS.isdisjoint(vars(self))
            automatic = penalty_of.AS_KERNELS if landmarks else penalty_of.automatic(grams)
            self.penalty_ = penalty_of.as_pair(self.penalty) or automatic
        penalty_of.refuse_trivial(self, grams)
        x, y = (
            penalty_of.absolute(gram, base, weights, share)
            for gram, base, share in zip(grams, bases, self.penalty_, strict=True)
        )
        if not np.isfinite([x, y]).all():
            refuse(self, "penalty", self.penalty, "be smaller: times the variance it overflows")
        return Correlation(*grams, self.n_components, (x, y), form)

    def _keep(
        self,
        grams: Grams,
        value: CanonicalPairs,
        means: tuple[Any, Any],
        weights: Array,
        rows: Array,
        n: int,
    ) -> None:
        """Keep the functions of both views, of unit variance but for the penalty."""
        self.correlations_ = value.values
        self.rank_x_, self.rank_y_ = value.rank_x, value.rank_y
        penalty_of.judge_ranks(self, len(rows))
        scale = np.sqrt(weights.sum())
        x, y = (value.coef_x, value.weights_x), (value.coef_y, value.weights_y)
        self._x = fitted_view(self.kernel_x_, grams[0], *x, means[0], scale)
        self._y = fitted_view(self.kernel_y_, grams[1], *y, means[1], scale)
        self.dual_coef_x_, self.dual_coef_y_ = (np.zeros((n, self.n_components)) for _ in range(2))
        back = scale * np.sqrt(weights)[:, None]
        self.dual_coef_x_[rows], self.dual_coef_y_[rows] = back * value.coef_x, back * value.coef_y

    def _solve(self, problem: Correlation, store: Store) -> Solution:
        """Solve; of exact solutions, those for fewer pairs are the first of those for more."""
        solving = partial(solve, callback=self.callback, time_limit=self.time_limit)
        asked = problem.penalties, problem.count
        return store.leading(*asked, partial(solving, problem), CanonicalPairs.leading)

    @contextmanager
    def _landmarks_of_rank(self, kernel: Kernel, X: Points) -> Iterator[None]:
        """Take `rank`, which is deprecated, for as many landmarks, where it was a limit."""
        given, exact = self.approximation, is_precomputed(kernel)
        exact = exact or (isinstance(kernel, Linear) and X.shape[1] <= (self.rank or 0))
        if self.rank is not None and not exact:
            self.approximation = Nystrom(int(self.rank), random_state=seed_of(self.random_state))
        try:
            yield
        finally:
            self.approximation = given

    def _refuse_many_components(self) -> None:
        """Refuse more components than their covariances have memory for, whatever the rows."""
        c = int(self.n_components)
        what = f"CCA: regression on n_components={c} variates"
        require_memory(8 * _SQUARES * c * c, what, "Ask for at most as many as there are rows.")

    def _check_parameters(self) -> None:
        check_count(self, "n_components")
        check_optional_count(self, "rank")
        check_choice(self, "form", tuple(_FORMS))
        check_limits(self)
        check_folds(self)
        check_seed(self)
        penalty_of.check_penalty(self)
