"""Text filter that learns online from labels and corrections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.machines.bayes.bag_of_words import BagOfWords
from mercer.machines.bayes.naive_bayes import NaiveBayes
from mercer.machines.perceptron.perceptron import Perceptron
from mercer.theory import Bound, novikoff

_METHODS = ("naive_bayes", "perceptron")


@dataclass(frozen=True)
class Answer:
    """Prediction of a filter for a text.

    Attributes
    ----------
    label : str
        The class.
    score : float
        Margin of the class over the next one: log odds ("naive_bayes") or the difference of
        decision values ("perceptron"). 0 before the first label.
    """

    label: str
    score: float


class TextFilter:
    """Classify texts one at a time and learn from labels after each prediction.

    Words are counted in a table of fixed width, which limits the memory.

    Parameters
    ----------
    labels : sequence of str
        All classes, such as ("ham", "spam").
    method : {"naive_bayes", "perceptron"}
        Naive Bayes counts all labeled texts; the perceptron learns only from mistakes.
    vocabulary : {"growing", "hashing"}
        See `BagOfWords`.
    n_features : int
        Number of features for words. The time of naive Bayes per text is proportional to it.

    Attributes
    ----------
    seen, mistakes : int
        Number of labeled texts, and of those that were predicted incorrectly.
    mistakes_by_label : dict of str to int
        Number of mistakes for each true label.

    Examples
    --------
    >>> from mercer.fitting import TextFilter
    >>> mail = TextFilter(["ham", "spam"])
    >>> for text, label in [("win money now", "spam"), ("lunch at noon", "ham")] * 3:
    ...     _ = mail.learn(text, label)
    >>> mail.answer("money money").label
    'spam'
    >>> mail.seen, mail.mistakes
    (6, 2)
    """

    def __init__(
        self,
        labels: Any,
        *,
        method: str = "naive_bayes",
        vocabulary: str = "growing",
        n_features: int = 2**15,
    ) -> None:
        self.labels = tuple(str(label) for label in labels)
        if len(set(self.labels)) < 2 or len(set(self.labels)) < len(self.labels):
            raise ValueError(
                f"TextFilter: labels={list(labels)!r} must contain at least two distinct labels"
            )
        if method not in _METHODS:
            raise ValueError(f"TextFilter: method={method!r} must be one of {', '.join(_METHODS)}")
        self.method = method
        self.words = BagOfWords(vocabulary, n_features=n_features)
        self.machine: Any = NaiveBayes(kinds="count") if method == "naive_bayes" else Perceptron()
        self.seen = self.mistakes = 0
        self.mistakes_by_label = dict.fromkeys(self.labels, 0)
        self._order = sorted(self.labels)

    def answer(self, text: str) -> Answer:
        """Predict the class of a text without learning.

        Parameters
        ----------
        text : str
            Any text.

        Returns
        -------
        Answer
            Label and score. Before any learning, the first label.
        """
        self._refuse(text)
        if not self.seen:
            return Answer(self.labels[0], 0.0)
        scores = np.ravel(self.machine.decision_function(self.words.transform([text])))
        if len(self._order) == 2:
            return Answer(self._order[int(scores[0] > 0)], float(abs(scores[0])))
        first, second = np.argsort(-scores, kind="stable")[:2]
        return Answer(self._order[int(first)], float(scores[first] - scores[second]))

    def learn(self, text: str, label: str) -> Answer:
        """Predict the class of a text, then learn its label.

        Parameters
        ----------
        text : str
            Any text.
        label : str
            Class of the text.

        Returns
        -------
        Answer
            Prediction before learning. A mistake if it differs from the label.
        """
        if label not in self.mistakes_by_label:
            raise ValueError(f"TextFilter: label={label!r} must be one of {list(self.labels)}")
        said = self.answer(text)
        self.words.partial_fit([text])
        if self.method == "naive_bayes":
            self.machine.set_params(prior=self._prior_with(label))
        self.machine.partial_fit(self.words.transform([text]), [label], classes=self._order)
        self.seen += 1
        wrong = int(said.label != label)
        self.mistakes += wrong
        self.mistakes_by_label[label] += wrong
        return said

    def _prior_with(self, label: str) -> list[float]:
        """Return the fractions of the labels so far with one pseudocount each."""
        counts = np.array(getattr(self.machine, "class_count_", np.zeros(len(self._order))))
        counts[self._order.index(label)] += 1
        return list(((counts + 1) / (counts + 1).sum()).tolist())

    @property
    def mistake_rate(self) -> float:
        """Fraction of mistakes among the labeled texts. NaN before the first text."""
        return self.mistakes / self.seen if self.seen else float("nan")

    def bound(self, margin: float) -> Bound:
        """Bound the mistakes of a perceptron on the stream so far, if the texts have a margin.

        Parameters
        ----------
        margin : float
            Margin of a hyperplane that separates the word counts of all texts. It cannot be
            determined from the stream alone.

        Returns
        -------
        Bound
            Novikoff's bound (R / margin)^2, where R is the largest norm of the texts so far.
        """
        if self.method != "perceptron":
            raise ValueError("TextFilter: bound requires method='perceptron'")
        if not self.seen:
            raise ValueError("TextFilter: bound requires a learned text; call learn first")
        return novikoff(float(self.machine.radius_), margin)

    def __str__(self) -> str:
        rate = f", {100 * self.mistake_rate:.2f} %" if self.seen else ""
        return f"{self.mistakes} mistakes in {self.seen} texts{rate}"

    def _refuse(self, text: Any) -> None:
        if not isinstance(text, str):
            raise TypeError(f"TextFilter: a text must be a str, not {type(text).__name__}")
