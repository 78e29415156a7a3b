"""Which classes are taken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import unique_labels

from mercer.array_types import Array
from mercer.plots.appearance import (
    SEQUENTIAL,
    axis_labels,
    ink_on,
    plain,
    title,
)
from mercer.plots.classification.classifiers import classifier
from mercer.plots.display import Display
from mercer.plots.fitted import described


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
        Shares of each line, as shades.
    texts_ : list of Text
        The counts; of more than six classes those above zero.
    ax_, figure_ : Axes, Figure
        Where it was drawn.

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
            Where to draw; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ConfusionMatrixDisplay
            What was drawn.
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
            Where to draw; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        ConfusionMatrixDisplay
            What was drawn.
        """
        truth, called = np.ravel(y_true), np.ravel(y_pred)
        if len(truth) != len(called) or not len(truth):
            raise ValueError(
                f"{cls.__name__}: {len(truth)} true and {len(called)} predicted labels must be "
                "equally many, and some"
            )
        classes = unique_labels(truth, called)  # which refuses words beside numbers
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
            Where to draw; None makes a figure.
        shares : bool
            Whether shares of each line are written below the counts, where there is room.
        cmap : colour map
            Of the shades, which are shares of each line.

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
            axes.figure.colorbar(self.image_, ax=axes, label="share of the true label")
        return self
