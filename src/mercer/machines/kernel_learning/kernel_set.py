"""Sets of kernels on the same samples, losses that weights minimize, and checks of arguments."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import type_of_target

from mercer.array_types import Array, Points
from mercer.gram import Gram, Need, make_gram
from mercer.gram.build import matrix_gram
from mercer.gram.transformed import shifted
from mercer.kernels import Kernel, Precomputed, resolve
from mercer.machines.base.inputs import training_rows
from mercer.machines.base.machine import is_precomputed
from mercer.machines.base.parameters import is_real
from mercer.machines.base.targets import (
    DistinctRows,
    check_class_weight,
    check_weights,
    class_weights,
    classes_of,
    refuse_mixed_labels,
    refuse_targets,
)
from mercer.machines.svm.machine import HingeBox, SquaredHingeBox
from mercer.machines.svm.multiclass import ClassQPs, ends_of, scheme_of
from mercer.machines.svm.problem import DEAREST, BoxQP, Many
from mercer.resources import require_memory, within_budget
from mercer.rows.points import is_sparse, row_count

# --- kernel set ----------------------------------------------------------------------------------
#
# Matrices of several kernels, and a common scale for them.

_CONSTANT = 1e-12  # of the mean of k(x, x): a variance that is rounding


@dataclass(frozen=True, eq=False)
class KernelSet:
    """Kernels and the rows they compare.

    Attributes
    ----------
    kernels : tuple of Kernel
        The kernels; `Precomputed()` for given matrices.
    points : Points or None
        The rows.
    names : list of str or None
        Names of their columns.
    matrices : tuple of Gram
        Given matrices, restricted to the rows that count.
    """

    kernels: tuple[Kernel, ...]
    points: Points | None
    names: list[str] | None
    matrices: tuple[Gram, ...] = ()

    @staticmethod
    def given(matrices: list[Any], n: int, rows: Array) -> KernelSet:
        """Take given matrices, all n by n."""
        grams = []
        for k, matrix in enumerate(matrices):
            K = np.asarray(matrix)
            if K.shape != (n, n):
                raise ValueError(
                    f"combine: matrix {k} of X has shape {K.shape}; with Precomputed(), X is a "
                    f"sequence of matrices of shape ({n}, {n}), one for each kernel"
                )
            try:
                grams.append(matrix_gram(K, rows))
            except ValueError as error:
                raise ValueError(f"combine: matrix {k} of X: {error}") from None
        return KernelSet((Precomputed(),) * len(grams), None, None, tuple(grams))

    @property
    def count(self) -> int:
        """Count the rows."""
        return self.matrices[0].shape[0] if self.matrices else row_count(self.points)

    def refuse_large(self, method: str, copies: int) -> None:
        """Refuse, before anything is stored, where not even the weighted sum fits."""
        needed = copies * 8 * self.count**2
        require_memory(
            needed,
            f"combine: method={method!r} on {self.count} rows",
            "Alternatives: method='alignment', which stores no matrix; fewer rows; or a larger "
            "budget with mercer.config(memory=...).",
        )

    def grams(self, copies: int) -> tuple[Gram, ...]:
        """Make the matrices: stored if all of them fit beside so many others, else evaluated anew.

        In float64 if that fits, else in float32.
        """
        if self.matrices:
            return self.matrices
        count = len(self.kernels)
        single = not within_budget(8.0 * (count + copies) * self.count**2)
        dtype = np.float32 if single else np.float64
        held = count + (2 * copies if single else copies)  # what is made of them is in float64
        return tuple(
            make_gram(k, self.points, Need.PRODUCTS, names=self.names, dtype=dtype, copies=held)
            for k in self.kernels
        )

    def called(self, k: int) -> str:
        """Name one of the kernels."""
        return f"matrix {k} of X" if self.matrices else f"kernel {k}, {self.kernels[k]!r},"

    def factors(self, grams: tuple[Gram, ...], weights: Array, normalize: bool) -> Array:
        """Return the factor of each kernel: one, or one over its variance in feature space."""
        share = weights / weights.sum()
        variances = []
        for k, gram in enumerate(grams):
            size = float(share @ gram.diag())
            variance = size - float(share @ (gram @ share))
            if variance < -_CONSTANT * abs(size):
                raise ValueError(
                    f"combine: {self.called(k)} is not positive semidefinite (it gives the rows a "
                    "negative variance); weights are learnt for valid kernels only"
                )
            if not variance > _CONSTANT * abs(size):
                raise ValueError(
                    f"combine: {self.called(k)} is constant on these rows, so that it tells "
                    "nothing about them; leave it out, or change its scale"
                )
            variances.append(variance)
        return 1.0 / np.array(variances) if normalize else np.ones(len(grams))


def given_matrices(X: Any) -> list[Any]:
    """Require a sequence of matrices."""
    listed = isinstance(X, Iterable) and getattr(X, "ndim", 1) > 0 and not is_sparse(X)
    matrices = list(X) if listed else []
    if not matrices or not all(np.ndim(matrix) == 2 for matrix in matrices):
        raise ValueError(
            "combine: with kernels=Precomputed(), X must be a sequence of square matrices, one for "
            "each kernel, such as [K1, K2]"
        )
    return matrices


def kernel_set(
    kernels: Sequence[Any], points: Points, names: list[str] | None, weights: Array
) -> KernelSet:
    """Read kernels from what the user gave."""
    single = isinstance(kernels, str | Kernel) or getattr(kernels, "ndim", 1) == 0
    if single or not isinstance(kernels, Iterable):
        raise TypeError(
            f"combine: kernels={kernels!r} must be a list of kernels, or Precomputed() for matrices"
        )
    chosen = list(kernels)
    if not chosen:
        raise ValueError("combine: kernels is empty; give at least one kernel")
    if any(map(is_precomputed, chosen)):
        raise ValueError(
            "combine: Precomputed() cannot be one kernel among others; for given matrices pass "
            "kernels=Precomputed() and the list of matrices as X"
        )
    found = []
    for k, given in enumerate(chosen):
        try:
            kernel = resolve(given, points, weights)
        except TypeError as error:
            raise TypeError(f"combine: entry {k} of kernels: {error}") from None
        found.append(kernel)
        if not kernel.psd:
            raise ValueError(
                f"combine: kernel {k}, {kernel!r}, is not positive semidefinite; weights are "
                "learnt for valid kernels only"
            )
    return KernelSet(tuple(found), points, names)


# --- loss ----------------------------------------------------------------------------------------
#
# The dual problem of an estimator, as quadratic programs on a Gram.

_ORDINARY = 1e100  # targets up to here, and down to its inverse, are taken as they are


class KernelLoss(ABC):
    """A machine, but for its kernel."""

    method: ClassVar[str]
    copies: ClassVar[int]  # matrices held beside those of the kernels, in float64

    def refusal(self, largest: float, weights: Array) -> str | None:
        """Return what is wrong with parameters for rows of these weights and largest k(x, x)."""
        return None

    @abstractmethod
    def question(self, data: Labelled, rows: DistinctRows) -> Callable[[Gram], BoxQP | Many]:
        """Write the machine on a Gram of the rows."""


@dataclass(frozen=True, eq=False)
class Hinge(KernelLoss):
    """The support vector classifier."""

    C: float
    slack: str
    multiclass: str
    class_weight: Any
    method = "margin"
    copies = 3  # the weighted sum, and what a descent works on

    @staticmethod
    def of(C: Any, slack: str, multiclass: str, class_weight: Any) -> Hinge:
        """Check the parameters."""
        one_of("combine", "slack", slack, ("l1", "l2"))
        one_of("combine", "multiclass", multiclass, ("ovo", "ovr"))
        holder = type("combine", (), {"class_weight": class_weight})()
        check_class_weight(holder)
        return Hinge(checked("combine", "C", C), slack, multiclass, class_weight)

    def refusal(self, largest: float, weights: Array) -> str | None:
        """Refuse hard margins: where slack is forbidden no gap can be computed."""
        most = self.C * float(weights.max())
        if min(most, most * largest) < DEAREST:
            return None
        return (
            f"C={self.C!r} forbids all slack where k(x, x) is {largest:.1e}; use a C that is "
            "smaller by some powers of ten, or method='alignment'"
        )

    def question(self, data: Labelled, rows: DistinctRows) -> Callable[[Gram], BoxQP | Many]:
        """Write all pairs of classes, or each against the rest."""
        assert data.codes is not None
        assert data.classes is not None
        scheme = scheme_of(self.multiclass, ends_of(data.codes[rows.first]))
        amount = self.C * rows.weight
        totals = np.add.reduceat(rows.weight, scheme.ends[:-1])
        holder = type("combine", (), {})()
        factors = class_weights(holder, self.class_weight, data.classes, totals)
        if factors is not None:
            amount = amount * np.repeat(factors, np.diff(scheme.ends))
        box = {"l1": HingeBox, "l2": SquaredHingeBox}[self.slack](amount)
        return ClassQPs(scheme.parts(), box)


@dataclass(frozen=True, eq=False)
class Squares(KernelLoss):
    """Ridge regression: with a = b, its dual is (K + penalty S^-1) b + intercept = y."""

    penalty: float
    bias: bool
    method = "ridge"
    copies = 6  # two weighted sums, with the shift, scaled, factored, and on the way there

    @staticmethod
    def of(penalty: Any, bias: Any) -> Squares:
        """Check the parameters."""
        check_flag("combine", "bias", bias)
        return Squares(checked("combine", "penalty", penalty), bool(bias))

    def question(self, data: Labelled, rows: DistinctRows) -> Callable[[Gram], BoxQP | Many]:
        """Write one programme without bounds for each target."""
        assert data.targets is not None
        targets = data.targets[rows.first]
        if len(targets) < 2:
            raise ValueError("combine needs two rows or more, but n_samples = 1")
        if not np.ptp(targets, axis=0).any():
            raise ValueError("combine: y is constant, so that all weights are equally good")
        if self.bias:  # which takes up any constant; rounding should not see it either
            targets = targets - np.average(targets, axis=0, weights=rows.weight)
        return _Regression(targets / _unit(targets), self.penalty / rows.weight, self.bias)


def _unit(targets: Array) -> float:
    """Return what targets are counted in; the weights of the kernels do not depend on it."""
    largest = float(np.abs(targets).max())
    return 1.0 if 1 / _ORDINARY < largest < _ORDINARY else 2.0 ** np.floor(np.log2(largest))


@dataclass(frozen=True, eq=False)
class _Regression:
    targets: Array
    shift: Array
    bias: bool

    def __call__(self, gram: Gram) -> BoxQP | Many:
        """Write the targets' programmes on a Gram."""
        K = shifted(gram, self.shift)
        free = np.full(len(self.shift), np.inf)
        group = None if self.bias else np.full(len(free), -1)
        total: Any = 0.0 if self.bias else np.empty(0)
        problems = [
            BoxQP(K, y, -free, free, total, 0.0, group)
            for y in np.ascontiguousarray(self.targets.T)
        ]
        return problems[0] if len(problems) == 1 else Many(tuple(problems))


# --- targets -------------------------------------------------------------------------------------
#
# Checked samples and targets.

_LABELS = ("binary", "multiclass")


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows and targets.

    Attributes
    ----------
    points : Points
        Rows, or the matrix of a precomputed kernel.
    names : list of str or None
        Names of their columns.
    targets : (n, t) array or None
        Numbers; None for labels.
    codes : (n,) int array or None
        The number of each row's class; None for numbers.
    classes : array or None
        The labels.
    weights : (n,) array
        How often each row counts.
    """

    points: Points
    names: list[str] | None
    targets: Array | None
    codes: Array | None
    classes: Array | None
    weights: Array

    def ideal(self) -> Array:
        """Return Y for which Y Y' is the kernel that knows the answer: (n, t).

        For numbers these themselves. For k classes the corners of a regular simplex, so that Y Y'
        is 1 for rows of one class and -1/(k - 1) for rows of two: for two classes the product of
        labels -1 and 1.
        """
        if self.targets is not None:
            return self.targets
        assert self.codes is not None
        assert self.classes is not None
        k = len(self.classes)
        corners = np.sqrt(k / (k - 1.0)) * (np.eye(k) - 1.0 / k)
        return np.asarray(corners[self.codes])


def labelled(
    function: str,
    X: Any,
    y: Any,
    sample_weight: Any,
    target: str,
    precomputed: bool = False,
    kernels: Any = (),
) -> Labelled:
    """Check rows, targets and weights; errors name the function.

    Parameters
    ----------
    function : str
        Who asks.
    X : array-like
        Rows.
    y : array-like
        Labels or numbers.
    sample_weight : array-like or None
        How often each row counts.
    target : {"auto", "labels", "numbers"}
        What y holds.
    precomputed : bool
        Whether X is a matrix of kernel values.
    kernels : sequence of Kernel
        Those that read the rows.
    """
    if not isinstance(target, str) or target not in ("auto", "labels", "numbers"):
        raise ValueError(f"{function}: target={target!r} must be 'auto', 'labels' or 'numbers'")
    # checks as machines do, under this name
    witness = type(function, (BaseEstimator,), {"kernels": kernels})()
    if y is None:
        raise ValueError(f"{function}: y is missing; a kernel is learnt from labels or targets")
    labels = target == "labels" or (target == "auto" and _are_labels(y))
    if not labels:
        points, y = training_rows(witness, X, y, precomputed, multi_output=True, y_numeric=True)
        weights = check_weights(witness, sample_weight, len(y))
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return Labelled(points, _names(witness), targets, None, None, weights)
    refuse_mixed_labels(witness, y)
    points, y = training_rows(witness, X, y, precomputed)
    refuse_targets(y)
    weights = check_weights(witness, sample_weight, len(y))
    classes, codes = classes_of(witness, y, weights)
    return Labelled(points, _names(witness), None, codes, classes, weights)


def _are_labels(y: Any) -> bool:
    with np.errstate(invalid="ignore"):  # it compares with whole numbers, which may not hold y
        return type_of_target(y, "y") in _LABELS


def _names(witness: Any) -> list[str] | None:
    names = getattr(witness, "feature_names_in_", None)
    return None if names is None else list(names)


# --- arguments -----------------------------------------------------------------------------------
#
# Checks of function arguments.


def checked(function: str, name: str, value: Any) -> float:
    """Require a positive, finite number."""
    if not is_real(value) or not math.isfinite(value) or not value > 0:
        raise ValueError(f"{function}: {name}={value!r} must be a positive, finite number")
    return float(value)


def counted(function: str, name: str, value: Any) -> int:
    """Require a whole number, one or more."""
    if not is_real(value) or not value >= 1 or value != value // 1:
        raise ValueError(f"{function}: {name}={value!r} must be a whole number, at least 1")
    return int(value)


def check_limits(function: str, tol: Any, max_iter: Any, callback: Any, time_limit: Any) -> None:
    """Require what says when a search ends."""
    checked(function, "tol", tol)
    counted(function, "max_iter", max_iter)
    if callback is not None and not callable(callback):
        raise ValueError(f"{function}: callback={callback!r} must be a function or None")
    if time_limit is not None:
        checked(function, "time_limit", time_limit)


def check_flag(function: str, name: str, value: Any) -> None:
    """Require a truth value."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{function}: {name}={value!r} must be True or False")


def one_of(function: str, name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Require one of a few words."""
    if not isinstance(value, str) or value not in choices:
        shown = " or ".join(map(repr, choices))
        raise ValueError(f"{function}: {name}={value!r} must be {shown}")
