"""What sets a group of rows apart from all rows, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.array_types import Array
from mercer.data import Kind

if TYPE_CHECKING:
    from mercer.data import Table

_CLEAR = 0.5  # standard deviations, or difference of shares, from which on it is worth saying
_MOST = 4  # sentences of a cluster


def profiles_of(table: Table, labels: Array, k: int) -> tuple[tuple[str, ...], ...]:
    """Return, for each cluster, the columns in which it differs most from all rows.

    Parameters
    ----------
    table : Table
        The rows.
    labels : (n,) int array
        The cluster of each.
    k : int
        How many clusters there are.

    Returns
    -------
    tuple of tuple of str
        The clearest differences first.
    """
    said: list[list[tuple[float, str]]] = [[] for _ in range(k)]
    for name in table.columns:
        values = table[name]
        if values.dtype.kind == "f":
            _numbers(name, values, labels, said)
        elif table.kinds[name] in (Kind.CATEGORY, Kind.BINARY):
            _words(name, values, labels, said)
    return tuple(
        tuple(text for _, text in sorted(one, key=lambda pair: -pair[0])[:_MOST]) for one in said
    )


def _numbers(name: str, values: Array, labels: Array, said: list[list[tuple[float, str]]]) -> None:
    there = ~np.isnan(values)
    if not there.any() or not np.nanstd(values) > 0:
        return
    mean, spread = float(np.nanmean(values)), float(np.nanstd(values))
    for number, sentences in enumerate(said):
        mine = values[there & (labels == number)]
        if len(mine) and abs(own := (float(mine.mean()) - mean) / spread) >= _CLEAR:
            word = "high" if own > 0 else "low"
            text = f"{name} is {word}: mean {mine.mean():.4g}, of all rows {mean:.4g}"
            sentences.append((abs(own), text))


def _words(name: str, values: Array, labels: Array, said: list[list[tuple[float, str]]]) -> None:
    words = np.array([str(entry) for entry in values.tolist()], dtype=object)
    levels, codes = np.unique(words, return_inverse=True)
    share = np.bincount(codes, minlength=len(levels)) / len(words)
    for number, sentences in enumerate(said):
        mine = codes[labels == number]
        if not len(mine):
            continue
        own = np.bincount(mine, minlength=len(levels)) / len(mine)
        best = int(np.argmax(own - share))
        if (lead := float(own[best] - share[best])) >= _CLEAR / 2:
            text = f"{name} is {levels[best]} in {own[best]:.0%}, of all rows in {share[best]:.0%}"
            sentences.append((2 * lead, text))
