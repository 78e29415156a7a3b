"""Linear machines through the origin: the constant, if any, is a weight like the others.

LIBLINEAR gives every row one more column and punishes its weight with the rest, so the dual has a
box and no equality. Solvers on features take that as it is. For those on a kernel matrix, which
move pairs, a row of zeros is added to the others. Its coefficient may be anything and changes
nothing but the sum of all, so the equality always holds and its multiplier is zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from mercer.array_types import Array, Points
from mercer.certificates import certify
from mercer.gram import Gram, Need, make_gram
from mercer.gram.extremes import refuse_extremes
from mercer.gram.policy import FLOAT64_ROWS
from mercer.gram.sizes import stored_dtype
from mercer.kernels import Linear
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.margin.multiclass import parts_of
from mercer.points import as_points, is_sparse, take
from mercer.problems import BoxQP, Dual, Duals, Many
from mercer.solvers import Solution, Solver, Status, solve
from mercer.solvers.choose import choose
from mercer.solvers.linear_margin.dual_descent import DualDescent
from mercer.solvers.linear_margin.interior_point import InteriorPoint
from mercer.solvers.many import Each

_PASSES = 1000  # LIBLINEAR's default; a smaller limit was asked for
_SOLVE_BELOW = 0.9  # of tol, so that the certificate, computed from the data, meets tol itself


@dataclass(frozen=True, eq=False)
class OriginProgramme:
    """One function to be found.

    Attributes
    ----------
    write : callable
        Returns the programme for a Gram, targets and costs of the slack.
    targets, costs : (n,) array
        What f should be, and what missing it costs, for each row.
    reach : float
        No sum of coefficients is beyond it.
    """

    write: Callable[[Gram, Array, Array], BoxQP]
    targets: Array
    costs: Array
    reach: float

    def problem(self, gram: Gram) -> BoxQP:
        """Write the programme with an equality; the last row of the Gram is the row of zeros."""
        written = self.write(gram, np.append(self.targets, 0.0), np.append(self.costs, np.inf))
        lower, upper, epsilons = written.lower.copy(), written.upper.copy(), written.epsilons.copy()
        lower[-1], upper[-1], epsilons[-1] = -self.reach, self.reach, 0.0
        return replace(written, lower=lower, upper=upper, epsilon=epsilons)


@dataclass(frozen=True, eq=False)
class Programmes:
    """All functions, asked of one Gram."""

    parts: tuple[OriginProgramme, ...]

    def __call__(self, gram: Gram) -> BoxQP | Many:
        """Return one programme, or several that share the Gram."""
        return _together([part.problem(gram) for part in self.parts])

    def without_equality(self, gram: Gram) -> BoxQP | Many:
        """Return the same for solvers that need no row of zeros."""
        return _together([_freed(part.problem(gram)) for part in self.parts])

    def answered(self, value: Dual | Duals) -> Dual | Duals:
        """Return the answer with the row of zeros taking up what the others leave of the sum."""
        duals = [_balanced(dual.coef) for dual in parts_of(value)]
        return duals[0] if len(duals) == 1 else Duals(tuple(duals))


class OriginMachine(Certified):
    """A machine that ends in programmes without an equality."""

    tol: float
    fit_intercept: bool
    intercept_scaling: float
    max_iter: int

    def _weigh(
        self, X: Points, rows: Array, parts: tuple[OriginProgramme, ...]
    ) -> tuple[Array, Array]:
        """Return the weights (parts, features) and constants (parts,) of the functions."""
        scaling = float(self.intercept_scaling) if self.fit_intercept else 0.0
        padded = with_origin(X, rows, scaling)
        gram, question = _gram(type(self).__name__, padded), Programmes(parts)
        problem = question(gram) if gram.factor is None else question.without_equality(gram)
        with warnings.catch_warnings():  # told below, in LIBLINEAR's words
            warnings.filterwarnings("ignore", ".*the iteration limit", ConvergenceWarning)
            solution = solve(problem, self._solver(choose(problem)))
        if solution.status is Status.ITERATION_LIMIT:
            message = "Liblinear failed to converge, increase the number of iterations."
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        self._keep_answer(gram, question, solution)
        coefs = np.column_stack([dual.coef for dual in parts_of(solution.value)])
        weights = np.asarray(padded.T @ coefs).T
        if not self.fit_intercept:
            return weights, np.zeros(len(parts))
        return np.ascontiguousarray(weights[:, :-1]), scaling * weights[:, -1]

    def _solver(self, solver: Solver) -> Any:
        """Return the solver with tolerance and limit; pair steps are no passes over the rows."""
        if isinstance(solver, Each):
            return Each(self._solver(solver.solver))
        wishes: dict[str, Any] = {"tol": _SOLVE_BELOW * self.tol}
        if self.max_iter < _PASSES and isinstance(solver, InteriorPoint | DualDescent):
            wishes["max_iter"] = max(1, int(self.max_iter))
        return replace(solver, **wishes)  # type: ignore[type-var]

    def _keep_answer(self, gram: Gram, question: Programmes, solution: Solution) -> None:
        self.solution_ = solution
        self.n_iter_ = max(1, int(solution.iterations))
        judge = partial(certify, tol=float(self.tol))
        self._judgement = lazy_certificate(gram, question, question.answered(solution.value), judge)


def with_origin(X: Points, rows: Array, scaling: float) -> Points:
    """Take rows, add a column of `scaling`, if that is not zero, and then a row of zeros."""
    n, d = len(rows), X.shape[1]
    wide = d + (scaling != 0)
    if is_sparse(X):
        column = sparse.csr_array(np.full((n, 1), scaling))
        taken = sparse.hstack([take(X, rows), column]) if scaling else take(X, rows)
        return as_points(sparse.vstack([taken, sparse.csr_array((1, wide))], format="csr"))
    padded = np.zeros((n + 1, wide))
    for i in range(0, n, 4096):  # so that no second copy of X is made
        padded[i : min(n, i + 4096), :d] = X[rows[i : i + 4096]]
    padded[:n, d:] = scaling
    return padded


def _gram(owner: str, padded: Points) -> Gram:
    """Hold few rows by their features, if those are fewer: any C is one to solvers on these."""
    n = padded.shape[0]
    need = Need.PRODUCTS if n <= FLOAT64_ROWS else Need.BOX
    gram = make_gram(Linear(), padded, need, dtype=stored_dtype(n))
    return refuse_extremes(owner, gram, Linear())


def _together(problems: list[BoxQP]) -> BoxQP | Many:
    return problems[0] if len(problems) == 1 else Many(tuple(problems))


def _freed(problem: BoxQP) -> BoxQP:
    """Take the equality away, and what the last row may do."""
    lower, upper = problem.lower.copy(), problem.upper.copy()
    lower[-1] = upper[-1] = 0.0
    alone = np.full(len(lower), -1)
    return replace(problem, lower=lower, upper=upper, total=np.zeros(0), group=alone)


def _balanced(coef: Array) -> Dual:
    """Let the last coefficient make the sum zero; the function is through the origin."""
    return Dual(np.append(coef[:-1], -coef[:-1].sum()), 0.0)
