"""A filter for texts that learns from each: answer, be corrected, go on."""

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
    """What a filter says of a text.

    Attributes
    ----------
    label : str
        The class.
    score : float
        How clear that is: the lead of the class over the next one, in logarithms of probabilities
        ("naive_bayes") or in units of the decision function ("perceptron"). 0 before anything was
        learnt.
    """

    label: str
    score: float


class TextFilter:
    """Learn to sort texts, one at a time, from labels that come after the answer.

    Words are counted in a table of fixed width, so memory does not grow with the stream beyond it.

    Parameters
    ----------
    labels : sequence of str
        All classes there will be, such as ("ham", "spam").
    method : {"naive_bayes", "perceptron"}
        Naive Bayes counts every text that is taught; the perceptron changes with its mistakes only.
    vocabulary : {"growing", "hashing"}
        As in `BagOfWords`.
    n_features : int
        Columns for words; naive Bayes takes time in proportion to them for each text.

    Attributes
    ----------
    seen, mistakes : int
        Texts that were taught, and those among them whose label was not the answer before.
    mistakes_by_label : dict of str to int
        The same for each true label.

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
                f"TextFilter: labels={list(labels)!r} must be two or more, all different"
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
        """Return the class of a text; nothing is learnt.

        Parameters
        ----------
        text : str
            Any text.

        Returns
        -------
        Answer
            Label and score; the first label before anything was learnt.
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
        """Answer, then learn the right label.

        Parameters
        ----------
        text : str
            Any text.
        label : str
            Its class.

        Returns
        -------
        Answer
            What the filter said before it learnt; it was a mistake where that is not the label.
        """
        if label not in self.mistakes_by_label:
            raise ValueError(f"learn: label={label!r} is none of {list(self.labels)}")
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
        """Return the shares of the labels so far, each counted once more: none is impossible."""
        counts = np.array(getattr(self.machine, "class_count_", np.zeros(len(self._order))))
        counts[self._order.index(label)] += 1
        return list(((counts + 1) / (counts + 1).sum()).tolist())

    @property
    def mistake_rate(self) -> float:
        """Share of the texts taught that were mistaken; NaN before the first."""
        return self.mistakes / self.seen if self.seen else float("nan")

    def bound(self, margin: float) -> Bound:
        """Bound the mistakes of a perceptron on the stream so far, if texts have a margin.

        Parameters
        ----------
        margin : float
            By which some hyperplane divides the counts of words of all texts; it cannot be known
            from the stream alone.

        Returns
        -------
        Bound
            Novikoff's (R / margin)^2, with R the length of the longest text so far.
        """
        if self.method != "perceptron":
            raise ValueError("bound: mistakes are bounded for method='perceptron' only")
        if not self.seen:
            raise ValueError("bound: nothing was learnt yet; there is no longest text")
        return novikoff(float(self.machine.radius_), margin)

    def __str__(self) -> str:
        rate = f", {100 * self.mistake_rate:.2f} %" if self.seen else ""
        return f"{self.mistakes} mistakes in {self.seen} texts{rate}"

    def _refuse(self, text: Any) -> None:
        if not isinstance(text, str):
            raise TypeError(f"TextFilter: a text must be a str, not {type(text).__name__}")
