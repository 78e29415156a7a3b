"""Search strategies: exhaustive, refinement, successive halving, and racing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from scipy.special import stdtr
from sklearn.base import is_classifier

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.machines.base.parameters import is_real
from mercer.selection.folds import count_rows, shuffled
from mercer.selection.grids import Grid
from mercer.selection.task import Point, Task

# --- base ----------------------------------------------------------------------------------------
#
# Ways through a grid. A way sees an evaluator and nothing else; it keeps all results itself.

# Of the spread of a score over folds: that of a difference is taken to be no smaller, since a few
# folds may agree by chance (scores of few rows are coarse).
LEAST_SPREAD = 0.3


class Evaluates(Protocol):
    """What a way through a grid may ask for."""

    task: Task
    rng: np.random.Generator

    def evaluate(
        self,
        points: Sequence[Point],
        folds: Sequence[int] | None = None,
        rows: Array | None = None,
    ) -> Array:
        """Return scores (points, folds), the larger the better, NaN where a fit failed."""

    def say(self, note: str) -> None:
        """Keep a sentence about how sure the outcome is."""


class Search(ABC):
    """A way through a grid."""

    @abstractmethod
    def run(self, evaluator: Evaluates, grid: Grid) -> None:
        """Ask for the scores of those points that are worth it."""


@dataclass(frozen=True)
class Exhaustive(Search):
    """Every point on every fold.

    Examples
    --------
    >>> from mercer.selection import Exhaustive
    >>> Exhaustive()
    Exhaustive()
    """

    def run(self, evaluator: Evaluates, grid: Grid) -> None:
        """Ask for everything."""
        evaluator.evaluate(grid.points())


def check_whole(owner: Any, name: str, least: int) -> None:
    """Require a whole number of at least `least`."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(
            f"{type(owner).__name__}: {name}={value!r} must be an integer of at least {least}"
        )


def check_above(owner: Any, name: str, least: float) -> None:
    """Require a finite number above `least`."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{type(owner).__name__}: {name}={value!r} must be a number")
    if not (np.isfinite(value) and value > least):
        raise ValueError(f"{type(owner).__name__}: {name}={value!r} must be above {least:g}")


# --- refinement ----------------------------------------------------------------------------------
#
# Finer and finer: after a coarse grid, half the steps around the best point, again and again.
#
# An axis can be refined when its values are positive numbers (steps are ratios then) or kernels
# that differ in one positive parameter, such as their scale. Where the best value is at the end
# of its axis, the axis is carried on by one of its own steps.


@dataclass(frozen=True)
class Refine(Search):
    """A coarse grid first, then the neighbourhood of its best point at half the step, repeated.

    Parameters
    ----------
    rounds : int
        How often the step is halved.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.kernels import Gaussian
    >>> from mercer.selection import Refine, tune
    >>> X = np.linspace(0, 6, 80)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=80)
    >>> grid = {"penalty": [1e-4, 1e-2, 1.0], "kernel__scale": [0.1, 1.0, 10.0]}
    >>> coarse = tune(KernelRidge(kernel=Gaussian(1.0)), X, y, grid=grid)
    >>> fine = tune(KernelRidge(kernel=Gaussian(1.0)), X, y, grid=grid, search=Refine(rounds=2))
    >>> fine.best_score >= coarse.best_score
    True
    """

    rounds: int = 2

    def run(self, evaluator: Evaluates, grid: Grid) -> None:
        """Ask for the grid, then for what is around the best point."""
        check_whole(self, "rounds", 1)
        points = grid.points()
        part = [k for k, box in enumerate(grid.parts) for _ in Grid((box,)).points()]
        means = _means(evaluator, points)
        if np.isnan(means).all():
            return
        best = int(np.nanargmax(means))
        found = {name: _axis(values) for name, values in grid.parts[part[best]].items()}
        axes = {name: axis for name, axis in found.items() if axis is not None}
        if not axes:
            evaluator.say("Refine: no axis of the grid has positive numbers to refine")
            return
        centre, score = points[best], means[best]
        seen = [dict(point) for point in points]
        steps = {name: axis.step for name, axis in axes.items()}
        for _ in range(self.rounds):
            steps = {name: step / 2 for name, step in steps.items()}
            around = _around(centre, axes, steps)
            fresh = [point for point in around if not any(_same(point, old) for old in seen)]
            if not fresh:
                break
            seen += fresh
            means = _means(evaluator, fresh)
            if not np.isnan(means).all() and np.nanmax(means) > score:
                centre, score = fresh[int(np.nanargmax(means))], float(np.nanmax(means))
        evaluator.say(_resolution(steps))


@dataclass(frozen=True, eq=False)
class _Axis:
    """Values that can be written as positive numbers."""

    step: float  # of the logarithm
    read: Callable[[Any], float]
    write: Callable[[Any, float], Any]


def _axis(values: tuple[Any, ...]) -> _Axis | None:
    if len(values) < 2:
        return None
    if all(_positive(value) for value in values):
        number = _number_like(values)
        return _Axis(_step([float(v) for v in values]), float, lambda _, x: number(x))
    name = _moving_parameter(values)
    if name is None:
        return None
    number = _number_like([kernel.get_params()[name] for kernel in values])
    read = lambda kernel: float(kernel.get_params()[name])  # noqa: E731
    write = lambda kernel, x: kernel.with_params(**{name: number(x)})  # noqa: E731
    return _Axis(_step([read(kernel) for kernel in values]), read, write)


def _number_like(values: Sequence[Any]) -> Callable[[float], float]:
    """Return what writes numbers of the kind of these: whole ones stay whole."""
    whole = all(isinstance(value, Integral) for value in values)
    return (lambda x: max(1, round(x))) if whole else float


def _moving_parameter(values: tuple[Any, ...]) -> str | None:
    """Return the one parameter in which kernels differ, if it is a positive number in all."""
    if not all(isinstance(value, Kernel) for value in values):
        return None
    first = values[0].get_params()
    moving = [
        name
        for name, value in first.items()
        if not isinstance(value, Kernel)
        and any(repr(k.get_params().get(name)) != repr(value) for k in values)
    ]
    if len(moving) != 1 or not all(_positive(k.get_params().get(moving[0])) for k in values):
        return None
    if any(k != values[0].with_params(**{moving[0]: k.get_params()[moving[0]]}) for k in values):
        return None
    return str(moving[0])


def _positive(value: Any) -> bool:
    return is_real(value) and 0 < float(value) < np.inf


def _step(values: list[float]) -> float:
    """Return the middle ratio of neighbouring values, as a logarithm."""
    gaps = np.diff(np.log(np.unique(values)))
    return float(np.median(gaps)) if len(gaps) else 0.0


def _around(
    centre: dict[str, Any], axes: dict[str, _Axis], steps: dict[str, float]
) -> list[dict[str, Any]]:
    choices = {}
    for name, axis in axes.items():
        middle = np.log(axis.read(centre[name]))
        choices[name] = [
            axis.write(centre[name], float(np.exp(middle + k * steps[name]))) for k in (-1, 0, 1)
        ]
    return [
        {**centre, **dict(zip(choices, some, strict=True))} for some in product(*choices.values())
    ]


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    if a.keys() != b.keys():
        return False
    return all(
        np.isclose(float(a[k]), float(b[k]), rtol=1e-9, atol=0.0)
        if _positive(a[k]) and _positive(b[k])
        else a[k] is b[k] or repr(a[k]) == repr(b[k])
        for k in a
    )


def _means(evaluator: Evaluates, points: list[dict[str, Any]]) -> Any:
    return np.asarray(evaluator.evaluate(points)).mean(axis=1)


def _resolution(steps: dict[str, float]) -> str:
    known = ", ".join(f"{name} to a factor of {np.exp(step):.3g}" for name, step in steps.items())
    return f"Refine: resolution of the best candidate along the search path: {known}"


# --- halving -------------------------------------------------------------------------------------
#
# Successive halving: all points on few rows, the better ones on more, the best on all.
#
# Ranks on few rows are uncertain. A point is dropped only when it is behind the last of those to
# be kept by more than `margin` standard errors of the difference over the folds; the smallest
# distance at which a point was dropped is stated, and so is how often such a distance comes about
# by chance.

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
    lost = f"; {failed} of {points} candidates could not be evaluated on few rows" if failed else ""
    if not worse:
        return f"Halve: no candidate was dropped for its score on few rows{lost}"
    closest = min((one for one in rounds if one.worse), key=lambda one: one.nearest)
    chance = float(stdtr(max(1, closest.folds - 1), -closest.nearest))
    return (
        f"Halve: {worse} of {points} points were dropped on few rows at {closest.nearest:.2g} "
        "standard errors or more behind those kept; a point that is as good falls so far behind "
        f"with probability {chance:.2g}, if differences on few rows are those on all and folds are "
        f"independent{lost}"
    )


# --- racing --------------------------------------------------------------------------------------
#
# Racing: fold by fold, dropping points that are behind the leader beyond doubt.
#
# After each fold a paired t-test compares every point with the leader over the folds so far, at
# level `alpha` divided by the number of points (so that all tests of a round together err with
# probability `alpha`). What is dropped has scores for the first folds only.


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
