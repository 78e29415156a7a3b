"""Which attributes tell a class from the others, and how much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from mercer.array_types import Array
from mercer.machines.bayes.class_counts import ClassCounts, Layout
from mercer.machines.bayes.class_scores import FAR
from mercer.problems.bayes.class_tables import ClassModel


class Telling(NamedTuple):
    """An attribute that speaks for a class.

    Attributes
    ----------
    attribute : object
        Name or number of the column.
    value : object
        The value that speaks; for counts 1, for Gaussian columns the mean of the class.
    label : object
        The class it speaks for.
    log_ratio : float
        log P(value | class) - log P(value | other classes); for Gaussian columns, of densities.
    """

    attribute: Any
    value: Any
    label: Any
    log_ratio: float


def most_telling(
    layout: Layout, held: ClassCounts, model: ClassModel, names: Any, labels: dict[Any, int], n: int
) -> list[Telling]:
    """Return the n largest log-ratios for some labels, whose numbers are given, largest first."""
    parts = list(_parts(layout, held, model))
    found: list[Telling] = []
    for label, c in labels.items():
        other = np.array([i for i in range(len(model.prior)) if i != c])
        ratios = np.concatenate([_ratio(logs, model.prior, c, other) for logs, _, _ in parts])
        ratios = np.append(ratios, _bell_ratio(model, c, other))
        ends = np.cumsum([logs.shape[1] for logs, _, _ in parts])
        for i in np.argsort(-ratios, kind="stable")[:n]:
            column, value = _named(i, ends, parts, layout, model, c)
            name = int(column) if names is None else names[column]
            found.append(Telling(name, value, label, float(ratios[i])))
    return sorted(found, key=lambda one: -one.log_ratio)[:n]


def _parts(
    layout: Layout, held: ClassCounts, model: ClassModel
) -> Iterator[tuple[Array, Array, list[Any]]]:
    """Return log-probabilities (k, m), with the column and the value of each."""
    columns, values, places, start = [], [], [], 0
    for j, listed in zip(layout.categorical, held.values, strict=True):
        columns += [j] * len(listed)
        values += list(listed.listed)
        places += list(range(start, start + len(listed)))
        start += len(listed) + 1
    yield model.tables[:, places], np.array(columns, dtype=np.intp), values
    yield model.ones, layout.binary, [1] * len(layout.binary)
    yield model.zeros, layout.binary, [0] * len(layout.binary)
    used = np.flatnonzero(held.counts.any(axis=0))
    yield model.words[:, used], layout.count[used], [1] * len(used)


def _ratio(logs: Array, prior: Array, c: int, other: Array) -> Array:
    share = prior[other] - logsumexp(prior[other])
    return np.asarray(logs[c] - logsumexp(logs[other] + share[:, None], axis=0))


def _bell_ratio(model: ClassModel, c: int, other: Array) -> Array:
    """Compare densities at the mean of the class."""
    with np.errstate(over="ignore"):
        z = (model.mean[c] - model.mean) / np.sqrt(model.variance)
    logs = -0.5 * (np.clip(z, -FAR, FAR) ** 2 + np.log(model.variance))
    return _ratio(logs, model.prior, c, other)


def _named(
    i: int, ends: Array, parts: list[Any], layout: Layout, model: ClassModel, c: int
) -> tuple[int, Any]:
    part = int(np.searchsorted(ends, i, side="right"))
    if part == len(parts):
        place = i - int(ends[-1])
        return int(layout.gaussian[place]), float(model.mean[c, place])
    place = i - (int(ends[part - 1]) if part else 0)
    return int(parts[part][1][place]), parts[part][2][place]
