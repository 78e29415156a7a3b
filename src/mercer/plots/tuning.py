"""A tuning as a heat map: the mean score of each setting of two parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from mercer.array_types import Array
from mercer.plots.base import (
    SEQUENTIAL,
    Display,
    axis_labels,
    colour_of,
    described,
    fitted,
    ink_on,
    legend_beside,
    plain,
    title,
    wrong_machine,
)
from mercer.selection import Tuning

_MOST_WRITTEN = 60  # cells large enough for their number
_MOST_TICKS = 10
_DEEP = 10  # standard errors below the best: shades end there, or the best ones all look alike


@dataclass(eq=False)
class TuningDisplay(Display):
    """Mean scores over a grid of one or two parameters, the best, and those as good as it.

    Dots mark settings within one standard error of the best. Cells without a score are empty.

    Parameters
    ----------
    values : tuple of lists
        The values of the parameter of the x axis, and of the y axis (one parameter: none).
    names : tuple of str
        The parameters.
    scores, errors : array of shape (n_y, n_x) or (n_x,)
        Mean score of each cell and its standard error; NaN without a score. With further
        parameters the best setting of these.
    best : tuple of int
        Place of the chosen setting.
    metric : str
        Name of the score.
    text : str
        The title.

    Attributes
    ----------
    image_ : QuadMesh or ErrorbarContainer
        The scores.
    best_ : Line2D
        The chosen setting.
    near_ : Line2D
        Settings within one standard error of it.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    mercer.selection.tune : Evaluate a grid.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.plots import TuningDisplay
    >>> from mercer.selection import tune
    >>> X, y = make_moons(120, noise=0.2, random_state=0)
    >>> found = tune(SVC(Gaussian(1.0)), X, y, grid={"C": [0.1, 10], "kernel__scale": [0.3, 1, 3]})
    >>> shown = TuningDisplay.from_tuning(found, params=("kernel__scale", "C"))
    >>> shown.scores.shape
    (2, 3)
    """

    values: tuple[list[Any], ...]
    names: tuple[str, ...]
    scores: Array
    errors: Array
    best: tuple[int, ...]
    metric: str
    text: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, params: Sequence[str] | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the scores of a fitted search.

        Parameters
        ----------
        estimator : Tuned or another search
            Fitted, with `cv_results_` as scikit-learn's `GridSearchCV` has it.
        params : names, optional
            As in `from_tuning`.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        TuningDisplay
            The display.
        """
        estimator = fitted(cls.__name__, estimator)
        results = getattr(estimator, "cv_results_", None)
        if results is None:
            raise wrong_machine(cls.__name__, "a fitted Tuned or GridSearchCV", estimator)
        tuning = getattr(estimator, "tuning_", None)
        text = described(estimator)
        if tuning is not None:
            return cls.from_tuning(tuning, params=params, name=text, ax=ax, **kwargs)
        scorer = estimator.refit if isinstance(estimator.refit, str) else "score"
        folds = [results[f"split{k}_test_{scorer}"] for k in range(estimator.n_splits_)]
        place = int(estimator.best_index_)
        made = _table(cls, results["params"], np.array(folds).T, place, scorer, params)
        made.text = f"{text}\n{made.text}"
        return made.plot(ax, **kwargs)

    @classmethod
    def from_tuning(
        cls,
        tuning: Tuning,
        *,
        params: Sequence[str] | None = None,
        name: str = "",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what `tune` found.

        Parameters
        ----------
        tuning : Tuning
            The result of `mercer.selection.tune`.
        params : one or two names, optional
            Parameters of the x axis and of the y axis; needed where more than two were varied. Of
            settings that differ in others only, the best is shown.
        name : str
            The name of the estimator, for the title.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        TuningDisplay
            The display.
        """
        if not isinstance(tuning, Tuning):
            raise TypeError(
                f"{cls.__name__}: needs the result of mercer.selection.tune, got "
                f"{type(tuning).__name__}; from_estimator takes a fitted Tuned or GridSearchCV"
            )
        made = _table(cls, tuning.points, tuning.scores, tuning.best, tuning.metric, params)
        made.text = "\n".join(filter(None, (name, made.text)))
        return made.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, cmap: Any = SEQUENTIAL, write: bool | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        cmap : color map
            Of the scores.
        write : bool, optional
            Whether scores are written in their cells; None if there is space.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            (self._draw_map if self.scores.ndim == 2 else self._draw_line)(axes, cmap, write)
            title(axes, self.text)
            legend_beside(axes)
        return self

    @property
    def near(self) -> Array:
        """Return which settings are within one standard error of the best."""
        error = np.nan_to_num(self.errors[self.best])
        with np.errstate(invalid="ignore"):
            return np.asarray(self.scores >= self.scores[self.best] - error)

    def _draw_map(self, ax: Any, cmap: Any, write: bool | None) -> None:
        rows, columns = self.scores.shape
        top = float(np.nanmax(self.scores))
        spread = float(np.nanmean(self.errors)) if np.isfinite(self.errors).any() else 0.0
        low = max(float(np.nanmin(self.scores)), top - _DEEP * spread if spread > 0 else -np.inf)
        self.image_ = ax.pcolormesh(
            np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5,
            np.ma.masked_invalid(self.scores), cmap=cmap, vmin=low, vmax=top,
        )  # fmt: skip
        for axis, values in zip((ax.xaxis, ax.yaxis), self.values, strict=True):
            step = max(1, -(-len(values) // _MOST_TICKS))
            axis.set_ticks(range(0, len(values), step), [_shown(v) for v in values[::step]])
        if max(len(_shown(v)) for v in self.values[0]) * min(columns, _MOST_TICKS) > 45:
            ax.tick_params(axis="x", labelrotation=45)
        axis_labels(ax, *self.names)
        if write or (write is None and self.scores.size <= _MOST_WRITTEN and columns <= 8):
            for (i, j), score in np.ndenumerate(self.scores):
                if np.isfinite(score):
                    ink = ink_on(self.image_.cmap(self.image_.norm(score)))
                    look = {"ha": "center", "va": "center", "color": ink, "fontsize": "x-small"}
                    ax.text(j, i, f"{score:.3f}", **look)
        y, x = np.nonzero(self.near)
        (self.near_,) = ax.plot(
            x, y - 0.3, ".", color="#FFFFFF", markeredgecolor="#262626", markersize=7,
            markeredgewidth=0.6, linestyle="none", label="within one standard error of it",
        )  # fmt: skip
        (self.best_,) = ax.plot(
            self.best[1], self.best[0], "s", markersize=30 if columns <= 8 else 15,
            fillstyle="none", markeredgecolor=colour_of(1), markeredgewidth=2.2, linestyle="none",
            label="chosen",
        )  # fmt: skip
        extend = "min" if low > np.nanmin(self.scores) else "neither"
        ax.figure.colorbar(self.image_, ax=ax, label=f"mean {self.metric}", extend=extend)

    def _draw_line(self, ax: Any, cmap: Any, write: bool | None) -> None:
        values = self.values[0]
        numbers = all(isinstance(v, int | float | np.number) for v in values)
        x = np.array(values, dtype=np.float64) if numbers else np.arange(len(values))
        self.image_ = ax.errorbar(
            x, self.scores, self.errors, color=colour_of(0), marker="o", markersize=5,
            capsize=3, linewidth=1.4, label="mean ± standard error",
        )  # fmt: skip
        near = self.near
        (self.near_,) = ax.plot(
            x[near], self.scores[near], "o", color=colour_of(2), markersize=6, linestyle="none",
            label="within one standard error", zorder=3,
        )  # fmt: skip
        place = self.best[0]
        (self.best_,) = ax.plot(
            x[place], self.scores[place], "s", markersize=12, fillstyle="none", linestyle="none",
            markeredgecolor=colour_of(1), markeredgewidth=2.0, label="chosen",
        )  # fmt: skip
        if numbers and (x > 0).all() and x.max() > 20 * x.min():
            ax.set_xscale("log")
        elif not numbers:
            ax.set_xticks(x, [_shown(v) for v in values])
        axis_labels(ax, self.names[0], f"mean {self.metric}")


_Shown = TypeVar("_Shown", bound=TuningDisplay)


def _table(
    cls: type[_Shown],
    points: Sequence[Mapping[str, Any]],
    scores: Array,
    best: int,
    metric: str,
    params: Sequence[str] | None,
) -> _Shown:
    """Put the scores of all points into the cells of a table."""
    names = _names(cls.__name__, points, params)
    values = [_sorted([point[name] for point in points if name in point]) for name in names]
    shape = tuple(len(v) for v in reversed(values))
    table, errors = np.full(shape, np.nan), np.full(shape, np.nan)
    folds = scores.shape[1]
    means = scores.mean(axis=1)
    spread = (
        scores.std(axis=1, ddof=1) / np.sqrt(folds) if folds > 1 else np.full(len(means), np.nan)
    )

    def cell(point: Mapping[str, Any]) -> tuple[int, ...]:
        places = [_place(v, point[name]) for name, v in zip(names, values, strict=True)]
        return tuple(reversed(places))

    for point, mean, error in zip(points, means, spread, strict=True):
        if all(name in point for name in names):
            at = cell(point)
            if np.isfinite(mean) and not table[at] >= mean:
                table[at], errors[at] = mean, error
    chosen = cell(points[best])
    table[chosen], errors[chosen] = means[best], spread[best]
    text = f"{len(points)} settings, {folds} folds; chosen {means[best]:.4g}"
    others = sorted({name for point in points for name in point} - set(names))
    if others and len(points) > table.size:
        text += f"; the best of {', '.join(others)}"
    return cls(tuple(values), tuple(names), table, errors, chosen, metric, text)


def _names(display: str, points: Sequence[Mapping[str, Any]], params: Any) -> list[str]:
    known = list(dict.fromkeys(name for point in points for name in point))
    if params is not None:
        chosen = [params] if isinstance(params, str) else list(params)
        wrong = [name for name in chosen if name not in known]
        if wrong or not 1 <= len(set(chosen)) == len(chosen) <= 2:
            raise ValueError(
                f"{display}: params={params!r} must be one or two of {', '.join(known)}"
            )
        return chosen
    varied = [n for n in known if len(_sorted([p[n] for p in points if n in p])) > 1] or known[:1]
    if len(varied) > 2:
        raise ValueError(
            f"{display}: {', '.join(varied)} were varied; choose two of them, such as "
            f"params=({varied[0]!r}, {varied[1]!r})"
        )
    return varied[::-1]


def _sorted(values: list[Any]) -> list[Any]:
    """Return the different values, numbers in order, others as they come."""
    found: list[Any] = []
    for value in values:
        if _place(found, value) < 0:
            found.append(value)
    numbers = all(isinstance(v, int | float | np.number) for v in found)
    return sorted(found) if numbers else found


def _place(values: list[Any], value: Any) -> int:
    for place, known in enumerate(values):
        if known is value or (np.shape(known) == np.shape(value) and bool(np.all(known == value))):
            return place
    return -1


def _shown(value: Any) -> str:
    text = f"{value:.3g}" if isinstance(value, float | np.floating) else str(value)
    return plain(text if len(text) <= 16 else text[:13] + "...")
