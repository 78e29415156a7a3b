"""Rows of a table in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import silhouette_score

from mercer.array_types import Array
from mercer.data import Kind, TablePreparation
from mercer.fitting.unsupervised.common import finished, prepared
from mercer.fitting.unsupervised.models import ClusterModel
from mercer.fitting.unsupervised.profiles import profiles_of
from mercer.kernels import resolve
from mercer.machines import PCA, GaussianMixture, KMeans, SpectralClustering
from mercer.points import is_sparse

_METHODS = ("kmeans", "spectral", "mixture")
_MEASURED = (Kind.NUMBER, Kind.DATE)
_SAMPLE = 2000  # rows whose distances the silhouette is made of


def cluster(
    table: Any,
    *,
    clusters: int | None = None,
    method: str = "kmeans",
    kernel: Any = None,
    kinds: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    max_clusters: int = 10,
    random_state: int = 0,
) -> ClusterModel:
    """Put the rows of a table into groups, and say what sets each apart.

    Parameters
    ----------
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Rows.
    clusters : int or None
        How many groups. None lets the data decide: for "kmeans" the largest mean silhouette, for
        "spectral" the largest gap of eigenvalues, for "mixture" the smallest BIC.
    method : {"kmeans", "spectral", "mixture"}
        `KMeans`, `SpectralClustering` or `GaussianMixture`, which takes numbers and dates only.
    kernel : Kernel, str or None
        For "kmeans" (None: linear) and "spectral" (None: Gaussian).
    kinds : mapping of str to Kind or str, optional
        Kinds of columns, in place of those inferred.
    drop : sequence of str
        Columns that are left out, such as a known grouping.
    max_clusters : int
        The largest number that is tried.
    random_state : int
        The seed.

    Returns
    -------
    ClusterModel
        Labels in the order of the rows, how the number was chosen, what sets each group apart.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(0, 1, 60), rng.normal(9, 1, 40)])
    >>> found = mercer.cluster({"x": x, "y": x + rng.normal(size=100)})
    >>> sorted(found.sizes.tolist()), found.certificate.ok
    ([40, 60], True)
    """
    if method not in _METHODS:
        raise ValueError(f"cluster: method={method!r} must be one of {', '.join(_METHODS)}")
    if method == "mixture" and kernel is not None:
        raise ValueError("cluster: kernel has no meaning for method='mixture'; leave it out")
    data = prepared(table, kinds, drop)
    n = len(data.table)
    most = min(max_clusters, n - 1)
    if n < 3 or (clusters is not None and not 1 <= clusters <= n):
        raise ValueError(f"cluster: {n} rows cannot be put into clusters={clusters!r} groups")
    rows: Any = data.rows
    if method == "mixture":
        _refuse_levels(data.preparation)
    with data.phases.phase("choose", "numbers of clusters are compared"):
        machine, criterion, candidates = _chosen(rows, clusters, method, kernel, most, random_state)
    labels = np.asarray(machine.predict(_dense(rows)) if method == "mixture" else machine.labels_)
    counts = np.bincount(labels)
    notes = [criterion, f"Sizes of the clusters: {', '.join(map(str, counts.tolist()))}."]
    notes.append("How well a cut describes the rows is judged on the rows themselves.")
    plane = PCA(min(2, *rows.shape)).fit_transform(rows)
    shared = finished(data, machine, notes, random_state)
    return ClusterModel(
        **shared, labels=labels, sizes=counts, criterion=criterion, candidates=candidates,
        profiles=profiles_of(data.table, labels, len(counts)), coordinates=_two(plane),
    )  # fmt: skip


Found = tuple[Any, str, tuple[tuple[int, float], ...]]


def _refuse_levels(preparation: TablePreparation) -> None:
    """Refuse columns of 0 and 1 for a mixture: they have no variance within a group."""
    other = [block.name for block in preparation.blocks_ if block.kind not in _MEASURED]
    if other:
        raise ValueError(
            f"cluster: method='mixture' describes numbers, and the table has {', '.join(other)}; "
            "drop these columns, or take method='kmeans'"
        )


def _chosen(rows: Any, k: int | None, method: str, kernel: Any, most: int, seed: int) -> Found:
    """Return the fitted machine, how its number was chosen, and what was compared."""
    if method == "spectral":
        chosen = SpectralClustering(
            "eigengap" if k is None else k, "gaussian" if kernel is None else kernel,
            max_clusters=most, random_state=seed,
        ).fit(rows)  # fmt: skip
        values = np.asarray(chosen.eigenvalues_)
        gaps = [] if k is not None else list(enumerate((values[:-1] - values[1:]).tolist(), 1))
        how = "the largest gap of eigenvalues" if k is None else "what was asked for"
        pairs = tuple((number, float(gap)) for number, gap in gaps if 2 <= number <= most)
        return chosen, f"{chosen.n_clusters_} clusters, by {how}.", pairs
    if method == "mixture":
        dense = _dense(rows)
        number: Any = "bic" if k is None else k
        chosen = GaussianMixture(
            number, covariance="full", max_components=most, random_state=seed
        ).fit(dense)
        found = () if k is not None else tuple(enumerate(map(float, chosen.criteria_), 1))
        how = "the smallest BIC" if k is None else "what was asked for"
        said = f"{chosen.n_components_} clusters by {how}."
        return chosen, said, found
    return _kmeans(rows, k, "linear" if kernel is None else kernel, most, seed)


def _kmeans(rows: Any, k: int | None, kernel: Any, most: int, seed: int) -> Found:
    resolved = resolve(kernel, rows)
    if k is not None:
        machine = KMeans(k, resolved, random_state=seed).fit(rows)
        return machine, f"{k} clusters, by what was asked for.", ()
    some = np.sort(np.random.default_rng(seed).permutation(rows.shape[0])[:_SAMPLE])
    distances = _distances(resolved, rows[some])
    machines, found = {}, []
    for number in range(2, most + 1):
        machines[number] = KMeans(number, resolved, random_state=seed).fit(rows)
        labels = machines[number].labels_[some]
        if len(np.unique(labels)) > 1:
            value = silhouette_score(distances, labels, metric="precomputed")
            found.append((number, float(value)))
    if not found:
        raise ValueError("cluster: all rows are alike; there is nothing to put into groups")
    best, value = max(found, key=lambda pair: pair[1])
    said = f"{best} clusters, by the largest mean silhouette ({value:.3f}"
    said += f", on {len(some)} rows)." if len(some) < rows.shape[0] else ")."
    return machines[best], said, tuple(found)


def _distances(kernel: Any, rows: Any) -> Array:
    """Return distances in feature space."""
    K = np.asarray(kernel(rows, rows))
    squares = np.diag(K)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * K, 0.0))
    np.fill_diagonal(distances, 0.0)
    return distances


def _dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if is_sparse(rows) else rows)


def _two(plane: Array) -> Array:
    """Return two coordinates, the second zero where there is but one."""
    return plane if plane.shape[1] == 2 else np.column_stack([plane, np.zeros(len(plane))])
