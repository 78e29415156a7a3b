"""Conformance of box programmes on a stored matrix: the answer meets the KKT conditions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.array_types import Array
from mercer.backends.boxes import Box, BoxAnswer
from mercer.backends.contract import Backend
from mercer.backends.reference.backend import Reference
from mercer.expression import Exp, SqDist


def check_box_programmes(backend: Backend) -> None:
    """Solve boxes of several kinds; compare with the reference, and with the KKT conditions."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((80, 3))
    labels = np.where(X[:, 0] + 0.5 * rng.standard_normal(80) > 0, 1.0, -1.0)
    K = Reference().pairs(Exp(-2.0 * SqDist()), X, None, np.float64).dense()
    plain = Box(labels, np.zeros(80), np.minimum(labels, 0.0), np.maximum(labels, 0.0))
    boxes = [plain, *_boxes(rng, K, X[:, 1])]
    for matrix, tol in ((K, 1e-5), (K.astype(np.float32), 1e-3)):
        answers = backend.box_qps(matrix, boxes, tol, 100_000, None)
        expected = Reference().box_qps(matrix, boxes, tol, 100_000, None)
        assert len(answers) == len(boxes)
        for box, answer, other in zip(boxes, answers, expected, strict=True):
            _check_box(matrix.astype(np.float64), box, answer, other, tol)
    (whole,) = backend.box_qps(K, [plain], 1e-9, 100_000, None)
    (stopped,) = backend.box_qps(K, [plain], 1e-9, 100_000, lambda iteration, violation: True)
    assert 0 <= stopped.iterations <= whole.iterations
    assert backend.box_qps(K, [], 1e-9, 10, None) == []


def _boxes(rng: np.random.Generator, K: Array, targets: Array) -> Iterator[Box]:
    """Return boxes with epsilons, shifts, groups, and rows in runs, out of order and repeated."""
    halves = np.concatenate([np.arange(50, 77), np.arange(9, 40)])
    for rows in (None, halves, rng.permutation(80)[:41], rng.integers(0, 80, 100)):
        own = np.arange(80) if rows is None else rows
        n = len(own)
        epsilon, shift = np.full(n, 0.1), rng.uniform(0.05, 0.5, n)
        for group in (None, np.repeat([0, 1], [n // 3, n - n // 3]), rng.integers(0, 3, n)):
            start = np.where(np.arange(n) % 2, 0.5, -0.5)
            for k, s in ((None, None), (epsilon, None), (None, shift), (epsilon, shift)):
                gradient = targets[own] - K[np.ix_(own, own)] @ start
                gradient -= 0.0 if s is None else s * start
                yield Box(gradient, start, np.full(n, -2.0), np.full(n, 2.0), k, s, group, rows)


def _check_box(K: Array, box: Box, answer: BoxAnswer, other: BoxAnswer, tol: float) -> None:
    n = len(box.start)
    own = np.arange(n) if box.rows is None else box.rows
    K = K[np.ix_(own, own)] + (0.0 if box.shift is None else np.diag(box.shift))
    epsilon = 0.0 if box.epsilon is None else box.epsilon
    linear = box.gradient + K @ box.start

    def value(b: Array) -> float:
        return float(b @ K @ b / 2 - linear @ b + np.sum(epsilon * np.abs(b)))

    b = answer.b
    assert answer.violation <= tol
    assert (b >= box.lower).all() and (b <= box.upper).all()
    group = np.zeros(n, dtype=int) if box.group is None else box.group
    sums = np.bincount(group, b), np.bincount(group, box.start)
    np.testing.assert_allclose(*sums, rtol=0, atol=1e-9)
    slack = tol * (1.0 + float(np.abs(b).sum()))
    assert abs(value(b) - value(other.b)) <= slack, (value(b), value(other.b), slack)
    np.testing.assert_allclose(answer.gradient, linear - K @ b, rtol=0, atol=0.1 * tol + 1e-9)
