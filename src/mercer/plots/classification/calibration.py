"""Whether probabilities are what they say: shares of a class against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.array_types import Array
from mercer.plots.appearance import (
    FAINT,
    axis_labels,
    colour_of,
    ink_of,
    legend_inside,
    title,
)
from mercer.plots.classification.classifiers import NORMAL, classifier
from mercer.plots.display import Display
from mercer.plots.fitted import described, inner_machine


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
        Share of positive rows in it.
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
        Where it was drawn.

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
            How many bins of probabilities.
        strategy : {"uniform", "quantile"}
            Bins of equal width, or with equally many rows.
        pos_label : label, optional
            Whose probability; None takes the second of two classes. With more classes it must be
            given: that class against the rest.
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        CalibrationDisplay
            What was drawn.
        """
        name = cls.__name__
        estimator = classifier(name, estimator, two=False)
        machine = inner_machine(estimator)
        if not hasattr(estimator, "predict_proba"):
            remedy = "pass probability=True" if hasattr(machine, "probability") else "calibrate it"
            raise TypeError(f"{name}: {type(machine).__name__} gives no probabilities; {remedy}")
        classes = list(machine.classes_)
        if pos_label is None and len(classes) != 2:
            raise ValueError(f"{name}: of {len(classes)} classes, say which one: pos_label=")
        positive = classes[1] if pos_label is None else pos_label
        if positive not in classes:
            raise ValueError(f"{name}: pos_label={pos_label!r} is none of the labels {classes}")
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
            What was drawn.
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
            raise ValueError(f"{cls.__name__}: n_bins={n_bins!r} must be a whole number above 0")
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
            Where to draw; None makes a figure.
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
            axis_labels(axes, f"predicted probability of {self.label}", f"share of {self.label}")
            title(axes, self.text)
            legend_inside(axes)
        return self
