"""Hostile data, and a fit of it: what is drawn depends on the seed alone."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mercer.solvers import SolverError
from oracle import exact as ex
from oracle.exact import EPS, ExactKernel, exact, largest

REFUSALS = (ValueError, SolverError, MemoryError)
Sizes = tuple[int, ...]
SIZES, COLUMNS = (2, 3, 5, 8, 12, 16), (1, 2, 3, 5, 20)
HIDDEN = 1e-2  # of a tolerance: what certificates leave uncounted, as their files say


class Draw:
    """Samples with what is wrong with real ones, and random choices."""

    def __init__(self, *seed: int, sizes: Sizes = SIZES, columns: Sizes = COLUMNS):
        self.seed, self.random = seed, np.random.default_rng(seed)
        self.n, self.d = self.one(sizes), self.one(columns)
        self.harm: list[str] = []

    def one(self, options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def power(self, low: float, high: float) -> float:
        return float(f"{10.0 ** self.random.uniform(low, high):.3g}")

    def samples(self, least: int = 2) -> np.ndarray:
        """Draw X."""
        r, n, d = self.random, max(self.n, least), self.d
        X = r.standard_normal((n, d))
        harms: dict[str, Callable[[], np.ndarray]] = {
            "duplicates": lambda: X[r.integers(0, n // 2 + 1, n)],
            "near-duplicates": lambda: X[r.integers(0, n // 2 + 1, n)] + 1e-9 * X,
            "constant column": lambda: np.where(np.arange(d) == 0, self.one([0.0, 1.0, 1e8]), X),
            "integers": lambda: np.round(2 * X),
            "rank one": lambda: np.outer(X[:, 0], np.arange(1.0, d + 1)),
            "skewed columns": lambda: X * 10.0 ** r.uniform(-6, 6, d),
            "offset": lambda: X + self.power(6, 12),
            "huge entry": lambda: _with(X, self.power(4, 12)),
            "groups": lambda: X + 6.0 * (np.arange(n) % 2)[:, None],
        }
        for name in r.permutation(list(harms))[: self.one([0, 0, 1, 1, 2])]:
            X = harms[str(name)]()
            self.harm.append(str(name))
        if self.chance(0.12):
            unit = self.power(-160, -100) if self.chance(0.5) else self.power(60, 150)
            X = X * unit
            self.harm.append(f"unit {unit:g}")
        return X

    def labels(self, n: int, most: int = 3) -> np.ndarray:
        """Draw at least two classes, sometimes one sample against all others, or all equally."""
        k = int(min(n, self.random.integers(2, most + 1)))
        if self.chance(0.2):
            return (np.arange(n) == 0).astype(int)
        y = np.arange(n) % k if self.chance(0.3) else self.random.integers(0, k, n)
        y[:2] = [0, 1]
        return y

    def targets(self, X: np.ndarray) -> np.ndarray:
        n = len(X)
        y = self.random.standard_normal(n)
        if self.chance(0.5):
            y = np.sin(3 * X[:, 0] / max(np.abs(X[:, 0]).max(), 1e-300)) + 0.1 * y
        return self.one([y, y, y * self.power(-8, 8), y + self.power(2, 8), np.full(n, 3.0)])

    def weights(self, n: int) -> np.ndarray | None:
        r = self.random
        drawn = [None, None, None, r.uniform(0.1, 3, n), r.integers(0, 3, n).astype(float)]
        drawn += [10.0 ** r.uniform(-6, 6, n), np.where(np.arange(n) == 0, 1e12, 1.0)]
        w = self.one(drawn)
        if w is not None and n > 1:
            w[:2] = np.maximum(w[:2], 1e-6)
        return w

    def kernel(self, X: np.ndarray) -> ExactKernel:
        """Draw a kernel; scales are about the size of the differences, or far from it."""
        size = float(np.abs(X - X.mean(axis=0)).max()) or 1.0
        scale = float(f"{size * self.power(-2, 2):.3g}") or 1.0
        return self.one(
            [
                ex.linear,
                lambda: ex.gaussian(scale),
                lambda: ex.gaussian(float(f"{size:.3g}") or 1.0),
                lambda: ex.laplacian(scale),
                lambda: ex.polynomial(self.one([1, 2, 3]), self.one([0.0, 1.0, 100.0])),
            ]
        )()


def _with(X: np.ndarray, entry: float) -> np.ndarray:
    X = X.copy()
    X[len(X) // 2, -1] = entry
    return X


@dataclass
class Fit:
    """A fitted estimator and what it was fitted to.

    Attributes
    ----------
    machine : estimator
        Fitted by `run`.
    X, y, weights : array or None
        Training data.
    kernel : ExactKernel or None
        Its kernel in exact arithmetic.
    harm : list of str
        What was done to the samples.
    """

    machine: Any
    X: np.ndarray
    y: np.ndarray | None = None
    weights: np.ndarray | None = None
    kernel: ExactKernel | None = None
    harm: list[str] = field(default_factory=list)

    def run(self) -> bool:
        """Fit; return whether the estimator did so and certifies the result."""
        given = {} if self.weights is None else {"sample_weight": self.weights}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.machine.fit(self.X, *([] if self.y is None else [self.y]), **given)
            except REFUSALS:
                return False
            return bool(self.certificate.ok)

    @property
    def certificate(self) -> Any:
        return self.machine.certificate_

    @property
    def stated(self) -> Any:
        return self.certificate.quantities

    @cached_property
    def K(self) -> np.ndarray:
        assert self.kernel is not None
        return self.kernel(self.X, self.X)

    @property
    def s(self) -> np.ndarray:
        return exact(np.ones(len(self.X)) if self.weights is None else self.weights)

    def output(self, method: str) -> np.ndarray:
        """Return what a public method says about the training samples, as exact numbers."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return exact(np.asarray(getattr(self.machine, method)(self.X), dtype=float))

    def false(
        self, what: str, true: Any, stated: float, rounding: Any = 0.0, tol: float | None = None
    ) -> Iterator[str]:
        """Yield a message if a quantity is larger than stated, or than the tolerance.

        `rounding` is what the rounding of the output itself, an ulp of each number, may amount to.
        """
        tol = self.certificate.tol if tol is None else tol
        allowed = min(max(stated, 0.0) * (1 + HIDDEN), tol) + HIDDEN * tol + rounding
        if not true <= allowed:
            yield f"{what} is {float(true):.3g}; stated {float(stated):.3g} with tol {tol:.1g}"

    def differs(self, what: str, stated: Any, true: Any, allowed: Any) -> Iterator[str]:
        """Yield a message if numbers are not what they are said to be."""
        apart = largest(exact(np.asarray(stated, dtype=float)) - true)
        if not apart <= allowed:
            yield f"{what} differs by {float(apart):.3g} where {float(allowed):.3g} is allowed"


def ulps(*numbers: Any) -> Any:
    """Return two roundings of the largest of some numbers."""
    return 2 * EPS * max(largest(np.asarray(x)) for x in numbers)


Oracle = tuple[Callable[[Draw], Fit], Callable[[Fit], Iterator[str]]]
