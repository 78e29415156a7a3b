"""Votes of neighbours: one each, or as many as they are similar, and who wins."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from mercer.array_types import Array
from mercer.machines.classification.nearest import Found

Weighing = Callable[[Array, Array], Array]


def plain(ballots: Array, similarity: Array) -> Array:
    """Count every vote once."""
    return ballots


def similar(ballots: Array, similarity: Array) -> Array:
    """Weigh votes by k(z, x); rows of negative similarity do not vote."""
    return np.asarray(ballots * np.maximum(relative(similarity), 0.0))


def signed(ballots: Array, similarity: Array) -> Array:
    """Weigh votes by k(z, x), whatever its sign."""
    return np.asarray(ballots * relative(similarity))


def relative(similarity: Array) -> Array:
    """Divide each row by the power of two above its largest entry: sums of votes are then finite.

    Examples
    --------
    >>> relative(np.array([[1.5e308, -1e308], [3.0, 1.0]]))[1]
    array([0.75, 0.25])
    """
    exponent = np.frexp(abs(similarity).max(axis=1, keepdims=True))[1]
    return np.asarray(np.ldexp(similarity, -exponent))


WEIGHINGS: dict[str, Weighing] = {"plain": plain, "similarity": similar, "signed": signed}


def votes(
    found: Found, w: Array, k: float, codes: Array, count: int, weighing: Weighing = plain
) -> Array:
    """Count the votes of the k nearest rows: (m, classes), none negative.

    A row votes as often as its weight w (m, count) says; the last one only with what is left of k.
    `weighing` says how much a vote counts; where none does, all do. A vote against a class is one
    for the others, in equal parts: with two classes the larger total is the sign of
    sum_n k(z, x_n) (2 y_n - 1).
    """
    ballots = np.clip(k - (np.cumsum(w, axis=1) - w), 0.0, w)
    weighed = weighing(ballots, found.similarity)
    counted = weighed.any(axis=1, keepdims=True)
    ballots = np.where(counted, weighed, ballots)
    cells = np.arange(len(w))[:, None] * count + codes[found.index]
    total = np.bincount(cells.ravel(), np.maximum(ballots, 0.0).ravel(), len(w) * count)
    total = total.reshape(len(w), count)
    against = np.maximum(-ballots, 0.0)
    if against.any():
        lost = np.bincount(cells.ravel(), against.ravel(), len(w) * count).reshape(total.shape)
        total = total + (lost.sum(axis=1, keepdims=True) - lost) / max(count - 1, 1)
    return np.asarray(total)


def warn_of_silent_rows(found: Found, w: Array, k: float, weighing: Weighing) -> None:
    """Warn where neighbours of negative similarity lose their votes."""
    ballots = np.clip(k - (np.cumsum(w, axis=1) - w), 0.0, w)
    lost: Array = np.asarray(((ballots > 0) & (found.similarity < 0)).any(axis=1))
    if weighing is similar and lost.any():
        warnings.warn(
            f"NearestNeighbors: {int(lost.sum())} of {len(lost)} rows have neighbours of negative "
            "similarity, which do not vote with votes='similarity'; with votes='signed' they vote "
            "for the other classes",
            UserWarning,
            stacklevel=3,
        )


def winners(total: Array, found: Found, w: Array, codes: Array) -> Array:
    """Return the class with most votes; of several, the one with the nearest row that counts.

    Classes that only have votes against others may have no such row; then it is the first.
    """
    best = total.max(axis=1, keepdims=True)
    tied: Array = np.asarray(total >= best * (1 - 1e-12))
    choice = total.argmax(axis=1)
    several = np.flatnonzero(tied.sum(axis=1) > 1)
    if len(several):
        near = codes[found.index[several]]
        among = np.logical_and(np.take_along_axis(tied[several], near, axis=1), w[several] > 0)
        first = near[np.arange(len(several)), among.argmax(axis=1)]
        choice[several] = np.where(among.any(axis=1), first, choice[several])
    return np.asarray(choice)
