"""Support vector machines: the margin and who carries it, and the tube of regression."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from mercer.array_types import Array
from mercer.machines.svm.multiclass import zones
from mercer.plots.base import (
    FAINT,
    Display,
    axis_labels,
    colour_of,
    described,
    fitted,
    ink_of,
    inner_machine,
    inner_rows,
    legend_beside,
    matplotlib_module,
    mixed,
    paper_of,
    plain,
    title,
    wrong_machine,
)
from mercer.plots.planes import TableColumns, axis_of, plane_of
from mercer.plots.regions import point_size
from mercer.rows.points import is_sparse
from mercer.selection.folds import count_rows, take_rows

_STEPS = 21  # shades of the decision value
_MARGIN = {
    "beyond": "beyond the margin",
    "on": "on the margin",
    "inside": "inside, or on the wrong side",
}
_BORDER = {"inside": "inside", "on": "on the boundary", "outside": "outside: novel"}
_ZONES = ("beyond", "on", "inside")
_SIDES = ("inside", "on", "outside")
_TUBE = {"inside": "inside the tube", "on": "on its edge", "outside": "outside"}


@dataclass(eq=False)
class MarginDisplay(Display):
    """Decision values of a support vector machine, its margin, and the rows that carry it.

    Shades and lines show f, with f = 0 (the decision) and f = -1 and 1 (the margin); a detector of
    novelty has f = 0 alone. Rows are drawn by their zone: beyond the margin they carry nothing, on
    it and inside they are the support vectors.

    Parameters
    ----------
    xx0, xx1 : array of shape (resolution, resolution)
        The grid.
    response : array of shape (resolution, resolution)
        The decision values f.
    levels : tuple of float
        Values of f that are drawn as lines.
    points : array of shape (n_samples, 2)
        The rows in the plane.
    codes : int array of shape (n_samples,)
        The class of each row as its place in `classes`.
    zone : array of str of shape (n_samples,)
        "beyond", "on" or "inside" the margin; for detectors "inside", "on" or "outside".
    classes : array
        The labels; empty for detectors.
    xlabel, ylabel, text : str
        Names of the axes, and the title.

    Attributes
    ----------
    surface_, lines_ : ContourSet
        Shades of f, and the lines at `levels`.
    points_ : dict of str to list of PathCollection
        The rows of each zone, by class.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    DecisionRegionDisplay : Regions of any number of classes.
    TubeDisplay : The same for regression.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.plots import MarginDisplay
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> shown = MarginDisplay.from_estimator(SVC(Gaussian(0.6), C=5.0).fit(X, y), X, y)
    >>> print(shown.text)
    SVC(kernel=Gaussian(scale=0.6), C=5)
    18 of 100 rows are support vectors
    """

    xx0: Array
    xx1: Array
    response: Array
    levels: tuple[float, ...]
    points: Array
    codes: Array
    zone: Array
    classes: Array
    xlabel: str
    ylabel: str
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Any = None,
        plane: Any = None,
        held: Any = "median",
        grid_resolution: int = 200,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the margin of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted `SVC` of two classes, `OneClassSVM` or `EnclosingBall`, their drop-ins, or
            scikit-learn's; inside a pipeline or tuned as well.
        X : array-like or table of shape (n_samples, n_features)
            Rows, such as those of the fit.
        y : array-like of shape (n_samples,)
            Their labels; not for detectors.
        features, plane, held, grid_resolution
            The plane, as in `DecisionRegionDisplay.from_estimator`.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        MarginDisplay
            The display.
        """
        name = cls.__name__
        estimator = fitted(name, estimator)
        machine = _support_machine(name, estimator)
        text = described(estimator)
        rows = inner_rows(estimator, X)
        own = _holds_support(machine, rows)
        if plane is not None:
            X, estimator = rows, machine
        area = plane_of(name, X, y, features, plane, held)
        f = np.asarray(estimator.decision_function(X)).ravel()
        n, tol = len(f), float(getattr(machine, "tol", 1e-3))
        if is_classifier(machine):
            classes, codes = machine.classes_, _two_codes(name, machine, y, n)
            found = zones(np.where(codes == 1, f, -f) - 1.0, tol, _ZONES)
        else:
            classes, codes = np.array([]), np.zeros(n, dtype=int)
            size = abs(float(np.ravel(getattr(machine, "offset_", 1.0))[0])) or 1.0
            found = zones(f, tol * size, _SIDES)
        xx0, xx1 = area.grid(grid_resolution, name)
        response = area.evaluate(lambda rows: np.ravel(estimator.decision_function(rows)), xx0, xx1)
        count = len(machine.support_)
        said = f"{count} of {n} rows are support vectors"
        if not own:
            said = f"{count} support vectors, among the rows of the fit"
        text = "\n".join((text, "; ".join(filter(None, (said, area.note)))))
        levels = (-1.0, 0.0, 1.0) if len(classes) else (0.0,)
        shown = cls(
            xx0, xx1, response, levels, area.points, codes, found.zone, classes,
            area.xlabel, area.ylabel, text,
        )  # fmt: skip
        return shown.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, shades: bool = True, points: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        shades : bool
            Whether decision values are shown as colors.
        points : bool
            Whether the rows are drawn.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            ink = ink_of(axes)
            limit = float(np.abs(self.response).max()) or 1.0
            if shades:
                levels = np.linspace(-limit, limit, _STEPS)
                colours = _shades(paper_of(axes), two=bool(len(self.classes)))
                self.surface_ = axes.contourf(
                    self.xx0, self.xx1, self.response, levels, cmap=colours
                )
            low, high = self.response.min(), self.response.max()
            drawn = [level for level in self.levels if low < level < high]
            if drawn:
                self.lines_ = axes.contour(
                    self.xx0, self.xx1, self.response, drawn, colors=ink,
                    linewidths=[1.8 if level == 0 else 1.0 for level in drawn],
                    linestyles=["-" if level == 0 else "--" for level in drawn],
                )  # fmt: skip
                if len(drawn) > 1:
                    names = {level: f"f = {level:g}" for level in drawn}
                    axes.clabel(self.lines_, fmt=names, fontsize="small")
            if points:
                self._draw_points(axes, ink)
            axis_labels(axes, self.xlabel, self.ylabel)
            title(axes, self.text)
            legend_beside(axes)
        return self

    def _draw_points(self, ax: Any, ink: str) -> None:
        names = _MARGIN if len(self.classes) else _BORDER
        size = point_size(len(self.points))
        looks: list[dict[str, Any]] = [
            {"marker": "o", "s": 0.7 * size, "alpha": 0.55, "linewidths": 0},
            {"marker": "o", "s": 3.0 * size, "edgecolors": ink, "linewidths": 1.3},
            {"marker": "s", "s": 1.7 * size, "linewidths": 0},
        ]
        colours = [colour_of(k) for k in range(max(1, len(self.classes)))]
        self.points_ = {}
        for zone, look in zip(names, looks, strict=True):
            self.points_[zone] = [
                ax.scatter(*self.points[(self.zone == zone) & (self.codes == k)].T, c=c, **look)
                for k, c in enumerate(colours)
            ]
            label = f"{names[zone]}: {np.count_nonzero(self.zone == zone)}"
            ax.scatter([], [], c=FAINT, label=label, **look)
        for label, colour in zip(self.classes, colours, strict=False):
            ax.scatter(
                [], [], c=colour, marker="o", s=size, label=f"class {plain(label)}", linewidths=0
            )


@dataclass(eq=False)
class TubeDisplay(Display):
    """The function of a support vector regression, its tube, and the rows by their zone.

    Parameters
    ----------
    x : array of shape (n_places,)
        Places along the column that is shown.
    prediction : array of shape (n_places,)
        The function there, the other columns being held.
    epsilon : float
        Half the width of the tube.
    points : array of shape (n_samples, 2)
        The column and the target of each row.
    zone : array of str of shape (n_samples,)
        "inside", "on" or "outside" the tube.
    xlabel, ylabel, text : str
        Names of the axes, and the title.

    Attributes
    ----------
    tube_ : FillBetweenPolyCollection
        The tube.
    line_ : Line2D
        The function.
    points_ : dict of str to PathCollection
        The rows of each zone.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    MarginDisplay : The same for classification.
    ResidualsDisplay : Errors of any regression.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> from mercer.kernels import Gaussian
    >>> from mercer.plots import TubeDisplay
    >>> X = np.linspace(0, 6, 80)[:, None]
    >>> machine = SVR(Gaussian(1.0), C=10.0, epsilon=0.2).fit(X, np.sin(X[:, 0]))
    >>> TubeDisplay.from_estimator(machine, X, np.sin(X[:, 0])).epsilon
    0.2
    """

    x: Array
    prediction: Array
    epsilon: float
    points: Array
    zone: Array
    xlabel: str
    ylabel: str
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        feature: Any = None,
        held: Any = "median",
        grid_resolution: int = 400,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the tube of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted `SVR`, its drop-in, or scikit-learn's; inside a pipeline or tuned as well.
        X : array-like or table of shape (n_samples, n_features)
            Rows, such as those of the fit.
        y : array-like of shape (n_samples,)
            Their targets.
        feature : name or place, optional
            The column of the x axis; required if there is more than one.
        held : "median", dict or row
            Values of the other columns.
        grid_resolution : int
            Places along the x axis.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        TubeDisplay
            The display.
        """
        name = cls.__name__
        estimator = fitted(name, estimator)
        machine = inner_machine(estimator)
        if not (is_regressor(machine) and hasattr(machine, "epsilon")):
            raise wrong_machine(name, "a support vector regression (SVR)", machine)
        columns = TableColumns(name, X)
        if feature is None and len(columns.names) != 1:
            raise ValueError(
                f"{name}: X has {len(columns.names)} columns; choose one, such as feature=0"
            )
        place = columns.place(0 if feature is None else feature)
        shown = np.asarray(columns.values[place], dtype=np.float64)
        x = axis_of(shown, grid_resolution)
        rows = partial(columns.rows, (place,), columns.held(held))
        epsilon = float(getattr(machine, "epsilon_", machine.epsilon))
        targets = np.asarray(y, dtype=np.float64).ravel()
        error = targets - np.asarray(estimator.predict(X))
        found = zones(epsilon - np.abs(error), float(machine.tol), _SIDES)
        text = "\n".join(filter(None, (described(estimator), columns.note((place,), held))))
        label = str(getattr(y, "name", None) or "target y")
        drawn = cls(
            x, np.asarray(estimator.predict(rows(x[:, None]))), epsilon,
            np.column_stack([shown, targets]), found.zone, str(columns.names[place]), label, text,
        )  # fmt: skip
        return drawn.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, points: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        points : bool
            Whether the rows are drawn.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            ink, f = ink_of(axes), self.prediction
            self.tube_ = axes.fill_between(
                self.x, f - self.epsilon, f + self.epsilon, color=colour_of(0), alpha=0.2,
                linewidth=0, label=f"tube: ±{self.epsilon:.3g}",
            )  # fmt: skip
            (self.line_,) = axes.plot(self.x, f, color=ink, linewidth=1.8, label="f")
            if points:
                self._draw_points(axes, ink)
            axis_labels(axes, self.xlabel, self.ylabel)
            title(axes, self.text)
            legend_beside(axes)
        return self

    def _draw_points(self, ax: Any, ink: str) -> None:
        size = point_size(len(self.points))
        looks: list[dict[str, Any]] = [
            {"c": FAINT, "s": 0.7 * size, "linewidths": 0},
            {"c": paper_of(ax), "s": 2.0 * size, "edgecolors": ink, "linewidths": 1.3},
            {"c": colour_of(1), "s": 1.4 * size, "marker": "s", "linewidths": 0},
        ]
        self.points_ = {}
        for zone, look in zip(_TUBE, looks, strict=True):
            rows = self.zone == zone
            label = f"{_TUBE[zone]}: {np.count_nonzero(rows)}"
            self.points_[zone] = ax.scatter(*self.points[rows].T, label=label, zorder=3, **look)


def _support_machine(display: str, estimator: Any) -> Any:
    machine = inner_machine(estimator)
    decides = is_classifier(machine) or is_outlier_detector(machine)
    if not (decides and hasattr(machine, "support_") and hasattr(machine, "decision_function")):
        raise wrong_machine(display, "a support vector machine that decides", machine)
    if is_classifier(machine) and len(machine.classes_) != 2:
        raise ValueError(
            f"{display}: the margin needs two classes, but this {type(machine).__name__} has "
            f"{len(machine.classes_)}; use DecisionRegionDisplay"
        )
    return machine


def _holds_support(machine: Any, rows: Any) -> bool:
    """Return whether these are the rows of the fit, as far as support vectors tell."""
    support, vectors = machine.support_, getattr(machine, "support_vectors_", None)
    if support.max(initial=-1) >= count_rows(rows):
        return False
    if vectors is None or not np.size(vectors) or is_sparse(vectors):
        return True
    there = take_rows(rows, support)
    there = there.toarray() if is_sparse(there) else np.asarray(there)
    return there.shape == np.shape(vectors) and np.allclose(there, vectors, equal_nan=True)


def _two_codes(display: str, machine: Any, y: Any, n: int) -> Array:
    if y is None:
        raise ValueError(f"{display}: the margin of a classifier needs labels, y=")
    labels = np.asarray(y).ravel()
    if len(labels) != n or not np.isin(labels, machine.classes_).all():
        raise ValueError(f"{display}: y must hold {n} labels among {machine.classes_.tolist()}")
    return np.asarray(labels == machine.classes_[1]).astype(int)


def _shades(paper: str, two: bool) -> Any:
    """Return shades from one class to the other, or from outside to the paper inside."""
    make = matplotlib_module("colors").LinearSegmentedColormap.from_list
    first, second = (mixed(colour_of(k), paper, 0.55) for k in range(2))
    return make("margin", [first, paper, second] if two else [second, paper, first])
