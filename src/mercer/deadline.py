"""Time limits: one deadline for all phases of a fit, and checks of the clock.

A fit opens a deadline with `within`. Solvers call `is_over` through their `Watch` and stop with the
current solution. Operations without an intermediate result, such as a kernel matrix, call `check`.
Compiled loops do so whenever they check for signals. After the limit and a grace period, `check`
raises `TimeLimitError` and the fit ends without a solution. `cut_short` keeps an existing solution.
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
_ENTRIES = 1 << 16  # entries between two checks of the clock: half a megabyte, which fits caches


class TimeLimitError(RuntimeError):
    """The time limit expired before the first solution."""


@dataclass
class Deadline:
    """The deadline of a fit.

    Attributes
    ----------
    owner : str
        Name for error messages.
    limit : float
        Time limit in seconds.
    end : float
        Time at which the limit expires, according to `now`.
    grace : float
        Additional seconds before an operation without a solution is stopped.
    """

    owner: str
    limit: float
    end: float
    grace: float = GRACE


clock = time.perf_counter  # a variable, so that tests can replace it
_open: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def now() -> float:
    """Return the time of the clock for all limits."""
    return clock()


@contextmanager
def within(seconds: float | None, owner: str) -> Iterator[None]:
    """Set a deadline inside the block. An earlier outer deadline remains in force."""
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
    """Return whether the active deadline has passed."""
    held = _open.get()
    return held is not None and now() > held.end


def seconds_left() -> float | None:
    """Return the seconds until the active deadline, or None without one."""
    held = _open.get()
    return None if held is None else max(0.0, held.end - now())


def check() -> None:
    """Raise `TimeLimitError` if the deadline and its grace period have passed."""
    held = _open.get()
    if held is not None and now() > held.end + held.grace:
        raise TimeLimitError(
            f"{held.owner}: time_limit={held.limit:g} s expired before the first solution; "
            "the estimator is unchanged. Increase time_limit, or use fewer samples or a cheaper "
            "kernel"
        )


def row_slices(n: int, width: int) -> Iterator[slice]:
    """Yield the rows of a matrix in parts, checking the clock before each."""
    step = max(1, _ENTRIES // max(1, width))
    for first in range(0, n, step):
        check()
        yield slice(first, min(first + step, n))


@contextmanager
def cut_short(found: Callable[[], bool] = lambda: True) -> Iterator[list[bool]]:
    """Stop at the deadline instead of raising, if `found` contains a solution.

    Returns a list that is empty unless the block was stopped. A second grace period allows to
    assemble the solution.
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
