"""Finer and finer: after a coarse grid, half the steps around the best point, again and again.

An axis can be refined when its values are positive numbers (steps are ratios then) or kernels that
differ in one positive parameter, such as their scale. Where the best value is at the end of its
axis, the axis is carried on by one of its own steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.machines.base.parameters import is_real
from mercer.selection.grids import Grid
from mercer.selection.search.base import Evaluates, Search, check_whole


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
            evaluator.say("Refine: no axis of the grid has positive numbers to go between")
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
    return f"Refine: the best point is known, along the way taken, {known}"
