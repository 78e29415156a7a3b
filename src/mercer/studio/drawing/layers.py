"""Means, ellipses, directions, scores: what is drawn over the surface of a machine.

Each function returns fields of `layers` of an answer, or none where the machine has no such thing
(means in the feature space of a kernel are no points of the plane).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.studio.drawing.fitted import Fitted
from mercer.studio.frames import packed

LayerOf = Callable[[Fitted], dict[str, Any]]


def predicted_labels(fitted: Fitted) -> dict[str, Any]:
    """Return the class that the machine gives each row, and its score for two classes."""
    machine, rows = fitted.machine, fitted.rows
    found: dict[str, Any] = {"index": rows.index, "label": machine.predict(rows.X)}
    if len(machine.classes_) == 2 and hasattr(machine, "decision_function"):
        found["value"] = machine.decision_function(rows.X)
    return {"points": found}


def predicted_values(fitted: Fitted) -> dict[str, Any]:
    """Return the number that the machine gives each row."""
    found = fitted.machine.predict(fitted.rows.X)
    return {"points": {"index": fitted.rows.index, "value": found}}


def inside(fitted: Fitted) -> dict[str, Any]:
    """Return how far inside the border each row is."""
    found = fitted.machine.decision_function(fitted.rows.X)
    return {"points": {"index": fitted.rows.index, "value": found}}


def clusters(fitted: Fitted) -> dict[str, Any]:
    """Return the cluster of each row."""
    return {"points": {"index": fitted.rows.index, "label": fitted.machine.labels_}}


def likeliest(fitted: Fitted) -> dict[str, Any]:
    """Return the likeliest part of a mixture for each row."""
    found = fitted.machine.predict(fitted.rows.X)
    return {"points": {"index": fitted.rows.index, "label": found}}


def centres(fitted: Fitted) -> dict[str, Any]:
    """Return the means of clusters, where they are points."""
    if not _is_the_plane(fitted) or not hasattr(fitted.machine, "cluster_centers_"):
        return {}
    found = fitted.machine.cluster_centers_
    return {"means": [[*mean, k] for k, mean in enumerate(found.tolist())]}


def class_means(fitted: Fitted) -> dict[str, Any]:
    """Return the means of the classes, for the linear kernel."""
    rows, machine = fitted.rows, fitted.machine
    if not _is_the_plane(fitted) or type(machine.kernel_).__name__ != "Linear":
        return {}
    means = [rows.X[rows.y == one].mean(axis=0).tolist() for one in machine.classes_]
    return {
        "means": [[*mean, one] for mean, one in zip(means, machine.classes_.tolist(), strict=True)]
    }


def mixture_ellipses(fitted: Fitted) -> dict[str, Any]:
    """Return the parts of a mixture as ellipses of one standard deviation."""
    if not _is_the_plane(fitted):
        return {}
    machine = fitted.machine
    parts = zip(machine.means_, _full(machine.covariances_), machine.weights_, strict=True)
    return {"ellipses": [ellipse(*part) for part in parts]}


def class_ellipses(fitted: Fitted) -> dict[str, Any]:
    """Return the Gaussian of each class as an ellipse."""
    if not _is_the_plane(fitted):
        return {}
    machine = fitted.machine
    covariances = np.broadcast_to(machine.covariance_, (len(machine.means_), 2, 2))
    parts = zip(machine.means_, covariances, machine.prior_, strict=True)
    return {"ellipses": [ellipse(*part) for part in parts]}


def model_ellipse(fitted: Fitted) -> dict[str, Any]:
    """Return the Gaussian of a probabilistic PCA as an ellipse."""
    if not _is_the_plane(fitted):
        return {}
    return {"ellipses": [ellipse(fitted.machine.mean_, fitted.machine.get_covariance(), 1.0)]}


def principal_directions(fitted: Fitted) -> dict[str, Any]:
    """Return the components of the linear kernel, as long as one standard deviation."""
    machine = fitted.machine
    if not _is_the_plane(fitted) or not hasattr(machine, "components_"):
        return {}
    lengths = np.sqrt(np.maximum(machine.explained_variance_, 0.0))
    shares = machine.explained_variance_ratio_
    return {
        "directions": [
            _direction(machine.mean_, row * length, f"component {k + 1}", share)
            for k, (row, length, share) in enumerate(
                zip(machine.components_, lengths, shares, strict=True)
            )
        ]
    }


def independent_directions(fitted: Fitted) -> dict[str, Any]:
    """Return the columns of the mixing matrix."""
    if not _is_the_plane(fitted):
        return {}
    machine = fitted.machine
    columns = enumerate(machine.mixing_.T)
    named = [_direction(machine.mean_, row, f"source {k + 1}") for k, row in columns]
    return {"directions": named}


def discriminant_direction(fitted: Fitted) -> dict[str, Any]:
    """Return the directions of Fisher's discriminant, for the linear kernel."""
    machine = fitted.machine
    if not _is_the_plane(fitted) or not hasattr(machine, "scalings_"):
        return {}
    return {"directions": _across(fitted, machine.scalings_.T, "discriminant")}


def canonical_direction(fitted: Fitted) -> dict[str, Any]:
    """Return canonical correlations, and the directions for the linear kernel."""
    found: dict[str, Any] = {"correlations": fitted.machine.correlations_}
    if _is_the_plane(fitted) and hasattr(fitted.machine, "weights_x_"):
        weights = np.asarray(fitted.machine.weights_x_)
        found["directions"] = _across(fitted, weights.T, "canonical")
    return found


def scores(fitted: Fitted) -> dict[str, Any]:
    """Return the rows in the coordinates that the machine found: the other view."""
    found = np.asarray(fitted.machine.transform(fitted.rows.X))[:, :2]
    if found.shape[1] == 1:
        found = np.column_stack([found, np.zeros(len(found))])
    return {"projected": packed(found)}


def rectangle(fitted: Fitted) -> dict[str, Any]:
    """Return the rectangle as its lower left and upper right corner."""
    if not _is_the_plane(fitted):
        return {}
    return {"rectangle": [*fitted.machine.low_, *fitted.machine.high_]}


def ellipse(mean: Array, covariance: Array, weight: float) -> dict[str, Any]:
    """Return the ellipse of one standard deviation, by its axes."""
    lengths, axes = np.linalg.eigh(np.asarray(covariance))
    sides = (axes * np.sqrt(np.maximum(lengths, 0.0))).T
    return {"mean": mean, "axes": sides, "weight": float(weight)}


def _full(covariances: Array) -> Array:
    """Return covariances as matrices, whichever form they are kept in."""
    found = np.asarray(covariances)
    if found.ndim == 3:
        return found
    if found.ndim == 1:  # one variance for all directions
        return found[:, None, None] * np.eye(2)
    return np.asarray([np.diag(row) for row in found])


def _direction(start: Array, step: Array, words: str, share: float | None = None) -> dict[str, Any]:
    return {"from": start, "to": start + step, "words": words, "share": share}


def _across(fitted: Fitted, weights: Array, words: str) -> list[dict[str, Any]]:
    """Return directions through the mean, as long as the rows spread along them."""
    centre = fitted.rows.X.mean(axis=0)
    units = [row / np.linalg.norm(row) for row in weights if np.linalg.norm(row) > 0]
    spreads = [float(np.std(fitted.rows.X @ unit)) for unit in units]
    named = zip(units, spreads, strict=True)
    return [
        _direction(centre, unit * spread, f"{words} direction {k + 1}")
        for k, (unit, spread) in enumerate(named)
    ]


def _is_the_plane(fitted: Fitted) -> bool:
    """Return whether rows are points of the plane themselves."""
    return fitted.rows.columns == ("x1", "x2")
