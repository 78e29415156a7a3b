"""Transformer from mixed tables to numeric rows: dates, tf-idf weights, and the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.data.column import different
from mercer.data.errors import DataError
from mercer.data.kinds import WORD, Kind
from mercer.data.table import Table

# --- dates ---------------------------------------------------------------------------------------
#
# Dates as numbers: days, and where the year, the week and the day stand.

DAY = np.timedelta64(1, "D")
# length in days; one full turn must be in the rows before its place in the turn can mean anything
PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}


def days_of(values: Array) -> Array:
    """Return days since 1970, with nan for missing dates."""
    days = (values - np.datetime64(0, "us")) / DAY
    return np.where(np.isnat(values), np.nan, days)


def cycles_in(values: Array) -> list[str]:
    """Return the cycles of dates: year, week, day.

    Includes the year if the dates span one, the week if they span two, and the day unless all
    entries have the same time of day.

    Examples
    --------
    >>> cycles_in(np.array(["2020-01-01", "2020-01-20"], dtype="datetime64[us]"))
    ['week']
    """
    days = days_of(values)
    days = days[~np.isnan(days)]
    if len(days) < 2:
        return []
    span = float(np.ptp(days))
    found = ["year"] if span >= PERIODS["year"] else []
    if span >= 2 * PERIODS["week"]:
        found.append("week")
    if span >= 2 * PERIODS["day"] and float(np.ptp(days % 1.0)) > 0.0:
        found.append("day")
    return found


def parts_of(values: Array, cycles: list[str]) -> Array:
    """Return days, and sine and cosine of the phase in each cycle, as columns."""
    days = days_of(values)
    turns = [2.0 * np.pi * days / PERIODS[cycle] for cycle in cycles]
    waves = [wave for turn in turns for wave in (np.sin(turn), np.cos(turn))]
    return np.column_stack([days, *waves])


def names_of(name: str, cycles: list[str]) -> list[str]:
    """Return the names of those columns."""
    waves = [f"{name}_{cycle}_{wave}" for cycle in cycles for wave in ("sin", "cos")]
    return [f"{name}_days", *waves]


# --- tfidf ---------------------------------------------------------------------------------------
#
# Words of a text column and their weights, as scikit-learn's TfidfVectorizer has them.
#
# A word counts 1 + log(times) in an entry, weighs log((1 + n) / (1 + entries with it)) + 1, and
# every row has length one. The state is a list of words and an array of weights, which a file can
# hold.


def words_in(texts: Iterable[str | None], most: int) -> list[str]:
    """Return the most frequent words, in alphabetical order.

    Examples
    --------
    >>> words_in(["the cat saw the dog", None, "a dog"], most=2)
    ['dog', 'the']
    """
    counts: Counter[str] = Counter()
    for text in texts:
        if text is not None:
            counts.update(WORD.findall(text.lower()))
    if len(counts) > most:
        return sorted(sorted(counts, key=lambda word: (-counts[word], word))[:most])
    return sorted(counts)


def counts_of(texts: Sequence[str | None], words: Sequence[str]) -> Any:
    """Return word counts of texts as CSR. Missing texts have no words."""
    place = {word: k for k, word in enumerate(words)}
    indptr, indices, counts = [0], [], []
    for text in texts:
        found = Counter(WORD.findall(text.lower())) if text is not None else {}
        for word, count in found.items():
            if word in place:
                indices.append(place[word])
                counts.append(count)
        indptr.append(len(indices))
    shape = (len(texts), len(words))
    table = sparse.csr_array((np.array(counts, dtype=float), indices, indptr), shape=shape)
    table.sort_indices()
    return table


def weights_of(counts: Any) -> Array:
    """Return inverse document frequencies of words."""
    n, width = counts.shape
    having = np.bincount(counts.indices, minlength=width)
    return np.asarray(np.log((1.0 + n) / (1.0 + having)) + 1.0)


def weighted(counts: Any, weights: Array) -> Any:
    """Return weighted rows of norm one."""
    values = (1.0 + np.log(counts.data)) * weights[counts.indices]
    rows = sparse.csr_array((values, counts.indices, counts.indptr), shape=counts.shape)
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    norms[norms == 0.0] = 1.0
    rows.data /= np.repeat(norms, np.diff(rows.indptr))
    return rows


# --- plan ----------------------------------------------------------------------------------------
#
# Which columns a table becomes: decided once from its rows, then the same for every part of them.
#
# A plan is plain lists and words, so that it can be a parameter, be cloned and be stored:
#
# - ``numbers``, ``dates``, ``left_out``: names of columns;
# - ``gaps``: numbers and dates with missing entries, which get a column that says so, and
#   categories
#   for which "missing" is a level;
# - ``cycles``: for each date the cycles it goes through;
# - ``levels``: for each category its levels, in order;
# - ``words``: for each text its words, in order;
# - ``sparse``: numbers that are held sparse, and stay so.

MOST_WORDS = 20_000  # of a text: the most frequent ones
MISSING_LEVEL = "(missing)"


def plan_of(table: Table, most_words: int = MOST_WORDS) -> dict[str, Any]:
    """Determine the features of a table.

    Examples
    --------
    >>> plan = plan_of(Table.of({"age": [31, None, 52], "town": ["Ulm", "Bern", "Riga"]}))
    >>> plan["numbers"], plan["gaps"], plan["levels"]
    (['age'], ['age'], {'town': ['Bern', 'Riga', 'Ulm']})
    """
    plan: dict[str, Any] = {"numbers": [], "dates": [], "left_out": [], "gaps": []}
    plan |= {"cycles": {}, "levels": {}, "words": {}, "sparse": table.sparse_columns}
    for name in table.dense_columns:
        column = table.column(name)
        kind, values = column.kind, column.values
        if kind is Kind.IDENTIFIER:
            plan["left_out"].append(name)
            continue
        if values.dtype.kind == "f":
            if np.isinf(values).any():
                raise DataError("has infinite entries; replace or drop them", column=name)
            plan["numbers"].append(name)
        elif kind is Kind.DATE:
            plan["dates"].append(name)
            plan["cycles"][name] = cycles_in(values)
        elif kind is Kind.TEXT:
            plan["words"][name] = words_in(values.tolist(), most_words)
        else:
            plan["levels"][name] = different(values)
        if kind is not Kind.TEXT and column.missing.any():
            plan["gaps"].append(name)
    return plan


def kinds_in(plan: dict[str, Any]) -> dict[str, Kind]:
    """Return the column kinds of a plan."""
    found = dict.fromkeys(plan["numbers"], Kind.NUMBER) | dict.fromkeys(plan["dates"], Kind.DATE)
    found |= dict.fromkeys(plan["levels"], Kind.CATEGORY) | dict.fromkeys(plan["words"], Kind.TEXT)
    return found | dict.fromkeys(plan["sparse"], Kind.NUMBER)


# --- preparation ---------------------------------------------------------------------------------
#
# The transformer that turns a table of mixed columns with gaps into rows of numbers.

_WIDE = 500  # levels in all: beyond, most of a row is zeros, and rows are held sparse


@dataclass(frozen=True)
class Block:
    """Adjacent features of one kind.

    Attributes
    ----------
    name : str
        "numbers", "dates", "categories", or "text" with the name of the column.
    kind : Kind
        Kind of the original columns.
    start, stop : int
        Range of the features, excluding `stop`.
    """

    name: str
    kind: Kind
    start: int
    stop: int


class TablePreparation(TransformerMixin, BaseEstimator):
    """Convert a table with mixed columns and missing values to numeric features.

    - Numbers and binary columns of numbers: missing values are imputed by the median, then
      z = (x - mean) / standard deviation. If a column has missing values in the training rows, an
      indicator feature is added.
    - Dates: days since 1970, and sine and cosine of the phase in the year, week and day if the
      dates span these cycles; then as for numbers.
    - Categories and binary columns of words: one 0-1 feature per level, so that the linear kernel
      counts the columns in which two rows agree. Missing values are a level if the training rows
      have any. New levels are all zeros.
    - Text: word counts weighted as in scikit-learn's `TfidfVectorizer` with `sublinear_tf`.
    - Sparse numbers (`Table.csr`) are divided by their standard deviation and not centered, so
      that zeros remain zeros. Entries that are not stored are 0, not missing.
    - Identifiers are ignored.

    Parameters
    ----------
    plan : dict, optional
        Columns, levels and words in the form of `plan_`. If None, determined in `fit`. A plan of
        all rows gives every fold the same features.
    most_words : int
        Maximum number of words of a text column; the most frequent are kept.

    Attributes
    ----------
    plan_ : dict of lists and dicts of str
        Columns, levels and words.
    medians_, means_, scales_ : arrays
        Statistics of numeric and date features.
    sparse_scales_ : array
        Standard deviations of sparse numbers.
    weights_ : dict of str to array
        Word weights of each text column.
    feature_names_in_ : array of str
        Columns of the training table.
    blocks_ : list of Block
        Kinds of the features.

    Notes
    -----
    The fitted state consists of lists of words and float64 arrays. The parameters and `plan_`,
    `medians_`, `means_`, `scales_`, `sparse_scales_`, `weights_`, `feature_names_in_` and
    `n_features_in_` are sufficient to store it; `blocks_` is derived from them.

    Examples
    --------
    >>> from mercer.data import Table, TablePreparation
    >>> table = Table.of({"age": [20, None, 40], "town": ["Ulm", "Bern", "Ulm"]})
    >>> prepare = TablePreparation().fit(table)
    >>> prepare.transform(table).round(3).tolist()
    [[-1.225, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [1.225, 0.0, 0.0, 1.0]]
    >>> prepare.get_feature_names_out().tolist()
    ['age', 'age_missing', 'town_Bern', 'town_Ulm']
    """

    plan_: dict[str, Any]

    def __init__(self, plan: dict[str, Any] | None = None, most_words: int = MOST_WORDS) -> None:
        self.plan = plan
        self.most_words = most_words

    def fit(self, X: Any, y: Any = None) -> TablePreparation:
        """Fit columns, levels, words and scales.

        Parameters
        ----------
        X : Table, data frame or array of mixed entries
            Training rows.
        y : ignored

        Returns
        -------
        self
        """
        self._learn(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **more: Any) -> Points:
        """Fit to rows and transform them."""
        return self._learn(X)

    def transform(self, X: Any) -> Points:
        """Transform rows to numeric features.

        Parameters
        ----------
        X : Table, data frame or array of mixed entries
            Rows with the columns of the training rows. Other columns are ignored.

        Returns
        -------
        (n, d) float64 array, or CSR array if there are texts or many levels
        """
        check_is_fitted(self)
        plan = self.plan_
        table = self._table(X, plan)
        numbers = self._numbers(table)
        gaps = np.isnan(numbers)
        if gaps.any():
            numbers = np.where(gaps, self.medians_, numbers)
        with np.errstate(over="ignore"):  # machines refuse what is beyond float64, and say where
            numbers -= self.means_
            numbers /= self.scales_
        return self._joined(table, numbers, self._counts(table), self._sparse(table))

    def _learn(self, X: Any) -> Points:
        """Fit and transform, counting words only once."""
        if self.plan is None:
            table = Table.of(X)
            plan = plan_of(table, self.most_words)
        else:
            plan = self.plan
            table = self._table(X, plan)
        if not len(table):
            raise DataError("TablePreparation: the table has no rows")
        if not kinds_in(plan):
            raise DataError("TablePreparation: all columns are identifiers or constant")
        self.plan_ = plan
        self.feature_names_in_ = np.array(table.columns, dtype=object)
        self.n_features_in_ = len(table.columns)
        table = table[list(kinds_in(plan))].with_kinds(kinds_in(plan))
        numbers = self._numbers(table)
        gaps = np.isnan(numbers)
        self.medians_ = _medians(numbers, gaps)
        numbers = np.where(gaps, self.medians_, numbers)
        self.means_, self.scales_ = _moments(numbers, plan)
        counts = self._counts(table)
        self.weights_ = {name: weights_of(count) for name, count in counts.items()}
        rows = self._sparse(table)
        self.sparse_scales_ = np.empty(0) if rows is None else _sparse_scales(rows)
        return self._joined(table, (numbers - self.means_) / self.scales_, counts, rows)

    # --- parts ------------------------------------------------------------------------------

    def _table(self, X: Any, plan: dict[str, Any]) -> Table:
        """Return the columns of the plan with its kinds."""
        kinds = kinds_in(plan)
        if isinstance(X, Table):
            have = X.columns
        else:
            X = X if hasattr(X, "columns") else Table.of(X)
            have = [str(name) for name in getattr(X, "column_names", X.columns)]
        known = set(have)
        lacking = [name for name in kinds if name not in known]
        if lacking:
            shown = ", ".join(map(repr, lacking[:5])) + (", ..." if len(lacking) > 5 else "")
            raise DataError(
                f"the table lacks {len(lacking)} column(s) of the training table: {shown}"
            )
        return Table.of(X, kinds=kinds, columns=list(kinds))

    def _numbers(self, table: Table) -> Array:
        """Return numeric and date features, with nan for missing values."""
        plan = self.plan_
        numbers = np.empty((len(table), len(plan["numbers"])))
        for place, name in enumerate(plan["numbers"]):
            numbers[:, place] = table[name]
        dates = [parts_of(table[name], plan["cycles"][name]) for name in plan["dates"]]
        found: Array = np.hstack([numbers, *dates]) if dates else numbers
        infinite = np.flatnonzero(np.isinf(found).any(axis=0))
        if len(infinite):
            name = plan["numbers"][infinite[0]]
            raise DataError("has infinite entries; replace or drop them", column=name)
        return found

    def _counts(self, table: Table) -> dict[str, Any]:
        """Return word counts of the texts."""
        texts = self.plan_["words"].items()
        return {name: counts_of(table[name].tolist(), words) for name, words in texts}

    def _sparse(self, table: Table) -> Any:
        """Return the sparse columns, or None if there are none."""
        names = self.plan_["sparse"]
        return sparse.csr_array(table[names].matrix()) if names else None

    def _joined(self, table: Table, numbers: Array, counts: dict[str, Any], rows: Any) -> Points:
        plan, gaps = self.plan_, set(self.plan_["gaps"])
        own = len(plan["numbers"])
        parts: list[Any] = [
            numbers[:, :own],
            *(_absent(table, n) for n in plan["numbers"] if n in gaps),
        ]
        parts += [numbers[:, own:], *(_absent(table, n) for n in plan["dates"] if n in gaps)]
        wide = bool(counts) or rows is not None or self._level_count() > _WIDE
        for name, levels in plan["levels"].items():
            parts.append(_one_hot(table[name], levels, name in gaps, wide))
        if not wide:
            return np.hstack(parts)
        parts += [weighted(count, self.weights_[name]) for name, count in counts.items()]
        if rows is not None:
            scaled = rows.data / self.sparse_scales_[rows.indices]
            parts.append(sparse.csr_array((scaled, rows.indices, rows.indptr), shape=rows.shape))
        return sparse.csr_array(sparse.hstack([sparse.csr_array(p) for p in parts], format="csr"))

    def _level_count(self) -> int:
        gaps = set(self.plan_["gaps"])
        return sum(len(levels) + (name in gaps) for name, levels in self.plan_["levels"].items())

    # --- what was made ----------------------------------------------------------------------

    @property
    def blocks_(self) -> list[Block]:
        """Kinds of the features."""
        check_is_fitted(self)
        plan, gaps = self.plan_, set(self.plan_["gaps"])
        widths = [("numbers", Kind.NUMBER, sum(1 + (n in gaps) for n in plan["numbers"]))]
        dates = sum(1 + 2 * len(plan["cycles"][n]) + (n in gaps) for n in plan["dates"])
        widths.append(("dates", Kind.DATE, dates))
        widths.append(("categories", Kind.CATEGORY, self._level_count()))
        widths += [(f"text {name!r}", Kind.TEXT, len(w)) for name, w in plan["words"].items()]
        widths.append(("sparse numbers", Kind.NUMBER, len(plan["sparse"])))
        ends = np.cumsum([0, *(width for _, _, width in widths)]).tolist()
        return [
            Block(name, kind, ends[k], ends[k + 1])
            for k, (name, kind, width) in enumerate(widths)
            if width
        ]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the feature names."""
        check_is_fitted(self)
        plan, gaps = self.plan_, set(self.plan_["gaps"])
        names = [*plan["numbers"], *(f"{n}_missing" for n in plan["numbers"] if n in gaps)]
        names += [part for n in plan["dates"] for part in names_of(n, plan["cycles"][n])]
        names += [f"{n}_missing" for n in plan["dates"] if n in gaps]
        for name, levels in plan["levels"].items():
            names += [f"{name}_{level}" for level in levels]
            names += [f"{name}_{MISSING_LEVEL}"] if name in gaps else []
        names += [f"{name}_{word}" for name, words in plan["words"].items() for word in words]
        names += plan["sparse"]
        return np.array(names, dtype=object)

    def describe(self) -> list[str]:
        """Describe the preprocessing of the columns.

        Examples
        --------
        >>> table = Table.of({"age": [20, None, 40], "town": ["Ulm", "Bern", "Ulm"]})
        >>> for sentence in TablePreparation().fit(table).describe():
        ...     print(sentence)
        Numbers ('age'): median imputation, then mean 0 and standard deviation 1.
        Missing values of 'age' have an indicator feature.
        Categories ('town'): one 0-1 feature per level, 2 in total; new levels are all 0.
        """
        check_is_fitted(self)
        plan, gaps = self.plan_, set(self.plan_["gaps"])
        said = []
        if plan["numbers"]:
            said.append(
                f"Numbers ({_list(plan['numbers'])}): median imputation, then mean 0 "
                "and standard deviation 1."
            )
        for name in plan["dates"]:
            cycles = ", ".join(plan["cycles"][name])
            also = f", and the phase in the {cycles} as sine and cosine" if cycles else ""
            said.append(f"Date {name!r}: days since 1970{also}; then as numbers.")
        absent = [name for name in [*plan["numbers"], *plan["dates"]] if name in gaps]
        if absent:
            said.append(f"Missing values of {_list(absent)} have an indicator feature.")
        if plan["levels"]:
            said.append(
                f"Categories ({_list(plan['levels'])}): one 0-1 feature per level, "
                f"{self._level_count()} in total; new levels are all 0."
            )
            absent = [name for name in plan["levels"] if name in gaps]
            if absent:
                said.append(f"Missing values are a level of {_list(absent)}.")
        for name, words in plan["words"].items():
            said.append(f"Text {name!r}: {len(words)} words, tf-idf weights, rows of norm 1.")
        if plan["sparse"]:
            said.append(f"Sparse numbers ({len(plan['sparse'])} columns): standard deviation 1.")
        if plan["left_out"]:
            said.append(f"Ignored identifiers: {_list(plan['left_out'])}.")
        return said


def _list(names: Any) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:8])) + (
        f" and {len(names) - 8} more" if len(names) > 8 else ""
    )


def _medians(numbers: Array, gaps: Array) -> Array:
    """Return medians without missing values; 0 for a column without entries."""
    found = np.zeros(numbers.shape[1])
    for k in range(numbers.shape[1]):
        present = numbers[~gaps[:, k], k]
        found[k] = np.median(present) if len(present) else 0.0
    return found


def _moments(numbers: Array, plan: dict[str, Any]) -> tuple[Array, Array]:
    """Return means and standard deviations; 1 for constant columns, as in scikit-learn."""
    n, eps = len(numbers), np.finfo(np.float64).eps
    with np.errstate(over="ignore", invalid="ignore"):
        means, variances = numbers.mean(axis=0), np.var(numbers, axis=0)
        constant = variances <= n * eps * variances + (n * means * eps) ** 2
    wrong = np.flatnonzero(~np.isfinite(variances))
    if len(wrong):
        raise DataError(
            "holds entries so large that their squares overflow; scale it, or take logarithms",
            column=plan["numbers"][wrong[0]],
        )
    return means, np.where(constant, 1.0, np.sqrt(variances))


def _sparse_scales(rows: Any) -> Array:
    """Return standard deviations of sparse columns; 1 for constant ones."""
    n = rows.shape[0]
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.bincount(rows.indices, rows.data, rows.shape[1]) / n
        squares = np.bincount(rows.indices, (rows.data - means[rows.indices]) ** 2, rows.shape[1])
        zeros = n - np.bincount(rows.indices, minlength=rows.shape[1])
        variances = (squares + zeros * means**2) / n
    if not np.isfinite(variances).all():
        raise DataError("sparse columns hold entries whose squares overflow, or none; scale them")
    return np.where(variances > 0.0, np.sqrt(variances), 1.0)


def _absent(table: Table, name: str) -> Array:
    return table.column(name).missing.astype(np.float64)[:, None]


def _one_hot(values: Array, levels: list[str], gaps: bool, as_sparse: bool) -> Any:
    """Return a feature per level, and one for missing values if training rows have any."""
    place: dict[str | None, int] = {level: k for k, level in enumerate(levels)}
    if gaps:
        place[None] = len(levels)
    codes = np.array([place.get(entry, -1) for entry in values.tolist()], dtype=np.intp)
    known = np.flatnonzero(codes >= 0)
    shape = (len(values), len(place))
    if as_sparse:
        return sparse.csr_array((np.ones(len(known)), (known, codes[known])), shape=shape)
    found = np.zeros(shape)
    found[known, codes[known]] = 1.0
    return found
