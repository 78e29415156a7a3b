"""What both autoencoders share: rows in units, rows held out, training, codes and the way back."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.certificates import Certificate, certify
from mercer.machines.base.inputs import refuse_large_squares, rows_with_gaps
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.other_names import Machine
from mercer.machines.base.parameters import (
    check_choice,
    check_count,
    check_flag,
    check_limits,
    check_optional_count,
    check_real,
    check_seed,
    is_real,
    refuse,
    seed_of,
)
from mercer.machines.base.targets import check_weights, distinct_rows
from mercer.machines.projection.inversion import check_scores
from mercer.points import row_count, take, to_dense
from mercer.problems.neural.network import ACTIVATIONS, Network, NetworkLayout, blocks
from mercer.resources import require_memory
from mercer.solvers import NetworkAdam, NetworkLBFGS, Solution, solve
from mercer.solvers.neural.torch_loss import INSTALL, has_torch

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
        """Set the attributes that are this machine's own."""

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
            The fitted machine.
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
            What the encoder makes of them.
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
            What the decoder makes of them.
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
            What the decoder makes of them.
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
        """Return what the decoder gives in the units of the rows."""
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
