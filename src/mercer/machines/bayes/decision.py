"""Estimator `BayesDecision`, joint tables, and rows as symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, xlogy
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.machines.base.certificate import Certified, LazyDataCertificate
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.parameters import check_choice, is_real, refuse
from mercer.machines.base.targets import (
    batch_codes,
    check_loss,
    check_prior,
    check_weights,
    classes_for,
    classes_of,
    expected_risks,
    labels_of,
    loss_of,
    prior_of,
    refuse_mixed_labels,
)
from mercer.machines.bayes.columns import AttributeColumn, AttributeTable, is_missing, read_table
from mercer.machines.bayes.counts import check_smoothing
from mercer.machines.bayes.problem import ClassTables, ColumnMoments
from mercer.solvers.base import Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

# --- symbols -------------------------------------------------------------------------------------
#
# Whole rows as symbols, and how often each occurs in each class.

Tally = tuple[dict[Any, int], Array]


def symbols(machine: Any, table: AttributeTable) -> list[tuple[Any, ...]]:
    """Return each row as a tuple of its values; raise for missing entries."""
    columns = [_listed(machine, table.column(j), j) for j in range(table.shape[1])]
    return list(zip(*columns, strict=True))


def _listed(machine: Any, column: AttributeColumn, j: int) -> list[Any]:
    if column.codes is not None:
        gaps = np.flatnonzero(column.codes < 0)
        found = [column.values[code] for code in column.codes] if not len(gaps) else []
    else:
        x = np.asarray(column.numbers)
        gaps = np.flatnonzero(np.isnan(x) if x.dtype.kind == "f" else [])
        found = (x if x.dtype.kind == "b" else x + 0).tolist()  # -0.0 is 0.0
    if len(gaps):
        raise ValueError(
            f"Input X contains NaN: {len(gaps)} missing entries in column {j}, the first in row "
            f"{gaps[0]}. {type(machine).__name__} needs whole rows; NaiveBayes skips missing ones"
        )
    return found


def numbered(machine: Any, values: Iterable[Any], n: int) -> dict[Any, int]:
    """Return n observations, single values or whole rows, their places."""
    name = type(machine).__name__
    rows = [tuple(row) if isinstance(row, tuple | list) else (row,) for row in values]
    try:
        place = {row: i for i, row in enumerate(rows)}
    except TypeError as error:
        raise TypeError(f"{name}: values has an invalid entry ({error})") from error
    if not len(rows) == len(place) == n:
        raise ValueError(f"{name}: values must be {n} different ones")
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"{name}: values must be tuples of one length")
    return place


def tallied(rows: list[Any], codes: Array, weights: Array, k: int) -> Tally:
    """Count rows in classes; rows of weight zero do not occur."""
    kept = np.flatnonzero(weights)
    place: dict[Any, int] = {}
    numbers = [place.setdefault(rows[i], len(place)) for i in kept]
    flat = np.array(numbers, dtype=np.intp) * k + codes[kept]
    counts = np.bincount(flat, weights[kept], minlength=k * len(place)).reshape(-1, k)
    return place, counts


def ordered(machine: Any, classes: Any, k: int) -> tuple[Array, Array]:
    """Return k different labels, sorted, and the order that sorts them."""
    refuse_mixed_labels(machine, classes)
    labels = np.arange(k) if classes is None else np.asarray(classes)
    if labels.ndim != 1 or not len(labels) == len(np.unique(labels)) == k:
        raise ValueError(f"{type(machine).__name__}: classes must be {k} different labels")
    order = np.argsort(labels)
    return labels[order], order


def totals_of(machine: Any, counts: Array) -> Array:
    """Return the weight of each class; raise for weights whose sum overflows."""
    with np.errstate(over="ignore"):
        totals = counts.sum(axis=0)
        finite = bool(np.isfinite(totals.sum()))
    if not finite:
        raise ValueError(
            f"{type(machine).__name__}: sample_weight adds up to more than float64 holds; scale it "
            "down"
        )
    return np.asarray(totals)


def likelihoods(counts: Array, alpha: float) -> tuple[Array, Array]:
    """Return P(row | class), and that of rows never seen: smoothed, or equal for all classes."""
    below = counts.sum(axis=0) + alpha * len(counts)
    even = np.full_like(counts, 1.0 / len(counts))
    found = np.divide(counts + alpha, below, out=even, where=below > 0)
    unseen = np.ones_like(below)
    if alpha:
        np.divide(alpha, below, out=unseen, where=below > 0)
    return found, unseen


def posteriors(likelihood: Array, prior: Array) -> Array:
    """Return P(class | row) by Bayes' rule; the prior where a row never occurs."""
    joint = likelihood * prior
    evidence = joint.sum(axis=1, keepdims=True)
    out = np.repeat(prior[None], len(joint), axis=0)
    return np.asarray(np.divide(joint, evidence, out=out, where=evidence > 0))


def question(counts: Array, alpha: float, prior: Array) -> ClassTables:
    """State the table as a problem: one categorical attribute, the row."""
    flat = np.append(counts.T, np.zeros((counts.shape[1], 1)), axis=1)
    none = np.zeros((counts.shape[1], 0))
    parts = (none, none, none, ColumnMoments(none, none, none))
    return ClassTables(flat, np.zeros(1, int), *parts, float(alpha), np.zeros(0), prior)


def joined(one: Tally, other: Tally) -> Tally:
    """Add up two tallies."""
    place = dict(one[0])
    numbers = [place.setdefault(row, len(place)) for row in other[0]]
    counts = np.zeros((len(place), one[1].shape[1]))
    counts[: len(one[1])] = one[1]
    counts[numbers] += other[1]
    return place, counts


# --- joint table ---------------------------------------------------------------------------------
#
# Joint tables of discrete variables: marginals, conditionals, tests of independence.

_FEW = 5.0  # expected counts below this make the chi-squared distribution a poor guide
_DRAWS = 9999
_BLOCK = 1 << 20  # cells of random tables drawn at a time


@dataclass(frozen=True)
class Independence:
    """A test of independence.

    Attributes
    ----------
    statistic : float
        The test statistic; for the exact test of a 2 x 2 table the odds ratio.
    dof : int
        Degrees of freedom of the chi-squared distribution; 0 for exact tests.
    p_value : float
        Probability of a table at least as far from independence, were the variables independent.
    information : float
        Mutual information in the table, in nats: zero exactly for independence.
    method : str
        "chi2", "g" or "exact".
    """

    statistic: float
    dof: int
    p_value: float
    information: float
    method: str


class JointTable:
    """A table of how often, or with what probability, values of variables occur together.

    Parameters
    ----------
    table : array-like
        Counts or probabilities, one axis for each variable.
    names : sequence of str, optional
        Names of the variables; "x0", "x1", ... if not given.
    values : sequence of sequences, optional
        The values of each variable; 0, 1, ... if not given.

    Attributes
    ----------
    counts : array
        The table as given.
    probabilities : array
        The table divided by its total.
    total : float
        Sum of the table.

    Examples
    --------
    >>> from mercer import JointTable
    >>> hits = JointTable([[2, 5, 4, 2, 1], [0, 0, 3, 3, 2]], names=("h", "x"))
    >>> float(hits.marginal("h").probabilities[0] * 22)
    14.0
    >>> float(hits.conditional("h", given="x")[2, 1] * 7)
    3.0
    >>> float(hits.conditional("x", given="h")[1, 2] * 8)
    3.0
    >>> hits.conditional("h", given={"x": 3}).tolist()
    [0.4, 0.6]
    >>> round(hits.independence("h", "x", method="g").p_value, 3)
    0.068
    """

    def __init__(
        self,
        table: npt.ArrayLike,
        names: Sequence[str] | None = None,
        values: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        counts = np.array(table, dtype=np.float64)
        bad = not counts.ndim or not np.isfinite(counts).all() or (counts < 0).any()
        with np.errstate(over="ignore"):
            total = 0.0 if bad else float(counts.sum())
        if bad or not 0 < total < np.inf:
            raise ValueError(
                "JointTable: table must hold finite, nonnegative numbers, not all of them zero, "
                "with a finite sum"
            )
        counts.setflags(write=False)
        self.counts = counts
        self.total = total
        self.probabilities = counts / self.total
        self.names = tuple(names) if names is not None else _default_names(counts.ndim)
        self.values = (
            tuple(map(tuple, values))
            if values is not None
            else tuple(tuple(range(size)) for size in counts.shape)
        )
        words = {name for name in self.names if isinstance(name, str)}
        if not len(self.names) == len(words) == counts.ndim:
            raise ValueError(f"JointTable: names must be {counts.ndim} different strings")
        if tuple(map(len, self.values)) != counts.shape:
            raise ValueError(f"JointTable: values must name {counts.shape} values of the axes")

    @classmethod
    def from_data(
        cls,
        *columns: npt.ArrayLike,
        names: Sequence[str] | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Count how often values occur together.

        Parameters
        ----------
        *columns : array-like of shape (n,)
            One for each variable.
        names : sequence of str, optional
            Names of the variables.
        sample_weight : array-like of shape (n,), optional
            How often each row counts.

        Returns
        -------
        JointTable
            The counts; values are sorted, and those of no weight are not there.
        """
        arrays = [np.asarray(column) for column in columns]
        if not arrays or any(a.ndim != 1 or a.shape != arrays[0].shape for a in arrays):
            raise ValueError("JointTable: columns must be one-dimensional and equally long")
        weights = check_weights(cls.__new__(cls), sample_weight, len(arrays[0]))
        kept = weights > 0
        weights = weights[kept]
        found = [_sorted_values(array[kept], j) for j, array in enumerate(arrays)]
        shape = tuple(len(values) for values, _ in found)
        flat = np.ravel_multi_index([codes for _, codes in found], shape)
        counts = np.bincount(flat, weights, minlength=int(np.prod(shape))).reshape(shape)
        return cls(counts, names, [values.tolist() for values, _ in found])

    def axis(self, name: str | int) -> int:
        """Return the axis of a variable, by name or number."""
        if isinstance(name, str) and name in self.names:
            return self.names.index(name)
        if isinstance(name, int | np.integer) and 0 <= name < self.counts.ndim:
            return int(name)
        raise ValueError(f"JointTable: no variable {name!r}; there are {', '.join(self.names)}")

    def marginal(self, *names: str | int) -> JointTable:
        """Sum over all variables but these.

        Parameters
        ----------
        *names : str or int
            The variables to keep, in the order wanted.

        Returns
        -------
        JointTable
            Their table.
        """
        kept = [self.axis(name) for name in names]
        if len(set(kept)) < len(kept) or not kept:
            raise ValueError("JointTable: name at least one variable, each once")
        others = tuple(i for i in range(self.counts.ndim) if i not in kept)
        summed = self.counts.sum(axis=others)
        order = np.argsort(np.argsort(kept))
        table = np.transpose(summed, order)
        return JointTable(table, [self.names[i] for i in kept], [self.values[i] for i in kept])

    def conditional(
        self,
        of: str | int,
        given: str | int | Sequence[str | int] | Mapping[str | int, Any],
    ) -> Array:
        """Return P(of | given).

        Parameters
        ----------
        of : str or int
            The variable whose probabilities are wanted.
        given : str, int, sequence of these, or dict
            The variables that are known; a dict gives the value of each.

        Returns
        -------
        array
            Axes as in `given`, last that of `of`, along which it adds up to one; zeros where the
            condition has no probability. With a dict, the probabilities of `of` at these values.
        """
        if isinstance(given, Mapping):
            places = tuple(self._place(name, value) for name, value in given.items())
            return np.asarray(self.conditional(of, list(given))[places])
        known = [given] if isinstance(given, str | int | np.integer) else list(given)
        joint = self.marginal(*known, of).counts
        evidence = joint.sum(axis=-1, keepdims=True)
        shares = np.divide(joint, evidence, out=np.zeros_like(joint), where=evidence > 0)
        return np.asarray(shares)

    def _place(self, name: str | int, value: Any) -> int:
        """Return the place of a value on the axis of its variable."""
        axis = self.axis(name)
        if value not in self.values[axis]:
            some = ", ".join(map(repr, self.values[axis][:5]))
            raise ValueError(
                f"JointTable: {self.names[axis]!r} has no value {value!r}; its values are {some}"
                + (", ..." if len(self.values[axis]) > 5 else "")
            )
        return self.values[axis].index(value)

    def information(self, a: str | int, b: str | int, given: str | int | None = None) -> float:
        """Return the mutual information of two variables in nats, or its mean over a third."""
        return sum(share * _information(part) for part, share in _strata(self._slices(a, b, given)))

    def independence(
        self,
        a: str | int,
        b: str | int,
        given: str | int | None = None,
        *,
        method: str = "auto",
    ) -> Independence:
        """Test whether two variables are independent, or so given a third; for tables of counts.

        Parameters
        ----------
        a, b : str or int
            The variables.
        given : str or int, optional
            A third one: statistics of its slices are added up, degrees of freedom, too.
        method : {"auto", "chi2", "g", "exact"}, default="auto"
            Pearson's statistic, the likelihood ratio, or the exact distribution given the margins
            (Fisher's for 2 x 2; for larger tables, and given a third variable, Pearson's statistic
            among 9999 random tables). "auto" takes the exact one where some expected count is below
            five, else "g".

        Returns
        -------
        Independence
            Statistic, degrees of freedom, p-value.
        """
        if method not in ("auto", "chi2", "g", "exact"):
            raise ValueError(f"JointTable: method={method!r} must be auto, chi2, g or exact")
        if np.abs(self.counts - np.rint(self.counts)).max() > 1e-9:
            raise ValueError("JointTable: a test needs counts, and the table holds other numbers")
        slices = self._slices(a, b, given)
        few = min(float(_expected(part).min()) for part in slices) < _FEW
        if method == "exact" or (method == "auto" and few):
            statistic, p = _exact(slices)
            return Independence(statistic, 0, p, self.information(a, b, given), "exact")
        method = "g" if method == "auto" else method
        found = [_asymptotic(part, method) for part in slices]
        statistic, dof = sum(s for s, _ in found), sum(d for _, d in found)
        p = float(chdtrc(dof, statistic)) if dof else 1.0
        return Independence(float(statistic), dof, p, self.information(a, b, given), method)

    def _slices(self, a: str | int, b: str | int, given: str | int | None) -> list[Array]:
        """Return the table of two variables, for each value of a third; empty margins left out."""
        if given is None:
            parts = [self.marginal(a, b).counts]
        else:
            parts = list(self.marginal(given, a, b).counts)
        return [part[part.any(axis=1)][:, part.any(axis=0)] for part in parts if part.any()]

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.counts.shape))
        return f"<JointTable of {', '.join(self.names)}: {shape}, total {self.total:g}>"


def _default_names(count: int) -> tuple[str, ...]:
    return tuple(f"x{i}" for i in range(count))


def _strata(parts: list[Array]) -> list[tuple[Array, float]]:
    total = sum(float(part.sum()) for part in parts)
    return [(part, float(part.sum()) / total) for part in parts]


def _information(part: Array) -> float:
    p = part / part.sum()
    alone = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    return max(0.0, float((xlogy(p, p) - xlogy(p, alone)).sum()))


def _asymptotic(part: Array, method: str) -> tuple[float, int]:
    expected = _expected(part)
    dof = (part.shape[0] - 1) * (part.shape[1] - 1)
    if method == "chi2":
        return float(((part - expected) ** 2 / expected).sum()), dof
    return 2.0 * float((xlogy(part, part) - xlogy(part, expected)).sum()), dof


def _expected(part: Array) -> Array:
    """Return the counts that independence would lead one to expect."""
    return np.asarray(np.outer(part.sum(axis=1), part.sum(axis=0) / part.sum()))


def _exact(slices: list[Array]) -> tuple[float, float]:
    """Return the statistic and the p-value of tables among those with the same margins."""
    from scipy import stats  # noqa: PLC0415  slow to load

    parts = [np.rint(part).astype(np.int64) for part in slices if min(part.shape) > 1]
    if len(slices) == 1 and parts and parts[0].shape == (2, 2):
        ratio, p = stats.fisher_exact(parts[0])
        return float(ratio), float(p)
    statistic = sum(_asymptotic(part, "chi2")[0] for part in parts)
    rng, beyond = np.random.default_rng(0), 0
    step = max(1, _BLOCK // max((part.size for part in parts), default=1))
    for first in range(0, _DRAWS, step):
        found = np.zeros(min(step, _DRAWS - first))
        for part in parts:
            margins = stats.random_table(part.sum(axis=1), part.sum(axis=0), seed=rng)
            expected = _expected(part)
            drawn = margins.rvs(size=len(found))
            found += ((drawn - expected) ** 2 / expected).sum(axis=(1, 2))
        beyond += int(np.count_nonzero(found >= statistic * (1 - 1e-12)))
    return float(statistic), (beyond + 1) / (_DRAWS + 1)


def _sorted_values(column: Array, j: int) -> tuple[Array, Array]:
    """Return the different values of a column, sorted, and the place of each entry."""
    missing = [i for i, value in enumerate(column.tolist()) if is_missing(value)]
    if missing:
        raise ValueError(
            f"JointTable: {len(missing)} entries of column {j} are missing, the first of those "
            f"that count is number {missing[0]}; leave such rows out"
        )
    try:
        values, codes = np.unique(column, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"JointTable: the values of column {j} cannot be sorted ({error}); give all as strings"
        ) from error
    return values, codes


# --- bayes decision ------------------------------------------------------------------------------
#
# Decisions from a joint table: likelihood, posterior, least expected risk, and rejection.


class BayesDecision(Certified, ClassifierMixin, Machine, BaseEstimator):
    """Bayes decisions from a joint table of observations and classes, with costs of errors.

    P(h | x) = P(x | h) P(h) / P(x). The decision with the least expected risk
    R(i | x) = sum_j loss(i, j) P(j | x) is chosen; with the 0/1 loss, that is the most probable
    class; with equal priors, the most likely one. An observation is the whole row: a table needs a
    cell for each, so this is for few attributes with few values (`NaiveBayes` for others). A row
    never seen leaves the prior unchanged.

    `rule`, `loss` and `reject` may be changed after the fit; `prior` and `alpha` belong to it.

    Parameters
    ----------
    rule : {"risk", "map", "ml"}, default="risk"
        Least expected risk, largest posterior (ignores `loss`), or largest likelihood (ignores
        `loss` and `prior`).
    loss : matrix of shape (n_classes, n_classes) or None, default=None
        Entry (i, j) is the cost of deciding i when j is true; None is 0/1.
    reject : float or None, default=None
        Cost of not deciding; None never rejects.
    reject_label : object, default="reject"
        Output of `predict` for rejected rows.
    prior : "uniform", array of shape (n_classes,) or None, default=None
        Probabilities of the classes; None takes their shares in the data.
    alpha : float, default=0.0
        Count added to each cell.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    values_ : list of tuple
        The observations, one for each row of the tables.
    counts_ : array of shape (n_values, n_classes)
        The weight of each cell.
    likelihood_ : array of shape (n_values, n_classes)
        P(x | h).
    prior_ : array of shape (n_classes,)
        P(h).
    joint_ : JointTable
        P(x, h), with the variables "x" and "h".
    evidence_ : array of shape (n_values,)
        P(x).
    posterior_ : array of shape (n_values, n_classes)
        P(h | x).
    solution_ : Solution
        How the table was made.
    certificate_ : Certificate
        Whether the likelihoods are those of the counts.

    Examples
    --------
    >>> from mercer import BayesDecision
    >>> kit = BayesDecision.from_likelihood(
    ...     [[0.98, 0.03], [0.02, 0.97]], [0.01, 0.99], classes=["cancer", "healthy"],
    ...     values=["+", "-"])
    >>> kit.predict_proba([["+"]]).round(3).tolist()  # 0.0098 / 0.0395
    [[0.248, 0.752]]
    >>> costly = kit.set_params(loss=[[0, 1], [20, 0]])  # to miss a cancer costs 20
    >>> costly.predict([["+"]]).tolist(), costly.set_params(reject=0.5).predict([["+"]]).tolist()
    (['cancer'], ['reject'])
    """

    def __init__(
        self,
        rule: str = "risk",
        *,
        loss: npt.ArrayLike | None = None,
        reject: float | None = None,
        reject_label: Any = "reject",
        prior: npt.ArrayLike | str | None = None,
        alpha: float = 0.0,
    ) -> None:
        self.rule = rule
        self.loss: Any = loss
        self.reject = reject
        self.reject_label = reject_label
        self.prior: Any = prior
        self.alpha = alpha

    @classmethod
    def from_table(
        cls, table: npt.ArrayLike, *, classes: Any = None, values: Any = None, **params: Any
    ) -> Self:
        """Make an estimator from counts or probabilities.

        Parameters
        ----------
        table : array-like of shape (n_values, n_classes)
            Weight of each observation in each class.
        classes : array-like of shape (n_classes,), optional
            Labels; 0, 1, ... if not given.
        values : sequence, optional
            The observations, single values or tuples; 0, 1, ... if not given.
        **params
            Parameters of the estimator.

        Returns
        -------
        BayesDecision
            The estimator, ready to decide.
        """
        return cls(**params)._tabled(JointTable(table).counts, None, classes, values)

    @classmethod
    def from_likelihood(
        cls,
        likelihood: npt.ArrayLike,
        prior: npt.ArrayLike,
        *,
        classes: Any = None,
        values: Any = None,
        **params: Any,
    ) -> Self:
        """Make an estimator from P(x | h) and P(h).

        Parameters
        ----------
        likelihood : array-like of shape (n_values, n_classes)
            Columns add up to one.
        prior : array-like of shape (n_classes,)
            Probabilities of the classes.
        classes, values : sequences, optional
            As for `from_table`.
        **params
            Parameters of the estimator.

        Returns
        -------
        BayesDecision
            The estimator, ready to decide.
        """
        table, shares = np.asarray(likelihood, dtype=float), np.asarray(prior, dtype=float)
        good = table.ndim == 2 and np.allclose(table.sum(axis=0), 1.0, atol=1e-6)
        if not good or shares.shape != table.shape[1:] or abs(shares.sum() - 1.0) > 1e-6:
            raise ValueError(
                "BayesDecision: the columns of likelihood, and prior, must each add up to one"
            )
        counts = JointTable(table * shares).counts
        return cls(**params)._tabled(counts, table, classes, values)

    def _tabled(self, counts: Array, likelihood: Array | None, classes: Any, values: Any) -> Self:
        """Take counts, and likelihoods where classes have no counts, by their names."""
        self._check_parameters()
        if counts.ndim != 2 or counts.shape[1] < 2:
            raise ValueError("BayesDecision: table must have a column for each of two classes")
        self.classes_, order = ordered(self, classes, counts.shape[1])
        place = numbered(self, range(len(counts)) if values is None else values, len(counts))
        self.n_features_in_ = len(next(iter(place)))
        self._keep(place, counts[:, order], None if likelihood is None else likelihood[:, order])
        return self

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Count how often each row occurs with each label.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows of discrete attributes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._count(X, y, None, sample_weight, stream=False)

    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Count more rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels there will be; needed at the first call.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The estimator.
        """
        return self._count(X, y, classes, sample_weight, stream=True)

    def _count(self, X: Any, y: Any, classes: Any, sample_weight: Any, stream: bool) -> Self:
        self._check_parameters()
        first = not stream or "_place" not in self.__dict__
        rows = symbols(self, read_table(self, X, first, y, sparse_too=False))
        y = labels_of(self, y, len(rows))
        weights = check_weights(self, sample_weight, len(y))
        if stream:
            self.classes_ = classes_for(self, classes, first)
            codes = batch_codes(self, y, weights)
        else:
            self.classes_, codes = classes_of(self, y, weights)
        batch = tallied(rows, codes, weights, len(self.classes_))
        self._keep(*(batch if first else joined((self._place, self.counts_), batch)))
        return self

    def _keep(self, place: dict[Any, int], counts: Array, likelihood: Array | None = None) -> None:
        loss_of(self, len(self.classes_))
        totals = totals_of(self, counts)
        self._place = place
        self.counts_ = counts
        self.values_ = list(place)
        self.prior_ = prior_of(self, totals)
        if likelihood is not None:  # a class of no probability still has its likelihoods
            counts = np.where(totals > 0, counts, likelihood)
        self.likelihood_, self._unseen = likelihoods(counts, self.alpha)
        self.evidence_ = self.likelihood_ @ self.prior_
        names = (self.values_, self.classes_.tolist())
        self.joint_ = JointTable(self.likelihood_ * self.prior_, ("x", "h"), names)
        self.posterior_ = posteriors(self.likelihood_, self.prior_)
        problem = question(counts, self.alpha, self.prior_)
        self.solution_: Solution = solve(problem)
        self._judgement = LazyDataCertificate(problem, self.solution_.value, certify)

    def predict(self, X: Any) -> Array:
        """Decide.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels, or `reject_label`; the first class in case of a tie.
        """
        posterior = self.predict_proba(X)
        risks, loss = self._risks(posterior)
        # with 0/1 losses by the probabilities themselves: rounding of risks must not undo a tie
        best = np.argmax(posterior, axis=1) if loss is None else np.argmin(risks, axis=1)
        labels = np.asarray(self.classes_[best])
        if self.reject is None:
            return labels
        refused = risks[np.arange(len(best)), best] > self.reject
        out = labels.astype(object)
        out[refused] = self.reject_label
        return out

    def risk(self, X: Any) -> Array:
        """Return the expected risk of every decision, under the rule.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            R(i | x).
        """
        return self._risks(self.predict_proba(X))[0]

    def _risks(self, posterior: Array) -> tuple[Array, Array | None]:
        """Return the risks, and the loss matrix unless it is 0/1."""
        loss = loss_of(self, len(self.classes_)) if self.rule == "risk" else None
        return 1.0 - posterior if loss is None else expected_risks(posterior, loss), loss

    def predict_proba(self, X: Any) -> Array:
        """Return P(h | x), with equal priors under rule="ml".

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Rows add up to one.
        """
        likelihood = self._likelihood(X)
        self._check_parameters()  # rule, loss and reject may have changed since the fit
        k = len(self.classes_)
        prior = np.full(k, 1.0 / k) if self.rule == "ml" else self.prior_
        return posteriors(likelihood, prior)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the posteriors: -inf for excluded classes (alpha=0).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Log-probabilities.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def update(self, X: Any, belief: npt.ArrayLike | None = None) -> Array:
        """Update a belief by one observation after another, independent given the class.

        Parameters
        ----------
        X : array-like of shape (n_observations, n_features), or (n_observations,) for one feature
            Observations, in order.
        belief : array-like of shape (n_classes,), optional
            Initial probabilities; the prior if not given.

        Returns
        -------
        array of shape (n_observations, n_classes)
            The posterior after each.
        """
        check_is_fitted(self, "_place")
        if np.ndim(X) == 1 and self.n_features_in_ == 1:
            X = [[x] for x in X]
        now = self.prior_ if belief is None else np.asarray(belief, dtype=np.float64)
        good = now.shape == self.prior_.shape and np.isfinite(now).all() and (now >= 0).all()
        if not good or not now.sum() > 0:
            raise ValueError(f"BayesDecision: belief must be {len(self.prior_)} probabilities")
        now = now / now.max()
        out = []
        for i, likelihood in enumerate(self._likelihood(X)):
            if not likelihood @ now > 0:
                raise ValueError(
                    f"BayesDecision: observation {i} has probability zero under every class that "
                    "is believed in; use alpha > 0"
                )
            now = likelihood * now / (likelihood @ now)
            out.append(now)
        return np.array(out).reshape(-1, len(now))

    def _likelihood(self, X: Any) -> Array:
        """Return P(x | h) of rows; those never seen are equally likely everywhere, or smoothed."""
        check_is_fitted(self, "_place")
        rows: Sequence[Any] = symbols(self, read_table(self, X, False, sparse_too=False))
        table = np.vstack([self.likelihood_, self._unseen])
        return np.asarray(table[[self._place.get(row, len(self.counts_)) for row in rows]])

    def _check_parameters(self) -> None:
        check_choice(self, "rule", ("risk", "map", "ml"))
        check_loss(self)
        check_prior(self)
        check_smoothing(self)
        if self.reject is not None and not (is_real(self.reject) and self.reject >= 0):
            refuse(self, "reject", self.reject, "be None or a cost of at least 0")
