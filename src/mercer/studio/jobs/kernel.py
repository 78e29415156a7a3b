"""`kernel`: the expression of a kernel, its matrix, its spectrum and its features."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.studio.catalog import numbers_of, tree_of
from mercer.studio.drawing import SceneRows
from mercer.studio.frames import packed
from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell, kernel_of
from mercer.studio.limits import RefusalError
from mercer.studio.scenes import Scene, rows_of

_SIDE = 64  # rows of the matrix that is shown
_SPECTRUM = 300  # rows that the spectrum is computed of
_SLICE = 121  # points of the picture along one axis
_FEATURES = 12  # that are listed


def kernel_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Return everything about the kernel of a scene and its points."""
    scene = bench.scene(request)
    if scene.kernel is None:
        raise RefusalError(f"{scene.entry.name} has no kernel", parameter="kernel")
    rows = rows_of(scene, bench.table, bench.limits)
    kernel = kernel_of(scene, rows)
    proven = bool(kernel.psd)
    return {
        "text": repr(kernel),
        "valid": proven,
        "words": "positive semidefinite by the way it is made"
        if proven
        else "not known to be positive semidefinite: look for negative eigenvalues",
        "tree": tree_of(kernel),
        "parameters": numbers_of(kernel),
        **_matrix(kernel, rows),
        **_features(kernel, rows.X.shape[1]),
        "slice": _slice(scene, kernel, rows),
    }


def _matrix(kernel: Kernel, rows: SceneRows) -> dict[str, Any]:
    """Return the matrix, rows of one class side by side, and its eigenvalues."""
    if not len(rows.X):
        return {"matrix": None, "order": [], "eigenvalues": [], "places": [], "rank": 0}
    order = np.lexsort((rows.X[:, 0], np.zeros(len(rows.X)) if rows.y is None else rows.y))
    chosen = _some(order, _SIDE)
    some = _some(order, _SPECTRUM)
    with np.errstate(all="ignore"):
        K = np.asarray(kernel(rows.X[some]), dtype=np.float64)
    if not np.isfinite(K).all():
        raise RefusalError(
            "values of this kernel are beyond all numbers at these points; take a smaller degree",
            parameter="kernel",
        )
    values = np.linalg.eigvalsh((K + K.T) / 2)[::-1]
    places = np.arange(len(values))
    places = np.concatenate([places[: _SIDE - 4], places[_SIDE - 4 :][-4:]])  # and the smallest
    cut = np.abs(values).max(initial=0.0) * len(values) * np.finfo(float).eps
    return {
        "matrix": packed(np.asarray(kernel(rows.X[chosen]), dtype=np.float64)),
        "order": rows.index[chosen],
        "eigenvalues": values[places],
        "places": places + 1,
        "rank": int(np.sum(np.abs(values) > cut)),
    }


def _some(order: Array, most: int) -> Array:
    """Return at most so many of an order, evenly."""
    if len(order) <= most:
        return order
    return np.asarray(order[np.linspace(0, len(order) - 1, most).astype(int)])


def _features(kernel: Kernel, d: int) -> dict[str, Any]:
    """Return the features whose inner product is the kernel."""
    found = kernel.features(d)
    if found is None:
        return {"features": "infinitely many features, or none that are known", "dimension": None}
    names = [f"x{j + 1}" for j in range(d)]
    said = _monomials(kernel, names, found.dimension)
    return {"features": said, "dimension": found.dimension}


def _monomials(kernel: Kernel, names: list[str], dimension: int) -> str:
    """Write features that are multiples of monomials, found out by trying powers of two.

    At x = (2, 2^9, ...) a monomial of degree below nine has a value that tells its exponents.
    """
    base = 9
    probe = np.array([[2.0 ** (base**j) for j in range(len(names))]])
    ones = np.ones((1, len(names)))
    found = kernel.features(len(names))
    if found is None or dimension > _FEATURES or len(names) > 2:
        return f"{dimension} features"
    values, at_one = (np.ravel(_dense(found(row))) for row in (probe, ones))
    words = []
    for value, factor in zip(values, at_one, strict=True):
        power = np.log2(abs(value / factor)) if factor and value else np.nan
        if not np.isfinite(power) or abs(power - round(power)) > 1e-6:
            return f"{dimension} features"
        first, second = round(power) % base, round(power) // base
        words.append(_monomial(abs(factor), [first, second][: len(names)], names))
    return ", ".join(words)


def _monomial(factor: float, powers: list[int], names: list[str]) -> str:
    parts = [
        name if power == 1 else f"{name}^{power}"
        for name, power in zip(names, powers, strict=True)
        if power
    ]
    said = "" if abs(factor - 1) < 1e-9 and parts else f"{factor:.4g} "
    return (said + " ".join(parts)).strip()


def _dense(values: Any) -> Array:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _slice(scene: Scene, kernel: Kernel, rows: SceneRows) -> dict[str, Any]:
    """Return k(x, middle) along the first axis."""
    middle = rows.X.mean(axis=0) if len(rows.X) else np.zeros(rows.X.shape[1] or 2)
    x0, x1 = rows.bounds[:2]
    if scene.table is not None:
        spread = 3 * max(float(rows.X[:, 0].std()), 1e-12)
        x0, x1 = middle[0] - spread, middle[0] + spread
    x = np.linspace(x0, x1, _SLICE)
    along = np.tile(middle, (_SLICE, 1))
    along[:, 0] = x
    values = np.ravel(kernel(along, middle[None, :]))
    words = f"k(x, z) along {rows.columns[0]}, z amid the points"
    return {"x": x, "y": values, "words": words}
