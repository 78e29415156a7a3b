"""Kernels of sequences (spectrum and subsequence), and the counts of k-grams."""

from __future__ import annotations

import operator
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mercer import deadline
from mercer import expression as ex
from mercer.array_types import Array, Points
from mercer.expression import Expression
from mercer.kernels import checks
from mercer.kernels.algebra import Kernel, proven
from mercer.resources import rows_at_once, within_budget
from mercer.rows.points import is_objects, row_count

# --- sequence ------------------------------------------------------------------------------------
#
# Kernels of sequences: strings, and lists of tokens.
#
# Both look at sub-sequences that two sequences share. They are `Opaque` to backends: a function
# of two blocks of sequences that is itself a value, so that equal kernels have equal expressions.

_BLOCK = 64  # sequences compared at a time by the dynamic program


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

    Occurrences may be interrupted; l(i) is the length from the first to the last letter, including
    the letters between. (Lodhi et al., Text classification using string kernels, JMLR 2, 2002.)

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
        """Multiply the counts; each sequence is counted once while it is cached."""
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
        """Compare columns of S with columns of T as broadcast, letter by letter.

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
    if not all(is_objects(block) or not row_count(block) for block in blocks):
        raise TypeError(
            f"{owner} compares strings or lists of tokens, but X holds rows of numbers; "
            "use a kernel on rows such as Linear or Gaussian"
        )


# --- kgram counts --------------------------------------------------------------------------------
#
# How often each k-gram stands in a sequence: counted once, and remembered by content.
#
# A fit asks for the diagonal of K, for blocks of its rows and for the certificate, and a cross-
# validation asks again for each fold, always about the same sequences. `count_kgrams` looks them
# up by content and counts only those that it has not seen. A `KgramTable` numbers k-grams in the
# order in which they first come, so that counts of sequences that came at different times are
# rows of one sparse matrix. No k-gram is hashed into a column that another one may share: numbers
# are exact, and so are the products, being sums of integers in float64.
#
# The cache is bounded in bytes. Tables are shared by all threads.

_BITS = 31  # of a number, so that a pair of them is one int64
_CODE_POINTS = 0x110000  # letters are their code points; other tokens are numbered from here on
_CHUNK = 1 << 17  # letters that are counted together, in some 20 ms
_REMEMBERED = 1 << 30  # bytes that all tables may take: the counts of 10^8 different k-grams
_SHARE = 8  # of the memory budget, an eighth
_OBJECTS = 600  # bytes of a remembered sequence besides its letters and counts
_TOKEN = 200  # bytes of a token and its place in a dictionary
_WAIT = 0.05  # seconds between two looks at the deadline while another thread counts

# A k-gram that occurs in this fraction of all pairs of sequences is multiplied as a dense column: a
# dense product takes about a hundredth of the time for each pair (400 texts of 2000 letters: 0.04
# instead of 0.12 s)
_FREQUENT = 0.01
_COLUMNS = 1024  # dense columns multiplied between two looks at the clock
_ROWS = 256  # sparse rows multiplied between two looks at the clock


class KgramCounts(NamedTuple):
    """The k-grams of one sequence.

    Attributes
    ----------
    numbers : (m,) int32 array
        The k-grams that stand in it, by their numbers in the table, in ascending order.
    counts : (m,) int32 array
        How often each does.
    square : float
        Sum of the squared counts.
    """

    numbers: Array
    counts: Array
    square: float


class Numbering:
    """Number codes in the order in which they first come, equal ones alike.

    Examples
    --------
    >>> numbering = Numbering()
    >>> numbering(np.array([70, 50, 70])).tolist(), numbering(np.array([60, 50])).tolist()
    ([1, 0, 1], [2, 0])
    """

    def __init__(self) -> None:
        self._codes = np.empty(0, dtype=np.int64)  # ascending, so that they are found by bisection
        self._numbers = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._codes)

    def __call__(self, codes: Array) -> Array:
        """Return the number of each code."""
        place = np.searchsorted(self._codes, codes)
        inside = place < len(self)
        is_new = ~inside
        is_new[inside] = self._codes[place[inside]] != codes[inside]
        numbers = np.empty(len(codes), dtype=np.int64)
        numbers[~is_new] = self._numbers[place[~is_new]]
        if is_new.any():
            fresh, which = np.unique(codes[is_new], return_inverse=True)
            numbers[is_new] = len(self) + which
            self._add(fresh)
        return numbers

    def _add(self, codes: Array) -> None:
        numbers = np.arange(len(self), len(self) + len(codes))
        if numbers[-1] >> _BITS:
            raise OverflowError(f"there are more than 2^{_BITS} different k-grams; use a smaller k")
        place = np.searchsorted(self._codes, codes)
        self._codes = np.insert(self._codes, place, codes)
        self._numbers = np.insert(self._numbers, place, numbers)


class KgramTable:
    """Counts of the k-grams of sequences, remembered by content.

    Parameters
    ----------
    k : int
        Length of a k-gram.

    Examples
    --------
    >>> table = KgramTable(2)
    >>> [row.counts.tolist() for row in table.rows(["banana", ("b", "a")])]
    [[2, 1, 2], [1]]
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self._tokens: dict[Any, int] = {}
        self._numberings = [Numbering() for _ in range(1 + (k - 1).bit_length())]
        self._rows: dict[str | bytes, KgramCounts] = {}
        self._row_bytes = 0

    @property
    def width(self) -> int:
        """Count the different k-grams."""
        return len(self._numberings[-1])

    @property
    def nbytes(self) -> int:
        """Count the bytes that it takes."""
        numbers = 16 * sum(map(len, self._numberings))
        return numbers + self._row_bytes + _TOKEN * len(self._tokens)

    def rows(self, sequences: Sequence[Any]) -> list[KgramCounts]:
        """Return the counts of each sequence; new ones are counted."""
        keys: list[str | bytes] = []
        new: dict[str | bytes, Array] = {}
        waiting = 0
        for sequence in sequences:
            deadline.check()
            key, letters = self._encode(sequence)
            keys.append(key)
            if key in self._rows or key in new:
                continue
            new[key] = _code_points(key) if isinstance(key, str) else letters
            waiting += len(sequence)
            if waiting >= _CHUNK:
                self._count(new)
                new, waiting = {}, 0
        if new:
            self._count(new)
        return [self._rows[key] for key in keys]

    def _encode(self, sequence: Any) -> tuple[str | bytes, Array]:
        """Return the cache key of a sequence, and the letters of a sequence of tokens.

        Tokens are remembered by their numbers: lists change, and long ones are not kept alive.
        """
        if isinstance(sequence, str):
            return sequence, np.empty(0, dtype=np.int64)
        letters = np.array([self._letter(token) for token in sequence], dtype=np.int64)
        return letters.tobytes(), letters

    def _letter(self, token: Any) -> int:
        if isinstance(token, str) and len(token) == 1:
            return ord(token)  # so that ["a", "b"] is "ab"
        return self._tokens.setdefault(token, _CODE_POINTS + len(self._tokens))

    def _count(self, new: dict[str | bytes, Array]) -> None:
        lengths = np.array([len(letters) for letters in new.values()])
        owners = np.repeat(np.arange(len(lengths)), lengths)
        numbers, owners = self._kgrams(np.concatenate(list(new.values())), owners)
        pairs, counts = np.unique(owners << _BITS | numbers, return_counts=True)
        ends = np.searchsorted(pairs, np.arange(1, len(lengths) + 1) << _BITS)
        numbers = (pairs & ((1 << _BITS) - 1)).astype(np.int32)
        counts = counts.astype(np.int32)
        begin = 0
        for key, end in zip(new, ends, strict=True):
            # copies, so that no row keeps those that it was counted with in memory
            own, times = numbers[begin:end].copy(), counts[begin:end].copy()
            square = float(np.square(times, dtype=np.float64).sum())
            self._rows[key] = KgramCounts(own, times, square)
            self._row_bytes += own.nbytes + times.nbytes + sys.getsizeof(key) + _OBJECTS
            begin = end

    def _kgrams(self, letters: Array, owners: Array) -> tuple[Array, Array]:
        """Return the number of every k-gram of all sequences, and its sequence.

        By doubling: a piece is the pair of its first and last pieces of the length before.
        """
        first, *others = self._numberings
        if not others:
            return first(letters), owners
        pieces, length = first(letters), 1
        for numbering in others[:-1]:
            deadline.check()
            pieces, length = numbering(pieces[:-length] << _BITS | pieces[length:]), 2 * length
        step = self.k - length
        pairs = pieces[:-step] << _BITS | pieces[step:]
        inside = owners[: len(pairs)] == owners[self.k - 1 :]  # not across the end of a sequence
        deadline.check()
        return others[-1](pairs[inside]), owners[: len(pairs)][inside]


def _code_points(text: str) -> Array:
    # half of a surrogate pair may stand alone in a str
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)


# --- tables that are remembered --------------------------------------------------------------

_TABLES: dict[int, KgramTable] = {}  # by k; the least recently used first
# one that its own thread may take again: tokens have a __hash__ of their own, which may do anything
_LOCK = threading.RLock()


def count_kgrams(k: int, *blocks: Sequence[Any]) -> tuple[list[list[KgramCounts]], int]:
    """Count the k-grams of blocks of sequences, each sequence once while it is cached.

    Parameters
    ----------
    k : int
        Length of a k-gram.
    *blocks : sequence of str or of tuples
        The sequences.

    Returns
    -------
    rows : list of list of KgramCounts
        Of each block, the counts of each sequence.
    width : int
        All numbers of k-grams are below.
    """
    with _turn():
        # put back at the end: a table whose counting was interrupted is not trusted
        table = _TABLES.pop(k, None) or KgramTable(k)
        rows = [table.rows(block) for block in blocks]
        _TABLES[k] = table
        _forget_excess()
        return rows, table.width


def remembered_bytes() -> int:
    """Return the bytes of all counts that are remembered."""
    return sum(table.nbytes for table in list(_TABLES.values()))


def _forget_excess() -> None:
    while _TABLES and not _fits(remembered_bytes()):
        del _TABLES[next(iter(_TABLES))]


def _fits(size: int) -> bool:
    return size <= _REMEMBERED and within_budget(_SHARE * size)


@contextmanager
def _turn() -> Iterator[None]:
    """Wait until no other thread counts; the deadline is seen meanwhile."""
    while not _LOCK.acquire(timeout=_WAIT):
        deadline.check()
    try:
        yield
    finally:
        _LOCK.release()


def _after_fork() -> None:
    """Start over in a child process: a thread of the parent may have been counting."""
    global _LOCK  # noqa: PLW0603  a lock that is held in the parent is never released in the child
    _LOCK = threading.RLock()
    _TABLES.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# --- products --------------------------------------------------------------------------------


def products(left: list[KgramCounts], right: list[KgramCounts], width: int) -> Array:
    """Return the sums of products of counts, of each row on the left with each on the right.

    Examples
    --------
    >>> (rows, others), width = count_kgrams(1, ["abba", "b"], ["bbb"])
    >>> products(rows, others, width).tolist()
    [[6.0], [3.0]]
    """
    A = _Entries.of(left)
    same = len(left) == len(right) and all(map(operator.is_, left, right))
    B = A if same else _Entries.of(right)
    shared = np.bincount(A.columns, minlength=width) * np.bincount(B.columns, minlength=width)
    is_dense = shared > _FREQUENT * len(left) * len(right)
    dense = np.flatnonzero(is_dense)
    out = np.zeros((len(left), len(right)))
    place = np.full(width, -1)
    for some in _parts(len(dense), rows_at_once(len(left) + len(right), _COLUMNS)):
        place[:] = -1
        place[dense[some]] = np.arange(len(dense[some]))
        rows = A.dense(place, len(dense[some]))
        # of an array and its own transpose NumPy computes one half
        out += rows @ (rows if same else B.dense(place, len(dense[some]))).T
    is_sparse = (shared > 0) & ~is_dense
    sparse_rows, columns = A.sparse(is_sparse), B.sparse(is_sparse).T.tocsr()
    for some in _parts(len(left), _ROWS):
        out[some] += (sparse_rows[some] @ columns).toarray()
    return out


class _Entries(NamedTuple):
    """Nonzero counts of some sequences: their positions and values."""

    height: int
    rows: Array
    columns: Array
    values: Array

    @classmethod
    def of(cls, rows: list[KgramCounts]) -> _Entries:
        lengths = [len(row.numbers) for row in rows]
        columns = [row.numbers for row in rows] or [np.empty(0, dtype=np.int32)]
        values = [row.counts for row in rows] or [np.empty(0, dtype=np.int32)]
        owners = np.repeat(np.arange(len(rows)), lengths)
        return cls(len(rows), owners, np.concatenate(columns), np.concatenate(values))

    def dense(self, place: Array, width: int) -> Array:
        """Write the columns that have a place as an ordinary array."""
        out = np.zeros((self.height, width))
        columns = place[self.columns]
        chosen = columns >= 0
        out[self.rows[chosen], columns[chosen]] = self.values[chosen]
        return out

    def sparse(self, is_chosen: Array) -> sparse.csr_array:
        """Return the chosen columns as a sparse array, the others left empty."""
        chosen = is_chosen[self.columns]
        ends = np.searchsorted(self.rows[chosen], np.arange(self.height + 1))
        values = self.values[chosen].astype(np.float64)
        shape = (self.height, len(is_chosen))
        return sparse.csr_array((values, self.columns[chosen], ends), shape=shape)


def _parts(count: int, size: int) -> Iterator[slice]:
    for begin in range(0, count, size):
        deadline.check()
        yield slice(begin, min(count, begin + size))
