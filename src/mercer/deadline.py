"""Time limits: one deadline for all phases of a fit, and checks of the clock.

A fit opens it (`within`). Solvers ask `is_over` through their `Watch` and stop with what they have.
Work that has nothing to show yet, such as a kernel matrix on its way, calls `check`, as compiled
loops do at every look at the signals: past the limit and a grace it raises `TimeLimitError`, and
the fit ends without an answer. Where there is an answer, `cut_short` keeps it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# seconds past the limit: small fits end in them with an answer, and what was found in time is put
# together; with the same once more after a cut, a fit is over within a second of its limit
GRACE = 0.4
_ENTRIES = 1 << 16  # of rows between two looks at the clock: half a megabyte, which caches hold


class TimeLimitError(RuntimeError):
    """The time limit was over before there was any answer; the message has the remedy."""


@dataclass
class Deadline:
    """When a fit has to be over.

    Attributes
    ----------
    owner : str
        Whose limit it is.
    limit : float
        The seconds that were given.
    end : float
        When they are over, by `now`.
    grace : float
        Seconds more until work without an answer is ended.
    """

    owner: str
    limit: float
    end: float
    grace: float = GRACE


clock = time.perf_counter  # in one place, so that tests can let it run as they like
_open: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def now() -> float:
    """Read the clock that all limits go by."""
    return clock()


@contextmanager
def within(seconds: float | None, owner: str) -> Iterator[None]:
    """Open a deadline for what is inside; one that ends before, around it, stays in force."""
    around = _open.get()
    if seconds is None or (around is not None and around.end <= now() + seconds):
        yield
        return
    token = _open.set(Deadline(owner, seconds, now() + seconds))
    try:
        yield
    finally:
        _open.reset(token)


def is_over() -> bool:
    """Return whether the deadline around this call has passed."""
    held = _open.get()
    return held is not None and now() > held.end


def seconds_left() -> float | None:
    """Return the time until the deadline around this call; None where there is none."""
    held = _open.get()
    return None if held is None else max(0.0, held.end - now())


def check() -> None:
    """End work that runs past the deadline and its grace."""
    held = _open.get()
    if held is not None and now() > held.end + held.grace:
        raise TimeLimitError(
            f"{held.owner}: time_limit={held.limit:g} s was over before there was an answer; "
            "nothing was changed. Raise time_limit, fit fewer rows, or take a kernel that is "
            "cheaper to evaluate"
        )


def row_slices(n: int, width: int) -> Iterator[slice]:
    """Return the rows of a matrix in parts, with a look at the clock before each."""
    step = max(1, _ENTRIES // max(1, width))
    for first in range(0, n, step):
        check()
        yield slice(first, min(first + step, n))


@contextmanager
def cut_short(found: Callable[[], bool] = lambda: True) -> Iterator[list[bool]]:
    """Let work that runs past the deadline end there, if it has `found` something to keep.

    Returns a list that is empty unless that happened. What there is may be put together in a second
    grace.
    """
    cut: list[bool] = []
    try:
        yield cut
    except TimeLimitError:
        if not found():
            raise
        cut.append(True)
        held = _open.get()
        if held is not None:
            held.grace = 2 * GRACE
