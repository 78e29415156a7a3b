"""Variational autoencoders: a model of the rows whose decoder is a network."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.machines.base.inputs import rows_with_gaps
from mercer.machines.base.parameters import (
    check_choice,
    check_count,
    check_number,
    refuse,
    source_of,
)
from mercer.machines.base.targets import check_weights
from mercer.machines.neural.network_machine import NetworkMachine, centred_units
from mercer.machines.projection.probabilistic_pca import LatentPosterior
from mercer.points import row_count, take
from mercer.problems.neural.network import NetworkLayout, blocks
from mercer.problems.neural.variational import (
    VariationalAutoencoding,
    importance_bounds,
    row_bounds,
)
from mercer.solvers import Callback


class VariationalAutoencoder(NetworkMachine):
    """A latent variable through a network: z ~ N(0, I), x | z ~ N(g(z), v I) or Bernoulli.

    log p(x) has no closed form; what is maximised is the evidence lower bound
    E_q log p(x | z) - KL(q(z | x) | N(0, I)) with q(z | x) = N(m(x), diag s(x)^2), m and s by an
    encoder network. With affine networks and Gaussian noise it is `ProbabilisticPCA`. Training
    needs torch (`pip install "mercer[torch]"`); a fitted machine does not.

    Parameters
    ----------
    n_components : int, default=2
        Latent variables.
    encoder_sizes : tuple of int, default=(32,)
        Units of the layers between rows and latent variables; () for none.
    decoder_sizes : tuple of int or None, default=None
        Units of the layers between latent variables and rows; None for those of the encoder,
        backwards.
    likelihood : {"gaussian", "bernoulli"}, default="gaussian"
        Of x given z: noise of one variance, which is learnt; or entries between 0 and 1 as the
        chances of pixels.
    draws : int, default=1
        Draws of z for each row and step. On all rows at once (`batch_size=None`) they are fixed for
        the fit, so that there is a function to descend; more of them make it a better bound.
    activation : {"tanh", "relu", "logistic", "identity"}, default="tanh"
        What stands between layers. The last layer of each network has none.
    penalty : float, default=0.0
        Of half the sum of the squared weights, the loss being minus the bound for each column.
    batch_size : int or None, default=None
        None: quasi-Newton steps (L-BFGS) on all rows. A number: steps of Adam on so many rows with
        new draws of z.
    learning_rate : float, default=1e-3
        Length of Adam's steps.
    early_stopping : bool, default=False
        Hold rows out, stop when they gain no more, and keep the weights that served them best.
    validation_fraction : float, default=0.1
        The share of rows held out.
    patience : int, default=10
        Looks at them without an improvement after which to stop.
    tol : float, default=1e-4
        Largest derivative of the loss to reach.
    max_iter : int or None, default=None
        Largest number of steps (None: 2000), or of passes with a `batch_size` (None: 200).
    random_state : int, RandomState or None, default=0
        Of the start, the draws, the order of rows and which are held out.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` after every step or pass; a true return value stops
        the fit.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.

    Attributes
    ----------
    encoder_, decoder_ : Network
        Weights and biases as NumPy arrays, in the units below. The encoder gives means, then
        log-variances.
    mean_ : array of shape (n_features,)
        What is taken off rows before the encoder: their mean; zero for Bernoulli.
    unit_ : float
        What they are divided by then: the root of the mean variance of a column; one for Bernoulli.
    noise_variance_ : float
        v, in the units of the rows; NaN for Bernoulli.
    n_components_ : int
        Latent variables.
    n_iter_ : int
        Steps, or passes over the rows.
    solution_ : Solution
        How training ended.
    certificate_ : Certificate
        Bounds and derivatives, computed anew from the weights in NumPy.

    Examples
    --------
    >>> from mercer import VariationalAutoencoder
    >>> VariationalAutoencoder(2, likelihood="bernoulli").get_params()["draws"]
    1
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        encoder_sizes: Any = (32,),
        decoder_sizes: Any = None,
        likelihood: str = "gaussian",
        draws: int = 1,
        activation: str = "tanh",
        penalty: float = 0.0,
        batch_size: int | None = None,
        learning_rate: float = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.encoder_sizes = encoder_sizes
        self.decoder_sizes = decoder_sizes
        self.likelihood = likelihood
        self.draws = draws
        self.activation = activation
        self.penalty = penalty
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    def posterior(self, X: Any) -> LatentPosterior:
        """Return means and covariances of q(z | x), what the encoder says of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        LatentPosterior
            `mean` and `covariance`, the latter diagonal.
        """
        codes, q = self._encoded(X), self.n_components_
        variances = np.exp(codes[:, q:])
        return LatentPosterior(codes[:, :q], variances[:, :, None] * np.eye(q))

    def elbo(self, X: Any, draws: int = 64, random_state: Any = 0) -> Array:
        """Return the evidence lower bound of each row, a mean over draws of z.

        Its expectation is at most log p(x).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        draws : int, default=64
            Draws of e, the same for all rows.
        random_state : int, RandomState or None, default=0
            Source of random numbers.

        Returns
        -------
        array of shape (n_samples,)
            Bounds, in nats.
        """
        return self._bounds(row_bounds, X, draws, random_state)

    def score_samples(self, X: Any, draws: int = 64, random_state: Any = 0) -> Array:
        """Return importance-weighted bounds of log p(x), which rise to it with the draws.

        log (1/L) sum_l p(x, z_l) / q(z_l | x); with one draw it is the evidence lower bound. Its
        expectation is at most log p(x) for any number of draws (Burda, Grosse and Salakhutdinov).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        draws : int, default=64
            Draws of e, the same for all rows.
        random_state : int, RandomState or None, default=0
            Source of random numbers.

        Returns
        -------
        array of shape (n_samples,)
            Bounds, in nats.
        """
        return self._bounds(importance_bounds, X, draws, random_state)

    def score(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the mean of `score_samples`.

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
        float
            Mean bound, in nats.
        """
        found = self.score_samples(X)
        return float(np.average(found, weights=check_weights(self, sample_weight, len(found))))

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        noise: bool = True,
    ) -> Array:
        """Draw rows from the model: z ~ N(0, I), then x given z.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Source of random numbers.
        noise : bool, default=True
            Whether x is drawn; else its mean given z is returned, as pictures usually show it.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        rng, count = source_of(self, random_state), check_number(self, "n_samples", n_samples)
        rows = self._decoded(rng.standard_normal((count, self.n_components_)))
        if not noise:
            return rows
        if np.isnan(self.noise_variance_):
            return (rng.random_sample(rows.shape) < rows).astype(np.float64)
        return np.asarray(rows + np.sqrt(self.noise_variance_) * rng.standard_normal(rows.shape))

    def _bounds(self, rule: Any, X: Any, draws: Any, random_state: Any) -> Array:
        check_is_fitted(self)
        count = max(check_number(self, "draws", draws), 1)
        rows = rows_with_gaps(self, X, gaps=False, fitting=False)
        # the same draws for all rows: the bound of a row is its own, whatever stands beside it
        drawn = source_of(self, random_state).standard_normal((count, 1, self.n_components_))
        found = []
        problem, at = self._model(), self.solution_.value.parameters
        for block in blocks(row_count(rows), self._layout, copies=count):
            part = self._in_units(take(rows, block))
            noise = np.broadcast_to(drawn, (count, len(part), self.n_components_))
            found.append(rule(problem, at, part, noise))
        # a density of rows, not of rows in units
        return np.asarray(np.concatenate(found) - len(self.mean_) * log(self.unit_))

    def _model(self) -> VariationalAutoencoding:
        """Return the problem without its rows: what new rows are compared with."""
        none, likelihood = np.empty((0, len(self.mean_))), "gaussian"
        if np.isnan(self.noise_variance_):  # as it was fitted, whatever the parameter is since
            likelihood = "bernoulli"
        counts = np.empty(0)
        return VariationalAutoencoding(
            none, counts, self._layout, likelihood, 0.0, 1, self._seed, none, counts
        )

    def _shown(self, decoded: Array) -> Array:
        if np.isnan(self.noise_variance_):
            return np.asarray(expit(decoded))
        return super()._shown(decoded)

    def _units(self, X: Array, weights: Array) -> tuple[Array, float]:
        if self.likelihood == "gaussian":
            return centred_units(self, X, weights)
        if X.min() < 0.0 or X.max() > 1.0:
            must = (
                f"be 'gaussian', or rows lie between 0 and 1: X has entries from {X.min():g} to "
                f"{X.max():g}"
            )
            refuse(self, "likelihood", self.likelihood, must)
        return np.zeros(X.shape[1]), 1.0

    def _question(
        self, X: Array, weights: Array, held: Array, held_weights: Array
    ) -> VariationalAutoencoding:
        into, out = self._sizes()
        d, q = X.shape[1], int(self.n_components)
        layout = NetworkLayout((d, *into, 2 * q), (q, *out, d), self.activation)
        return VariationalAutoencoding(
            X,
            weights,
            layout,
            self.likelihood,
            float(self.penalty),
            int(self.draws),
            self._seed,
            held,
            held_weights,
        )

    def _keep(self, problem: VariationalAutoencoding, parameters: Array) -> None:
        v = problem.noise_variance(parameters) * self.unit_**2
        self.noise_variance_ = float(v) if self.likelihood == "gaussian" else float("nan")

    def _copies(self) -> int:
        return int(self.draws)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self, "likelihood", ("gaussian", "bernoulli"))
        check_count(self, "draws")
