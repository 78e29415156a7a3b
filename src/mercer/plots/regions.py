"""Decision regions: over two columns of many, or over a plane of directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_clusterer, is_outlier_detector, is_regressor

from mercer.array_types import Array
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
    marker_of,
    matplotlib_module,
    plain,
    title,
    wrong_machine,
)
from mercer.plots.planes import ViewPlane, plane_of

_METHODS = ("decision_function", "predict_proba", "predict")


@dataclass(eq=False)
class DecisionRegionDisplay(Display):
    """Regions of the plane by the prediction of a classifier, detector or clustering.

    Made by `from_estimator`; drawn again, elsewhere or otherwise, by `plot`.

    Parameters
    ----------
    xx0, xx1 : array of shape (resolution, resolution)
        The grid.
    response : array of shape (resolution, resolution) or (resolution, resolution, n_classes)
        For two classes, a value that is positive for the second; else a score of each class,
        of which the largest wins.
    classes : array of shape (n_classes,)
        The labels.
    points : array of shape (n_samples, 2)
        The rows in the plane.
    codes : int array of shape (n_samples,) or None
        The class of each row as its place in `classes`; -1 for labels that are not among them.
    xlabel, ylabel, text : str
        Names of the axes, and the title.

    Attributes
    ----------
    surface_ : list of ContourSet
        The region of each class.
    boundary_ : list of ContourSet
        The boundaries: zeros of `response`, or points where the class's score equals the best of
        the others.
    points_ : list of PathCollection
        The rows of each class.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    MarginDisplay : Margin and support vectors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import GaussianClassifier
    >>> from mercer.plots import DecisionRegionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = GaussianClassifier().fit(X, y)
    >>> shown = DecisionRegionDisplay.from_estimator(machine, X, y, features=(2, 3))
    >>> print(shown.ax_.get_title(loc="left"))
    GaussianClassifier()
    the other 2 columns at their median
    """

    xx0: Array
    xx1: Array
    response: Array
    classes: Array
    points: Array
    codes: Array | None
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
        response_method: str = "auto",
        grid_resolution: int = 200,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the regions of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, detector of novelty, or clustering that predicts; pipelines and
            searches as well.
        X : array-like or table of shape (n_samples, n_features)
            Rows: they set the range, and are drawn.
        y : array-like of shape (n_samples,), optional
            Their labels.
        features : pair of names or places, optional
            The columns of the axes; required if there are more than two.
        plane : {"principal", "discriminant", "random", "non_gaussian"} or (2, d) array, optional
            In place of `features`: the plane of two directions, through the mean. For a pipeline,
            directions among the rows as its last step sees them.
        held : "median", dict or row
            Where the columns that are not shown are held (the most frequent value of those that
            hold no numbers).
        response_method : {"auto", "decision_function", "predict_proba", "predict"}
            The response; "auto" uses the first that the estimator has and that agrees with
            `predict` on X.
        grid_resolution : int
            Points of the grid along each axis.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        DecisionRegionDisplay
            The display.
        """
        name = cls.__name__
        estimator = fitted(name, estimator)
        machine = inner_machine(estimator)
        if is_regressor(machine) or not hasattr(machine, "predict"):
            raise wrong_machine(name, "a classifier, detector or clustering that predicts", machine)
        text = described(estimator)
        if plane is not None:
            X, estimator = inner_rows(estimator, X), machine
        area = plane_of(name, X, y, features, plane, held)
        classes = _classes(machine)
        method = _method(name, estimator, X, response_method, classes)
        xx0, xx1 = area.grid(grid_resolution, name)
        response = _response(estimator, area, method, classes, xx0, xx1)
        codes = None if y is None else _codes(name, classes, y, len(area.points))
        text = "\n".join(filter(None, (text, area.note)))
        shown = cls(xx0, xx1, response, classes, area.points, codes, area.xlabel, area.ylabel, text)
        return shown.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, points: bool = True, alpha: float = 0.22) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        points : bool
            Whether the rows are drawn.
        alpha : float
            How strong the colors of the regions are.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            ink = ink_of(axes)
            self.surface_: list[Any] = []
            self.boundary_: list[Any] = []
            self.points_: list[Any] = []
            for place, lead in enumerate(self.leads):
                if lead.max() > 0:
                    levels, colour = [0.0, lead.max() * 1.01], colour_of(place)
                    self.surface_.append(
                        axes.contourf(
                            self.xx0, self.xx1, lead, levels, colors=[colour], alpha=alpha
                        )
                    )
                    if lead.min() < 0 and (place or len(self.classes) > 2):
                        self.boundary_.append(
                            axes.contour(
                                self.xx0, self.xx1, lead, [0.0], colors=ink, linewidths=1.4
                            )
                        )
            if points:
                self._draw_points(axes)
            labelled = points and self.codes is not None
            axis_labels(axes, self.xlabel, self.ylabel)
            axes.set(xlim=(self.xx0.min(), self.xx0.max()), ylim=(self.xx1.min(), self.xx1.max()))
            title(axes, self.text)
            legend_beside(axes, handles=None if labelled else self._regions(alpha))
        return self

    @property
    def leads(self) -> list[Array]:
        """By how much each class is ahead of the best of the others, over the grid."""
        if self.response.ndim == 2:
            return [-self.response, self.response]
        count = self.response.shape[2]
        if count == 1:
            return [np.ones(self.response.shape[:2])]
        return [
            self.response[..., k] - np.delete(self.response, k, axis=2).max(axis=2)
            for k in range(count)
        ]

    def _draw_points(self, ax: Any) -> None:
        look = {"s": point_size(len(self.points)), "linewidths": 0, "alpha": 0.85}
        if self.codes is None:
            self.points_.append(ax.scatter(*self.points.T, c=FAINT, **look))
            return
        for place, label in enumerate(self.classes):
            rows = self.points[self.codes == place]
            self.points_.append(
                ax.scatter(
                    *rows.T, c=colour_of(place), marker=marker_of(place), label=plain(label), **look
                )
            )
        if (self.codes < 0).any():
            self.points_.append(
                ax.scatter(*self.points[self.codes < 0].T, c=FAINT, label="other labels", **look)
            )

    def _regions(self, alpha: float) -> list[Any]:
        """Return a patch of each class, for the legend."""
        patch = matplotlib_module("patches").Patch
        return [
            patch(facecolor=colour_of(place), alpha=min(1.0, 2 * alpha), label=plain(label))
            for place, label in enumerate(self.classes)
        ]


def point_size(count: int) -> float:
    """Return the area of a point: smaller for many points."""
    return float(np.clip(14000 / max(count, 1), 9.0, 28.0))


def _classes(machine: Any) -> Array:
    if is_outlier_detector(machine):
        return np.array([-1, 1])
    if is_clusterer(machine):
        return np.unique(machine.labels_)
    return np.asarray(machine.classes_)


def _codes(display: str, classes: Array, y: Any, n: int) -> Array:
    labels = np.asarray(y).ravel()
    if len(labels) != n:
        raise ValueError(f"{display}: {n} rows, but {len(labels)} labels in y")
    place = {label: k for k, label in enumerate(classes.tolist())}
    return np.array([place.get(label, -1) for label in labels.tolist()])


def _method(display: str, estimator: Any, X: Any, wanted: str, classes: Array) -> str:
    """Return what to evaluate; its regions must be those of `predict`."""
    offered = [method for method in _METHODS if hasattr(estimator, method)]
    if wanted != "auto":
        if wanted not in offered:
            raise ValueError(
                f"{display}: response_method={wanted!r} must be 'auto' or one of "
                f"{', '.join(offered)}, which {type(estimator).__name__} has"
            )
        return wanted
    for method in offered[:-1]:
        implied = _scores(getattr(estimator, method)(X), method, classes)
        if implied.ndim == 1:
            found = (implied > 0).astype(int)
        elif implied.shape[1] == len(classes):
            found = implied.argmax(axis=1)
        else:
            continue
        if np.array_equal(classes[found], np.asarray(estimator.predict(X))):
            return method
    return "predict"


def _scores(given: Any, method: str, classes: Array) -> Array:
    """Return values that are positive for the second of two classes, or one score per class."""
    values: Array = np.asarray(given)
    if method == "predict":
        same = values[:, None] == classes
        found = np.where(same[:, 1], 1.0, -1.0) if len(classes) == 2 else same.astype(np.float64)
        return np.asarray(found)
    if len(classes) == 2 and values.ndim == 2:
        return np.asarray(values[:, 1] - values[:, 0])
    return values


def _response(
    estimator: Any, area: ViewPlane, method: str, classes: Array, xx0: Array, xx1: Array
) -> Array:
    function = getattr(estimator, method)
    return area.evaluate(lambda rows: _scores(function(rows), method, classes), xx0, xx1)
