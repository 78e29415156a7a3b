"""Rows of a table as points with few coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mercer.approximation import Approximation
from mercer.fitting.unsupervised.common import finished, prepared
from mercer.fitting.unsupervised.models import ProjectionModel
from mercer.kernels import Linear, resolve
from mercer.machines import PCA

_SHOWN = 8  # columns of a coordinate


def project(
    table: Any,
    *,
    components: int = 2,
    kernel: Any = "linear",
    approximation: Approximation | str | None = "auto",
    kinds: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    random_state: int = 0,
) -> ProjectionModel:
    """Give the rows of a table few coordinates: principal components, linear or of a kernel.

    Parameters
    ----------
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Rows.
    components : int
        How many coordinates.
    kernel : Kernel or str
        What similarity is; "linear" is ordinary PCA.
    approximation : Approximation, str or None
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None or
        "none" for the kernel itself. "auto" takes the kernel itself as long as that is not refused.
    kinds : mapping of str to Kind or str, optional
        Kinds of columns, in place of those inferred.
    drop : sequence of str
        Columns that are left out, such as a label.
    random_state : int
        The seed.

    Returns
    -------
    ProjectionModel
        Coordinates in the order of the rows, and how much of the variance they have.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> x = np.random.default_rng(0).normal(size=100)
    >>> found = mercer.project({"x": x, "twice": 2 * x, "other": x**2}, components=2)
    >>> found.coordinates.shape, found.explained.round(2).tolist()
    ((100, 2), [0.68, 0.32])
    """
    data = prepared(table, kinds, drop)
    n = len(data.table)
    if isinstance(components, bool) or not 1 <= components <= n:
        raise ValueError(
            f"project: components={components!r} must be a whole number from 1 to the {n} rows"
        )
    resolved = resolve(kernel, data.rows)
    with data.phases.phase("train", "components are found"):
        machine = PCA(components, resolved, approximation=approximation, random_state=random_state)
        coordinates = machine.fit_transform(data.rows)
    explained = np.asarray(machine.explained_variance_ratio_)
    share = "linear principal components" if isinstance(resolved, Linear) else "components"
    notes = [
        f"{components} {share} of the kernel {resolved} have {explained.sum():.1%} of the variance "
        "of the prepared rows."
    ]
    loadings: tuple[Any, ...] = ()
    if isinstance(resolved, Linear):
        names = data.preparation.get_feature_names_out()
        loadings = tuple(
            tuple((str(names[j]), float(one[j])) for j in np.argsort(-np.abs(one))[:_SHOWN])
            for one in np.asarray(machine.components_)
        )
    shared = finished(data, machine, notes, random_state)
    return ProjectionModel(
        **shared, coordinates=np.asarray(coordinates), explained=explained, loadings=loadings
    )
