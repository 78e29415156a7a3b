"""What a contrast looks like from a rotation, or from a point of the sphere: height, slope, steps.

The fixed-point step of Hyvarinen is b <- E[g(b'z) z] - E[g'(b'z)] b, made orthonormal again:
Newton's step with E[g' z z'] taken for E[g'] I, which is right where the sources are independent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import expm

from mercer.array_types import Array
from mercer.problems.independent.contrasts import Contrast
from mercer.problems.independent.unmixing import (
    joint_curvature,
    joint_moments,
    single_curvature,
    single_moments,
    tangent_basis,
)

MOST_TURNED = 40  # directions whose 780 rotations of pairs have a matrix of second derivatives


@dataclass(frozen=True, eq=False)
class Place:
    """A point, and what is seen from it.

    Attributes
    ----------
    point : Array
        The rotation or the unit vector.
    excess : (k,) array
        E G(y) - E G(gaussian) of each direction.
    signs : (k,) array
        With which they are added up here.
    slope : Array
        The derivatives of the sum, in coordinates of the tangent space.
    moments : object
        What they were computed from.
    """

    point: Array
    excess: Array
    signs: Array
    slope: Array
    moments: Any

    @property
    def steepness(self) -> float:
        """The largest derivative."""
        return float(np.abs(self.slope).max(initial=0.0))


class Landscape(ABC):
    """J over rotations or over a sphere."""

    @abstractmethod
    def at(self, point: Array) -> Place:
        """Look around."""

    @abstractmethod
    def fixed_step(self, place: Place) -> Array:
        """Return where the fixed-point step leads."""

    @abstractmethod
    def curvature(self, place: Place) -> Array:
        """Return the second derivatives: a matrix, or its diagonal where that is too large."""

    @abstractmethod
    def moved(self, place: Place, step: Array) -> Array:
        """Return where a step of the tangent space leads."""


@dataclass(frozen=True, eq=False)
class Rotations(Landscape):
    """The sum of contrasts of all directions: points are orthogonal matrices B, (k, k)."""

    Z: Array
    share: Array
    contrast: Contrast

    def at(self, point: Array) -> Place:
        """Look around."""
        Y = self.Z @ point.T
        moments = joint_moments(Y, self.share, self.contrast)
        slope = moments.slope[np.triu_indices(len(point), 1)]
        return Place(point, moments.excess, moments.signs, slope, moments)

    def fixed_step(self, place: Place) -> Array:
        """Take the fixed-point step of all directions, and the nearest rotation to it."""
        seen = place.moments
        step = seen.pull - np.diag(seen.stiffness)
        ahead = np.where(np.diag(step) < 0, -1.0, 1.0)[:, None] * step  # b and -b are the same
        U, _, Vt = np.linalg.svd(ahead)
        return np.asarray(U @ Vt @ place.point)

    def curvature(self, place: Place) -> Array:
        """Return the second derivatives by the angles of pairs."""
        k, seen = len(place.point), place.moments
        if k <= MOST_TURNED:
            return joint_curvature(self.Z @ place.point.T, self.share, self.contrast, seen)
        each = seen.signs * (seen.stiffness - np.diag(seen.pull))
        a, b = np.triu_indices(k, 1)
        return np.asarray(each[a] + each[b])

    def moved(self, place: Place, step: Array) -> Array:
        """Turn by exp(A)."""
        k = len(place.point)
        A = np.zeros((k, k))
        A[np.triu_indices(k, 1)] = step
        U, _, Vt = np.linalg.svd(expm(A - A.T) @ place.point)  # rounding does not add up
        return np.asarray(U @ Vt)


@dataclass(frozen=True, eq=False)
class Sphere(Landscape):
    """The contrast of one direction of white rows: points are unit vectors b, (p,)."""

    Z: Array
    share: Array
    contrast: Contrast

    def at(self, point: Array) -> Place:
        """Look around; the slope is in the coordinates of `tangent_basis`."""
        moments = single_moments(self.Z, point, self.share, self.contrast)
        slope = tangent_basis(point).T @ moments.slope(point)
        return Place(point, np.array([moments.excess]), np.array([moments.sign]), slope, moments)

    def fixed_step(self, place: Place) -> Array:
        """Take the fixed-point step."""
        step = place.moments.pull - place.moments.stiffness * place.point
        length = float(np.linalg.norm(step))
        return np.asarray(step / length) if length > 0 else place.point

    def curvature(self, place: Place) -> Array:
        """Return the second derivatives along the sphere."""
        return single_curvature(self.Z, place.point, self.share, self.contrast, place.moments)

    def moved(self, place: Place, step: Array) -> Array:
        """Go along the great circle."""
        across = tangent_basis(place.point) @ step
        angle = float(np.linalg.norm(across))
        if angle == 0:
            return place.point
        found = np.cos(angle) * place.point + np.sin(angle) / angle * across
        return np.asarray(found / np.linalg.norm(found))
