"""What the penalty of Fisher's discriminant is on: the function, or its coefficients.

With w = sum_i a_i phi(x_i), the penalty on the function is w'w = a'K a. The one on the coefficients
is a'a, and the same problem again with the rows of K for features: its Gram matrix is K K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Gram
from mercer.gram.base import RKHSFunction
from mercer.gram.build import factor_gram
from mercer.problems import Directions, Discriminant

_RANGE = 1e70  # of kernel values and their inverses: fourth powers of them are numbers


class Penalized(Protocol):
    """Where a penalised discriminant lives, and how its answer becomes functions of the kernel.

    Attributes
    ----------
    is_of_the_function : bool
        Whether the penalty depends on the directions alone, and not on where the origin is.
    copies : int
        Matrices of the size of K that a fit holds.
    """

    is_of_the_function: ClassVar[bool]
    copies: ClassVar[int]

    def asked_on(self) -> Gram:
        """Return the Gram on which the problem is written."""

    def functions(self, value: Directions) -> RKHSFunction:
        """Return the directions as functions of the kernel."""

    def lengths(self, value: Directions, functions: RKHSFunction, f: Array) -> Array:
        """Return what the penalty is on, of all pairs of directions: W'W or A'A."""

    def question(self, asked: Discriminant) -> Callable[[Gram], Discriminant]:
        """Return the problem as a function of K, without the data."""


@dataclass(frozen=True, eq=False)
class FunctionPenalty:
    """The penalty w'w: it depends on the directions alone.

    Attributes
    ----------
    gram : Gram
        K.
    weights : (n,) array
        How often each row counts.
    """

    gram: Gram
    weights: Array
    is_of_the_function: ClassVar[bool] = True
    copies: ClassVar[int] = 2

    def asked_on(self) -> Gram:
        """Return K."""
        return self.gram

    def functions(self, value: Directions) -> RKHSFunction:
        """Return the directions as they are."""
        return RKHSFunction(self.gram, value.coef, value.weights)

    def lengths(self, value: Directions, functions: RKHSFunction, f: Array) -> Array:
        """Return W'W."""
        if functions.weights is not None:
            return np.asarray(functions.weights.T @ functions.weights)
        assert value.coef is not None
        return np.asarray(value.coef.T @ f)

    def question(self, asked: Discriminant) -> Callable[[Gram], Discriminant]:
        """Write the problem on another Gram of the same points."""
        return partial(_on, asked=replace(asked, gram=None))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class CoefficientPenalty:
    """The penalty sum_i a_i^2 / s_i, s_i how often a row counts: two copies share a coefficient.

    Attributes
    ----------
    gram : Gram
        K.
    weights : (n,) array
        How often each row counts.
    """

    gram: Gram
    weights: Array
    is_of_the_function: ClassVar[bool] = False
    copies: ClassVar[int] = 4

    def asked_on(self) -> Gram:
        """Return the Gram of the features k(x_i, .) sqrt(s_i)."""
        held = kernel_features(self.gram, self.weights)
        largest = float(np.abs(held.factor).max(initial=0.0))
        if not 1.0 / _RANGE <= largest <= _RANGE:
            raise ValueError(
                f"FisherDiscriminant: kernel values are as {'large' if largest > 1 else 'small'} "
                f"as {largest:.0e}, and penalty_on='coefficients' takes fourth powers of them; "
                "scale the features, or the kernel"
            )
        return held

    def functions(self, value: Directions) -> RKHSFunction:
        """Return sum_i a_i k(x_i, .)."""
        return RKHSFunction(self.gram, self._scaled(value) * np.sqrt(self.weights)[:, None])

    def lengths(self, value: Directions, functions: RKHSFunction, f: Array) -> Array:
        """Return A'A, with the weights."""
        scaled = self._scaled(value)
        return np.asarray(scaled.T @ scaled)

    def question(self, asked: Discriminant) -> Callable[[Gram], Discriminant]:
        """Write the problem on the features that another K has."""
        return partial(
            _on_features,
            asked=replace(asked, gram=None),  # type: ignore[arg-type]
            weights=self.weights,
        )

    def _scaled(self, value: Directions) -> Array:
        if value.weights is not None:
            return value.weights
        assert value.coef is not None
        held = kernel_features(self.gram, self.weights)
        return np.asarray(held.factor.T @ value.coef)


PENALIZED: dict[str, type[FunctionPenalty | CoefficientPenalty]] = {
    "function": FunctionPenalty,
    "coefficients": CoefficientPenalty,
}


def kernel_features(gram: Gram, weights: Array) -> Gram:
    """Return the Gram whose features are the rows of K, each entry times the root of a weight."""
    return factor_gram(_unknown, gram.dense() * np.sqrt(weights))


def _unknown(X: Points) -> Any:
    raise NotImplementedError("new rows go through the kernel itself")


def _on(gram: Gram, asked: Discriminant) -> Discriminant:
    return replace(asked, gram=gram)


def _on_features(gram: Gram, asked: Discriminant, weights: Array) -> Discriminant:
    return replace(asked, gram=kernel_features(gram, weights))
