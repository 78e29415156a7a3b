"""Semi-supervised problems: labels on a graph, and kernels deformed by a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array
from mercer.backends.factorizations import parts
from mercer.gram import Gram
from mercer.gram.base import written_out
from mercer.gram.policy import LAPACK_ROWS
from mercer.resources import require_memory
from mercer.rows.points import is_sparse

# --- graph labels --------------------------------------------------------------------------------
#
# Labels that spread over a graph: harmonic functions, and labels with a restart.
#
# With W the weights of edges (loops do not count), D their row sums and Y the known targets,
#
# - harmonic (alpha = 1): f = y at labelled rows, D f = W f at all others: each value is the mean
#   of its neighbours' (Zhu, Ghahramani and Lafferty, Semi-supervised learning using Gaussian fields
#   and harmonic functions, ICML 2003);
# - spreading (alpha < 1): f = (1 - alpha) (I - alpha S)^-1 Y with S = D^-1/2 W D^-1/2 (Zhou,
#   Bousquet, Lal, Weston and Scholkopf, Learning with local and global consistency, NIPS 2003).
#
# Both are systems of one M-matrix, D - alpha W on the rows that are free.

_FAINT = 1e-12  # of the degrees of both ends: an edge below carries no digits of a value
_ENTRIES_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class GraphValues:
    """An answer to `GraphLabels`.

    Attributes
    ----------
    values : (n, t) array
        f for each row and target.
    steps : (n,) array
        How many steps a walk along the edges, by their weights, is expected to take from each row
        until it meets a label, or is restarted; at least so: (D - alpha W) steps >= D / 2 on free
        rows. Zero for rows that are not free.
    """

    values: Array
    steps: Array


@dataclass(frozen=True, eq=False)
class GraphLabels:
    """Find the values that labels have on a graph.

    Attributes
    ----------
    gram : Gram
        W, with no negative entry.
    targets : (n, t) array
        The known targets; zero at rows without a label.
    labelled : (n,) bool array
        Which rows have a label.
    alpha : float
        Above 0 and at most 1: what share of its value a row takes from its neighbours; 1 keeps
        labels as they are, and lets the others have nothing but neighbours.
    """

    gram: Gram
    targets: Array
    labelled: Array
    alpha: float

    @cached_property
    def edges(self) -> Any:
        """W without its diagonal."""
        return edges_of(self.gram)

    @cached_property
    def degrees(self) -> Array:
        """Row sums of W without its diagonal."""
        return np.asarray(self.edges @ np.ones(self.gram.shape[0]), dtype=np.float64)

    @cached_property
    def reached(self) -> Array:
        """Which rows hang together with a label, by edges that carry a value."""
        return _reached(self.edges, self.degrees, self.labelled)

    @property
    def has_few_edges(self) -> bool:
        """Whether W is sparse, and too large to be factored in a moment."""
        return self.gram.csr is not None and self.gram.shape[0] > LAPACK_ROWS

    @property
    def clamped(self) -> bool:
        """Whether labels stay what they are."""
        return self.alpha == 1.0

    @cached_property
    def free(self) -> Array:
        """The numbers of the rows whose values are looked for."""
        if self.clamped:
            return np.flatnonzero(self.reached & ~self.labelled)
        return np.flatnonzero(self.degrees > 0)

    def product(self, F: Array) -> Array:
        """Return (D - alpha W) F on free rows, F being zero elsewhere: (m, t) to (m, t)."""
        full = np.zeros((self.gram.shape[0], F.shape[1]))
        full[self.free] = F
        return np.asarray(self.degrees[self.free, None] * F - self.alpha * self.pulled(full))

    def pulled(self, F: Array) -> Array:
        """Return what neighbours pull free rows by: W F, (n, t) to (m, t)."""
        return np.asarray(self.edges @ F)[self.free]

    @cached_property
    def right(self) -> Array:
        """The right-hand sides for the free rows, (m, t)."""
        if self.clamped:
            return self.pulled(np.where(self.labelled[:, None], self.targets, 0.0))
        root = np.sqrt(self.degrees[self.free])[:, None]
        return np.asarray((1.0 - self.alpha) * root * self.targets[self.free])

    @property
    def units(self) -> Array:
        """What an equation of each free row is divided by, so that its error is one of values."""
        degrees = self.degrees[self.free]
        return degrees if self.clamped else np.sqrt(degrees)

    def complete(self, F: Array) -> Array:
        """Return the values of all rows from those of the system: (m, t) to (n, t)."""
        if self.clamped:
            values = np.where(self.labelled[:, None], self.targets, self.unknown)
            values[self.free] = F
            return np.asarray(values)
        values = (1.0 - self.alpha) * self.targets
        values[self.free] = np.sqrt(self.degrees[self.free])[:, None] * F
        return np.asarray(values)

    def inside(self, values: Array) -> Array:
        """Return what `complete` was made of: (n, t) to (m, t)."""
        if self.clamped:
            return np.asarray(values[self.free])
        return np.asarray(values[self.free] / np.sqrt(self.degrees[self.free])[:, None])

    @property
    def unknown(self) -> Array:
        """The value of rows that no label reaches: the mean of the labels, (t,)."""
        return np.asarray(self.targets[self.labelled].mean(axis=0))


def edges_of(gram: Gram) -> Any:
    """Return W without its diagonal: taken off later, it would leave few digits of small weights.

    Parameters
    ----------
    gram : Gram
        The weights of the edges, with loops that do not count.

    Returns
    -------
    (n, n) array or sparse array
        Nowhere negative.
    """
    n = gram.shape[0]
    if gram.csr is not None:
        loops = sparse.diags_array(gram.csr.diagonal(), format="csr")
        bare = sparse.csr_array(gram.csr - loops)
        bare.eliminate_zeros()
        return bare
    what = f"the weights of all edges between {n} rows"
    require_memory(8 * n * n, what, "Use neighbors=10, a graph with few edges.")
    W = written_out(gram)
    np.maximum(W, 0.0, out=W)  # rounding of entries that are zero
    W.flat[:: n + 1] = 0.0
    return W


def _reached(edges: Any, degrees: Array, labelled: Array) -> Array:
    """Walk from labelled rows along edges of at least a share of the degrees of both ends."""
    if sparse.issparse(edges):
        return _reached_along(edges, degrees, labelled)
    root = np.sqrt(degrees)
    seen, front = labelled.copy(), np.flatnonzero(labelled)
    step = max(1, min(64, _ENTRIES_AT_ONCE // max(len(seen), 1)))
    while len(front) and not seen.all():
        block, front = front[:step], front[step:]
        joined = edges[block] > _FAINT * np.outer(root[block], root)
        fresh = np.flatnonzero(joined.any(axis=0) & ~seen)
        seen[fresh] = True
        front = np.concatenate([front, fresh])
    return seen


def _reached_along(edges: Any, degrees: Array, labelled: Array) -> Array:
    pairs = edges.tocoo()
    strong = pairs.data > _FAINT * np.sqrt(degrees[pairs.row]) * np.sqrt(degrees[pairs.col])
    row, column = pairs.row[strong], pairs.col[strong]
    seen = labelled.copy()
    while True:
        grown = seen.copy()
        grown[column[seen[row]]] = True
        if (grown == seen).all():
            return seen
        seen = grown


# --- deformed kernel -----------------------------------------------------------------------------
#
# A kernel deformed by a graph: functions that differ along its edges have larger norms.
#
# Belkin, Niyogi and Sindhwani (Manifold regularization, JMLR 7 (2006)) add f'Lf, taken over all
# rows whether they have a label or not, to the squared norm of f. The sum is a squared norm, too,
# of the kernel (Sindhwani, Niyogi and Belkin, Beyond the point cloud, ICML 2005)
#
#     k~(x, z) = k(x, z) - k_x' (I + M K)^-1 M k_z,   M = ratio L,   k_x = (k(x, x_1), ...)'.
#
# With T = (I + M K)^-1 its matrix is K T, and k~(x_i, .) = sum_j T_ji k(x_j, .): all that a
# machine on the labelled rows needs are their columns of T.


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
        bent, n = np.empty(V.shape), len(V)
        work = 2.0 * self.edges.nnz if is_sparse(self.edges) else 2.0 * n * n
        for some in parts(V.shape[1], work + 100.0 * n):
            laplacian = self.degrees[:, None] * V[:, some] - np.asarray(self.edges @ V[:, some])
            bent[:, some] = (self.ratio / mean) * laplacian
        return bent

    @property
    def units(self) -> Array:
        """The unit vectors of the labelled rows: (n, l)."""
        J = np.zeros((self.gram.shape[0], len(self.labelled)))
        J[self.labelled, np.arange(len(self.labelled))] = 1.0
        return J
