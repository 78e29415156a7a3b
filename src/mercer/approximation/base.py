"""Interfaces of approximations and their features, approximate kernels, and their stated errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from mercer import expression as ex
from mercer.array_types import Array, Points
from mercer.expression import Expression
from mercer.gram.factored import RowMap
from mercer.kernels import Kernel
from mercer.kernels.algebra import numbered, proven
from mercer.rows.points import as_points, column_names, row_count, take

# Rows that the error is estimated from, where not all are looked at: entries between 500 rows are
# 125,000, whose root mean square is known to a percent.
_JUDGED = 500


class ApproximationError(ValueError):
    """The kernel has no such features; the message names the approximations it has."""


@dataclass(frozen=True)
class StatedError:
    """The error of an approximate kernel.

    Attributes
    ----------
    value : float
        0 is exact, 1 as bad as no features at all.
    measure : str
        Description of the number.
    rows : int
        Rows that were compared.
    standard_error : float
        Standard error from a sample of rows; zero if all were compared, or if
        it is not known.
    """

    value: float
    measure: str
    rows: int
    standard_error: float = 0.0

    def __str__(self) -> str:
        known = f" +- {self.standard_error:.1g}" if self.standard_error else ""
        return f"{self.value:.2g}{known}, {self.measure} ({self.rows} rows compared)"


class Features(RowMap):
    """A feature map found for one kernel: rows (n, d) in, features (n, dimension) out."""


@proven
@dataclass(frozen=True, repr=False)
class ApproximateKernel(Kernel):
    """<phi(x), phi(y)> for features phi that were found for a kernel.

    Attributes
    ----------
    kernel : Kernel
        The approximated kernel.
    approximation : Approximation
        How the features were found.
    phi : Features
        The feature map.
    """

    kernel: Kernel
    approximation: Approximation
    phi: Features

    def expression(self) -> Expression:
        """Write the dot product of the features."""
        return ex.Dot((ex.Mapped(self.phi),))

    def __repr__(self) -> str:
        return f"{self.approximation!r}.of({self.kernel!r})"

    def error(self, X: Any, random_state: int = 0) -> float:
        """Return the root mean square of k - <phi, phi> between rows, over that of k.

        Parameters
        ----------
        X : rows
            New rows, or those that the features were found on; at most 500 of them are compared.
        random_state : int
            Draws them.

        Returns
        -------
        float
            0 is exact, 1 as bad as no features at all.
        """
        points = sampled(as_points(X), _JUDGED, random_state)
        K, F = self.kernel(points), self.phi(points)
        size = float(np.sqrt(np.mean(np.square(K))))
        return float(np.sqrt(np.mean(np.square(K - F @ F.T)))) / size if size else 0.0

    def trace_error(self, X: Any, random_state: int = 0, most: int | None = None) -> float:
        """Return trace(K - F F') / trace(K) on rows: the unexplained fraction of |phi(x)|^2.

        For landmarks, where K - F F' is positive semidefinite, no entry of it is larger than its
        largest diagonal entry, and its eigenvalues sum to this.

        Parameters
        ----------
        X : rows
            Those of the fit, or new ones.
        random_state : int
            Draws rows, if not all are looked at.
        most : int or None
            Rows to look at; None for all of them.

        Returns
        -------
        float
            0 is exact; below zero where features are too long, as random ones may be.
        """
        return self.left_out(X, random_state, most)[0]

    def left_out(
        self, X: Any, random_state: int = 0, most: int | None = None
    ) -> tuple[float, float]:
        """Return the `trace_error` of rows, and its standard error if they are a sample of X."""
        every = as_points(X)
        points = sampled(every, most, random_state)
        own = np.asarray(self.kernel.diag(points), dtype=np.float64)
        kept = self.phi.squared_lengths(points)
        total, n, count = float(own.sum()), row_count(every), len(own)
        if not total:
            return 0.0, 0.0
        share = 1.0 - float(kept.sum()) / total
        if count == n or count < 2:
            return share, 0.0
        # of a ratio of two sums, drawn without replacement
        spread = float(np.sqrt(np.square(own - kept - share * own).sum() / (count - 1)))
        return share, spread * float(np.sqrt((1.0 - count / n) * count)) / abs(total)

    def stated_error(self, X: Any) -> StatedError:
        """Return the error of this kernel, by the measure of its approximation."""
        return self.approximation.stated_error(self, as_points(X))


@dataclass(frozen=True, repr=False)
class Approximation(ABC):
    """A way to find features of a kernel on rows; a value, as kernels are."""

    @abstractmethod
    def features(self, kernel: Kernel, X: Points, weights: Array | None = None) -> Features:
        """Find the features of a kernel on rows."""

    def of(
        self,
        kernel: Kernel,
        X: Any,
        weights: Array | None = None,
        names: Sequence[str] | None = None,
    ) -> ApproximateKernel:
        """Return the kernel of the features found on rows X, whose columns may have names."""
        kernel = numbered(kernel, column_names(X) if names is None else names)
        return ApproximateKernel(kernel, self, self.features(kernel, as_points(X), weights))

    def stated_error(self, kernel: ApproximateKernel, X: Points) -> StatedError:
        """Estimate the error between rows: features that do not look at rows are held out."""
        measure = "root mean square of k - <phi, phi> over that of k"
        return StatedError(kernel.error(X), measure, min(row_count(X), _JUDGED))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, so that grids reach them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def with_params(self, **params: Any) -> Self:
        """Return another one, with some parameters replaced."""
        unknown = [name for name in params if name not in self.get_params()]
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}; it has "
                f"{', '.join(self.get_params())}"
            )
        return replace(self, **params)

    def __sklearn_clone__(self) -> Self:
        return self  # a value needs no copy

    def __repr__(self) -> str:
        given = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)]
        return f"{type(self).__name__}({', '.join(given)})"


def sampled(points: Points, most: int | None, random_state: int) -> Points:
    """Return a random subset of the rows, or all rows if there are few."""
    n = row_count(points)
    if most is None or n <= most:
        return points
    return take(points, np.random.default_rng(random_state).choice(n, most, False))
