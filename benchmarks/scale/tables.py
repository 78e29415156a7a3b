"""The rows that benchmarks of ridge by features are fitted to, and how everybody is judged."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.datasets import FOLDER

Predict = Callable[[Any], Any]


def standardised(name: str) -> tuple[Any, Any, Any, Any]:
    """Read covertype (the second class or not) or KEGG; a tenth of the rows is held out."""
    file = {"covertype": "covertype_part", "kegg": "keggundirected"}[name]
    with np.load(FOLDER / f"{file}.npz", allow_pickle=False) as data:
        X, y = data["X"].astype(np.float64), np.ravel(data["y"])
    if name == "covertype":
        y = np.where(y == np.unique(y)[1], 1.0, -1.0)
    y = (y - y.mean()) / y.std()
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(0).permutation(len(X))
    learnt, held = np.split(order, [len(X) * 9 // 10])
    return X[learnt], y[learnt], X[held], y[held]


def root_mean_square(predicted: Any, z: Any) -> float:
    """Return the size of errors."""
    return float(np.sqrt(np.mean(np.square(predicted - z))))


def share_wrong(predicted: Any, z: Any) -> float:
    """Return how often the sign is wrong."""
    return float(np.mean((predicted > 0) != (z > 0)))


def compare(
    name: str,
    fits: dict[str, Callable[[Any, Any], Predict]],
    judge: Callable[[Any, Any], float] = root_mean_square,
) -> None:
    """Fit everybody once, the rival last, and print a line for each."""
    X, y, Z, z = standardised(name)
    for title, fit in fits.items():
        gc.collect()
        work, wall = time.process_time(), time.perf_counter()
        predict = fit(X, y)
        work, wall = time.process_time() - work, time.perf_counter() - wall
        error = judge(predict(Z), z)
        print(
            f"{name}, {len(X)} rows | {title} | {error:.4f} | {work:.1f} | {wall:.1f}", flush=True
        )
