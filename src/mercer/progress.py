"""Progress of long work, shown by `mercer.set_config(progress=True)`: a bar, or lines now and then.

A bar on a terminal where `rich` is installed; otherwise a line now and then, on standard error.
Work within other work (the fits of a tuning) is silent: the outermost one speaks.
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

_FIRST = 2.0  # seconds before the first line: short work needs none
_NEXT = 5.0  # seconds between lines at first; later lines are a tenth of the time apart
_REDRAWN = 0.1  # seconds between changes of a bar
_RECENT = 0.5  # of the time so far: what the end is estimated from


class ProgressDisplay(Protocol):
    """Something that shows where work stands."""

    def show(self, text: str, share: float | None) -> None:
        """Show a line, and the share of the work that is done where it is known."""

    def close(self) -> None:
        """End, leaving what was shown."""


class ProgressLines:
    """A line now and then."""

    def __init__(self, name: str) -> None:
        self.name, self.started = name, time.monotonic()
        self.due = self.started + _FIRST

    def show(self, text: str, share: float | None) -> None:
        """Print a line if one is due."""
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + max(_NEXT, (now - self.started) / 10)
        done = "" if share is None else f"{100 * share:.0f} %, "
        with contextlib.suppress(OSError):  # whoever read it has gone; the work goes on
            print(f"{self.name}: {done}{text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing: lines stay."""


class Bar:
    """A bar of `rich`."""

    def __init__(self, name: str, rich: Any) -> None:
        columns = ("[bold]{task.description}", rich.BarColumn(), "{task.fields[said]}")
        self.bar = rich.Progress(*columns, console=rich.Console(stderr=True), transient=True)
        self.task = self.bar.add_task(name, total=None, said="")
        self.drawn = 0.0
        self.bar.start()

    def show(self, text: str, share: float | None) -> None:
        """Redraw, not too often."""
        now = time.monotonic()
        if now < self.drawn + _REDRAWN:
            return
        self.drawn = now
        known = {} if share is None else {"total": 1.0, "completed": share}
        self.bar.update(self.task, said=text, **known)

    def close(self) -> None:
        """Take the bar away."""
        self.bar.stop()


class Heard:
    """A function that is told, now and then, beside whoever shows progress already."""

    def __init__(self, before: ProgressDisplay | None, listener: Callable[[str], Any]) -> None:
        self.before, self.listener = before, listener
        self.told = -math.inf

    def show(self, text: str, share: float | None) -> None:
        """Tell, not too often."""
        if self.before is not None:
            self.before.show(text, share)
        now = time.monotonic()
        if now >= self.told + _REDRAWN:
            self.told = now
            self.listener(text)

    def close(self) -> None:
        """Do nothing: what it is beside is closed by others."""


_shown: ContextVar[ProgressDisplay | None] = ContextVar("mercer_progress", default=None)
_solvers: ContextVar[bool] = ContextVar("mercer_progress_of_solvers", default=False)


@contextmanager
def shown(name: str, *, solvers: bool = True) -> Iterator[None]:
    """Show how far the work inside is, if that was asked for and nobody shows it yet.

    With `solvers` their steps are shown: of a fit, not of a search, which counts points.
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
    """Tell a function where the work inside stands, steps of solvers included."""
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
    """Tell whoever shows progress where the work stands."""
    display = _shown.get()
    if display is not None:
        display.show(text, share)


def is_shown() -> bool:
    """Return whether anybody looks."""
    return _shown.get() is not None


def steps_are_shown() -> bool:
    """Return whether anybody looks at the steps of solvers."""
    return _solvers.get()


def seconds_left(seconds: Sequence[float], measures: Sequence[float], goal: float) -> float:
    """Estimate when a measure that falls like a power of ten reaches its goal; NaN if it does not.

    A straight line through the logarithm of the least measure so far, over the later half.

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
