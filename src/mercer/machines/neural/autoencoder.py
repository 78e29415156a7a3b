"""Estimators `Autoencoder` and `VariationalAutoencoder`, and their base."""

from __future__ import annotations

from abc import abstractmethod
from math import log
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.machines.base.inputs import refuse_large_squares, rows_with_gaps
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.parameters import (
    check_choice,
    check_count,
    check_flag,
    check_limits,
    check_number,
    check_optional_count,
    check_real,
    check_seed,
    is_real,
    refuse,
    seed_of,
    source_of,
)
from mercer.machines.base.targets import check_weights, distinct_rows
from mercer.machines.decomposition.preimage import check_scores
from mercer.machines.decomposition.probabilistic_pca import LatentPosterior
from mercer.machines.neural.problem import (
    ACTIVATIONS,
    Autoencoding,
    Network,
    NetworkLayout,
    VariationalAutoencoding,
    blocks,
    importance_bounds,
    row_bounds,
)
from mercer.machines.neural.training import INSTALL, NetworkAdam, NetworkLBFGS, has_torch
from mercer.resources import require_memory
from mercer.rows.points import row_count, take, to_dense
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import solve

# --- base of both --------------------------------------------------------------------------------
#
# Samples in units, held-out samples, training, codes and reconstructions.

_STEPS, _PASSES = 2000, 200  # of quasi-Newton steps; of passes over the rows in small batches


class NetworkMachine(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Machine, BaseEstimator):
    """Base of autoencoders: equal rows are merged, so that weights are repetition."""

    n_components: int
    encoder_sizes: Any
    decoder_sizes: Any
    activation: str
    penalty: float
    batch_size: int | None
    learning_rate: float
    early_stopping: bool
    validation_fraction: float
    patience: int
    tol: float
    max_iter: int | None
    random_state: Any
    callback: Any
    time_limit: float | None

    mean_: Array
    unit_: float
    solution_: Solution
    certificate_: Certificate
    n_components_: int
    n_iter_: int
    _layout: NetworkLayout
    _seed: int

    @abstractmethod
    def _units(self, X: Array, weights: Array) -> tuple[Array, float]:
        """Return the origin and the unit that the rows are given in."""

    @abstractmethod
    def _question(self, X: Array, weights: Array, held: Array, held_weights: Array) -> Any:
        """Write the problem of these rows, which are in units."""

    @abstractmethod
    def _keep(self, problem: Any, parameters: Array) -> None:
        """Set the attributes of this class."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows; needs torch.

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
        self
            The fitted estimator.
        """
        self._check_parameters()
        given = rows_with_gaps(self, X, gaps=False, fitting=True)
        weights = check_weights(self, sample_weight, row_count(given))
        if not has_torch():
            raise ImportError(
                f"{type(self).__name__}: fit trains networks with torch, which is not installed: "
                f"{INSTALL}. A fitted one, from a model file or a pickle, works without it"
            )
        merged = distinct_rows(given, np.zeros(len(weights)), weights)
        self._require_memory(len(merged.first), int(given.shape[1]))
        rows, counts = to_dense(take(given, merged.first)), merged.weight
        self._seed = seed_of(self.random_state)
        learnt, held = self._split(len(rows))
        self.mean_, self.unit_ = self._units(rows[learnt], counts[learnt])
        rows = (rows - self.mean_) / self.unit_
        problem = self._question(rows[learnt], counts[learnt], rows[held], counts[held])
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        self.solution_ = solve(problem, self._solver(), **options)
        # twice: torch and NumPy add up in different orders
        self.certificate_ = certify(problem, self.solution_.value, 2.0 * self.tol)
        self._layout = problem.layout
        self.n_components_ = int(self.n_components)
        self.n_iter_ = int(self.solution_.iterations)
        self._keep(problem, self.solution_.value.parameters)
        return self

    @property
    def encoder_(self) -> Network:
        """The network f from rows to codes, on rows in units: weights as NumPy arrays."""
        return self._networks()[0]

    @property
    def decoder_(self) -> Network:
        """The network g from codes to rows in units: weights as NumPy arrays."""
        return self._networks()[1]

    def transform(self, X: Any) -> Array:
        """Return the codes of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Output of the encoder.
        """
        return self._encoded(X)[:, : self.n_components_]

    def inverse_transform(self, X: Any) -> Array:
        """Return the rows that codes stand for; the same as `decode`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Codes.

        Returns
        -------
        array of shape (n_samples, n_features)
            Output of the decoder.
        """
        check_is_fitted(self)
        codes = np.asarray(check_scores(self, X, self.n_components_), dtype=np.float64)
        return self._decoded(codes)

    def decode(self, Z: Any) -> Array:
        """Return the rows that codes stand for: g(z).

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Codes.

        Returns
        -------
        array of shape (n_samples, n_features)
            Output of the decoder.
        """
        return self.inverse_transform(Z)

    def reconstruct(self, X: Any) -> Array:
        """Return rows after the way through the code and back: g(f(x)).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows.
        """
        return self._decoded(self.transform(X))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def _networks(self) -> tuple[Network, Network]:
        if "_layout" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no networks before it is fitted")
        return self._layout.networks(self.solution_.value.parameters)

    def _in_units(self, X: Points) -> Array:
        return np.asarray((to_dense(X) - self.mean_) / self.unit_)

    def _encoded(self, X: Any) -> Array:
        check_is_fitted(self)
        rows: Points = rows_with_gaps(self, X, gaps=False, fitting=False)
        network, cuts = self.encoder_, blocks(row_count(rows), self._layout)
        return np.vstack([network(self._in_units(take(rows, block))) for block in cuts])

    def _decoded(self, codes: Array) -> Array:
        network, cuts = self.decoder_, blocks(len(codes), self._layout)
        found = [self._shown(network(codes[block])) for block in cuts]
        return np.vstack([np.empty((0, len(self.mean_))), *found])

    def _shown(self, decoded: Array) -> Array:
        """Return the output of the decoder in the units of the rows."""
        return np.asarray(decoded * self.unit_ + self.mean_)

    def _split(self, n: int) -> tuple[Array, Array]:
        """Return the rows to learn from and those held out, in order."""
        count = 0
        if self.early_stopping:
            count = max(1, round(self.validation_fraction * n))
            if count >= n:
                must = f"be False: there are {n} different rows, too few to hold any out"
                refuse(self, "early_stopping", self.early_stopping, must)
        order = np.random.default_rng([self._seed, 9]).permutation(n)
        return np.sort(order[count:]), np.sort(order[:count])

    def _solver(self) -> NetworkLBFGS | NetworkAdam:
        options: dict[str, Any] = {
            "tol": float(self.tol),
            "patience": int(self.patience) if self.early_stopping else None,
            "seed": self._seed,
        }
        if self.batch_size is None:
            return NetworkLBFGS(max_iter=int(self.max_iter or _STEPS), **options)
        return NetworkAdam(
            max_iter=int(self.max_iter or _PASSES),
            batch_size=int(self.batch_size),
            learning_rate=float(self.learning_rate),
            **options,
        )

    def _sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the units between rows and codes, and between codes and rows."""
        encoder = tuple(map(int, self.encoder_sizes))
        given = self.decoder_sizes
        return encoder, encoder[::-1] if given is None else tuple(map(int, given))

    def _require_memory(self, n: int, d: int) -> None:
        encoder, decoder = self._sizes()
        units = 2 * d + sum(encoder) + sum(decoder) + 3 * int(self.n_components)
        at_once = (n if self.batch_size is None else min(n, int(self.batch_size))) * self._copies()
        require_memory(
            8 * (3 * n * d + 4 * at_once * units),
            f"training {type(self).__name__} on {n} rows",
            "Pass a smaller batch_size, fewer units in encoder_sizes, or fewer rows.",
        )

    def _copies(self) -> int:
        """Count how often each row goes through the networks in a step."""
        return 1

    def _check_parameters(self) -> None:
        check_count(self, "n_components")
        for name in ("encoder_sizes", "decoder_sizes"):
            _check_sizes(self, name)
        check_choice(self, "activation", tuple(ACTIVATIONS))
        check_real(self, "penalty", least=0)
        for name in ("batch_size", "max_iter"):
            check_optional_count(self, name)
        for name in ("learning_rate", "tol"):
            check_real(self, name, above=0)
        check_flag(self, "early_stopping")
        share = self.validation_fraction
        if not is_real(share) or not 0 < share < 1:
            refuse(self, "validation_fraction", share, "be a number between 0 and 1")
        check_count(self, "patience")
        check_seed(self)
        check_limits(self)


def _check_sizes(machine: NetworkMachine, name: str) -> None:
    value = getattr(machine, name)
    if value is None and name == "decoder_sizes":
        return
    sizes = list(value) if isinstance(value, list | tuple | np.ndarray) else [0]
    if not all(is_real(k) and isinstance(k, Integral) and int(k) > 0 for k in sizes):
        refuse(
            machine, name, value, "be numbers of units, such as (64, 32); () for no layer between"
        )


def root_mean_square(X: Array, weights: Array) -> float:
    """Return the root of the mean squared length of rows, without underflow of small ones."""
    largest = float(np.abs(X).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * float(np.sqrt(np.average(np.sum((X / largest) ** 2, axis=1), weights=weights)))


def centred_units(machine: Any, X: Array, weights: Array) -> tuple[Array, float]:
    """Return the mean of rows, and the root of the mean variance of a column; one if that is 0.

    Parameters
    ----------
    machine : estimator
        Named in errors.
    X : (n, d) array
        Rows.
    weights : (n,) array
        How often each counts.
    """
    refuse_large_squares(machine, X)
    mean = np.average(X, axis=0, weights=weights)
    unit = root_mean_square(X - mean, weights) / np.sqrt(X.shape[1])
    return mean, float(unit) if unit > 0 else 1.0


# --- autoencoder ---------------------------------------------------------------------------------


class Autoencoder(NetworkMachine):
    """Nonlinear principal components: min (1/n) sum_i |x_i - g(f(x_i))|^2, f and g networks.

    The encoder f takes rows to codes of `n_components` numbers, the decoder g takes codes back.
    Without activation functions (`activation="identity"`, or no layers between) the decoder spans
    the leading principal components. Training needs torch (`pip install "mercer[torch]"`); a
    fitted estimator does not.

    Parameters
    ----------
    n_components : int, default=2
        Numbers of a code.
    encoder_sizes : tuple of int, default=(32,)
        Units of the layers between rows and codes; () for none.
    decoder_sizes : tuple of int or None, default=None
        Units of the layers between codes and rows; None for those of the encoder, backwards.
    activation : {"tanh", "relu", "logistic", "identity"}, default="tanh"
        Activation function of the hidden layers. The last layer of each network has none.
    penalty : float, default=0.0
        Weight of half the sum of the squared weights. The loss is the unexplained fraction of the
        variance.
    batch_size : int or None, default=None
        None: quasi-Newton steps (L-BFGS) on all rows. A number: steps of Adam on so many rows,
        drawn again in every epoch.
    learning_rate : float, default=1e-3
        Length of Adam's steps.
    early_stopping : bool, default=False
        Hold rows out, stop when they gain no more, and keep the weights that served them best.
    validation_fraction : float, default=0.1
        Fraction of the rows held out.
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
        Time limit in seconds. The fit then keeps the current solution.

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
        The loss and its derivatives, computed again from the weights in NumPy.

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

        An autoencoder is not a density model: its codes need not be Gaussian. The
        `VariationalAutoencoder` learns them to be.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples.
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


# --- variational autoencoder ---------------------------------------------------------------------


class VariationalAutoencoder(NetworkMachine):
    """A latent variable through a network: z ~ N(0, I), x | z ~ N(g(z), v I) or Bernoulli.

    log p(x) has no closed form; the fit maximizes the evidence lower bound
    E_q log p(x | z) - KL(q(z | x) | N(0, I)) with q(z | x) = N(m(x), diag s(x)^2), m and s by an
    encoder network. With affine networks and Gaussian noise it is `ProbabilisticPCA`. Training
    needs torch (`pip install "mercer[torch]"`); a fitted estimator does not.

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
        Of x given z: noise of one variance, which is learned; or entries between 0 and 1 as the
        probabilities of pixels.
    draws : int, default=1
        Draws of z for each row and step. On all rows at once (`batch_size=None`) they are fixed for
        the fit, so that there is a function to descend; more of them make it a better bound.
    activation : {"tanh", "relu", "logistic", "identity"}, default="tanh"
        Activation function of the hidden layers. The last layer of each network has none.
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
        Fraction of the rows held out.
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
        Time limit in seconds. The fit then keeps the current solution.

    Attributes
    ----------
    encoder_, decoder_ : Network
        Weights and biases as NumPy arrays, in the units below. The encoder gives means, then
        log-variances.
    mean_ : array of shape (n_features,)
        Subtracted from rows before the encoder: their mean; zero for Bernoulli.
    unit_ : float
        Divisor of the centered rows: the root of the mean variance of a column; one for Bernoulli.
    noise_variance_ : float
        v, in the units of the rows; NaN for Bernoulli.
    n_components_ : int
        Latent variables.
    n_iter_ : int
        Steps, or passes over the rows.
    solution_ : Solution
        How training ended.
    certificate_ : Certificate
        Bounds and derivatives, computed again from the weights in NumPy.

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
        """Return means and covariances of q(z | x), the output of the encoder for rows.

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
            Number of samples.
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
        # the same draws for all rows: the bound of a row does not depend on the other rows
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
        if np.isnan(self.noise_variance_):  # as fitted, even if the parameter was changed since
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
