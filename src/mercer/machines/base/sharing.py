"""Work shared by fits to the same rows: folds, matrices and decompositions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from mercer.arguments import renamed_field
from mercer.array_types import Array, Points
from mercer.gram import Gram
from mercer.gram.transformed import restricted
from mercer.kernels import Kernel
from mercer.solvers.base import Solution, Status
from mercer.solvers.eigen.problem import Eigenproblem, Modes

# --- sharing -------------------------------------------------------------------------------------
#
# How a machine shares work where many of its settings are judged on one fold.
#
# A machine that can be solved for many settings at once says so by a method `sharing`, written in
# its own class: it returns a `Sharing`, or None where this machine has to be fitted alone. What
# fits to one fold have in common otherwise is listed in a class attribute `shares`:
# `SharedMatrix`, `SharedDecomposition`. A subclass that writes neither is fitted, setting by
# setting, since it may fit or predict in a way of its own.
#
# `Sharing.path` writes one problem for all settings of a fold. Its answer holds values at the
# rows that are left out; `FoldPath.known` makes of them a stand-in that answers a scorer as a
# fitted machine would.


@renamed_field("evaluation_rows", "wanted")
@dataclass(frozen=True, eq=False)
class Fold:
    """What a path may look at.

    Attributes
    ----------
    gram : Gram
        K of all rows, those that are left out included.
    rows : (m,) int array
        Those to learn from, all of positive weight; of a classifier those of one class side by
        side, classes in order.
    targets : (m,) array
        Their labels, or what f should be; zeros for detectors of outliers.
    weights : (m,) array
        How often each counts.
    evaluation_rows : (t,) int array
        Rows at which answers are wanted.
    """

    gram: Gram
    rows: Array
    targets: Array
    weights: Array
    evaluation_rows: Array

    @cached_property
    def part(self) -> Gram:
        """Return K of the rows to learn from."""
        return restricted(self.gram, self.rows)


@dataclass(frozen=True, eq=False)
class FoldPath:
    """One problem for several machines on one fold.

    Attributes
    ----------
    problem : MarginPath or another problem of settings
        What `solve` is asked; setting number k belongs to machine number k.
    predictor : callable
        Makes a stand-in of values (programmes, rows) and offsets (programmes, groups) of one
        setting; raises ValueError where only a fit can tell.
    """

    problem: Any
    predictor: Callable[[Array, Array], Any]

    def known(self, value: Any, setting: int, rows: slice) -> Any:
        """Return the stand-in of a machine at some of the rows that were wanted."""
        return self.predictor(value.values[setting][:, rows], value.offsets(setting))


@dataclass(frozen=True, eq=False)
class Sharing:
    """What machines have to agree in to be solved together, and how.

    Attributes
    ----------
    problem : type
        Of problem that `path` writes: `MarginPath`.
    parameters : tuple of str
        Names of the parameters that may differ along a path.
    path : callable
        Writes a `FoldPath` for a `Fold` and several machines, which are alike but for these
        parameters; raises ValueError where no fit is possible.
    kernel : callable
        Returns the kernel for rows and their weights.
    tol : float
        What a solver is to reach.
    cost : float
        Bound of a coefficient of weight 1: C.
    total : float
        Sum of the coefficients of rows of weight 1: nu, or zero where classes or sides cancel.
    precomputed : bool
        Whether rows are those of a given matrix.
    kernel_parameters : tuple of str
        Names of the parameters that the kernel depends on.
    kernel_of_fold : bool
        Whether the kernel depends on the rows it is fitted to, so that every fold has its own.
    """

    problem: type
    parameters: tuple[str, ...]
    path: Callable[[Fold, Sequence[Any]], FoldPath]
    kernel: Callable[[Points, Array], Kernel]
    tol: float = 1e-3
    cost: float = 1.0
    total: float = 0.0
    precomputed: bool = False
    kernel_parameters: tuple[str, ...] = ("kernel",)
    kernel_of_fold: bool = False


@dataclass(frozen=True)
class SharedMatrix:
    """Fits and answers need nothing but k(x_i, x_j): folds may read them from one matrix.

    The machine takes rows of a given matrix where its `kernel` is `Precomputed()`.
    """


@dataclass(frozen=True)
class SharedDecomposition:
    """Settings that differ in some parameters have one matrix, and its leading pairs, in common.

    The machine derives from `Reusing` and looks for both in the store that it is handed
    (`machines/base/sharing.py`).

    Attributes
    ----------
    free : tuple of str
        Parameters that neither depends on; the first is the number of pairs, or of clusters.
    """

    free: tuple[str, ...]


def says_how_it_shares(machine: Any) -> bool:
    """Return whether a machine's own class, not one that it derives from, has `sharing`."""
    return "sharing" in vars(type(machine))


def shares_of(machine: Any) -> tuple[SharedMatrix | SharedDecomposition, ...]:
    """Return what a machine's own class lists in `shares`."""
    return tuple(vars(type(machine)).get("shares", ()))


class KnownClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose decision values are known.

    Parameters
    ----------
    classes : (k,) array
        Labels, sorted.
    decision : (n,) or (n, k) array
        Decision values, of the second of two classes or of each.
    labels : (n,) array
        Predicted labels.
    """

    def __init__(self, classes: Array, decision: Array | None, labels: Array) -> None:
        self.classes, self.decision, self.labels = classes, decision, labels
        self.classes_ = classes

    @available_if(lambda self: self.decision is not None)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Return the known values."""
        return np.asarray(self.decision)

    def predict(self, X: Any) -> Array:
        """Return the known labels."""
        return self.labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right labels, without the checks that strangers' arrays need."""
        if sample_weight is None and _alike(self.labels, y) and len(y):
            return np.count_nonzero(self.labels == y) / len(y)
        return float(super().score(X, y, sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return True


class KnownRegressor(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are known."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def predict(self, X: Any) -> Array:
        """Return the known values."""
        return self.values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2, without the checks that strangers' arrays need."""
        if sample_weight is not None and np.max(sample_weight, initial=0.0) > 0:
            # only shares of weights count, and products with large ones overflow
            sample_weight = np.asarray(sample_weight) / np.max(sample_weight)
        if sample_weight is not None or not _alike(self.values, y) or len(y) < 2:
            return float(super().score(X, y, sample_weight))
        spread = float(np.sum((y - y.mean()) ** 2))
        left = float(np.sum((y - self.values) ** 2))
        if spread == 0.0 or not np.isfinite(left):
            return float(super().score(X, y))
        return 1.0 - left / spread

    def __sklearn_is_fitted__(self) -> bool:
        return True


class KnownDetector(OutlierMixin, BaseEstimator):
    """A detector of outliers whose decision values are known."""

    def __init__(self, decision: Array, offset: float = 0.0) -> None:
        self.decision, self.offset = decision, offset

    def decision_function(self, X: Any) -> Array:
        """Return the known values."""
        return self.decision

    def score_samples(self, X: Any) -> Array:
        """Return the known values before the threshold was taken off."""
        return self.decision + self.offset

    def predict(self, X: Any) -> Array:
        """Return 1 to what is inside, -1 to the rest."""
        return np.where(self.decision >= 0, 1, -1)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _alike(known: Array, y: Any) -> bool:
    """Return whether targets are a plain array beside which the answers can be laid."""
    plain = isinstance(y, np.ndarray) and y.ndim == 1 and known.shape == y.shape
    return plain and y.dtype.kind in "biufUS" and y.dtype.kind == known.dtype.kind


# --- reuse ---------------------------------------------------------------------------------------
#
# What fits to the same rows can share, where they differ in the number of clusters or components.
#
# Whoever fits several such machines leaves one `Store` with each before it is fitted; a fit takes
# it away, so that it serves that fit alone, and is never copied or pickled. Without one a fit has
# a store to itself, and nothing is found in it.

T = TypeVar("T")


class Store:
    """Results by name: made once, then found."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}
        self._pairs: dict[Hashable, tuple[int, Solution]] = {}

    def leave_with(self, machine: Reusing) -> None:
        """Let the next fit of a machine use what is here."""
        machine._store = self

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """Return what goes by a name, made if it is not here."""
        if name not in self._made:
            self._made[name] = make()
        return cast(T, self._made[name])

    def pairs(
        self, name: Hashable, problem: Eigenproblem, solve: Callable[[Eigenproblem], Solution]
    ) -> Solution:
        """Return the leading eigenpairs of one matrix: the first of those found for more.

        Pairs come in the order of their values, so a smaller number is the beginning of a larger.
        """
        return self.leading(name, problem.n_pairs, partial(solve, problem), _first_modes)

    def leading(
        self,
        name: Hashable,
        count: int,
        solve: Callable[[], Solution],
        first: Callable[[Any, int], Any],
    ) -> Solution:
        """Return a solution of `count` pairs: the first of those found for more, or solved anew."""
        asked, solution = self._pairs.get(name, (0, None))
        if solution is None or asked < count or solution.status is not Status.SOLVED:
            solution = solve()
            self._pairs[name] = count, solution
        return replace(solution, value=first(solution.value, count))


def _first_modes(modes: Modes, count: int) -> Modes:
    return Modes(modes.values[:count], modes.vectors[:, :count])


class Reusing:
    """A machine whose fits look for results in a store before they compute them."""

    _store: Store | None = None

    def _take_store(self) -> Store:
        """Return the store that was left for this fit, or an empty one."""
        store, self._store = self._store or Store(), None
        return store
