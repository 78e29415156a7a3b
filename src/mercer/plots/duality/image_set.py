"""A program with one constraint in the plane of g and f: supporting lines, and the gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.plots.appearance import FAINT, axis_labels, colour_of, ink_of, legend_beside, title
from mercer.plots.display import Display
from mercer.theory import Program, SupportingLine, image_set, supporting_line

_RAISED = 0.04  # of the height: margin around what is drawn


@dataclass(eq=False)
class ImageSetDisplay(Display):
    """The image set of a program, its lowest feasible point, and lines that support it from below.

    Where a line meets g = 0 is the dual function at its multiplier: none is above the lowest
    feasible point (weak duality). The highest one is the dual optimum, and what is left between
    both is the duality gap.

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
        Where it was drawn.

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
            Whose lines are drawn beside the best one; half and twice the best unless given.
        resolution : int
            Points along each variable.
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ImageSetDisplay
            What was drawn.
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
            Where to draw; None makes a figure.

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
