"""Which way the full kernel is solved with where K is not stored: by memory and measured time."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from mercer.deadline import seconds_left
from mercer.gram import LazyGram
from mercer.resources import MemoryBudgetError, format_bytes
from mercer.solvers.base import Solver
from mercer.solvers.ridge.conjugate_gradient import ConjugateGradient
from mercer.solvers.ridge.full.products import rows_product
from mercer.solvers.ridge.full.sketch_and_project import SketchAndProject

_TOL = 3e-7  # a third of what certificates ask for
_SMALL = 20_000  # rows: products take a fraction of a second, and nothing has to be measured
_LEAST_RANK = 100  # columns of a preconditioner that conjugate gradients are worth it with
_MEASURED = 64  # rows of a product, for its time
_PRODUCTS = 30  # that conjugate gradients need before they have much to show
_LONGEST = 3600.0  # seconds of one product that nobody waits for unasked


def past_memory(gram: LazyGram) -> Solver:
    """Choose a solver of ridge equations that does not store K.

    Conjugate gradients need the fewest passes over K, and a preconditioner of n rows; block
    steps need memory for a block alone, and have something to show before a first pass is over.

    Parameters
    ----------
    gram : LazyGram
        K.

    Returns
    -------
    Solver
        `ConjugateGradient`, or `SketchAndProject` where its preconditioner does not fit the memory
        budget or the time limit of the fit does not hold thirty products with K. A product that
        takes more than an hour is refused if there is no time limit.
    """
    n = gram.shape[0]
    if n <= _SMALL:
        return ConjugateGradient(tol=_TOL)
    product, left = seconds_of_product(gram), seconds_left()
    if left is None and product > _LONGEST:
        raise MemoryBudgetError(
            f"exact kernel ridge on {n} rows: the matrix takes {format_bytes(8.0 * n * n)} and "
            "does not fit the memory budget, and one product without storing it takes about "
            f"{product / 3600:.1f} hours here. Alternatives: landmarks in place of the kernel "
            "(approximation=Nystrom(2000), of mercer.approximation); a kernel with a small "
            "explicit feature map (Linear, low-degree Polynomial); fewer rows; a larger budget "
            "with mercer.config(memory=...); a time limit, after which the fit ends with what it "
            "has (time_limit=...); or ask for the long way with solver=ConjugateGradient()."
        )
    conjugate = ConjugateGradient(tol=_TOL)
    if conjugate.sizes(n)[0] < _LEAST_RANK or (left is not None and left < _PRODUCTS * product):
        return SketchAndProject(tol=_TOL)
    return conjugate


def seconds_of_product(gram: LazyGram) -> float:
    """Return about how long a product with K takes, from that of a few rows.

    Parameters
    ----------
    gram : LazyGram
        K.

    Returns
    -------
    float
        Seconds; entries are evaluated for one of their two places only.
    """
    n = gram.shape[0]
    rows = np.linspace(0, n - 1, min(_MEASURED, n)).astype(np.int64)
    started = perf_counter()
    rows_product(gram, rows, np.ones((n, 1)))
    return (perf_counter() - started) * n / len(rows) / 2
