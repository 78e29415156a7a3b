"""Rows of zeros and ones from several sets of coins."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.machines.base.parameters import check_flag, check_real, refuse
from mercer.machines.density.mixture import MixtureMachine, drawn_parts
from mercer.points import is_sparse
from mercer.problems.mixture.table_mixture import BernoulliMix, TableParts
from mercer.problems.mixture.tied_coins import TiedBernoulliMix
from mercer.solvers import Callback


class BernoulliMixture(MixtureMachine):
    """A mixture of coins: P(x) = sum_j w_j prod_i p_ji^x_i (1 - p_ji)^(1 - x_i).

    Each component has a coin for each column, or with tied=True one coin for all of them. Found by
    expectation maximisation. Rows may be sparse and stay so.

    Parameters
    ----------
    n_components : int, "bic" or "mdl", default=2
        The number of components, or the criterion by which it is chosen among 1, ...,
        `max_components`: Bayes' information criterion, or the description length.
    smoothing : float, default=0.1
        Heads and tails that each coin is taken to have shown beforehand. Zero gives the most likely
        coins; then a head never seen has the chance 10^-12.
    binarize : float or None, default=0.0
        Entries above it count as one, others as zero; None: rows are zeros and ones already.
    tied : bool, default=False
        Whether a component is one coin that is tossed for every column (p_ji = p_j): two coins that
        are tossed three times each are three numbers, the share of the first and both chances.
    max_components : int, default=10
        The largest number tried when it is chosen.
    n_init : int, default=3
        Starts. Each runs a dozen passes, and the best one goes on.
    tol : float, default=1e-6
        Stop when a step adds no more than this to the objective per row.
    max_iter : int, default=500
        Largest number of passes over the rows.
    random_state : int, RandomState or None, default=0
        Source of the starts.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which a fit stops with what it has; for each number of components, when that
        is chosen.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        Shares w of the components.
    means_ : array of shape (n_components, n_features)
        Chances p of a one.
    coins_ : array of shape (n_components,)
        With tied=True: the chance p_j of a one that all columns of a component have.
    n_components_ : int
        The number of components.
    criteria_ : array of shape (max_components,)
        The criterion for each number, when it was chosen.
    collapsed_ : bool array of shape (n_components,)
        Components that no row is left to.
    log_likelihoods_ : array
        Objectives on the way: log-likelihoods plus the logarithm of the prior. They never fall.
    n_iter_ : int
        Passes over the rows.
    converged_ : bool
        Whether `tol` was reached.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The likelihood, and what another step would add, from the data. Made when first read.

    Examples
    --------
    Two coins, each tossed three times once it was picked:

    >>> import numpy as np
    >>> from mercer import BernoulliMixture
    >>> rng = np.random.default_rng(0)
    >>> heads = np.where(rng.uniform(size=5000) < 0.3, 0.9, 0.2)
    >>> tosses = rng.uniform(size=(5000, 3)) < heads[:, None]
    >>> coins = BernoulliMixture(2, smoothing=0.0, tied=True).fit(tosses)
    >>> order = np.argsort(coins.coins_)
    >>> coins.weights_[order].round(1).tolist(), coins.coins_[order].round(1).tolist()
    ([0.7, 0.3], [0.2, 0.9])
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        smoothing: float = 0.1,
        binarize: float | None = 0.0,
        tied: bool = False,
        max_components: int = 10,
        n_init: int = 3,
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.smoothing = smoothing
        self.binarize = binarize
        self.tied = tied
        self.max_components = max_components
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[Array, Array]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Source of random numbers.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            Rows of zeros and ones, sorted by component.
        labels : int array of shape (n_samples,)
            The component of each.
        """
        check_is_fitted(self)
        rng, labels = drawn_parts(self, n_samples, random_state)
        heads = rng.uniform(size=(len(labels), self.means_.shape[1])) < self.means_[labels]
        return heads.astype(np.float64), labels

    def _rows(self, X: Any, *, fitting: bool) -> Points:
        rows = super()._rows(X, fitting=fitting)
        if fitting:
            self._level = self.binarize  # what counts later is the level of the fit
        if self._level is None:
            values = rows.data if is_sparse(rows) else rows
            if not ((values == 0) | (values == 1)).all():
                raise ValueError(
                    "BernoulliMixture: X must hold zeros and ones only when binarize=None; give "
                    "the value above which an entry counts as one, e.g. binarize=0.0"
                )
            return rows.astype(np.float64)
        if not is_sparse(rows):
            return (rows > self._level).astype(np.float64)
        if self._level < 0:
            must = "be at least zero for sparse rows, whose zeros would all become ones"
            refuse(self, "binarize", self._level, must)
        ones = rows.astype(np.float64)
        ones.data = (rows.data > self._level).astype(np.float64)
        ones.eliminate_zeros()
        return ones

    def _question(self, X: Points, weights: Array, k: int) -> BernoulliMix:
        asks = TiedBernoulliMix if self.tied else BernoulliMix
        return asks(X, weights, k, float(self.smoothing))

    def _free(self, problem: BernoulliMix, k: int) -> tuple[int, int]:
        return 1 if self.tied else int(self.n_features_in_), 0

    def _keep(self, problem: BernoulliMix, parts: TableParts) -> None:
        self.weights_, self.means_ = parts.shares, parts.table
        self.__dict__.pop("coins_", None)
        if self.tied:
            self.coins_ = parts.table[:, 0].copy()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real(self, "smoothing", least=0)
        check_flag(self, "tied")
        if self.binarize is not None:
            check_real(self, "binarize")
