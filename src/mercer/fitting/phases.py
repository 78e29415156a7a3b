"""Phases of a fit: what is at work, how long each took, how much time is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from mercer.progress import heard, show, shown


@dataclass(frozen=True)
class FitProgress:
    """Where a running `fit` stands; given to callbacks.

    Attributes
    ----------
    phase : str
        "check", "split", "prepare", "choose", "train", "certify", "evaluate" or "importance".
    text : str
        What is at work.
    share : float or None
        Of the phase that is done, where that is known.
    seconds : float
        Since the start of the fit.
    detail : object
        `TuningProgress` while kernels are compared; None otherwise.
    """

    phase: str
    text: str
    share: float | None
    seconds: float
    detail: Any = None


FitCallback = Callable[[FitProgress], bool | None]
"""Called while a fit runs; a true return value ends the comparison with what was judged so far."""


class Phases:
    """The clock of a fit.

    Parameters
    ----------
    callback : callable or None
        Told where the work stands.
    time_limit : float or None
        Seconds for all phases.
    """

    def __init__(self, callback: FitCallback | None, time_limit: float | None) -> None:
        self.callback, self.limit = callback, time_limit
        self.begun = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self.current = ""

    @contextmanager
    def phase(self, name: str, text: str) -> Iterator[None]:
        """Measure what is inside."""
        self.current, started = name, time.perf_counter()
        try:
            # steps of solvers are shown in the fit itself, not in those of a comparison
            with shown(f"fit, {name}", solvers=name == "train"):
                self.tell(text)
                with self._steps(name):
                    yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def _steps(self, name: str) -> AbstractContextManager[None]:
        """Let the callback hear the steps of the solver; it cannot end them."""
        callback = self.callback
        if callback is None or name != "train":
            return nullcontext()

        def told(text: str) -> None:
            callback(FitProgress(name, text, None, time.perf_counter() - self.begun))

        return heard(told)

    def tell(self, text: str, share: float | None = None, detail: Any = None) -> bool:
        """Tell whoever listens; return whether they ask to stop."""
        show(text, share)
        if self.callback is None:
            return False
        passed = time.perf_counter() - self.begun
        return bool(self.callback(FitProgress(self.current, text, share, passed, detail)))

    @property
    def left(self) -> float | None:
        """Seconds that are left; None without a limit."""
        if self.limit is None:
            return None
        return max(0.0, self.limit - (time.perf_counter() - self.begun))
