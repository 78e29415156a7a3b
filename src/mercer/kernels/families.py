"""Kernel families: dot product, radial, histogram, task, precomputed and user-defined kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import frexp, inf, ldexp, sqrt
from typing import Any, ClassVar, TypeAlias

import numpy as np

from mercer import expression as ex
from mercer.arguments import also_named
from mercer.array_types import Array, FrozenArray, Points
from mercer.expression import Expression
from mercer.kernels import checks
from mercer.kernels.algebra import Kernel, proven, refuse_uncallable
from mercer.rows.points import to_dense

# --- dot -----------------------------------------------------------------------------------------
#
# Kernels of the dot product: linear, polynomial, subsets, and the sigmoid, which is not
# positive semidefinite.


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
    kept[-1] = True  # A = 0 keeps one column of zeros: rows need at least one column
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
    """k(x, y) = value: a number that is added to a kernel.

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


# --- radial --------------------------------------------------------------------------------------
#
# Kernels of a distance. `scale` is a length: one for all features, or one per feature.
#
# With one scale, the distance is that of the plain rows and the scale stands outside of it, so
# that all scales share one distance matrix, unless squares of it leave the range of numbers. With
# one scale per feature, the rows are stretched first.

Scale: TypeAlias = float | Sequence[float] | Array

# Where 1/scale overflows, this stands in: exp(-cap d) is 0 for any d > 0, and 1 at d = 0, which
# infinity times zero would spoil.
_CAP = 1e290
# The same for 1/scale^2, next to the end of the range: squares of distances of that scale are then
# denormal, and sums of these are not right in any case.
_SQUARED_CAP = 1e307
_SMOOTHEST = 1e4


def _from_gamma(owner: str, name: str, gamma: Scale) -> Scale:
    """Return the scale of exp(-gamma |x - y|^2), which is exp(-|x - y|^2 / (2 scale^2))."""
    rate = checks.positive_each(owner, name, gamma)
    return 1.0 / np.sqrt(2.0 * (rate.array if isinstance(rate, FrozenArray) else rate))


_SIGMA = (
    "it means different things elsewhere: scale={value} if it is the standard deviation of the "
    "bell, gamma={value} if it is the factor before the squared distance (kernlab)"
)


@also_named("scale", gamma=_from_gamma, length_scale=checks.positive_each)
@proven
@dataclass(frozen=True, repr=False)
class Gaussian(Kernel):
    """k(x, y) = exp(-|x - y|^2 / (2 scale^2)), or exp(-sum_i (x_i - y_i)^2 / (2 scale_i^2)).

    Parameters
    ----------
    scale : float or sequence of float
        Positive; one per feature if a sequence. `length_scale` is the same; `gamma`, as other
        libraries have it, stands for scale = 1 / sqrt(2 gamma).

    Examples
    --------
    >>> Gaussian(scale=2.0)([[0.0, 0.0]], [[2.0, 0.0]]).round(4).tolist()
    [[0.6065]]
    """

    scale: Scale = 1.0

    other_names: ClassVar[Mapping[str, str]] = {"sigma": _SIGMA}

    def __post_init__(self) -> None:
        self._store(scale=checks.positive_each("Gaussian", "scale", self.scale))

    def expression(self) -> Expression:
        """Write the exponential of the squared distance."""
        return ex.Exp(-0.5 * _squared(self.scale))


@also_named("scale", gamma=checks.reciprocal_each, length_scale=checks.positive_each)
@proven
@dataclass(frozen=True, repr=False)
class Laplacian(Kernel):
    """k(x, y) = exp(-sum_i |x_i - y_i| / scale).

    Parameters
    ----------
    scale : float or sequence of float
        Positive; one per feature if a sequence. `gamma` stands for scale = 1 / gamma.

    Examples
    --------
    >>> Laplacian(scale=2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4).tolist()
    [[0.3679]]
    """

    scale: Scale = 1.0

    def __post_init__(self) -> None:
        self._store(scale=checks.positive_each("Laplacian", "scale", self.scale))

    def expression(self) -> Expression:
        """Write the exponential of the sum of absolute differences."""
        if isinstance(self.scale, FrozenArray):
            return ex.Exp(-1.0 * ex.AbsDist((_stretch(self.scale),)))
        steps, scale = _in_range(self.scale)
        return ex.Exp(-_reciprocal(scale) * ex.AbsDist(steps))


@also_named("scale", length_scale=checks.positive_each)
@proven
@dataclass(frozen=True, repr=False)
class Matern(Kernel):
    """k(x, y) = 2^(1-nu) / Gamma(nu) r^nu K_nu(r) with r = sqrt(2 nu) |x - y| / scale.

    Functions of the kernel's space are about `nu` times differentiable: nu = 1/2 is the exponential
    kernel, nu = inf the Gaussian one.

    Parameters
    ----------
    nu : float
        Smoothness, positive, up to 10000 or infinite; 0.5, 1.5, 2.5 and infinity have closed forms
        and are much faster.
    scale : float or sequence of float
        Positive; one per feature if a sequence.

    Examples
    --------
    >>> Matern(nu=0.5, scale=2.0)([[0.0]], [[2.0]]).round(4).tolist()
    [[0.3679]]
    """

    nu: float = 1.5
    scale: Scale = 1.0

    def __post_init__(self) -> None:
        self._store(
            nu=checks.positive_or_infinite("Matern", "nu", self.nu),
            scale=checks.positive_each("Matern", "scale", self.scale),
        )
        if _SMOOTHEST < self.nu < inf:  # each unit of nu is a step of a recurrence
            raise ValueError(
                f"Matern: nu={self.nu!r} must be at most {_SMOOTHEST:g}, or infinity: the Gaussian "
                "kernel, from which it differs by a few parts in nu"
            )

    def expression(self) -> Expression:
        """Write the closed form if it exists."""
        if self.nu == inf:
            return ex.Exp(-0.5 * _squared(self.scale))
        r = sqrt(2.0 * self.nu) * _distance(self.scale)
        if self.nu == 0.5:
            return ex.Exp(-1.0 * r)
        if self.nu == 1.5:
            return (1.0 + r) * ex.Exp(-1.0 * r)
        if self.nu == 2.5:
            return (1.0 + r + 5.0 / 3.0 * _squared(self.scale)) * ex.Exp(-1.0 * r)
        return ex.MaternProfile(r, self.nu)


@also_named("scale", length_scale=checks.positive_each)
@proven
@dataclass(frozen=True, repr=False)
class RationalQuadratic(Kernel):
    """k(x, y) = (1 + |x - y|^2 / (2 alpha scale^2))^(-alpha): a mixture of Gaussians of all scales.

    Parameters
    ----------
    alpha : float
        Positive; the larger, the closer to the Gaussian kernel.
    scale : float or sequence of float
        Positive; one per feature if a sequence.

    Examples
    --------
    >>> RationalQuadratic(alpha=1.0, scale=1.0)([[0.0]], [[2.0]]).round(4).tolist()
    [[0.3333]]
    """

    alpha: float = 1.0
    scale: Scale = 1.0

    def __post_init__(self) -> None:
        self._store(
            alpha=checks.positive("RationalQuadratic", "alpha", self.alpha),
            scale=checks.positive_each("RationalQuadratic", "scale", self.scale),
        )

    def expression(self) -> Expression:
        """Write the power of the shifted squared distance."""
        return (1.0 + _squared(self.scale, min(0.5 / self.alpha, _CAP))) ** -self.alpha


def _squared(scale: Scale, weight: float = 1.0) -> Expression:
    if isinstance(scale, FrozenArray):
        return weight * ex.SqDist((_stretch(scale),))
    steps, scale = _in_range(scale)
    return min(weight * (1.0 / scale / scale), _SQUARED_CAP) * ex.SqDist(steps)


def _distance(scale: Scale) -> Expression:
    if isinstance(scale, FrozenArray):
        return ex.Sqrt(ex.SqDist((_stretch(scale),)))
    steps, scale = _in_range(scale)
    return _reciprocal(scale) * ex.Sqrt(ex.SqDist(steps))


def _in_range(scale: Scale) -> tuple[ex.Steps, float]:
    """Return what multiplies rows so that squares of distances are in range, and the new scale.

    Relevant distances are about as large as the scale. If its square overflows, half of its
    exponent is removed from the rows before they are compared. The other half stays outside,
    so that rows that are much larger than the scale do not overflow either.
    """
    assert isinstance(scale, float)
    exponent = frexp(scale)[1]
    if abs(exponent) <= ex.SQUARABLE:
        return (), scale
    unit = ldexp(1.0, -(exponent // 2))
    return (ex.Stretch(FrozenArray(np.array(unit))),), scale * unit


def _reciprocal(scale: float) -> float:
    return min(1.0 / scale, _CAP)


def _stretch(scale: FrozenArray) -> ex.Stretch:
    return ex.Stretch(FrozenArray(1.0 / scale.array))


# --- histogram -----------------------------------------------------------------------------------
#
# Kernels of histograms, counts and sets.


@also_named("scale", gamma=checks.reciprocal_each)
@proven
@dataclass(frozen=True, repr=False)
class ChiSquared(Kernel):
    """k(x, y) = exp(-sum_i (x_i - y_i)^2 / (x_i + y_i) / scale), 0/0 = 0, for nonnegative rows.

    Parameters
    ----------
    scale : float
        Positive.

    Examples
    --------
    >>> ChiSquared(scale=2.0)([[1.0, 3.0]], [[3.0, 1.0]]).round(4).tolist()
    [[0.3679]]
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        self._store(scale=checks.positive("ChiSquared", "scale", self.scale))

    def expression(self) -> Expression:
        """Write the exponential of the chi-squared distance."""
        return ex.Exp(-_reciprocal(self.scale) * ex.ChiSq())


@proven
@dataclass(frozen=True, repr=False)
class Intersection(Kernel):
    """k(x, y) = sum_i min(x_i, y_i), for nonnegative rows.

    Examples
    --------
    >>> Intersection()([[1.0, 3.0]], [[3.0, 1.0]]).tolist()
    [[2.0]]
    """

    def expression(self) -> Expression:
        """Write the sum of minima."""
        return ex.MinSum()


@proven
@dataclass(frozen=True, repr=False)
class Tanimoto(Kernel):
    """k(x, y) = x'y / (x'x + y'y - x'y), and 1 between two zero rows.

    On 0/1 rows: the size of the intersection of two sets over that of their union. It is positive
    semidefinite for all real rows, being the sum over p of (x'y)^p (x'x + y'y)^(-p).

    Examples
    --------
    >>> Tanimoto()([[1, 1, 0]], [[0, 1, 1]]).round(4).tolist()
    [[0.3333]]
    """

    def expression(self) -> Expression:
        """Write the quotient."""
        dot = ex.Dot((ex.Squarable("Tanimoto"),))
        return ex.Ratio(dot, ex.RowSum(ex.SelfValue(dot)) - dot)


# --- tasks ---------------------------------------------------------------------------------------
#
# Similarity of tasks: a matrix, read by the numbers of the tasks.


@proven
@dataclass(frozen=True, repr=False)
class Coregionalized(Kernel):
    """k(t, u) = B[t, u] for rows that hold the number of a task, 0, 1, ...

    A product with a kernel of other columns is the intrinsic model of coregionalization, a sum of
    such products the linear one.

    Parameters
    ----------
    B : array-like of shape (n_tasks, n_tasks)
        Covariance of the tasks, positive semidefinite: the identity for tasks that have nothing in
        common, all ones for one function shared by all.

    Examples
    --------
    >>> from mercer.kernels import Coregionalized, Gaussian
    >>> k = Coregionalized([[1.0, 0.9], [0.9, 2.0]]).on([0]) * Gaussian(1.0).on([1])
    >>> k([[0, 3.0], [1, 3.0]]).tolist()
    [[1.0, 0.9], [0.9, 2.0]]
    """

    B: Sequence[Sequence[float]] | Array

    def __post_init__(self) -> None:
        self._store(B=checks.psd_matrix("Coregionalized", "B", self.B))

    def expression(self) -> Expression:
        """Look the numbers up."""
        assert isinstance(self.B, FrozenArray)
        return ex.Opaque(TaskTable(self.B))


@dataclass(frozen=True)
class TaskTable:
    """Entries of a matrix by the numbers of its rows and columns.

    Attributes
    ----------
    B : FrozenArray
        The matrix.
    """

    B: FrozenArray

    def __call__(self, X: Points, Y: Points) -> Array:
        """Look up all pairs."""
        return np.asarray(self.B.array[np.ix_(self._tasks(X), self._tasks(Y))])

    def self_values(self, X: Points) -> Array:
        """Look up the diagonal."""
        return np.asarray(self.B.array.diagonal()[self._tasks(X)])

    def _tasks(self, X: Points) -> Array:
        """Read the numbers of tasks; raise for invalid ones."""
        numbers, count = to_dense(X), len(self.B.array)
        if numbers.ndim != 2 or numbers.shape[1] != 1:
            raise ValueError(
                f"Coregionalized reads one column, the number of the task, but was given "
                f"{numbers.shape[1]}; choose it with .on([column])"
            )
        tasks = numbers[:, 0].astype(np.intp)
        wrong = np.flatnonzero((tasks != numbers[:, 0]) | (tasks < 0) | (tasks >= count))
        if len(wrong):
            raise ValueError(
                f"Coregionalized: task {numbers[wrong[0], 0]:g} in row {wrong[0]} must be an "
                f"integer from 0 to {count - 1}, the last row of B"
            )
        return tasks


# --- given ---------------------------------------------------------------------------------------
#
# Kernels that the user brings: a matrix, a feature map, a function.


@dataclass(frozen=True, repr=False)
class Precomputed(Kernel):
    """A mark: the estimator receives the matrix K in place of X.

    `fit` takes K(train, train), `predict` takes K(test, train). The fit assumes that the matrix is
    positive semidefinite; the certificate checks it.

    Examples
    --------
    >>> Precomputed().psd
    True
    """

    def expression(self) -> Expression:
        """Raise: there is no formula."""
        raise ValueError(
            "Precomputed() represents a given kernel matrix; it cannot be evaluated on "
            "rows or combined with other kernels. Combine the matrices themselves instead, for "
            "example K1 + K2."
        )


@proven
@dataclass(frozen=True, repr=False)
class FromFeatures(Kernel):
    """k(x, y) = <phi(x), phi(y)>. Does not read back from its text.

    Parameters
    ----------
    phi : function
        Maps a block of rows (n, d), dense or CSR as it comes, to their features (n, D).

    Examples
    --------
    >>> import numpy as np
    >>> FromFeatures(np.square)([[1.0, 2.0]], [[3.0, 1.0]]).tolist()
    [[13.0]]
    """

    phi: Callable[[Any], Any]

    def __post_init__(self) -> None:
        refuse_uncallable("FromFeatures", "phi", self.phi)

    def expression(self) -> Expression:
        """Write the dot product of the mapped rows."""
        return ex.Dot((ex.Mapped(self.phi),))


@dataclass(frozen=True, repr=False)
class FromCallable(Kernel):
    """k given by a function of two blocks of rows. Does not read back from its text.

    Parameters
    ----------
    function : function
        `function(X, Y)` gives the matrix (n, m) of two blocks of rows, dense or CSR as they come.
    psd : bool
        Whether the function is believed to be positive semidefinite; `is_valid` tests it on data,
        and certificates do on the training rows.

    Examples
    --------
    >>> FromCallable(lambda X, Y: X @ Y.T)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[11.0]]
    """

    function: Callable[[Any, Any], Any]
    psd: bool = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"FromCallable: function={self.function!r} must be a function of two blocks of rows"
            )

    def expression(self) -> Expression:
        """Return the custom function unchanged."""
        return ex.Opaque(self.function)
