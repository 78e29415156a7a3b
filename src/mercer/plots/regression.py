"""Regression: residuals, and the path of penalties of a ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_regressor

from mercer.array_types import Array
from mercer.kernels import Linear
from mercer.machines.ridge.kernel_ridge import KernelRidge
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
    legend_inside,
    plain,
    title,
    wrong_machine,
)
from mercer.plots.regions import point_size
from mercer.rows.points import is_sparse

_MOST_NAMES = 10  # columns that are named in a legend: those with the largest coefficients
_PATH = 60  # penalties of a path of coefficients


@dataclass(eq=False)
class ResidualsDisplay(Display):
    """Residuals against predictions, or observed values against predicted ones.

    Parameters
    ----------
    observed, predicted : array of shape (n_samples,)
        Targets and predictions.
    text : str
        The title.

    Attributes
    ----------
    points_ : PathCollection
        The rows.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    Examples
    --------
    >>> from mercer.plots import ResidualsDisplay
    >>> shown = ResidualsDisplay.from_predictions([1.0, 2.0, 4.0], [1.5, 2.0, 3.0])
    >>> shown.residuals.tolist()
    [-0.5, 0.0, 1.0]
    """

    observed: Array
    predicted: Array
    text: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the residuals of a fitted regression of one target.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor.
        X, y : array-like
            Rows that it was not fitted to, and their targets.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ResidualsDisplay
            The display.
        """
        estimator = fitted(cls.__name__, estimator)
        machine = inner_machine(estimator)
        if not is_regressor(machine):
            raise wrong_machine(cls.__name__, "a regression", machine)
        name = described(estimator)
        return cls.from_predictions(y, estimator.predict(X), name=name, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, name: str = "", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the residuals of predictions.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            Targets and predictions.
        name : str
            Who predicted, for the title.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ResidualsDisplay
            The display.
        """
        observed, predicted = (np.asarray(y, dtype=np.float64) for y in (y_true, y_pred))
        if observed.shape != predicted.shape or observed.ndim != 1:
            raise ValueError(
                f"{cls.__name__}: y_true of shape {observed.shape} and y_pred of shape "
                f"{predicted.shape} must be one target of the same rows; pass one column"
            )
        rest = observed - predicted
        squares = float(np.sum((observed - observed.mean()) ** 2))
        said = f"root mean squared error {np.sqrt(np.mean(rest**2)):.4g}"
        said += f", R² {1 - float(np.sum(rest**2)) / squares:.3f}" if squares > 0 else ""
        return cls(observed, predicted, "\n".join(filter(None, (name, said)))).plot(ax, **kwargs)

    @property
    def residuals(self) -> Array:
        """Observed less predicted."""
        return np.asarray(self.observed - self.predicted)

    def plot(self, ax: Any = None, *, kind: str = "residuals", **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        kind : {"residuals", "observed"}
            The vertical axis against the predictions.
        **kwargs
            Passed to `scatter`, such as `s` or `alpha`.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        if kind not in ("residuals", "observed"):
            raise ValueError(
                f"{type(self).__name__}: kind={kind!r} must be 'residuals' or 'observed'"
            )
        drawn = self.residuals if kind == "residuals" else self.observed
        with self._drawing(ax) as axes:
            look = {"s": point_size(len(drawn)), "alpha": 0.6, "linewidths": 0, "c": colour_of(0)}
            self.points_ = axes.scatter(self.predicted, drawn, **{**look, **kwargs})
            ink = ink_of(axes)
            if kind == "residuals":
                axes.axhline(0.0, color=ink, linewidth=1.2)
            else:
                ends = [self.predicted.min(), self.predicted.max()]
                axes.plot(ends, ends, color=ink, linewidth=1.2)
            ylabel = "observed less predicted" if kind == "residuals" else "observed"
            axis_labels(axes, "predicted", ylabel)
            title(axes, self.text)
        return self


@dataclass(eq=False)
class RidgePathDisplay(Display):
    """Error or coefficients of a ridge regression against the regularization parameter.

    Parameters
    ----------
    penalties : array of shape (n_penalties,)
        The penalties, rising.
    values : array of shape (n_penalties, n_curves)
        The mean squared leave-one-out error, or the coefficient of each column.
    names : tuple of str
        Names of the curves.
    ylabel : str
        Name of the values.
    chosen : float or None
        The penalty of the estimator.
    text : str
        The title.

    Attributes
    ----------
    lines_ : list of Line2D
        The curves.
    mark_ : Line2D or None
        The chosen penalty.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from mercer import KernelRidge
    >>> from mercer.plots import RidgePathDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> machine = KernelRidge("loo").fit(X, y)
    >>> shown = RidgePathDisplay.from_estimator(machine, X, y)
    >>> shown.values.shape, shown.chosen == machine.penalty_
    ((60, 10), True)
    """

    penalties: Array
    values: Array
    names: tuple[str, ...]
    ylabel: str
    chosen: float | None = None
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        kind: str = "auto",
        penalties: npt.ArrayLike | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the path of a fitted `KernelRidge` of one target.

        Parameters
        ----------
        estimator : KernelRidge
            Fitted; inside a pipeline as well. For errors fitted with `penalty="loo"`.
        X, y : array-like, optional
            The rows of the fit and their targets; needed for coefficients.
        kind : {"auto", "coefficients", "error"}
            Coefficients (for the linear kernel; the estimator is fitted again at each penalty), or
            exact leave-one-out errors, which the estimator holds. "auto" uses coefficients if X
            is given and the kernel is linear.
        penalties : array-like, optional
            Penalties of the path of coefficients; None takes 60 from 1e-4 to 1e4 times the
            estimator's, or the range that it tried.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        RidgePathDisplay
            The display.
        """
        name = cls.__name__
        estimator = fitted(name, estimator)
        machine = inner_machine(estimator)
        if not isinstance(machine, KernelRidge):
            raise wrong_machine(name, "a KernelRidge", machine)
        if np.ndim(machine.penalty_):
            raise ValueError(f"{name}: the estimator has several targets; fit it to one of them")
        if kind not in ("auto", "coefficients", "error"):
            raise ValueError(f"{name}: kind={kind!r} must be 'coefficients' or 'error'")
        text = described(estimator)
        linear = isinstance(machine.kernel_, Linear)
        if kind == "auto":
            kind = "coefficients" if X is not None and linear else "error"
        if kind == "error":
            return cls._errors(machine, text).plot(ax, **kwargs)
        if X is None or y is None:
            raise ValueError(f"{name}: a path of coefficients needs the rows of the fit, X and y")
        if not linear:
            raise ValueError(
                f"{name}: only a linear kernel has coefficients of columns, this is "
                f"{machine.kernel_!r}; use kind='error'"
            )
        rows = inner_rows(estimator, X)
        path = _penalties(name, machine, penalties)
        found = _coefficients(machine, rows, y, path)
        names = _column_names(machine, X, found.shape[1])
        chosen = float(machine.penalty_)
        return cls(path, found, names, "coefficient", chosen, text).plot(ax, **kwargs)

    @classmethod
    def _errors(cls, machine: KernelRidge, text: str) -> Self:
        if not hasattr(machine, "loo_scores_"):
            raise ValueError(
                f"{cls.__name__}: leave-one-out errors require a fit with penalty='loo'"
            )
        order = np.argsort(machine.penalties_)
        values = machine.loo_scores_[order, None]
        values = np.where(np.isfinite(values), values, np.nan)
        label = "mean squared leave-one-out error"
        return cls(
            machine.penalties_[order],
            values,
            ("leave-one-out",),
            label,
            float(machine.penalty_),
            text,
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot` of the axes, for all curves.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        one = self.values.shape[1] == 1
        with self._drawing(ax) as axes:
            largest = np.argsort(-np.abs(self.values[0]), kind="stable")[:_MOST_NAMES]
            self.lines_ = []
            for k, curve in enumerate(self.values.T):
                named = int(np.flatnonzero(largest == k)[0]) if k in largest else None
                look: dict[str, Any] = {"color": FAINT, "linewidth": 0.9, "zorder": 1}
                if named is not None:
                    look = {"color": colour_of(named), "label": plain(self.names[k])}
                self.lines_ += axes.plot(self.penalties, curve, **{**look, **kwargs})
            self.mark_ = None
            axes.set_xscale("log")
            if self.chosen:
                self.mark_ = self._mark(axes, one)
            if not one:
                axes.axhline(0.0, color=ink_of(axes), linewidth=0.8)
            axis_labels(axes, "penalty", self.ylabel)
            title(axes, self.text)
            (legend_inside if one else legend_beside)(axes)
        return self

    def _mark(self, ax: Any, one: bool) -> Any:
        """Mark the chosen penalty: on the curve of errors, or across all coefficients."""
        name, ink = f"chosen: {self.chosen:.3g}", ink_of(ax)
        if not one:
            return ax.axvline(self.chosen, color=ink, linestyle="--", linewidth=1.1, label=name)
        place = int(np.argmin(np.abs(np.log(self.penalties / self.chosen))))
        look = {"markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.6}
        look |= {"color": ink, "linestyle": "none", "label": name}
        return ax.plot(self.penalties[place], self.values[place, 0], "o", **look)[0]


def _penalties(display: str, machine: KernelRidge, given: npt.ArrayLike | None) -> Array:
    if given is not None:
        path = np.unique(np.asarray(given, dtype=np.float64))
        if not len(path) or not (path > 0).all() or not np.isfinite(path).all():
            raise ValueError(f"{display}: penalties must be positive numbers")
        return path
    if hasattr(machine, "penalties_"):
        low, high = machine.penalties_.min(), machine.penalties_.max()
    else:
        middle = float(machine.penalty_) or 1.0
        low, high = 1e-4 * middle, 1e4 * middle
    return np.asarray(np.geomspace(low, high, _PATH))


def _coefficients(machine: KernelRidge, X: Any, y: Any, path: Array) -> Array:
    """Fit once, with a target for each penalty: the kernel is evaluated once."""
    many = clone(machine).set_params(penalty=path, penalties=None)
    targets = np.repeat(np.asarray(y, dtype=np.float64).ravel()[:, None], len(path), axis=1)
    many.fit(X, targets)
    if hasattr(many, "coef_"):
        return np.asarray(many.coef_)
    rows = X if is_sparse(X) else np.asarray(X, dtype=np.float64)
    return np.asarray((rows.T @ many.dual_coef_).T)  # K = XX' where columns are many: X'a


def _column_names(machine: Any, X: Any, count: int) -> tuple[str, ...]:
    names = getattr(machine, "feature_names_in_", None)
    if names is None and hasattr(X, "columns") and len(X.columns) == count:
        names = X.columns
    if names is None:
        names = [f"column {k}" for k in range(count)]
    return tuple(str(name) for name in names)
