"""Plots of duality: forces at the optimum, and the image of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.plots.base import (
    FAINT,
    Display,
    axis_labels,
    colour_of,
    ink_of,
    legend_beside,
    matplotlib_module,
    title,
)
from mercer.theory import Program, SupportingLine, image_set, supporting_line

# --- forces --------------------------------------------------------------------------------------
#
# A program of two variables: its slope, its walls, and the forces that balance at the optimum.

_LONG = 0.3  # of the width: the strongest force


@dataclass(eq=False)
class ForcesDisplay(Display):
    """The balance of forces: a ball on the slope of f, held by the walls g = 0.

    The force -grad f is balanced by the forces -lam grad g of the active constraints. At the
    optimum they sum to zero. Constraints without an arrow are inactive: lam = 0.

    Parameters
    ----------
    xx0, xx1 : array of shape (resolution, resolution)
        The grid.
    f : array of shape (resolution, resolution)
        The objective.
    walls : array of shape (n_constraints, resolution, resolution)
        The constraints, inequalities first.
    n_inequalities : int
        Number of inequalities among them.
    x : array of shape (2,)
        The point.
    forces : array of shape (1 + n_constraints, 2)
        Of the slope, and of each wall.
    text : str
        The title.

    Attributes
    ----------
    contours_ : ContourSet
        Heights of f.
    walls_ : list of ContourSet
        The lines g = 0 and h = 0.
    arrows_ : list of Quiver
        The forces that are not zero.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    ImageSetDisplay : A program with one constraint in the plane of g and f.

    Examples
    --------
    >>> from mercer.plots import ForcesDisplay
    >>> from mercer.theory import projection_program
    >>> program = projection_program([2, 1], A_ub=[[1, 0], [0, 1]], b_ub=[1, 3])
    >>> shown = ForcesDisplay.from_program(program, bounds=(-1, 3))
    >>> len(shown.arrows_)  # the slope and one of the two walls
    2
    """

    xx0: Array
    xx1: Array
    f: Array
    walls: Array
    n_inequalities: int
    x: Array
    forces: Array
    text: str = ""

    @classmethod
    def from_program(
        cls,
        program: Program,
        bounds: tuple[npt.ArrayLike, npt.ArrayLike],
        *,
        resolution: int = 120,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Solve a program and draw the forces at its optimum.

        Parameters
        ----------
        program : Program
            Of two variables.
        bounds : (low, high)
            The box that is drawn.
        resolution : int
            Points along each variable.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ForcesDisplay
            The display.
        """
        if not isinstance(program, Program) or program.n != 2:
            raise ValueError(f"{cls.__name__}: a plane has two variables; pass a program of two")
        low, high = (np.broadcast_to(np.asarray(b, dtype=np.float64), (2,)) for b in bounds)
        axes = [np.linspace(a, b, resolution) for a, b in zip(low, high, strict=True)]
        xx0, xx1 = np.meshgrid(*axes)
        rows = np.column_stack([xx0.ravel(), xx1.ravel()])
        f = np.array([program.objective(x) for x in rows]).reshape(xx0.shape)
        walls = np.array([[*program.inequalities(x), *program.equalities(x)] for x in rows])
        walls = walls.T.reshape(-1, *xx0.shape)
        solution = program.solve()
        forces = program.forces(solution.x, solution.lam, solution.nu)
        found = np.concatenate([solution.lam, solution.nu])
        idle = np.abs(found) <= 1e-9 * np.abs(found).max(initial=0.0)
        prices = ", ".join(f"{price:.3g}" for price in np.where(idle, 0.0, found))
        text = f"the forces balance at f = {solution.primal:.4g}; multipliers {prices or 'none'}"
        count = program.n_inequalities
        return cls(xx0, xx1, f, walls, count, solution.x, forces, text).plot(ax, **kwargs)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            ink, lines = ink_of(axes), matplotlib_module("lines")
            look = {"colors": FAINT, "linewidths": 0.8}
            self.contours_ = axes.contour(self.xx0, self.xx1, self.f, 14, **look)
            outside = np.any(self.walls[: self.n_inequalities] > 0, axis=0)
            if outside.any() and not outside.all():
                look = {"levels": [0.5, 1.5], "colors": [FAINT], "alpha": 0.25}
                axes.contourf(self.xx0, self.xx1, outside.astype(float), **look)
            self.walls_, handles = [], []
            for place, wall in enumerate(self.walls):
                kind = "g" if place < self.n_inequalities else "h"
                number = place if kind == "g" else place - self.n_inequalities
                colour = colour_of(place + 1)
                if wall.min() < 0 < wall.max():
                    look = {"levels": [0.0], "colors": [colour], "linewidths": 2.0}
                    self.walls_.append(axes.contour(self.xx0, self.xx1, wall, **look))
                handles.append(lines.Line2D([], [], color=colour, label=f"{kind}{number} = 0"))
            axes.plot(*self.x, "o", color=ink, ms=9, zorder=5)
            self._arrows(axes)
            slope = lines.Line2D([], [], color=colour_of(0), lw=3, label="negative gradient of f")
            axes.set_aspect("equal")
            axis_labels(axes, "x0", "x1")
            title(axes, self.text)
            legend_beside(axes, handles=[slope, *handles])
        return self

    def _arrows(self, axes: Any) -> None:
        """Draw the forces to one scale, equal ones of the same length."""
        strongest = float(np.linalg.norm(self.forces, axis=1).max())
        unit = _LONG * float(np.ptp(self.xx0)) / strongest if strongest > 0 else 0.0
        self.arrows_ = []
        for place, force in enumerate(self.forces):
            if not np.linalg.norm(force) > 1e-6 * strongest:
                continue
            look = {"color": colour_of(place), "width": 0.012, "zorder": 4}
            look |= {"angles": "xy", "scale_units": "xy", "scale": 1.0}
            self.arrows_.append(axes.quiver(*self.x, *(unit * force), **look))


# --- image set -----------------------------------------------------------------------------------
#
# A program with one constraint in the plane of g and f: supporting lines, and the gap.

_RAISED = 0.04  # of the height: margin around the drawing


@dataclass(eq=False)
class ImageSetDisplay(Display):
    """The image set of a program, its lowest feasible point, and lines that support it from below.

    Where a line meets g = 0 is the dual function at its multiplier: none is above the lowest
    feasible point (weak duality). The highest one is the dual optimum, and the difference
    between both is the duality gap.

    Parameters
    ----------
    g, f : array of shape (n_points,)
        Points of the image set.
    curve : bool
        Whether they follow each other along a curve, as with one variable.
    lines : list of SupportingLine
        The best one first.
    point : (float, float)
        The lowest feasible point.
    equality : bool
        Whether feasible means g = 0, and not g <= 0.
    text : str
        The title.

    Attributes
    ----------
    image_ : Line2D or PathCollection
        The image set.
    lines_ : list of Line2D
        The supporting lines.
    point_, bound_ : Line2D
        The lowest feasible point, and the highest intercept.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    ForcesDisplay : The same program in the plane of its variables.

    Examples
    --------
    >>> from mercer.plots import ImageSetDisplay
    >>> from mercer.theory import double_well_program
    >>> shown = ImageSetDisplay.from_program(double_well_program(), bounds=(-1.5, 1.5))
    >>> round(shown.point[1] - shown.lines[0].intercept, 3)  # the gap
    0.927
    """

    g: Array
    f: Array
    curve: bool
    lines: list[SupportingLine]
    point: tuple[float, float]
    equality: bool
    text: str = ""

    @classmethod
    def from_program(
        cls,
        program: Program,
        bounds: tuple[npt.ArrayLike, npt.ArrayLike],
        *,
        multipliers: npt.ArrayLike | None = None,
        resolution: int = 200,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Solve a program and draw its image set.

        Parameters
        ----------
        program : Program
            With one constraint, and one or two variables.
        bounds : (low, high)
            The box of variables that is mapped.
        multipliers : array-like, optional
            Multipliers whose lines are drawn next to the best one; by default half and twice the
            best.
        resolution : int
            Points along each variable.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ImageSetDisplay
            The display.
        """
        image = image_set(program, bounds, resolution)
        solution = program.solve()
        best = float(np.concatenate([solution.lam, solution.nu])[0])
        beside = [best / 2, 2 * best] if best else [0.5, 1.0]
        others = beside if multipliers is None else np.ravel(multipliers).tolist()
        lines = [supporting_line(program, mu) for mu in (best, *others)]
        there = np.concatenate([program.inequalities(solution.x), program.equalities(solution.x)])
        point = float(there[0]), solution.primal
        text = f"p* = {solution.primal:.4g}, d* = {solution.dual:.4g}: "
        gap = solution.gap
        text += f"a gap of {gap:.4g}" if gap > 1e-6 * max(1.0, abs(solution.primal)) else "no gap"
        shown = cls(image.g, image.f, program.n == 1, lines, point, program.n_equalities > 0, text)
        return shown.plot(ax, **kwargs)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            ink, best = ink_of(axes), self.lines[0]
            name = "image set (g(x), f(x))"
            if self.curve:
                self.image_ = axes.plot(self.g, self.f, color=colour_of(0), lw=2, label=name)[0]
            else:
                look = {"s": 4, "color": colour_of(0), "alpha": 0.35, "lw": 0}
                self.image_ = axes.scatter(self.g, self.f, rasterized=True, label=name, **look)
            self._limits(axes)
            ends = np.array(axes.get_xlim())
            if not self.equality:
                axes.axvspan(ends[0], 0.0, color=FAINT, alpha=0.12, lw=0, zorder=0)
            axes.axvline(0.0, color=FAINT, lw=1, zorder=1)
            self.lines_ = []
            for line in self.lines:
                if not np.isfinite(line.intercept):
                    continue
                first = line is best
                look = {"color": colour_of(1), "lw": 1.8 if first else 0.9}
                look |= {"ls": "-" if first else "--"}
                label = f"supporting line, slope {0.0 - line.mu:.3g}"
                self.lines_ += axes.plot(ends, line.at(ends), label=label, **look)
            axes.plot([self.point[0], 0.0], [self.point[1]] * 2, ":", color=ink, lw=1)
            (self.point_,) = axes.plot(
                *self.point, "o", ms=9, color=ink, label="lowest feasible point", zorder=4
            )
            look = {"ms": 6, "color": colour_of(1), "label": "dual optimum", "zorder": 5}
            (self.bound_,) = axes.plot(0.0, best.intercept, "D", **look)
            if self.point[1] - best.intercept > _RAISED * np.ptp(axes.get_ylim()):
                axes.plot([0.0, 0.0], [best.intercept, self.point[1]], color=colour_of(3), lw=4,
                          solid_capstyle="butt", label="duality gap", zorder=3)  # fmt: skip
            axes.set_xlim(ends)
            axis_labels(axes, "constraint g", "objective f")
            title(axes, self.text)
            legend_beside(axes)
        return self

    def _limits(self, axes: Any) -> None:
        """Show the lower part of the image set: what lies high above matters to no line."""
        lowest = min(float(self.f.min()), self.lines[0].intercept, self.point[1])
        near = max(float(np.quantile(self.f, 0.75)), self.point[1])
        axes.set_ylim(lowest - 0.15 * (near - lowest), near + 0.25 * (near - lowest))
        wide = self.g[self.f <= near + 0.25 * (near - lowest)]
        axes.set_xlim(min(float(wide.min()), 0.0), max(float(wide.max()), 0.0))
        axes.margins(x=_RAISED)
