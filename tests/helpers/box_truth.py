"""What a box programme asks for, in float64 and by definition."""

import numpy as np

from mercer.backends.reference import smo


class Truth:
    """Objective and violation of a box, in float64 and by definition."""

    def __init__(self, K, box):
        m = len(box.start)
        own = np.arange(m) if box.rows is None else box.rows
        self.K = K.astype(np.float64)[np.ix_(own, own)]
        if box.shift is not None:
            self.K = self.K + np.diag(box.shift)
        self.box = box
        self.epsilon = np.zeros(m) if box.epsilon is None else box.epsilon
        self.group = np.zeros(m, dtype=int) if box.group is None else box.group
        self.linear = box.gradient + self.K @ box.start

    def gradient(self, b):
        return self.linear - self.K @ b

    def objective(self, b):
        return b @ self.K @ b / 2 - self.linear @ b + np.sum(self.epsilon * np.abs(b))

    def violation(self, b):
        rising = self.gradient(b) + smo.up(b, self.box.upper, self.epsilon)
        falling = self.gradient(b) + smo.low(b, self.box.lower, self.epsilon)
        groups = [self.group == g for g in np.unique(self.group)]
        return max((smo._apart(rising[g], falling[g]) for g in groups), default=-np.inf)

    def check_feasible(self, b):
        box = self.box
        assert ((box.lower <= b) & (b <= box.upper)).all()
        scale = 1e-12 * (1.0 + np.abs(b).sum() + np.abs(box.start).sum())
        if len(b):
            sums = np.bincount(self.group, b) - np.bincount(self.group, box.start)
            assert np.abs(sums).max() <= scale
