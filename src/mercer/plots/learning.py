"""Errors by rows and parameters: learning curves, bias and variance, bounds of the theory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier

from mercer.array_types import Array
from mercer.machines.svm.svc import SVC
from mercer.plots.base import (
    FAINT,
    Display,
    axis_labels,
    colour_of,
    described,
    ink_of,
    legend_inside,
    plain,
    tick_numbers,
    title,
    wrong_machine,
)
from mercer.selection import BiasVariance, LearningCurve, bias_variance, learning_curve
from mercer.selection.folds import count_rows, take_rows
from mercer.theory import Bound, hoeffding, machine_bound

_SIZES = 8  # numbers of rows that are tried


@dataclass(eq=False)
class LearningCurveDisplay(Display):
    """Scores by the number of rows learned from: on rows left out, and on those learned from.

    Bands are one standard deviation over the folds to either side.

    Parameters
    ----------
    curve : LearningCurve
        The result of `mercer.selection.learning_curve`.
    score_name : str
        Name of the score.
    text : str
        The title.

    Attributes
    ----------
    lines_ : list of Line2D
        Means on rows left out, and on rows learned from.
    bands_ : list of FillBetweenPolyCollection
        One standard deviation to either side.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import NearestMean
    >>> from mercer.plots import LearningCurveDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> shown = LearningCurveDisplay.from_estimator(NearestMean(), X, y, sizes=[20, 60, 120])
    >>> shown.curve.scores.shape
    (3, 5)
    """

    curve: LearningCurve
    score_name: str = "score"
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sizes: npt.ArrayLike = (0.1, 0.325, 0.55, 0.775, 1.0),
        cv: Any = 5,
        scoring: Any = None,
        random_state: int = 0,
        score_name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Evaluate an estimator on growing parts of the rows, and draw the curve.

        Parameters
        ----------
        estimator : estimator
            Need not be fitted: it is, to parts of the rows.
        X, y, sizes, cv, scoring, random_state
            As in `mercer.selection.learning_curve`.
        score_name : str, optional
            Name of the score; None uses the name of `scoring`, or accuracy or R².
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        LearningCurveDisplay
            The display.
        """
        curve = learning_curve(
            estimator, X, y, sizes=sizes, cv=cv, scoring=scoring, random_state=random_state
        )
        if score_name is None:
            plain = "accuracy" if is_classifier(estimator) else "score"
            score_name = scoring if isinstance(scoring, str) else plain
        text = described(clone(estimator))
        return cls(curve, score_name, text).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, band: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        band : bool
            Whether the spread over the folds is drawn.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        sizes = self.curve.sizes
        parts = {"held-out rows": self.curve.scores, "training rows": self.curve.train_scores}
        with self._drawing(ax) as axes:
            self.lines_, self.bands_ = [], []
            for k, (name, scores) in enumerate(parts.items()):
                known = np.isfinite(scores).any(axis=1)  # classes may not have come yet
                mean, spread = np.nanmean(scores[known], axis=1), np.nanstd(scores[known], axis=1)
                look = {"color": colour_of(k), "marker": "os"[k], "markersize": 5, "label": name}
                self.lines_ += axes.plot(sizes[known], mean, **look)
                if band:
                    ends = (mean - spread, mean + spread)
                    fill = {"color": colour_of(k), "alpha": 0.18, "linewidth": 0}
                    self.bands_.append(axes.fill_between(sizes[known], *ends, **fill))
            if sizes.max() > 8 * sizes.min():
                axes.set_xscale("log")
            tick_numbers(axes, sizes)
            axis_labels(axes, "training rows", self.score_name)
            title(axes, self.text)
            legend_inside(axes)
        return self


@dataclass(eq=False)
class BiasVarianceDisplay(Display):
    """The parts of the expected error along a parameter: bias (with noise), and variance.

    Parameters
    ----------
    values : array of shape (n_values,)
        Values of the parameter.
    parts : tuple of BiasVariance
        The parts at each.
    param_name : str
        The parameter.
    error_name : str
        Name of the error.
    text : str
        The title.

    Attributes
    ----------
    lines_ : list of Line2D
        Error, bias and variance.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    mercer.selection.bias_variance : The parts at one value.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.kernels import Gaussian
    >>> from mercer.plots import BiasVarianceDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(200, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=200)
    >>> shown = BiasVarianceDisplay.from_estimator(
    ...     KernelRidge(0.1, kernel=Gaussian(1.0)), X[:50], y[:50], X[50:], y[50:],
    ...     param_name="kernel__scale", param_range=[0.1, 1.0, 10.0], resamples=10,
    ... )
    >>> [bool(part.variance > 0) for part in shown.parts]
    [True, True, True]
    """

    values: Array
    parts: tuple[BiasVariance, ...]
    param_name: str
    error_name: str
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        X_test: Any,
        y_test: Any,
        *,
        param_name: str,
        param_range: Sequence[float] | Array,
        resamples: int = 50,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Split the error at each value of a parameter by fits to resampled rows.

        Parameters
        ----------
        estimator : estimator
            Need not be fitted: it is, to resampled rows.
        X, y : array-like
            Rows to resample, and their targets.
        X_test, y_test : array-like
            Evaluation data.
        param_name : str
            The parameter, such as "kernel__scale".
        param_range : sequence of float
            Its values.
        resamples : int
            Fits at each value.
        random_state : int
            Seed, the same at each value.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        BiasVarianceDisplay
            The display.
        """
        values = np.asarray(param_range, dtype=np.float64)
        if values.ndim != 1 or not len(values):
            raise ValueError(f"{cls.__name__}: param_range must be a list of numbers")
        if param_name not in estimator.get_params():
            raise ValueError(
                f"{cls.__name__}: {type(estimator).__name__} has no parameter {param_name!r}"
            )
        parts = tuple(
            bias_variance(
                clone(estimator).set_params(**{param_name: value}), X, y, X_test, y_test,
                resamples=resamples, random_state=random_state,
            )
            for value in values.tolist()
        )  # fmt: skip
        error = "misclassification rate" if is_classifier(estimator) else "squared error"
        text = f"{described(clone(estimator))}\n"
        text += f"{param_name} varied, {resamples} fits to resampled rows each"
        return cls(values, parts, param_name, error, text).plot(ax, **kwargs)

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
            curves = {
                "error": ([p.error for p in self.parts], ink_of(axes), "-"),
                "bias, with noise": ([p.bias for p in self.parts], colour_of(0), "--"),
                "variance": ([p.variance for p in self.parts], colour_of(1), "-."),
            }
            helping = [p.variance_that_helps for p in self.parts]
            if any(helping):
                curves["variance that helps"] = (helping, colour_of(2), ":")
            self.lines_ = [
                axes.plot(self.values, curve, dash, color=colour, label=name)[0]
                for name, (curve, colour, dash) in curves.items()
            ]
            if (self.values > 0).all() and self.values.max() > 20 * self.values.min():
                axes.set_xscale("log")
            axes.set_ylim(bottom=0.0)
            axis_labels(axes, self.param_name, self.error_name)
            title(axes, self.text)
            legend_inside(axes)
        return self


@dataclass(eq=False)
class BoundsDisplay(Display):
    """Error bounds against the number of rows, with observed errors.

    A bound of one or more is vacuous: it promises nothing. Such parts of a curve are dotted.

    Parameters
    ----------
    sizes : int array of shape (n_sizes,)
        Numbers of rows.
    bounds : dict of str to array of shape (n_sizes,)
        Values of each bound, at most one.
    errors : dict of str to array of shape (n_sizes,)
        Errors that were observed.
    delta : float or None
        The probability that a bound fails.
    text : str
        The title.

    Attributes
    ----------
    lines_ : dict of str to Line2D
        Bounds and errors.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    mercer.theory : The bounds, with their assumptions.

    Examples
    --------
    >>> from mercer.plots import BoundsDisplay
    >>> from mercer.theory import double_sampling_error, finite_class_error
    >>> shown = BoundsDisplay.from_functions(
    ...     {
    ...         "VC dimension 3": lambda n: double_sampling_error(3, n, delta=0.05),
    ...         "1000 hypotheses": lambda n: finite_class_error(1000, n, delta=0.05),
    ...     },
    ...     sizes=[100, 1000, 10_000],
    ... )
    >>> shown.bounds["1000 hypotheses"].round(4).tolist()
    [0.099, 0.0099, 0.001]
    """

    sizes: Array
    bounds: dict[str, Array]
    errors: dict[str, Array]
    delta: float | None = None
    text: str = ""

    @classmethod
    def from_functions(
        cls,
        bounds: Mapping[str, Callable[[int], Bound | float]],
        sizes: npt.ArrayLike,
        *,
        errors: Mapping[str, npt.ArrayLike] | None = None,
        name: str = "",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw bounds that are functions of the number of rows.

        Parameters
        ----------
        bounds : dict of str to callable
            Each gives a `mercer.theory.Bound`, or its value, for a number of rows.
        sizes : array-like of int
            Numbers of rows.
        errors : dict of str to array-like of shape (n_sizes,), optional
            Errors that were observed, to compare with.
        name : str
            The title.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        BoundsDisplay
            The display.
        """
        counts = _counts(cls.__name__, sizes)
        values = {
            label: np.array([min(1.0, float(bound(int(n)))) for n in counts])
            for label, bound in bounds.items()
        }
        seen = {label: np.asarray(e, dtype=np.float64) for label, e in (errors or {}).items()}
        for label, observed in seen.items():
            if observed.shape != counts.shape:
                raise ValueError(
                    f"{cls.__name__}: {len(np.ravel(observed))} errors in {label!r}, but "
                    f"{len(counts)} sizes"
                )
        return cls(counts, values, seen, None, name).plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        X_test: Any,
        y_test: Any,
        *,
        sizes: npt.ArrayLike | None = None,
        delta: float = 0.05,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Fit a classifier to more and more rows, and draw its margin bound and its errors.

        Parameters
        ----------
        estimator : SVC
            For two classes, with a fixed kernel; copies are fitted.
        X, y : array-like
            Rows in random order, and their labels: the first ones are used for training.
        X_test, y_test : array-like
            Rows that errors are counted on, and bounded by Hoeffding's inequality.
        sizes : array-like of int, optional
            Numbers of rows; None uses eight numbers up to all.
        delta : float
            The probability that a bound may fail.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        BoundsDisplay
            The display.
        """
        name, n = cls.__name__, count_rows(X)
        if not isinstance(estimator, SVC):
            raise wrong_machine(name, "an SVC", estimator)
        if sizes is None:
            sizes = np.unique(np.geomspace(min(50, n), n, _SIZES).astype(int))
        counts = _counts(name, sizes)
        if counts.max() > n:
            raise ValueError(f"{name}: sizes go to {counts.max()}, but X has {n} rows")
        labels, truth = np.asarray(y), np.asarray(y_test)
        margin, test, own, wrong = [], [], [], []
        for count in counts.tolist():
            rows, known = take_rows(X, np.arange(count)), labels[:count]
            machine = clone(estimator).fit(rows, known)
            margin.append(machine_bound(machine, rows, known, delta).value)
            wrong.append(float(np.mean(machine.predict(X_test) != truth)))
            test.append(hoeffding(len(truth), delta, wrong[-1]).value)
            own.append(float(np.mean(machine.predict(rows) != known)))
        bounds = {"margin bound": np.array(margin), "bound by test rows": np.array(test)}
        errors = {"error on test rows": np.array(wrong), "error on own rows": np.array(own)}
        text = described(clone(estimator))
        return cls(counts, bounds, errors, delta, text).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, log: bool = False) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        log : bool
            Whether the error has a logarithmic axis, too.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            self.lines_ = {}
            for k, (name, values) in enumerate(self.bounds.items()):
                useful = np.where(values < 1, values, np.nan)
                axes.plot(self.sizes, values, ":", color=colour_of(k), linewidth=1.2)
                look = {
                    "color": colour_of(k),
                    "marker": "o",
                    "markersize": 3.5,
                    "label": plain(name),
                }
                (self.lines_[name],) = axes.plot(self.sizes, useful, **look)
            for k, (name, values) in enumerate(self.errors.items()):
                shade = ink_of(axes) if k == 0 else FAINT
                look = {"color": shade, "linestyle": "--", "marker": "s", "markersize": 3.5}
                (self.lines_[name],) = axes.plot(self.sizes, values, label=plain(name), **look)
            axes.set_xscale("log")
            if log:
                axes.set_yscale("log")
            else:
                axes.set_ylim(0.0, 1.05)
            axes.axhline(1.0, color=FAINT, linewidth=0.8)
            note = (
                ""
                if self.delta is None
                else f"\neach bound holds with probability {1 - self.delta:g}"
            )
            axis_labels(axes, "rows", "misclassification rate")
            title(axes, self.text + note if self.text else note.strip())
            legend_inside(axes)
        return self


def _counts(display: str, sizes: npt.ArrayLike) -> Array:
    counts = np.atleast_1d(np.asarray(sizes))
    whole = counts.dtype.kind in "iuf" and (counts == np.rint(counts)).all()
    if counts.ndim != 1 or not len(counts) or not whole or (counts < 1).any():
        raise ValueError(f"{display}: sizes must be integers of at least 1")
    return np.asarray(np.sort(counts.astype(int)))
