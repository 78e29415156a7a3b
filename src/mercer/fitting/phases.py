"""Phases of a fit: progress, time of each phase and remaining time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from mercer.progress import heard, show, shown


@dataclass(frozen=True)
class FitProgress:
    """Progress of a running `fit`, passed to callbacks.

    Attributes
    ----------
    phase : str
        "check", "split", "prepare", "choose", "train", "certify", "evaluate" or "importance".
    text : str
        Description of the current step.
    share : float or None
        Finished fraction of the phase, or None if unknown.
    seconds : float
        Time since the start of the fit.
    detail : object
        `TuningProgress` during the comparison of kernels; None otherwise.
    """

    phase: str
    text: str
    share: float | None
    seconds: float
    detail: Any = None


FitCallback = Callable[[FitProgress], bool | None]
"""Called during a fit. Return True to stop the comparison and select a finished candidate."""


class Phases:
    """Times the phases of a fit and reports progress.

    Parameters
    ----------
    callback : callable or None
        Called with `FitProgress`.
    time_limit : float or None
        Time limit of all phases in seconds.
    """

    def __init__(self, callback: FitCallback | None, time_limit: float | None) -> None:
        self.callback, self.limit = callback, time_limit
        self.begun = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self.current = ""

    @contextmanager
    def phase(self, name: str, text: str) -> Iterator[None]:
        """Measure the time of a phase."""
        self.current, started = name, time.perf_counter()
        try:
            # show iterations of the solver only for the final fit
            with shown(f"fit, {name}", solvers=name == "train"):
                self.tell(text)
                with self._steps(name):
                    yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def _steps(self, name: str) -> AbstractContextManager[None]:
        """Report iterations of the solver to the callback, which cannot stop them."""
        callback = self.callback
        if callback is None or name != "train":
            return nullcontext()

        def told(text: str) -> None:
            callback(FitProgress(name, text, None, time.perf_counter() - self.begun))

        return heard(told)

    def tell(self, text: str, share: float | None = None, detail: Any = None) -> bool:
        """Report progress. Return whether the callback requests a stop."""
        show(text, share)
        if self.callback is None:
            return False
        passed = time.perf_counter() - self.begun
        return bool(self.callback(FitProgress(self.current, text, share, passed, detail)))

    @property
    def left(self) -> float | None:
        """Remaining seconds. None without a limit."""
        if self.limit is None:
            return None
        return max(0.0, self.limit - (time.perf_counter() - self.begun))
