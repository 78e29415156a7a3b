"""Classes `Solver`, `Solution`, `Status`, `Progress` and `Watch`: what all solvers share."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from mercer import deadline
from mercer.html import page
from mercer.progress import seconds_left, show, steps_are_shown

_SEEN = 200  # reports that the end is estimated from


class Status(Enum):
    """Why a solver ended. The value is the sentence shown to people."""

    SOLVED = "solved to the tolerance asked for"
    INACCURATE = (
        "stopped making progress before reaching the tolerance; the certificate says how close it "
        "came. Scale the features, or ask for a larger tol or penalty, whichever there is"
    )
    ITERATION_LIMIT = "the iteration limit was reached before the tolerance. Scale the features"
    TIME_LIMIT = "the time limit was reached before the tolerance. Raise time_limit"
    STOPPED = "the callback asked to stop"
    EARLY_STOPPED = (
        "rows held out stopped gaining before the tolerance was reached; what served them best was "
        "kept, as early_stopping asks"
    )
    SINGULAR = (
        "the system is singular to working precision; the answer of least norm was taken. Use a "
        "larger penalty, or remove duplicate rows"
    )
    NOT_CONVEX = (
        "the kernel matrix is not positive semidefinite, so a stationary point was found, not a "
        "proven optimum. Use a valid kernel (mercer.kernels.is_valid tells)"
    )
    NOT_DEFINITE = (
        "at no penalty of the path is the kernel matrix plus the penalty positive definite to "
        "working precision; no answer. Use larger penalties, or a valid kernel "
        "(mercer.kernels.is_valid tells)"
    )
    INFEASIBLE = (
        "without slack (C=inf) the data cannot be separated, or fitted within the tube, to working "
        "precision; the answer pays a very high price for slack instead. Use a finite C"
    )
    NO_MARGIN = (
        "no margin at this nu: to working precision the convex hulls of the classes, reduced by "
        "it, still meet. Raise nu"
    )
    UNKNOWN = (
        "the answer was read from a file of another library, without its data; how good it is has "
        "not been looked at. Judge it beside the data (mercer.files.certify_libsvm_model)"
    )
    STREAMED = (
        "learned from a stream, passed once; rows are not kept, so nothing is proven of the answer"
    )
    DIVERGED = (
        "the steps explode: each ends farther from the minimum than it began. The answer is the "
        "best place on the way. Take a shorter step"
    )
    NO_MINIMUM = (
        "no minimum was found: the loss falls on and on as weights grow. Use a small penalty > 0"
    )
    NOT_FINITE = "numbers overflowed; no answer. Scale the features or the kernel"

    @property
    def ok(self) -> bool:
        """Whether the answer is as accurate as asked."""
        return self is Status.SOLVED


@dataclass(frozen=True)
class Progress:
    """Where a running solver stands; given to callbacks and kept in traces.

    Attributes
    ----------
    iteration : int
        Steps done.
    seconds : float
        Time since the start.
    measure : float
        What the solver drives to zero (violation, residual).
    """

    iteration: int
    seconds: float
    measure: float


Callback = Callable[[Progress], bool | None]
"""Called while a solver runs; a true return value asks it to stop with what it has."""


@dataclass
class Watch:
    """The clock beside a solver: one place for time limit, callback and trace.

    The limit is its own, and the deadline of the fit around it (`mercer.deadline`).

    Parameters
    ----------
    callback : callable, optional
        Called with `Progress` now and then.
    time_limit : float, optional
        Seconds after which to stop.
    goal : float, optional
        What the measure must fall to; for estimates of the end.
    """

    callback: Callback | None = None
    time_limit: float | None = None
    trace: list[Progress] = field(default_factory=list)
    stopped: Status | None = None
    started: float = field(default_factory=deadline.now)
    goal: float = 0.0

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return deadline.now() - self.started

    @property
    def late(self) -> bool:
        """Whether the time limit, or that of the fit around, is over."""
        own = self.time_limit is not None and self.seconds > self.time_limit
        return own or deadline.is_over()

    def tick(self, iteration: int, measure: float) -> bool:
        """Note where the solver stands; True means stop now."""
        progress = Progress(iteration, self.seconds, float(measure))
        self.trace.append(progress)
        if steps_are_shown():
            self._show(progress)
        if self.callback is not None and self.callback(progress):
            self.stopped = Status.STOPPED
        elif self.late:
            self.stopped = Status.TIME_LIMIT
        return self.stopped is not None

    def _show(self, progress: Progress) -> None:
        seconds, measures = zip(*((p.seconds, p.measure) for p in self.trace[-_SEEN:]), strict=True)
        left = seconds_left(seconds, measures, self.goal)
        goal = f" (goal {self.goal:.1e})" if self.goal > 0 else ""
        ending = "" if math.isnan(left) else f", about {left:.0f} s to go"
        text = f"step {progress.iteration}, {progress.measure:.2e}{goal}, {progress.seconds:.0f} s"
        show(text + ending)

    @contextmanager
    def keeping(self, found: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Let a step that runs far past the time limit end there, if anything was found before."""
        with deadline.cut_short(found) as cut:
            yield
        if cut:
            self.stopped = Status.TIME_LIMIT


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver found and how it ended.

    Attributes
    ----------
    value : object
        The answer, of the type that belongs to the problem.
    status : Status
        Why the solver ended.
    iterations : int
        Steps done.
    seconds : float
        Time taken.
    solver : str
        Which algorithm ran.
    trace : tuple of Progress
        The way there.
    detail : str
        What was seen that the status alone does not say.
    """

    value: Any
    status: Status
    iterations: int
    seconds: float
    solver: str
    trace: tuple[Progress, ...] = field(default=(), repr=False)
    detail: str = ""

    # skops makes objects without their arguments, which members of an enumeration do not allow
    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        status = state["status"]  # pickles of 0.8 hold the member itself
        vars(self).update(state, status=status if isinstance(status, Status) else Status[status])

    def __repr__(self) -> str:
        answer = type(self.value).__name__
        return (
            f"Solution({answer}, {self.status.name}, {self.iterations} iterations of "
            f"{self.solver}, {self.seconds:.3g} s)"
        )

    def _repr_html_(self) -> str:
        return page(
            f"{self.solver}: {self.status.name}",
            {
                "answer": type(self.value).__name__,
                "ended": self.status.value,
                "iterations": str(self.iterations),
                "seconds": f"{self.seconds:.3g}",
                **({"detail": self.detail} if self.detail else {}),
            },
        )


class Solver(ABC):
    """An algorithm with its options; problem and state are passed to it.

    Attributes
    ----------
    answers : type or tuple of types
        The problems that it takes.
    without_effect : tuple of str
        Options of the last version that have no effect any more; None by default.
    """

    answers: ClassVar[type | tuple[type, ...]]
    without_effect: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Warn of options that have no effect, and forget them."""
        for name in self.without_effect:
            if vars(self)[name] is not None:
                warnings.warn(
                    f"{type(self).__name__}: {name} has no effect and will be removed in the next "
                    "version. Leave it out.",
                    FutureWarning,
                    stacklevel=4,
                )
                object.__setattr__(self, name, None)

    def refuses(self, problem: Any) -> str | None:
        """Return why this solver cannot take the problem, with the remedy; None if it can."""
        if isinstance(problem, self.answers):
            return self._obstacle(problem)
        kinds = self.answers if isinstance(self.answers, tuple) else (self.answers,)
        names = " and ".join(kind.__name__ for kind in kinds)
        return f"{type(self).__name__} answers {names} problems, not {type(problem).__name__}"

    def _obstacle(self, problem: Any) -> str | None:
        """Return what stands in the way of a problem of the right type; None if nothing does."""
        return None

    @abstractmethod
    def run(self, problem: Any, watch: Watch, start: Any = None) -> Solution:
        """Answer the problem, from `start` if that is given and helps."""


def report(
    solver: Solver, value: Any, status: Status, iterations: int, watch: Watch, detail: str = ""
) -> Solution:
    """Put an answer and the clock's record together."""
    trace = tuple(watch.trace)
    return Solution(value, status, iterations, watch.seconds, type(solver).__name__, trace, detail)
