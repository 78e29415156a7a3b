"""Base class of the support vector machines: costs, boxes, solution and certificate."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends.box_programs import Form
from mercer.gram import Expansion, Gram, Need, make_gram
from mercer.gram.base import nonzero_rows
from mercer.gram.build import refuse_extremes
from mercer.gram.policy import stored_dtype
from mercer.kernels import Kernel, Linear
from mercer.machines.base.approximate import FitWarning, is_exact, is_trying_settings
from mercer.machines.base.certificate import Certified, certify_gap, lazy_certificate
from mercer.machines.base.inputs import at_rest
from mercer.machines.base.machine import CallbackSupportMixin, KernelMachine, kernel_of, progress_of
from mercer.machines.base.origin import (
    as_given,
    counting_rounding,
    far_origin,
    less_origin,
    weights_of,
)
from mercer.machines.base.parameters import (
    check_choice,
    check_flag,
    check_limits,
    check_optional_count,
    check_real,
    is_real,
    refuse,
    shortened,
)
from mercer.machines.base.sharing import Fold, FoldPath, Sharing
from mercer.machines.base.targets import DistinctRows, distinct_rows, rows_as_they_are
from mercer.machines.svm import problem as svm
from mercer.machines.svm.descent import Gap, Violation
from mercer.machines.svm.path import Each
from mercer.machines.svm.problem import DEAREST, BoxQP, Dual, Duals, Many, MarginPath
from mercer.rows.points import take
from mercer.solvers.base import Solution, Solver
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import choose, solve

# --- costs ---------------------------------------------------------------------------------------
#
# What slack costs: C, for all rows or for each, and how it goes with nu.


def check_cost(machine: Any) -> None:
    """Require C to be a positive number, or one for each row; infinity allows no slack."""
    C = machine.C
    if is_real(C):
        if not C > 0:
            refuse(machine, "C", C, "be a positive number (infinity allows no slack)")
        return
    try:
        costs = np.asarray(C, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        costs = np.zeros(())
    if (
        isinstance(C, bool | str | bytes)
        or costs.ndim != 1
        or not (costs.size and (costs > 0).all())
    ):
        refuse(machine, "C", C, "be a positive number, or an array of one for each row")


def refuse_squared_beside_nu(machine: Any, name: str) -> None:
    """Refuse squared slack in the nu form, whose box bounds slack that counts as it is."""
    if machine.nu is not None and getattr(machine, name) == "l2":
        refuse(
            machine,
            name,
            "l2",
            f"be 'l1' beside nu={shortened(machine.nu)}: a share of rows outside is bounded by "
            "slack that counts as it is. For squared slack set nu=None and choose C",
        )


def warn_unused_beside_nu(machine: Any, name: str) -> None:
    """Warn that a parameter which was set has no effect: nu stands in its place."""
    if machine.nu is None:
        return
    default = signature(type(machine)).parameters[name].default
    value = getattr(machine, name)
    if is_real(value) and value == default:
        return
    shown = shortened(value) if is_real(value) else "<array>"
    warnings.warn(
        f"{type(machine).__name__}: {name}={shown} has no effect beside nu={machine.nu}, which "
        f"stands in its place. Set nu=None to use it, or leave {name} at {default}.",
        UserWarning,
        stacklevel=6,
    )


def costs_of(machine: Any, rows: DistinctRows, weights: Array) -> Array:
    """Return the weight of the slack of each merged row: C times how often it counts."""
    if is_real(machine.C):
        with np.errstate(over="ignore"):
            return _as_finite(float(machine.C) * rows.weight, np.isfinite(machine.C))
    C = np.asarray(machine.C, dtype=np.float64)
    if len(C) != len(weights):
        refuse(machine, "C", machine.C, f"have one entry for each of the {len(weights)} rows")
    with np.errstate(over="ignore", invalid="ignore"):  # infinity times no weight: not looked at
        return _as_finite(rows.total(C * weights), np.isfinite(C).all())


def bounded_costs(machine: Any, gram: Gram, costs: Array) -> str:
    """Warn if a finite weight of slack is above `dearest` and used as that; say so in words."""
    given = float(costs[np.isfinite(costs)].max(initial=0.0))
    if given < DEAREST or given <= (most := svm.dearest(gram)):
        return ""
    if not is_trying_settings():
        shown = shortened(machine.C) if is_real(machine.C) else "<array>"
        warnings.warn(
            f"{type(machine).__name__}: C={shown} weights slack by {given:.3g}, weights of samples "
            f"and classes included, but float64 resolves at most {most:.3g}: the fit uses "
            f"{most:.3g}. Lower C, scale X, or allow no slack (C=inf)",
            FitWarning,
            stacklevel=5,
        )
    return f"; weights of slack up to {given:.3g} are taken as {most:.16g}"


def _as_finite(costs: Array, finite: bool | np.bool_) -> Array:
    """Return costs of a finite C as finite numbers: what overflowed is not the hard margin."""
    return np.minimum(costs, np.finfo(float).max) if finite else np.asarray(costs)


def amounts_of(machine: Any, weights: Array) -> Array:
    """Return what copies of a row share its coefficient by: their weight, times their own C."""
    C = np.asarray(machine.C, dtype=np.float64)
    return weights * C if C.ndim and np.isfinite(C).all() else weights


# --- boxes ---------------------------------------------------------------------------------------
#
# What a row may cost in a programme of two classes: slack as it is, squared, or a share nu.


@dataclass(frozen=True, eq=False)
class TwoClassBox(ABC):
    """A two-class machine but for its rows.

    Attributes
    ----------
    amount : (n,) array
        Weight of each row: times C where there is one.
    """

    amount: Array

    @abstractmethod
    def problem(self, gram: Gram, signs: Array) -> BoxQP:
        """Write the problem."""

    def decision(self, dual: Dual) -> Dual:
        """Return coefficients and constant of the function that has its margin at 1."""
        return dual

    def decided(self, dual: Dual) -> bool:
        """Return whether an answer has a margin: only in the nu form it may not."""
        return True

    def of(self, rows: Array | None) -> Self:
        """Return the same machine on some of the rows."""
        return self if rows is None else replace(self, amount=self.amount[rows])

    def feasible(self, signs: Array) -> Self:
        """Return a machine like this one that has an answer for these rows: only nu may not."""
        return self

    def counting(self, share: Array) -> Self:
        """Return the same machine with every row counting less."""
        return replace(self, amount=self.amount * share)


class HingeBox(TwoClassBox):
    """L1 slack."""

    def problem(self, gram: Gram, signs: Array) -> BoxQP:
        """Bound the coefficients."""
        return svm.svc(gram, signs, self.amount)


class SquaredHingeBox(TwoClassBox):
    """L2 slack."""

    def problem(self, gram: Gram, signs: Array) -> BoxQP:
        """Add to the diagonal."""
        return svm.svc_l2(gram, signs, self.amount)


@dataclass(frozen=True, eq=False)
class NuBox(TwoClassBox):
    """The nu form."""

    nu: float

    def problem(self, gram: Gram, signs: Array) -> BoxQP:
        """Fix the sum over each class."""
        return svm.nu_svc(gram, signs, self.amount, self.nu)

    def decision(self, dual: Dual) -> Dual:
        """Scale to a margin of 1."""
        if self.decided(dual):
            return svm.nu_svc_margin(dual)[0]
        return Dual(dual.coef, float(np.mean(dual.intercept)))  # cut short: its sign is all it has

    def decided(self, dual: Dual) -> bool:
        """Return whether the classes are apart."""
        return svm.nu_svc_parts(dual)

    def feasible(self, signs: Array) -> Self:
        """Lower nu to what these rows allow."""
        of_class = [float(self.amount[signs * side > 0].sum()) for side in (-1, 1)]
        total = sum(of_class)
        if total == 0.0:  # a fold that leaves no rows has no answer, whatever nu is
            return self
        return replace(self, nu=min(self.nu, 2 * min(of_class) / total))


# --- margin machine ------------------------------------------------------------------------------
#
# What support vector machines share: parameters, merged rows, the solve, the certificate.

_SOLVE_BELOW = 0.99  # of tol, so that the certificate, computed from the data, meets tol itself
_LOOSEST_GAP = 0.5  # gaps near 100 % bound no objective, so that no tol means them
_CRITERIA: dict[str, Violation | Gap] = {"violation": Violation(), "gap": Gap()}
_UPDATED = 500.0  # roundings of K b: what a solver has of it, after many steps, may be off by
_ROUNDED = 1e-13  # of targets: what sums of them, and of values of their size, may be off by

PathWriter = Callable[[Fold, Sequence[Any]], FoldPath]


class MarginMachine(CallbackSupportMixin, Certified, KernelMachine):
    """Base of machines that end in box programmes."""

    tol: float
    criterion: str
    max_iter: int | None
    time_limit: float | None
    warm_start: bool
    callback: Any
    solution_: Solution
    _has_free_constant: ClassVar[bool] = True  # beside the function, at no cost
    _has_scale: ClassVar[bool] = True  # a constant that rows are compared with, such as 1 / C
    n_features_in_: int

    @abstractmethod
    def _check_parameters(self) -> None:
        """Check all parameters."""

    def _sharing(
        self, path: PathWriter, parameters: tuple[str, ...], cost: Any = 1.0, nu: Any = None
    ) -> Sharing | None:
        """Return how this machine shares, where its programmes differ by factors only."""
        try:  # what a fit would refuse is fitted, so that it is refused
            self._check_parameters()
        except (TypeError, ValueError):
            return None
        limits = (self.max_iter, self.time_limit, self.callback)
        if self.criterion != "violation" or any(limit is not None for limit in limits):
            return None
        if not is_exact(self):
            return None
        kernel = {"kernel": self._kernel_of, "precomputed": self._is_precomputed()}
        return path_sharing(self, path, parameters, cost, nu, **kernel)

    def _kernel_of(self, X: Points, weights: Array) -> Kernel:
        """Return the kernel; a name takes its scale from the rows."""
        if not isinstance(self.kernel, str):
            return kernel_of(self.kernel)
        return kernel_of(self.kernel, X, weights)

    def _check_solving(self) -> None:
        """Check the parameters that say how to solve."""
        check_real(self, "tol", above=0)
        check_choice(self, "criterion", tuple(_CRITERIA))
        check_optional_count(self, "max_iter")
        check_limits(self)
        check_flag(self, "warm_start")

    def _merged(self, X: Points, labels: Array, weights: Array) -> DistinctRows:
        """Take equal rows of equal labels together, sorted by label."""
        if self._is_precomputed():
            return rows_as_they_are(labels, weights)
        return distinct_rows(X, labels, weights)

    def _resolved(self, X: Points, rows: DistinctRows) -> Kernel:
        """Return the kernel; scales taken from merged rows depend on neither copies nor order."""
        if not isinstance(self.kernel, str):
            return kernel_of(self.kernel)
        return kernel_of(self.kernel, take(X, rows.first), rows.weight, self._column_names())

    def _origin(self, X: Points, rows: DistinctRows) -> Array | None:
        """Return what is taken off the rows: where the constant is free, columns far from zero."""
        return far_origin(self.kernel_, X, rows.first) if self._has_free_constant else None

    def _gram(self, X: Points, rows: DistinctRows, origin: Array | None = None) -> Gram:
        gram = make_gram(
            self.kernel_,
            less_origin(X, origin),
            Need.BOX,
            rows=rows.first,
            names=self._column_names(),
            dtype=stored_dtype(len(rows.first)),
            copies=self._variables_of_a_row(),
            cost=self._dearest(rows.weight),
            form=self._form(len(rows.first)),
        )
        small = not self._has_scale
        return refuse_extremes(type(self).__name__, gram, self.kernel_, rows.first, small=small)

    def _dearest(self, weights: Array) -> float:
        """Return the most that slack of a row costs; with nu it is a share, whatever it weighs."""
        C = float(np.max(getattr(self, "C", 1.0)))
        with np.errstate(over="ignore"):
            return C if getattr(self, "nu", None) is not None else C * float(weights.max())

    def _form(self, n: int) -> Form | None:
        """Return what the programmes on n rows are like, where that is known before K is."""
        return None

    def _variables_of_a_row(self) -> int:
        """Count the variables that the programme has for each row."""
        return 1

    def _keep_support(self, X: Points, coef: Array) -> None:
        """Keep the rows that have a coefficient, of all rows (n,) or (n, k)."""
        self._n_rows, self.support_ = len(coef), nonzero_rows(coef)
        self.dual_coef_ = coef[self.support_]
        empty = self._is_precomputed()  # rows of the matrix would be no vectors
        self.support_vectors_ = np.empty((0, 0)) if empty else at_rest(take(X, self.support_))

    @property
    def coef_(self) -> Array:
        """Weights of the columns, for the linear kernel."""
        if not isinstance(self.__dict__.get("kernel_"), Linear):
            raise AttributeError("coef_ exists after a fit with the linear kernel only")
        weights = weights_of(self._expansion, self.n_features_in_).T
        return np.asarray(weights[0] if len(weights) == 1 else weights)

    def _solver(self, problem: BoxQP | Many, least: float = 0.0) -> Solver:
        """Return the solver that suits the problem, with the wishes of the user."""
        tol = min(self.tol, _LOOSEST_GAP) if self.criterion == "gap" else self.tol
        wishes = {
            "tol": max(_SOLVE_BELOW * tol, least),
            "max_iter": self.max_iter,
            "criterion": _CRITERIA[self.criterion],
        }
        return _with_options(choose(problem), wishes)

    def _answer(self, gram: Gram, question: Callable[[Gram], Any], bounded: str = "") -> Solution:
        """Solve, remember how it ended, and promise the certificate, which says what is bounded."""
        problem = question(gram)
        start = self._earlier_answer(problem)
        with progress_of(self, self.callback) as callback:
            solution = solve(
                problem,
                self._solver(problem),
                start=start,
                callback=callback,
                time_limit=self.time_limit,
            )
        self.solution_ = solution
        self.n_iter_ = max(1, solution.iterations)  # a look around counts as a step
        judge = certify_gap if self.criterion == "gap" else certify
        self._judgement = lazy_certificate(
            gram,
            question,
            solution.value,
            partial(_judged, judge, self.tol, bounded),
            slack_costs(problem),
            eager=any(map(self._is_eager, programmes_of(problem), duals_of(solution.value))),
        )
        return solution

    def _keep_function(self, bare: Expansion, constants: Array, origin: Array | None) -> Array:
        """Keep f of rows as they are given; return its constants."""
        self._expansion, constants = as_given(bare, constants, origin)
        strict = self.criterion != "gap"
        self._judgement = counting_rounding(self._judgement, self._expansion, origin, strict)
        return constants

    def _is_eager(self, problem: BoxQP, dual: Dual) -> bool:
        """Return whether rounding of values nears tol; a gap that is asked for is always judged.

        By an estimate of it, which decides when the answer is judged, and nothing that is claimed.
        Solvers bound gaps by what they hold, which no size of rounding vouches for.
        """
        if self.criterion == "gap":
            return True
        offset = float(np.abs(np.atleast_1d(dual.intercept)).max(initial=0.0))
        asked = float(np.abs(problem.linear).max(initial=0.0)) + offset
        values = problem.largest_term_rounding(dual.coef)
        rounded = _ROUNDED * asked + _UPDATED * values
        return not rounded <= self.tol * problem.least_unit(dual.intercept)

    def _earlier_answer(self, problem: BoxQP | Many) -> Dual | Duals | None:
        """Return the last answer to start from, if that is asked for and has as many variables."""
        earlier = self.__dict__.get("solution_")
        if not self.warm_start or earlier is None:
            return None
        asked = programmes_of(problem)
        earlier_duals = duals_of(earlier.value)
        alike = [len(one.linear) for one in asked] == [len(one.coef) for one in earlier_duals]
        own = isinstance(earlier.value, Dual | Duals)  # a compressed machine has another answer
        return earlier.value if alike and own else None


def _judged(
    judge: Callable[..., Certificate], tol: float, bounded: str, problem: Any, value: Any
) -> Certificate:
    """Return a certificate that states which weights of slack are bounded."""
    found = judge(problem, value, tol=tol)
    return replace(found, statement=found.statement + bounded) if bounded else found


def path_sharing(
    machine: Any,
    path: PathWriter,
    parameters: tuple[str, ...],
    cost: Any,
    nu: Any,
    **kernel: Any,
) -> Sharing | None:
    """Return how a machine shares whose C, tube or nu are factors; None if one is no number.

    Parameters
    ----------
    machine : MarginMachine or drop-in
        Has `tol`, and maybe `epsilon`.
    path : callable
        Writes the problem.
    parameters : tuple of str
        Those that may differ.
    cost : float
        C, or 1 where there is none; a cost for each row, or an infinite one, is no factor.
    nu : float or None
        What coefficients sum to, as a share of all costs.
    **kernel : object
        What `Sharing` says of the kernel.
    """
    tube = getattr(machine, "epsilon", 0.0)
    if not all(is_real(one) and 0 <= one < DEAREST for one in (cost, tube)) or cost == 0:
        return None
    total = 0.0 if nu is None else float(cost) * float(nu)
    tol = _SOLVE_BELOW * float(machine.tol)
    return Sharing(MarginPath, parameters, path, tol=tol, cost=float(cost), total=total, **kernel)


def programmes_of(problem: BoxQP | Many) -> tuple[BoxQP, ...]:
    """See one programme as a family of one."""
    return problem.problems if isinstance(problem, Many) else (problem,)


def duals_of(value: Dual | Duals) -> tuple[Dual, ...]:
    """See one answer as those of a family of one."""
    return value.parts if isinstance(value, Duals) else (value,)


def slack_costs(problem: BoxQP | Many) -> Array:
    """Return the least and the most that slack costs in a row of each programme, if not nothing."""
    found = []
    for one in programmes_of(problem):
        shift = one.unwrapped.shift
        with np.errstate(divide="ignore"):
            costs = one.upper - one.lower if shift is None else 0.5 / shift
        if costs.min(initial=np.inf) <= 0:
            costs = costs[costs > 0]
        found += [costs.min(), costs.max()] if len(costs) else []
    return np.asarray(np.minimum(np.array(found), np.finfo(float).max))


def _with_options(solver: Solver, wishes: dict[str, Any]) -> Solver:
    """Return the solver with all of the wishes: none is dropped."""
    if isinstance(solver, Each):
        return Each(_with_options(solver.solver, wishes))
    return replace(solver, **wishes)  # type: ignore[type-var]
