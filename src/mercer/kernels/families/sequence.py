"""Kernels of sequences: strings, and lists of tokens.

Both look at sub-sequences that two sequences share. They are `Opaque` to backends: a function of
two blocks of sequences that is itself a value, so that equal kernels have equal expressions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mercer import deadline
from mercer import expression as ex
from mercer.array_types import Array, Points
from mercer.expression import Expression
from mercer.kernels import checks
from mercer.kernels.base import Kernel, proven
from mercer.points import is_objects

_BLOCK = 64  # sequences compared at a time by the dynamic programme
_COUNTED = 256  # sequences whose counts are multiplied between two looks at the clock


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
        """Count k-grams of both blocks in one vocabulary, and multiply the counts."""
        codes = _encode("Spectrum", X, Y)
        lengths = np.array([len(c) for c in codes])
        letters = np.concatenate(codes) if len(codes) else np.empty(0, dtype=np.int64)
        grams, owners = _grams(letters, lengths, self.k)
        shape = (len(codes), int(grams.max(initial=-1)) + 1)
        counts = sparse.csr_array((np.ones(len(grams)), (owners, grams)), shape=shape)
        left, right = counts[: len(X)], counts[len(X) :].T.tocsr()
        out = np.empty((len(X), len(Y)))
        for first in range(0, len(X), _COUNTED):
            deadline.check()
            rows = slice(first, first + _COUNTED)
            out[rows] = (left[rows] @ right).toarray()
        return out


def _grams(letters: Array, lengths: Array, k: int) -> tuple[Array, Array]:
    """Return every k-gram of all sequences a number, equal ones the same, and its sequence."""
    owners = np.repeat(np.arange(len(lengths)), lengths)
    grams = letters
    for size in range(2, k + 1):
        deadline.check()
        if len(letters) < size:
            return letters[:0], owners[:0]
        # a piece of length `size` is one of length size - 1 and the letter after it; numbering
        # anew each time keeps the numbers small enough to pair
        pairs = grams[:-1] * (letters.max() + 1) + letters[size - 1 :]
        grams = np.unique(pairs, return_inverse=True)[1]
    inside = owners[: len(grams)] == owners[k - 1 :]  # not across the end of a sequence
    return grams[inside], owners[: len(grams)][inside]


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
        for rows in _blocks(left):
            S = _padded(left, rows, -1)
            for columns in _blocks(right):
                out[np.ix_(rows, columns)] = self._compare(S, _padded(right, columns, -2))
        return out

    def _compare(self, S: Array, T: Array) -> Array:
        """Compare all columns of S with all columns of T, letter by letter.

        `ends` sums decay^(l(i) + l(j)) over the pairs of places of common sub-sequences of q + 1
        letters that end at the letters a of s and b of t. A longer one ends here if the letters
        match and a shorter one ended before both; every position moved since then costs decay.
        """
        shape = (self.k - 1, S.shape[1], T.shape[1])
        before = np.zeros((len(T), *shape))  # per b: what ended before a in s and before b in t
        total = np.zeros(shape[1:])
        for a in S:
            left_of_b = np.zeros(shape)  # what ended at a in s and before b in t
            for b, earlier in zip(T, before, strict=True):
                deadline.check()  # here, since a single pair of long sequences may take minutes
                match = self.decay**2 * (a[:, None] == b)
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


def _blocks(sequences: list[Array]) -> list[Array]:
    order = np.argsort([len(s) for s in sequences], kind="stable")  # little padding in a block
    return [order[i : i + _BLOCK] for i in range(0, len(order), _BLOCK)]


def _padded(sequences: list[Array], chosen: Array, filler: int) -> Array:
    """Write sequences as columns; the fillers of both sides differ, so that they never match."""
    out = np.full((max(len(sequences[i]) for i in chosen), len(chosen)), filler)
    for column, i in zip(out.T, chosen, strict=True):
        column[: len(sequences[i])] = sequences[i]
    return out


def _encode(owner: str, X: Points, Y: Points) -> list[Array]:
    """Return every letter of all sequences of both blocks a number, equal ones the same."""
    if not (is_objects(X) and is_objects(Y)):
        raise TypeError(
            f"{owner} compares strings or lists of tokens, but X holds rows of numbers; "
            "use a kernel on rows such as Linear or Gaussian"
        )
    numbers: dict[Any, int] = {}
    codes = []
    for row in (row for block in (X, Y) for row in block):
        deadline.check()
        letters = [numbers.setdefault(letter, len(numbers)) for letter in row]
        codes.append(np.array(letters, dtype=np.int64))
    return codes
