"""Paths of a backend: every step as good as a descent of its own, and as the reference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.array_types import Array
from mercer.backends.boxes import Box, BoxPath, BoxPathAnswer, PathStep
from mercer.backends.contract import Backend
from mercer.backends.reference.backend import Reference
from mercer.expression import Exp, SqDist

_STEPS = (
    PathStep(0.1, 2.0, 3.0, 0.1),
    PathStep(1.0, 2.0, 1.0, 1.0, start=0),
    PathStep(30.0, 1.0, 0.5, 20.0, start=1),
    PathStep(0.5, 0.5, 1.0, 0.5, start=2),
    PathStep(2.0, 0.5, 1.0, 2.0, start=1),
)


def check_box_paths(backend: Backend) -> None:
    """Compare paths with epsilons, shifts, sums and runs of rows with the reference."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((90, 3))
    K = Reference().pairs(Exp(-0.5 * SqDist()), X, None, np.float64).dense()
    paths = list(_paths(rng, X[:, 0]))
    for matrix, tol in ((K, 1e-5), (K.astype(np.float32), 1e-3)):
        answers = backend.box_paths(matrix, paths, tol, 100_000, None)
        expected = Reference().box_paths(matrix, paths, tol, 100_000, None)
        assert len(answers) == len(paths)
        for path, answer, other in zip(paths, answers, expected, strict=True):
            for s, step in enumerate(path.steps):
                _check_step(matrix.astype(np.float64), path, step, s, answer, other, tol)
    (stopped,) = backend.box_paths(K, paths[:1], 1e-9, 100_000, lambda steps, violation: True)
    assert stopped.b.shape == (len(_STEPS), 90)
    assert backend.box_paths(K, [], 1e-9, 10, None) == []


def _paths(rng: np.random.Generator, targets: Array) -> Iterator[BoxPath]:
    """Return paths of classifiers, of tubes, and with two sums; the last rows are judged."""
    judged = np.array([88, 89, 3, 4, 5, 80, 79])
    for rows in (None, np.concatenate([np.arange(40, 77), np.arange(9, 30)]), rng.permutation(41)):
        own = np.arange(90) if rows is None else rows
        n = len(own)
        signs = np.where(targets[own] > 0, 1.0, -1.0)
        weights = rng.uniform(0.5, 2.0, n)
        nothing, none = np.zeros(n), np.zeros(1)
        lower, upper = weights * np.minimum(signs, 0.0), weights * np.maximum(signs, 0.0)
        yield BoxPath(Box(signs, nothing, lower, upper, rows=rows), none, _STEPS, judged)
        tube = Box(targets[own], nothing, -weights, weights, np.full(n, 0.1), rows=rows)
        yield BoxPath(tube, none, _STEPS, judged)
        far = np.full(n, np.inf)
        loose = Box(targets[own], nothing, -far, far, np.full(n, 0.1), 0.5 / weights, None, rows)
        yield BoxPath(loose, none, _STEPS, judged[:0])
        group = np.where(signs > 0, 0, 1)
        sums = 0.4 * min(weights[signs > 0].sum(), weights[signs < 0].sum()) * np.array([1.0, -1.0])
        nu = Box(nothing, 0.1 * signs, lower, upper, group=group, rows=rows)
        yield BoxPath(nu, sums, _STEPS, judged)


def _check_step(
    K: Array,
    path: BoxPath,
    step: PathStep,
    s: int,
    answer: BoxPathAnswer,
    other: BoxPathAnswer,
    tol: float,
) -> None:
    box, b = path.box, answer.b[s]
    own = np.arange(len(K)) if box.rows is None else box.rows
    shift = np.zeros(len(own)) if box.shift is None else step.shift * box.shift
    part = K[np.ix_(own, own)] + np.diag(shift)
    epsilon = 0.0 if box.epsilon is None else step.epsilon * box.epsilon

    def value(b: Array) -> float:
        return float(b @ part @ b / 2 - box.gradient @ b + np.sum(epsilon * np.abs(b)))

    assert answer.violation[s] <= tol
    assert (b >= step.bound * box.lower).all() and (b <= step.bound * box.upper).all()
    group = np.zeros(len(own), dtype=int) if box.group is None else box.group
    size = 1.0 + float(np.abs(b).sum())
    np.testing.assert_allclose(
        np.bincount(group, b), step.total * path.totals, rtol=0, atol=1e-9 * size
    )
    slack = tol * size
    assert abs(value(b) - value(other.b[s])) <= slack, (value(b), value(other.b[s]), slack)
    gradient = box.gradient - part @ b
    np.testing.assert_allclose(answer.gradient[s], gradient, rtol=0, atol=0.1 * tol * size)
    np.testing.assert_allclose(answer.offsets[s], other.offsets[s], rtol=0, atol=20 * tol)
    expected = K[np.ix_(path.evaluation_rows, own)] @ b
    np.testing.assert_allclose(answer.values[s], expected, rtol=0, atol=1e-4 * tol * size)
