"""What each threshold of a classifier of two classes gains and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.array_types import Array
from mercer.plots.appearance import (
    FAINT,
    axis_labels,
    colour_of,
    paper_of,
    title,
)
from mercer.plots.classification.classifiers import classifier
from mercer.plots.display import Display
from mercer.plots.fitted import described, inner_machine
from mercer.selection import Threshold, choose_threshold, roc


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
        What they are.
    text : str
        The title.

    Attributes
    ----------
    line_ : Line2D
        The curve.
    marks_ : list of Line2D
        The marked points.
    ax_, figure_ : Axes, Figure
        Where it was drawn.

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
            Which class is positive; None takes the second.
        threshold : float, optional
            The threshold that is marked; None marks that of `predict` (0 for decision values, 0.5
            for probabilities).
        false_positive_cost, false_negative_cost : float, optional
            What a wrong alarm, and a miss, cost; if one is given, the cheapest threshold is marked
            as well, the other being 1.
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        RocCurveDisplay
            What was drawn.
        """
        estimator = classifier(cls.__name__, estimator, two=True)
        classes = list(inner_machine(estimator).classes_)
        positive = classes[1] if pos_label is None else pos_label
        if positive not in classes:
            raise ValueError(
                f"{cls.__name__}: pos_label={pos_label!r} is none of the labels {classes}"
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
            What was drawn.
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
            Where to draw; None makes a figure.
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
            axis_labels(axes, "share of negatives called positive", "share of positives found")
            title(axes, self.text)
            axes.legend(loc="lower right", frameon=True, edgecolor="none", framealpha=0.9)
        return self
