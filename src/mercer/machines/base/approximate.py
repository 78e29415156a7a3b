"""Parameter `approximation` of estimators, and warnings about unsuitable kernels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mercer.approximation import (
    ApproximateKernel,
    Approximation,
    ApproximationError,
    Nystrom,
    StatedError,
)
from mercer.approximation.text import parse_approximation
from mercer.array_types import Array, Points
from mercer.expression import bind_columns
from mercer.gram import Gram, Source
from mercer.gram.build import refuse_overflow_of
from mercer.gram.policy import dense_bytes
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.features import feature_map
from mercer.machines.base.parameters import refuse
from mercer.machines.base.targets import distinct_rows
from mercer.resources import MemoryBudgetError, format_bytes, memory_budget, within_budget
from mercer.rows.points import is_objects, is_sparse, row_count, take, to_host
from mercer.solvers.certificate import Certificate

# --- similarity ----------------------------------------------------------------------------------
#
# Warnings about kernels that do not suit the rows: K near the identity, or near a constant.
#
# Such a fit is right, and certified: it is the optimum of what was asked. But nothing can be
# learnt where every row is like itself alone, or like every other; people who forget to scale
# their columns end there.

_SIMILARITY_FEWEST = 50  # rows, below which a sample says little
_SAMPLE = 16  # rows, all pairs of which are looked at
_PAIRS = ~np.eye(_SAMPLE, dtype=bool)
_APART = 1e-6  # of k(x, x): similarities below are none
_WEAK = 0.02  # of k(x, x): similarities of typical rows, where nearly all rows are support vectors
_NEARLY_ALL = 0.95  # of the rows
_UNEVEN = 100.0  # times the spread of another column: the smaller one hardly counts


_TRIED = ContextVar("tried", default=False)  # of each thread, which warning filters are not


@contextmanager
def trying_settings() -> Iterator[None]:
    """Keep fits from warning whose kernel is one of many that are compared."""
    token = _TRIED.set(True)
    try:
        yield
    finally:
        _TRIED.reset(token)


def is_trying_settings() -> bool:
    """Return whether this fit is one of many that are compared."""
    return _TRIED.get()


class FitWarning(UserWarning):
    """A fit is what was asked for, but what was asked for is unlikely to be useful."""


def warn_of_similarity(machine: Any, gram: Gram, X: Points, support: float = 0.0) -> None:
    """Warn where the kernel takes rows for all different, or for all alike.

    Parameters
    ----------
    machine : estimator
        Whose fit it is.
    gram : Gram
        K of the training rows.
    X : Points
        The rows, to say what may be wrong with them.
    support : float
        Share of the rows that are support vectors, where there are such.
    """
    # features have no scale, and what a given matrix is made of is not known here
    given = isinstance(machine.kernel_, Precomputed)
    if _TRIED.get() or given or gram.features is not None or gram.shape[0] < _SIMILARITY_FEWEST:
        return
    owner = type(machine).__name__
    alike = _similarities(gram)
    if alike is None:
        return
    if alike.max() < _APART:
        seen = f"no two of {_SAMPLE} rows have a similarity above {alike.max():.0e} of k(x, x)"
        _warn(f"{owner}: the kernel matrix is nearly the identity: {seen}", "larger", X)
    elif alike.min() > 1 - _APART:
        seen = f"any two of {_SAMPLE} rows have a similarity of k(x, x)"
        _warn(f"{owner}: the kernel matrix is nearly constant: {seen}", "smaller", X)
    elif support > _NEARLY_ALL and np.median(alike) < _WEAK:
        seen = (
            f"{owner}: {100 * support:.0f} % of the rows are support vectors, and typical rows "
            f"have a similarity of {np.median(alike):.0e} of k(x, x)"
        )
        _warn(seen, "larger", X)


def _similarities(gram: Gram) -> Array | None:
    """Return |k(x, y)| / k(x, x) of pairs of a sample; None where k(x, x) differs or is zero."""
    index = np.arange(_SAMPLE) * (gram.shape[0] - 1) // (_SAMPLE - 1)
    block = np.abs(gram.rows(index)[:, index])
    diagonal = block.diagonal()
    if not (diagonal[0] > 0 and np.abs(diagonal - diagonal[0]).max() <= 1e-6 * diagonal[0]):
        return None  # polynomial kernels: what is near depends on the length of rows
    return np.asarray(block[_PAIRS] / diagonal[0])


def _warn(seen: str, scale: str, X: Points) -> None:
    remedy = f"Take a {scale} scale (kernel='gaussian' takes one from the data), or tune it"
    uneven = _unevenness(X)
    if uneven > _UNEVEN:
        remedy = (
            f"The spread of the columns of X differs by a factor of {uneven:.0e}: scale them, e.g. "
            f"with sklearn.preprocessing.StandardScaler, or take a {scale} scale"
        )
    warnings.warn(
        f"{seen}, so that little can be learnt. The answer is the optimum of this problem all the "
        f"same. {remedy}.",
        FitWarning,
        stacklevel=7,
    )


def _unevenness(X: Points) -> float:
    """Return the ratio of the largest to the smallest spread of columns that vary."""
    if is_objects(X) or is_sparse(X):
        return 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.std(X, axis=0, dtype=np.float64)
    spread = spread[np.isfinite(spread) & (spread > 0)]
    return float(spread.max() / spread.min()) if len(spread) else 1.0


# --- approximate ---------------------------------------------------------------------------------
#
# The parameter `approximation`: features in place of a kernel, asked for or where they must be.
#
# None is the exact kernel, or a refusal where that takes too much; "auto" is the exact kernel up
# to the same limit, and landmarks past it, which a warning says. A fit with features is the
# optimum of the problem with the kernel of the features: its certificate says so, and how far
# that is from the kernel that was asked for.

# Bytes for each row and landmark: the features, and what fits copy of them (centred, weighted,
# rotated), in float64, with a little room.
_BYTES = 6 * 8
_APPROXIMATE_FEWEST = 50  # landmarks, below which a fit would say little of the kernel

_EXACT = {"auto": "auto", "none": None}  # texts that ask for no features, or not yet
_REFUSED = "_refused_exact"  # where a fit finds why the exact kernel was refused a moment ago

# where fits keep their kernels, and where they tell the errors of these
ERRORS = {
    "kernel_": "approximation_error_",
    "kernel_x_": "approximation_error_x_",
    "kernel_y_": "approximation_error_y_",
}


_SHARED = ContextVar("shared", default=False)  # of each thread


@contextmanager
def with_a_share_of_memory() -> Iterator[None]:
    """Keep fits exact, or refused, that have but a share of the memory: alone they may have more.

    What is fitted must not depend on how many others are at work.
    """
    token = _SHARED.set(True)
    try:
        yield
    finally:
        _SHARED.reset(token)


class ApproximationWarning(UserWarning):
    """A fit has features in place of its kernel, since the kernel itself takes too much."""


class UsedKernel(NamedTuple):
    """The kernel that a fit works with.

    Attributes
    ----------
    kernel : Kernel
        The given one, or an `ApproximateKernel` where features are asked for, or needed.
    error : StatedError or None
        How far that is from the given one; None for the given one itself.
    notice : str
        What a user should know who did not ask for features.
    """

    kernel: Kernel
    error: StatedError | None = None
    notice: str = ""


def used_kernel(
    machine: Any,
    kernel: Kernel,
    X: Points,
    weights: Array | None = None,
    names: Sequence[str] | None = None,
    numbers: Array | None = None,
) -> UsedKernel:
    """Return the kernel that a machine works with, and how far that is from the given one.

    Landmarks are drawn among different rows, in an order that does not depend on that of X, so that
    a row of weight two is the same as that row twice.

    Parameters
    ----------
    machine : estimator
        With the parameter `approximation`.
    kernel : Kernel
        What was asked for.
    X : Points
        Rows of the fit.
    weights : (n,) array, optional
        How often each counts.
    names : list of str, optional
        Names of the columns.
    numbers : (n,) int array, optional
        What refusals call the rows, where these are the distinct ones of a table, each once.
    """
    chosen, why = approximation_of(machine), ""
    if chosen == "auto":
        chosen, why = _automatic(machine, kernel, X, names)
    if not isinstance(chosen, Approximation) or isinstance(kernel, ApproximateKernel):
        return UsedKernel(kernel)
    if isinstance(kernel, Precomputed):
        raise ApproximationError(
            f"{type(machine).__name__}: approximation={chosen!r} finds features on rows, but a "
            "precomputed kernel is a matrix, which is there already; set approximation=None, or "
            "pass the rows and their kernel"
        )
    ones = np.ones(row_count(X)) if weights is None else weights
    if numbers is None:
        rows = distinct_rows(X, np.zeros(len(ones), dtype=np.intp), ones)
        used, ones, numbers = take(X, rows.first), rows.weight, rows.first
    else:
        used = X
    formula = bind_columns(kernel.expression(), None if names is None else list(names))
    refuse_overflow_of(Source(formula, used), kernel, numbers)
    found = chosen.of(kernel, used, ones, names)
    if found.phi.dimension == 0:  # the kernel is zero on the rows: there is nothing to save
        return UsedKernel(kernel)
    error = found.stated_error(used)
    return UsedKernel(found, error, why and _said(machine, row_count(X), found, error, why))


def approximation_of(machine: Any) -> Approximation | str | None:
    """Return the parameter as it is meant: None, "auto", or an approximation."""
    given = getattr(machine, "approximation", None)
    if given is None or isinstance(given, Approximation):
        return given
    must = "be None (exact), 'auto', or an approximation such as Nystrom(1000)"
    if not isinstance(given, str):
        if isinstance(given, type) and issubclass(given, Approximation):
            must = f"be an object: {given.__name__}(1000)"
        refuse(machine, "approximation", given, must)
    if given in _EXACT:
        return _EXACT[given]
    try:
        return parse_approximation(given)
    except ValueError as error:
        refuse(machine, "approximation", given, f"{must}: {error}")
        raise


def is_exact(machine: Any) -> bool:
    """Return whether the kernel itself is asked for, or left to the machine to choose."""
    given = getattr(machine, "approximation", None)
    return given is None or (isinstance(given, str) and given in _EXACT)


def refuse_features(machine: Any, wish: str) -> None:
    """Refuse what needs the kernel itself beside features that were asked for in its place."""
    given = approximation_of(machine)
    if isinstance(given, Approximation):
        must = f"be None beside {wish}, which follows the kernel itself; learn the parameters from "
        refuse(machine, "approximation", given, f"{must}fewer rows, and pass that kernel")


def landmarks_for(
    machine: Any,
    kernel: Kernel,
    X: Points,
    weights: Array,
    names: Sequence[str] | None,
    wish: str,
) -> Points | None:
    """Return the landmarks that stand for a kernel while its parameters change; None for none.

    As many as were asked for: where the kernel has a small rank as it is given, others are drawn
    at random, since it may have a larger one later.

    Parameters
    ----------
    machine, kernel, X, weights, names
        As in `used_kernel`; weights are positive.
    wish : str
        What asks for them, for refusals.
    """
    chosen = approximation_of(machine)
    if chosen == "auto":
        refusal = machine.__dict__.get(_REFUSED)
        chosen, _ = _automatic(machine, kernel, X, names)
        if refusal is not None:  # it is asked for once more, with the kernel that was learnt
            machine.__dict__[_REFUSED] = refusal
    if not isinstance(chosen, Approximation) or isinstance(kernel, ApproximateKernel):
        return None
    if not isinstance(chosen, Nystrom):
        must = f"be None or Nystrom(m) beside {wish}; other features do not follow a kernel whose "
        refuse(machine, "approximation", chosen, f"{must}parameters change")
        return None
    rows = distinct_rows(X, np.zeros(len(weights), dtype=np.intp), weights)
    among = take(X, rows.first)
    bound = bind_columns(kernel.expression(), None if names is None else list(names))
    drawn = chosen.drawn(Source(bound, among), rows.weight).rows
    lacking = min(chosen.n_components, len(rows.first)) - len(drawn)
    if lacking > 0:
        others = np.setdiff1d(np.arange(len(rows.first)), drawn)
        rng = np.random.default_rng(chosen.random_state)
        drawn = np.concatenate([drawn, rng.choice(others, lacking, replace=False)])
    return to_host(take(among, drawn))


# --- past the limit of the exact kernel ----------------------------------------------------------


def refused_exact(machine: Any, error: MemoryBudgetError) -> bool:
    """Leave with a machine why its exact fit was refused; return whether another may be tried.

    It may where the user left the choice to the machine, and chose no solver either: those are
    asked for what they are, not for something like it.
    """
    if (
        _SHARED.get()
        or approximation_of(machine) != "auto"
        or getattr(machine, "solver", None) is not None
    ):
        return False
    machine.__dict__[_REFUSED] = error
    return True


def _automatic(
    machine: Any, kernel: Kernel, X: Points, names: Sequence[str] | None
) -> tuple[Approximation | None, str]:
    """Return landmarks, and why, past the limit of the exact kernel; None up to it."""
    refusal: MemoryBudgetError | None = machine.__dict__.pop(_REFUSED, None)
    n = row_count(X)
    if refusal is None and not _is_endless(machine, kernel, X, names):
        return None, ""
    if _SHARED.get():
        raise MemoryBudgetError(f"{type(machine).__name__}: {n} rows with a share of the memory")
    most = int(memory_budget() // (_BYTES * n))
    if isinstance(kernel, Precomputed | ApproximateKernel) or most < _APPROXIMATE_FEWEST:
        if refusal is not None:
            raise refusal
        return None, ""
    landmarks = min(most, Nystrom().n_components)
    why = f"the matrix of all pairs takes {format_bytes(dense_bytes(n))}"
    if refusal is not None:
        why = f"the memory budget is {format_bytes(memory_budget())}"
    return Nystrom(landmarks), why


def _is_endless(machine: Any, kernel: Kernel, X: Points, names: Sequence[str] | None) -> bool:
    """Return whether an exact fit is not refused, but would evaluate the kernel without end."""
    n = row_count(X)
    if n <= machine.exact_rows or getattr(machine, "solver", None) is not None:
        return False
    if isinstance(kernel, Precomputed | ApproximateKernel) or within_budget(dense_bytes(n)):
        return False
    if is_objects(X):
        return True
    expression = bind_columns(kernel.expression(), None if names is None else list(names))
    return feature_map(expression, X.shape[1]) is None


def _said(machine: Any, n: int, kernel: ApproximateKernel, error: StatedError, why: str) -> str:
    return (
        f"{type(machine).__name__}: {n} rows are too many for the exact kernel ({why}); "
        f"{kernel.phi.dimension} landmarks stand for it, with an error of {error}. Another number: "
        "approximation=Nystrom(m); exact, or refused: approximation=None."
    )


# --- what certificates say -----------------------------------------------------------------------


def in_words(machine: Any, certificate: Certificate) -> Certificate:
    """Return a certificate that says which problem it is of, where features stand for a kernel."""
    held = vars(machine)
    words = [
        f"{held[kernel].phi.dimension} features ({held[kernel].approximation!r}) in place of "
        f"{held[kernel].kernel!r}, with an error of {held[error]}"
        for kernel, error in ERRORS.items()
        if held.get(error) is not None
    ]
    if not words or words[0] in certificate.statement:
        return certificate
    said = f"{certificate.statement}; this is the problem with {' and '.join(words)}"
    return replace(certificate, statement=said)
