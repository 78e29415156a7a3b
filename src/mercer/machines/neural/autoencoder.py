"""Autoencoders: rows through a narrow code and back, with as little lost as possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.machines.base.inputs import rows_with_gaps
from mercer.machines.base.parameters import check_number, source_of
from mercer.machines.base.targets import check_weights
from mercer.machines.neural.network_machine import NetworkMachine, centred_units
from mercer.points import to_dense
from mercer.problems.neural.autoencoding import Autoencoding
from mercer.problems.neural.network import NetworkLayout
from mercer.solvers import Callback


class Autoencoder(NetworkMachine):
    """Nonlinear principal components: min (1/n) sum_i |x_i - g(f(x_i))|^2, f and g networks.

    The encoder f takes rows to codes of `n_components` numbers, the decoder g takes codes back.
    Without activation functions (`activation="identity"`, or no layers between) the decoder spans
    the leading principal components. Training needs torch (`pip install "mercer[torch]"`); a
    fitted machine does not.

    Parameters
    ----------
    n_components : int, default=2
        Numbers of a code.
    encoder_sizes : tuple of int, default=(32,)
        Units of the layers between rows and codes; () for none.
    decoder_sizes : tuple of int or None, default=None
        Units of the layers between codes and rows; None for those of the encoder, backwards.
    activation : {"tanh", "relu", "logistic", "identity"}, default="tanh"
        What stands between layers. The last layer of each network has none.
    penalty : float, default=0.0
        Of half the sum of the squared weights, the loss being the share of the variance that is
        lost.
    batch_size : int or None, default=None
        None: quasi-Newton steps (L-BFGS) on all rows. A number: steps of Adam on so many rows,
        drawn anew in every pass.
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
        Of the start, the order of rows and which are held out. Equal seeds give equal fits.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` after every step or pass; a true return value stops
        the fit.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.

    Attributes
    ----------
    encoder_, decoder_ : Network
        f and g: weights and biases as NumPy arrays, in the units below.
    mean_ : array of shape (n_features,)
        The mean of the rows, taken off before f and added after g.
    unit_ : float
        Root of the mean variance of a column; rows are divided by it.
    code_mean_, code_covariance_ : arrays of shape (n_components,), (n_components, n_components)
        Of the codes of the training rows: what `sample` draws codes from.
    n_components_ : int
        Numbers of a code.
    n_iter_ : int
        Steps, or passes over the rows.
    solution_ : Solution
        How training ended.
    certificate_ : Certificate
        The loss and its derivatives, computed anew from the weights in NumPy.

    Examples
    --------
    >>> from mercer import Autoencoder
    >>> Autoencoder(2, encoder_sizes=(64, 32)).get_params()["activation"]
    'tanh'
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        encoder_sizes: Any = (32,),
        decoder_sizes: Any = None,
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

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> Array:
        """Draw codes from a Gaussian with the moments of the training codes, and decode them.

        An autoencoder is no model of densities: nothing makes its codes Gaussian. The
        `VariationalAutoencoder` learns them to be.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Source of random numbers.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        spread = _root(self.code_covariance_)
        rng = source_of(self, random_state)
        drawn = rng.standard_normal((check_number(self, "n_samples", n_samples), len(spread)))
        return self._decoded(self.code_mean_ + drawn @ spread)

    def reconstruction_error(self, X: Any) -> Array:
        """Return |x - g(f(x))|^2 of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Squared distances.
        """
        back = self.reconstruct(X)
        rows = to_dense(rows_with_gaps(self, X, gaps=False, fitting=False))
        return np.asarray(np.sum((back - rows) ** 2, axis=1))

    def score(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return minus the mean squared distance of rows from their reconstructions.

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
            At most zero; larger is better.
        """
        found = self.reconstruction_error(X)
        return -float(np.average(found, weights=check_weights(self, sample_weight, len(found))))

    def _units(self, X: Array, weights: Array) -> tuple[Array, float]:
        return centred_units(self, X, weights)

    def _question(self, X: Array, weights: Array, held: Array, held_weights: Array) -> Autoencoding:
        into, out = self._sizes()
        d, q = X.shape[1], int(self.n_components)
        layout = NetworkLayout((d, *into, q), (q, *out, d), self.activation)
        return Autoencoding(X, weights, layout, float(self.penalty), held, held_weights)

    def _keep(self, problem: Autoencoding, parameters: Array) -> None:
        codes = self.encoder_(problem.X)
        share = problem.weights / problem.weights.sum()
        self.code_mean_ = share @ codes
        away = codes - self.code_mean_
        self.code_covariance_ = (away * share[:, None]).T @ away


def _root(covariance: Array) -> Array:
    """Return A with A'A = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)
