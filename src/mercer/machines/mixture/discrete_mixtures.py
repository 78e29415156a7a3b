"""Estimators `BernoulliMixture` and `MultinomialMixture`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.machines.base.parameters import (
    check_choice,
    check_flag,
    check_number,
    check_real,
    refuse,
)
from mercer.machines.mixture.discrete_em_steps import (
    BernoulliMix,
    MultinomialMix,
    TableParts,
    TiedBernoulliMix,
    TopicMix,
    as_counts,
    ratios,
)
from mercer.machines.mixture.machine import MixtureMachine, drawn_parts
from mercer.machines.mixture.problem import Mixture
from mercer.rows.points import is_sparse
from mercer.solvers.base import Callback

# --- bernoulli mixture ---------------------------------------------------------------------------
#
# Rows of zeros and ones from several sets of coins.


class BernoulliMixture(MixtureMachine):
    """A mixture of coins: P(x) = sum_j w_j prod_i p_ji^x_i (1 - p_ji)^(1 - x_i).

    Each component has a coin for each column, or with tied=True one coin for all of them. Found by
    expectation maximisation. Rows may be sparse and stay so.

    Parameters
    ----------
    n_components : int, "bic" or "mdl", default=2
        The number of components, or the criterion by which it is chosen among 1, ...,
        `max_components`: Bayes' information criterion, or the description length.
    smoothing : float, default=0.1
        Heads and tails that each coin is taken to have shown beforehand. Zero gives the most likely
        coins; then a head never seen has the chance 10^-12.
    binarize : float or None, default=0.0
        Entries above it count as one, others as zero; None: rows are zeros and ones already.
    tied : bool, default=False
        Whether a component is one coin that is tossed for every column (p_ji = p_j): two coins that
        are tossed three times each are three numbers, the share of the first and both chances.
    max_components : int, default=10
        The largest number tried when it is chosen.
    n_init : int, default=3
        Starts. Each runs a dozen passes, and the best one goes on.
    tol : float, default=1e-6
        Stop when a step adds no more than this to the objective per row.
    max_iter : int, default=500
        Largest number of passes over the rows.
    random_state : int, RandomState or None, default=0
        Source of the starts.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which a fit stops with what it has; for each number of components, when that
        is chosen.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        Shares w of the components.
    means_ : array of shape (n_components, n_features)
        Chances p of a one.
    coins_ : array of shape (n_components,)
        With tied=True: the chance p_j of a one that all columns of a component have.
    n_components_ : int
        The number of components.
    criteria_ : array of shape (max_components,)
        The criterion for each number, when it was chosen.
    collapsed_ : bool array of shape (n_components,)
        Components that no row is left to.
    log_likelihoods_ : array
        Objectives on the way: log-likelihoods plus the logarithm of the prior. They never fall.
    n_iter_ : int
        Passes over the rows.
    converged_ : bool
        Whether `tol` was reached.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The likelihood, and what another step would add, from the data. Made when first read.

    Examples
    --------
    Two coins, each tossed three times once it was picked:

    >>> import numpy as np
    >>> from mercer import BernoulliMixture
    >>> rng = np.random.default_rng(0)
    >>> heads = np.where(rng.uniform(size=5000) < 0.3, 0.9, 0.2)
    >>> tosses = rng.uniform(size=(5000, 3)) < heads[:, None]
    >>> coins = BernoulliMixture(2, smoothing=0.0, tied=True).fit(tosses)
    >>> order = np.argsort(coins.coins_)
    >>> coins.weights_[order].round(1).tolist(), coins.coins_[order].round(1).tolist()
    ([0.7, 0.3], [0.2, 0.9])
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        smoothing: float = 0.1,
        binarize: float | None = 0.0,
        tied: bool = False,
        max_components: int = 10,
        n_init: int = 3,
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.smoothing = smoothing
        self.binarize = binarize
        self.tied = tied
        self.max_components = max_components
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[Array, Array]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Source of random numbers.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            Rows of zeros and ones, sorted by component.
        labels : int array of shape (n_samples,)
            The component of each.
        """
        check_is_fitted(self)
        rng, labels = drawn_parts(self, n_samples, random_state)
        heads = rng.uniform(size=(len(labels), self.means_.shape[1])) < self.means_[labels]
        return heads.astype(np.float64), labels

    def _rows(self, X: Any, *, fitting: bool) -> Points:
        rows = super()._rows(X, fitting=fitting)
        if fitting:
            self._level = self.binarize  # what counts later is the level of the fit
        if self._level is None:
            values = rows.data if is_sparse(rows) else rows
            if not ((values == 0) | (values == 1)).all():
                raise ValueError(
                    "BernoulliMixture: X must hold zeros and ones only when binarize=None; give "
                    "the value above which an entry counts as one, e.g. binarize=0.0"
                )
            return rows.astype(np.float64)
        if not is_sparse(rows):
            return (rows > self._level).astype(np.float64)
        if self._level < 0:
            must = "be at least zero for sparse rows, whose zeros would all become ones"
            refuse(self, "binarize", self._level, must)
        ones = rows.astype(np.float64)
        ones.data = (rows.data > self._level).astype(np.float64)
        ones.eliminate_zeros()
        return ones

    def _question(self, X: Points, weights: Array, k: int) -> BernoulliMix:
        asks = TiedBernoulliMix if self.tied else BernoulliMix
        return asks(X, weights, k, float(self.smoothing))

    def _free(self, problem: BernoulliMix, k: int) -> tuple[int, int]:
        return 1 if self.tied else int(self.n_features_in_), 0

    def _keep(self, problem: BernoulliMix, parts: TableParts) -> None:
        self.weights_, self.means_ = parts.shares, parts.table
        self.__dict__.pop("coins_", None)
        if self.tied:
            self.coins_ = parts.table[:, 0].copy()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real(self, "smoothing", least=0)
        check_flag(self, "tied")
        if self.binarize is not None:
            check_real(self, "binarize")


# --- multinomial mixture -------------------------------------------------------------------------
#
# Topics: counts of words from several sources.

_LONGEST = 1e300  # words of a document whose log-probability is still a number


class MultinomialMixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixtureMachine):
    """Topics over counts of words: P(w | d) = sum_j P(topic j | d) P(w | topic j).

    With `source="words"` each word of a document has a topic of its own, and a document is a blend
    of topics (probabilistic latent semantic analysis): the matrix of words and documents is
    approximated by one of low rank. With `source="documents"` each document has one topic. Found by
    expectation maximisation; counts stay sparse. New documents are folded in: their proportions are
    found with the topics as they are.

    Parameters
    ----------
    n_components : int, "bic" or "mdl", default=10
        The number of topics; a criterion for source="documents" only.
    source : {"words", "documents"}, default="words"
        What has one topic: each word, or each document.
    smoothing : float, default=0.05
        How often each word is taken to have been seen in each topic beforehand.
    document_smoothing : float, default=0.1
        How many words of each topic each document is taken to have beforehand (source="words").
    max_components : int, default=10
        The largest number tried when it is chosen.
    n_init : int, default=1
        Starts. Each runs a dozen passes, and the best one goes on.
    tol : float, default=1e-4
        Stop when a step adds no more than this to the objective per word (per document for
        source="documents").
    max_iter : int, default=200
        Largest number of passes over the counts.
    random_state : int, RandomState or None, default=0
        Source of the starts.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which a fit stops with what it has; for each number of components, when that
        is chosen.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Chances of words in each topic.
    weights_ : array of shape (n_components,)
        Shares of the topics among all words, or among documents.
    n_components_ : int
        The number of topics.
    criteria_ : array of shape (max_components,)
        The criterion for each number, when it was chosen.
    collapsed_ : bool array of shape (n_components,)
        Topics that no word or document is left to.
    log_likelihoods_ : array
        Objectives on the way: log-likelihoods plus the logarithm of the prior. They never fall.
    n_iter_ : int
        Passes over the counts.
    converged_ : bool
        Whether `tol` was reached.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The likelihood, and what another step would add, from the data. Made when first read.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from mercer import MultinomialMixture
    >>> texts = ["salt pepper salt", "pepper salt oil", "rain wind rain", "wind rain snow"]
    >>> words = CountVectorizer()
    >>> topics = MultinomialMixture(2).fit(words.fit_transform(texts))
    >>> [" ".join(sorted(t)) for t in sorted(topics.top_words(2, words.get_feature_names_out()))]
    ['rain wind', 'pepper salt']
    """

    def __init__(
        self,
        n_components: int | str = 10,
        *,
        source: str = "words",
        smoothing: float = 0.05,
        document_smoothing: float = 0.1,
        max_components: int = 10,
        n_init: int = 1,
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.source = source
        self.smoothing = smoothing
        self.document_smoothing = document_smoothing
        self.max_components = max_components
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    def transform(self, X: Any) -> Array:
        """Return the proportions of topics in documents; new ones are folded in.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts of words.

        Returns
        -------
        array of shape (n_samples, n_components)
            Proportions; rows sum to one.
        """
        return self.predict_proba(X)

    def top_words(self, count: int = 10, names: npt.ArrayLike | None = None) -> list[list[str]]:
        """List the most frequent words of each topic.

        Parameters
        ----------
        count : int, default=10
            How many.
        names : array-like of shape (n_features,), optional
            The words; by default the names of the columns of the fit, or their numbers.

        Returns
        -------
        list of lists of str
            Words of each topic, most frequent first.
        """
        check_is_fitted(self)
        default = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        words = np.asarray(default if names is None else names)
        if len(words) != self.n_features_in_:
            raise ValueError(
                f"MultinomialMixture: names has {len(words)} entries, but there are "
                f"{self.n_features_in_} words"
            )
        most = check_number(self, "count", count)
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :most]
        return [[str(words[i]) for i in row] for row in order]

    def perplexity(self, X: Any, given: Any = None) -> float:
        """Return exp(- mean log-probability of a word): like guessing from that many words.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Counts of words to be predicted.
        given : array-like or sparse matrix of shape (n_samples, n_features), optional
            Counts of other words of the same documents, from which their topics are found. Without
            them topics are found from X itself: fine for comparing steps, too good for judging.

        Returns
        -------
        float
            The perplexity.
        """
        check_is_fitted(self)
        seen = as_counts(self._rows(X, fitting=False))
        known = seen if given is None else as_counts(self._rows(given, fitting=False))
        if known.shape != seen.shape:
            raise ValueError("MultinomialMixture: given must have a row for each row of X")
        total = float(seen.sum())
        if total == 0:
            raise ValueError("MultinomialMixture: X has no words, so there is no perplexity")
        shares = self.predict_proba(known)
        each = ratios(seen, np.ascontiguousarray(self.components_.T), shares)[1]
        return float(np.exp(-each.sum() / total))

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        length: int = 100,
    ) -> tuple[Array, Array]:
        """Draw documents.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Source of random numbers.
        length : int, default=100
            Words in each.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            Counts.
        shares : array of shape (n_samples, n_components)
            Topics: for source="words" proportions from the prior, around `weights_`.
        """
        check_is_fitted(self)
        words = check_number(self, "length", length)
        rng, labels = drawn_parts(self, n_samples, random_state)
        shares = np.eye(self.n_components_)[labels]
        if isinstance(self._problem, TopicMix):
            spread = self.n_components_ * (1.0 + self._problem.document_smoothing)
            shares = rng.dirichlet(np.maximum(spread * self.weights_, 1e-3), len(labels))
        chances = shares @ self.components_
        chances /= chances.sum(axis=1, keepdims=True)
        counts = np.zeros(chances.shape)
        for row, chance in zip(counts, chances, strict=True):
            row[:] = rng.multinomial(words, chance)
        return counts, shares

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _rows(self, X: Any, *, fitting: bool) -> Points:
        rows = super()._rows(X, fitting=fitting)
        _refuse_counts(rows)
        return rows.astype(np.float64)

    def _question(self, X: Points, weights: Array, k: int) -> Mixture:
        smoothing = float(self.smoothing)
        if self.source == "documents":
            return MultinomialMix(X, weights, k, smoothing)
        return TopicMix(as_counts(X), weights, k, smoothing, float(self.document_smoothing))

    def _converted(self, X: Points) -> Points:
        return as_counts(X) if isinstance(self._problem, TopicMix) else X

    def _free(self, problem: Mixture, k: int) -> tuple[int, int]:
        return int(self.n_features_in_) - 1, 0

    def _keep(self, problem: Any, parts: Any) -> None:
        self.components_ = parts.table
        if not isinstance(problem, TopicMix):
            self.weights_ = parts.shares
            return
        self.weights_ = problem.shares(parts)
        # the proportions of the training documents are found again when asked for
        self._parts = type(parts)(parts.table, parts.proportions[:0])

    def _total(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        check_is_fitted(self)
        if isinstance(self._problem, TopicMix):
            raise ValueError(
                "MultinomialMixture: bic and description_length need source='documents'. With "
                "source='words' each document has numbers of its own, and criteria that count "
                "numbers mislead; compare the perplexity of words held out instead"
            )
        return super()._total(X, sample_weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self, "source", ("words", "documents"))
        check_real(self, "smoothing", least=0)
        check_real(self, "document_smoothing", least=0)
        if isinstance(self.n_components, str) and self.source == "words":
            must = (
                "be a positive integer with source='words': compare perplexities of held-out words"
            )
            refuse(self, "n_components", self.n_components, must)


def _refuse_counts(X: Points) -> None:
    """Raise where a count is negative, or a document too long for float64."""
    values = X.data if is_sparse(X) else X
    if (values < 0).any():
        first = int(np.argmax(values.ravel() < 0))
        i, j = divmod(first, X.shape[1])
        if is_sparse(X):
            i, j = int(np.searchsorted(X.indptr, first, side="right")) - 1, X.indices[first]
        raise ValueError(
            "Negative values in data passed to MultinomialMixture, the first in row "
            f"{i}, column {j}: counts of words are zero or more. Differences or centred values are "
            "no counts; use GaussianMixture for them"
        )
    with np.errstate(over="ignore"):
        totals = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    long = np.flatnonzero(totals > _LONGEST)
    if len(long):
        raise ValueError(
            f"MultinomialMixture: row {long[0]} of X has {totals[long[0]]:.1e} words, too many for "
            "float64; divide all counts by a large number"
        )
