"""`why`: which training rows decide at a point, and by how much.

The answer of a kernel machine is a sum, f(x) = sum_i c_i k(x_i, x) + b. Its terms are sorted by
size, and their exact sum (`math.fsum`) stands beside the value of the machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mercer.array_types import Array
from mercer.studio.drawing.fitted import Fitted
from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell
from mercer.studio.refusal import RefusalError
from mercer.studio.scenes.scene import is_number

_SHOWN = 50  # terms; the others are added up


@dataclass(frozen=True, eq=False)
class Expansion:
    """A function f(x) = sum_i coefficient_i k(row_i, x) + intercept.

    Attributes
    ----------
    rows : (m,) int array
        The training rows in it.
    coefficient : (m,) array
        Their coefficients.
    intercept : float
        The constant.
    against : tuple of int or None
        Of several classes: the pair of labels that it tells apart, the second where it is positive.
    """

    rows: Array
    coefficient: Array
    intercept: float
    against: tuple[Any, Any] | None = None


def why_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Return the terms of the sum at a point, the largest first."""
    scene, fitted = bench.fitted(request, tell)
    if not scene.entry.explains:
        raise RefusalError(f"the answer of {scene.entry.name} is no sum over points")
    x = _row(fitted, request)
    expansion = expansion_of(fitted, x)
    kernel = np.ravel(fitted.machine.kernel_(fitted.rows.X[expansion.rows], x))
    terms = expansion.coefficient * kernel
    order = np.argsort(-np.abs(terms), kind="stable")
    shown, rest = order[:_SHOWN], order[_SHOWN:]
    total = math.fsum([expansion.intercept, *terms.tolist()])
    return {
        **_said(fitted, x),
        "terms": [
            {
                "index": fitted.rows.index[expansion.rows[k]],
                "coefficient": expansion.coefficient[k],
                "kernel": kernel[k],
                "contribution": terms[k],
            }
            for k in shown
        ],
        "rest": {"count": len(rest), "sum": math.fsum(terms[rest].tolist())},
        "intercept": expansion.intercept,
        "sum": total,
        "against": expansion.against,
        "words": _words(total, expansion, terms),
    }


def expansion_of(fitted: Fitted, x: Array) -> Expansion:
    """Return the sum that decides at a row; of several classes, that of the best two."""
    machine = fitted.machine
    coefficient, intercept = np.asarray(machine.dual_coef_), np.ravel(machine.intercept_)
    rows = np.asarray(getattr(machine, "support_", np.arange(len(fitted.rows.X))))
    if coefficient.ndim == 2 and coefficient.shape[1] == 1:
        coefficient = coefficient[:, 0]
    if coefficient.ndim == 1:
        return Expansion(rows, coefficient, float(intercept[0]))
    order = np.argsort(-np.ravel(machine.decision_function(x)))
    second, first = sorted(int(k) for k in order[:2])[::-1]
    pair = machine.classes_[first].item(), machine.classes_[second].item()
    if getattr(machine, "multiclass", "ovr") == "ovr":
        difference = coefficient[:, second] - coefficient[:, first]
        return Expansion(rows, difference, float(intercept[second] - intercept[first]), pair)
    return _of_pair(fitted, rows, first, second, pair)


def _of_pair(
    fitted: Fitted, rows: Array, first: int, second: int, pair: tuple[Any, Any]
) -> Expansion:
    """Return the function of a pair of classes: each row has a coefficient against each other."""
    machine = fitted.machine
    count = len(machine.classes_)
    codes = np.searchsorted(machine.classes_, fitted.rows.y[rows])  # type: ignore[index]
    coefficient = np.zeros(len(rows))
    coefficient[codes == first] = machine.dual_coef_[codes == first, second - 1]
    coefficient[codes == second] = machine.dual_coef_[codes == second, first]
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    chosen = np.flatnonzero(coefficient)
    constant = float(np.ravel(machine.intercept_)[pairs.index((first, second))])
    return Expansion(rows[chosen], coefficient[chosen], constant, pair)


def _row(fitted: Fitted, request: dict[str, Any]) -> Array:
    """Return the row that is asked about: a point of the plane, or a row of the table."""
    rows, place = fitted.rows, request.get("row")
    if place is not None:
        found = np.flatnonzero(rows.index == place) if is_number(place) else np.empty(0, int)
        if not len(found):
            raise RefusalError("there is no such row", parameter="row")
        return np.asarray(rows.X[found[:1]])
    at = request.get("at")
    if not isinstance(at, list) or len(at) != 2 or not all(map(is_number, at)):
        raise RefusalError("at must be two numbers", parameter="at")
    return np.asarray(rows.back(np.array([at], dtype=np.float64)), dtype=np.float64)


def _said(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return what the machine itself says of a row."""
    machine = fitted.machine
    found: dict[str, Any] = {"label": None, "probability": None}
    if is_classifier(machine):
        found["label"] = machine.predict(x)[0]
        if hasattr(machine, "predict_proba"):
            found["probability"] = machine.predict_proba(x)[0]
    values = machine.decision_function if hasattr(machine, "decision_function") else machine.predict
    value = np.ravel(values(x))
    found["value"] = value[0] if len(value) == 1 else value.max()
    return found


def _words(total: float, expansion: Expansion, terms: Array) -> str:
    """Say how many terms make half of what pulls."""
    size = np.sort(np.abs(terms))[::-1]
    half = int(np.searchsorted(np.cumsum(size), size.sum() / 2)) + 1 if len(size) else 0
    return (
        f"{total:.4g} = {expansion.intercept:.4g} and {len(terms)} terms; the largest {half} make "
        "half of all that pulls"
    )
