"""Joint tables of discrete variables: marginals, conditionals, tests of independence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, xlogy

from mercer._types import Array

_FEW = 5.0  # expected counts below this make the chi-squared distribution a poor guide
_DRAWS = 9999


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
        if bad or not counts.sum() > 0:
            raise ValueError(
                "JointTable: table must hold finite, nonnegative numbers, not all of them zero"
            )
        counts.setflags(write=False)
        self.counts = counts
        self.total = float(counts.sum())
        self.probabilities = counts / self.total
        self.names = tuple(names) if names is not None else _default_names(counts.ndim)
        self.values = (
            tuple(map(tuple, values))
            if values is not None
            else tuple(tuple(range(size)) for size in counts.shape)
        )
        if len(self.names) != counts.ndim or len(set(self.names)) != counts.ndim:
            raise ValueError(f"JointTable: names must be {counts.ndim} different ones")
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
            The counts; values are sorted.
        """
        arrays = [np.asarray(column) for column in columns]
        if not arrays or any(a.ndim != 1 or a.shape != arrays[0].shape for a in arrays):
            raise ValueError("JointTable: columns must be one-dimensional and equally long")
        found = [np.unique(array, return_inverse=True) for array in arrays]
        shape = tuple(len(values) for values, _ in found)
        flat = np.ravel_multi_index([codes for _, codes in found], shape)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        counts = np.bincount(flat, weights, minlength=int(np.prod(shape))).reshape(shape)
        return cls(counts, names, [values.tolist() for values, _ in found])

    def axis(self, name: str | int) -> int:
        """Give the axis of a variable, by name or number."""
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
        """Give P(of | given).

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
        known = [given] if isinstance(given, str | int) else list(given)
        joint = self.marginal(*known, of).counts
        evidence = joint.sum(axis=-1, keepdims=True)
        shares = np.divide(joint, evidence, out=np.zeros_like(joint), where=evidence > 0)
        return np.asarray(shares)

    def information(self, a: str | int, b: str | int, given: str | int | None = None) -> float:
        """Give the mutual information of two variables in nats, or its mean over a third."""
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
            A third one: statistics of its slices are added up.
        method : {"auto", "chi2", "g", "exact"}, default="auto"
            Pearson's statistic, the likelihood ratio, or the exact distribution given the margins
            (Fisher's for 2 x 2, by 9999 random tables for larger ones). "auto" takes the exact one
            where some expected count is below five, else "g".

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
        if method == "exact" or (method == "auto" and few and given is None):
            if given is not None:
                raise ValueError("JointTable: there is no exact test given a third variable")
            return _exact(slices[0])
        method = "g" if method == "auto" else method
        found = [_asymptotic(part, method) for part in slices]
        statistic, dof = sum(s for s, _ in found), sum(d for _, d in found)
        p = float(chdtrc(dof, statistic)) if dof else 1.0
        return Independence(float(statistic), dof, p, self.information(a, b, given), method)

    def _slices(self, a: str | int, b: str | int, given: str | int | None) -> list[Array]:
        """Give the table of two variables, for each value of a third; empty margins left out."""
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
    """Give the counts that independence would lead one to expect."""
    return np.asarray(np.outer(part.sum(axis=1), part.sum(axis=0)) / part.sum())


def _exact(part: Array) -> Independence:
    from scipy import stats  # noqa: PLC0415  slow to load

    counts = np.rint(part).astype(int)
    if min(counts.shape) < 2:
        return Independence(0.0, 0, 1.0, 0.0, "exact")
    if counts.shape == (2, 2):
        found: Any = stats.fisher_exact(counts)
    else:
        draws = stats.MonteCarloMethod(n_resamples=_DRAWS, rng=np.random.default_rng(0))
        found = stats.chi2_contingency(counts, correction=False, method=draws)
    return Independence(float(found[0]), 0, float(found[1]), _information(part), "exact")
