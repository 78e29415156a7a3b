"""Texts to counts of words, with a vocabulary that may grow as texts arrive."""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.parameters import check_choice, check_count, check_flag, refuse


class BagOfWords(TransformerMixin, Machine, BaseEstimator):
    r"""Counts the words of texts, in a sparse matrix of fixed width.

    Texts are cut into words by scikit-learn's vectorizer. Each new word gets the next free column,
    so `partial_fit` can continue as long as texts arrive. Estimators that count, such as
    `NaiveBayes`, need not know the number of words. Once all columns are used, further
    words are left out. With hashing there is no vocabulary: the column of a word is its hash.

    Parameters
    ----------
    vocabulary : {"growing", "hashing"}, default="growing"
        Whether words get columns as they come, or by their hash.
    n_features : int, default=131072
        The number of columns.
    binary : bool, default=False
        Whether to note presence (1) instead of counting.
    lowercase : bool, default=True
        Whether case is ignored.
    analyzer : {"word", "char", "char_wb"} or callable, default="word"
        Kind of word, as in `sklearn.feature_extraction.text.CountVectorizer`.
    ngram_range : tuple of int, default=(1, 1)
        Shortest and longest runs of words that count as one.
    token_pattern : str, default="(?u)\b\w\w+\b"
        Regular expression of a word.
    stop_words : "english", list or None, default=None
        Words to leave out.
    strip_accents : {"ascii", "unicode"} or None, default=None
        Whether accents are removed.

    Attributes
    ----------
    vocabulary_ : dict
        The column of each word, if the vocabulary grows.
    n_words_ : int
        Columns taken so far, if the vocabulary grows.
    full_ : bool
        Whether words were left out because all columns were in use.

    Examples
    --------
    >>> from mercer import BagOfWords
    >>> words = BagOfWords(n_features=8).partial_fit(["win money now"]).partial_fit(["call me now"])
    >>> words.vocabulary_
    {'win': 0, 'money': 1, 'now': 2, 'call': 3, 'me': 4}
    >>> words.transform(["now now unheard"]).toarray().tolist()
    [[0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        vocabulary: str = "growing",
        *,
        n_features: int = 2**17,
        binary: bool = False,
        lowercase: bool = True,
        analyzer: Any = "word",
        ngram_range: tuple[int, int] = (1, 1),
        token_pattern: str = r"(?u)\b\w\w+\b",
        stop_words: Any = None,
        strip_accents: str | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.n_features = n_features
        self.binary = binary
        self.lowercase = lowercase
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.token_pattern = token_pattern
        self.stop_words = stop_words
        self.strip_accents = strip_accents

    @all_or_nothing
    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Learn the words of texts, forgetting others.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : ignored
            Not used.

        Returns
        -------
        self
            The estimator.
        """
        self.full_ = False
        self.vocabulary_: dict[str, int] = {}
        self._check_parameters()
        self._learn(_texts(X))
        return self

    @all_or_nothing
    def partial_fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Learn the words of more texts; those known keep their columns.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : ignored
            Not used.

        Returns
        -------
        self
            The estimator.
        """
        self._check_parameters()
        self.full_ = getattr(self, "full_", False)
        self.vocabulary_ = getattr(self, "vocabulary_", {})
        self._learn(_texts(X))
        return self

    def transform(self, X: Iterable[str]) -> Any:
        """Count the words of texts; words not learned are left out.

        Parameters
        ----------
        X : iterable of str
            Texts.

        Returns
        -------
        CSR array of shape (n_texts, n_features)
            Counts.
        """
        check_is_fitted(self, "vocabulary_")
        self._check_parameters()
        texts = _texts(X)
        if self.vocabulary == "hashing":
            from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415  slow to load, rarely used

            # the hashing vectorizer has no state; columns do not depend on the training texts
            hasher = HashingVectorizer(
                n_features=self.n_features, norm=None, alternate_sign=False, **self._options()
            )
            return sparse.csr_array(hasher.transform(texts))
        analyse, place = self._analyser(), self.vocabulary_
        columns: list[int] = []
        ends = np.zeros(len(texts) + 1, dtype=np.intp)
        for i, text in enumerate(texts):
            found = [place[word] for word in analyse(text) if word in place]
            columns += set(found) if self.binary else found
            ends[i + 1] = len(columns)
        parts = (np.ones(len(columns)), np.array(columns, dtype=np.intp), ends)
        counted = sparse.csr_array(parts, shape=(len(texts), self.n_features))
        counted.sum_duplicates()
        return counted

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the word of each column; "free_17" for columns not taken, "hash_17" for hashes.

        Parameters
        ----------
        input_features : ignored
            Not used.

        Returns
        -------
        array of shape (n_features,)
            Names.
        """
        check_is_fitted(self, "vocabulary_")
        kind = "hash" if self.vocabulary == "hashing" else "free"
        names = [f"{kind}_{i}" for i in range(self.n_features)]
        for word, i in self.vocabulary_.items():
            names[i] = word
        return np.array(names, dtype=object)

    @property
    def n_words_(self) -> int:
        """Columns taken so far."""
        check_is_fitted(self, "vocabulary_")
        return len(self.vocabulary_)

    def _learn(self, texts: list[str]) -> None:
        if self.vocabulary == "hashing":
            return
        analyse, known = self._analyser(), self.vocabulary_
        new: dict[str, int] = {}
        for text in texts:
            for word in analyse(text):
                if word not in known and word not in new:
                    new[word] = len(known) + len(new)
        free = self.n_features - len(known)
        self.full_ = self.full_ or len(new) > free
        # last, and at once: a stream of single texts must not copy the vocabulary each time
        known.update({word: i for word, i in new.items() if i < self.n_features})

    def _analyser(self) -> Any:
        """Return the function that cuts a text into words."""
        from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415  slow to load, rarely used

        return CountVectorizer(**self._options()).build_analyzer()

    def _options(self) -> dict[str, Any]:
        names = ("binary", "lowercase", "analyzer", "ngram_range", "stop_words", "strip_accents")
        options = {name: getattr(self, name) for name in names}
        if self.analyzer == "word":
            options["token_pattern"] = self.token_pattern
        return options

    def _check_parameters(self) -> None:
        check_choice(self, "vocabulary", ("growing", "hashing"))
        check_count(self, "n_features")
        taken = len(getattr(self, "vocabulary_", ()))
        if self.n_features < taken:
            must = f"be at least {taken}, the number of columns in use; call fit to start over"
            refuse(self, "n_features", self.n_features, must)
        check_flag(self, "binary")
        check_flag(self, "lowercase")
        if not callable(self.analyzer):
            check_choice(self, "analyzer", ("word", "char", "char_wb"))
        if self.strip_accents is not None and not callable(self.strip_accents):
            check_choice(self, "strip_accents", ("ascii", "unicode"))
        if isinstance(self.stop_words, str):
            check_choice(self, "stop_words", ("english",))
        _check_lengths(self)
        if isinstance(self.analyzer, str) and self.analyzer == "word":
            _check_pattern(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _check_lengths(machine: BagOfWords) -> None:
    given = machine.ngram_range
    good = isinstance(given, tuple | list) and len(given) == 2
    if not good or not all(isinstance(length, Integral) for length in given):
        refuse(machine, "ngram_range", given, "be a pair of integers, e.g. (1, 2)")
    if not 1 <= given[0] <= given[1]:
        refuse(machine, "ngram_range", given, "hold at least 1, and the larger one last")


def _check_pattern(machine: BagOfWords) -> None:
    try:
        re.compile(machine.token_pattern)
    except (re.error, TypeError) as error:
        refuse(machine, "token_pattern", machine.token_pattern, f"be a pattern: {error}")


def _texts(X: Any) -> list[str]:
    """Return a list of texts; raise for a single one, numbers and missing texts."""
    if isinstance(X, str):
        raise ValueError(
            "BagOfWords: Iterable over raw text documents expected, string object received: put a "
            "single text in a list"
        )
    texts = list(X)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"BagOfWords: entry {i} of X is {text!r}, not a text; write '' for an empty one"
            )
    return texts
