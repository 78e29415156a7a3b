"""Certify a LIBSVM model against its training data, among which its support vectors are found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.files.libsvm.model import LibsvmModel
from mercer.gram import Gram, Need, make_gram
from mercer.gram.transformed import restricted
from mercer.machines.svm import problem as svm
from mercer.machines.svm.problem import BoxQP, Dual, Duals, Many
from mercer.rows.points import as_points, is_sparse
from mercer.solvers.certificate import Certificate, certify

# --- certificate ---------------------------------------------------------------------------------
#
# Certify that a LIBSVM model is optimal for its training data, as for every estimator.
#
# The file holds support vectors, in the 8 digits that LIBSVM writes, and their coefficients. They
# are found again among the rows of the data, the program is written for the data, and `certify`
# does the rest.

_TOL = 1e-3  # LIBSVM's own: its option -e


@dataclass(frozen=True)
class LibsvmJudgement:
    """A certificate of a LIBSVM model, and its assumptions.

    Attributes
    ----------
    certificate : Certificate
        The verdict, by the data.
    assumptions : tuple of str
        Values that the file does not hold, and that were given or inferred.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.files.libsvm.machines import model_of
    >>> X, y = [[-1.0], [1.0]], [0, 1]
    >>> print(certify_libsvm_model(model_of(SVC("linear").fit(X, y)), X, y, C=1.0).assumptions[0])
    C = 1, as given
    """

    certificate: Certificate
    assumptions: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the model is as good as was asked."""
        return self.certificate.ok

    def __str__(self) -> str:
        return "\n".join([str(self.certificate), *(f"  {line}" for line in self.assumptions)])


def certify_libsvm_model(
    model: LibsvmModel,
    X: Any,
    y: npt.ArrayLike | None = None,
    *,
    C: float | Mapping[Any, float] | None = None,
    nu: float | None = None,
    epsilon: float | None = None,
    tol: float = _TOL,
) -> LibsvmJudgement:
    """Verify a LIBSVM model from its training data alone.

    Parameters
    ----------
    model : LibsvmModel
        The model.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The training rows; the kernel matrix of a precomputed kernel.
    y : array-like of shape (n_samples,) or None
        Labels or targets; None for one class.
    C : float or mapping from label to float, optional
        What slack cost (LIBSVM's -c, times -w of the class). The file does not hold it; without it
        the largest coefficient is used, and the result lists this assumption.
    nu : float, optional
        Required for nu_svc and nu_svr (LIBSVM's -n); for one_class it follows from the
        coefficients.
    epsilon : float, optional
        Half the width of the tube; required for epsilon_svr (LIBSVM's -p).
    tol : float, default=1e-3
        How large a violation of the optimality conditions may be (-e).

    Returns
    -------
    LibsvmJudgement
        The certificate, with its duality gap, and the assumptions.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> from mercer.files.libsvm.machines import model_of
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = model_of(SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X).ravel()))
    >>> certify_libsvm_model(model, X, np.sin(X).ravel(), C=10.0, epsilon=0.05).ok
    True
    """
    points = as_points(X)
    n = points.shape[0]
    targets = np.zeros(n) if model.svm_type == "one_class" else _targets(model, y, n)
    question = _Question(model, points, targets, C, nu, epsilon)
    write: Callable[[], tuple[Any, Any]] = {
        "c_svc": question.classes,
        "nu_svc": question.classes,
        "one_class": question.one_class,
        "epsilon_svr": question.tube,
        "nu_svr": question.nu_tube,
    }[model.svm_type]
    problem, value = write()
    return LibsvmJudgement(certify(problem, value, tol), tuple(question.assumed))


def _targets(model: LibsvmModel, y: npt.ArrayLike | None, n: int) -> Array:
    if y is None:
        raise ValueError(f"y=None: the certificate of a {model.svm_type} model needs the targets")
    targets = np.asarray(y, dtype=np.float64)
    if targets.shape != (n,):
        raise ValueError(f"y has shape {targets.shape}, but X has {n} rows")
    if model.labels is not None:
        strange = np.setdiff1d(targets, model.labels)
        if len(strange):
            raise ValueError(f"y has the label {strange[0]:g}, which the model does not have")
    return targets


class _Question:
    """The program that the model solves, written for the data."""

    def __init__(
        self, model: LibsvmModel, points: Points, targets: Array, C: Any, nu: Any, epsilon: Any
    ) -> None:
        self.model, self.targets = model, targets
        self.C, self.nu, self.epsilon = C, nu, epsilon
        self.assumed: list[str] = []
        self.n = len(targets)
        self.gram: Gram = make_gram(model.kernel, points, Need.ROWS)
        self.coef = coefficients_of_rows(model, points, targets)
        self._refuse_unused()

    def classes(self) -> tuple[BoxQP | Many, Dual | Duals]:
        """Write one program for each pair of classes, f > 0 for the first."""
        labels = self.model.labels
        assert labels is not None
        parts = [self._pair(p, a, b) for p, (a, b) in enumerate(self.model.pairs)]
        if len(parts) == 1:
            return parts[0]
        problems, duals = zip(*parts, strict=True)
        return Many(problems), Duals(duals)

    def one_class(self) -> tuple[BoxQP, Dual]:
        """Write the half-space; coefficients sum to nu n."""
        coef = self.coef[:, 0]
        if self.nu is None:
            self.nu = float(coef.sum()) / self.n
            self._say(f"nu = {self.nu:.6g}, the sum of the coefficients over the number of rows")
        else:
            self._say(f"nu = {self.nu:.6g}, as given")
        problem = svm.one_class(self.gram, np.ones(self.n), min(self.nu, 1.0))
        return problem, Dual(coef, -float(self.model.rho[0]))

    def tube(self) -> tuple[BoxQP, Dual]:
        """Write regression with a tube."""
        self._need("epsilon", self.epsilon)
        costs = np.full(self.n, self._cost())
        problem = svm.svr(self.gram, self.targets, costs, float(self.epsilon))
        return problem, Dual(self.coef[:, 0], -float(self.model.rho[0]))

    def nu_tube(self) -> tuple[BoxQP, Dual]:
        """Write the nu form: each row above the tube and below it."""
        self._need("nu", self.nu)
        cost, coef, constant = self._cost(), self.coef[:, 0], -float(self.model.rho[0])
        problem = svm.nu_svr(self.gram, self.targets, np.full(self.n, cost), float(self.nu))
        above, below = np.maximum(coef, 0.0), np.minimum(coef, 0.0)
        half = 0.5 * float(self.nu) * cost * self.n
        room = cost - np.abs(coef)
        missing = half - float(above.sum())
        if missing > 0 and room.sum() > 0:  # folded away where a row is on both sides of no tube
            above = above + missing * room / room.sum()
            below = below - missing * room / room.sum()
        errors = np.sort(np.abs(self.targets - (self.gram @ coef + constant)))
        # the tube of least cost given f: a fraction nu of the rows outside
        tube = float(errors[max(0, self.n - int(np.ceil(float(self.nu) * self.n)))])
        tube = 0.0 if missing > 1e-9 * half else tube
        self._say(
            f"the width of the tube, which the file does not hold, is {tube:.6g}, from nu and f"
        )
        intercept = np.array([constant + tube, constant - tube])
        return problem, Dual(np.concatenate([above, below]), intercept)

    def _pair(self, p: int, a: int, b: int) -> tuple[BoxQP, Dual]:
        labels = self.model.labels
        assert labels is not None
        first, second = (np.flatnonzero(self.targets == labels[c]) for c in (a, b))
        rows = np.concatenate([first, second])
        signs = np.repeat([1.0, -1.0], [len(first), len(second)])
        coef = np.concatenate([self.coef[first, b - 1], self.coef[second, a]])
        constant = -float(self.model.rho[p])
        gram = self.gram if len(self.model.pairs) == 1 else None
        if gram is None or not np.array_equal(rows, np.arange(self.n)):
            gram = restricted(self.gram, rows)
        if self.model.svm_type == "c_svc":
            costs = np.repeat([self._cost(a), self._cost(b)], [len(first), len(second)])
            return svm.svc(gram, signs, costs), Dual(coef, constant)
        self._need("nu", self.nu)
        problem = svm.nu_svc(gram, signs, np.ones(len(rows)), float(self.nu))
        # LIBSVM divides by the margin: coefficients of a class summed to nu l / 2 before
        total = float(np.abs(coef).sum())
        margin = float(self.nu) * len(rows) / total if total > 0 else 0.0
        return problem, Dual(margin * coef, margin * np.array([constant - 1.0, constant + 1.0]))

    def _cost(self, c: int | None = None) -> float:
        """Return C of all rows, or of a class: as given, or the largest coefficient."""
        if self.C is None:
            found = float(np.abs(self.model.dual_coef).max(initial=0.0))
            self._say(
                f"C = {found:.6g}, inferred as the largest coefficient, since the file does not "
                "hold C; pass C if it was larger"
            )
            return found
        if not isinstance(self.C, Mapping):
            self._say(f"C = {float(self.C):.6g}, as given")
            return float(self.C)
        assert self.model.labels is not None and c is not None
        label = int(self.model.labels[c])
        if label not in self.C:
            raise ValueError(f"C has no entry for the label {label}")
        self._say(f"C = {float(self.C[label]):.6g} for label {label}, as given")
        return float(self.C[label])

    def _say(self, line: str) -> None:
        if line not in self.assumed:
            self.assumed.append(line)

    def _need(self, name: str, value: Any) -> None:
        if value is None:
            raise ValueError(
                f"{name}=None: a {self.model.svm_type} model file does not hold {name}; pass the "
                "one it was trained with"
            )
        self._say(f"{name} = {float(value):.6g}, as given")

    def _refuse_unused(self) -> None:
        """Raise an error for parameters that do not fit the problem."""
        kind = self.model.svm_type
        unused = {
            "C": self.C is not None and kind in ("nu_svc", "one_class"),
            "nu": self.nu is not None and kind in ("c_svc", "epsilon_svr"),
            "epsilon": self.epsilon is not None and kind != "epsilon_svr",
        }
        for name, wrong in unused.items():
            if wrong:
                raise ValueError(f"{name} has no meaning for a {kind} model; leave it out")
        if isinstance(self.C, Mapping) and not self.model.is_classifier:
            raise ValueError("C: a mapping from labels is for classifiers; pass one number")


# --- support rows --------------------------------------------------------------------------------
#
# Find the support vectors of a LIBSVM model among the rows it was trained on.


def coefficients_of_rows(model: LibsvmModel, X: Points, targets: Array) -> Array:
    """Return the coefficients of all training rows: zero unless a row is a support vector.

    Rows are compared exactly and, if a support vector matches none of them, in the 8 digits that
    LIBSVM writes. Of equal rows (of one class) it does not matter which one is meant, but in
    regression: there the larger coefficient belongs to the larger target.

    Parameters
    ----------
    model : LibsvmModel
        The model.
    X : Points
        Training rows, or their kernel matrix.
    targets : (n,) array
        Labels or targets.

    Returns
    -------
    (n, n_classes - 1) array
        In the layout of `model.dual_coef`.
    """
    n = X.shape[0]
    rows = _given_rows(model, n) if model.kernel_type == "precomputed" else None
    coef = np.zeros((n, model.dual_coef.shape[1]))
    if rows is not None:
        coef[rows] = model.dual_coef
        return coef
    if X.shape[1] < model.n_features:
        raise ValueError(f"X has {X.shape[1]} columns, the model reads {model.n_features}")
    for c, (run, members) in enumerate(_classes(model, targets)):
        found = _matched(model, X, members, run)
        _hand_out(coef, model.dual_coef[run], found, targets, members, c)
    return coef


def _given_rows(model: LibsvmModel, n: int) -> Array:
    rows = model.support_vectors - 1
    if len(np.unique(rows)) < len(rows) or rows.max(initial=0) >= n:
        raise ValueError(
            f"the model speaks of row {int(model.support_vectors.max())} of the kernel matrix, or "
            f"of a row twice, but X has {n} rows: it was trained on another matrix"
        )
    return np.asarray(rows)


def _classes(model: LibsvmModel, targets: Array) -> list[tuple[slice, Array]]:
    """Return the support vectors of each class and the rows that they may be."""
    if model.labels is None:
        return [(slice(0, len(model.dual_coef)), np.arange(len(targets)))]
    return [
        (run, np.flatnonzero(targets == label))
        for run, label in zip(model.runs(), model.labels, strict=True)
    ]


def _matched(model: LibsvmModel, X: Points, members: Array, run: slice) -> list[list[int]]:
    """Return, for each support vector of a class, the rows that are equal to it."""
    vectors = model.support_vectors[run]
    exact = _places(X, members, rounded=False)
    wanted = [exact.get(key, []) for key in _keys(vectors, range(vectors.shape[0]), False)]
    if all(wanted):
        return wanted
    near = _places(X, members, rounded=True)
    wanted = [near.get(key, []) for key in _keys(vectors, range(vectors.shape[0]), True)]
    lost = [i for i, places in enumerate(wanted) if not places]
    if lost:
        raise ValueError(
            f"support vector {run.start + lost[0] + 1} of the model is none of the rows of X"
            + ("" if model.labels is None else " with its label")
            + f" ({len(lost)} of {len(wanted)} are not): it was trained on other data, or on rows "
            "scaled otherwise"
        )
    return wanted


def _places(X: Points, members: Array, *, rounded: bool) -> dict[bytes, list[int]]:
    places: dict[bytes, list[int]] = defaultdict(list)
    for row, key in zip(members.tolist(), _keys(X, members.tolist(), rounded), strict=True):
        places[key].append(row)
    return places


def _keys(X: Any, rows: Any, rounded: bool) -> list[bytes]:
    """Return what equal rows have in common: their nonzero entries, zeros at the end or not."""
    held = X if is_sparse(X) else sparse.csr_array(np.asarray(X, dtype=np.float64))
    keys = []
    for i in rows:
        part = slice(int(held.indptr[i]), int(held.indptr[i + 1]))
        columns, values = held.indices[part], held.data[part].astype(np.float64)
        if rounded:
            values = np.array([float(f"{value:.8g}") for value in values.tolist()])
        order = np.argsort(columns, kind="stable")
        order = order[values[order] != 0]
        keys.append(columns[order].astype(np.int64).tobytes() + values[order].tobytes())
    return keys


def _hand_out(
    coef: Array, given: Array, found: list[list[int]], targets: Array, members: Array, c: int
) -> None:
    """Give coefficients to rows, each row at most one."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, equal in enumerate(found):
        groups[tuple(equal)].append(i)
    for places, vectors in groups.items():
        if len(vectors) > len(places):
            raise ValueError(
                f"{len(vectors)} support vectors of the model are equal, but X has "
                f"{len(places)} such rows: it was trained on other data"
            )
        rows = np.array(places)
        values = np.zeros((len(rows), given.shape[1]))
        values[: len(vectors)] = given[vectors]
        if given.shape[1] == 1:  # the larger coefficient to the larger target
            rows = rows[np.argsort(targets[rows], kind="stable")]
            values = np.sort(values, axis=0)
        coef[rows] = values
