"""Kernel families that were compared: which is taken, and why, in words."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.selection.outcome import Tuning

_FEW_ROWS = 500  # below, an error of a few points of accuracy would excuse a plainer kernel


@dataclass(frozen=True, eq=False)
class Contender:
    """One kernel family, at its best point.

    Attributes
    ----------
    name : str
        Which family.
    tuning : Tuning
        All its points and scores.
    behind : float
        Mean score of the leader less its own, on the same folds.
    behind_error : float
        Standard error of that difference; a rough guide, since folds share rows.
    """

    name: str
    tuning: Tuning
    behind: float
    behind_error: float


def plainest(contenders: tuple[Contender, ...], rows: int) -> int:
    """Return which is taken: the plainest that is behind by no more than its error."""
    if rows < _FEW_ROWS:
        return next(k for k, one in enumerate(contenders) if one.behind == 0.0)
    return next(k for k, one in enumerate(contenders) if one.behind <= one.behind_error)


def reason(contenders: tuple[Contender, ...], chosen: int) -> str:
    """Say why."""
    taken = contenders[chosen]
    if taken.behind == 0.0:
        behind = [one.behind > one.behind_error for one in contenders[:chosen]]
        why = "it is the plainest"
        if chosen and all(behind):
            why = "every plainer one is behind by more than its error"
        elif chosen:
            why = "with so few rows the errors of differences are no excuse for a plainer one"
        return f"Taken: {taken.name}. It has the best score, and {why}."
    best = next(one for one in contenders if one.behind == 0.0)
    return (
        f"Taken: {taken.name}. {best.name} is {taken.behind:.2g} better, but by no more than the "
        f"error of that difference ({taken.behind_error:.2g}), and {taken.name} is plainer."
    )
