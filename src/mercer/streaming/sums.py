"""Sums over rows that fits of squares need: moments of features and targets, and triangles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks import Block
from mercer.gram.base import columns_of
from mercer.problems.blocks import FeatureRows, counted, feature_pieces


@dataclass(frozen=True, eq=False)
class Moments:
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

    def __add__(self, other: Moments) -> Moments:
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
        return Moments(total, count, mean, level, products, cross, squares, self.centred)


def targets_of(block: Block) -> Array:
    """Return targets as columns of float64; no columns where there are none."""
    if block.y is None:
        return np.empty((len(block), 0))
    return columns_of(np.asarray(block.y, dtype=np.float64))


def block_moments(block: Block, features: Any, centred: bool, targeted: bool) -> Moments:
    """Return the moments of a block, those of its targets if they are asked for."""
    block = counted(block)
    y, s = targets_of(block) if targeted else np.empty((len(block), 0)), block.counts
    found = _none(features.dimension, y.shape[1], centred)
    for rows, F in feature_pieces(block, features):
        found = found + _piece(F, y[rows], s[rows], centred)
    return found


def _none(m: int, t: int, centred: bool) -> Moments:
    zero = np.zeros
    return Moments(0.0, 0.0, zero(m), zero(t), zero((m, m)), zero((m, t)), zero(t), centred)


def _piece(F: Array, y: Array, s: Array, centred: bool) -> Moments:
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
    return Moments(total, float(len(s)), mean, level, F.T @ F, F.T @ y, squares, centred)


def moments_of(rows: FeatureRows, centred: bool, targeted: bool = True) -> Moments:
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
