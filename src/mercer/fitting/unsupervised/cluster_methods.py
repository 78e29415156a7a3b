"""The ways to put rows into groups, by name: how each is fitted, and what it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import silhouette_score

from mercer.array_types import Array
from mercer.data import Kind, TablePreparation
from mercer.kernels import resolve
from mercer.machines import GaussianMixture, KMeans, SpectralClustering
from mercer.points import is_sparse

_MEASURED = (Kind.NUMBER, Kind.DATE)
_SAMPLE = 2000  # rows whose distances the silhouette is made of
_ASKED = "what was asked for"


@dataclass(frozen=True)
class Wanted:
    """What is asked of a method.

    Attributes
    ----------
    clusters : int or None
        How many groups; None lets the data decide.
    kernel : Kernel, str or None
        None is that of the method.
    approximation : Approximation, str or None
        Features in place of the kernel.
    most : int
        The largest number that is tried.
    seed : int
        Of random choices.
    """

    clusters: int | None
    kernel: Any
    approximation: Any
    most: int
    seed: int


@dataclass(frozen=True)
class Grouping:
    """Rows in groups.

    Attributes
    ----------
    machine : estimator
        Fitted.
    labels : array
        The group of each row.
    criterion : str
        How the number of groups was chosen, in words.
    candidates : tuple of (int, float)
        Numbers that were compared, and their values.
    """

    machine: Any
    labels: Array
    criterion: str
    candidates: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Method:
    """A way to put rows into groups.

    Attributes
    ----------
    fit : callable
        From prepared rows and `Wanted` to `Grouping`.
    takes_kernel : bool
        Whether a kernel means something.
    check : callable
        Raises where the method has no meaning for the columns of a preparation.
    """

    fit: Callable[[Any, Wanted], Grouping]
    takes_kernel: bool = True
    check: Callable[[TablePreparation], None] = lambda preparation: None


def _by_kmeans(rows: Any, wanted: Wanted) -> Grouping:
    """Take the number of the largest mean silhouette."""
    kernel = resolve("linear" if wanted.kernel is None else wanted.kernel, rows)
    if wanted.clusters is not None:
        machine = _kmeans(wanted.clusters, kernel, wanted).fit(rows)
        said = f"{wanted.clusters} clusters, by {_ASKED}."
        return Grouping(machine, np.asarray(machine.labels_), said)
    order = np.random.default_rng(wanted.seed).permutation(rows.shape[0])
    some = np.sort(order[:_SAMPLE])
    distances = _distances(kernel, rows[some])
    machines, found = {}, []
    for number in range(2, wanted.most + 1):
        machines[number] = _kmeans(number, kernel, wanted).fit(rows)
        labels = machines[number].labels_[some]
        if len(np.unique(labels)) > 1:
            value = silhouette_score(distances, labels, metric="precomputed")
            found.append((number, float(value)))
    if not found:
        raise ValueError("cluster: all rows are alike; there is nothing to put into groups")
    best, value = max(found, key=lambda pair: pair[1])
    said = f"{best} clusters, by the largest mean silhouette ({value:.3f}"
    said += f", on {len(some)} rows)." if len(some) < rows.shape[0] else ")."
    return Grouping(machines[best], np.asarray(machines[best].labels_), said, tuple(found))


def _kmeans(number: int, kernel: Any, wanted: Wanted) -> KMeans:
    features = wanted.approximation
    return KMeans(number, kernel, approximation=features, random_state=wanted.seed)


def _by_eigenvectors(rows: Any, wanted: Wanted) -> Grouping:
    """Take the number of the largest gap of eigenvalues."""
    k = wanted.clusters
    machine = SpectralClustering(
        "eigengap" if k is None else k, "gaussian" if wanted.kernel is None else wanted.kernel,
        approximation=wanted.approximation, max_clusters=wanted.most, random_state=wanted.seed,
    ).fit(rows)  # fmt: skip
    values = np.asarray(machine.eigenvalues_)
    gaps = [] if k is not None else list(enumerate((values[:-1] - values[1:]).tolist(), 1))
    how = "the largest gap of eigenvalues" if k is None else _ASKED
    pairs = tuple((number, float(gap)) for number, gap in gaps if 2 <= number <= wanted.most)
    said = f"{machine.n_clusters_} clusters, by {how}."
    return Grouping(machine, np.asarray(machine.labels_), said, pairs)


def _by_mixture(rows: Any, wanted: Wanted) -> Grouping:
    """Take the number of the smallest BIC."""
    k, dense = wanted.clusters, np.asarray(rows.toarray() if is_sparse(rows) else rows)
    number: Any = "bic" if k is None else k
    machine = GaussianMixture(
        number, covariance="full", max_components=wanted.most, random_state=wanted.seed
    ).fit(dense)
    found = () if k is not None else tuple(enumerate(map(float, machine.criteria_), 1))
    how = "the smallest BIC" if k is None else _ASKED
    said = f"{machine.n_components_} clusters by {how}."
    return Grouping(machine, np.asarray(machine.predict(dense)), said, found)


def _refuse_levels(preparation: TablePreparation) -> None:
    """Refuse columns of 0 and 1 for a mixture: they have no variance within a group."""
    other = [block.name for block in preparation.blocks_ if block.kind not in _MEASURED]
    if other:
        raise ValueError(
            f"cluster: method='mixture' describes numbers, and the table has {', '.join(other)}; "
            "drop these columns, or take method='kmeans'"
        )


def _distances(kernel: Any, rows: Any) -> Array:
    """Return distances in feature space."""
    K = np.asarray(kernel(rows, rows))
    squares = np.diag(K)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * K, 0.0))
    np.fill_diagonal(distances, 0.0)
    return distances


METHODS = {
    "kmeans": Method(_by_kmeans),
    "spectral": Method(_by_eigenvectors),
    "mixture": Method(_by_mixture, takes_kernel=False, check=_refuse_levels),
}
