"""Principal components in the space of any kernel."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.gram.policy import LARGEST_UNASKED
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.machines.base.certificate import Certified, LazyDataCertificate, lazy_certificate
from mercer.machines.base.inputs import new_rows, refuse_overflown
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of
from mercer.machines.base.parameters import (
    check_choice,
    check_components,
    check_flag,
    check_limits,
    check_real,
    check_seed,
    check_solver,
    seed_of,
)
from mercer.machines.base.sharing import Reusing, SharedDecomposition
from mercer.machines.base.targets import check_weights
from mercer.machines.decomposition import components
from mercer.machines.decomposition import preimage as inversion
from mercer.machines.decomposition.components import (
    Centred,
    FeatureSubspace,
    MatrixSubspace,
    Subspace,
    centred_rows,
    judge_nothing,
    uncentred_rows,
)
from mercer.machines.decomposition.preimage import Preimages
from mercer.rows.points import is_objects, is_sparse, take
from mercer.solvers.base import Callback, Solution, Solver
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import choose, solve
from mercer.solvers.eigen.lanczos_solver import Lanczos
from mercer.solvers.eigen.problem import Eigenproblem

_LOOSE = 1e-6  # certificates are no stricter than this
# eigenvalues below have lost digits to the end of the range: only the certificate tells how many
_FAINT = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Certified, Reusing, KernelMachine):
    """Principal component analysis: the directions in which rows vary most, for any kernel.

    Rows are centred in feature space, new ones by the mean of the training rows. With the linear
    kernel this is ordinary PCA, worked in columns or in rows, whichever are fewer. Signs: in each
    column of training scores the entry of largest magnitude is positive, the first if several tie.
    With center=False nothing is taken off: the directions are those of largest energy, the sum of
    squared scores about the origin, and variances below are mean squares.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components. A number between 0 and 1 asks for the fewest that explain this share of
        the variance; None for all that are not rounding. Components beyond the rank are zero.
    kernel : Kernel, str or callable, default="linear"
        What similarity is; "gaussian" takes its scale from the data.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    whiten : bool, default=False
        Whether scores are divided by their standard deviations (root mean squares with
        center=False).
    center : bool, default=True
        Whether the mean of the training rows is taken off in feature space. Without, the matrix
        that is decomposed is K itself.
    preimage : {"auto", "fixed_point", "learned"}, default="auto"
        How `inverse_transform` finds points for a kernel that is not linear: by the fixed-point
        iteration (kernels of a distance, smooth at zero), or by kernel ridge regression from scores
        to rows. "auto" iterates where that is possible.
    tol : float, default=1e-6
        Residual of the eigenpairs, relative to each eigenvalue, where they are found by iteration.
    solver : Solver or None, default=None
        How eigenpairs are found: `Eigh()` or `Lanczos()`; None chooses.
    random_state : int, RandomState or None, default=0
        Start of the iteration.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` while pairs are iterated, not where LAPACK finds them
        all at once; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which an iteration stops with what it has.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    n_components_ : int
        The number of columns of the scores.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the centred kernel matrix (K itself with center=False), largest first; zero
        beyond the rank.
    explained_variance_ : array of shape (n_components,)
        Variance of each score: eigenvalues over W - 1, W the total of the sample weights (over W
        where that is at most one). With center=False the energy for each row: the mean square of
        each score about zero, eigenvalues over W.
    explained_variance_ratio_ : array of shape (n_components,)
        The same as a share of the total variance (the total energy, the sum of k(x, x), with
        center=False) in feature space.
    dual_coef_ : array of shape (n_samples, n_components)
        Coefficients of the centred training rows in each direction.
    components_ : array of shape (n_components, n_features)
        The directions; for the linear kernel.
    mean_ : array of shape (n_features,)
        The mean of the rows; for the linear kernel. Zero with center=False.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Residuals, orthonormality, share of the trace, and a search for a missed component,
        computed from the data in float64 when first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PCA
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [3.0, 1.0, 0.1]
    >>> machine = PCA(n_components=0.95).fit(X)
    >>> machine.n_components_, machine.explained_variance_ratio_.round(1).tolist()
    (2, [0.9, 0.1])
    >>> scores = PCA(kernel=Gaussian(2.0), n_components=4).fit_transform(X)
    >>> bool(abs(scores.mean(axis=0)).max() < 1e-12)
    True
    """

    _subspace: Subspace

    shares = (SharedDecomposition(("n_components", "whiten", "preimage")),)

    exact_rows = LARGEST_UNASKED

    def __init__(
        self,
        n_components: int | float | None = None,
        kernel: Kernel | str | Any = "linear",
        *,
        approximation: Approximation | str | None = "auto",
        whiten: bool = False,
        center: bool = True,
        preimage: str = "auto",
        tol: float = 1e-6,
        solver: Solver | None = None,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.approximation = approximation
        self.whiten = whiten
        self.center = center
        self.preimage = preimage
        self.tol = tol
        self.solver: Any = solver  # checked when `fit` starts, as all parameters are
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        store = self._take_store()
        self._check_parameters()
        X = self._rows_alone(X)
        weights = check_weights(self, sample_weight, X.shape[0])
        check_components(self, max(float(len(weights)), float(weights.sum())))
        names = self._column_names()
        kernel = kernel_of(self.kernel, X, weights, names)
        self._use_kernel(kernel, X, weights, names, store=store)
        rows = np.flatnonzero(weights)
        used, s = self._own(X, rows), weights[rows]
        asking = centred_rows if self.center else uncentred_rows
        question = store.once("rows", partial(asking, self, X, used, rows, s))
        solving = partial(store.pairs, "pairs", solve=self._solve)
        solution, self._found = components.leading(question, self.n_components, solving)
        self._keep(question, used, rows, weights, solution)
        return self

    def transform(self, X: Any) -> Array:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Their scores.
        """
        return self._scaled_scores(X)

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Array:
        """Fit to rows and give their scores; where weights are equal, without a second evaluation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        array of shape (n_samples, n_components)
            Their scores.
        """
        self.fit(X, y, sample_weight)
        weights = check_weights(self, sample_weight, len(self.dual_coef_))
        if (weights != weights[0]).any():  # dividing by a small one would magnify the residual
            return self._scaled_scores(X)
        return np.asarray(self.dual_coef_ * self.eigenvalues_ / weights[0] * self._stretch())

    def inverse_transform(self, X: Any) -> Array:
        """Return rows with these scores: exactly for the linear kernel, else pre-images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows.
        """
        found = self.preimages(X)
        if not found.converged.all():
            lost = int((~found.converged).sum())
            warnings.warn(
                f"PCA: {lost} of {len(found.converged)} pre-images did not come to rest; "
                "preimages() tells which. preimage='learned' needs no iteration",
                ConvergenceWarning,
                stacklevel=2,
            )
        return found.points

    def preimages(self, X: Any) -> Preimages:
        """Return rows with these scores, and how close they come.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        Preimages
            `points`, `squared_distance`, `converged` and `iterations`.
        """
        check_is_fitted(self)
        scores = inversion.check_scores(self, X, self.n_components_) * self._unit
        return self._inverse.find(scores)

    def squared_distance(self, X: Any) -> Array:
        """Return the squared distance of rows from the subspace of the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; not for a precomputed kernel, which does not tell k(x, x) of new rows.

        Returns
        -------
        array of shape (n_samples,)
            Squared distances in feature space, never negative.
        """
        check_is_fitted(self)
        if isinstance(self._subspace, MatrixSubspace):
            return self._subspace.squared_distances(np.asarray(X))
        points = new_rows(self, X, False)
        return refuse_overflown(self, lambda: self._subspace.squared_distances(points))

    @property
    def explained_variance_ratio_(self) -> Array:
        """The share of the total variance that each component explains."""
        check_is_fitted(self)
        # the trace is less than the positive part where a kernel is not valid
        total = max(self._subspace.total, self._found)
        shares = self.eigenvalues_ / total if total > 0 else np.zeros(self.n_components_)
        return np.asarray(shares)

    @property
    def components_(self) -> Array:
        """The directions, for the linear kernel."""
        return np.asarray(self._linear().directions.T)

    @property
    def mean_(self) -> Array:
        """The mean of the rows, for the linear kernel."""
        return self._linear().mean

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _linear(self) -> FeatureSubspace:
        held = self.__dict__.get("_subspace")
        if not isinstance(held, FeatureSubspace) or not isinstance(self.kernel_, Linear):
            raise AttributeError("components_ and mean_ exist after a fit with the linear kernel")
        return held

    def _own(self, X: Points, rows: Array) -> Points:
        """Return the rows that count: a copy, since the caller's may change, if kept."""
        kept = not isinstance(self.kernel_, Linear | Precomputed) or is_sparse(X)
        return take(X, rows) if kept or len(rows) < X.shape[0] else X

    def _solve(self, problem: Eigenproblem) -> Solution:
        solver = choose(problem) if self.solver is None else self.solver
        if self.solver is None and isinstance(solver, Lanczos):
            seed = seed_of(self.random_state)
            solver = replace(solver, tol=float(self.tol), random_state=seed)
        return solve(problem, solver, callback=self.callback, time_limit=self.time_limit)

    def _keep(
        self, question: Centred, used: Points, rows: Array, weights: Array, solution: Solution
    ) -> None:
        modes, s = solution.value, question.weights
        rank = len(modes.values)
        count = self.n_components if isinstance(self.n_components, int | np.integer) else rank
        self.n_components_ = max(1, int(count))
        self.solution_ = solution
        self.eigenvalues_ = np.zeros(self.n_components_)
        self.eigenvalues_[:rank] = modes.values
        self.explained_variance_ = question.variances(self.eigenvalues_)
        # what one unit of a score is in feature space
        unit = np.sqrt(self.explained_variance_) if self.whiten else np.ones(self.n_components_)
        self._unit = unit
        coef = components.dual_coefficients(modes, s, self.n_components_)
        self.dual_coef_ = coef  # no second copy where every row counts
        if len(rows) < len(weights):
            self.dual_coef_ = np.zeros((len(weights), self.n_components_))
            self.dual_coef_[rows] = coef
        self._subspace = self._space(question, used, coef, rank)
        training = coef * self.eigenvalues_ / s[:, None]
        self._inverse = inversion.choose(self, used, training, s)
        asked = partial(question.pairs, weights=s, count=max(rank, 1))
        if rank:
            judge = partial(certify, tol=max(float(self.tol), _LOOSE))
            # eigenpairs cost more to judge than to find where there are features
            self._judgement = (
                LazyDataCertificate(
                    asked(question.gram), modes, judge, eager=bool(modes.values.min() < _FAINT)
                )
                if question.gram.factor is not None
                else lazy_certificate(question.gram, asked, modes, judge, s)
            )
        else:
            judge = partial(judge_nothing, nothing=question.nothing)
            self._judgement = lazy_certificate(question.gram, asked, question.rounding(0.0), judge)

    def _space(self, question: Centred, used: Points, coef: Array, rank: int) -> Subspace:
        if isinstance(self.kernel_, Linear) and not is_objects(used):  # whatever K was made from
            features = Linear().features(used.shape[1])
            F = used.astype(np.float64, copy=False)
            return question.feature_subspace(features, F, coef, rank)
        return question.subspace(coef, rank)

    def _scaled_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        points = new_rows(self, X, isinstance(self.kernel_, Precomputed))
        return refuse_overflown(self, lambda: self._subspace.scores(points) * self._stretch())

    def _stretch(self) -> Array:
        """Return the factors of the scores."""
        zero = np.zeros(self.n_components_)
        return np.divide(1.0, self._unit, out=zero, where=self._unit > 0)

    def _check_parameters(self) -> None:
        check_flag(self, "whiten")
        check_flag(self, "center")
        check_choice(self, "preimage", ("auto", "fixed_point", "learned"))
        check_real(self, "tol", above=0)
        check_limits(self)
        check_solver(self)
        check_seed(self)
