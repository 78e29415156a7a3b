"""Successive halving: all points on few rows, the better ones on more, the best on all.

Ranks on few rows are uncertain. A point is dropped only when it is behind the last of those to be
kept by more than `margin` standard errors of the difference over the folds; the smallest distance
at which a point was dropped is stated, and so is how often such a distance comes about by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr
from sklearn.base import is_classifier

from mercer.array_types import Array
from mercer.selection.grids import Grid
from mercer.selection.running.rows import count_rows, shuffled
from mercer.selection.search.base import LEAST_SPREAD, Evaluates, Search, check_above, check_whole

_FEW = 10  # rows of each class that come first, if there are as many folds


@dataclass(frozen=True)
class Halve(Search):
    """Successive halving over rows.

    Parameters
    ----------
    factor : int
        By how much the points become fewer, and the rows more, from round to round.
    least : int
        Rows of the first round, at least.
    margin : float
        Standard errors by which a point must be behind to be dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.selection import Halve, tune
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> y = (X**2).sum(axis=1) > 1.5
    >>> grid = {"C": [0.01, 1.0, 100.0], "kernel__scale": [0.01, 1.0, 100.0]}
    >>> found = tune(SVC(Gaussian(1.0)), X, y, grid=grid, search=Halve(least=100))
    >>> found.best_params["kernel__scale"]
    1.0
    """

    factor: int = 3
    least: int = 200
    margin: float = 1.0

    def run(self, evaluator: Evaluates, grid: Grid) -> None:
        """Drop the hopeless, round by round; the last round has all rows."""
        check_whole(self, "factor", 2)
        check_whole(self, "least", 2)
        check_above(self, "margin", -1e-300)
        points, n = grid.points(), count_rows(evaluator.task.X)
        order, rounds = _order(evaluator, n), []
        for size in self._sizes(n, len(points)):
            if size < n:
                rows = np.sort(order[:size])
                folds = _folds_left(evaluator, rows, n)
                kept, one = self._kept(evaluator.evaluate(points, folds=folds, rows=rows))
                points = [points[k] for k in kept]
                rounds.append(one)
            else:
                evaluator.evaluate(points)
        evaluator.say(_statement(rounds, len(grid)))

    def _sizes(self, n: int, points: int) -> list[int]:
        """Return the rows of each round: as many rounds as leave one point, if rows allow."""
        rounds, size = [n], n
        while size // self.factor >= self.least and points > 1:
            size //= self.factor
            points = -(-points // self.factor)
            rounds.insert(0, size)
        return rounds

    def _kept(self, scores: Array) -> tuple[list[int], _Dropped]:
        """Return the points that stay, and what is known of the others."""
        scores = scores[:, ~np.isnan(scores).all(axis=0)]  # folds that nothing can be fitted to
        good = ~np.isnan(scores).any(axis=1)
        folds = scores.shape[1]
        if not folds or not good.any():
            return list(range(len(scores))), _Dropped(0, 0, np.inf, folds)
        means = np.where(good, np.nan_to_num(scores, nan=0.0).mean(axis=1), -np.inf)
        n_survivors = min(int(good.sum()), max(1, -(-len(means) // self.factor)))
        last = np.argsort(-means, kind="stable")[n_survivors - 1]
        behind = np.array([_behind(scores[last], one) for one in scores])
        stays = good & (behind <= self.margin)
        nearest = float(behind[good & ~stays].min(initial=np.inf))
        dropped = _Dropped(int((good & ~stays).sum()), int((~good).sum()), nearest, folds)
        return np.flatnonzero(stays).tolist(), dropped


@dataclass(frozen=True)
class _Dropped:
    """How many points one round dropped.

    Attributes
    ----------
    worse, failed : int
        Points that were behind, and points that had no score.
    nearest : float
        Standard errors between the nearest of those behind and those kept.
    folds : int
        Over how many folds.
    """

    worse: int
    failed: int
    nearest: float
    folds: int


def _behind(better: Array, worse: Array) -> float:
    """Return how many standard errors of the paired difference lie between two points."""
    folds = len(better)
    with np.errstate(invalid="ignore"):  # scores may be infinite
        difference = better - worse
        mean = float(difference.mean())
    if folds < 2 or not mean > 0:
        return 0.0  # one fold tells no error
    if np.isinf(mean):
        return np.inf
    spread = max(difference.std(ddof=1), LEAST_SPREAD * better.std(ddof=1))
    return float(mean * np.sqrt(folds) / spread) if spread > 0 else np.inf


def _order(evaluator: Evaluates, n: int) -> Array:
    task = evaluator.task
    labels = task.y if task.y is not None and is_classifier(task.machine) else None
    return shuffled(evaluator.rng, n, labels, min(_FEW, len(task.splits)))


def _folds_left(evaluator: Evaluates, rows: Array, n: int) -> list[int]:
    """Return the folds that have rows to learn from and to judge by among some."""
    among = np.zeros(n, dtype=bool)
    among[rows] = True
    splits = enumerate(evaluator.task.splits)
    return [fold for fold, (train, test) in splits if among[train].any() and among[test].any()]


def _statement(rounds: Sequence[_Dropped], points: int) -> str:
    worse, failed = sum(one.worse for one in rounds), sum(one.failed for one in rounds)
    lost = f"; {failed} of {points} points could not be judged on few rows" if failed else ""
    if not worse:
        return f"Halve: no point was dropped for its score on few rows{lost}"
    closest = min((one for one in rounds if one.worse), key=lambda one: one.nearest)
    chance = float(stdtr(max(1, closest.folds - 1), -closest.nearest))
    return (
        f"Halve: {worse} of {points} points were dropped on few rows at {closest.nearest:.2g} "
        "standard errors or more behind those kept; a point that is as good falls so far behind "
        f"with probability {chance:.2g}, if differences on few rows are those on all and folds are "
        f"independent{lost}"
    )
