"""Compress a fitted machine: fewer vectors, nearly the same function, and a bound on the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from mercer import deadline
from mercer.certificates import Certificate
from mercer.foreign_arrays import reading_arrays
from mercer.machines.base.parameters import is_real
from mercer.machines.classification.fisher import FisherDiscriminant
from mercer.machines.classification.nearest_mean import NearestMean
from mercer.machines.compression.holders import (
    Holder,
    InExpansion,
    OfBall,
    OfLogistic,
    OfMargin,
    OfNearestMean,
    OfPCA,
    OfPerceptron,
    OfRidge,
)
from mercer.machines.compression.moving import refuse_immovable
from mercer.machines.compression.pursuit import Functions, Kept
from mercer.machines.compression.search import judged, search
from mercer.machines.margin.ball import EnclosingBall
from mercer.machines.margin.one_class import OneClassSVM
from mercer.machines.margin.svc import SVC
from mercer.machines.margin.svr import SVR
from mercer.machines.online.perceptron import Perceptron
from mercer.machines.projection.pca import PCA
from mercer.machines.regression.logistic import LogisticRegression
from mercer.machines.regression.ridge import KernelRidge
from mercer.problems.reduction import ReducedSet
from mercer.solvers import Solution, Status
from mercer.solvers.base import Watch

M = TypeVar("M")

_HOLDERS: dict[type, Holder] = {
    SVC: OfMargin(),
    SVR: OfMargin(),
    OneClassSVM: OfMargin(),
    EnclosingBall: OfBall(),
    KernelRidge: OfRidge(),
    LogisticRegression: OfLogistic(),
    FisherDiscriminant: InExpansion(),
    NearestMean: OfNearestMean(),
    PCA: OfPCA(),
    Perceptron: OfPerceptron(),
}
_TOL = 1e-3  # of the norm of f


@reading_arrays
def compress(
    machine: M,
    tol: float | None = None,
    n_vectors: int | None = None,
    *,
    X: Any = None,
    move: bool = False,
    max_iter: int = 100,
    time_limit: float | None = None,
) -> M:
    """Return a machine with fewer vectors whose functions are nearly those of the given one.

    A machine that predicts by f(x) = sum_i a_i k(x_i, x) + b keeps all of its x_i, and each costs
    one kernel value at every new row. Vectors that depend on others in the space of the kernel are
    left out at no loss; beyond them, those that are kept get the coefficients of g, the projection
    of f on their span, and the certificate states |f - g| in the norm of that space: no value
    changes by more than |f - g| sqrt(k(x, x)).

    Parameters
    ----------
    machine : fitted machine
        SVC, SVR, OneClassSVM, EnclosingBall, KernelRidge, LogisticRegression, FisherDiscriminant,
        NearestMean, PCA or Perceptron, with a positive semidefinite kernel, fitted to rows.
    tol : float, optional
        Largest |f - g| / |f|, of every function; 0 leaves out what depends on others, and no more.
        1e-3 if neither this nor `n_vectors` is given.
    n_vectors : int, optional
        Most vectors to keep; with `tol`, fewer if it is met before.
    X : array-like, optional
        Rows on which predictions before and after are compared; the certificate has the count of
        labels that changed.
    move : bool
        Whether vectors may leave the rows they began at, for the Gaussian kernel: fewer are needed
        for the same error, and finding them takes longer.
    max_iter : int
        Largest number of steps of the search for their places.
    time_limit : float, optional
        Seconds after which the search stops with what it has.

    Returns
    -------
    machine
        A new machine of the same type, not the optimum of its problem any more: `certificate_` says
        how far it is from the fit it came from, and what was certified of that. `solution_.value`
        has the vectors and their coefficients, `dual_coef_` one row for each vector.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge, compress
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> machine = KernelRidge(1e-3, Gaussian(1.0)).fit(X, np.sin(X[:, 0]))
    >>> small = compress(machine, tol=1e-3)
    >>> len(small.solution_.value.coef)
    19
    >>> error = small.certificate_.quantities.error
    >>> bool(np.abs(small.predict(X) - machine.predict(X)).max() <= error)
    True
    """
    holder = _holder_of(machine)
    check_is_fitted(machine)
    tol, n_vectors = _wishes(tol, n_vectors)
    _check("max_iter", max_iter, is_whole(max_iter) and max_iter > 0, "a count of steps")
    limited = time_limit is None or (is_real(time_limit) and time_limit > 0)
    _check("time_limit", time_limit, limited, "a positive number of seconds, or None")
    _check("move", move, isinstance(move, bool | np.bool_), "True or False")
    found: Any = machine
    f = _read(found, holder)
    if move:
        refuse_immovable(found.kernel_, f.source.X)
    watch = Watch(None, time_limit)
    with deadline.within(time_limit, "compress"):
        kept, status = search(f, tol, n_vectors, watch, found.kernel_ if move else None, max_iter)
    made: M = _made(found, holder, f, kept, tol, status, watch, X)
    return made


# --- what comes of it ----------------------------------------------------------------------------


def _made(
    machine: Any,
    holder: Holder,
    f: Functions,
    kept: Kept,
    tol: float,
    status: Status,
    watch: Watch,
    X: Any,
) -> Any:
    """Return a copy of the machine with these vectors, its solution and certificate."""
    source = getattr(machine, "certificate_", None)
    made = object.__new__(type(machine))
    made.__dict__.update(machine.__dict__)
    holder.write(made, f, kept)
    found = judged(f, kept, tol)
    quantities = replace(found.quantities, source_ok=bool(source is not None and source.ok))
    if X is not None:
        quantities = replace(quantities, **_compared(machine, made, holder, X))
    name = "_solution" if "_solution" in made.__dict__ else "solution_"
    if status is Status.SOLVED:
        status = Status.SOLVED if found.ok else Status.INACCURATE
        before = machine.__dict__.get(name)
        if before is not None and not before.status.ok:
            status = before.status  # no better than what it came from
        elif status.ok and not quantities.source_ok:
            status = Status.UNKNOWN if source is None else Status.INACCURATE
    statement = (
        f"{found.statement}. Not the optimum of the problem any more. Of the fit it came from: "
        + (source.statement if source is not None else "nothing was judged")
    )
    made._judgement = Certificate(found.ok and quantities.source_ok, quantities, tol, statement)
    answer = ReducedSet(kept.vectors, kept.coef)
    steps = len(watch.trace)
    made.__dict__[name] = Solution(answer, status, steps, watch.seconds, "compress", (), "")
    return made


def _compared(machine: Any, made: Any, holder: Holder, X: Any) -> dict[str, Any]:
    """Compare both machines on rows."""
    before, after = holder.values(machine, X), holder.values(made, X)
    changed = 0
    if hasattr(machine, "predict") and not is_regressor(machine):
        changed = int((np.asarray(machine.predict(X)) != np.asarray(made.predict(X))).sum())
    largest = float(np.abs(before - after).max(initial=0.0))
    return {"rows_compared": len(before), "labels_changed": changed, "largest_change": largest}


# --- what is asked -------------------------------------------------------------------------------


def _holder_of(machine: Any) -> Holder:
    holder = _HOLDERS.get(type(machine))
    if holder is not None:
        return holder
    names = ", ".join(kind.__name__ for kind in _HOLDERS)
    inside = next(
        (n for n in ("machine_", "best_estimator_", "steps") if hasattr(machine, n)), None
    )
    where = {None: "", "steps": "; pass the last step of the pipeline, on its own rows"}.get(
        inside, f"; pass .{inside}"
    )
    raise TypeError(
        f"compress: {type(machine).__name__} is none of the machines that predict by sums over "
        f"vectors: {names}{where}"
    )


def _read(machine: Any, holder: Holder) -> Functions:
    found = holder.read(machine)
    name = type(machine).__name__
    if found is None:
        raise ValueError(
            f"compress: this {name} is held by weights of features, or of a given matrix, and has "
            "no vectors to leave out; a prediction costs one product for each weight"
        )
    if not machine.kernel_.psd:
        raise ValueError(
            f"compress: {machine.kernel_!r} is not positive semidefinite, so that distances of "
            "functions mean nothing; fit with a valid kernel (mercer.kernels.is_valid tells)"
        )
    return found


def _wishes(tol: Any, n_vectors: Any) -> tuple[float, int | None]:
    if tol is None:
        tol = _TOL if n_vectors is None else np.inf
    else:
        _check("tol", tol, is_real(tol) and 0 <= tol < np.inf, "a number of at least 0")
    if n_vectors is not None:
        right = is_whole(n_vectors) and n_vectors >= 0
        _check("n_vectors", n_vectors, right, "a count of vectors, or None")
    return float(tol), None if n_vectors is None else int(n_vectors)


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number."""
    return is_real(value) and float(value).is_integer()


def _check(name: str, value: Any, right: bool, must: str) -> None:
    if not right:
        raise ValueError(f"compress: {name}={value!r} must be {must}")
