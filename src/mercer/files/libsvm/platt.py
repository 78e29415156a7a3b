"""LIBSVM's probabilities, by its own formulas: Platt's sigmoid, coupled pairs, density marks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import expit

from mercer.array_types import Array

_SMALLEST = 1e-7  # svm.cpp: min_prob of a pair
_ACCURACY = 0.005  # svm.cpp: eps of the coupling, divided by the number of classes
_FEWEST_ROUNDS = 100  # svm.cpp: max_iter of the coupling, or the number of classes
_OUTSIDE, _INSIDE = 0.001, 0.999  # svm.cpp: one class, below the first mark and above the last


def class_probabilities(values: Array, slopes: Array, offsets: Array, count: int) -> Array:
    """Return probabilities of classes from decision values of all pairs.

    Parameters
    ----------
    values : (n, pairs) array
        Positive for the first class of each pair.
    slopes, offsets : (pairs,) array
        probA and probB: the first class has probability 1 / (1 + exp(A f + B)).
    count : int
        How many classes there are.

    Examples
    --------
    >>> class_probabilities(np.array([[0.0]]), np.array([-2.0]), np.array([0.0]), 2).tolist()
    [[0.5, 0.5]]
    """
    first = np.clip(expit(-(values * slopes + offsets)), _SMALLEST, 1.0 - _SMALLEST)
    if count == 2:
        return np.column_stack([first[:, 0], 1.0 - first[:, 0]])
    pairs = np.zeros((len(values), count, count))
    a, b = np.array(list(combinations(range(count), 2))).T
    pairs[:, a, b] = first
    pairs[:, b, a] = 1.0 - first
    return coupled(pairs)


def coupled(pairs: Array) -> Array:
    """Couple probabilities of pairs by LIBSVM's iteration (method 2 of Wu, Lin and Weng).

    It stops early, so that another way to the same minimum would differ in the third digit.

    Parameters
    ----------
    pairs : (n, k, k) array
        Entry (i, j) is the probability of class i against class j.
    """
    n, k, _ = pairs.shape
    Q = -pairs.transpose(0, 2, 1) * pairs
    every = np.arange(k)
    Q[:, every, every] = np.square(pairs).sum(axis=1)
    p = np.full((n, k), 1.0 / k)
    going = np.arange(n)
    for _ in range(max(_FEWEST_ROUNDS, k)):
        Qp = np.einsum("ntj,nj->nt", Q[going], p[going])
        pQp = (p[going] * Qp).sum(axis=1)
        late = np.abs(Qp - pQp[:, None]).max(axis=1) >= _ACCURACY / k
        going, Qp, pQp = going[late], Qp[late], pQp[late]
        if not len(going):
            break
        p[going] = _swept(Q[going], p[going], Qp, pQp)
    return p


def _swept(Q: Array, p: Array, Qp: Array, pQp: Array) -> Array:
    """Move each probability once, in order."""
    for t in range(p.shape[1]):
        step = (pQp - Qp[:, t]) / Q[:, t, t]
        p[:, t] += step
        grown = 1.0 + step
        pQp = (pQp + step * (step * Q[:, t, t] + 2.0 * Qp[:, t])) / grown / grown
        Qp = (Qp + step[:, None] * Q[:, t]) / grown[:, None]
        p = p / grown[:, None]
    return p


def inlier_probabilities(values: Array, marks: Array) -> Array:
    """Return the probability of being common, and the rest, from density marks of one class.

    Parameters
    ----------
    values : (n,) array
        Decision values.
    marks : (10,) array
        Values that tenths of the training rows lie below.
    """
    found = np.searchsorted(marks, values, side="right") / len(marks)
    found = np.where(values < marks[0], _OUTSIDE, np.where(values > marks[-1], _INSIDE, found))
    found = np.where(values == marks[-1], 0.0, found)  # svm.cpp finds no interval for it
    return np.column_stack([found, 1.0 - found])
