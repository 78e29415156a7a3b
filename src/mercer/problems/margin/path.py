"""The regularization path of support vector machines: box programmes that differ by factors.

Another C, tube or nu multiplies bounds, epsilon, diagonal or sums of a `BoxQP` by one factor each
and leaves all else as it is. So programmes of many settings are one problem: each can start where a
neighbour ended, and all read one Gram.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mercer.arguments import renamed, renamed_field
from mercer.array_types import Array
from mercer.gram import Gram, ShiftedGram
from mercer.gram.exact_parts import exact_sums
from mercer.gram.transformed.part import restricted
from mercer.problems.margin.box_qp import BoxQP, Dual
from mercer.problems.margin.many import Duals, Many

_ROUNDED = 1e-12  # of a sum: what its factor may be off by


@renamed_field("epsilon", "kink")
@dataclass(frozen=True)
class PathSetting:
    """By which factors the programmes of a path are multiplied.

    Attributes
    ----------
    bound : float
        On the bounds of the box: C of slack that counts as it is.
    epsilon : float
        On epsilon: the half-width of the tube of regression.
    shift : float
        On what is added to the diagonal of K: 1 / C of squared slack.
    total : float
        On the sums of the groups: nu.
    """

    bound: float = 1.0
    epsilon: float = 1.0
    shift: float = 1.0
    total: float = 1.0


@dataclass(frozen=True, eq=False)
class MarginPath:
    """Box programmes over one Gram, at several settings.

    Attributes
    ----------
    problems : tuple of BoxQP
        The programmes with all factors 1: one machine, or all pairs of classes. Their Grams are
        parts of one, or that itself.
    settings : tuple of PathSetting
        The factors of each setting, in any order.
    rows : (t,) int array, optional
        Rows of the shared Gram at which sum_i b_i k(x_i, .) is wanted, such as those a fold leaves
        out; none by default.

    Examples
    --------
    The whole path of C for one support vector machine:

    >>> import numpy as np
    >>> from mercer import certify, solve
    >>> from mercer.gram import Need, make_gram
    >>> from mercer.kernels import Gaussian
    >>> from mercer.problems import MarginPath, PathSetting, svm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> signs = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    >>> gram = make_gram(Gaussian(1.0), X, Need.BOX)
    >>> programme = svm.svc(gram, signs, C=np.ones(80))
    >>> costs = np.logspace(-1, 3, 9)
    >>> path = MarginPath((programme,), tuple(PathSetting(bound=C) for C in costs))
    >>> answer = solve(path).value
    >>> answer.coef[0].shape, bool(answer.solved.all())
    ((9, 80), True)
    >>> certify(path, answer).ok
    True
    """

    problems: tuple[BoxQP, ...]
    settings: tuple[PathSetting, ...]
    rows: Array | None = None

    @property
    def base(self) -> Gram:
        """Return the Gram that all programmes share."""
        return self.problems[0].unwrapped.base

    @property
    def evaluation_rows(self) -> Array:
        """Return the rows at which values are wanted."""
        return np.zeros(0, dtype=np.int64) if self.rows is None else np.asarray(self.rows)

    wanted = renamed("evaluation_rows", "wanted")

    @cached_property
    def summed(self) -> tuple[BoxQP, ...]:
        """Return the programmes whose sums are not zero, so that their factor matters."""
        return tuple(problem for problem in self.problems if problem.totals.any())

    def programme(self, number: int, setting: PathSetting) -> BoxQP:
        """Write one programme at a setting."""
        problem = self.problems[number]
        held, gram = problem.unwrapped, problem.gram
        if held.shift is not None and setting.shift != 1.0:
            part = held.base if held.index is None else restricted(held.base, held.index)
            gram = ShiftedGram(part, setting.shift * held.shift)
        return replace(
            problem,
            gram=gram,
            lower=setting.bound * problem.lower,
            upper=setting.bound * problem.upper,
            total=setting.total * problem.totals,
            epsilon=setting.epsilon * problem.epsilon,
        )

    def at(self, setting: PathSetting) -> Many:
        """Write all programmes at a setting."""
        return Many(tuple(self.programme(k, setting) for k in range(len(self.problems))))

    def values(self, number: int, coef: Array) -> Array:
        """Return sum_i b_i k(x_i, .) of a programme at the wanted rows, in float64 from the points.

        Coefficients have a row for each setting (settings, n), values likewise (settings, t).
        """
        if not len(self.evaluation_rows):
            return np.zeros((len(coef), 0))
        index = self.problems[number].unwrapped.index
        points = np.arange(coef.shape[1]) if index is None else index
        used = np.flatnonzero(coef.any(axis=0))
        return exact_sums(self.base, self.evaluation_rows, points[used], coef[:, used].T).T

    def infeasible(self, setting: PathSetting) -> bool:
        """Return whether a programme has no point with the sums of a setting, but for rounding."""
        return any(_out_of_reach(problem, setting) for problem in self.summed)


@dataclass(frozen=True, eq=False)
class PathDuals:
    """An answer to a `MarginPath`.

    Attributes
    ----------
    coef : tuple of (settings, n) arrays
        The variables b of each programme.
    intercept : tuple of (settings, groups) arrays
        The multipliers of each programme.
    values : (settings, programmes, t) array
        sum_i b_i k(x_i, .) at the rows that were asked for, without the intercept.
    solved : (settings,) bool array
        Whether all programmes of a setting are as accurate as asked.
    """

    coef: tuple[Array, ...]
    intercept: tuple[Array, ...]
    values: Array
    solved: Array

    def at(self, setting: int) -> Duals:
        """Return the answer at a setting, as one to `MarginPath.at`."""
        parts = zip(self.coef, self.intercept, strict=True)
        return Duals(tuple(Dual(b[setting], _offset(r[setting])) for b, r in parts))

    def offsets(self, setting: int) -> Array:
        """Return the multipliers of all programmes at a setting (programmes, groups)."""
        return np.array([one[setting] for one in self.intercept])


def _offset(multipliers: Array) -> float | Array:
    return float(multipliers[0]) if len(multipliers) == 1 else multipliers


def _out_of_reach(problem: BoxQP, setting: PathSetting) -> bool:
    for members, total in zip(problem.members(), problem.totals, strict=True):
        low, high = problem.lower[members].sum(), problem.upper[members].sum()
        asked, near = setting.total * total, _ROUNDED * abs(setting.total * total)
        if not setting.bound * low - near <= asked <= setting.bound * high + near:
            return True
    return False
