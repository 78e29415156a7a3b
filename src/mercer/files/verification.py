"""Function `verify`: a stored estimator against data; differences between two estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.expression import Expression
from mercer.files.encode import parts_of_machine
from mercer.files.schema.records import RECORDS, record_name
from mercer.kernels import Kernel
from mercer.machines.bayes.problem import ClassModel, ClassTables, GaussianClasses, Spread
from mercer.machines.clustering.problem import Clusters, Partition
from mercer.machines.compression.problem import ReductionQuantities
from mercer.machines.correlation.problem import CanonicalPairs, Correlation
from mercer.machines.discriminant.problem import Directions, Discriminant
from mercer.machines.entropy.problem import Expectations, GibbsAnswer
from mercer.machines.gaussian_process.problem import (
    Evidence,
    LaplaceEvidence,
    LaplacePosterior,
    ProcessClassification,
    ProcessPosterior,
    ProcessRegression,
)
from mercer.machines.kernel_learning.problem import (
    KernelAlignment,
    KernelCombination,
    KernelWeights,
    WeightedDuals,
)
from mercer.machines.logistic.problem import SmoothRisk
from mercer.machines.mixture.discrete_em_steps import TableParts, TopicParts
from mercer.machines.mixture.gaussian_em_steps import GaussianParts
from mercer.machines.mixture.problem import Mixture
from mercer.machines.multitask.problem import TaskEvidence, TaskPosterior, TaskRegression
from mercer.machines.neighbors.problem import ClassMeans, Means
from mercer.machines.perceptron.problem import Separation, Separator
from mercer.machines.ridge.problem import Coefficients, LinearSystem, PathValue, RidgePath
from mercer.machines.svm.problem import BoxQP, Dual, Duals, Many
from mercer.selection import FeatureElimination, Tuned
from mercer.solvers.base import Solution
from mercer.solvers.certificate import Certificate, StreamQuantities
from mercer.solvers.dispatch import known_answers
from mercer.solvers.eigen.problem import Eigenproblem, Modes

# --- verify --------------------------------------------------------------------------------------
#
# Verify a stored estimator from the data and the stored solution alone.


@dataclass(frozen=True)
class Verification:
    """The result of verifying a stored estimator on given data.

    Attributes
    ----------
    ok : bool
        Whether the stored solution is certified on the data, and nothing differs.
    certificate : Certificate or None
        The certificate of the stored solution on the data; None for estimators without one.
    differences : tuple of str
        Attributes that do not follow from the data and the solution, first ones first.
    statement : str
        The same in words.
    """

    ok: bool
    certificate: Certificate | None
    differences: tuple[str, ...]
    statement: str

    @property
    def quantities(self) -> Any:
        """The measured quantities of the certificate."""
        return None if self.certificate is None else self.certificate.quantities

    @property
    def tol(self) -> float | None:
        """The tolerance of the solution."""
        return None if self.certificate is None else self.certificate.tol

    def __str__(self) -> str:
        judged = "" if self.certificate is None else f"\n{self.certificate}"
        return f"{'verified' if self.ok else 'NOT verified'}: {self.statement}{judged}"


def verify(
    machine: Any, X: Any, y: Any = None, sample_weight: Any = None, *, tol: float | None = None
) -> Verification:
    """Verify an estimator, such as one from a file, against its training data.

    `verify` sets up the problem again from the data and the parameters. The certificate evaluates
    the stored solution and uses no other stored value. All other attributes (coefficients, support
    vectors, constants, scales) are computed again from the data and that solution, and compared
    with the stored ones, to nine digits of
    the largest number.

    So `ok` proves: the stored solution solves this problem on these data within the tolerance, and
    the estimator predicts by that solution. It does not prove that the data are those of
    the fit: other data with the same solution, such as a row moved far from the boundary of a
    support vector machine, are verified too.

    Parameters
    ----------
    machine : estimator
        A fitted estimator; a pipeline, of which every step is verified; or a `Tuned`, of which the
        chosen estimator is verified, not the choice.
    X, y : array-like
        The training data, as `fit` takes them.
    sample_weight : array-like, optional
        As `fit` takes it.
    tol : float, optional
        Tolerance, for estimators with such a parameter; by default their own.

    Returns
    -------
    Verification
        The verdict, the certificate, and what differs.

    Raises
    ------
    ValueError
        For estimators that learned from a stream, whose rows are gone, for compressed ones, and for
        rows of another length.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.files import verify
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    >>> machine = SVC("gaussian(1)").fit(X, y)
    >>> verify(machine, X, y).ok
    True
    >>> machine.support_vectors_[0, 0] += 0.01
    >>> verify(machine, X, y).differences
    ('support_vectors_',)
    """
    if isinstance(machine, Pipeline):
        return _verify_steps(machine, X, y, sample_weight, tol)
    if isinstance(machine, Tuned):
        return verify(machine.best_estimator_, X, y, sample_weight, tol=tol)
    if isinstance(machine, FeatureElimination):
        return verify(machine.machine_, machine.transform(X), y, sample_weight, tol=tol)
    if record_name(machine) is None or not hasattr(machine, "fit"):
        raise ValueError(
            f"verify: {type(machine).__name__} is not fitted to rows; for the model of a table, "
            "call verify(model.machine, model.preparation.transform(rows), y)"
        )
    _refuse_streams(machine)
    _refuse_compressed(machine)
    _refuse_width(machine, X)
    return _verify_machine(machine, X, y, sample_weight, tol)


def _verify_machine(machine: Any, X: Any, y: Any, weights: Any, tol: float | None) -> Verification:
    twin = _unfitted(machine, tol)
    found = [part for part in parts_of_machine(machine) if isinstance(part, Solution)]
    answers = StoredAnswers(found)
    more = {} if weights is None else {"sample_weight": weights}
    with known_answers(answers), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of endings, which the certificate speaks of
        try:
            twin.fit(X, y, **more)
        except (ValueError, IndexError) as error:
            if not answers.given:
                raise
            said = f"the stored solution does not match the number of rows ({error})"
            return Verification(False, None, (), said)
        certificate: Certificate | None = getattr(twin, "certificate_", None)
        other = tuple(dict.fromkeys(differences(machine, twin)))
    again = ""
    if not answers.given:
        why = "no stored solution belongs to the problem" if found else "it stores no solution"
        again = f"{type(machine).__name__} was fitted again, since {why}"
    return _verdict(certificate, other, again)


def _verdict(certificate: Certificate | None, other: tuple[str, ...], again: str) -> Verification:
    said = []
    if certificate is not None:
        said.append(("" if certificate.ok else "not certified: ") + certificate.statement)
    source = "this fit" if again else "the data and the solution"
    if again:
        said.append(again)
    if other:
        listed = ", ".join(other[:5]) + (", ..." if len(other) > 5 else "")
        said.append(f"{listed} of the estimator do not follow from {source}")
    else:
        said.append(f"all that is stored follows from {source}")
    ok = (certificate is None or certificate.ok) and not other
    return Verification(ok, certificate, other, "; ".join(said))


def _verify_steps(machine: Pipeline, X: Any, y: Any, weights: Any, tol: Any) -> Verification:
    """Verify every step on the output of the stored steps before it."""
    found: list[tuple[str, Verification]] = []
    last = len(machine.steps) - 1
    for i, (name, step) in enumerate(machine.steps):
        if step in (None, "passthrough"):
            continue
        wanted = (weights, tol) if i == last else (None, None)
        found.append((name, verify(step, X, y, wanted[0], tol=wanted[1])))
        X = X if i == last else step.transform(X)
    other = tuple(f"{name}.{each}" for name, one in found for each in one.differences)
    certificate = found[-1][1].certificate if found else None
    wrong = [f"{name}: {one.statement}" for name, one in found if not one.ok]
    statement = "; ".join(wrong) or (found[-1][1].statement if found else "the pipeline is empty")
    return Verification(not wrong, certificate, other, statement)


def _unfitted(machine: Any, tol: float | None) -> Any:
    """Return an estimator with the same parameters, without limits: nothing is solved."""
    twin = clone(machine)
    names = twin.get_params(deep=False)
    free = {name: None for name in ("callback", "time_limit", "journal") if name in names}
    if tol is not None and "tol" not in names:
        raise ValueError(f"verify: {type(machine).__name__} has no parameter tol; leave it out")
    return twin.set_params(**free, **({} if tol is None else {"tol": tol}))


def _refuse_compressed(machine: Any) -> None:
    held = getattr(machine, "certificate_", None)
    if held is not None and isinstance(held.quantities, ReductionQuantities):
        raise ValueError(
            f"verify: this {type(machine).__name__} was compressed, so it no longer solves a "
            "problem on the data; verify the original estimator, and compress it again"
        )


def _refuse_width(machine: Any, X: Any) -> None:
    """Raise an error if the rows have another length than those of the fit."""
    known, shape = getattr(machine, "n_features_in_", None), tuple(getattr(X, "shape", ()))
    if known is not None and len(shape) == 2 and shape[1] != known:
        raise ValueError(
            f"verify: X has {shape[1]} columns, and {type(machine).__name__} was fitted to {known}"
        )


def _refuse_streams(machine: Any) -> None:
    held = vars(machine)
    certificate = getattr(machine, "certificate_", None)
    streamed = isinstance(getattr(certificate, "quantities", None), StreamQuantities)
    if streamed or ("_stream" in held and held.get("_solution") is None):
        raise ValueError(
            f"verify: {type(machine).__name__} was fitted to a stream and its rows are gone; "
            "only a fit to rows can be verified"
        )


# --- compare -------------------------------------------------------------------------------------
#
# Differences between two estimators, up to rounding.

_SPARSE = (sparse.sparray, sparse.spmatrix)
# of the largest number of an array: the same sums in another order, on another processor
ROUNDING = 1e-9
# values of the fitting process; certificates are verified separately
_HISTORY = frozenset(
    "seconds trace iterations n_iter_ solver detail status fit_status_ refit_time_ callback "
    "time_limit warm_start tol _judgement certificate_ certificate _scaling_ended _walk converged_ "
    "likelihoods log_likelihoods_ traces _store bound".split()
)


def differences(stored: Any, made: Any, where: str = "") -> list[str]:
    """Return the names of attributes that differ by more than rounding.

    Parameters
    ----------
    stored, made : object
        Estimators, or parts of them.
    where : str
        Path of the attributes.
    """
    if record_name(stored) is not None:
        return _records(stored, made, where)
    if isinstance(stored, list | tuple) and isinstance(made, list | tuple):
        if len(stored) != len(made):
            return [where]
        pairs = enumerate(zip(stored, made, strict=True))
        return [name for i, (a, b) in pairs for name in differences(a, b, f"{where}.{i}")]
    if isinstance(stored, dict) and isinstance(made, dict):
        if stored.keys() != made.keys():
            return [where]
        return [name for key in stored for name in differences(stored[key], made[key], where)]
    return [] if _same(stored, made) else [where]


def _records(stored: Any, made: Any, where: str) -> list[str]:
    if type(stored) is not type(made):
        return [where]
    described = RECORDS[str(record_name(stored))]
    left, right = described.fields_of(stored), described.fields_of(made)
    found = []
    for name in left:
        if name in _HISTORY or (name in described.parameters and described.whole):
            continue
        place = f"{where}.{name}" if where else name
        found += [place] if name not in right else differences(left[name], right[name], place)
    return found


def _same(stored: Any, made: Any) -> bool:
    if isinstance(stored, Kernel) and isinstance(made, Kernel):
        return _same_kernels(stored, made)
    if isinstance(stored, Expression):
        return isinstance(made, Expression)  # that of the kernel, which is compared
    if isinstance(stored, _SPARSE) and isinstance(made, _SPARSE):
        return _same_sparse(stored, made)
    if isinstance(stored, np.ndarray | float | int | np.generic):
        return _close(stored, made)
    return bool(stored == made)


def _same_sparse(stored: Any, made: Any) -> bool:
    stored, made = stored.tocsr(), made.tocsr()
    shape = stored.shape == made.shape and stored.nnz == made.nnz
    return bool(shape) and all(
        _close(getattr(stored, name), getattr(made, name)) for name in ("data", "indices", "indptr")
    )


def _close(stored: Any, made: Any) -> bool:
    """Return whether numbers are equal up to rounding of the largest; all else must be equal."""
    a, b = np.asarray(stored), np.asarray(made)
    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    known = np.isfinite(a)
    if not np.array_equal(a[~known], b[~known], equal_nan=True):
        return False
    largest = float(np.abs(a[known]).max(initial=0.0))
    return bool((np.abs(a[known] - b[known]) <= ROUNDING * largest).all())


def _same_kernels(stored: Kernel, made: Kernel) -> bool:
    left, right = stored.get_params(), made.get_params()
    if type(stored) is not type(made) or left.keys() != right.keys():
        return False
    for name, value in left.items():
        other = right[name]
        if isinstance(value, Kernel):
            if not isinstance(other, Kernel) or not _same_kernels(value, other):
                return False
        elif isinstance(value, float) and isinstance(other, float):
            if not _close(value, other):
                return False
        elif hasattr(value, "__array__") and not isinstance(value, tuple):
            if not _close(np.asarray(value), np.asarray(other)):
                return False
        elif value != other:
            return False
    return True


# --- solutions -----------------------------------------------------------------------------------
#
# Assign stored solutions to problems.


def _rows(problem: Any, coef: Any) -> bool:
    """Return whether there are as many coefficients as rows, if there are any."""
    return coef is None or bool(len(coef) == problem.gram.shape[0])


def _many(problem: Any, value: Any) -> bool:
    asked, held = problem.problems, value.parts
    return [len(one.linear) for one in asked] == [len(one.coef) for one in held]


def _path(problem: Any, value: Any) -> bool:
    shape = (len(problem.penalties), problem.targets.shape[1])
    return _rows(problem, value.coef) and bool(value.scores.shape == shape)


def _logs(problem: Any, value: Any) -> bool:
    return value.logs is not None and bool(value.logs.shape == problem.lower.shape)


def _pairs(problem: Any, value: Any) -> bool:
    return bool(len(value.coef_x) == problem.gram_x.shape[0] and len(value.values) == problem.count)


def _modes(problem: Any, value: Any) -> bool:
    return bool(
        len(value.vectors) == problem.gram.shape[0] and len(value.values) == problem.n_pairs
    )


def _parts(problem: Any, table: Any) -> bool:
    return bool(table.shape == (problem.count, problem.X.shape[1]))


def _topics(problem: Any, value: Any) -> bool:
    shape = (problem.X.shape[0], problem.count)
    return _parts(problem, value.table) and bool(value.proportions.shape == shape)


Fits = Callable[[Any, Any], bool]

# the solution, the problems it may belong to, and whether sizes agree
_BELONGS: tuple[tuple[type, tuple[type, ...], Fits], ...] = (
    (Dual, (BoxQP,), lambda p, v: len(v.coef) == len(p.linear)),
    (Duals, (Many,), _many),
    (Coefficients, (LinearSystem, SmoothRisk), lambda p, v: _rows(p, v.coef)),
    (PathValue, (RidgePath,), _path),
    (ProcessPosterior, (ProcessRegression,), lambda p, v: _rows(p, v.coef)),
    (ProcessPosterior, (Evidence,), _logs),
    (LaplacePosterior, (ProcessClassification,), lambda p, v: v.coef.shape == p.signs.shape),
    (LaplacePosterior, (LaplaceEvidence,), _logs),
    (TaskPosterior, (TaskRegression,), lambda p, v: v.coef.shape == p.targets.shape),
    (TaskPosterior, (TaskEvidence,), _logs),
    (Modes, (Eigenproblem,), _modes),
    (Clusters, (Partition,), lambda p, v: len(v.labels) == p.gram.shape[0]),
    (CanonicalPairs, (Correlation,), _pairs),
    (Directions, (Discriminant,), lambda p, v: _rows(p, v.coef)),
    (Means, (ClassMeans,), lambda p, v: _rows(p, v.coef)),
    (Separator, (Separation,), lambda p, v: _rows(p, v.coef)),
    (ClassModel, (ClassTables,), lambda p, v: v.tables.shape == p.tables.shape),
    (Spread, (GaussianClasses,), lambda p, v: v.mean.shape == p.moments.mean.shape),
    (GaussianParts, (Mixture,), lambda p, v: _parts(p, v.means)),
    (TableParts, (Mixture,), lambda p, v: _parts(p, v.table)),
    (TopicParts, (Mixture,), _topics),
    (GibbsAnswer, (Expectations,), lambda p, v: len(v.multipliers) == len(p.targets)),
    (KernelWeights, (KernelAlignment,), lambda p, v: len(v.weights) == len(p.grams)),
    (WeightedDuals, (KernelCombination,), lambda p, v: len(v.weights) == len(p.grams)),
)


class StoredAnswers:
    """The solutions of a stored estimator, to be assigned to their problems.

    Parameters
    ----------
    solutions : list of Solution
        Those found in the estimator.

    Attributes
    ----------
    given : int
        How often one was handed out.
    """

    def __init__(self, solutions: list[Solution]) -> None:
        self._solutions = solutions
        self.given = 0

    def __call__(self, problem: Any) -> Solution | None:
        """Return the solution of a problem, if one of these is its own."""
        for solution in self._solutions:
            for kind, problems, fits in _BELONGS:
                right = isinstance(solution.value, kind) and isinstance(problem, problems)
                if right and fits(problem, solution.value):
                    self.given += 1
                    return solution
        return None
