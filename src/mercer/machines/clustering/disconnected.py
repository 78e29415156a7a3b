"""Graphs that fall apart: the leading eigenvectors are known, and clusters never cross a gap."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mercer.array_types import Array

_FAINT = 1e-2  # of length one: less of a vector on a component does not tell its direction
_SAME = 12  # digits of eigenvalues that tell them apart


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
    """Make eigenvectors of a disconnected graph live on one component each.

    Repeated eigenvalues of different components come mixed. What a vector is on one component is
    an eigenvector, too: from all these, orthogonal ones of each component are made, and those of
    the largest values are kept. They span the given space, unless that holds a part only of the
    vectors of its smallest value: then they are others of that value.

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
        As many, largest value first, orthonormal.
    owner : (k,) int array
        The component that each vector lives on.
    """
    order = np.argsort(component, kind="stable")
    starts = np.searchsorted(component[order], np.arange(int(component.max()) + 2))
    rows = [order[i:j] for i, j in pairwise(starts)]
    # squared lengths add up to the number of vectors: with this bound as many are left
    faint = min(_FAINT, float(1 / np.sqrt(2 * len(values) * len(rows))))
    found = [_on_one(values, vectors[some], faint) for some in rows]
    every = np.concatenate([those for those, _ in found])
    owner = np.repeat(np.arange(len(found)), [len(those) for those, _ in found])
    column = np.concatenate([np.arange(len(those)) for those, _ in found])
    # rounding does not order equal values: a component of more points, which comes first, has them
    size = max(float(np.abs(every).max(initial=0.0)), np.finfo(float).tiny)
    kept = np.argsort(-np.round(every / size, _SAME), kind="stable")[: len(values)]
    kept = kept[np.argsort(-every[kept], kind="stable")]
    out = np.zeros(vectors.shape)
    for i, (j, c) in enumerate(zip(owner[kept], column[kept], strict=True)):
        out[rows[j], i] = found[j][1][:, c]
    return every[kept], _signed(out), owner[kept]


def _on_one(values: Array, part: Array, faint: float) -> tuple[Array, Array]:
    """Return eigenpairs of one component, from the rows of eigenvectors of all: (c,), (m, c).

    With part = U S W', the matrix of the component maps part to part diag(values), and so has
    S W' diag(values) W / S in the basis U.
    """
    U, strengths, W = np.linalg.svd(part, full_matrices=False)
    kept = strengths > faint
    U, strengths, W = U[:, kept], strengths[kept], W[kept]
    inner = strengths[:, None] * (W @ (values[:, None] * W.T)) / strengths
    found, turn = np.linalg.eigh((inner + inner.T) / 2)
    return found[::-1], U @ turn[:, ::-1]


def _signed(vectors: Array) -> Array:
    peak = np.argmax(np.abs(vectors), axis=0)
    sign = np.where(vectors[peak, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(vectors * sign)
