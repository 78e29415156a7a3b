"""Function `compress`, and where each estimator stores its vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends.lapack import blas_threads_for
from mercer.expression import Expression
from mercer.gram import Source, exact
from mercer.gram.evaluated import KernelExpansion
from mercer.kernels import Linear
from mercer.kernels.algebra import is_proven
from mercer.machines.base.parameters import is_real
from mercer.machines.compression.problem import ReducedSet
from mercer.machines.compression.pursuit import (
    Functions,
    KeptVectors,
    judged,
    refuse_immovable,
    search,
)
from mercer.machines.decomposition.components import PointSubspace, ReducedSubspace
from mercer.machines.decomposition.pca import PCA
from mercer.machines.decomposition.preimage import Impossible, Iterated
from mercer.machines.discriminant.fisher import FisherDiscriminant
from mercer.machines.logistic.logistic_regression import LogisticRegression
from mercer.machines.neighbors.nearest_mean import NearestMean
from mercer.machines.perceptron.perceptron import Perceptron
from mercer.machines.perceptron.streams import KernelStream
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.machines.svm.multiclass import ByClass
from mercer.machines.svm.novelty import EnclosingBall, OneClassSVM
from mercer.machines.svm.svc import SVC
from mercer.machines.svm.svr import SVR
from mercer.rows.foreign import reading_arrays
from mercer.rows.points import is_objects, is_sparse, take
from mercer.solvers.base import Solution, Status, Watch
from mercer.solvers.certificate import Certificate

# --- holders -------------------------------------------------------------------------------------
#
# Where each machine holds its vectors: read as functions, and put back when there are fewer.
#
# A machine that predicts by sums over vectors has a holder here. It reads the functions, and
# writes the vectors kept, with all fitted attributes that follow from them, into a copy.

_NO_PREIMAGES = (
    "PCA: a compressed machine has no training points to look for pre-images from; use the machine "
    "it was made of, or fit with preimage='learned'"
)


class Holder(ABC):
    """A way to read and replace the vectors of a machine."""

    @abstractmethod
    def read(self, machine: Any) -> Functions | None:
        """Return the functions; None if they are not held by vectors."""

    @abstractmethod
    def write(self, machine: Any, f: Functions, kept: KeptVectors) -> None:
        """Put vectors in the place of those that were read."""

    @abstractmethod
    def values(self, machine: Any, X: Any) -> Array:
        """Return the functions at rows: (n, k)."""


class InExpansion(Holder):
    """Machines with an `_expansion`."""

    def read(self, machine: Any) -> Functions | None:
        """Read it, class by class where it is held so."""
        held = machine._expansion
        if isinstance(held, KernelExpansion):
            return Functions(_source(machine, held.expression, held.points), held.coef)
        if isinstance(held, ByClass) and all(
            isinstance(b, KernelExpansion) for b, _ in held.blocks
        ):
            return _of_pairs(machine, held)
        return None

    def write(self, machine: Any, f: Functions, kept: KeptVectors) -> None:
        """Replace the vectors, and the coefficients that are shown."""
        held = machine._expansion
        if isinstance(held, KernelExpansion):
            machine._expansion = replace(held, points=kept.vectors, coef=kept.coef)
        else:
            machine._expansion = replace(held, blocks=_blocks(held, f, kept))
        self.show(machine, f, kept)

    def show(self, machine: Any, f: Functions, kept: KeptVectors) -> None:
        """Write the public coefficients: one row for each vector."""
        machine.dual_coef_ = kept.coef.copy()

    def values(self, machine: Any, X: Any) -> Array:
        """Evaluate the expansion."""
        return np.asarray(machine._values(X))


class OfRidge(InExpansion):
    """`KernelRidge`."""

    def show(self, machine: Any, f: Functions, kept: KeptVectors) -> None:
        """Coefficients; residuals of left out rows belong to the fit alone."""
        coef = kept.coef
        machine.dual_coef_ = coef.copy() if np.ndim(machine.intercept_) else coef[:, 0].copy()
        machine.__dict__.pop("loo_residuals_", None)


class OfLogistic(InExpansion):
    """`LogisticRegression`."""

    def show(self, machine: Any, f: Functions, kept: KeptVectors) -> None:
        """Coefficients, and weights of columns."""
        super().show(machine, f, kept)
        machine.__dict__.pop("_walk", None)
        if isinstance(machine.kernel_, Linear):
            machine._weights = np.asarray(kept.vectors.T @ kept.coef, dtype=np.float64)


class OfNearestMean(InExpansion):
    """`NearestMean`, whose expansion is twice the means."""

    def show(self, machine: Any, f: Functions, kept: KeptVectors) -> None:
        """Coefficients of the means."""
        machine.dual_coef_ = kept.coef / 2


class OfMargin(InExpansion):
    """Support vector machines."""

    def show(self, machine: Any, f: Functions, kept: KeptVectors) -> None:
        """Support vectors by the rows they are, or began at, in the order of the rows."""
        held, coef = machine._expansion, kept.coef
        classes = None
        if isinstance(held, ByClass):  # a vector has coefficients against the other classes only
            classes = class_numbers(held, f, kept)
            columns = np.stack([columns for _, columns in held.blocks])
            coef = np.take_along_axis(coef, columns[classes], axis=1)
        places = support_places(machine, take(f.source.X, kept.origin), classes)
        order = np.argsort(places, kind="stable")
        machine.dual_coef_ = coef[order, 0] if machine.dual_coef_.ndim == 1 else coef[order]
        if "_support_codes" in machine.__dict__:
            machine._support_codes = machine._support_codes[places[order]]
            counts = np.bincount(machine._support_codes, minlength=len(machine.classes_))
            machine.n_support_ = counts
        machine.support_ = machine.support_[places[order]]
        machine.support_vectors_ = take(kept.vectors, order)


class OfBall(OfMargin):
    """`EnclosingBall`: the length of the centre follows from its vectors."""

    def show(self, machine: Any, f: Functions, kept: KeptVectors) -> None:
        """Support vectors, and the centre."""
        super().show(machine, f, kept)
        held = machine._expansion
        source = Source(held.expression, held.points)
        machine._centre = float(held.coef[:, 0] @ (exact(source) @ held.coef)[:, 0])
        machine.center_norm_ = float(np.sqrt(max(machine._centre, 0.0)))


class OfPCA(Holder):
    """`PCA` of a kernel: directions and the mean."""

    def read(self, machine: Any) -> Functions | None:
        """Read the directions and, as one more function, the mean."""
        held = machine._subspace
        if isinstance(held, ReducedSubspace):
            table = np.column_stack([held.coef, held.mean])
        elif isinstance(held, PointSubspace):
            table = np.column_stack([held.coef, held.shares])
        else:
            return None
        return Functions(held.source, table)

    def write(self, machine: Any, f: Functions, kept: KeptVectors) -> None:
        """Replace the subspace; pre-images that start from training points are gone."""
        held, part = machine._subspace, kept
        source = replace(held.source, X=part.vectors)
        machine._subspace = ReducedSubspace(source, part.coef[:, :-1], part.coef[:, -1], held.total)
        machine.dual_coef_ = part.coef[:, :-1].copy()
        if isinstance(machine._inverse, Iterated):
            machine._inverse = Impossible(_NO_PREIMAGES)

    def values(self, machine: Any, X: Any) -> Array:
        """Return the scores."""
        return np.asarray(machine.transform(X))


class OfPerceptron(Holder):
    """`Perceptron` of a kernel: its mistakes."""

    def read(self, machine: Any) -> Functions | None:
        """Read the last function, or the mean."""
        held = machine._stream
        if not isinstance(held, KernelStream):
            return None
        if machine.answer == "voted":
            raise ValueError(
                "compress: votes are those of all functions on the way, not of one; fit with "
                "answer='last' or 'averaged'"
            )
        memory = held.memory
        coef = memory.mean[0] if machine.answer == "averaged" else memory.coef
        return Functions(_source(machine, held.expression, held.points), coef)

    def write(self, machine: Any, f: Functions, kept: KeptVectors) -> None:
        """Replace the memory: what goes on from here goes on from the compressed function."""
        held, part = machine._stream, kept
        old = held.memory
        bias = old.mean[1] if machine.answer == "averaged" else old.bias
        memory = replace(
            old,
            coef=part.coef.copy(),
            late=np.zeros_like(part.coef),
            bias=bias.copy(),
            late_bias=np.zeros_like(bias),
            age=old.age[part.origin],
            squares=Source(held.expression, part.vectors).diag(),
            one_by_one=False,
            log=None,
        )
        machine._stream = KernelStream(held.expression, part.vectors, memory, held.longest)

    def values(self, machine: Any, X: Any) -> Array:
        """Return the scores."""
        scores = np.asarray(machine.decision_function(X))
        return scores[:, None] if scores.ndim == 1 else scores


def _source(machine: Any, expression: Expression, points: Points) -> Source:
    return Source(expression, points, np.float64, is_proven(machine.kernel_))


# --- functions between pairs of classes: a vector has a part in those of its own class -----------


def _of_pairs(machine: Any, held: ByClass) -> Functions:
    """Return all functions over the vectors of all classes."""
    blocks: Any = held.blocks
    tables, masks = [], []
    for block, columns in blocks:
        table = np.zeros((len(block.coef), len(held.offset)))
        mask = np.zeros(table.shape, dtype=bool)
        table[:, columns], mask[:, columns] = block.coef, True
        tables.append(table)
        masks.append(mask)
    points = stacked([block.points for block, _ in blocks])
    source = _source(machine, blocks[0][0].expression, points)
    return Functions(source, np.concatenate(tables), np.concatenate(masks))


def _blocks(held: ByClass, f: Functions, kept: KeptVectors) -> Any:
    """Return the vectors of each class with their coefficients."""
    numbers, found = class_numbers(held, f, kept), []
    for c, (block, columns) in enumerate(held.blocks):
        own = np.flatnonzero(numbers == c)
        points, coef = take(kept.vectors, own), kept.coef[np.ix_(own, columns)]
        found.append((replace(block, points=points, coef=coef), columns))  # type: ignore[type-var]
    return tuple(found)


def class_numbers(held: ByClass, f: Functions, kept: KeptVectors) -> Array:
    """Return the class of each vector, which the functions that it may be in tell."""
    assert f.allowed is not None
    numbers = {}
    for c, (_, columns) in enumerate(held.blocks):
        mask = np.zeros(len(held.offset), dtype=bool)
        mask[columns] = True
        numbers[mask.tobytes()] = c
    return np.array([numbers[mask.tobytes()] for mask in f.allowed[kept.origin]], dtype=np.int64)


def stacked(parts: list[Points]) -> Points:
    """Put rows below rows, of whatever kind they are."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return sparse.csr_array(sparse.vstack(parts, format="csr"))


# --- which support vectors are these? ------------------------------------------------------------


def support_places(machine: Any, rows: Points, classes: Array | None) -> Array:
    """Return which of the support vectors each row is: (m,).

    An expansion holds equal rows of a class once, the support vectors each copy.
    """
    keys = row_keys(machine.support_vectors_)
    codes = np.zeros(len(keys), int) if classes is None else machine._support_codes
    numbered = list(enumerate(zip(codes.tolist(), keys, strict=True)))
    places = {key: i for i, key in reversed(numbered)}
    asked = np.zeros(rows.shape[0], int) if classes is None else classes
    wanted = zip(asked.tolist(), row_keys(rows), strict=True)
    return np.array([places[key] for key in wanted], dtype=np.int64)


def row_keys(X: Points) -> list[Any]:
    """Return something to find each row by: equal rows have equal keys."""
    if is_objects(X):
        return list(X)
    if is_sparse(X):
        X = X.tocsr()
        pairs = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in pairs]
    return [row.tobytes() for row in np.ascontiguousarray(X) + 0.0]  # -0.0 is 0.0


# --- compress ------------------------------------------------------------------------------------
#
# Compress a fitted machine: fewer vectors, nearly the same function, and a bound on the rest.

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
    with deadline.within(time_limit, "compress"), blas_threads_for(f.source.X):
        kept, status = search(f, tol, n_vectors, watch, found.kernel_ if move else None, max_iter)
    made: M = _made(found, holder, f, kept, tol, status, watch, X)
    return made


# --- what comes of it ----------------------------------------------------------------------------


def _made(
    machine: Any,
    holder: Holder,
    f: Functions,
    kept: KeptVectors,
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
