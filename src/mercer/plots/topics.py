"""Topics: the words of each component, the most frequent first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.array_types import Array
from mercer.plots.base import (
    Display,
    colour_of,
    described,
    fitted,
    ink_on,
    inner_machine,
    mixed,
    paper_of,
    plain,
    title,
    wrong_machine,
)

_LONGEST = 13  # letters of a word that are shown


@dataclass(eq=False)
class TopicsDisplay(Display):
    """A line for each topic: its share, and its most frequent words, the darker the more frequent.

    Parameters
    ----------
    words : array of str of shape (n_topics, n_words)
        The words of each topic, most frequent first.
    chances : array of shape (n_topics, n_words)
        Their probabilities in the topic.
    weights : array of shape (n_topics,) or None
        Proportions of the topics, largest first.
    text : str
        The title.

    Attributes
    ----------
    texts_ : list of list of Text
        The words of each topic.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MultinomialMixture
    >>> from mercer.plots import TopicsDisplay
    >>> counts = np.array([[5, 4, 0, 0], [4, 6, 0, 1], [0, 0, 7, 5], [0, 1, 5, 6]])
    >>> topics = MultinomialMixture(2).fit(counts)
    >>> shown = TopicsDisplay.from_estimator(topics, ["cat", "dog", "bond", "stock"], n_words=2)
    >>> sorted(sorted(line) for line in shown.words.tolist())
    [['bond', 'stock'], ['cat', 'dog']]
    """

    words: Array
    chances: Array
    weights: Array | None
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        feature_names: Any = None,
        *,
        n_words: int = 8,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the topics of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted `MultinomialMixture`, or another whose `components_` are weights of words, none
            of them negative; as the last step of a pipeline, names come from the steps before.
        feature_names : sequence of str, optional
            The words, such as `CountVectorizer.get_feature_names_out()`.
        n_words : int
            Words of each topic.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        TopicsDisplay
            The display.
        """
        name = cls.__name__
        estimator = fitted(name, estimator)
        machine = inner_machine(estimator)
        components = getattr(machine, "components_", None)
        if components is None or np.min(components) < 0:
            raise wrong_machine(name, "components of words, as MultinomialMixture has", machine)
        names = _words(name, estimator, machine, feature_names, components.shape[1])
        if n_words != int(n_words) or not 1 <= n_words:
            raise ValueError(f"{name}: n_words={n_words!r} must be an integer of at least 1")
        weights = getattr(machine, "weights_", None)
        lines = np.arange(len(components)) if weights is None else np.argsort(-weights)
        top = np.argsort(-components, axis=1, kind="stable")[lines, : int(n_words)]
        shares = components / components.sum(axis=1, keepdims=True)
        return cls(
            names[top],
            np.take_along_axis(shares[lines], top, axis=1),
            None if weights is None else np.asarray(weights)[lines],
            described(estimator),
        ).plot(ax, **kwargs)

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
        lines, count = self.words.shape
        with self._drawing(ax) as axes:
            if axes.figure.get_layout_engine() is not None and len(axes.figure.axes) == 1:
                axes.figure.set_size_inches(1.2 + 0.98 * count, 1.0 + 0.36 * lines)
            paper = paper_of(axes)
            self.texts_ = []
            for line in range(lines):
                most = float(self.chances[line].max()) or 1.0
                drawn = []
                for place in range(count):
                    share = 0.12 + 0.55 * float(self.chances[line, place]) / most
                    shade = mixed(colour_of(0), paper, share)
                    box = {"boxstyle": "round,pad=0.28", "facecolor": shade, "edgecolor": "none"}
                    word = str(self.words[line, place])
                    word = word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"
                    look = {"ha": "center", "va": "center", "fontsize": "small", "bbox": box}
                    drawn.append(axes.text(place, line, plain(word), color=ink_on(shade), **look))
                self.texts_.append(drawn)
            names = [f"{k + 1}" for k in range(lines)]
            if self.weights is not None:
                names = [f"{100 * w:.0f} %" for w in self.weights]
            axes.set_yticks(range(lines), names)
            axes.set_xticks([])
            axes.set(xlim=(-0.6, count - 0.4), ylim=(lines - 0.45, -0.55))
            axes.set_ylabel("topic" if self.weights is None else "topic proportion")
            axes.set_xlabel("words, the most frequent first")
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0)
            title(axes, self.text)
        return self


def _words(display: str, estimator: Any, machine: Any, given: Any, count: int) -> Array:
    if given is None:
        given = getattr(machine, "feature_names_in_", None)
    if given is None and hasattr(estimator, "steps") and len(estimator.steps) > 1:
        given = estimator[:-1].get_feature_names_out()
    if given is None:
        raise ValueError(
            f"{display}: needs the words, feature_names=, such as "
            "CountVectorizer.get_feature_names_out()"
        )
    names = np.array([str(name) for name in given])
    if len(names) != count:
        raise ValueError(f"{display}: {len(names)} words in feature_names, but {count} columns")
    return names
