"""Rows on which a graph is compared with its machine: like training rows, and near the border."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from mercer.array_types import Array
from mercer.expression import Statistic, walk
from mercer.files.onnx.expansions import points_of
from mercer.files.onnx.machines.linear_steps import last_of
from mercer.kernels import Precomputed
from mercer.machines import LogShift, NaiveBayes
from mercer.machines.projection.subspace import PointSubspace
from mercer.points import is_objects, to_dense

_ROWS = 96  # that the machine holds, and as many again of other kinds
_BISECTIONS = 30  # of a segment between two labels: 10^-9 of its length is left
_NEAR = 1e-3  # of the spread of the rows


def sample_rows(machine: Any, width: int) -> Array:
    """Return rows to compare at: (n, width).

    Rows that the machine holds (support vectors, means), the same moved a little and moved a lot,
    and for machines that give labels points where these change.

    Parameters
    ----------
    machine : fitted machine or pipeline
        The machine.
    width : int
        The number of columns of the rows it takes.
    """
    rng = np.random.default_rng(0)
    last, steps = last_of(machine)
    if isinstance(last, NaiveBayes) and not steps:
        return _bayes_rows(last, width, rng)
    first = steps[0] if steps else last
    held = _held(first, width, rng)
    spread = held.std(axis=0) + 1e-300
    near = held + _NEAR * spread * rng.normal(size=held.shape)
    far = held[rng.permutation(len(held))] + spread * rng.normal(size=held.shape)
    rows = np.concatenate([held, near, far])
    if _is_nonnegative(last):
        rows = np.abs(rows)
    if isinstance(first, LogShift):  # no logarithm below
        rows = np.abs(rows) - first.shift_ + 1e-3
    return np.concatenate([rows, border_rows(machine, rows, rng)])


def border_rows(machine: Any, rows: Array, rng: np.random.Generator, count: int = _ROWS) -> Array:
    """Return points between rows of different labels, next to where the label changes.

    Parameters
    ----------
    machine : fitted machine or pipeline
        With labels; others have no such points.
    rows : (n, d) array
        Where to look.
    rng : Generator
        Source of random numbers.
    count : int
        How many pairs of rows are tried.
    """
    if not _gives_labels(machine):
        return rows[:0]
    a = rows[rng.integers(len(rows), size=count)]
    b = rows[rng.integers(len(rows), size=count)]
    label = np.asarray(machine.predict(a))
    different = np.asarray(machine.predict(b)) != label
    a, b, label = a[different], b[different], label[different]
    low, high = np.zeros(len(a)), np.ones(len(a))
    for _ in range(_BISECTIONS):
        if not len(a):
            break
        middle = (low + high) / 2
        same = np.asarray(machine.predict(a + middle[:, None] * (b - a))) == label
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    ends = [a + t[:, None] * (b - a) for t in (low, high)]
    return np.concatenate(ends) if len(a) else rows[:0]


def _gives_labels(machine: Any) -> bool:
    last, _ = last_of(machine)
    kinds = getattr(last, "_estimator_type", None) or last.__sklearn_tags__().estimator_type
    return hasattr(machine, "predict") and kinds in ("classifier", "clusterer", "outlier_detector")


def _held(machine: Any, width: int, rng: np.random.Generator) -> Array:
    """Return rows that a machine or step holds; drawn ones where it holds none."""
    if isinstance(machine, StandardScaler):
        scale = machine.scale_ if machine.scale_ is not None else 1.0
        mean = machine.mean_ if machine.mean_ is not None else 0.0
        return np.asarray(mean + scale * rng.normal(size=(_ROWS, width)))
    if isinstance(machine, MinMaxScaler):
        share = rng.random((_ROWS, width))
        return np.asarray(machine.data_min_ + share * (machine.data_max_ - machine.data_min_))
    inner = getattr(machine, "machine_", machine)
    if isinstance(getattr(inner, "kernel_", None), Precomputed):
        return rng.random((_ROWS, width))
    points = _points(inner)
    if points is None or is_objects(points) or points.shape[1] != width:
        return rng.normal(size=(_ROWS, width))
    kept = rng.permutation(points.shape[0])[:_ROWS]
    rows = to_dense(points[kept])
    if len(rows) < _ROWS // 4:  # a few means say where, and not how far apart rows are
        scale = rows.std(axis=0) + (1.0 if len(rows) < 2 else 0.0)
        more = rows[rng.integers(len(rows), size=_ROWS)] + scale * rng.normal(size=(_ROWS, width))
        rows = np.concatenate([rows, more])
    return rows


def _bayes_rows(machine: NaiveBayes, width: int, rng: np.random.Generator) -> Array:
    """Draw columns of the kinds that naive Bayes knows, some entries missing."""
    layout, model = machine._layout, machine.solution_.value
    count = 4 * _ROWS
    rows = rng.poisson(2.0, size=(count, width)).astype(np.float64)
    rows[:, layout.binary] = rng.random((count, len(layout.binary))) < 0.5
    of = rng.integers(len(model.prior), size=count)
    bells = rng.normal(size=(count, len(layout.gaussian)))
    if len(layout.gaussian):
        rows[:, layout.gaussian] = model.mean[of] + bells * np.sqrt(model.variance[of])
    gaps = rng.random(rows.shape) < 0.02
    gaps[:, layout.count] = False
    rows[gaps] = np.nan
    return rows


def _points(machine: Any) -> Any:
    view = getattr(machine, "_x", None)
    expansion = getattr(machine, "_expansion", getattr(view, "expansion", None))
    found = points_of(expansion)
    if found is not None:
        return found
    space = machine.__dict__.get("_subspace")
    if isinstance(space, PointSubspace):
        return space.source.X
    for name in ("support_vectors_", "cluster_centers_", "means_"):
        value = getattr(machine, name, None)
        if value is not None and value.ndim == 2 and value.shape[0]:
            return value
    mean = getattr(machine, "mean_", None) if not hasattr(machine, "kernel_") else None
    return None if mean is None else np.asarray(mean)[None]


def _is_nonnegative(machine: Any) -> bool:
    """Return whether the kernel takes histograms and counts only."""
    kernel = getattr(getattr(machine, "machine_", machine), "kernel_", None)
    if kernel is None or isinstance(kernel, Precomputed):
        return False
    nodes = walk(kernel.expression())
    return any(isinstance(node, Statistic) and node.needs_nonnegative for node in nodes)
