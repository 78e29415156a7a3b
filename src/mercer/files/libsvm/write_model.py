"""Write LIBSVM model files: every number in 17 digits, so that it is read as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.compat.sklearn.base.margin import DropIn
from mercer.files.atomic import write_file
from mercer.files.libsvm.machines import machine_of, model_of
from mercer.files.libsvm.model import PARAMETERS, LibsvmModel
from mercer.kernels import Linear
from mercer.points import is_sparse, row_count, take

_LINES_AT_ONCE = 4096
_LOOKED_AT = 100  # support vectors at which both functions are evaluated
_ROUNDING = 1e-8  # of the largest value: half of the digits


def write_libsvm_model(
    machine: Any, path: str | os.PathLike[str], *, without_probabilities: bool = False
) -> None:
    r"""Write a fitted machine as a model file that LIBSVM's `svm-predict` reads.

    LIBSVM itself writes support vectors in 8 digits; here they have 17, which it reads as well.

    Parameters
    ----------
    machine : SVC, SVR, OneClassSVM, the drop-ins of those, or LibsvmModel
        With a linear, Gaussian, polynomial, sigmoid or precomputed kernel. Labels must be whole
        numbers, and more than two classes taken two by two.
    path : str or path
        Where to write; the file takes its name when it is whole. LIBSVM adds up products of rows
        where a linear machine has weights: columns so far from zero that these sums cancel are
        refused.
    without_probabilities : bool, default=False
        Whether to leave probabilities out. Those of `SVC` are not Platt's, so that LIBSVM's format
        has no place for them: a machine that has them is refused otherwise.

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
    """Refuse a linear machine whose weights know more than coefficients times products of rows."""
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
