"""Kernels of sequences: strings, and lists of tokens.

Both look at sub-sequences that two sequences share. They are `Opaque` to backends: a function of
two blocks of sequences that is itself a value, so that equal kernels have equal expressions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import deadline
from mercer import expression as ex
from mercer.array_types import Array, Points
from mercer.expression import Expression
from mercer.kernels import checks
from mercer.kernels.base import Kernel, proven
from mercer.kernels.kgram_counts import count_kgrams, products
from mercer.points import is_objects

_BLOCK = 64  # sequences compared at a time by the dynamic programme


@proven
@dataclass(frozen=True, repr=False)
class Spectrum(Kernel):
    """k(s, t) = sum over all k-grams u of (times u stands in s) (times u stands in t).

    Parameters
    ----------
    k : int
        Length of the contiguous pieces, at least 1.

    Examples
    --------
    >>> Spectrum(k=2)(["banana", "bandana"]).tolist()
    [[9.0, 7.0], [7.0, 8.0]]
    """

    k: int = 3

    def __post_init__(self) -> None:
        self._store(k=checks.whole("Spectrum", "k", self.k))

    def expression(self) -> Expression:
        """Write the function of two blocks of sequences."""
        return ex.Opaque(SpectrumFunction(self.k))


@proven
@dataclass(frozen=True, repr=False)
class Subsequence(Kernel):
    """k(s, t) = sum over u of length k, its places i in s and j in t, of decay^(l(i) + l(j)).

    Places may have gaps; l(i) is the length from the first to the last letter of the place, gaps
    counted. (Lodhi et al., Text classification using string kernels, JMLR 2, 2002.)

    Parameters
    ----------
    k : int
        Number of letters of the sub-sequences, at least 1.
    decay : float
        In (0, 1]; what each position costs. 1 counts all places alike.

    Examples
    --------
    >>> Subsequence(k=2, decay=0.5)(["cat"], ["car"]).tolist()
    [[0.0625]]
    """

    k: int = 2
    decay: float = 0.5

    def __post_init__(self) -> None:
        self._store(
            k=checks.whole("Subsequence", "k", self.k),
            decay=checks.fraction("Subsequence", "decay", self.decay),
        )

    def expression(self) -> Expression:
        """Write the function of two blocks of sequences."""
        return ex.Opaque(SubsequenceFunction(self.k, self.decay))


@dataclass(frozen=True)
class SpectrumFunction:
    """The matrix of common k-grams, from sparse counts."""

    k: int

    def __call__(self, X: Points, Y: Points) -> Array:
        """Multiply the counts; each sequence is counted once as long as it is remembered."""
        _refuse_numbers("Spectrum", X, Y)
        (left, right), width = count_kgrams(self.k, X, Y)
        return products(left, right, width)

    def self_values(self, X: Points) -> Array:
        """Return k(x, x) for every sequence."""
        _refuse_numbers("Spectrum", X)
        (rows,), _ = count_kgrams(self.k, X)
        return np.array([row.square for row in rows])


@dataclass(frozen=True)
class SubsequenceFunction:
    """The matrix of common sub-sequences, by dynamic programming over all pairs of positions."""

    k: int
    decay: float

    def __call__(self, X: Points, Y: Points) -> Array:
        """Compare blocks of sequences of about the same length."""
        codes = _encode("Subsequence", X, Y)
        left, right = codes[: len(X)], codes[len(X) :]
        out = np.zeros((len(left), len(right)))
        for rows in _blocks(left, _BLOCK):
            S = _padded(left, rows, -1)
            for columns in _blocks(right, _BLOCK):
                T = _padded(right, columns, -2)
                out[np.ix_(rows, columns)] = self._compare(S[:, :, None], T[:, None, :])
        return out

    def self_values(self, X: Points) -> Array:
        """Return k(x, x) for every sequence, without comparing different ones."""
        codes = _encode("Subsequence", X, X[:0])
        out = np.zeros(len(codes))
        for rows in _blocks(codes, _BLOCK**2):
            out[rows] = self._compare(_padded(codes, rows, -1), _padded(codes, rows, -2))
        return out

    def _compare(self, S: Array, T: Array) -> Array:
        """Compare columns of S with columns of T as they are broadcast, letter by letter.

        `ends` sums decay^(l(i) + l(j)) over the pairs of places of common sub-sequences of q + 1
        letters that end at the letters a of s and b of t. A longer one ends here if the letters
        match and a shorter one ended before both; every position moved since then costs decay.
        """
        pairs = np.broadcast_shapes(S.shape[1:], T.shape[1:])
        if self.k > min(len(S), len(T)):  # no row has so many letters
            return np.zeros(pairs)
        shape = (self.k - 1, *pairs)
        before = np.zeros((len(T), *shape))  # per b: what ended before a in s and before b in t
        total = np.zeros(shape[1:])
        for a in S:
            left_of_b = np.zeros(shape)  # what ended at a in s and before b in t
            for b, earlier in zip(T, before, strict=True):
                deadline.check()  # here, since a single pair of long sequences may take minutes
                match = self.decay**2 * (a == b)
                ends = match
                for q in range(self.k - 1):
                    longer = match * earlier[q]
                    earlier[q] *= self.decay
                    earlier[q] += left_of_b[q]
                    left_of_b[q] *= self.decay
                    left_of_b[q] += ends
                    ends = longer
                total += ends
        return total


def _blocks(sequences: list[Array], size: int) -> list[Array]:
    order = np.argsort([len(s) for s in sequences], kind="stable")  # little padding in a block
    return [order[i : i + size] for i in range(0, len(order), size)]


def _padded(sequences: list[Array], chosen: Array, filler: int) -> Array:
    """Write sequences as columns; the fillers of both sides differ, so that they never match."""
    out = np.full((max(len(sequences[i]) for i in chosen), len(chosen)), filler)
    for column, i in zip(out.T, chosen, strict=True):
        column[: len(sequences[i])] = sequences[i]
    return out


def _encode(owner: str, X: Points, Y: Points) -> list[Array]:
    """Return every letter of all sequences of both blocks a number, equal ones the same."""
    _refuse_numbers(owner, X, Y)
    numbers: dict[Any, int] = {}
    codes = []
    for row in (row for block in (X, Y) for row in block):
        deadline.check()
        letters = [numbers.setdefault(letter, len(numbers)) for letter in row]
        codes.append(np.array(letters, dtype=np.int64))
    return codes


def _refuse_numbers(owner: str, *blocks: Points) -> None:
    if not all(map(is_objects, blocks)):
        raise TypeError(
            f"{owner} compares strings or lists of tokens, but X holds rows of numbers; "
            "use a kernel on rows such as Linear or Gaussian"
        )
