"""Convergence of a fit: the measure of its solver, and the duality gap during the fit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer.array_types import Array
from mercer.plots.base import (
    FAINT,
    Display,
    axis_labels,
    colour_of,
    described,
    fitted,
    inner_machine,
    legend_inside,
    title,
)
from mercer.solvers.base import Progress, Solution

_FIRST = 20  # steps before the first stop
_GROWTH = 4  # a stop comes after a quarter more steps


@dataclass(eq=False)
class ConvergenceDisplay(Display):
    """The remaining error during a fit.

    Parameters
    ----------
    iterations : array of shape (n_stops,)
        Steps done.
    seconds : array of shape (n_stops,)
        Time since the start.
    measures : dict of str to array of shape (n_stops,)
        Decreasing values: the solver's own measure, or the duality gap and violation of
        certificates.
    goal : float
        The target of the fit; NaN if unknown.
    text : str
        The title.

    Attributes
    ----------
    lines_ : list of Line2D
        The measures.
    goal_ : Line2D or None
        The goal.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.plots import ConvergenceDisplay
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> shown = ConvergenceDisplay.from_fit(SVC(Gaussian(0.5), C=10.0), X, y)
    >>> bool(shown.measures["relative duality gap"][-1] < 1e-3)
    True
    """

    iterations: Array
    seconds: Array
    measures: dict[str, Array]
    goal: float = float("nan")
    text: str = ""

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the convergence of a fitted estimator's solver.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `solution_`; also inside a pipeline or a search.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ConvergenceDisplay
            The display.
        """
        estimator = fitted(cls.__name__, estimator)
        machine = inner_machine(estimator)
        solution = getattr(machine, "solution_", None)
        if not isinstance(solution, Solution):
            raise TypeError(
                f"{cls.__name__}: needs an estimator of Mercer with solution_, got "
                f"{type(machine).__name__}"
            )
        goal = float(getattr(machine, "tol", float("nan")))
        name = described(estimator)
        return cls.from_trace(solution, goal=goal, name=name, ax=ax, **kwargs)

    @classmethod
    def from_trace(
        cls,
        trace: Solution | Sequence[Progress],
        *,
        goal: float = float("nan"),
        name: str = "",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the trace of a solver.

        Parameters
        ----------
        trace : Solution or sequence of Progress
            The solution of a solver, or the reports that a callback collected.
        goal : float
            The target of the measure.
        name : str
            The name of the fit, for the title.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ConvergenceDisplay
            The display.
        """
        solution = trace if isinstance(trace, Solution) else None
        steps = list(trace.trace if isinstance(trace, Solution) else trace)
        steps = [step for step in steps if np.isfinite(step.measure)]
        if len(steps) < 2:
            who = f"{solution.solver} kept" if solution else "there are"
            raise ValueError(
                f"{cls.__name__}: {who} {len(steps)} intermediate reports; direct solvers and "
                "quick fits have none. Use from_fit, which stops a fit at intervals and evaluates "
                "its certificate"
            )
        said = ""
        if solution is not None:
            said = f"{solution.solver}: {solution.status.name.lower().replace('_', ' ')} after "
            said += f"{solution.iterations} steps, {solution.seconds:.2g} s"
        return cls(
            np.array([step.iteration for step in steps]),
            np.array([step.seconds for step in steps]),
            {"measure of the solver": np.array([step.measure for step in steps])},
            goal,
            "\n".join(filter(None, (name, said))),
        ).plot(ax, **kwargs)

    @classmethod
    def from_fit(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        stops: int = 60,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Fit an estimator with stops, and evaluate its certificate at each.

        Parameters
        ----------
        estimator : estimator
            An estimator with `max_iter` and `warm_start`, such as `SVC`; a copy is fitted.
        X, y : array-like
            Rows and targets.
        stops : int
            Maximum number of stops, which become less frequent.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ConvergenceDisplay
            The relative duality gap, and the largest violation of the optimality
            conditions.
        """
        if not {"max_iter", "warm_start"} <= set(estimator.get_params()):
            raise TypeError(
                f"{cls.__name__}: {type(estimator).__name__} cannot be stopped and resumed (it "
                "has no max_iter and warm_start); from_estimator draws the trace of its solver"
            )
        machine = clone(estimator).set_params(warm_start=True)
        found: list[tuple[int, float, float, float]] = []
        steps, seconds = 0, 0.0
        with warnings.catch_warnings():  # stopping early is intended
            warnings.simplefilter("ignore", ConvergenceWarning)
            for _ in range(int(stops)):
                machine.set_params(max_iter=max(_FIRST, steps // _GROWTH)).fit(X, y)
                steps, seconds = steps + machine.n_iter_, seconds + machine.solution_.seconds
                figures = machine.certificate_.quantities
                found.append((steps, seconds, figures.relative_gap, figures.violation))
                if machine.solution_.status.ok:
                    break
        columns = np.array(found, dtype=np.float64).T
        text = f"{described(clone(estimator))}\n{len(found)} stops, each with its certificate"
        measures = {
            "relative duality gap": columns[2],
            "violation of the optimality conditions": columns[3],
        }
        return cls(columns[0], columns[1], measures, float(machine.tol), text).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, against: str = "seconds") -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        against : {"seconds", "iterations"}
            The x axis.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        if against not in ("seconds", "iterations"):
            raise ValueError(
                f"{type(self).__name__}: against={against!r} must be 'seconds' or 'iterations'"
            )
        x = self.seconds if against == "seconds" else self.iterations
        with self._drawing(ax) as axes:
            self.lines_ = []
            for k, (name, measure) in enumerate(self.measures.items()):
                above = np.where(measure > 0, measure, np.nan)  # zero has no logarithm
                look = {"marker": "os"[k % 2], "markersize": 3.5, "linewidth": 1.4}
                self.lines_ += axes.plot(x, above, color=colour_of(k), label=name, **look)
            self.goal_ = None
            if self.goal > 0:
                self.goal_ = axes.axhline(
                    self.goal,
                    color=FAINT,
                    linestyle="--",
                    linewidth=1.1,
                    label=f"tol {self.goal:g}",
                )
            axes.set_yscale("log")
            if against == "iterations" and x.min() > 0 and x.max() > 20 * x.min():
                axes.set_xscale("log")
            alone = len(self.measures) == 1
            ylabel = next(iter(self.measures)) if alone else "left to gain, at most"
            axis_labels(axes, "time in s" if against == "seconds" else "steps", ylabel)
            title(axes, self.text)
            legend_inside(axes)
        return self
