"""Joint tables of discrete variables: marginals, conditionals, tests of independence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, xlogy

from mercer.array_types import Array
from mercer.machines.base.targets import check_weights
from mercer.machines.bayes.columns import is_missing

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

    def conditional(self, of: str | int, given: str | int | Sequence[str | int]) -> Array:
        """Return P(of | given).

        Parameters
        ----------
        of : str or int
            The variable whose probabilities are wanted.
        given : str, int or sequence of these
            The variables that are known.

        Returns
        -------
        array
            Axes as in `given`, last that of `of`, along which it adds up to one; zeros where the
            condition has no probability.
        """
        known = [given] if isinstance(given, str | int | np.integer) else list(given)
        joint = self.marginal(*known, of).counts
        evidence = joint.sum(axis=-1, keepdims=True)
        shares = np.divide(joint, evidence, out=np.zeros_like(joint), where=evidence > 0)
        return np.asarray(shares)

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
