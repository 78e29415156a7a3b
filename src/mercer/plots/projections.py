"""Looking at data: rows along one direction or two, and pairs of canonical variates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.array_types import Array
from mercer.plots.base import (
    FAINT,
    SEQUENTIAL,
    Display,
    axis_labels,
    colour_of,
    described,
    fitted,
    ink_of,
    inner_machine,
    legend_beside,
    marker_of,
    plain,
    title,
    wrong_machine,
)
from mercer.plots.planes import directions_of
from mercer.plots.regions import point_size

_MOST_CLASSES = 20  # more different numbers are a target, shown by shades
_DIRECTIONS = {
    "random": "Random directions",
    "principal": "Principal components",
    "discriminant": "Discriminant directions",
    "non_gaussian": "Directions that look least Gaussian",
}


@dataclass(eq=False)
class ProjectionDisplay(Display):
    """Rows as points: two projections of them, colored by label or target.

    Parameters
    ----------
    points : array of shape (n_samples, 2)
        The two projections.
    y : array of shape (n_samples,) or None
        Labels, or a target: numbers with more than 20 different values are shown as shades.
    xlabel, ylabel, text : str
        Names of the axes, and the title.

    Attributes
    ----------
    points_ : list of PathCollection
        The rows of each class; one for all without labels.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    ProjectionHistogramDisplay : One projection.
    SpectrumDisplay : How much each component explains.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.plots import ProjectionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> shown = ProjectionDisplay.from_directions(X, y, directions="discriminant")
    >>> shown.points.shape, shown.xlabel
    ((150, 2), 'discriminant direction 1')
    """

    points: Array
    y: Array | None
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
        components: tuple[int, int] = (0, 1),
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw two columns of the output of a fitted estimator's `transform`.

        Parameters
        ----------
        estimator : estimator
            A fitted `PCA`, `FisherDiscriminant`, `CCA` (its first view), `SpectralClustering`, or
            any other with `transform`; pipelines as well.
        X : array-like, sparse matrix or table
            Rows.
        y : array-like of shape (n_samples,), optional
            Labels or targets.
        components : pair of int
            Indices of the columns, from 0.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ProjectionDisplay
            The display.
        """
        scores, names, text = _transformed(cls.__name__, estimator, X, components)
        y = _targets(y, len(scores), cls.__name__)
        return cls(scores, y, names[0], names[1], text).plot(ax, **kwargs)

    @classmethod
    def from_directions(
        cls,
        X: Any,
        y: Any = None,
        *,
        directions: Any = "principal",
        components: tuple[int, int] = (0, 1),
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw rows along two directions; no estimator is needed.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows of numbers; scale columns of different units first.
        y : array-like of shape (n_samples,), optional
            Labels or targets.
        directions : {"principal", "random", "discriminant", "non_gaussian"} or (k, d) array
            "non_gaussian" is projection pursuit by independent component analysis, directions
            sorted by how far from Gaussian rows look along them; "discriminant" needs labels.
        components : pair of int
            Indices of the directions, from 0.
        random_state : int
            Seed of random directions and of the start of the pursuit.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ProjectionDisplay
            The display.
        """
        chosen = _chosen(cls.__name__, components, 2)
        scores, names, text = _along(cls.__name__, X, y, directions, chosen, random_state)
        y = _targets(y, len(scores), cls.__name__)
        return cls(scores, y, names[0], names[1], text).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `scatter`, such as `s` or `alpha`.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            self.points_ = scatter_by(axes, self.points, self.y, **kwargs)
            axis_labels(axes, self.xlabel, self.ylabel)
            title(axes, self.text)
        return self


@dataclass(eq=False)
class ProjectionHistogramDisplay(Display):
    """Rows along one direction: a histogram of each class, and the Gaussian of all rows.

    Parameters
    ----------
    scores : array of shape (n_samples,)
        The projection.
    y : array of shape (n_samples,) or None
        Labels.
    xlabel, text : str
        Name of the axis, and the title.

    Attributes
    ----------
    counts_ : array of shape (n_classes, n_bins)
        Rows of each class in each bin.
    edges_ : array of shape (n_bins + 1,)
        Edges of the bins.
    patches_ : list of StepPatch
        The histograms.
    line_ : Line2D
        Rows in each bin that a Gaussian of the same mean and variance would have.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    ProjectionDisplay : Two projections.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.plots import ProjectionHistogramDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> shown = ProjectionHistogramDisplay.from_directions(X, y, directions="non_gaussian")
    >>> int(shown.counts_.sum())
    150
    """

    scores: Array
    y: Array | None
    xlabel: str
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        component: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw one column of the output of a fitted estimator's `transform`.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `transform`; also pipelines.
        X : array-like, sparse matrix or table
            Rows.
        y : array-like of shape (n_samples,), optional
            Labels.
        component : int
            Index of the column, from 0.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ProjectionHistogramDisplay
            The display.
        """
        scores, names, text = _transformed(cls.__name__, estimator, X, component)
        y = _targets(y, len(scores), cls.__name__)
        return cls(scores[:, 0], y, names[0], text).plot(ax, **kwargs)

    @classmethod
    def from_directions(
        cls,
        X: Any,
        y: Any = None,
        *,
        directions: Any = "principal",
        component: int = 0,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw rows along one direction; no estimator is needed.

        Parameters
        ----------
        X, y, directions, random_state, ax, **kwargs
            As in `ProjectionDisplay.from_directions`.
        component : int
            Index of the direction, from 0.

        Returns
        -------
        ProjectionHistogramDisplay
            The display.
        """
        chosen = _chosen(cls.__name__, component, 1)
        scores, names, text = _along(cls.__name__, X, y, directions, chosen, random_state)
        y = _targets(y, len(scores), cls.__name__)
        return cls(scores[:, 0], y, names[0], text).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, bins: Any = None, gaussian: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        bins : int, str or array, optional
            As in `numpy.histogram_bin_edges`; None takes from 10 to 40, more for more rows.
        gaussian : bool
            Whether the Gaussian of the same mean and variance is drawn.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        labels = np.zeros(len(self.scores)) if self.y is None else self.y
        classes = np.unique(labels)
        if len(classes) > _MOST_CLASSES:
            raise ValueError(
                f"{type(self).__name__}: y has {len(classes)} different values; histograms are "
                "drawn of classes. ProjectionDisplay shows a target by shades"
            )
        if bins is None:
            bins = int(np.clip(2 * np.sqrt(len(self.scores)), 10, 40))
        self.edges_ = np.histogram_bin_edges(self.scores, bins)
        self.counts_ = np.array(
            [np.histogram(self.scores[labels == c], self.edges_)[0] for c in classes]
        )
        with self._drawing(ax) as axes:
            self.patches_ = [
                axes.stairs(
                    counts, self.edges_, fill=True, alpha=0.55, color=colour_of(k),
                    label=None if self.y is None else plain(classes[k]),
                )
                for k, counts in enumerate(self.counts_)
            ]  # fmt: skip
            for k, counts in enumerate(self.counts_):  # outlines tell overlapping ones apart
                axes.stairs(counts, self.edges_, color=colour_of(k), linewidth=1.4)
            if gaussian:
                x, y = self._bell()
                (self.line_,) = axes.plot(
                    x, y, color=ink_of(axes), linestyle="--", linewidth=1.2, label="Gaussian"
                )
            axis_labels(axes, self.xlabel, "rows in a bin")
            title(axes, self.text)
            legend_beside(axes)
        return self

    def _bell(self) -> tuple[Array, Array]:
        mean, spread = self.scores.mean(), self.scores.std() or 1.0
        x = np.linspace(self.edges_[0], self.edges_[-1], 200)
        density = np.exp(-0.5 * ((x - mean) / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
        return x, density * len(self.scores) * np.diff(self.edges_).mean()


@dataclass(eq=False)
class CanonicalPairsDisplay(Display):
    """A pair of canonical variates: what two views of the same rows agree on.

    Parameters
    ----------
    points : array of shape (n_samples, 2)
        The variate of each view.
    correlation : float
        Their correlation on these rows.
    y : array of shape (n_samples,) or None
        Labels or a target, for colors.
    pair : int
        Index of the pair, from 0.
    text : str
        The title.

    Attributes
    ----------
    points_ : list of PathCollection
        The rows of each class; one for all without labels.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    SpectrumDisplay : The correlations of all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import CCA
    >>> from mercer.plots import CanonicalPairsDisplay
    >>> rng = np.random.default_rng(0)
    >>> common = rng.normal(size=(200, 1))
    >>> X, Y = (common + 0.3 * rng.normal(size=(200, 3)) for _ in range(2))
    >>> shown = CanonicalPairsDisplay.from_estimator(CCA(1).fit(X, Y), X, Y)
    >>> shown.correlation > 0.9
    True
    """

    points: Array
    correlation: float
    y: Array | None
    pair: int = 0
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        Y: Any,
        *,
        pair: int = 0,
        labels: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a pair of variates of a fitted `CCA`.

        Parameters
        ----------
        estimator : CCA
            Fitted.
        X, Y : array-like
            The two views of the same rows, best of rows that it was not fitted to.
        pair : int
            Index of the pair, from 0.
        labels : array-like of shape (n_samples,), optional
            Labels or a target, for colors.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        CanonicalPairsDisplay
            The display.
        """
        name = cls.__name__
        machine = inner_machine(fitted(name, estimator))
        if not hasattr(machine, "transform_y"):
            raise wrong_machine(name, "a CCA", machine)
        views = [np.asarray(machine.transform(X)), np.asarray(machine.transform_y(Y))]
        _check_component(name, "pair", pair, views[0].shape[1])
        points = np.column_stack([view[:, pair] for view in views])
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = float(np.corrcoef(points.T)[0, 1])
        text = f"{described(machine)}\ncorrelation {correlation:.3f} on {len(points)} rows"
        y = _targets(labels, len(points), name)
        return cls(points, correlation, y, pair, text).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `scatter`, such as `s` or `alpha`.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            self.points_ = scatter_by(axes, self.points, self.y, **kwargs)
            number = self.pair + 1
            axis_labels(
                axes, f"variate {number} of the first view", f"variate {number} of the second"
            )
            title(axes, self.text)
        return self


def scatter_by(ax: Any, points: Array, y: Array | None, **kwargs: Any) -> list[Any]:
    """Draw points colored by class, or by the shades of a target."""
    look = {"s": point_size(len(points)), "alpha": 0.8, "linewidths": 0, **kwargs}
    if y is None:
        return [ax.scatter(*points.T, **{"c": colour_of(0), **look})]
    classes = np.unique(y)
    if len(classes) > _MOST_CLASSES and y.dtype.kind in "fiu":
        drawn = ax.scatter(*points.T, c=y, cmap=SEQUENTIAL, **look)
        ax.figure.colorbar(drawn, ax=ax, label="target y")
        return [drawn]
    if len(classes) > _MOST_CLASSES:
        return [ax.scatter(*points.T, **{"c": FAINT, **look})]
    drawn = [
        ax.scatter(
            *points[y == c].T, c=colour_of(k), marker=marker_of(k), label=plain(c), **look
        )
        for k, c in enumerate(classes)
    ]  # fmt: skip
    legend_beside(ax)
    return drawn


def _targets(y: Any, n: int, display: str) -> Array | None:
    if y is None:
        return None
    found = np.asarray(y).ravel()
    if len(found) != n:
        raise ValueError(f"{display}: {n} rows, but {len(found)} labels in y")
    return found


def _chosen(display: str, components: Any, count: int) -> list[int]:
    chosen = np.atleast_1d(np.asarray(components))
    if len(chosen) != count or chosen.dtype.kind not in "iu" or (chosen < 0).any():
        what = "component must be an integer" if count == 1 else "components must be two indices"
        raise ValueError(f"{display}: {what}, counted from 0; got {components!r}")
    return [int(place) for place in chosen]


def _check_component(display: str, name: str, place: int, count: int) -> None:
    if not 0 <= place < count:
        raise ValueError(f"{display}: {name}={place} is not among 0 to {count - 1}")


def _transformed(
    display: str, estimator: Any, X: Any, components: Any
) -> tuple[Array, list[str], str]:
    """Return some columns of a transformation, their names, and a title."""
    estimator = fitted(display, estimator)
    machine = inner_machine(estimator)
    if not hasattr(estimator, "transform"):
        raise wrong_machine(display, "an estimator with transform", machine)
    count = 2 if np.ndim(components) else 1
    chosen = _chosen(display, components, count)
    scores = np.asarray(estimator.transform(X))
    if count == 2 and scores.shape[1] == 1:
        raise ValueError(
            f"{display}: {type(machine).__name__} has one component; ProjectionHistogramDisplay "
            "draws it"
        )
    for place in chosen:
        _check_component(display, "component", place, scores.shape[1])
    names = [_component_name(machine, place) for place in chosen]
    return scores[:, chosen], names, described(estimator)


def _component_name(machine: Any, place: int) -> str:
    shares = getattr(machine, "explained_variance_ratio_", None)
    if shares is not None:
        return f"principal component {place + 1} ({100 * shares[place]:.0f} % of the variance)"
    kind = "discriminant direction" if hasattr(machine, "ratios_") else "component"
    kind = "canonical variate" if hasattr(machine, "correlations_") else kind
    return f"{kind} {place + 1}"


def _along(
    display: str, X: Any, y: Any, directions: Any, chosen: list[int], random_state: int
) -> tuple[Array, list[str], str]:
    count = max(chosen) + 1
    found = directions_of(display, X, y, directions, count, random_state)
    text = _DIRECTIONS[directions] if isinstance(directions, str) else "Custom directions"
    n, d = np.shape(X)
    return (
        found.scores[:, chosen],
        [found.names[place] for place in chosen],
        f"{text} of {n} rows, {d} columns",
    )
