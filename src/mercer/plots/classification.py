"""Plots of classifiers: calibration, confusion matrix, and ROC curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.multiclass import unique_labels

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
    ink_on,
    inner_machine,
    legend_inside,
    paper_of,
    plain,
    title,
    wrong_machine,
)
from mercer.selection import Threshold, choose_threshold, roc

# --- classifiers ---------------------------------------------------------------------------------
#
# Classifiers whose quality can be drawn.

NORMAL = 1.96  # of 95 % intervals


def classifier(display: str, estimator: Any, two: bool) -> Any:
    """Return a fitted classifier, of two classes where only these can be drawn."""
    estimator = fitted(display, estimator)
    machine = inner_machine(estimator)
    if not is_classifier(machine):
        raise wrong_machine(display, "a classifier", machine)
    if two and len(machine.classes_) != 2:
        raise ValueError(
            f"{display}: thresholds need two classes, but this {type(machine).__name__} has "
            f"{len(machine.classes_)}; use ConfusionMatrixDisplay"
        )
    return estimator


# --- calibration ---------------------------------------------------------------------------------
#
# Calibration: predicted probabilities against observed fractions of a class.


@dataclass(eq=False)
class CalibrationDisplay(Display):
    """Reliability: of the rows that were given a probability, which share was positive.

    Bars are 95 % intervals (Wilson's), and stay on the diagonal for probabilities that mean what
    they say. The area of a point grows with the rows in its bin.

    Parameters
    ----------
    probability : array of shape (n_bins,)
        Mean predicted probability of each bin that holds rows.
    observed : array of shape (n_bins,)
        Fraction of positive rows in it.
    counts : array of shape (n_bins,)
        Rows in it.
    brier : float
        The mean squared difference of probabilities and outcomes.
    label : str
        The positive class.
    text : str
        The title.

    Attributes
    ----------
    points_ : PathCollection
        The bins.
    bars_ : ErrorbarContainer
        Their intervals.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.plots import CalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=5000)
    >>> shown = CalibrationDisplay.from_predictions(rng.uniform(size=5000) < p, p)
    >>> bool(np.abs(shown.probability - shown.observed).max() < 0.06)
    True
    """

    probability: Array
    observed: Array
    counts: Array
    brier: float
    label: str = ""
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability of a fitted classifier's probabilities.

        Parameters
        ----------
        estimator : estimator
            Fitted, with `predict_proba`.
        X, y : array-like
            Rows that it was not fitted to, and their labels.
        n_bins : int
            Number of bins of probabilities.
        strategy : {"uniform", "quantile"}
            Bins of equal width, or with equally many rows.
        pos_label : label, optional
            Whose probability; None takes the second of two classes. With more classes it must be
            given: that class against the rest.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        CalibrationDisplay
            The display.
        """
        name = cls.__name__
        estimator = classifier(name, estimator, two=False)
        machine = inner_machine(estimator)
        if not hasattr(estimator, "predict_proba"):
            remedy = "pass probability=True" if hasattr(machine, "probability") else "calibrate it"
            raise TypeError(f"{name}: {type(machine).__name__} gives no probabilities; {remedy}")
        classes = list(machine.classes_)
        if pos_label is None and len(classes) != 2:
            raise ValueError(
                f"{name}: the model has {len(classes)} classes; choose one with pos_label="
            )
        positive = classes[1] if pos_label is None else pos_label
        if positive not in classes:
            raise ValueError(f"{name}: pos_label={pos_label!r} is not among the labels {classes}")
        p = estimator.predict_proba(X)[:, classes.index(positive)]
        return cls.from_predictions(
            y, p, n_bins=n_bins, strategy=strategy, pos_label=positive,
            name=described(estimator), ax=ax, **kwargs,
        )  # fmt: skip

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str = "",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_prob : array-like of shape (n_samples,)
            Probabilities of the positive class.
        n_bins, strategy, ax, **kwargs
            As in `from_estimator`.
        pos_label : label, optional
            The positive class; None takes the larger of two labels.
        name : str
            Who the probabilities are of, for the title.

        Returns
        -------
        CalibrationDisplay
            The display.
        """
        labels, p = np.asarray(y_true).ravel(), np.asarray(y_prob, dtype=np.float64).ravel()
        if len(labels) != len(p):
            raise ValueError(f"{cls.__name__}: {len(labels)} labels, {len(p)} probabilities")
        if not ((p >= 0) & (p <= 1)).all():
            raise ValueError(f"{cls.__name__}: probabilities must lie between 0 and 1")
        classes = np.unique(labels)
        if pos_label is None and len(classes) > 2:
            raise ValueError(f"{cls.__name__}: y_true has {len(classes)} labels; pass pos_label=")
        positive = classes[-1] if pos_label is None else pos_label
        hit = labels == positive
        if n_bins != int(n_bins) or n_bins < 1:
            raise ValueError(f"{cls.__name__}: n_bins={n_bins!r} must be a positive integer")
        if strategy not in ("uniform", "quantile"):
            raise ValueError(f"{cls.__name__}: strategy={strategy!r} must be uniform or quantile")
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        edges = edges if strategy == "uniform" else np.percentile(p, 100 * edges)
        place = np.searchsorted(edges[1:-1], p)  # scikit-learn's bins
        counts = np.bincount(place, minlength=n_bins)
        used = counts > 0
        total = np.bincount(place, p, minlength=n_bins)[used]
        found = np.bincount(place, hit, minlength=n_bins)[used]
        brier = float(np.mean((p - hit) ** 2))
        text = "\n".join(filter(None, (name, f"Brier score {brier:.4f} on {len(p)} rows")))
        n = counts[used]
        return cls(total / n, found / n, n, brier, str(positive), text).plot(ax, **kwargs)

    @property
    def intervals(self) -> Array:
        """The 95 % interval of each share, of shape (2, n_bins): lower ends, upper ends."""
        n, z = self.counts, NORMAL
        middle = (self.observed + z**2 / (2 * n)) / (1 + z**2 / n)
        spread = np.sqrt(self.observed * (1 - self.observed) / n + z**2 / (4 * n**2))
        half = z * spread / (1 + z**2 / n)
        return np.array([middle - half, middle + half])

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `scatter`, for the points.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            low, high = self.intervals
            axes.plot([0, 1], [0, 1], ":", color=FAINT, linewidth=1.2, label="as promised")
            self.bars_ = axes.errorbar(
                self.probability, self.observed,
                np.maximum([self.observed - low, high - self.observed], 0.0),
                fmt="none", ecolor=ink_of(axes), elinewidth=1.1, label="95 % interval",
            )  # fmt: skip
            size = 25 + 150 * self.counts / self.counts.max()
            look = {"c": colour_of(0), "s": size, "zorder": 3, "linewidths": 0, **kwargs}
            self.points_ = axes.scatter(self.probability, self.observed, **look)
            axes.set(aspect="equal", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
            axis_labels(axes, f"predicted probability of {self.label}", f"fraction of {self.label}")
            title(axes, self.text)
            legend_inside(axes)
        return self


# --- confusion -----------------------------------------------------------------------------------
#
# Confusions of classes.


@dataclass(eq=False)
class ConfusionMatrixDisplay(Display):
    """How often each class was called what.

    Parameters
    ----------
    matrix : array of shape (n_classes, n_classes)
        Rows with the label of the line that were called that of the column.
    classes : array of shape (n_classes,)
        The labels.
    text : str
        The title.

    Attributes
    ----------
    image_ : AxesImage
        Fractions of each line, as shades.
    texts_ : list of Text
        The counts; of more than six classes those above zero.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    Examples
    --------
    >>> from mercer.plots import ConfusionMatrixDisplay
    >>> ConfusionMatrixDisplay.from_predictions(["a", "a", "b"], ["a", "b", "b"]).matrix.tolist()
    [[1, 1], [0, 1]]
    """

    matrix: Array
    classes: Array
    text: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the confusions of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier.
        X, y : array-like
            Rows that it was not fitted to, and their labels.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ConfusionMatrixDisplay
            The display.
        """
        estimator = classifier(cls.__name__, estimator, two=False)
        name = described(estimator)
        return cls.from_predictions(y, estimator.predict(X), name=name, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, name: str = "", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the confusions of labels.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            True and predicted labels.
        name : str
            Who predicted, for the title.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ConfusionMatrixDisplay
            The display.
        """
        truth, called = np.ravel(y_true), np.ravel(y_pred)
        if len(truth) != len(called) or not len(truth):
            raise ValueError(
                f"{cls.__name__}: {len(truth)} true and {len(called)} predicted labels must have "
                "the same positive length"
            )
        classes = unique_labels(truth, called)  # which raises for words mixed with numbers
        place = len(classes) * np.searchsorted(classes, truth) + np.searchsorted(classes, called)
        matrix = np.bincount(place, minlength=len(classes) ** 2).reshape(len(classes), -1)
        right, n = int(np.trace(matrix)), int(matrix.sum())
        text = "\n".join(filter(None, (name, f"{right} of {n} right: {100 * right / n:.1f} %")))
        return cls(matrix, classes, text).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, shares: bool = True, cmap: Any = SEQUENTIAL) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        shares : bool
            Whether fractions of each line are written below the counts, if there is space.
        cmap : color map
            Of the shades, which are fractions of each line.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        total = self.matrix.sum(axis=1, keepdims=True)
        share = self.matrix / np.maximum(total, 1)
        k = len(self.classes)
        with self._drawing(ax) as axes:
            self.image_ = axes.imshow(share, cmap=cmap, vmin=0.0, vmax=1.0)
            self.texts_ = []
            for (i, j), count in np.ndenumerate(self.matrix):
                below = f"\n{100 * share[i, j]:.0f} %" if shares and k <= 6 and total[i, 0] else ""
                if not count and k > 6:
                    continue  # zeros would hide the others
                ink = ink_on(self.image_.cmap(share[i, j]))
                size = "medium" if k <= 6 else "small" if k <= 12 else "xx-small"
                look = {"ha": "center", "va": "center", "color": ink, "fontsize": size}
                self.texts_.append(axes.text(j, i, f"{count}{below}", **look))
            names = [plain(label) for label in self.classes]
            turned = 45 if max(map(len, names)) * k > 40 else 0
            axes.set_xticks(range(k), names, rotation=turned, ha="right" if turned else "center")
            axes.set_yticks(range(k), names)
            axes.tick_params(length=0)
            axis_labels(axes, "predicted label", "true label")
            title(axes, self.text)
            axes.figure.colorbar(self.image_, ax=axes, label="fraction of the true label")
        return self


# --- roc -----------------------------------------------------------------------------------------
#
# What each threshold of a classifier of two classes gains and costs.


@dataclass(eq=False)
class RocCurveDisplay(Display):
    """Rates of true and false alarms at all thresholds, and at the one in use.

    Parameters
    ----------
    false_positive, true_positive, thresholds : array of shape (n_thresholds,)
        The curve, from the highest threshold to the lowest.
    area : float
        The area under it.
    chosen : tuple of Threshold
        Points that are marked.
    names : tuple of str
        Their names.
    text : str
        The title.

    Attributes
    ----------
    line_ : Line2D
        The curve.
    marks_ : list of Line2D
        The marked points.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    mercer.selection.choose_threshold : The cheapest threshold.

    Examples
    --------
    >>> from mercer.plots import RocCurveDisplay
    >>> RocCurveDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).area
    0.75
    """

    false_positive: Array
    true_positive: Array
    thresholds: Array
    area: float
    chosen: tuple[Threshold, ...] = ()
    names: tuple[str, ...] = ()
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        threshold: float | None = None,
        false_positive_cost: float | None = None,
        false_negative_cost: float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of a fitted classifier of two classes.

        Parameters
        ----------
        estimator : estimator
            Fitted, with `decision_function` or `predict_proba`.
        X, y : array-like
            Rows that it was not fitted to, and their labels.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.
        pos_label : label, optional
            The positive class; None uses the second.
        threshold : float, optional
            The threshold that is marked; None marks that of `predict` (0 for decision values, 0.5
            for probabilities).
        false_positive_cost, false_negative_cost : float, optional
            Costs of a false positive and of a false negative; if one is given, the cheapest
            threshold is marked as well, the other being 1.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        RocCurveDisplay
            The display.
        """
        estimator = classifier(cls.__name__, estimator, two=True)
        classes = list(inner_machine(estimator).classes_)
        positive = classes[1] if pos_label is None else pos_label
        if positive not in classes:
            raise ValueError(
                f"{cls.__name__}: pos_label={pos_label!r} is not among the labels {classes}"
            )
        if hasattr(estimator, "decision_function"):
            values = np.ravel(estimator.decision_function(X))
            score, cut = (values if positive == classes[1] else -values), 0.0
        else:
            score, cut = estimator.predict_proba(X)[:, classes.index(positive)], 0.5
        return cls.from_predictions(
            y,
            score,
            sample_weight=sample_weight,
            pos_label=positive,
            threshold=cut if threshold is None else threshold,
            false_positive_cost=false_positive_cost,
            false_negative_cost=false_negative_cost,
            name=described(estimator),
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_score: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        threshold: float | None = None,
        false_positive_cost: float | None = None,
        false_negative_cost: float | None = None,
        name: str = "",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Two labels.
        y_score : array-like of shape (n_samples,)
            The larger, the more likely positive.
        sample_weight, pos_label, threshold, false_positive_cost, false_negative_cost, ax, **kwargs
            As in `from_estimator`; no threshold is marked unless it is given.
        name : str
            Who the scores are of, for the title.

        Returns
        -------
        RocCurveDisplay
            The display.
        """
        labels, score = np.asarray(y_true).ravel(), np.asarray(y_score, dtype=np.float64).ravel()
        positive = labels if pos_label is None else labels == pos_label
        curve = roc(positive, score, sample_weight)
        chosen, names = [], []
        if threshold is not None:
            if np.isnan(threshold):
                raise ValueError(f"{cls.__name__}: threshold={threshold!r} must be a number")
            place = int(np.flatnonzero(curve.thresholds >= threshold)[-1])
            point = (float(curve.false_positive[place]), float(curve.true_positive[place]))
            chosen.append(Threshold(float(threshold), float("nan"), *point))
            names.append(f"threshold {threshold:.3g}")
        if false_positive_cost is not None or false_negative_cost is not None:
            a = 1.0 if false_positive_cost is None else false_positive_cost
            b = 1.0 if false_negative_cost is None else false_negative_cost
            best = choose_threshold(
                positive, score, false_positive_cost=a, false_negative_cost=b,
                sample_weight=sample_weight,
            )  # fmt: skip
            chosen.append(best)
            names.append(f"threshold {best.value:.3g}: cheapest if a miss\ncosts {b / a:g} alarms")
        text = "\n".join(filter(None, (name, f"area under the curve {curve.area:.3f}")))
        shown = cls(
            curve.false_positive, curve.true_positive, curve.thresholds, curve.area,
            tuple(chosen), tuple(names), text,
        )  # fmt: skip
        return shown.plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot` of the axes, for the curve.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            (self.line_,) = axes.plot(
                self.false_positive, self.true_positive, **{"color": colour_of(0), **kwargs}
            )
            axes.plot([0, 1], [0, 1], ":", color=FAINT, linewidth=1.2, label="by chance")
            looks = zip(self.chosen, self.names, "os", strict=False)
            self.marks_ = [
                axes.plot(
                    point.false_positive, point.true_positive, marker, color=colour_of(k + 1),
                    markersize=9, markeredgecolor=paper_of(axes), label=name, linestyle="none",
                )[0]
                for k, (point, name, marker) in enumerate(looks)
            ]  # fmt: skip
            axes.set(aspect="equal", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
            axis_labels(axes, "false positive rate", "true positive rate")
            title(axes, self.text)
            axes.legend(loc="lower right", frameon=True, edgecolor="none", framealpha=0.9)
        return self
