"""Where a clustering starts, as users say it: words, labels, centres, functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Gram
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.inputs import read_array, refuse_nonfinite
from mercer.machines.base.parameters import refuse
from mercer.machines.base.targets import DistinctRows
from mercer.points import as_points, row_count, take
from mercer.solvers import Given, PlusPlus, RandomPoints, Relaxed, Seeding

WORDS: dict[str, Seeding] = {
    "k-means++": PlusPlus(),
    "random": RandomPoints(),
    "relaxation": Relaxed(),
}
_MUST = (
    "be 'k-means++', 'random', 'relaxation', an array of labels (n_samples,) or of centres "
    "(n_clusters, n_features), or a function of X, n_clusters and random_state giving one of these"
)


def check_start(machine: Any) -> None:
    """Require what `seeding` understands."""
    init = machine.init
    if isinstance(init, str):
        if init not in WORDS:
            refuse(machine, "init", init, _MUST)
    elif not callable(init) and np.ndim(init) not in (1, 2):
        refuse(machine, "init", init, _MUST)


def seeding(
    machine: Any, X: Points, rows: DistinctRows, gram: Gram, rng: np.random.RandomState
) -> Seeding:
    """Return the rule for the start; what is said of all rows is passed on to the merged ones."""
    init, k = machine.init, int(machine.n_clusters)
    if isinstance(init, str):
        return WORDS[init]
    if callable(init):
        init = init(X, k, random_state=rng)
    if np.ndim(init) == 1:
        return Given(_labels(machine, init, row_count(X), k)[rows.first])
    if np.ndim(init) != 2:
        refuse(machine, "init", machine.init, _MUST)
    return Given(_nearest(machine, machine.kernel_, take(X, rows.first), gram, init))


def _labels(machine: Any, init: Any, n: int, k: int) -> Array:
    labels = np.asarray(init)
    if len(labels) != n or not np.issubdtype(labels.dtype, np.integer):
        refuse(machine, "init", labels, f"hold {n} integers, one for each row, or centres")
    if labels.min() < 0 or labels.max() >= k:
        refuse(machine, "init", labels, f"hold labels from 0 to n_clusters - 1 = {k - 1}")
    return labels


def _nearest(machine: Any, kernel: Kernel, X: Points, gram: Gram, init: Any) -> Array:
    """Return every row to the nearest of the centres, which are points like any other."""
    k = int(machine.n_clusters)
    if isinstance(kernel, Precomputed):
        refuse(machine, "init", init, "be labels for a precomputed kernel: centres are no points")
    owner = type(machine).__name__
    centres = as_points(read_array(owner, init, "init", accept_sparse="csr", dtype=np.float64))
    refuse_nonfinite(owner, centres, "init")
    if centres.shape != (k, X.shape[1]):
        refuse(machine, "init", centres, f"have shape {(k, X.shape[1])}, or be labels")
    if gram.factor is not None:
        F = gram.features(centres)
        lengths = np.asarray((F * F).sum(axis=1)).ravel()
    else:
        lengths = np.asarray(kernel.diag(centres), dtype=np.float64)
    products = np.asarray(gram.cross(centres).dense(), dtype=np.float64)
    return np.asarray(np.argmin(lengths[:, None] - 2.0 * products, axis=0))
