"""Progress of long operations, shown by `mercer.set_config(progress=True)`.

On a terminal with `rich`, progress is a bar; otherwise, occasional lines on standard error. Only
the outermost operation reports progress, not the fits of a search.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from mercer.resources import get_config

_FIRST = 2.0  # seconds before the first line
_NEXT = 5.0  # least seconds between lines; grows to a tenth of the elapsed time
_REDRAWN = 0.1  # seconds between updates of a bar
_RECENT = 0.5  # recent fraction of the elapsed time, for estimating the end


class ProgressDisplay(Protocol):
    """Interface of progress displays."""

    def show(self, text: str, share: float | None) -> None:
        """Show a message and, if known, the finished fraction."""

    def close(self) -> None:
        """Close the display."""


class ProgressLines:
    """Occasional lines on standard error."""

    def __init__(self, name: str) -> None:
        self.name, self.started = name, time.monotonic()
        self.due = self.started + _FIRST

    def show(self, text: str, share: float | None) -> None:
        """Print a line if enough time has passed."""
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + max(_NEXT, (now - self.started) / 10)
        done = "" if share is None else f"{100 * share:.0f} %, "
        with contextlib.suppress(OSError):  # the pipe is closed; continue
            print(f"{self.name}: {done}{text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing: printed lines remain."""


class Bar:
    """A progress bar of `rich`."""

    def __init__(self, name: str, rich: Any) -> None:
        columns = ("[bold]{task.description}", rich.BarColumn(), "{task.fields[said]}")
        self.bar = rich.Progress(*columns, console=rich.Console(stderr=True), transient=True)
        self.task = self.bar.add_task(name, total=None, said="")
        self.drawn = 0.0
        self.bar.start()

    def show(self, text: str, share: float | None) -> None:
        """Redraw the bar at a limited rate."""
        now = time.monotonic()
        if now < self.drawn + _REDRAWN:
            return
        self.drawn = now
        known = {} if share is None else {"total": 1.0, "completed": share}
        self.bar.update(self.task, said=text, **known)

    def close(self) -> None:
        """Remove the bar."""
        self.bar.stop()


class Heard:
    """Calls a function at a limited rate, in addition to the active display."""

    def __init__(self, before: ProgressDisplay | None, listener: Callable[[str], Any]) -> None:
        self.before, self.listener = before, listener
        self.told = -math.inf

    def show(self, text: str, share: float | None) -> None:
        """Call the function at a limited rate."""
        if self.before is not None:
            self.before.show(text, share)
        now = time.monotonic()
        if now >= self.told + _REDRAWN:
            self.told = now
            self.listener(text)

    def close(self) -> None:
        """Do nothing: the other display is closed by its owner."""


_shown: ContextVar[ProgressDisplay | None] = ContextVar("mercer_progress", default=None)
_solvers: ContextVar[bool] = ContextVar("mercer_progress_of_solvers", default=False)


@contextmanager
def shown(name: str, *, solvers: bool = True) -> Iterator[None]:
    """Show progress inside the block, if enabled and not shown by an outer block.

    With `solvers`, iterations of solvers are shown. Searches count candidates instead.
    """
    if not get_config().progress or _shown.get() is not None:
        yield
        return
    display = _display(name)
    token, asked = _shown.set(display), _solvers.set(solvers)
    try:
        yield
    finally:
        _shown.reset(token)
        _solvers.reset(asked)
        display.close()


@contextmanager
def heard(listener: Callable[[str], Any]) -> Iterator[None]:
    """Report progress inside the block to a function, including iterations of solvers."""
    display = Heard(_shown.get(), listener)
    token, asked = _shown.set(display), _solvers.set(True)
    try:
        yield
    finally:
        _shown.reset(token)
        _solvers.reset(asked)


def _display(name: str) -> ProgressDisplay:
    if sys.stderr.isatty():
        try:
            return Bar(name, import_module("rich.progress"))
        except ImportError:  # an extra
            return ProgressLines(name)
    return ProgressLines(name)


def show(text: str, share: float | None = None) -> None:
    """Report progress to the active display."""
    display = _shown.get()
    if display is not None:
        display.show(text, share)


def is_shown() -> bool:
    """Return whether progress is shown."""
    return _shown.get() is not None


def steps_are_shown() -> bool:
    """Return whether iterations of solvers are shown."""
    return _solvers.get()


def seconds_left(seconds: Sequence[float], measures: Sequence[float], goal: float) -> float:
    """Estimate the time until an exponentially decreasing value reaches its goal, or NaN.

    Fits a line to the logarithm of the running minimum over the second half of the time.

    Examples
    --------
    >>> round(seconds_left([0.0, 1.0, 2.0, 3.0, 4.0], [1e4, 1e3, 1e2, 10.0, 1.0], 0.01), 6)
    2.0
    """
    at, least = np.asarray(seconds), np.minimum.accumulate(measures)
    recent = (at >= _RECENT * at[-1]) & (least > 0) & np.isfinite(least)
    if np.count_nonzero(recent) < 3 or not goal > 0:
        return math.nan
    x, y = at[recent] - at[recent].mean(), np.log(least[recent])
    fall = -float(x @ y)
    if not fall > 0:
        return math.nan
    return max(0.0, float(y[-1] - math.log(goal)) * float(x @ x) / fall)
