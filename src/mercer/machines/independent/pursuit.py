"""Projection pursuit: the directions along which rows look least Gaussian, one by one."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.machines.base.parameters import check_count, refuse
from mercer.machines.independent.unmixing_machine import UnmixingMachine
from mercer.machines.independent.whitening import White
from mercer.problems import CONTRASTS, IndependentComponents
from mercer.solvers import Callback


class ProjectionPursuit(UnmixingMachine):
    """Projection pursuit: directions of largest non-Gaussianity, one after another.

    The first direction has the largest |E G(y) - E G(z)| that `n_init` starts find, y being the
    rows along it with mean 0 and variance 1, z a standard Gaussian; every further one is the best
    that is uncorrelated with those before. All directions in which rows vary are looked at,
    whatever their variance. Signs: the entry of largest magnitude in each column of training scores
    is positive.

    Parameters
    ----------
    n_components : int, default=2
        How many directions.
    contrast : {"logcosh", "cube", "exp"}, default="logcosh"
        What makes a direction interesting: G(y) = log cosh y (approximates negentropy), y^4 / 4
        (a fourth of the kurtosis) or -exp(-y^2 / 2) (outliers do not count).
    n_init : int, default=5
        Random starts for each direction; the largest contrast is kept.
    tol : float, default=1e-8
        The largest derivative of the contrast, by an angle, that counts as none.
    max_iter : int, default=200
        Most steps from one start.
    random_state : int, RandomState or None, default=0
        Of the starts.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` at every step; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The directions W: y = W (x - mean), each of variance one.
    mixing_ : array of shape (n_features, n_components)
        Covariances of columns and components: what takes components back to rows.
    mean_ : array of shape (n_features,)
        The mean of the rows.
    non_gaussianity_ : array of shape (n_components,)
        |E G(y) - E G(z)| along each direction.
    n_components_ : int
        The number of directions.
    n_iter_ : int
        Steps of the start that was kept; of one direction after another, the most of one.
    converged_ : bool
        Whether the tolerance was reached.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Whiteness, and that each direction is a local maximum of the contrast; from the rows.

    Examples
    --------
    Two groups hide in a direction of little variance, which principal components do not show.

    >>> import numpy as np
    >>> from mercer import ProjectionPursuit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4)) * [9.0, 5.0, 3.0, 0.2]
    >>> X[:, 3] += np.repeat([-1.0, 1.0], 150)
    >>> machine = ProjectionPursuit(1).fit(X)
    >>> np.abs(machine.components_ * X.std(axis=0)).argmax()
    np.int64(3)
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        contrast: str = "logcosh",
        n_init: int = 5,
        tol: float = 1e-8,
        max_iter: int = 200,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components: int = n_components
        self.contrast = contrast
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    def _space(self) -> int | None:
        return None

    def _question(self, white: White, weights: Array) -> IndependentComponents:
        rank = white.rows.shape[1]
        if self.n_components > rank:
            must = f"be at most {rank}, the number of directions in which the rows vary"
            refuse(self, "n_components", self.n_components, must)
        contrast = CONTRASTS[self.contrast]
        return IndependentComponents(
            white.rows, weights, int(self.n_components), contrast, False, rank
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count(self, "n_components")
