"""One-vs-one and one-vs-rest classification, coupled probabilities, and zones of the margin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Expansion, Gram
from mercer.gram.base import RKHSFunction, nonzero_rows
from mercer.gram.evaluated import KernelExpansion
from mercer.gram.factored import FeatureExpansion
from mercer.gram.transformed import restricted
from mercer.machines.svm.machine import TwoClassBox
from mercer.machines.svm.problem import BoxQP, Dual, Duals, Many
from mercer.rows.points import row_count

# --- coupling ------------------------------------------------------------------------------------
#
# One probability per class from probabilities of pairs of classes.
#
# With r_ab the probability of a against b, the p that minimises sum over a, b of (r_ba p_a - r_ab
# p_b)^2 with sum p = 1 is found from one linear system per row.

_EDGE = 1e-7  # pairs that are quite sure would leave the others undetermined
_ENTRIES = 1 << 21  # of all systems solved at once


def couple_pairs(later: Array, first: Array, second: Array, count: int) -> Array:
    """Couple pairs.

    Parameters
    ----------
    later : (n, pairs) array
        Probability of the second class of each pair against the first.
    first, second : (pairs,) int array
        The classes of each pair.
    count : int
        How many classes there are.

    Returns
    -------
    (n, count) array
        Probabilities; rows sum to 1.

    Examples
    --------
    >>> p = np.array([0.2, 0.3, 0.5])
    >>> a, b = np.array([0, 0, 1]), np.array([1, 2, 2])
    >>> couple_pairs((p[b] / (p[a] + p[b]))[None, :], a, b, 3).round(6).tolist()
    [[0.2, 0.3, 0.5]]
    """
    chunk = max(1, _ENTRIES // (count + 1) ** 2)
    blocks = range(0, len(later), chunk)
    return np.concatenate(
        [np.empty((0, count))]
        + [_coupled(later[i : i + chunk], first, second, count) for i in blocks]
    )


def _coupled(later: Array, first: Array, second: Array, count: int) -> Array:
    n = len(later)
    r = np.zeros((n, count, count))
    r[:, second, first] = np.clip(later, _EDGE, 1.0 - _EDGE)
    r[:, first, second] = 1.0 - r[:, second, first]
    system = np.ones((n, count + 1, count + 1))
    system[:, :count, :count] = -r * r.transpose(0, 2, 1)
    inner = np.arange(count)
    system[:, inner, inner] = (r * r).sum(axis=1)
    system[:, count, count] = 0.0
    right = np.zeros((n, count + 1, 1))
    right[:, count] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :count, 0], 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


# --- multiclass ----------------------------------------------------------------------------------
#
# Many classes as two-class questions over one Gram: each against each, or each against the rest.
#
# Rows are sorted by class, so that a pair of classes is two runs of rows of the shared matrix. In
# every question f > 0 speaks for the later (one-vs-one) or the single (one-vs-rest) class.

_HUGE = 1e300  # confidences above are one: three times that is still a number


@dataclass(frozen=True, eq=False)
class TwoClassProgramme:
    """One two-class question.

    Attributes
    ----------
    rows : (m,) int array or None
        Which rows of the shared Gram; None for all.
    signs : (m,) array
        -1 or 1 for each of them.
    """

    rows: Array | None
    signs: Array

    def problem(self, box: TwoClassBox, whole: Gram) -> BoxQP:
        """Write this part on the Gram of all rows, with the costs of all rows."""
        gram = whole if self.rows is None else restricted(whole, self.rows)
        return box.of(self.rows).problem(gram, self.signs)


@dataclass(frozen=True, eq=False)
class ClassQPs:
    """All parts, written as problems on a Gram."""

    parts: tuple[TwoClassProgramme, ...]
    box: TwoClassBox

    def __call__(self, gram: Gram) -> BoxQP | Many:
        """Return one problem, or several that share the Gram."""
        problems = self.problems(gram)
        return problems[0] if len(problems) == 1 else Many(problems)

    def problems(self, gram: Gram) -> tuple[BoxQP, ...]:
        """Return the problem of each part."""
        return tuple(part.problem(self.box, gram) for part in self.parts)


def parts_of(value: Dual | Duals) -> tuple[Dual, ...]:
    """Return the answers to all parts of a question."""
    return value.parts if isinstance(value, Duals) else (value,)


@dataclass(frozen=True, eq=False)
class Scheme(ABC):
    """A way to make two-class questions of many classes, and one decision of their answers.

    Attributes
    ----------
    ends : (classes + 1,) int array
        Rows ends[c] to ends[c + 1] are those of class c.
    """

    ends: Array

    @property
    def count(self) -> int:
        """Count the classes."""
        return len(self.ends) - 1

    def run(self, c: int) -> slice:
        """Return the rows of a class."""
        return slice(int(self.ends[c]), int(self.ends[c + 1]))

    @abstractmethod
    def parts(self) -> tuple[TwoClassProgramme, ...]:
        """Return the questions."""

    def largest(self) -> int:
        """Return how many rows the largest question has: all, unless a scheme says otherwise."""
        return int(self.ends[-1])

    @abstractmethod
    def collect(self, coefs: Sequence[Array]) -> Array:
        """Put the coefficients of all parts side by side, one row for each row of the Gram."""

    @abstractmethod
    def signs(self, codes: Array) -> Array:
        """Return the sign that rows of these classes have in each part (n, parts); NaN for none."""

    @abstractmethod
    def couple(self, probabilities: Array) -> Array:
        """Turn probabilities of f > 0 in all parts (n, parts) into those of classes."""

    @abstractmethod
    def decide(self, values: Array) -> Array:
        """Turn values of all parts (n, parts) into one value per class (n, classes)."""


class TwoClasses(Scheme):
    """One question."""

    def parts(self) -> tuple[TwoClassProgramme, ...]:
        """Ask for the second class against the first."""
        return (
            TwoClassProgramme(None, np.where(np.arange(self.ends[2]) < self.ends[1], -1.0, 1.0)),
        )

    def collect(self, coefs: Sequence[Array]) -> Array:
        """Return the coefficients as one column."""
        return coefs[0][:, None]

    def signs(self, codes: Array) -> Array:
        """Return 1 to the second class."""
        return np.where(codes == 1, 1.0, -1.0)[:, None]

    def couple(self, probabilities: Array) -> Array:
        """Return the rest to the first class."""
        return np.column_stack([1.0 - probabilities[:, 0], probabilities[:, 0]])

    def decide(self, values: Array) -> Array:
        """Let the value speak for the second class, its negative for the first."""
        return np.column_stack([-values[:, 0], values[:, 0]])


class OneVsOne(Scheme):
    """Each class against each; the decision is by votes, ties broken by confidence."""

    def largest(self) -> int:
        """Return how many rows the two largest classes have."""
        return int(np.sort(np.diff(self.ends))[-2:].sum())

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of classes in order."""
        return list(combinations(range(self.count), 2))

    def parts(self) -> tuple[TwoClassProgramme, ...]:
        """Ask for the later class of each pair against the earlier."""
        runs = [np.arange(self.ends[c], self.ends[c + 1]) for c in range(self.count)]
        sign = [np.ones(len(run)) for run in runs]
        return tuple(
            TwoClassProgramme(
                np.concatenate([runs[a], runs[b]]), np.concatenate([-sign[a], sign[b]])
            )
            for a, b in self.pairs()
        )

    def collect(self, coefs: Sequence[Array]) -> Array:
        """Return each row its coefficients against the other classes, in their order."""
        table = np.zeros((int(self.ends[-1]), self.count - 1))
        for (a, b), coef in zip(self.pairs(), coefs, strict=True):
            first = int(self.ends[a + 1] - self.ends[a])
            table[self.run(a), b - 1] = coef[:first]
            table[self.run(b), a] = coef[first:]
        return table

    def columns(self, c: int) -> Array:
        """Return the numbers of the pairs that a class is in, by the other class of each."""
        before, after, k = np.arange(c), np.arange(self.count - 1 - c), self.count
        as_later = before * (2 * k - before - 1) // 2 + c - before - 1
        return np.concatenate([as_later, c * (2 * k - c - 1) // 2 + after])

    def signs(self, codes: Array) -> Array:
        """Return 1 to the later class of each pair, NaN to classes that are not in it."""
        a, b = np.array(self.pairs()).T
        return np.where(codes[:, None] == b, 1.0, np.where(codes[:, None] == a, -1.0, np.nan))

    def couple(self, probabilities: Array) -> Array:
        """Couple all pairs."""
        first, second = np.array(self.pairs()).T
        return couple_pairs(probabilities, first, second, self.count)

    def decide(self, values: Array) -> Array:
        """Count votes; a confidence below one third of a vote breaks ties between classes."""
        values = np.ascontiguousarray(values.T)
        later, earlier = values > 0, values <= 0
        few = np.min_scalar_type(self.count)
        votes = np.zeros((self.count, values.shape[1]), dtype=few)
        confidence = np.zeros(votes.shape)
        mine = slice(0, 0)
        for c in range(self.count - 1):
            mine = slice(mine.stop, mine.stop + self.count - 1 - c)  # against all later classes
            votes[c] += earlier[mine].sum(axis=0, dtype=few)
            votes[c + 1 :] += later[mine]
            confidence[c] -= values[mine].sum(axis=0)
            confidence[c + 1 :] += values[mine]
        # infinite ones give NaN, which is refused as overflow
        finite = np.isfinite(confidence)
        confidence[finite] = np.clip(confidence[finite], -_HUGE, _HUGE)
        return np.asarray((votes + confidence / (3 * (np.abs(confidence) + 1))).T)


class OneVsRest(Scheme):
    """Each class against all others; the largest value decides."""

    def parts(self) -> tuple[TwoClassProgramme, ...]:
        """Ask for each class against the rest."""
        signs = np.full((self.count, int(self.ends[-1])), -1.0)
        for c in range(self.count):
            signs[c, self.run(c)] = 1.0
        return tuple(TwoClassProgramme(None, row) for row in signs)

    def collect(self, coefs: Sequence[Array]) -> Array:
        """Return one column for each class."""
        return np.column_stack(coefs)

    def signs(self, codes: Array) -> Array:
        """Return 1 to the class itself."""
        return np.where(codes[:, None] == np.arange(self.count), 1.0, -1.0)

    def couple(self, probabilities: Array) -> Array:
        """Take shares; where every class is ruled out, all alike."""
        total = probabilities.sum(axis=1, keepdims=True)
        shares = probabilities / np.where(total > 0, total, 1.0)
        return np.asarray(np.where(total > 0, shares, 1.0 / self.count))

    def decide(self, values: Array) -> Array:
        """Take the values as they are."""
        return values


def ends_of(codes: Array) -> Array:
    """Return where the rows of each class begin, and where the last end, of sorted numbers."""
    return np.searchsorted(codes, np.arange(int(codes[-1]) + 2))


def scheme_of(name: str, ends: Array) -> Scheme:
    """Return the scheme of a name for rows sorted by class."""
    if len(ends) == 3:
        return TwoClasses(ends)
    return {"ovo": OneVsOne, "ovr": OneVsRest}[name](ends)


# --- decision values of many classes: a support vector only meets the pairs its class is in ------
#
# With k classes there are k (k - 1) / 2 functions, but a support vector has a coefficient in only k
# - 1 of them. Evaluated class by class, the products are k / 2 times smaller.


@dataclass(frozen=True, eq=False)
class ByClass(Expansion):
    """Functions of pairs of classes.

    Attributes
    ----------
    blocks : tuple of (Expansion, int array)
        For each class, the expansion over its points and the functions its columns belong to.
    offset : (k,) array
        The constant of each function.
    """

    blocks: tuple[tuple[Expansion, Array], ...]
    offset: Array

    def __call__(self, Z: Points) -> Array:
        """Evaluate class by class."""
        values = np.tile(self.offset, (row_count(Z), 1))
        for expansion, columns in self.blocks:
            values[:, columns] += expansion(Z)
        return values

    def plus(self, offset: Array) -> ByClass:
        """Add to the constants."""
        return replace(self, offset=self.offset + offset)


def expand(gram: Gram, scheme: Scheme, coefs: Sequence[Array], table: Array) -> Expansion:
    """Return the functions of all parts; `table` has their coefficients as `collect` puts them."""
    if not isinstance(scheme, OneVsOne):
        return gram.expand(table)
    if gram.source is not None:
        whole = gram.source.expand(table)
        ends = np.searchsorted(nonzero_rows(table), scheme.ends).tolist()
        blocks = zip(map(slice, ends[:-1], ends[1:]), range(scheme.count), strict=True)
        return ByClass(
            tuple((whole.only(some), scheme.columns(c)) for some, c in blocks),
            np.zeros(len(coefs)),
        )
    pairs = list(zip(scheme.parts(), coefs, strict=True))
    if gram.placed is not None:
        weights = [gram.placed[part.rows].T @ coef for part, coef in pairs]
        return RKHSFunction(gram, None, np.column_stack(weights)).expand()
    full = np.zeros((gram.shape[0], len(coefs)))
    for i, (part, coef) in enumerate(pairs):
        full[part.rows, i] = coef
    return gram.expand(full)


def squared_norms(expansion: Expansion) -> Array | None:
    """Return |w|^2 of every function; None where only a matrix of the points was ever given.

    |w|^2 = sum_i c_i (f(x_i) - b), over the points of the expansion.
    """
    if isinstance(expansion, FeatureExpansion):
        return np.asarray(np.square(expansion.weights).sum(axis=0))
    if isinstance(expansion, KernelExpansion):
        return np.asarray((expansion.coef * _without_constant(expansion, expansion)).sum(axis=0))
    if not isinstance(expansion, ByClass):
        return None
    squared = np.zeros(len(expansion.offset))
    for block, columns in expansion.blocks:
        if isinstance(block, KernelExpansion):
            values = _without_constant(expansion, block)[:, columns]
            squared[columns] += (block.coef * values).sum(axis=0)
    return squared


def _without_constant(expansion: ByClass | KernelExpansion, at: KernelExpansion) -> Array:
    return expansion(at.points) - expansion.offset


# --- zones ---------------------------------------------------------------------------------------
#
# Where a training row stands: clear of the margin, on it, or paying slack.


@dataclass(frozen=True, eq=False)
class Zones:
    """The zone of each row, and what slack it needs.

    Attributes
    ----------
    zone : array of str
        For a classifier "beyond", "on" or "inside" the margin; for regression and novelty
        "inside", "on" or "outside" the tube or region. Empty text where a row takes no part (a
        pair of other classes).
    slack : array
        How far a row is on the wrong side: zero unless its zone is the last of the three.
    """

    zone: Array
    slack: Array


def zones(room: Array, tol: float, names: tuple[str, str, str]) -> Zones:
    """Sort rows by the room they have: positive, zero to within tol, or negative.

    The coefficients say the same: zero, between the bounds, at the bound. NaN marks rows that take
    no part.
    """
    clear, on, slack = names
    zone = np.where(room > tol, clear, np.where(room < -tol, slack, on))
    zone = np.where(np.isnan(room), "", zone)
    return Zones(zone, np.maximum(np.nan_to_num(-room), 0.0) * (room < -tol))
