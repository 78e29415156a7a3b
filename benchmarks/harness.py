"""Run Mercer and rivals side by side, judge both answers by the same certificate, report ratios.

Machines are noisy, so contestants take turns within one process and the table gives ratios of
medians; seconds are there for orientation. A contestant returns its answer, and `judge` turns an
answer into a short text (an error against float64, a certificate) that stands beside its time.
"""

from __future__ import annotations

import gc
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Answer = Any


@dataclass
class Case:
    """One comparison.

    Attributes
    ----------
    name : str
        What is done.
    ours : callable
        Mercer's way; returns an answer.
    rivals : dict of str to callable
        The others' ways.
    judge : callable
        Turns an answer into a short text.
    goals : dict of str to float
        For a rival, how many times faster Mercer should be.
    repeats : int
        How often each contestant runs; slow rivals run once.
    """

    name: str
    ours: Callable[[], Answer]
    rivals: dict[str, Callable[[], Answer]]
    judge: Callable[[Answer], str] = lambda answer: ""
    goals: dict[str, float] = field(default_factory=dict)
    repeats: int = 3
    rival_repeats: int = 3


@dataclass(frozen=True)
class Row:
    """One line of the table: a rival beside Mercer."""

    case: str
    rival: str
    ours_seconds: float
    rival_seconds: float
    goal: float | None
    ours_judged: str
    rival_judged: str

    @property
    def ratio(self) -> float:
        """How many times faster Mercer was."""
        return self.rival_seconds / self.ours_seconds


def run(case: Case) -> list[Row]:
    """Let the contestants take turns; give one row per rival."""
    contestants = {"mercer": case.ours, **case.rivals}
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    judged: dict[str, str] = {}
    for turn in range(max(case.repeats, case.rival_repeats)):
        for name, work in contestants.items():
            if turn >= (case.repeats if name == "mercer" else case.rival_repeats):
                continue
            gc.collect()
            started = time.perf_counter()
            answer = work()
            elapsed = time.perf_counter() - started
            # a rival in a process of its own has a clock of its own
            seconds[name].append(getattr(answer, "seconds", elapsed))
            if turn == 0:
                judged[name] = case.judge(answer)
            del answer
    middle = {name: statistics.median(times) for name, times in seconds.items()}
    rows = [
        Row(
            case.name,
            name,
            middle["mercer"],
            middle[name],
            case.goals.get(name),
            judged["mercer"],
            judged[name],
        )
        for name in case.rivals
    ]
    for row in rows:
        print(as_line(row), flush=True)
    return rows


def as_line(row: Row) -> str:
    """Write a row for the terminal."""
    goal = f" (goal {row.goal:g})" if row.goal else ""
    return (
        f"{row.case}: {row.ratio:.1f} x {row.rival}{goal}; "
        f"{row.ours_seconds:.3f} s [{row.ours_judged}] "
        f"against {row.rival_seconds:.3f} s [{row.rival_judged}]"
    )


def as_table(rows: list[Row]) -> str:
    """Write rows as a Markdown table."""
    lines = [
        "| work | rival | times faster | goal | Mercer, s | rival, s | Mercer | rival |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in rows:
        goal = f"{r.goal:g}" if r.goal else ""
        lines.append(
            f"| {r.case} | {r.rival} | **{r.ratio:.1f}** | {goal} | {r.ours_seconds:.3f} | "
            f"{r.rival_seconds:.3f} | {r.ours_judged} | {r.rival_judged} |"
        )
    return "\n".join(lines)


def machine() -> str:
    """Describe where the figures come from."""
    import numpy
    import scipy
    import sklearn

    from mercer.resources import thread_limit

    cpu = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            cpu = next(
                line.split(":")[1].strip() for line in lines if line.startswith("model name")
            )
    except (OSError, StopIteration):
        pass
    return (
        f"{cpu}, {thread_limit()} threads; Python {platform.python_version()}, "
        f"NumPy {numpy.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )
