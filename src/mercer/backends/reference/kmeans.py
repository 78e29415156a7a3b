"""Partitions (k-means) in NumPy: the specification of the compiled ones, also for K not stored.

With S = K W Z (Z the indicator of the groups, W the weights) and q_c the sum of w_i S_ic over group
c, the squared distance of point i to the mean of group c is K_ii - 2 S_ic / W_c + q_c / W_c^2. A
step that moves few points adds and subtracts their rows of K only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends.contract import GroupAnswer, Groups, Poll
from mercer.backends.lapack import one_blas_thread
from mercer.rows.chunks import chunked, slices
from mercer.rows.points import to_dense

_FEW = 0.02  # changed labels, of all points, from which single moves begin
_GAIN = 1e-6  # a move must lower its part of the objective by more than this
_MANY = 2  # from n / _MANY changes on sums are made anew
_JUDGED = 256  # points of one look for some to move
_ENTRIES = 1 << 18  # of features that are multiplied at a time: they stay in the cache


def partition(K: Any, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
    """Run all starts; of K only rows K[index] and products K @ V are asked for."""
    clock = _Clock(poll)
    return [_LloydRun(K, groups, labels, clock).answer() for labels in groups.starts]


def filled(labels: Array, count: int, distances: Callable[[], Array], weights: Array) -> Array:
    """Return each empty group the point that is farthest from its mean, by weight.

    `labels` are changed in place; squared distances are asked for only if a group is empty.
    """
    size = np.bincount(labels, minlength=count)
    if size.min() > 0:
        return labels
    far = weights * distances()
    for c in np.flatnonzero(size == 0):
        farthest = int(np.argmax(np.where(size[labels] > 1, far, -np.inf)))
        size[labels[farthest]] -= 1
        size[c], labels[farthest], far[farthest] = 1, c, -1.0
    return labels


def labelled(groups: Groups, F: Any) -> Groups:
    """Return starts as labels where they are means: those of the nearest, for rows of features."""
    if groups.starts.ndim == 2:
        return groups
    starts = np.stack([_nearest(F, means, groups) for means in groups.starts])
    return replace(groups, starts=starts)


def _nearest(F: Any, means: Array, groups: Groups) -> Array:
    """Return the nearest mean of every row, chunk by chunk; none of them without a row."""
    level = 0.5 * np.square(means).sum(axis=1)
    n, width = F.shape
    labels, products = np.empty(n, dtype=np.int32), np.empty(n)
    step = max(1, _ENTRIES // max(width, 1))

    def chunk(rows: slice) -> None:
        for part in slices(rows.start, rows.stop, step):
            closeness = to_dense(F[part] @ means.T) - level
            labels[part] = np.argmax(closeness, axis=1)
            products[part] = closeness.max(axis=1)

    with one_blas_thread():
        chunked(chunk, n)
    return filled(labels, groups.count, lambda: groups.diagonal - 2.0 * products, groups.weights)


class _Clock:
    """Time, and what the poll is told, over all starts."""

    def __init__(self, poll: Poll | None) -> None:
        self._poll, self._begun = poll, time.perf_counter()
        self._steps, self._best = 0, np.inf
        self.stopped = False

    def note(self, objective: float) -> float:
        """Return where the work stands; return the seconds since it began."""
        self._steps += 1
        self._best = min(self._best, objective)
        if self._poll is not None and not self.stopped:
            self.stopped = bool(self._poll(self._steps, self._best))
        return time.perf_counter() - self._begun


class _LloydRun:
    """One start: labels, sums S (n, k), weights W and inner sums q of the groups."""

    def __init__(self, K: Any, groups: Groups, labels: Array, clock: _Clock) -> None:
        self.K, self.groups, self.clock = K, groups, clock
        self.labels = np.array(labels, dtype=np.int32)
        self.trace: list[tuple[float, float]] = []
        self.converged = False

    def answer(self) -> GroupAnswer:
        if not self.clock.stopped:
            with deadline.cut_short() as cut:  # labels are an answer at all times
                self.fresh()
                self.note(first=True)
                if self.lloyd() and self.groups.refine:
                    self.moves()
            if cut:
                self.converged, self.clock.stopped = False, True
        trace = np.array(self.trace, dtype=np.float64).reshape(-1, 2)
        return GroupAnswer(self.labels, trace, self.converged)

    # --- the way ---------------------------------------------------------------------------------

    def lloyd(self) -> bool:
        """Assign points to nearest means; True if single moves should follow."""
        while self.left():
            after = self.proposal()
            changed = np.flatnonzero(after != self.labels)
            if not len(changed):
                self.converged = True
                return True
            if self.groups.refine and len(changed) <= _FEW * len(after):
                return True
            before = self.labels.copy()
            self.relabel(changed, after)
            if not self.note():  # rounding is all that is left
                self.relabel(changed, before)
                self.converged = True
                return True
        return False

    def moves(self) -> None:
        """Sweep until no move of a single point lowers the objective."""
        self.converged = False
        while self.left():
            if not self.sweep() or not self.note():
                self.converged = not self.clock.stopped
                return

    def left(self) -> bool:
        return len(self.trace) <= self.groups.max_iter and not self.clock.stopped

    def note(self, first: bool = False) -> bool:
        objective = float(self.groups.weights @ self.groups.diagonal - (self.q / self.W).sum())
        if not first and not objective < self.trace[-1][0]:
            return False
        self.trace.append((objective, self.clock.note(objective)))
        return True

    # --- steps -----------------------------------------------------------------------------------

    def fresh(self) -> None:
        """Make all sums from the labels."""
        n, k = len(self.labels), self.groups.count
        V = np.zeros((n, k))
        V[np.arange(n), self.labels] = self.groups.weights
        self.S = np.asarray(self.K @ V, dtype=np.float64)
        self.measure()

    def measure(self) -> None:
        """Find weights, sizes and inner sums of the groups."""
        w, k = self.groups.weights, self.groups.count
        self.W = np.bincount(self.labels, w, k)
        self.size = np.bincount(self.labels, minlength=k)
        own = self.S[np.arange(len(w)), self.labels]
        self.q = np.bincount(self.labels, w * own, k)

    def distances(self) -> Array:
        """Return squared distances to all means, (n, k)."""
        D = self.groups.diagonal[:, None] - 2.0 * self.S / self.W + self.q / self.W**2
        return np.asarray(np.maximum(D, 0.0))

    def proposal(self) -> Array:
        """Return the nearest means; ties leave a point where it is, and no group stays empty."""
        w = self.groups.weights
        D, every = -2.0 * self.S / self.W + self.q / self.W**2, np.arange(len(self.labels))
        after = D.argmin(axis=1).astype(np.int32)
        after = np.where(D[every, after] < D[every, self.labels], after, self.labels)
        return filled(after, self.groups.count, lambda: self.distances()[every, after], w)

    def relabel(self, changed: Array, after: Array) -> None:
        """Change some labels, and the sums with them."""
        before, w = self.labels[changed], self.groups.weights[changed]
        self.labels[changed] = after[changed]
        if len(changed) >= len(after) // _MANY:
            return self.fresh()
        V = np.zeros((len(after), self.groups.count))
        V[changed, before] = -w
        V[changed, after[changed]] = w
        self.S = self.S + self.K @ V
        return self.measure()

    def sweep(self) -> int:
        """Move points that lower the objective by it; each is judged by the sums of its turn.

        Rows of K are asked for together, for all points of one look that may move. Sums of these
        points are kept up to date with every move; those of all others once for the look.
        """
        moved, n = 0, len(self.labels)
        for begin in range(0, n, _JUDGED):
            if self.clock.stopped:
                break
            moved += self.look(slice(begin, min(n, begin + _JUDGED)))
        return moved

    def look(self, points: slice) -> int:
        """Move some of neighbouring points, the first that gains first."""
        i, rows = points.start, dict[int, Array]()
        moved: list[tuple[int, int, int]] = []
        while i < points.stop:
            gain, to = self.gains(slice(i, points.stop))
            gaining = i + np.flatnonzero(gain > 0)
            if not len(gaining):
                break
            first = int(gaining[0])
            if first not in rows:
                asked = gaining if not rows else gaining[:1]
                found = np.asarray(self.K[asked], dtype=np.float64)
                rows.update(zip(asked.tolist(), found, strict=True))
            moved.append((first, int(self.labels[first]), int(to[first - i])))
            self.move(first, int(to[first - i]), points, rows[first][points])
            i = first + 1
        if moved:
            V = np.zeros((len(moved), self.groups.count))
            for number, (point, before, after) in enumerate(moved):
                V[number, before] -= self.groups.weights[point]
                V[number, after] += self.groups.weights[point]
            more = np.array([rows[point] for point, _, _ in moved]).T @ V
            more[points] = 0.0
            self.S += more
        return len(moved)

    def gains(self, points: slice) -> tuple[Array, Array]:
        """Return what the best move of each point gains, less the least it must, and where to."""
        w, a = self.groups.weights[points, None], self.labels[points]
        D = self.groups.diagonal[points, None] - 2.0 * self.S[points] / self.W + self.q / self.W**2
        D, every = np.maximum(D, 0.0), np.arange(len(a))
        join = self.W / (self.W + w) * D
        join[every, a] = np.inf
        alone = self.size[a] < 2
        rest = np.where(alone, 1.0, self.W[a] - w[:, 0])
        leave = np.where(alone, -1.0, self.W[a] / rest * D[every, a] * (1.0 - _GAIN))
        to = join.argmin(axis=1)
        return np.asarray(leave - join[every, to]), to

    def move(self, i: int, to: int, points: slice, row: Array) -> None:
        """Move a point, and update the sums of some points by their entries of its row."""
        a, w = int(self.labels[i]), float(self.groups.weights[i])
        own = w * w * self.groups.diagonal[i]
        self.q[a] += own - 2.0 * w * self.S[i, a]
        self.q[to] += own + 2.0 * w * self.S[i, to]
        self.S[points, a] -= w * row
        self.S[points, to] += w * row
        self.W[a], self.W[to] = self.W[a] - w, self.W[to] + w
        self.size[a], self.size[to] = self.size[a] - 1, self.size[to] + 1
        self.labels[i] = to
