"""What can be shared: points of a grid that need one preparation, judged fold by fold.

A `Group` is points whose fits share something expensive: the matrix of one kernel, a factorisation.
It is prepared once, with all threads; then its units (folds, or sets of folds that are judged
together) are judged independently of one another, several at a time, each on one thread. What a
unit gives depends on the group alone, never on which units ran before it: a run that is interrupted
and taken up again gives the same numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Stop = Callable[[], bool]
"""Asked now and then by long work: true means leave it."""


@dataclass(frozen=True)
class Judged:
    """How one point did on one fold.

    Attributes
    ----------
    test : dict of str to float
        Scores on rows that were left out, by name of the scorer.
    train : dict of str to float
        Scores on rows learnt from; empty where they were not asked for.
    fit_seconds, score_seconds : float
        Time taken; where points share work, an equal part of it.
    failure : str
        Why there is no score; empty where there is one.
    trouble : str
        Why a scorer has none though the machine was fitted; empty where all have.
    """

    test: Mapping[str, float]
    train: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    failure: str = ""
    trouble: str = ""


class Stopped(Exception):  # noqa: N818  it is no error
    """A unit was left because `stop` said so."""


class Group(ABC):
    """Points that share a preparation.

    Attributes
    ----------
    points : tuple of int
        Positions in the list of points that the groups were made for.
    units : tuple of tuples of int
        Folds that are judged together; every fold of the group is in one unit.
    size : float
        Bytes held from `prepare` to `release`, with what a unit needs beside.
    alone : bool
        Whether nothing else may be at work meanwhile, so that a unit may take all of the memory;
        there is one unit then.
    spreads : bool
        Whether a unit has use for several threads, and gives the same numbers on any count of them:
        the last one gets all, since the others will soon be idle.
    """

    points: tuple[int, ...]
    units: tuple[tuple[int, ...], ...]
    size: float = 0.0
    alone: bool = False
    spreads: bool = False

    @property
    def kind(self) -> str:
        """Name of what is shared, for reports."""
        return type(self).__name__

    def prepare(self) -> None:
        """Make what all units share; called once, before any of them, with all threads."""
        return

    @abstractmethod
    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Judge all points on the folds of a unit; keys are (position of point, fold).

        Runs beside other units of the same group, on one thread, after `prepare`. Raises `Stopped`
        soon after `stop()` turned true.
        """

    def release(self) -> None:
        """Return back what `prepare` made."""
        return
