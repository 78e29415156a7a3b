"""Which kernels, and how much of each? Weights of a sum, by alignment or by a machine's loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.certificates import certify
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machines.base.certificate import confirmed
from mercer.machines.base.machine import is_precomputed
from mercer.machines.base.targets import DistinctRows, distinct_rows, rows_as_they_are
from mercer.points import take
from mercer.problems import KernelAlignment, KernelCombination
from mercer.selection.learning.combined import Combined
from mercer.selection.learning.kernel_loss import Hinge, KernelLoss, Squares
from mercer.selection.learning.kernel_set import KernelSet, given_matrices, kernel_set
from mercer.selection.learning.labelled import Labelled, labelled
from mercer.selection.learning.parameters import check_flag, check_limits, one_of
from mercer.solvers import Callback, Nonnegative, SimplexNewton, Solution, solve

_METHODS = ("alignment", "margin", "ridge")


@dataclass(frozen=True, eq=False)
class _Asked:
    """What all methods are told."""

    kernels: KernelSet
    data: Labelled
    rows: DistinctRows
    normalize: bool
    tol: float
    max_iter: int
    options: dict[str, Any]


def combine(
    kernels: Sequence[Any] | Kernel,
    X: Any,
    y: Any,
    *,
    method: str = "alignment",
    C: float = 1.0,
    slack: str = "l1",
    multiclass: str = "ovo",
    class_weight: Any = None,
    penalty: float = 1.0,
    bias: bool = True,
    normalize: bool = True,
    target: str = "auto",
    sample_weight: npt.ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> Combined:
    """Learn the weights of a sum of kernels: nonnegative, of sum 1, many of them zero.

    Parameters
    ----------
    kernels : sequence of Kernel, str or callable; or Precomputed()
        What may be part of the sum. With `Precomputed()`, X is a sequence of square matrices.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows, the same for all kernels; `kernel.on(columns)` looks at some columns.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels, or numbers.
    method : {"alignment", "margin", "ridge"}
        What the weights are best for: the centred alignment with y (quick, and no matrix has to
        fit); the objective of `SVC` with this C; that of `KernelRidge` with this penalty.
    C : float
        For "margin": weight of the slack, finite, and not so large that it forbids all slack.
    slack : {"l1", "l2"}
        For "margin": whether the slack counts as it is or squared.
    multiclass : {"ovo", "ovr"}
        For "margin" with more than two classes: the weights are shared by all pairs, or by each
        class against the rest, and minimise the sum of their objectives.
    class_weight : dict, "balanced" or None
        For "margin": factor on C for each label.
    penalty : float
        For "ridge": weight of the squared norm, positive.
    bias : bool
        For "ridge": whether the function has a constant.
    normalize : bool
        Whether kernels are put on one scale first: each is divided by its variance in feature
        space, the mean squared distance of the rows from their mean. Without it, a kernel is
        preferred for being large.
    target : {"auto", "labels", "numbers"}
        What y holds; only asked for "alignment". See `alignment`.
    sample_weight : array-like of shape (n_samples,), optional
        How often each row counts.
    tol : float
        For "margin" and "ridge": what the duality gap may be, relative to the objective.
    max_iter : int
        Largest number of steps over the simplex.
    callback : callable or None
        Called with `mercer.solvers.Progress`; a true return value stops the search.
    time_limit : float or None
        Seconds after which to stop with the weights so far. "alignment" has no weights before it is
        done: it asks for both only before it begins, and then gives equal ones.

    Returns
    -------
    Combined
        `weights`, `kernel` (the weighted sum, for any machine), `solution`, `certificate`.

    Notes
    -----
    For "margin" and "ridge" the matrices of all kernels are stored if they fit the memory budget;
    if not, they are evaluated anew at each of about ten steps. Weights are learnt from y: to judge
    them, leave rows out of `combine`, too (`MultipleKernel` does so in any cross-validation).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(150, 3))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> parts = [Gaussian(1.0).on([0, 1]), Gaussian(1.0).on([1, 2]), Gaussian(1.0).on([2])]
    >>> found = combine(parts, X, y, method="margin", C=10.0)
    >>> found.weights.round(2)
    array([0.95, 0.03, 0.02])
    >>> SVC(found.kernel, C=10.0).fit(X, y).score(X, y) > 0.95
    True
    """
    one_of("combine", "method", method, _METHODS)
    check_limits("combine", tol, max_iter, callback, time_limit)
    check_flag("combine", "normalize", normalize)
    if method == "alignment":
        loss: KernelLoss | None = None
    elif method == "margin":
        target, loss = "labels", Hinge.of(C, slack, multiclass, class_weight)
    else:
        target, loss = "numbers", Squares.of(penalty, bias)
    chosen, data, rows = _read(kernels, X, y, sample_weight, target, is_precomputed(kernels))
    options = {"callback": callback, "time_limit": time_limit}
    asked = _Asked(chosen, data, rows, bool(normalize), tol, int(max_iter), options)
    return _aligned(asked) if loss is None else _learnt(asked, loss)


def _read(
    kernels: Any, X: Any, y: Any, sample_weight: Any, target: str, given: bool
) -> tuple[KernelSet, Labelled, DistinctRows]:
    matrices = given_matrices(X) if given else []
    data = labelled("combine", matrices[0] if given else X, y, sample_weight, target, given)
    order = np.zeros(len(data.weights), np.intp) if data.codes is None else data.codes
    if given or data.targets is not None:
        rows = rows_as_they_are(order, data.weights)
    else:
        rows = distinct_rows(data.points, order, data.weights)
    if given:
        return KernelSet.given(matrices, len(data.weights), rows.first), data, rows
    seen = take(data.points, rows.first)
    return kernel_set(kernels, seen, data.names, rows.weight), data, rows


def _aligned(asked: _Asked) -> Combined:
    """Maximise the centred alignment."""
    grams = asked.kernels.grams(copies=2)
    weights = asked.rows.weight
    ideal = asked.data.ideal()[asked.rows.first]
    factors = asked.kernels.factors(grams, weights, asked.normalize)
    problem = KernelAlignment(grams, factors, ideal, weights)
    if not problem.aim.any():
        raise ValueError("combine: y is constant, so that no kernel agrees with it; pass targets")
    return _result(asked, "alignment", problem, solve(problem, Nonnegative(), **asked.options))


def _learnt(asked: _Asked, loss: KernelLoss) -> Combined:
    """Minimise the objective of a machine."""
    question: Callable[[Gram], Any] = loss.question(asked.data, asked.rows)
    asked.kernels.refuse_large(loss.method, loss.copies)
    grams = asked.kernels.grams(copies=loss.copies)
    factors = asked.kernels.factors(grams, asked.rows.weight, asked.normalize)
    largest = (f * np.abs(gram.diag()).max() for f, gram in zip(factors, grams, strict=True))
    refusal = loss.refusal(float(max(largest)), asked.rows.weight)
    if refusal is not None:
        raise ValueError(f"combine: {refusal}")
    problem = KernelCombination(grams, factors, question)
    solver = SimplexNewton(tol=asked.tol, max_iter=asked.max_iter)
    return _result(asked, loss.method, problem, solve(problem, solver, **asked.options))


def _result(asked: _Asked, method: str, problem: Any, solution: Solution) -> Combined:
    weights: Array = solution.value.weights
    tol = None if method == "alignment" else asked.tol
    certificate = certify(problem, solution.value, tol)
    solution = confirmed("combine", solution, certificate, stacklevel=5)
    factors = weights * problem.factors
    return Combined(asked.kernels.kernels, method, weights, factors, solution, certificate)
