"""Convert estimators to LIBSVM models and back, and write LIBSVM's model and data files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.compat.sklearn.base import DropIn
from mercer.compat.sklearn.kernels import ShiftedPower
from mercer.compat.sklearn.svm.svc import PairClassifier
from mercer.files.container import write_file
from mercer.files.libsvm.model import PARAMETERS, LibsvmModel
from mercer.gram.evaluated import KernelExpansion
from mercer.gram.precomputed import MatrixExpansion
from mercer.kernels import Gaussian, Kernel, Linear, Polynomial, Precomputed, Sigmoid
from mercer.kernels.algebra import Product
from mercer.machines.svm.certificate import BoxQPQuantities
from mercer.machines.svm.multiclass import ByClass, scheme_of
from mercer.machines.svm.novelty import OneClassSVM
from mercer.machines.svm.problem import Dual, Duals
from mercer.machines.svm.svc import SVC
from mercer.machines.svm.svr import SVR
from mercer.rows.points import as_points, is_objects, is_sparse, row_count, take, to_dense
from mercer.solvers.base import Solution, Status
from mercer.solvers.certificate import Certificate

# --- estimators ----------------------------------------------------------------------------------
#
# From estimators to LIBSVM models and back: order of classes, signs, kernels.
#
# In a pair of classes LIBSVM's function is positive for the one that comes first in its labels,
# Mercer's for the one that comes later in `classes_`. For two classes the labels are turned
# round, so that coefficients stay unchanged and a value of zero means the same class.

_NOT_JUDGED = (
    "read from a LIBSVM model file, which holds no training data; "
    "mercer.files.certify_libsvm_model certifies it given the data"
)
_LARGEST_LABEL = 2**31 - 1  # of LIBSVM's int


def model_of(machine: Any, *, without_probabilities: bool = False) -> LibsvmModel:
    """Return a fitted estimator as a LIBSVM model; raise for features the format does not support.

    Parameters
    ----------
    machine : SVC, SVR, OneClassSVM, the drop-ins of those, or LibsvmModel
        The estimator.
    without_probabilities : bool, default=False
        Whether to leave out probabilities that LIBSVM's format has no place for.

    Examples
    --------
    >>> machine = SVC("linear").fit([[-1.0], [1.0]], [0, 1])
    >>> model = model_of(machine)
    >>> model.labels.tolist(), model.decision_values([[3.0]]).tolist()
    ([1, 0], [3.0])
    """
    if isinstance(machine, LibsvmModel):
        return machine
    inner = machine.machine_ if isinstance(machine, DropIn) and _fitted(machine) else machine
    if not isinstance(inner, SVC | SVR | OneClassSVM):
        raise TypeError(
            f"{type(machine).__name__} cannot be stored in a LIBSVM file; use SVC, SVR, "
            "OneClassSVM or their drop-ins in mercer.compat.sklearn"
        )
    check_is_fitted(inner)
    kernel = _kernel_of(machine, inner)
    vectors = _vectors(inner)
    if isinstance(inner, SVC):
        _refuse_probabilities(inner, without_probabilities)
        return _classifier(machine, inner, kernel, vectors)
    kind = "one_class" if isinstance(inner, OneClassSVM) else "epsilon_svr"
    kind = "nu_svr" if isinstance(inner, SVR) and inner.nu is not None else kind
    rho = 0.0 - np.array([float(inner.intercept_)])  # never -0
    return LibsvmModel(
        kind,
        kernel.name,
        vectors,
        kernel.factor * inner.dual_coef_[:, None],
        rho,
        **kernel.parameters,
    )


def _fitted(machine: Any) -> bool:
    check_is_fitted(machine)
    return True


def _refuse_probabilities(machine: SVC, without: bool) -> None:
    if machine.probability and not without:
        raise ValueError(
            "SVC: probability=True makes probabilities that are not Platt's, which LIBSVM's files "
            "do not support; pass without_probabilities=True to write decisions alone"
        )


# --- classes -------------------------------------------------------------------------------------


def _classifier(machine: Any, inner: SVC, kernel: LibsvmKernel, vectors: Any) -> LibsvmModel:
    labels = _labels(inner)
    classes = len(labels)
    if classes > 2 and inner.multiclass != "ovo":
        raise ValueError(
            "SVC: LIBSVM stores pairs of classes, not multiclass='ovr'; fit with multiclass='ovo'"
        )
    codes = inner._support_codes
    order = np.argsort(codes, kind="stable")
    coef = np.atleast_2d(inner.dual_coef_.T).T
    rho = 0.0 - np.atleast_1d(inner.intercept_)  # never -0
    if classes == 2 and not isinstance(machine, PairClassifier):
        order = np.argsort(-codes, kind="stable")
        labels = labels[::-1]
    else:  # positive for the first class, as scikit-learn's drop-ins break ties
        coef, rho = 0.0 - coef, 0.0 - rho
    kind = "c_svc" if inner.nu is None else "nu_svc"
    counts = np.bincount(codes, minlength=classes)
    return LibsvmModel(
        kind,
        kernel.name,
        take(vectors, order),
        kernel.factor * coef[order],
        rho,
        labels,
        counts[::-1] if labels[0] > labels[-1] else counts,
        **kernel.parameters,
    )


def _labels(machine: SVC) -> Array:
    classes = machine.classes_
    try:
        numbers = classes.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.full(len(classes), np.nan)
    whole = np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()
    if classes.dtype.kind in "US" or not whole or np.abs(numbers).max() > _LARGEST_LABEL:
        raise ValueError(
            f"SVC: labels such as {classes[0]!r} cannot be stored in a LIBSVM file, whose labels "
            "are 32-bit integers; number them and fit again, e.g. with "
            "numpy.unique(y, return_inverse=True)"
        )
    return numbers.astype(np.int64)


# --- kernels -------------------------------------------------------------------------------------


class LibsvmKernel:
    """A kernel in LIBSVM's words: `factor` times the kernel of a name with its parameters."""

    def __init__(self, name: str, factor: float = 1.0, **parameters: float) -> None:
        self.name, self.factor = name, factor
        self.parameters: dict[str, Any] = parameters


def _kernel_of(machine: Any, inner: Any) -> LibsvmKernel:
    own = getattr(machine, "kernel", None)
    if isinstance(machine, DropIn) and isinstance(own, str) and own != "precomputed":
        numbers: dict[str, Any] = {"gamma": machine._gamma, "coef0": float(machine.coef0)}
        numbers["degree"] = int(machine.degree)
        names = {"poly": "polynomial"}
        return LibsvmKernel(names.get(own, own), 1.0, **numbers)
    if isinstance(machine, DropIn) and callable(own) and not isinstance(own, Kernel):
        raise ValueError(
            f"{type(machine).__name__}: the kernel is a function, which LIBSVM's files cannot "
            "hold; fit with kernel='precomputed' to write the rows' numbers"
        )
    return _translated(type(machine).__name__, inner.kernel_)


def _translated(owner: str, kernel: Kernel) -> LibsvmKernel:
    if isinstance(kernel, Product) and len(kernel.parts) == 1:
        inner = _translated(owner, kernel.parts[0])
        inner.factor *= kernel.factor
        return inner
    if isinstance(kernel, Precomputed):
        return LibsvmKernel("precomputed")
    if isinstance(kernel, Linear):
        return LibsvmKernel("linear")
    if isinstance(kernel, Gaussian) and isinstance(kernel.scale, float):
        return LibsvmKernel("rbf", gamma=0.5 / kernel.scale**2)
    if isinstance(kernel, Polynomial):
        return LibsvmKernel("polynomial", gamma=1.0, coef0=kernel.offset, degree=kernel.degree)
    if isinstance(kernel, ShiftedPower):
        whole = {"gamma": kernel.gamma, "coef0": kernel.coef0, "degree": kernel.degree}
        return LibsvmKernel("polynomial", **whole)
    if isinstance(kernel, Sigmoid) and kernel.slope >= 0:
        return LibsvmKernel("sigmoid", gamma=kernel.slope, coef0=kernel.offset)
    raise ValueError(
        f"{owner}: LIBSVM supports linear, polynomial, Gaussian (one scale), sigmoid (slope not "
        f"negative) and precomputed kernels, not {kernel!r}; use a precomputed matrix instead"
    )


def _vectors(machine: Any) -> Any:
    if isinstance(machine.kernel_, Precomputed):
        return np.asarray(machine.support_, dtype=np.int64) + 1
    vectors = machine.support_vectors_
    if is_objects(vectors):
        raise ValueError(
            f"{type(machine).__name__}: rows are strings or lists; LIBSVM's are numbers"
        )
    return vectors


# --- the way back --------------------------------------------------------------------------------


def machine_of(model: LibsvmModel, *, without_probabilities: bool = False) -> Any:
    """Return an estimator with the decision functions of a LIBSVM model.

    It predicts, and can be drawn, exported and saved like other estimators. Values that a model
    file does not hold stay unset: `solution_` and `certificate_` state that nothing was verified
    (`certify_libsvm_model` verifies a model given its data), and `support_` merely counts the
    support vectors. C is the largest coefficient. If votes of more than two classes
    are equal, `SVC` goes by confidence, LIBSVM by the order of its labels.

    Parameters
    ----------
    model : LibsvmModel
        The model; for precomputed kernels the largest row number is used as number of training
        rows.
    without_probabilities : bool, default=False
        Whether to leave out Platt's probabilities, which `SVC` has no place for; a model that has
        them raises an error otherwise.

    Returns
    -------
    SVC, SVR or OneClassSVM
        The estimator.

    Examples
    --------
    >>> model = model_of(SVC("linear").fit([[-1.0], [1.0]], [0, 1]))
    >>> machine_of(model).decision_function([[3.0]]).tolist()
    [3.0]
    """
    held = any(one is not None for one in (model.prob_a, model.prob_b, model.density_marks))
    if held and not without_probabilities:
        raise ValueError(
            "the model holds LIBSVM's probabilities, which Mercer's estimators do not support; "
            "pass without_probabilities=True, or predict with the model itself"
        )
    largest = float(np.abs(model.dual_coef).max(initial=0.0)) or 1.0
    kernel = model.kernel
    if model.svm_type == "one_class":
        machine: Any = OneClassSVM(kernel)
        machine.offset_ = float(model.rho[0])
    elif model.is_classifier:
        return _classifier_of(model, SVC(kernel, largest))
    else:
        machine = SVR(kernel, largest)
        machine.epsilon_ = machine.epsilon
    machine.intercept_ = -float(model.rho[0])
    machine.dual_coef_ = model.dual_coef[:, 0]
    constant = 0.0 if model.svm_type == "one_class" else machine.intercept_
    machine._expansion = _expansion(
        model, np.arange(len(model.dual_coef)), model.dual_coef, np.array([constant])
    )
    return _kept(machine, model, np.arange(len(model.dual_coef)))


def _classifier_of(model: LibsvmModel, machine: Any) -> Any:
    assert model.labels is not None and model.counts is not None
    places = np.argsort(model.labels, kind="stable")  # place in the file of each sorted class
    runs = model.runs()
    order = np.concatenate([np.arange(len(model.dual_coef))[runs[place]] for place in places])
    k, rank = len(places), np.argsort(places, kind="stable")
    sign = np.empty(len(model.rho))  # f > 0 is for the later of sorted classes
    target = np.empty(len(model.rho), dtype=np.intp)
    pairs = {pair: p for p, pair in enumerate(model.pairs)}
    for (a, b), p in pairs.items():
        low, high = sorted((int(rank[a]), int(rank[b])))
        sign[p] = 1.0 if rank[a] > rank[b] else -1.0
        target[p] = pairs[(low, high)]
    table = np.zeros((len(order), k - 1))
    begin = 0
    for c, place in enumerate(places.tolist()):
        mine = model.dual_coef[runs[place]]
        for other in range(k):
            if other != place:
                p = pairs[(min(place, other), max(place, other))]
                column = other - 1 if other > place else other
                at = int(rank[other])
                table[begin : begin + len(mine), at - 1 if at > c else at] = (
                    sign[p] * mine[:, column]
                )
        begin += len(mine)
    intercept = np.empty(len(model.rho))
    intercept[target] = -sign * model.rho
    ends = np.concatenate([[0], np.cumsum(model.counts[places])])
    machine.classes_ = model.labels[places]
    machine._scheme = scheme_of("ovo", ends)
    machine.n_support_ = model.counts[places]
    machine._support_codes = np.repeat(np.arange(k), model.counts[places])
    machine._calibration = None
    if k == 2:
        machine.intercept_, machine.dual_coef_ = float(intercept[0]), table[:, 0]
        machine._expansion = _expansion(model, order, table, intercept)
        return _kept(machine, model, order)
    machine.intercept_, machine.dual_coef_ = intercept, table
    blocks = tuple(
        (
            _expansion(
                model, order[ends[c] : ends[c + 1]], table[ends[c] : ends[c + 1]], np.zeros(k - 1)
            ),
            machine._scheme.columns(c),
        )
        for c in range(k)
    )
    machine._expansion = ByClass(blocks, intercept)
    return _kept(machine, model, order)


def _answer(machine: Any) -> Dual | Duals:
    """Return the coefficients of each decision function, of the support vectors it is made of."""
    if np.ndim(machine.intercept_) == 0:
        return Dual(machine.dual_coef_, machine.intercept_)
    ends, table = machine._scheme.ends, machine.dual_coef_
    parts = []
    for (a, b), intercept in zip(machine._scheme.pairs(), machine.intercept_, strict=True):
        first, second = (table[ends[c] : ends[c + 1]] for c in (a, b))
        parts.append(Dual(np.concatenate([first[:, b - 1], second[:, a]]), float(intercept)))
    return Duals(tuple(parts))


def _expansion(model: LibsvmModel, order: Array, coef: Array, offset: Array) -> Any:
    if model.kernel_type != "precomputed":
        vectors = take(model.support_vectors, order)
        return KernelExpansion(model.kernel.expression(), vectors, coef, offset)
    full = np.zeros((model.n_features, coef.shape[1]))
    np.add.at(full, model.support_vectors[order] - 1, coef)
    return MatrixExpansion(full, offset)


def _kept(machine: Any, model: LibsvmModel, order: Array) -> Any:
    """Set the common attributes; they state that the solution was not verified."""
    given = model.kernel_type == "precomputed"
    machine.solution_ = Solution(_answer(machine), Status.UNKNOWN, 0, np.nan, "LIBSVM")
    machine.n_iter_ = 0
    nothing = BoxQPQuantities(*(np.nan for _ in fields(BoxQPQuantities)))
    machine._judgement = Certificate(False, nothing, machine.tol, _NOT_JUDGED)
    machine.kernel_ = model.kernel
    machine.n_features_in_ = model.n_features
    machine.support_ = model.support_vectors[order] - 1 if given else np.arange(len(order))
    machine.support_vectors_ = np.empty((0, 0)) if given else take(model.support_vectors, order)
    return machine


# --- write model ---------------------------------------------------------------------------------
#
# Write LIBSVM model files: every number in 17 digits, so that it is read back exactly.

_LINES_AT_ONCE = 4096
_LOOKED_AT = 100  # support vectors at which both functions are evaluated
_ROUNDING = 1e-8  # of the largest value: half of the digits


def write_libsvm_model(
    machine: Any, path: str | os.PathLike[str], *, without_probabilities: bool = False
) -> None:
    r"""Write a fitted estimator as a model file that LIBSVM's `svm-predict` reads.

    LIBSVM itself writes support vectors in 8 digits; here they have 17, which it reads as well.

    Parameters
    ----------
    machine : SVC, SVR, OneClassSVM, the drop-ins of those, or LibsvmModel
        With a linear, Gaussian, polynomial, sigmoid or precomputed kernel. Labels must be whole
        numbers, and more than two classes taken two by two.
    path : str or path
        Where to write; the file takes its name when it is whole. LIBSVM adds up products of rows
        if a linear estimator has weights: columns so far from zero that these sums cancel raise an
        error.
    without_probabilities : bool, default=False
        Whether to leave probabilities out. Those of `SVC` are not Platt's, so that LIBSVM's format
        does not support them: an estimator that has them raises an error otherwise.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mercer import SVC
    >>> name = Path(tempfile.mkdtemp()) / "two.model"
    >>> write_libsvm_model(SVC("linear").fit([[-1.0], [1.0]], [0, 1]), name)
    >>> print(name.read_text().replace(" \n", "\n"), end="")
    svm_type c_svc
    kernel_type linear
    nr_class 2
    total_sv 2
    rho 0
    label 1 0
    nr_sv 1 1
    SV
    0.5 1:1
    -0.5 1:-1
    """
    model = model_of(machine, without_probabilities=without_probabilities)
    _refuse_cancelling(machine.machine_ if isinstance(machine, DropIn) else machine, model)
    write_file(path, _parts(model))


def _refuse_cancelling(machine: Any, model: LibsvmModel) -> None:
    """Raise if the weights of a linear estimator are not a sum of coefficients times rows."""
    if isinstance(machine, LibsvmModel) or not isinstance(machine.kernel_, Linear):
        return
    n = row_count(machine.support_vectors_)
    some = take(machine.support_vectors_, np.arange(0, n, max(1, n // _LOOKED_AT)))
    values = machine._expansion(some)
    written = machine_of(model, without_probabilities=True)._expansion(some)
    apart = float(np.abs(written - values).max(initial=0.0))
    if not apart <= max(machine.tol, _ROUNDING * float(np.abs(values).max(initial=0.0))):
        raise ValueError(
            f"{type(machine).__name__}: columns are so far from zero that LIBSVM, which adds up "
            f"products of rows, would give values that are off by {apart:.1g}; take their means "
            "off before the fit"
        )


def _parts(model: LibsvmModel) -> Iterator[bytes]:
    yield "".join(f"{line}\n" for line in _header(model)).encode("ascii")
    for first in range(0, len(model.dual_coef), _LINES_AT_ONCE):
        rows = range(first, min(first + _LINES_AT_ONCE, len(model.dual_coef)))
        yield "".join(_line(model, i) for i in rows).encode("ascii")


def _header(model: LibsvmModel) -> list[str]:
    lines = [f"svm_type {model.svm_type}", f"kernel_type {model.kernel_type}"]
    for name in PARAMETERS[model.kernel_type]:
        lines.append(f"{name} {getattr(model, name):.17g}")
    k = 2 if model.labels is None else len(model.labels)
    lines += [f"nr_class {k}", f"total_sv {len(model.dual_coef)}"]
    lists = {
        "rho": model.rho,
        "label": model.labels,
        "probA": model.prob_a,
        "probB": model.prob_b,
        "prob_density_marks": model.density_marks,
        "nr_sv": model.counts,
    }
    for key, values in lists.items():
        if values is not None:
            lines.append(" ".join([key, *(f"{value:.17g}" for value in values.tolist())]))
    return [*lines, "SV"]


def _line(model: LibsvmModel, i: int) -> str:
    """Write a support vector; LIBSVM ends every entry with a blank."""
    coef = "".join(f"{value:.17g} " for value in model.dual_coef[i].tolist())
    if model.kernel_type == "precomputed":
        return f"{coef}0:{int(model.support_vectors[i])} \n"
    return f"{coef}{entries_of(model.support_vectors, i)}\n"


def entries_of(X: Any, i: int) -> str:
    """Write the entries of a row that are not zero as column:value, columns counted from 1."""
    if is_sparse(X):
        part = slice(int(X.indptr[i]), int(X.indptr[i + 1]))
        columns, values = X.indices[part], X.data[part]
        order = np.argsort(columns, kind="stable")
        columns, values = columns[order], values[order]
        kept = values != 0
        columns, values = columns[kept], values[kept]
    else:
        columns = np.flatnonzero(X[i])
        values = X[i][columns]
    pairs = zip((columns + 1).tolist(), values.tolist(), strict=True)
    return "".join(f"{column}:{value:.17g} " for column, value in pairs)


# --- write data ----------------------------------------------------------------------------------
#
# Write rows and targets in LIBSVM's text format.


def write_libsvm_data(
    X: Any, y: npt.ArrayLike | None, path: str | os.PathLike[str], *, precomputed: bool = False
) -> None:
    r"""Write rows and targets as LIBSVM's text: `target column:value column:value ...`.

    Zeros are left out, columns are counted from 1, and numbers have 17 digits: reading gives the
    same numbers back.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows, or a kernel matrix.
    y : array-like of shape (n_samples,) or None
        Numbers; None writes 0 for every row, as LIBSVM has it for rows without targets.
    path : str or path
        Path of the file; the file gets its name once it is complete.
    precomputed : bool, default=False
        Whether X is a kernel matrix: of training rows against training rows, or of new rows against
        training rows. Then lines begin with the row's number, `0:i`, and no zero is left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> name = Path(tempfile.mkdtemp()) / "rows.txt"
    >>> write_libsvm_data([[1.0, 0.0, 2.5], [0.0, 0.1, 0.0]], [1, -1], name)
    >>> print(name.read_text().replace(" \n", "\n"), end="")
    1 1:1 3:2.5
    -1 2:0.10000000000000001
    """
    points = as_points(X)
    if is_objects(points):
        raise ValueError("write_libsvm_data: X holds strings or lists; LIBSVM's rows are numbers")
    n = points.shape[0]
    targets = _targets(y, n)
    entries = points.data if is_sparse(points) else points
    if not np.isfinite(entries).all():
        raise ValueError("write_libsvm_data: X holds NaN or infinity, which LIBSVM does not read")
    if precomputed:
        points = to_dense(points)
    write = _matrix_row if precomputed else entries_of
    blocks = (range(n)[first : first + _LINES_AT_ONCE] for first in range(0, n, _LINES_AT_ONCE))
    lines = (
        "".join(f"{targets[i]:.17g} {write(points, i)}\n" for i in rows).encode("ascii")
        for rows in blocks
    )
    write_file(path, lines)


def _matrix_row(K: Array, i: int) -> str:
    values = enumerate(K[i].tolist(), 1)
    return "".join([f"0:{i + 1} ", *(f"{column}:{value:.17g} " for column, value in values)])


def _targets(y: npt.ArrayLike | None, n: int) -> list[float]:
    if y is None:
        return [0.0] * n
    given = np.asarray(y)
    if given.shape != (n,):
        raise ValueError(f"write_libsvm_data: y has shape {given.shape}, X has {n} rows")
    try:
        numbers = given.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.full(n, np.nan)
    if given.dtype.kind in "US" or not np.isfinite(numbers).all():
        raise ValueError(
            "write_libsvm_data: y must be finite numbers, as LIBSVM's targets are; number the "
            "labels first, e.g. with numpy.unique(y, return_inverse=True)"
        )
    return [float(number) for number in numbers]
