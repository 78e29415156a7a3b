"""Feature maps for blocks, and sums over blocks: moments and triangular factors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.approximation import ApproximateKernel, Approximation, Nystrom
from mercer.array_types import Array
from mercer.expression import bind_columns
from mercer.gram.base import columns_of
from mercer.kernels import Kernel, Linear
from mercer.kernels.features import feature_map
from mercer.machines.base.approximate import ApproximationWarning, approximation_of
from mercer.machines.base.machine import is_precomputed, kernel_of
from mercer.machines.base.targets import distinct_rows
from mercer.machines.blocks.problem import FeatureRows, counted, feature_pieces
from mercer.resources import require_memory, rows_at_once
from mercer.rows.blocks import Block, RowBlocks
from mercer.rows.points import take

# --- features ------------------------------------------------------------------------------------
#
# From a machine's kernel to features that blocks can be mapped by, one by one.

_SAMPLE = 20_000  # rows that landmarks are drawn from and scales of kernels are taken from
_SHARE = 0.25  # of the budget, for those, ...
_COPIES = 4  # ... on their way here, together, in other units, and as features
_SQUARES = 6  # matrices of features by features that a fit holds at once


def feature_rows(machine: Any, blocks: RowBlocks) -> FeatureRows:
    """Set the machine's `kernel_`, and return the rows of its features.

    Kernels with a finite feature map are taken as they are. Others are approximated, as the
    parameter `approximation` says, from rows drawn at random.

    Parameters
    ----------
    machine : KernelMachine
        Has `kernel`, and maybe `approximation`.
    blocks : RowBlocks
        The rows.
    """
    name, names = type(machine).__name__, None if blocks.names is None else list(blocks.names)
    if is_precomputed(machine.kernel):
        raise ValueError(
            f"{name}: kernel='precomputed' cannot be fitted to rows in blocks; pass the kernel "
            "itself"
        )
    chosen, sample = approximation_of(machine), None
    kernel = machine.kernel
    if isinstance(kernel, str) and kernel.strip().lower() == "linear":
        kernel = Linear()
    if not isinstance(kernel, Kernel):
        sample = drawn(blocks)
        kernel = kernel_of(kernel, sample.X, sample.weights, names)
    machine.__dict__.pop("approximation_error_", None)
    if chosen == "auto":
        chosen = None if has_few(kernel, blocks) else Nystrom()
    if isinstance(chosen, Approximation) and not isinstance(kernel, ApproximateKernel):
        kernel = approximated(machine, kernel, chosen, sample or drawn(blocks), names)
    features = feature_map(bind_columns(kernel.expression(), names), blocks.n_columns)
    if features is None:
        raise ValueError(
            f"{name}: {kernel!r} has no finite feature map, and rows in blocks are fitted through "
            "features. Pass approximation='auto', Nystrom(1000) or RandomFeatures(1000), or "
            "kernel=Nystrom(1000).of(kernel, blocks.sample(20000).X)"
        )
    machine.kernel_ = kernel
    size = features.dimension
    require_memory(
        _SQUARES * 8 * size * size,
        f"work with {size} features",
        "Use fewer features: approximation=Nystrom(m) with a smaller m, or a lower degree.",
    )
    return FeatureRows(blocks, features, size)


def drawn(blocks: RowBlocks) -> Block:
    """Draw rows at random, as many as serve, within the budget."""
    return blocks.sample(rows_at_once(blocks.n_columns, _SAMPLE, arrays=_COPIES, share=_SHARE), 0)


def has_few(kernel: Kernel, blocks: RowBlocks) -> bool:
    """Return whether a kernel has a finite map of no more features than may be worked with."""
    features = feature_map(kernel.expression(), blocks.n_columns)
    return features is not None and features.dimension <= max(2000, 2 * blocks.n_columns)


def approximated(
    machine: Any, kernel: Kernel, chosen: Approximation, sample: Block, names: list[str] | None
) -> Kernel:
    """Return the kernel of features found on a sample; sets `approximation_error_`."""
    rows = distinct_rows(sample.X, np.zeros(len(sample), dtype=np.intp), sample.counts)
    used = take(sample.X, rows.first)
    found = chosen.of(kernel, used, rows.weight, names)
    if found.phi.dimension == 0:
        raise ValueError(
            f"{type(machine).__name__}: {kernel!r} is zero on all rows; use another kernel"
        )
    error = found.stated_error(used)
    machine.approximation_error_ = error
    if approximation_of(machine) == "auto":
        warnings.warn(
            f"{type(machine).__name__}: rows in blocks are fitted through features; "
            f"{found.phi.dimension} landmarks among {len(sample)} rows drawn at random stand for "
            f"{kernel!r}, with an error of {error}. More of them: approximation=Nystrom(2000); "
            "exact fits need rows in memory.",
            ApproximationWarning,
            stacklevel=2,
        )
    return found


# --- sums ----------------------------------------------------------------------------------------
#
# Sums over rows that fits of squares need: moments of features and targets, and triangles.


@dataclass(frozen=True, eq=False)
class TargetMoments:
    """Weighted moments of features and targets of some rows; those of more rows are their sum.

    Moments about a common far point would lose all digits that the mean takes up, so each part is
    held about its own mean, and sums move them (Chan, Golub and LeVeque).

    Attributes
    ----------
    total : float
        The sum of the weights.
    count : float
        Rows of positive weight.
    mean : (D,) array
        Mean of the features; zero where they are not centred.
    level : (t,) array
        Mean of the targets; zero where they are not centred.
    products : (D, D) array
        G'SG, G the features less their mean.
    cross : (D, t) array
        G'Sy, y the targets less theirs.
    squares : (t,) array
        y'Sy of each target.
    centred : bool
        Whether means are taken off.
    """

    total: float
    count: float
    mean: Array
    level: Array
    products: Array
    cross: Array
    squares: Array
    centred: bool

    def __add__(self, other: TargetMoments) -> TargetMoments:
        total = self.total + other.total
        products, cross = self.products + other.products, self.cross + other.cross
        squares, mean, level = self.squares + other.squares, self.mean, self.level
        if self.centred and total > 0:
            share = other.total / total
            off, y_off = other.mean - self.mean, other.level - self.level
            products += self.total * share * np.outer(off, off)
            cross += self.total * share * np.outer(off, y_off)
            squares += self.total * share * np.square(y_off)
            mean, level = self.mean + share * off, self.level + share * y_off
        count = self.count + other.count
        return TargetMoments(total, count, mean, level, products, cross, squares, self.centred)


def targets_of(block: Block) -> Array:
    """Return targets as columns of float64; no columns where there are none."""
    if block.y is None:
        return np.empty((len(block), 0))
    return columns_of(np.asarray(block.y, dtype=np.float64))


def block_moments(block: Block, features: Any, centred: bool, targeted: bool) -> TargetMoments:
    """Return the moments of a block, those of its targets if they are asked for."""
    block = counted(block)
    y, s = targets_of(block) if targeted else np.empty((len(block), 0)), block.counts
    found = _none(features.dimension, y.shape[1], centred)
    for rows, F in feature_pieces(block, features):
        found = found + _piece(F, y[rows], s[rows], centred)
    return found


def _none(m: int, t: int, centred: bool) -> TargetMoments:
    zero = np.zeros
    return TargetMoments(0.0, 0.0, zero(m), zero(t), zero((m, m)), zero((m, t)), zero(t), centred)


def _piece(F: Array, y: Array, s: Array, centred: bool) -> TargetMoments:
    """Return the moments of a few rows; F is changed."""
    total = float(s.sum())
    mean, level = np.zeros(F.shape[1]), np.zeros(y.shape[1])
    if centred:
        mean, level = s @ F / total, s @ y / total
        F -= mean
        y = y - level
    if (s != 1).any():
        root = np.sqrt(s)[:, None]
        F *= root
        y = root * y
    squares = np.einsum("ij,ij->j", y, y)
    # of one array with itself: half the work
    return TargetMoments(total, float(len(s)), mean, level, F.T @ F, F.T @ y, squares, centred)


def moments_of(rows: FeatureRows, centred: bool, targeted: bool = True) -> TargetMoments:
    """Return the moments of all rows, in one pass."""
    return rows.blocks.total(block_moments, rows.features, centred, targeted)


# --- a triangle in place of all rows: R'R = G'SG without squaring ---------------------------------


@dataclass(frozen=True, eq=False)
class Triangle:
    """R with R'R = E'E for rows E; that of more rows is found from the sum of two.

    Attributes
    ----------
    R : (k, D) array
        k at most D.
    """

    R: Array

    def __add__(self, other: Triangle) -> Triangle:
        return Triangle(_triangle(np.concatenate([self.R, other.R])))


def _triangle(E: Array) -> Array:
    return np.asarray(np.linalg.qr(E, mode="r")) if len(E) > E.shape[1] else E


def block_triangle(block: Block, features: Any, mean: Array, level: Array) -> Triangle:
    """Return the triangle of the features and targets of a block, less their means."""
    block = counted(block)
    y, root = targets_of(block) - level, np.sqrt(block.counts)[:, None]
    found = Triangle(np.empty((0, len(mean) + y.shape[1])))
    for rows, F in feature_pieces(block, features):
        E = root[rows] * np.column_stack([F - mean, y[rows]])
        found = found + Triangle(_triangle(E))
    return found


@dataclass(frozen=True, eq=False)
class CentredTriangle:
    """R with R'R = G'SG, G the features less their mean; that of more rows is a sum of two.

    Attributes
    ----------
    total : float
        The sum of the weights.
    count : float
        Rows of positive weight.
    mean : (D,) array
        Mean of the features; zero where they are not centred.
    R : (k, D) array
        The triangle, k at most D.
    size : float
        Sum of s_i |phi(x_i)|^2, before anything was taken off: what rounding is measured by.
    centred : bool
        Whether means are taken off.
    """

    total: float
    count: float
    mean: Array
    R: Array
    size: float
    centred: bool

    def __add__(self, other: CentredTriangle) -> CentredTriangle:
        total, parts, mean = self.total + other.total, [self.R, other.R], self.mean
        if self.centred and total > 0:
            share = other.total / total
            off = other.mean - self.mean
            parts.append((np.sqrt(self.total * share) * off)[None])
            mean = self.mean + share * off
        R, size = _triangle(np.concatenate(parts)), self.size + other.size
        return CentredTriangle(total, self.count + other.count, mean, R, size, self.centred)


def centred_triangle(block: Block, features: Any, centred: bool) -> CentredTriangle:
    """Return the triangle of a block."""
    block = counted(block)
    s, m = block.counts, features.dimension
    found = CentredTriangle(0.0, 0.0, np.zeros(m), np.empty((0, m)), 0.0, centred)
    for rows, F in feature_pieces(block, features):
        w = s[rows]
        total = float(w.sum())
        size = float(w @ np.einsum("ij,ij->i", F, F))
        mean = w @ F / total if centred else np.zeros(m)
        R = _triangle(np.sqrt(w)[:, None] * (F - mean))
        found = found + CentredTriangle(total, float(len(w)), mean, R, size, centred)
    return found
