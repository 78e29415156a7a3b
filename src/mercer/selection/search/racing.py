"""Racing: fold by fold, dropping points that are behind the leader beyond doubt.

After each fold a paired t-test compares every point with the leader over the folds so far, at level
`alpha` divided by the number of points (so that all tests of a round together err with probability
`alpha`). What is dropped has scores for the first folds only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from mercer.array_types import Array
from mercer.selection.grids import Grid
from mercer.selection.search.base import LEAST_SPREAD, Evaluates, Search, check_above, check_whole


@dataclass(frozen=True)
class Race(Search):
    """Every fold for the leaders, fewer for the hopeless.

    Parameters
    ----------
    alpha : float
        Probability, in each round, of dropping a point that is as good as the leader.
    first : int
        Folds before the first point is dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.selection import Race, tune
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = (X**2).sum(axis=1) > 1.5
    >>> grid = {"C": [0.01, 1.0, 100.0], "kernel__scale": [0.01, 1.0, 100.0]}
    >>> found = tune(SVC(Gaussian(1.0)), X, y, grid=grid, cv=10, search=Race())
    >>> int(np.isnan(found.scores).sum()) > 0  # folds that were not needed
    True
    """

    alpha: float = 0.05
    first: int = 3

    def run(self, evaluator: Evaluates, grid: Grid) -> None:
        """Ask for fold after fold of the points still in the race."""
        check_above(self, "alpha", 0.0)
        if self.alpha >= 1:
            raise ValueError(f"Race: alpha={self.alpha!r} must be below 1")
        check_whole(self, "first", 2)
        points, folds = grid.points(), len(evaluator.task.splits)
        alive, scores = np.arange(len(points)), np.full((len(points), folds), np.nan)
        done = min(self.first, folds)
        scores[:, :done] = evaluator.evaluate(points, folds=range(done))
        alive = alive[~np.isnan(scores[:, :done]).any(axis=1)]
        dropped = 0
        while len(alive) and done < folds:
            kept = self._alive(scores[alive, :done])
            dropped += len(alive) - int(kept.sum())
            alive = alive[kept]
            scores[alive, done] = evaluator.evaluate([points[k] for k in alive], folds=[done])[:, 0]
            alive, done = alive[~np.isnan(scores[alive, done])], done + 1
        evaluator.say(
            f"Race: {dropped} of {len(points)} points were dropped, each round with probability "
            f"{self.alpha:g} or less that one of them is as good as the leader, if differences "
            "between folds are normal and independent"
        )

    def _alive(self, scores: Array) -> Array:
        """Return which points are not behind the leader beyond doubt."""
        leader = int(scores.mean(axis=1).argmax())
        difference = scores[leader] - scores
        mean, folds = difference.mean(axis=1), scores.shape[1]
        least = LEAST_SPREAD * float(scores[leader].std(ddof=1))
        spread = np.maximum(difference.std(axis=1, ddof=1), least)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(mean > 0, mean * np.sqrt(folds) / spread, 0.0)
        chance = stdtr(folds - 1, -t)
        kept = chance >= self.alpha / max(1, len(scores) - 1)
        kept[leader] = True
        return np.asarray(kept)
