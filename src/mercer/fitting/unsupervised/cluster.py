"""Rows of a table in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mercer.approximation import Approximation
from mercer.array_types import Array
from mercer.fitting.unsupervised.cluster_methods import METHODS, Wanted
from mercer.fitting.unsupervised.common import finished, prepared
from mercer.fitting.unsupervised.models import ClusterModel
from mercer.fitting.unsupervised.profiles import profiles_of
from mercer.machines import PCA


def cluster(
    table: Any,
    *,
    clusters: int | None = None,
    method: str = "kmeans",
    kernel: Any = None,
    approximation: Approximation | str | None = "auto",
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
    approximation : Approximation, str or None
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None or
        "none" for the kernel itself. "auto" takes the kernel itself as long as that is not refused.
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
    if method not in METHODS:
        raise ValueError(f"cluster: method={method!r} must be one of {', '.join(METHODS)}")
    way = METHODS[method]
    if kernel is not None and not way.takes_kernel:
        raise ValueError(f"cluster: kernel has no meaning for method={method!r}; leave it out")
    if approximation != "auto" and not way.takes_kernel:
        raise ValueError(
            f"cluster: approximation has no meaning for method={method!r}, which has no kernel; "
            "leave it out"
        )
    data = prepared(table, kinds, drop)
    n = len(data.table)
    if n < 3 or (clusters is not None and not 1 <= clusters <= n):
        raise ValueError(f"cluster: {n} rows cannot be put into clusters={clusters!r} groups")
    rows: Any = data.rows
    way.check(data.preparation)
    with data.phases.phase("choose", "numbers of clusters are compared"):
        most = min(max_clusters, n - 1)
        found = way.fit(rows, Wanted(clusters, kernel, approximation, most, random_state))
    counts = np.bincount(found.labels)
    notes = [found.criterion, f"Sizes of the clusters: {', '.join(map(str, counts.tolist()))}."]
    notes.append("How well a cut describes the rows is judged on the rows themselves.")
    plane = PCA(min(2, *rows.shape)).fit_transform(rows)
    shared = finished(data, found.machine, notes, random_state)
    return ClusterModel(
        **shared, labels=found.labels, sizes=counts, criterion=found.criterion,
        candidates=found.candidates, profiles=profiles_of(data.table, found.labels, len(counts)),
        coordinates=_two(plane),
    )  # fmt: skip


def _two(plane: Array) -> Array:
    """Return two coordinates, the second zero where there is but one."""
    return plane if plane.shape[1] == 2 else np.column_stack([plane, np.zeros(len(plane))])
