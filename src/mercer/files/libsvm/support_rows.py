"""Find the support vectors of a LIBSVM model among the rows it was trained on."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.files.libsvm.model import LibsvmModel
from mercer.points import is_sparse


def coefficients_of_rows(model: LibsvmModel, X: Points, targets: Array) -> Array:
    """Return the coefficients of all training rows: zero where a row is no support vector.

    Rows are compared as they are and, where a support vector is none of them, in the 8 digits that
    LIBSVM writes. Of equal rows (of one class) it does not matter which one is meant, but in
    regression: there the larger coefficient belongs to the larger target.

    Parameters
    ----------
    model : LibsvmModel
        The model.
    X : Points
        Training rows, or their kernel matrix.
    targets : (n,) array
        Labels or targets.

    Returns
    -------
    (n, n_classes - 1) array
        In the layout of `model.dual_coef`.
    """
    n = X.shape[0]
    rows = _given_rows(model, n) if model.kernel_type == "precomputed" else None
    coef = np.zeros((n, model.dual_coef.shape[1]))
    if rows is not None:
        coef[rows] = model.dual_coef
        return coef
    if X.shape[1] < model.n_features:
        raise ValueError(f"X has {X.shape[1]} columns, the model reads {model.n_features}")
    for c, (run, members) in enumerate(_classes(model, targets)):
        found = _matched(model, X, members, run)
        _hand_out(coef, model.dual_coef[run], found, targets, members, c)
    return coef


def _given_rows(model: LibsvmModel, n: int) -> Array:
    rows = model.support_vectors - 1
    if len(np.unique(rows)) < len(rows) or rows.max(initial=0) >= n:
        raise ValueError(
            f"the model speaks of row {int(model.support_vectors.max())} of the kernel matrix, or "
            f"of a row twice, but X has {n} rows: it was trained on another matrix"
        )
    return np.asarray(rows)


def _classes(model: LibsvmModel, targets: Array) -> list[tuple[slice, Array]]:
    """Return the support vectors of each class and the rows that they may be."""
    if model.labels is None:
        return [(slice(0, len(model.dual_coef)), np.arange(len(targets)))]
    return [
        (run, np.flatnonzero(targets == label))
        for run, label in zip(model.runs(), model.labels, strict=True)
    ]


def _matched(model: LibsvmModel, X: Points, members: Array, run: slice) -> list[list[int]]:
    """Return, for each support vector of a class, the rows that are equal to it."""
    vectors = model.support_vectors[run]
    exact = _places(X, members, rounded=False)
    wanted = [exact.get(key, []) for key in _keys(vectors, range(vectors.shape[0]), False)]
    if all(wanted):
        return wanted
    near = _places(X, members, rounded=True)
    wanted = [near.get(key, []) for key in _keys(vectors, range(vectors.shape[0]), True)]
    lost = [i for i, places in enumerate(wanted) if not places]
    if lost:
        raise ValueError(
            f"support vector {run.start + lost[0] + 1} of the model is none of the rows of X"
            + ("" if model.labels is None else " with its label")
            + f" ({len(lost)} of {len(wanted)} are not): it was trained on other data, or on rows "
            "scaled otherwise"
        )
    return wanted


def _places(X: Points, members: Array, *, rounded: bool) -> dict[bytes, list[int]]:
    places: dict[bytes, list[int]] = defaultdict(list)
    for row, key in zip(members.tolist(), _keys(X, members.tolist(), rounded), strict=True):
        places[key].append(row)
    return places


def _keys(X: Any, rows: Any, rounded: bool) -> list[bytes]:
    """Return what equal rows have in common: their nonzero entries, zeros at the end or not."""
    held = X if is_sparse(X) else sparse.csr_array(np.asarray(X, dtype=np.float64))
    keys = []
    for i in rows:
        part = slice(int(held.indptr[i]), int(held.indptr[i + 1]))
        columns, values = held.indices[part], held.data[part].astype(np.float64)
        if rounded:
            values = np.array([float(f"{value:.8g}") for value in values.tolist()])
        order = np.argsort(columns, kind="stable")
        order = order[values[order] != 0]
        keys.append(columns[order].astype(np.int64).tobytes() + values[order].tobytes())
    return keys


def _hand_out(
    coef: Array, given: Array, found: list[list[int]], targets: Array, members: Array, c: int
) -> None:
    """Give coefficients to rows, each row at most one."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, equal in enumerate(found):
        groups[tuple(equal)].append(i)
    for places, vectors in groups.items():
        if len(vectors) > len(places):
            raise ValueError(
                f"{len(vectors)} support vectors of the model are equal, but X has "
                f"{len(places)} such rows: it was trained on other data"
            )
        rows = np.array(places)
        values = np.zeros((len(rows), given.shape[1]))
        values[: len(vectors)] = given[vectors]
        if given.shape[1] == 1:  # the larger coefficient to the larger target
            rows = rows[np.argsort(targets[rows], kind="stable")]
            values = np.sort(values, axis=0)
        coef[rows] = values
