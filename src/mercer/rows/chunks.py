"""Passes over many rows: in blocks that stay in the cache, chunks of them in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.resources import config, rows_at_once, thread_limit
from mercer.rows.points import is_objects, row_count, take

T = TypeVar("T")

_LEAST = 4096  # rows of a chunk: fewer are done before a thread wakes up
_MOST = 16  # chunks; their number does not depend on that of threads, so neither does any bit
_FEW = 1 << 16  # numbers, half a megabyte, about which no budget is asked and no thread is woken


def slices(first: int, last: int, step: int) -> Iterator[slice]:
    """Cut a range in blocks; before each, the deadline of the fit is looked at."""
    for start in range(first, last, step):
        deadline.check()
        yield slice(start, min(start + step, last))


def chunk_count(n: int, least: int = _LEAST) -> int:
    """Return how many chunks n rows are cut in: no more than so many are at work at once.

    Blocks of a chunk that fit the memory budget so many times have the same rows with any number of
    threads, and what is added up over them the same bits.
    """
    return -(-n // _chunk_rows(n, least))


def _chunk_rows(n: int, least: int) -> int:
    return max(least, -(-n // _MOST))


def chunked(work: Callable[[slice], T], n: int, least: int = _LEAST) -> list[T]:
    """Do the work on chunks of n rows, in as many threads as may be used; results in order.

    Chunks have at least so many rows as `least` says.

    NumPy lets go of the interpreter's lock while it computes. Its linear algebra must be kept to
    one thread meanwhile (`backends.blas.one_blas_thread`); what the work calls of ours has the
    threads that are left.
    """
    chunks = list(slices(0, n, _chunk_rows(n, least)))
    allowed = thread_limit() if len(chunks) > 1 else 1
    threads = min(allowed, len(chunks))
    if threads < 2:
        return [work(chunk) for chunk in chunks]

    found: list[Any] = [None] * len(chunks)
    waiting = deque(enumerate(chunks))

    def serve() -> None:
        with config(threads=allowed // threads):
            while waiting:
                try:
                    place, chunk = waiting.popleft()
                except IndexError:  # another thread took the last one
                    return
                try:
                    found[place] = work(chunk)
                except BaseException:  # what others would still do is of no use
                    waiting.clear()
                    raise

    # This thread works, too: allocators keep pages for every thread that ever asked them.
    pool = ThreadPoolExecutor(threads - 1)
    try:
        # each in a copy of this context, in which the deadline is found
        tasks = [pool.submit(copy_context().run, serve) for _ in range(threads - 1)]
        serve()
        for task in tasks:
            task.result()
    finally:  # Ctrl-C and errors wait for the chunks that have begun, not for all
        waiting.clear()
        pool.shutdown(wait=True, cancel_futures=True)
    return found


def added(found: list[Any], place: int) -> Any:
    """Add up one entry of the results of chunks, first to last."""
    return sum((each[place] for each in found[1:]), start=found[0][place])


def gathered(X: Points, index: Array) -> Points:
    """Select rows as `take` does, those of a large table in threads."""
    large = isinstance(X, np.ndarray) and X.ndim == 2 and not is_objects(X) and X.size > _FEW
    if not large or index.dtype.kind not in "iu" or not _are_within(index, len(X)):
        return take(X, index)
    out = np.empty((len(index), X.shape[1]), dtype=X.dtype)

    def chunk(rows: slice) -> None:
        np.take(X, index[rows], axis=0, out=out[rows], mode="clip")  # "raise" would copy once more

    chunked(chunk, len(index))
    return out


def _are_within(index: Array, n: int) -> bool:
    return len(index) > 0 and bool(index.min() >= 0 and index.max() < n)


def in_pieces(work: Callable[[Points], Array], X: Points, width: int, arrays: int = 3) -> Array:
    """Do the work on rows, in as many pieces as the memory budget asks for; results in order.

    Parameters
    ----------
    work : callable
        Maps rows (r, d) to an array of r rows.
    X : Points
        The rows.
    width : int
        Numbers that the work writes for each row on its way: its features.
    arrays : int
        Arrays of that width that it holds at once.

    Returns
    -------
    array
        What `work` makes of each row.

    Examples
    --------
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> in_pieces(lambda rows: rows.sum(axis=1), X, 2)
    array([1., 5., 9.])
    """
    n = row_count(X)
    if n * width * arrays <= _FEW:
        return work(X)
    step = rows_at_once(width, _MOST * _LEAST, arrays=arrays)
    if n <= step:
        return work(X)
    out: Array | None = None
    for part in slices(0, n, step):
        found = work(take(X, part))
        if out is None:
            out = np.empty((n, *found.shape[1:]), dtype=found.dtype)
        out[part] = found
    assert out is not None
    return out
