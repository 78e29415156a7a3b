"""Graphs that fall apart: the leading eigenvectors are known, and clusters never cross a gap."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array


class DisconnectedWarning(UserWarning):
    """A graph has more connected components than clusters were asked for."""


def on_components(first: Array, group: Array, count: int) -> Array:
    """Restrict a vector to each group, at length one: orthonormal columns (n, count)."""
    columns = np.zeros((len(first), count))
    columns[np.arange(len(first)), group] = first
    return np.asarray(columns / np.linalg.norm(columns, axis=0))


def largest_and_rest(component: Array, count: int) -> Array:
    """Return the count - 1 largest components numbers of their own, and all others the last one."""
    return np.minimum(component, count - 1)


def localised(values: Array, vectors: Array, component: Array) -> tuple[Array, Array, Array]:
    """Rotate eigenvectors of a disconnected graph so that each lives on one component.

    Repeated eigenvalues of different components come mixed. The projections on the components
    commute with the matrix, so a basis that diagonalises both exists in the span.

    Parameters
    ----------
    values : (k,) array
        Eigenvalues, largest first.
    vectors : (n, k) array
        Orthonormal eigenvectors.
    component : (n,) int array
        The component of each point.

    Returns
    -------
    values, vectors
        The same space, largest value first.
    owner : (k,) int array
        The component that each vector lives on.
    """
    count = int(component.max()) + 1
    mass = np.zeros((vectors.shape[1], vectors.shape[1]))
    for j in range(count):
        part = vectors[component == j]
        mass += j * (part.T @ part)
    where, W = np.linalg.eigh(mass)
    owner = np.clip(np.rint(where), 0, count - 1).astype(np.int64)
    kept, turned = np.empty(len(values)), np.empty_like(W)
    for j in np.unique(owner):
        columns = np.flatnonzero(owner == j)
        inner = W[:, columns].T @ (values[:, None] * W[:, columns])
        kept[columns], Y = np.linalg.eigh((inner + inner.T) / 2)
        turned[:, columns] = W[:, columns] @ Y
    order = np.argsort(-kept, kind="stable")
    out = vectors @ turned[:, order]
    for i, j in enumerate(owner[order]):  # what is left elsewhere is rounding
        out[component != j, i] = 0.0
        out[:, i] /= max(float(np.linalg.norm(out[:, i])), np.finfo(float).tiny)
    return kept[order], _signed(out), owner[order]


def _signed(vectors: Array) -> Array:
    peak = np.argmax(np.abs(vectors), axis=0)
    sign = np.where(vectors[peak, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(vectors * sign)
