"""Grids of support vector machines: total time of tuning against grid searches that refit.

python -m benchmarks.margin.tuning              every case, and the picture
python -m benchmarks.margin.tuning covertype    cases whose name contains the word
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import svm as theirs
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from benchmarks import datasets
from benchmarks.harness import Case, Row, as_table, run
from mercer import SVC, SVR
from mercer.kernels import Gaussian
from mercer.selection import tune

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "tuning-growth.png"
COLOURS = {"Mercer": "#1b6ca8", "scikit-learn": "#d1495b", "intelex": "#8d96a3"}
LONGEST = 60.0  # seconds; a contestant that took longer sits out the larger grids
JOBS = 2

NOTE = """All libraries evaluate the same candidates on the same folds with LIBSVM's criterion
1e-3. The rivals use `GridSearchCV(n_jobs=2)` and otherwise their defaults. If a rival would take
minutes, it evaluates one candidate in k, each value of each axis equally often. Its time is then
multiplied by k, as the table shows. The whole grid of covertype 5000 took scikit-learn 170 s, 30
times as long as Mercer in that run. "apart" is the largest difference between its mean score of a
candidate and Mercer's. Within the tolerance, samples near the decision boundary can fall on either
side. With many classes, scikit-learn resolves ties of votes in favor of the first class, Mercer in
favor of the clearer one. If C and gamma are small, many samples are ties.

![Time of tuning over the number of grid points](images/tuning-growth.png)"""


@dataclass(frozen=True)
class Grid:
    """A grid of a support vector machine, and how much of it a rival has to do."""

    name: str
    data: Callable[[], tuple[Any, Any]]
    gammas: Any
    costs: Any
    goal: float | None = None
    tubes: tuple[float, ...] = ()
    folds: int = 5
    every: int = 1  # only one point in so many is judged by rivals
    needs: str | None = None
    intelex: bool = True  # not where it takes minutes

    def points(self) -> list[dict[str, float]]:
        """Return the points in the rivals' terms."""
        axes = {"gamma": self.gammas, "C": self.costs}
        axes |= {"epsilon": self.tubes} if self.tubes else {}
        return [
            dict(zip(axes, map(float, values), strict=True)) for values in product(*axes.values())
        ]

    def some(self) -> list[dict[str, float]]:
        """Return the rivals' points: along each axis every value comes as often as any other."""
        places = product(range(len(self.gammas)), range(len(self.costs)), self.tubes or (0.0,))
        chosen = [(3 * gamma + cost) % self.every == 0 for gamma, cost, _ in places]
        return [point for point, taken in zip(self.points(), chosen, strict=True) if taken]

    def splits(self, X: Any, y: Any) -> list[Any]:
        """Return the folds."""
        kind = KFold if self.tubes else StratifiedKFold
        return list(kind(self.folds, shuffle=True, random_state=0).split(X, y))


@dataclass(frozen=True)
class Found:
    """Mean scores of points, and the time for all points of the grid."""

    scores: dict[tuple[float, ...], float]
    seconds: float
    note: str = ""
    points: list[dict[str, float]] = field(default_factory=list)


def kin8nm() -> tuple[Any, Any]:
    """Read 4000 rows, targets of variance 1."""
    X, y = datasets.real("kin8nm", 4000)
    return X, (y - y.mean()) / y.std()


GRIDS = [
    Grid(
        "SVC 5000 x 30, 5 C x 4 gamma x 5 folds",
        lambda: datasets.synthetic(5000, 30),
        (0.003, 0.01, 0.03, 0.1),
        np.logspace(-1, 3, 5),
        30,
    ),
    Grid(
        "SVC covertype 1000, 10 C x 10 gamma x 5 folds",
        lambda: datasets.covertype(1000, binary=True),
        np.logspace(-3, 0, 10),
        np.logspace(-1, 3, 10),
        30,
        needs="covertype_part",
    ),
    Grid(
        "SVC covertype 5000, 10 C x 10 gamma x 5 folds",
        lambda: datasets.covertype(5000, binary=True),
        np.logspace(-3, 0, 10),
        np.logspace(-1, 3, 10),
        60,
        every=10,
        needs="covertype_part",
    ),
    Grid(
        "SVC pendigits 7494, 10 classes, 6 C x 6 gamma x 5 folds",
        lambda: datasets.real("pendigits"),
        np.logspace(-3, 0, 6),
        np.logspace(-1, 3, 6),
        30,
        needs="pendigits",
        intelex=False,
    ),
    Grid(
        "SVR kin8nm 4000, 5 C x 4 gamma x 3 tubes x 5 folds",
        kin8nm,
        (0.03, 0.1, 0.3, 1.0),
        np.logspace(-1, 2, 5),
        30,
        (0.05, 0.1, 0.2),
        needs="kin8nm",
    ),
]


def ours(grid: Grid, X: Any, y: Any) -> Found:
    """Tune the whole grid."""
    scales = [float(np.sqrt(0.5 / gamma)) for gamma in grid.gammas]
    axes: dict[str, Any] = {
        "kernel": [Gaussian(s) for s in scales],
        "C": list(map(float, grid.costs)),
    }
    axes |= {"epsilon": list(grid.tubes)} if grid.tubes else {}
    started = time.perf_counter()
    found = tune(SVR() if grid.tubes else SVC(), X, y, grid=axes, cv=grid.splits(X, y))
    seconds = time.perf_counter() - started
    scores = {}
    for point, score in zip(found.points, found.mean, strict=True):
        gamma = float(grid.gammas[scales.index(point["kernel"].scale)])
        key = (gamma, point["C"], *([point["epsilon"]] if grid.tubes else []))
        scores[key] = float(score)
    return Found(scores, seconds)


def searched(grid: Grid, X: Any, y: Any, kinds: Any) -> Found:
    """Refit every point, or one in so many, through scikit-learn's search."""
    points = grid.points()
    some = grid.some()
    machine = kinds.SVR() if grid.tubes else kinds.SVC()
    lists = [{name: [value] for name, value in point.items()} for point in some]
    started = time.perf_counter()
    search = GridSearchCV(machine, lists, cv=grid.splits(X, y), n_jobs=JOBS, refit=False)
    search.fit(X, y)
    seconds = (time.perf_counter() - started) * len(points) / len(some)
    means = search.cv_results_["mean_test_score"]
    scores = {tuple(p.values()): float(m) for p, m in zip(some, means, strict=True)}
    note = "" if grid.every == 1 else f", from {len(some)} of {len(points)} points"
    return Found(scores, seconds, note)


def case(grid: Grid, repeats: int = 3) -> Case:
    """Set a comparison up."""
    X, y = grid.data()
    first: list[Found] = []

    def judge(found: Found) -> str:
        first.append(found)
        best = max(found.scores, key=lambda point: found.scores[point])
        apart = max(abs(score - first[0].scores[p]) for p, score in found.scores.items())
        place = ", ".join(f"{value:.3g}" for value in best)
        beside = f", apart {apart:.0e}" if len(first) > 1 else ""
        return f"best {found.scores[best]:.4f} at ({place}){beside}{found.note}"

    known = {name: kinds for name, kinds in _rivals().items() if grid.intelex or name != "intelex"}
    rivals = {name: (lambda k=kinds: searched(grid, X, y, k)) for name, kinds in known.items()}
    goals = {} if grid.goal is None else {"scikit-learn": grid.goal}
    return Case(grid.name, lambda: ours(grid, X, y), rivals, judge, goals, repeats, 1)


def _rivals() -> dict[str, Any]:
    found: dict[str, Any] = {"scikit-learn": theirs}
    try:
        from sklearnex import svm as extended
    except Exception as error:  # not installed, or not for this machine
        print(f"scikit-learn-intelex is left out: {error}")
    else:
        found["intelex"] = extended
    return found


def cases(words: tuple[str, ...] = ()) -> list[Row]:
    """Run the comparisons whose data are here."""
    rows: list[Row] = []
    for grid in GRIDS:
        chosen = not words or any(word in grid.name for word in words)
        if chosen and (grid.needs is None or datasets.available(grid.needs)):
            rows += run(case(grid))
    return rows


def growth(sizes: tuple[int, ...] = (1, 2, 4, 7, 10), rows: int = 2000) -> None:
    """Draw time over the number of points of k x k grids, 2000 rows, 5 folds."""
    import matplotlib.pyplot as plt

    X, y = datasets.synthetic(rows, 30)
    contestants: dict[str, Callable[[Grid], Found]] = {"Mercer": lambda grid: ours(grid, X, y)}
    for name, kinds in _rivals().items():
        contestants[name] = lambda grid, k=kinds: searched(grid, X, y, k)  # type: ignore[misc]
    times: dict[str, list[tuple[int, float]]] = {name: [] for name in contestants}
    for work in contestants.values():  # processes are started, modules imported
        work(Grid("", lambda: (X, y), (0.03,), (0.1,)))
    for size in sizes:
        middle = Grid("", lambda: (X, y), np.logspace(-3, -0.5, size), np.logspace(-1, 2, size))
        for name, work in contestants.items():
            if not times[name] or times[name][-1][1] < LONGEST:
                times[name].append((size * size, work(middle).seconds))
                print(name, times[name][-1], flush=True)
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, past in times.items():
        axis.loglog(*zip(*past, strict=True), "o-", color=COLOURS[name], label=name)
    axis.set(xlabel="points of the grid (C x gamma)", ylabel="seconds, 5 folds")
    axis.set_title(f"Tuning an SVC on {rows} rows, {JOBS} cores")
    axis.grid(alpha=0.3, which="both")
    axis.legend(frameon=False)
    figure.savefig(PICTURE, dpi=110)


def main(words: Sequence[str] = ()) -> str:
    """Run, draw where everything was asked for, and give the table."""
    table = as_table(cases(tuple(words)))
    if not words:
        growth()
    return table


if __name__ == "__main__":
    print(main(sys.argv[1:]))
