"""Kernels of the dot product: linear, polynomial, subsets, and the sigmoid that is no kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mercer import expression as ex
from mercer.array_types import Array, FrozenArray
from mercer.expression import Expression
from mercer.kernels import checks
from mercer.kernels.base import Kernel, proven


@proven
@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    """k(x, y) = x'y.

    Examples
    --------
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[11.0]]
    """

    def expression(self) -> Expression:
        """Write the dot product."""
        return ex.Dot()


@proven
@dataclass(frozen=True, repr=False)
class Polynomial(Kernel):
    """k(x, y) = (x'y + offset)^degree; offset 0 is the homogeneous kernel.

    Parameters
    ----------
    degree : int
        At least 1.
    offset : float
        Zero or above; weighs the monomials of lower degree.

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[144.0]]
    >>> Polynomial(degree=2).features(2).dimension
    6
    """

    degree: int = 2
    offset: float = 1.0

    other_names: ClassVar[Mapping[str, str]] = {
        "coef0": "it is called offset: Polynomial(degree, offset={value})",
        "gamma": (
            "(gamma x'y + c)^d is gamma^d (x'y + c / gamma)^d: write gamma**d * Polynomial(d, "
            "offset=c / gamma), with gamma={value}"
        ),
    }

    def __post_init__(self) -> None:
        reason = "a negative offset gives negative eigenvalues"
        self._store(
            degree=checks.whole("Polynomial", "degree", self.degree),
            offset=checks.nonnegative("Polynomial", "offset", self.offset, reason),
        )

    def expression(self) -> Expression:
        """Write the power of the shifted dot product."""
        return (ex.Dot() + self.offset) ** self.degree


@proven
@dataclass(frozen=True, repr=False)
class Bilinear(Kernel):
    """k(x, y) = x'A y with A symmetric positive semidefinite.

    Parameters
    ----------
    A : array-like (d, d)

    Examples
    --------
    >>> Bilinear([[2, 0], [0, 1]])([[1.0, 2.0]], [[3.0, 4.0]]).round(12).tolist()
    [[14.0]]
    """

    A: Sequence[Sequence[float]] | Array

    def __post_init__(self) -> None:
        self._store(A=checks.psd_matrix("Bilinear", "A", self.A))

    def expression(self) -> Expression:
        """Write x'A y = (L'x)'(L'y) with A = L L'."""
        assert isinstance(self.A, FrozenArray)
        return ex.Dot((ex.LinearMap(_factor(self.A)),))


@lru_cache(maxsize=64)  # a kernel writes its expression at every call
def _factor(A: FrozenArray) -> FrozenArray:
    values, vectors = np.linalg.eigh((A.array + A.array.T) / 2)
    kept = values > 1e-15 * max(values[-1], 0.0)
    kept[-1] = True  # A = 0 keeps one column of zeros: rows of length 0 are no rows
    return FrozenArray(vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0)))


@proven
@dataclass(frozen=True, repr=False)
class Cosine(Kernel):
    """k(x, y) = x'y / (|x| |y|), and 0 where a row is zero.

    Examples
    --------
    >>> Cosine()([[3.0, 4.0]], [[1.0, 0.0]]).round(12).tolist()
    [[0.6]]
    """

    def expression(self) -> Expression:
        """Write the dot product between the reciprocal norms."""
        dot = ex.Dot((ex.NearOne(),))
        return dot * ex.RowProduct(ex.SelfValue(dot, -0.5))


@proven
@dataclass(frozen=True, repr=False)
class AllSubsets(Kernel):
    """k(x, y) = prod_i (1 + x_i y_i): one feature for every subset of the columns.

    Examples
    --------
    >>> AllSubsets()([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[36.0]]
    >>> AllSubsets().features(10).dimension
    1024
    """

    def expression(self) -> Expression:
        """Write the product over columns."""
        return ex.SubsetProduct()


@proven
@dataclass(frozen=True, repr=False)
class Anova(Kernel):
    """k(x, y) = sum over sets S of `degree` different columns of prod_{i in S} x_i y_i.

    Parameters
    ----------
    degree : int
        At least 1.

    Examples
    --------
    >>> Anova(degree=2)([[1.0, 2.0, 1.0]], [[3.0, 4.0, 1.0]]).tolist()
    [[35.0]]
    """

    degree: int = 2

    def __post_init__(self) -> None:
        self._store(degree=checks.whole("Anova", "degree", self.degree))

    def expression(self) -> Expression:
        """Write the elementary symmetric sum of the products x_i y_i."""
        return ex.SymmetricSum(degree=self.degree)


@dataclass(frozen=True, repr=False)
class Sigmoid(Kernel):
    """k(x, y) = tanh(slope x'y + offset). Not positive semidefinite; kept for its history.

    Parameters
    ----------
    slope, offset : float

    Examples
    --------
    >>> Sigmoid(slope=0.5).psd
    False
    """

    slope: float = 1.0
    offset: float = 0.0

    other_names: ClassVar[Mapping[str, str]] = {
        "gamma": "it is called slope: Sigmoid(slope={value})",
        "coef0": "it is called offset: Sigmoid(slope, offset={value})",
    }

    def __post_init__(self) -> None:
        self._store(
            slope=checks.real("Sigmoid", "slope", self.slope),
            offset=checks.real("Sigmoid", "offset", self.offset),
        )

    @property
    def psd(self) -> bool:
        """False: no choice of slope and offset other than trivial ones makes it valid."""
        return False

    def expression(self) -> Expression:
        """Write the hyperbolic tangent of the dot product."""
        return ex.Tanh(self.slope * ex.Dot() + self.offset)


@proven
@dataclass(frozen=True, repr=False)
class Constant(Kernel):
    """k(x, y) = value: what a number is when it is added to a kernel.

    Parameters
    ----------
    value : float
        Zero or above.

    Examples
    --------
    >>> Linear() + 2
    Linear() + Constant(value=2.0)
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        reason = "a negative constant is not positive semidefinite"
        self._store(value=checks.nonnegative("Constant", "value", self.value, reason))

    def expression(self) -> Expression:
        """Write the number."""
        return ex.Constant(self.value)
