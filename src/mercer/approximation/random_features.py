"""Random Fourier features, tensor sketches, and the frequencies of stationary kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from scipy import special, stats
from scipy.stats import qmc

from mercer.approximation.base import Approximation, ApproximationError, Features
from mercer.array_types import Array, FrozenArray, Points
from mercer.backends import choose_backend
from mercer.backends.lapack import one_blas_thread
from mercer.kernels import (
    Constant,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
)
from mercer.kernels.algebra import On, Power, Product, Sum
from mercer.kernels.features import FeatureMap, feature_map
from mercer.rows.chunks import chunked, slices
from mercer.rows.device_rows import CardRows
from mercer.rows.points import as_points, is_objects, row_count, to_dense

# --- frequencies ---------------------------------------------------------------------------------
#
# Frequencies of shift-invariant kernels: k(x - y) is the mean of cos(w'(x - y)) over draws of w.
#
# =====================  =======================================================================
# kernel                 a draw of w, from a standard normal z and a uniform u
# =====================  =======================================================================
# Gaussian               z / scale
# Laplacian              Cauchy for each column: tan(pi (Phi(z) - 1/2)) / scale
# Matern                 z / scale / sqrt(g), g = chi2(2 nu) / (2 nu): multivariate t
# RationalQuadratic      z / scale * sqrt(g / alpha), g = gamma(alpha): a mixture of Gaussians
# product of such        the sum of their draws
# =====================  =======================================================================

_INSIDE = 1e-12  # draws stay off the ends of (0, 1), where quantiles are infinite


class Draws:
    """Standard normals and uniforms, drawn in one of three ways.

    Parameters
    ----------
    kind : {"orthogonal", "quasi", "independent"}
        Orthogonal directions with the lengths of independent ones; points of a scrambled Sobol
        sequence; or independent.
    rng : numpy Generator
        Source of randomness.
    """

    def __init__(self, kind: str, rng: np.random.Generator) -> None:
        self.kind, self.rng = kind, rng

    def __call__(self, d: int, parts: int, m: int) -> tuple[Array, Array]:
        """Draw normals (d, m) and uniforms (parts, m): m points, whose parts are independent."""
        normals, uniforms = _DRAWS[self.kind](d, parts, m, self.rng)
        return np.asarray(normals), np.asarray(uniforms)


def _independent(d: int, parts: int, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    return rng.standard_normal((d, m)), rng.uniform(_INSIDE, 1 - _INSIDE, (parts, m))


def _orthogonal(d: int, parts: int, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    blocks = [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(-(-m // d))]
    directions = np.concatenate(blocks, axis=1)[:, :m]
    lengths = np.sqrt(rng.chisquare(d, m))
    return directions * lengths, rng.uniform(_INSIDE, 1 - _INSIDE, (parts, m))


def _quasi(d: int, parts: int, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    points = qmc.Sobol(d + parts, rng=rng).random_base2(int(np.ceil(np.log2(m))))[:m].T
    points = np.clip(points, _INSIDE, 1 - _INSIDE)
    return special.ndtri(points[:d]), points[d:]


_DRAWS: dict[str, Any] = {
    "orthogonal": _orthogonal,
    "quasi": _quasi,
    "independent": _independent,
}
KINDS = tuple(_DRAWS)


@singledispatch
def frequencies(kernel: Kernel, normals: Array, uniforms: Array) -> Array | None:
    """Return frequencies (d, m) of a shift-invariant kernel with k(x, x) = 1; None for others.

    Parameters
    ----------
    kernel : Kernel
        On d columns.
    normals : (d, m) array
        Standard normal draws.
    uniforms : (m,) array
        Uniform draws.
    """
    return None


@frequencies.register
def _(kernel: Gaussian, normals: Array, uniforms: Array) -> Array | None:
    return np.asarray(normals / _scale(kernel.scale))


@frequencies.register
def _(kernel: Laplacian, normals: Array, uniforms: Array) -> Array | None:
    return np.asarray(np.tan(np.pi * (special.ndtr(normals) - 0.5)) / _scale(kernel.scale))


@frequencies.register
def _(kernel: Matern, normals: Array, uniforms: Array) -> Array | None:
    if np.isinf(kernel.nu):
        return np.asarray(normals / _scale(kernel.scale))
    mixing = stats.chi2.ppf(uniforms, 2 * kernel.nu) / (2 * kernel.nu)
    return np.asarray(normals / _scale(kernel.scale) / np.sqrt(mixing))


@frequencies.register
def _(kernel: RationalQuadratic, normals: Array, uniforms: Array) -> Array | None:
    mixing = special.gammaincinv(kernel.alpha, uniforms) / kernel.alpha
    return np.asarray(normals / _scale(kernel.scale) * np.sqrt(mixing))


def _scale(scale: Any) -> Any:
    return scale.array[:, None] if isinstance(scale, FrozenArray) else scale


# --- random features -----------------------------------------------------------------------------
#
# Random features, derived from a kernel by one rule for each of its parts.
#
# ==========================  ==================================================================
# part                        features
# ==========================  ==================================================================
# shift-invariant             cos(w'x), sin(w'x) for drawn frequencies w (Rahimi and Recht)
# product of such             frequencies are added
# kernel of few features      those features: exact
# sum                         features of the terms, side by side
# other products, powers      tensor sketch of the features of the factors (Pham and Pagh)
# `.on(columns)`              features of these columns
# ==========================  ==================================================================

_ROWS = 512  # that angles are found of at a time


@dataclass(frozen=True, repr=False)
class RandomFeatures(Approximation):
    """Random Fourier features and tensor sketches, whichever the parts of the kernel have.

    Unlike landmarks they do not look at the rows: errors fall as 1 / sqrt(n_components), whatever
    the data, and the features of a row cost n_columns * n_components.

    Parameters
    ----------
    n_components : int, default=1000
        Features in all; a Fourier frequency makes two, its cosine and sine.
    draws : {"orthogonal", "quasi", "independent"}, default="orthogonal"
        How frequencies are drawn: in orthogonal directions, from a Sobol sequence, or one by one.
    random_state : int, default=0
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.approximation import RandomFeatures
    >>> from mercer.kernels import Gaussian, Linear
    >>> X = np.random.default_rng(0).standard_normal((300, 4))
    >>> RandomFeatures(1000).of(Gaussian(2.0) + Linear(), X).error(X) < 0.05
    True
    """

    n_components: int = 1000
    draws: str = "orthogonal"
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.n_components < 2:
            raise ValueError(f"RandomFeatures: n_components={self.n_components!r} must be above 1")
        if self.draws not in KINDS:
            raise ValueError(f"RandomFeatures: draws={self.draws!r} must be one of {KINDS}")

    def features(self, kernel: Kernel, X: Points, weights: Array | None = None) -> Features:
        """Draw the random numbers for the parts of the kernel."""
        if is_objects(X):
            raise ApproximationError("RandomFeatures needs rows of numbers; Nystrom takes any rows")
        draws = Draws(self.draws, np.random.default_rng(self.random_state))
        return derive(kernel, X.shape[1], self.n_components, draws)


@singledispatch
def derive(kernel: Kernel, d: int, m: int, draws: Draws) -> Features:
    """Return at most m features of a kernel on rows of d columns."""
    exact = feature_map(kernel.expression(), d)
    if exact is not None and exact.dimension <= m:
        return ExactFeatures(exact)
    found = waves((kernel,), d, max(1, m // 2), draws)
    if found is None and exact is not None:
        raise ApproximationError(
            f"RandomFeatures: {kernel!r} has {exact.dimension} exact features, more than the "
            f"{m} available; set n_components to {exact.dimension} or more, or use Nystrom"
        )
    if found is None:
        raise ApproximationError(
            f"RandomFeatures: {kernel!r} has no random features here; there are some of Gaussian, "
            "Laplacian, Matern, RationalQuadratic and Polynomial kernels, their sums, products and "
            "`.on(columns)`. Nystrom takes any kernel"
        )
    return FourierFeatures(found, 1.0)


@derive.register
def _(kernel: Sum, d: int, m: int, draws: Draws) -> Features:
    few = [feature_map(part.expression(), d) for part in kernel.parts]
    exact = [f.dimension if f is not None else m for f in few]
    small = [size <= m // (2 * len(exact)) for size in exact]
    left = m - sum(size for size, fits in zip(exact, small, strict=True) if fits)
    share = max(2, left // max(1, small.count(False)))
    parts = [
        derive(part, d, size if fits else share, draws)
        for part, size, fits in zip(kernel.parts, exact, small, strict=True)
    ]
    return Beside(tuple(parts))


@derive.register
def _(kernel: Product, d: int, m: int, draws: Draws) -> Features:
    exact = feature_map(kernel.expression(), d)
    if exact is not None and exact.dimension <= m:
        return ExactFeatures(exact)
    found = waves(kernel.parts, d, max(1, m // 2), draws)
    if found is not None:
        return FourierFeatures(found, float(np.sqrt(kernel.factor)))
    factors = [derive(part, d, m, draws) for part in kernel.parts]
    return TensorSketch.of(factors, float(np.sqrt(kernel.factor)), m, draws.rng)


@derive.register
def _(kernel: Power, d: int, m: int, draws: Draws) -> Features:
    exact = feature_map(kernel.expression(), d)
    if exact is not None and exact.dimension <= m:
        return ExactFeatures(exact)
    return TensorSketch.of(
        [derive(kernel.kernel, d, m, draws)] * kernel.exponent, 1.0, m, draws.rng
    )


@derive.register
def _(kernel: Polynomial, d: int, m: int, draws: Draws) -> Features:
    exact = feature_map(kernel.expression(), d)
    if exact is not None and exact.dimension <= m:
        return ExactFeatures(exact)
    inner = Linear() + Constant(kernel.offset) if kernel.offset else Linear()
    row = feature_map(inner.expression(), d)
    assert row is not None
    return TensorSketch.of([ExactFeatures(row)] * kernel.degree, 1.0, m, draws.rng)


@derive.register
def _(kernel: On, d: int, m: int, draws: Draws) -> Features:
    columns = _numbers(kernel)
    return OnColumns(columns, derive(kernel.kernel, len(columns), m, draws))


def waves(kernels: tuple[Kernel, ...], d: int, m: int, draws: Draws) -> Array | None:
    """Return m frequencies of a product of shift-invariant kernels over d columns; None for others.

    Their draws are parts of one point each: points of a low-discrepancy sequence drawn separately
    for each factor would be correlated.
    """
    chosen = [_numbers(k) if isinstance(k, On) else tuple(range(d)) for k in kernels]
    normals, uniforms = draws(sum(map(len, chosen)), len(kernels), m)
    total, first = np.zeros((d, m)), 0
    for kernel, columns, uniform in zip(kernels, chosen, uniforms, strict=True):
        inner = kernel.kernel if isinstance(kernel, On) else kernel
        found = frequencies(inner, normals[first : first + len(columns)], uniform)
        if found is None:
            return None
        np.add.at(total, list(columns), found)
        first += len(columns)
    return total


def _numbers(kernel: On) -> tuple[int, ...]:
    if not all(isinstance(c, int) for c in kernel.columns):
        raise ApproximationError(
            f"RandomFeatures: {kernel!r} names columns; number them, or use Nystrom"
        )
    return tuple(kernel.columns)


# --- the maps ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExactFeatures(Features):
    """The finite features of a kernel that has few."""

    map: FeatureMap

    @property
    def dimension(self) -> int:
        """Count the features."""
        return self.map.dimension

    def __call__(self, X: Any) -> Array:
        """Return the features, computed in float64 whatever the rows are in."""
        points: Any = as_points(X).astype(np.float64, copy=False)
        return np.asarray(to_dense(self.map(points)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class FourierFeatures(Features):
    """amplitude / sqrt(m) (cos(w'x), sin(w'x)) for the m columns w of `frequencies`."""

    frequencies: Array
    amplitude: float

    @property
    def dimension(self) -> int:
        """Count cosines and sines."""
        return 2 * int(self.frequencies.shape[1])

    def longest(self, X: Points) -> Array:
        """Return the amplitude squared: a cosine and a sine of one angle are on the circle."""
        return np.where(_is_finite(X), self.amplitude**2, np.inf)

    def __call__(self, X: Any) -> Array:
        """Return cosines and sines."""
        points = as_points(X)
        out = np.empty((row_count(points), self.dimension))
        self.write(points, out)
        return out

    def features_on_card(self, X: CardRows) -> CardRows | None:
        """Let the GPU compute cosines and sines."""
        amplitude = self.amplitude / np.sqrt(self.frequencies.shape[1])
        return choose_backend().fourier_features(X, self.frequencies, float(amplitude))

    def write(self, X: Points, out: Array) -> None:
        """Write cosines and sines of chunks of rows in threads, each block of rows by block."""
        n, m = len(out), self.frequencies.shape[1]
        turned = self.frequencies * (PLACES / (2 * np.pi))
        amplitude = self.amplitude / np.sqrt(m)

        def chunk(rows: slice) -> None:
            for part in slices(rows.start, rows.stop, _ROWS):
                places = np.asarray(X[part] @ turned, dtype=np.float64)
                cosines_and_sines(places, amplitude, out[part, :m], out[part, m:])

        with one_blas_thread():
            chunked(chunk, n)


def _is_finite(X: Points) -> Array:
    return np.isfinite(to_dense(abs(X).max(axis=1))).ravel() if X.shape[1] else np.ones(len(X))


@dataclass(frozen=True, eq=False)
class Beside(Features):
    """Features of the terms of a sum, side by side."""

    parts: tuple[Features, ...]

    @property
    def dimension(self) -> int:
        """Add up."""
        return sum(part.dimension for part in self.parts)

    def __call__(self, X: Any) -> Array:
        """Return all of them."""
        return np.concatenate([part(X) for part in self.parts], axis=1)


@dataclass(frozen=True, eq=False)
class OnColumns(Features):
    """Features of some columns."""

    columns: tuple[int, ...]
    part: Features

    @property
    def dimension(self) -> int:
        """Count those of the part."""
        return self.part.dimension

    def features_on_card(self, X: CardRows) -> CardRows | None:
        """Choose the columns there."""
        return self.part.features_on_card(X[:, np.array(self.columns)])

    def __call__(self, X: Any) -> Array:
        """Choose the columns first."""
        return self.part(as_points(X)[:, list(self.columns)])


@dataclass(frozen=True, eq=False)
class TensorSketch(Features):
    """Features of a product of kernels: count sketches of the factors, convolved.

    Attributes
    ----------
    factors : tuple of Features
        Of the factors.
    buckets, signs : tuple of arrays
        Index of each feature of a factor in the product, and its sign.
    size : int
        Length of the sketch.
    amplitude : float
        Root of the constant in front of the product.
    """

    factors: tuple[Features, ...]
    buckets: tuple[Array, ...]
    signs: tuple[Array, ...]
    size: int
    amplitude: float

    @classmethod
    def of(
        cls, factors: list[Features], amplitude: float, m: int, rng: np.random.Generator
    ) -> TensorSketch:
        """Draw the hashes."""
        buckets = tuple(rng.integers(m, size=f.dimension) for f in factors)
        signs = tuple(rng.choice([-1.0, 1.0], size=f.dimension) for f in factors)
        return cls(tuple(factors), buckets, signs, m, amplitude)

    @property
    def dimension(self) -> int:
        """The length of the sketch."""
        return self.size

    def __call__(self, X: Any) -> Array:
        """Multiply the transforms of the sketches: a convolution of them."""
        product: Any = self.amplitude
        made: dict[int, Array] = {}
        for factor, bucket, sign in zip(self.factors, self.buckets, self.signs, strict=True):
            F = made.setdefault(id(factor), factor(X))
            sketch = np.zeros((len(F), self.size))
            np.add.at(sketch.T, bucket, (F * sign).T)
            product = product * np.fft.rfft(sketch, axis=1)
        return np.fft.irfft(product, n=self.size, axis=1)


# --- sincos --------------------------------------------------------------------------------------
#
# Cosines and sines of many angles at once, several times as fast as one by one.
#
# An angle is the nearest of 256 on the circle, whose cosine and sine are in a table, and a rest
# of at most 0.0123, for which four terms of the series leave nothing that float64 could hold.

PLACES = 256
_STEP = 2 * np.pi / PLACES
_TABLE = np.exp(1j * _STEP * np.arange(PLACES))
_COS, _SIN = np.ascontiguousarray(_TABLE.real), np.ascontiguousarray(_TABLE.imag)
_ENTRIES = 1 << 14  # at a time: all that is worked with stays in a cache of the second level


def cosines_and_sines(places: Array, amplitude: float, cosines: Array, sines: Array) -> None:
    """Write amplitude times cosines and sines of angles.

    Parameters
    ----------
    places : (n, m) array
        Angles in 256ths of the circle; overwritten.
    amplitude : float
        Factor of both.
    cosines, sines : (n, m) arrays
        Output arrays.
    """
    n, m = places.shape
    step = max(1, _ENTRIES // max(1, m))
    with np.errstate(invalid="ignore"):  # infinite angles have no cosine
        for first in range(0, n, step):
            part = slice(first, first + step)
            _write(places[part], amplitude, cosines[part], sines[part])


def _write(x: Array, amplitude: float, cosines: Array, sines: Array) -> None:
    nearest = np.rint(x)
    index = nearest.astype(np.int64) & (PLACES - 1)
    x -= nearest
    x *= _STEP
    square = x * x
    c = square * (-1.0 / 720.0)  # of the rest: cos, then sin
    c += 1.0 / 24.0
    c *= square
    c -= 0.5
    c *= square
    c += 1.0
    s = square * (1.0 / 120.0)
    s -= 1.0 / 6.0
    s *= square
    s += 1.0
    s *= x
    c *= amplitude
    s *= amplitude
    at, over = _COS[index], _SIN[index]
    np.multiply(at, c, out=cosines)
    np.multiply(over, s, out=square)
    cosines -= square
    np.multiply(over, c, out=sines)
    at *= s
    sines += at
