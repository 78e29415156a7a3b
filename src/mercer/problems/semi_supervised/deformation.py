"""A kernel bent by a graph: functions that differ along its edges get longer.

Belkin, Niyogi and Sindhwani (Manifold regularization, JMLR 7 (2006)) add f'Lf, taken over all rows
whether they have a label or not, to the squared norm of f. The sum is a squared norm, too, of the
kernel (Sindhwani, Niyogi and Belkin, Beyond the point cloud, ICML 2005)

    k~(x, z) = k(x, z) - k_x' (I + M K)^-1 M k_z,   M = ratio L,   k_x = (k(x, x_1), ...)'.

With T = (I + M K)^-1 its matrix is K T, and k~(x_i, .) = sum_j T_ji k(x_j, .): all that a machine
on the labelled rows needs are their columns of T.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram


@dataclass(frozen=True, eq=False)
class Deformation:
    """An answer to `DeformedKernel`.

    Attributes
    ----------
    transfer : (n, l) array
        Columns of T: coefficients of k~(x_i, .), for labelled rows i, over all rows.
    matrix : (l, l) array
        k~ on the labelled rows.
    """

    transfer: Array
    matrix: Array


@dataclass(frozen=True, eq=False)
class DeformedKernel:
    """Find the deformed kernel of the labelled rows.

    Attributes
    ----------
    gram : Gram
        K on all rows.
    edges : (n, n) array or sparse array
        The weights of the graph, without its diagonal; nowhere negative.
    ratio : float
        What f'Lf counts beside |f|^2; L = (D - W) / d, D the row sums of W and d their mean.
    labelled : (l,) int array
        The rows that have a label.
    """

    gram: Gram
    edges: Any
    ratio: float
    labelled: Array

    @cached_property
    def degrees(self) -> Array:
        """The row sums of W."""
        return np.asarray(self.edges @ np.ones(self.gram.shape[0]), dtype=np.float64)

    def bend(self, V: Array) -> Array:
        """Return M V: (n, k) to (n, k)."""
        mean = float(self.degrees.mean())
        if not mean > 0:
            return np.zeros_like(V)
        laplacian = self.degrees[:, None] * V - np.asarray(self.edges @ V)
        return np.asarray((self.ratio / mean) * laplacian)

    @property
    def units(self) -> Array:
        """The unit vectors of the labelled rows: (n, l)."""
        J = np.zeros((self.gram.shape[0], len(self.labelled)))
        J[self.labelled, np.arange(len(self.labelled))] = 1.0
        return J
