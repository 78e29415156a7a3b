"""Data for the support vector machines: one made here, real sets where their files are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

# Files name.npz with arrays X, y or X_train, y_train; see docs/benchmarks.md for their sources.
FOLDER = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2] / "shared" / "data"))


def available(name: str) -> bool:
    """Return whether a real data set is here."""
    return (FOLDER / f"{name}.npz").exists()


def synthetic(n: int = 20000, d: int = 50) -> tuple[Any, Any]:
    """Make a curved border in many dimensions: about half of the points support it."""
    X = np.random.default_rng(0).standard_normal((n, d))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * X[:, 3] ** 2 > 0.5
    return X, y.astype(int)


def real(name: str, rows: int | None = None) -> tuple[Any, Any]:
    """Read the training rows of a set, columns standardised; a fixed random part if asked."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as data:
        part = "_train" if "X_train" in data else ""
        X, y = data["X" + part], data["y" + part]
    if rows is not None and rows < len(y):
        kept = np.random.default_rng(0).permutation(len(y))[:rows]
        X, y = X[kept], y[kept]
    return standardised(X.astype(np.float64)), y


def mnist(rows: int) -> tuple[Any, Any]:
    """Read the first training digits, grey values in [0, 1], as float32."""
    with np.load(FOLDER / "mnist.npz", allow_pickle=False) as data:
        X, y = data["X_train"][:rows], data["y_train"][:rows]
    return (X.reshape(len(X), -1) / 255.0).astype(np.float32), y


def covertype(rows: int, *, binary: bool) -> tuple[Any, Any]:
    """Read a part of covertype; binary: the commonest class against the rest."""
    X, y = real("covertype_part", rows)
    return X, (y == np.bincount(y).argmax()).astype(int) if binary else y


def standardised(X: Any) -> Any:
    """Shift and scale columns to mean 0 and variance 1; constant columns to 0."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
