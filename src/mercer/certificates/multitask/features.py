"""The same quantities for K = F F': by the stored forms, and by QR decompositions of F."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.certificates.process.triangles import solved_by_factor, triangle_of
from mercer.points import to_dense
from mercer.problems.multitask.regression import (
    TaskPosterior,
    TaskRegression,
    task_log_likelihood,
    task_root,
)

_ROWS = 4  # times the features: rows that are written out at a time


def solved_by_features(
    problem: TaskRegression, value: TaskPosterior, F: Any, row: int, task: int
) -> tuple[Array, float]:
    """Return C^-1 c and c'C^-1 c by what is stored, c the covariance of a place with all readings.

    With p = R_t (x) phi and H = Phi'S Phi + noise I, C^-1 c = S Phi H^-1 p, and the variance that
    is left is noise p'H^-1 p.

    Parameters
    ----------
    problem : TaskRegression
        What was asked.
    value : TaskPosterior
        The answer.
    F : (n, D) array or sparse array
        The features.
    row, task : int
        The place.
    """
    R, noise, phi = task_root(problem.tasks), problem.noise, to_dense(F[[row]])[0]
    p = np.outer(phi, R[task])
    if value.factor is not None:
        half = solved_by_factor(value.factor, p.T.ravel())
        u = solved_by_factor(value.factor, half, transposed=True).reshape(p.T.shape).T
        left = noise * float(half @ half)
    else:
        assert value.basis is not None
        assert value.values is not None
        m, V = np.linalg.eigh(problem.tasks)
        parts = np.outer(value.values, np.maximum(m, 0.0)) + noise
        turned = value.basis.T @ p @ V
        u = value.basis @ (turned / parts) @ V.T
        left = noise * float(np.sum(turned**2 / parts))
    s = problem.row_weights[:, None]
    g = np.where(problem.seen, s * np.asarray(F @ (u @ R)), 0.0)
    return g, float(phi @ phi) * float(problem.tasks[task, task]) - left


def likelihood_of_features(problem: TaskRegression, F: Any, Y: Array) -> float:
    """Return log p(Y) by a QR decomposition for each eigenvalue of B, or of all readings.

    Parameters
    ----------
    problem : TaskRegression
        What was asked.
    F : (n, D) array or sparse array
        The features.
    Y : (n, T) array
        The readings; zero where there are none.
    """
    s, noise, readings = problem.row_weights, problem.noise, problem.readings
    if readings.whole:
        m, V = np.linalg.eigh(problem.tasks)
        rotated = Y @ V
        parts = [
            _one_task(F, rotated[:, j], s, noise, max(float(m[j]), 0.0)) for j in range(len(m))
        ]
        squares, determinant = sum(a for a, _ in parts), sum(b for _, b in parts)
    else:
        squares, determinant = _all_readings(problem, F, Y)
    return task_log_likelihood(squares, determinant, readings, s, noise)


def _one_task(F: Any, y: Array, s: Array, noise: float, m: float) -> tuple[float, float]:
    """Return y'C^-1 y and log |SC| for C = m F F' + noise S^-1."""
    R = triangle_of(F, np.sqrt(s * (m / noise)))
    right = np.sqrt(m) / noise * np.asarray(F.T @ (s * y))
    half = solved_by_factor(R, right, lower=False, transposed=True)
    w = solved_by_factor(R, half, lower=False)
    left = y - np.sqrt(m) * np.asarray(F @ w)
    squares = float(s @ left**2) / noise + float(w @ w)
    determinant = 2.0 * float(np.sum(np.log(np.abs(R.diagonal())))) + len(y) * np.log(noise)
    return squares, determinant


def _all_readings(problem: TaskRegression, F: Any, Y: Array) -> tuple[float, float]:
    """Return y'C^-1 y and log |SC| with the features of all readings, block by block."""
    root, s, noise = task_root(problem.tasks), problem.row_weights, problem.noise
    D, T = F.shape[1], len(root)
    R, step = np.eye(T * D), max(_ROWS * T * D, 1)
    for t in range(T):
        rows = np.flatnonzero(problem.seen[:, t])
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            phi = np.kron(root[[t]], to_dense(F[some]))
            R = triangle_of(phi, np.sqrt(s[some] / noise), R)
    right = (np.asarray(F.T @ (s[:, None] * Y)) @ root / noise).T.ravel()
    half = solved_by_factor(R, right, lower=False, transposed=True)
    u = solved_by_factor(R, half, lower=False).reshape(T, D).T
    left = np.where(problem.seen, Y - np.asarray(F @ (u @ root)), 0.0)
    squares = float(s @ np.square(left).sum(axis=1)) / noise + float(np.square(u).sum())
    determinant = 2.0 * float(np.sum(np.log(np.abs(R.diagonal()))))
    return squares, determinant + len(problem.readings.row) * float(np.log(noise))
