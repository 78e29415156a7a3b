"""What an approximation is: a way to find features, and a kernel that is made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mercer import expression as ex
from mercer.array_types import Array, Points
from mercer.expression import Expression
from mercer.gram.storage.streamed import RowMap
from mercer.kernels import Kernel
from mercer.kernels.base import proven
from mercer.points import as_points, row_count, take

# Rows that the error is estimated from, where not all are looked at: entries between 500 rows are
# 125,000, whose root mean square is known to a percent.
_JUDGED = 500


class ApproximationError(ValueError):
    """The kernel has no such features; the message names the approximations it has."""


class Features(RowMap):
    """A feature map found for one kernel: rows (n, d) in, features (n, dimension) out."""


@proven
@dataclass(frozen=True, repr=False)
class ApproximateKernel(Kernel):
    """<phi(x), phi(y)> for features phi that were found for a kernel.

    Attributes
    ----------
    kernel : Kernel
        What it stands for.
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
        points = as_points(X)
        n = row_count(points)
        if n > _JUDGED:
            points = take(points, np.random.default_rng(random_state).choice(n, _JUDGED, False))
        K, F = self.kernel(points), self.phi(points)
        size = float(np.sqrt(np.mean(np.square(K))))
        return float(np.sqrt(np.mean(np.square(K - F @ F.T)))) / size if size else 0.0


@dataclass(frozen=True, repr=False)
class Approximation(ABC):
    """A way to find features of a kernel on rows; a value, as kernels are."""

    @abstractmethod
    def features(self, kernel: Kernel, X: Points, weights: Array | None = None) -> Features:
        """Find the features of a kernel on rows."""

    def of(self, kernel: Kernel, X: Any, weights: Array | None = None) -> ApproximateKernel:
        """Return the kernel of the features found on rows X."""
        return ApproximateKernel(kernel, self, self.features(kernel, as_points(X), weights))

    def __repr__(self) -> str:
        given = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)]
        return f"{type(self).__name__}({', '.join(given)})"
