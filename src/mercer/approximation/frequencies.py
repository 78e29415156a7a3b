"""Frequencies of shift-invariant kernels: k(x - y) is the mean of cos(w'(x - y)) over draws of w.

=====================  =======================================================================
kernel                 a draw of w, from a standard normal z and a uniform u
=====================  =======================================================================
Gaussian               z / scale
Laplacian              Cauchy for each column: tan(pi (Phi(z) - 1/2)) / scale
Matern                 z / scale / sqrt(g), g = chi2(2 nu) / (2 nu): multivariate t
RationalQuadratic      z / scale * sqrt(g / alpha), g = gamma(alpha): a mixture of Gaussians
product of such        the sum of their draws
=====================  =======================================================================
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy import special, stats
from scipy.stats import qmc

from mercer.array_types import Array, FrozenArray
from mercer.kernels import Gaussian, Kernel, Laplacian, Matern, RationalQuadratic

_INSIDE = 1e-12  # draws stay off the ends of (0, 1), where quantiles are infinite


class Draws:
    """Standard normals and uniforms, drawn in one of three ways.

    Parameters
    ----------
    kind : {"orthogonal", "quasi", "independent"}
        Orthogonal directions with the lengths of independent ones; points of a scrambled Sobol
        sequence; or independent.
    rng : numpy Generator
        Where randomness comes from.
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
