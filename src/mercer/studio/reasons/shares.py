"""Answers that are no sums over points: the neighbours that vote, columns, classes, clusters.

Terms have a name in place of a row where they are no rows. `sum` is None where parts are compared
and not added.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.studio.drawing.fitted import Fitted


def neighbours(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return the rows that vote: above zero for the answer, below it for another class."""
    machine, rows = fitted.machine, fitted.rows
    found = np.ravel(machine.kneighbors(x, return_distance=False))
    label = machine.predict(x)[0]
    same = rows.y[found] == label  # type: ignore[index]
    weight = np.full(len(found), 1.0 / len(found))
    if machine.votes == "similarity":
        similar = np.ravel(machine.kernel_(rows.X[found], x))
        weight = np.abs(similar) / (np.abs(similar).sum() or 1.0)
    signed = np.where(same, weight, -weight)
    terms = [
        {"index": rows.index[one], "contribution": value}
        for one, value in zip(found, signed.tolist(), strict=True)
    ]
    words = f"{int(same.sum())} of the {len(found)} nearest points are of this class"
    return _compared(terms, words, "Votes of the nearest points")


def columns(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return what each column adds to the log odds of the likeliest two classes.

    Log odds of independent columns are a sum over columns; what one adds is what is lost when the
    mean of all rows takes its place.
    """
    machine, rows = fitted.machine, fitted.rows
    scores = np.ravel(machine.predict_log_proba(x))
    first, second = sorted(np.argsort(-scores, kind="stable")[:2].tolist())
    mean, width = rows.X.mean(axis=0), rows.X.shape[1]
    replaced = np.repeat(x, width, axis=0)
    replaced[np.arange(width), np.arange(width)] = mean
    logs = machine.predict_log_proba(np.vstack([x, mean, replaced]))
    odds = logs[:, second] - logs[:, first]
    shares = odds[0] - odds[2:]
    terms = [
        {"name": name, "contribution": share}
        for name, share in zip(rows.columns, shares.tolist(), strict=True)
    ]
    terms.sort(key=lambda term: -abs(term["contribution"]))
    pair = machine.classes_[first].item(), machine.classes_[second].item()
    found = _compared(
        terms, f"log odds {odds[0]:.4g}: {odds[1]:.4g} at the mean of all rows, and a share of "
        "each column", "What each column adds",
    )  # fmt: skip
    total = math.fsum([float(odds[1]), *shares.tolist()])
    return {**found, "intercept": odds[1], "sum": total, "value": odds[0], "against": pair}


def class_probabilities(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return the probability of each class."""
    found, names = np.ravel(fitted.machine.predict_proba(x)), fitted.rows.names
    likeliest = int(np.argmax(found))
    words = f"class {names[likeliest]} has probability {found[likeliest]:.3g}"
    terms = _ranked([f"class {name}" for name in names], found)
    return {**_compared(terms, words, "Probability of each class"), "value": found[likeliest]}


def responsibilities(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return how likely the row comes from each part of a mixture."""
    found = np.ravel(fitted.machine.predict_proba(x))
    best = int(np.argmax(found))
    words = f"the row comes from part {best + 1} with probability {found[best]:.3g}"
    terms = _ranked([f"part {k + 1}" for k in range(len(found))], found)
    value = np.ravel(fitted.machine.score_samples(x))[0]
    return {**_compared(terms, words, "Share of each part"), "value": value}


def distances(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return how far each mean is."""
    found = np.ravel(fitted.machine.transform(x))
    order = np.argsort(found, kind="stable")
    terms = [{"name": f"mean {k + 1}", "contribution": found[k]} for k in order]
    words = f"mean {order[0] + 1} is the nearest, at {found[order[0]]:.3g}"
    value = float(found[order[0]])
    return {**_compared(terms, words, "Distance from each mean"), "value": value}


def _ranked(names: list[str], values: Array) -> list[dict[str, Any]]:
    order = np.argsort(-values, kind="stable")
    return [{"name": names[k], "contribution": float(values[k])} for k in order]


def _compared(terms: list[dict[str, Any]], words: str, title: str) -> dict[str, Any]:
    nothing = {"count": 0, "sum": 0.0}
    return {
        "terms": terms, "words": words, "title": title, "rest": nothing,
        "intercept": None, "sum": None, "against": None,
    }  # fmt: skip
