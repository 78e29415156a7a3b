"""Whole rows as symbols, and how often each occurs in each class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.base.targets import refuse_mixed_labels
from mercer.machines.bayes.columns import Column, Table
from mercer.problems.bayes.class_tables import ClassTables, ColumnMoments

Tally = tuple[dict[Any, int], Array]


def symbols(machine: Any, table: Table) -> list[tuple[Any, ...]]:
    """Return each row as a tuple of its values; refuse missing entries."""
    columns = [_listed(machine, table.column(j), j) for j in range(table.shape[1])]
    return list(zip(*columns, strict=True))


def _listed(machine: Any, column: Column, j: int) -> list[Any]:
    if column.codes is not None:
        gaps = np.flatnonzero(column.codes < 0)
        found = [column.values[code] for code in column.codes] if not len(gaps) else []
    else:
        x = np.asarray(column.numbers)
        gaps = np.flatnonzero(np.isnan(x) if x.dtype.kind == "f" else [])
        found = (x if x.dtype.kind == "b" else x + 0).tolist()  # -0.0 is 0.0
    if len(gaps):
        raise ValueError(
            f"Input X contains NaN: {len(gaps)} missing entries in column {j}, the first in row "
            f"{gaps[0]}. {type(machine).__name__} needs whole rows; NaiveBayes skips missing ones"
        )
    return found


def numbered(machine: Any, values: Iterable[Any], n: int) -> dict[Any, int]:
    """Return n observations, single values or whole rows, their places."""
    name = type(machine).__name__
    rows = [tuple(row) if isinstance(row, tuple | list) else (row,) for row in values]
    try:
        place = {row: i for i, row in enumerate(rows)}
    except TypeError as error:
        raise TypeError(f"{name}: values holds an entry that is no value ({error})") from error
    if not len(rows) == len(place) == n:
        raise ValueError(f"{name}: values must be {n} different ones")
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"{name}: values must be tuples of one length")
    return place


def tallied(rows: list[Any], codes: Array, weights: Array, k: int) -> Tally:
    """Count rows in classes; rows of weight zero do not occur."""
    kept = np.flatnonzero(weights)
    place: dict[Any, int] = {}
    numbers = [place.setdefault(rows[i], len(place)) for i in kept]
    flat = np.array(numbers, dtype=np.intp) * k + codes[kept]
    counts = np.bincount(flat, weights[kept], minlength=k * len(place)).reshape(-1, k)
    return place, counts


def ordered(machine: Any, classes: Any, k: int) -> tuple[Array, Array]:
    """Return k different labels, sorted, and the order that sorts them."""
    refuse_mixed_labels(machine, classes)
    labels = np.arange(k) if classes is None else np.asarray(classes)
    if labels.ndim != 1 or not len(labels) == len(np.unique(labels)) == k:
        raise ValueError(f"{type(machine).__name__}: classes must be {k} different labels")
    order = np.argsort(labels)
    return labels[order], order


def totals_of(machine: Any, counts: Array) -> Array:
    """Return the weight of each class, and refuse weights that cannot be added up."""
    with np.errstate(over="ignore"):
        totals = counts.sum(axis=0)
        finite = bool(np.isfinite(totals.sum()))
    if not finite:
        raise ValueError(
            f"{type(machine).__name__}: sample_weight adds up to more than float64 holds; scale it "
            "down"
        )
    return np.asarray(totals)


def likelihoods(counts: Array, alpha: float) -> tuple[Array, Array]:
    """Return P(row | class), and that of rows never seen: smoothed, or equal for all classes."""
    below = counts.sum(axis=0) + alpha * len(counts)
    even = np.full_like(counts, 1.0 / len(counts))
    found = np.divide(counts + alpha, below, out=even, where=below > 0)
    unseen = np.ones_like(below)
    if alpha:
        np.divide(alpha, below, out=unseen, where=below > 0)
    return found, unseen


def posteriors(likelihood: Array, prior: Array) -> Array:
    """Return P(class | row) by Bayes' rule; the prior where a row never occurs."""
    joint = likelihood * prior
    evidence = joint.sum(axis=1, keepdims=True)
    out = np.repeat(prior[None], len(joint), axis=0)
    return np.asarray(np.divide(joint, evidence, out=out, where=evidence > 0))


def question(counts: Array, alpha: float, prior: Array) -> ClassTables:
    """State the table as a problem: one categorical attribute, the row."""
    flat = np.append(counts.T, np.zeros((counts.shape[1], 1)), axis=1)
    none = np.zeros((counts.shape[1], 0))
    parts = (none, none, none, ColumnMoments(none, none, none))
    return ClassTables(flat, np.zeros(1, int), *parts, float(alpha), np.zeros(0), prior)


def joined(one: Tally, other: Tally) -> Tally:
    """Add up two tallies."""
    place = dict(one[0])
    numbers = [place.setdefault(row, len(place)) for row in other[0]]
    counts = np.zeros((len(place), one[1].shape[1]))
    counts[: len(one[1])] = one[1]
    counts[numbers] += other[1]
    return place, counts
